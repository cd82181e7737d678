//! A finish, stopped at every write step: either all its effects are there, including the end of
//! its session, or none.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use quipu_contract::{Actor, ActorName, Form, Language, Tokens};
use quipu_protocol::worldlog::{NewTask, start_task};
use quipu_protocol::{
    Caller, Closed, Finish, Layout, Material, NewDecision, NewTodo, Project, StartRequest, Terms,
    TodoMoves, WorkError, add_todo, change_formed, finish, lay_out, move_todo, start,
};
use quipu_store::{Clock, Instant, Options};
use quipu_testkit::{FailingDisk, Failure, copy_folder, temp_folder};
use serde_json::json;

fn options() -> Options {
    let moment = Instant {
        wall_us: 1_790_000_000_000_000,
        boot_us: 5_000_000,
    };
    Options {
        clock: Clock::from_fn(move || moment),
        boot: Some("first".into()),
        ..Options::default()
    }
}

fn ada() -> Actor {
    Actor::Agent {
        role: ActorName::parse("agent").ok(),
        unit: None,
        agent: ActorName::parse("ada").ok(),
    }
}

/// Creates a project with a session that works on a todo.
fn stage() -> tempfile::TempDir {
    let folder = temp_folder();
    let layout = Layout {
        profiles: vec!["relay".into(), "worldlog".into()],
        ..Layout::default()
    };
    lay_out(folder.path(), &layout, options()).unwrap();
    let project = Project::open(folder.path(), options()).unwrap();
    let caller = Caller::default();
    let request = StartRequest {
        budget: Tokens(8000),
        scene: None,
        delegation: None,
        task: None,
        suspect: None,
        peek: false,
        full: false,
        notices: Vec::new(),
        caller,
    };
    assert!(start(&project, &ada(), &request).unwrap().session.is_some());
    let new = NewTodo {
        title: "knots".into(),
        id: Some("TODO-1".into()),
        ..NewTodo::default()
    };
    add_todo(&project, &ada(), None, &new).unwrap();
    move_todo(
        &project,
        &ada(),
        None,
        "TODO-1",
        &quipu_protocol::Move::Start,
    )
    .unwrap();
    let new = NewTask {
        description: "tie the knots".into(),
        kind: "fix".into(),
        ..NewTask::default()
    };
    change_formed(&project, &ada(), &Terms::default(), Form::Task, |text| {
        Ok(start_task(text, Language::En, &new)?)
    })
    .unwrap();
    folder
}

fn close(project: &Project) -> Result<Closed, WorkError> {
    let decision = NewDecision {
        title: "Cords".into(),
        id: Some("ADR-1".into()),
        context: Some("wool tears".into()),
        decision: Some("cotton".into()),
        ..NewDecision::default()
    };
    let material = Material {
        did: vec!["knots".into()],
        next: vec!["colours".into()],
        decisions: vec![decision],
        todos: TodoMoves {
            done: vec!["TODO-1".into()],
            ..TodoMoves::default()
        },
        rest:
            json!({"solution": "tied", "lesson": "wet cords hold", "world": ["Structure/knots=12"]})
                .as_object()
                .cloned()
                .unwrap(),
        ..Material::default()
    };
    finish(
        project,
        &ada(),
        &Finish {
            material,
            ..Finish::default()
        },
    )
}

/// Returns every memory file, by its path.
fn files(root: &Path) -> BTreeMap<String, String> {
    let folders = ["", ".sessions/", ".notes/ada/"];
    let entries = folders.iter().flat_map(|folder| {
        std::fs::read_dir(root.join(folder))
            .into_iter()
            .flatten()
            .map(move |e| (folder, e))
    });
    let names = entries.filter_map(|(folder, entry)| {
        let entry = entry.unwrap();
        entry
            .file_type()
            .unwrap()
            .is_file()
            .then(|| format!("{folder}{}", entry.file_name().to_str().unwrap()))
    });
    names
        .map(|name| {
            (
                name.clone(),
                std::fs::read_to_string(root.join(name)).unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_finish_is_whole_wherever_it_stops() {
    let staged = stage();
    let before = files(staged.path());
    let good = temp_folder();
    copy_folder(staged.path(), good.path());
    let counting = Arc::new(FailingDisk::counting());
    let project = Project::open(
        good.path(),
        Options {
            watch: Some(counting.clone()),
            ..options()
        },
    )
    .unwrap();
    assert!(matches!(close(&project).unwrap(), Closed::Done { .. }));
    drop(project);
    let after = files(good.path());
    let changed = after
        .iter()
        .filter(|(path, text)| before.get(*path) != Some(*text))
        .map(|(path, _)| path.as_str());
    let expected = [
        ".notes/ada/agent_knowledge.md",
        ".notes/ada/task_process.md",
        ".sessions/2026-09-21_fix_tie_knots.md",
        "decisions.md",
        "state.json",
        "todos.json",
        "world_state.md",
    ];
    assert_eq!(changed.collect::<Vec<_>>(), expected);
    let steps = counting.steps();
    assert!(steps.len() > 5, "{steps:?}");
    let (mut none, mut all) = (0, 0);
    for index in 0..steps.len() {
        for failure in [Failure::Stop, Failure::Torn, Failure::Full] {
            let place = format!(
                "step {index} of {} ({:?}), {failure:?}",
                steps.len(),
                steps[index]
            );
            let folder = temp_folder();
            copy_folder(staged.path(), folder.path());
            let watch = Arc::new(FailingDisk::at(index, failure));
            let told = match Project::open(
                folder.path(),
                Options {
                    watch: Some(watch),
                    ..options()
                },
            ) {
                Ok(project) => close(&project).map(|_| ()).map_err(|e| e.to_string()),
                Err(error) => Err(error.to_string()),
            };
            let project = Project::open(folder.path(), options()).unwrap();
            project
                .store
                .settle()
                .unwrap_or_else(|e| panic!("{place}: {e}"));
            let found = files(folder.path());
            let ended = project.store.sessions().unwrap().is_empty();
            if found == after {
                all += 1;
                assert!(ended, "{place}: the session did not end with its commit");
            } else {
                none += 1;
                assert!(told.is_err(), "{place}: it was acknowledged and is lost");
                assert_eq!(found, before, "{place}: half of it happened");
                assert!(!ended, "{place}: the session ended without its commit");
                // The next session sees the open one, and the finish can be repeated.
                assert!(
                    matches!(close(&project).unwrap(), Closed::Done { .. }),
                    "{place}"
                );
                assert_eq!(files(folder.path()), after, "{place}");
            }
            assert_eq!(project.store.verify().unwrap().problems, [], "{place}");
        }
    }
    assert!(none > 0 && all > 0, "{none} before, {all} after");
}

#[test]
fn what_is_missing_writes_nothing() {
    let staged = stage();
    let before = files(staged.path());
    let project = Project::open(staged.path(), options()).unwrap();
    let Closed::Missing(missing) = finish(&project, &ada(), &Finish::default()).unwrap() else {
        panic!("it may not pass")
    };
    let names: Vec<&str> = missing.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "state",
            "next",
            "decisions",
            "todos",
            "solution",
            "lesson",
            "world"
        ]
    );
    assert_eq!(files(staged.path()), before);
    assert_eq!(project.store.sessions().unwrap().len(), 1);
}
