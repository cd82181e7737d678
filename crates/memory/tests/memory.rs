//! The public surface, as a program uses it.

#![allow(clippy::unwrap_used)]

use quipu_memory::{Error, Memory};

#[test]
fn errors_say_what_a_program_can_do() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        Memory::open(folder.path()),
        Err(Error::NotFound { .. })
    ));
    let memory = Memory::create(folder.path(), "relay")
        .unwrap()
        .agent("ada")
        .unwrap();
    let Err(Error::Refused { rule, repair, .. }) = memory.write("decisions.md", "x", None) else {
        panic!("an append-only file was replaced");
    };
    assert!(rule.unwrap().contains("class = \"append\""));
    assert!(repair.starts_with("quipu append decisions.md"));
    assert!(matches!(
        memory.read("none.md"),
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        memory.append("desicions.md", "x"),
        Err(Error::Refused { .. })
    ));
    assert!(matches!(
        memory.append("../x.md", "x"),
        Err(Error::Refused { .. })
    ));
    let state = memory.read("state.json").unwrap();
    let newer = state.text.replace("planning", "testing");
    memory
        .write("state.json", &newer, Some(&state.version))
        .unwrap();
    let newest = newer.replace("testing", "development");
    assert!(matches!(
        memory.write("state.json", &newest, Some(&state.version)),
        Err(Error::Stale { .. })
    ));
    assert!(matches!(memory.role("nobody"), Err(Error::Refused { .. })));
}

#[test]
fn an_edit_outside_is_flagged_and_an_empty_question_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::create(folder.path(), "relay").unwrap();
    memory.append("decisions.md", "- kept").unwrap();
    assert!(memory.recall("  ").unwrap().hits.is_empty());
    assert!(memory.flagged().unwrap().is_empty());
    std::fs::write(folder.path().join("decisions.md"), "gone\n").unwrap();
    let flagged = memory.flagged().unwrap();
    assert_eq!(flagged[0].path, "decisions.md");
    assert!(flagged[0].repair.ends_with("quipu restore decisions.md"));
    assert!(memory.read("decisions.md").unwrap().text.contains("- kept"));
    let start = memory
        .agent("ada")
        .unwrap()
        .role("main")
        .unwrap()
        .start()
        .unwrap();
    assert!(start.contains("decisions.md"));
}
