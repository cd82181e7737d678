//! Fuzzes imports: an import takes each file whole or skips it, and the project stays sound.

use proptest::prelude::*;
use quipu_contract::Actor;
use quipu_protocol::{Import, ImportSource, Project, import};
use quipu_store::Options;
use quipu_testkit::{Playground, mutated_bytes, temp_folder};

const SOURCES: [&str; 4] = [
    "---\ntitle: Search\ntype: note\n---\n\n# Search\n\n- relates_to [[Index|the index]]\n- [decision] use SQLite #db\n\nSee @docs/a.md and [x](b.md).\n",
    "# CLAUDE.md\n\n@README.md\n@~/.claude/x.md\n\n## 规则\n\n- 不要改 `state.json`\n",
    "{\"type\":\"entity\",\"name\":\"Otto\",\"entityType\":\"person\",\"observations\":[\"sails\",\"1902 生\"]}\n{\"type\":\"relation\",\"from\":\"Otto\",\"to\":\"Ann\",\"relationType\":\"knows\"}\n",
    "",
];

/// Creates a source in the layout that each kind expects.
fn lay_source(folder: &std::path::Path, bytes: &[u8]) {
    std::fs::create_dir_all(folder.join("notes")).unwrap();
    for name in [
        "CLAUDE.md",
        "MEMORY.md",
        "memory.jsonl",
        "notes/one.md",
        "notes/两.md",
    ] {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_mutated_source_is_taken_or_left_out(bytes in mutated_bytes(SOURCES.map(|s| s.as_bytes().to_vec()).to_vec())) {
        let (play, elsewhere) = (Playground::local(), temp_folder());
        lay_source(elsewhere.path(), &bytes);
        let project = Project::open(play.root(), Options::default()).unwrap();
        for source in ImportSource::ALL {
            let place = match source {
                ImportSource::ClaudeMd => elsewhere.path().join("CLAUDE.md"),
                ImportSource::McpMemory => elsewhere.path().join("memory.jsonl"),
                _ => elsewhere.path().to_owned(),
            };
            let into = format!("imported-{}", source.name());
            let asked = Import { source, place: &place, told: "elsewhere", into: &into, dry_run: false, force: true, lease: None };
            let _ = import(&project, &Actor::Person, &asked);
        }
        drop(project);
        prop_assert!(play.open().verify().unwrap().problems.is_empty());
        lay_source(elsewhere.path(), b"");
    }
}
