//! Finish texts as different models write them, each with what is read from it.
//!
//! `QUIPU_RECORD=1 cargo test -p quipu-protocol --test finish_texts` writes the expectations anew.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use quipu_contract::{Actor, ActorName, Language};
use quipu_protocol::{
    Closed, Finish, Layout, NewTodo, Project, add_todo, decide, finish, lay_out, parse_finish_text,
};
use quipu_store::Options;
use serde_json::{Value, json};

/// A project with two open todos, a third with an id of its own, and a decision.
fn project(folder: &Path, language: Language) -> (Project, Actor) {
    let layout = Layout {
        profiles: vec!["relay".into()],
        language,
        ..Layout::default()
    };
    lay_out(folder, &layout, Options::default()).unwrap();
    let project = Project::open(folder, Options::default()).unwrap();
    let actor = Actor::Agent {
        role: ActorName::parse("main").ok(),
        unit: None,
        agent: ActorName::parse("ada").ok(),
    };
    for (id, title) in [
        ("TODO-261118-k7q2m", "Write sum.sh"),
        ("TODO-261118-b2c3d", "Write the tests"),
        ("ADD-77", "Add colours"),
    ] {
        let new = NewTodo {
            title: title.into(),
            id: Some(id.into()),
            ..NewTodo::default()
        };
        add_todo(&project, &actor, None, &new).unwrap();
    }
    let old = quipu_protocol::NewDecision {
        title: "Digits count".into(),
        id: Some("ADR-1".into()),
        ..Default::default()
    };
    decide(&project, &actor, None, &old).unwrap();
    quipu_protocol::change_list(
        &project,
        &actor,
        None,
        quipu_protocol::List::Notes,
        &[],
        &["first".into(), "an old note".into()],
    )
    .unwrap();
    let blocked = json!([{"item": "the licence question", "reason": "law", "since": "2026-11-01"}]);
    quipu_protocol::set_state(&project, &actor, None, "/progress/blocked", &blocked).unwrap();
    (project, actor)
}

/// Without what is empty, so that an expectation shows only what was read.
fn told(value: Value) -> Value {
    match value {
        Value::Object(keys) => {
            let kept = keys.into_iter().map(|(key, value)| (key, told(value)));
            let is_said = |value: &Value| {
                !matches!(value, Value::Null | Value::Bool(false))
                    && *value != json!([])
                    && *value != json!({})
            };
            Value::Object(kept.filter(|(_, value)| is_said(value)).collect())
        }
        Value::Array(items) => items.into_iter().map(told).collect(),
        other => other,
    }
}

#[test]
fn every_text_is_read_as_it_is_meant() {
    let folder =
        Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests/finish_texts");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "md"))
        .collect();
    names.sort();
    assert!(names.len() >= 10);
    for file in names {
        let text = std::fs::read_to_string(&file).unwrap();
        // Either language is read in any project.
        for language in [Language::En, Language::Zh] {
            let place = tempfile::tempdir().unwrap();
            let (project, actor) = project(place.path(), language);
            let read = parse_finish_text(&project, &actor, "stdin", &text)
                .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let asked = Finish {
                material: read.material.clone(),
                ..Finish::default()
            };
            let closed = finish(&project, &actor, &asked)
                .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            assert!(
                matches!(closed, Closed::Done { .. }) || file.ends_with("07-chinese-none.md"),
                "{}: {closed:?}",
                file.display()
            );
            if language == Language::Zh {
                continue;
            }
            let found = told(json!({"material": read.material, "told": read.told}));
            let found = format!("{found:#}\n");
            let expected = file.with_extension("json");
            if std::env::var_os("QUIPU_RECORD").is_some() {
                std::fs::write(&expected, &found).unwrap();
            }
            assert_eq!(
                found,
                std::fs::read_to_string(&expected).unwrap_or_default(),
                "{}",
                file.display()
            );
        }
    }
}
