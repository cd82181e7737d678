//! Fuzzes the text of a finish, as Markdown and as JSON.

use proptest::prelude::*;
use quipu_contract::{Actor, ActorName};
use quipu_protocol::{Layout, Project, lay_out, parse_finish_text, parse_material};
use quipu_store::Options;
use quipu_testkit::mutated;

const TEXTS: &[&str] = &[
    "## Done\n- wrote the lexer <!-- why: slow -->\n## Decisions\n- keep the index in SQLite. Why: one file. Rejected: a server. By: ada\n## Todos\n- fix the build (high, due 2026-12-31, @ada): it is red\n- later: tune it\n## Next\n- measure\n## Notes\n- none\n## Facts\n- Environment/python=3.12\n",
    "## 完成\n- 写了词法分析器\n## 决定\n- 无\n## 待办\n- 修好构建（高，2026-12-31 前，@ada）：失败了\n## 下一步\n- 测量\n",
    "```\n## Done\n```\n- x\n\n> ## Next\n\n1. a\n   - b\n",
];

const MATERIAL: &[&str] = &[
    r#"{"did": ["x"], "next": ["y"], "notes": "n", "state": {"/a/b": 1}, "none": ["todos"], "world": ["A/b=c"]}"#,
    r#"{"problem": "p", "solution": "s", "rounds": 3, "pattern": "known: x", "lesson": "none", "outcome": "done"}"#,
];

thread_local! {
    /// One project serves all texts, because parsing changes nothing.
    static PLACE: (tempfile::TempDir, Project, Actor) = place();
}

fn place() -> (tempfile::TempDir, Project, Actor) {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout {
        profiles: vec!["relay".into()],
        ..Layout::default()
    };
    lay_out(folder.path(), &layout, Options::default()).unwrap();
    let project = Project::open(folder.path(), Options::default()).unwrap();
    let actor = Actor::Agent {
        role: ActorName::parse("main").ok(),
        unit: None,
        agent: ActorName::parse("ada").ok(),
    };
    (folder, project, actor)
}

fn read(text: &str) -> Result<(), String> {
    PLACE.with(|(_, project, actor)| {
        parse_finish_text(project, actor, "finish.md", text)
            .map(drop)
            .map_err(|error| error.to_string())
    })
}

#[test]
fn samples_are_read() {
    assert_eq!(read(TEXTS[0]), Ok(()));
    for text in MATERIAL {
        parse_material("finish.json", text).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_mutated_finish_is_read_or_named_at_fault(text in mutated(TEXTS)) {
        if let Err(fault) = read(&text) {
            prop_assert!(!fault.is_empty());
        }
    }

    #[test]
    fn mutated_material_is_read_or_named_at_fault(text in mutated(MATERIAL)) {
        if let Err(error) = parse_material("finish.json", &text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
