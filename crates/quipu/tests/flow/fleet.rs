//! Many workers on one book. Workers are killed, stopped and replaced; the result equals that of
//! one undisturbed run, and no job is done twice.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use quipu_protocol::Project;
use quipu_store::Options;

use crate::rehearsal::{Desk, next};

/// Counts how often each job was accepted.
pub fn accepted(project: &Project) -> BTreeMap<String, usize> {
    let mut jobs = BTreeMap::new();
    for noted in project.store.noted(0).unwrap() {
        if noted.note["ruling"] == "accepted" {
            let job = format!(
                "{}/{}",
                noted.note["step"].as_str().unwrap(),
                noted.note["unit"].as_str().unwrap_or_default()
            );
            *jobs.entry(job).or_default() += 1;
        }
    }
    jobs
}

/// Completes a book in one run on one machine.
pub fn undisturbed_on(desk: Desk) -> Desk {
    desk.fine(&["run", "--by", "rehearse"]);
    desk.fine(&["approve", "approve-outline"]);
    desk.fine(&["run", "--by", "rehearse"]);
    desk
}

pub fn same_trees(left: &BTreeMap<String, Vec<u8>>, right: &BTreeMap<String, Vec<u8>>) {
    assert_eq!(
        left.keys().collect::<Vec<_>>(),
        right.keys().collect::<Vec<_>>()
    );
    for (path, bytes) in right {
        assert_eq!(
            String::from_utf8_lossy(&left[path]),
            String::from_utf8_lossy(bytes),
            "{path}"
        );
    }
}

fn worker(desk: &Desk) -> Child {
    let arguments = ["worker", "--by", "rehearse", "--jobs", "2"];
    desk.quipu(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn workers_of_one_machine_share_a_book_and_take_over_what_the_dead_held() {
    let alone = undisturbed_on(Desk::book_of(6));
    let desk = Desk::book_of(6);
    let mut crew: Vec<Child> = (0..3).map(|_| worker(&desk)).collect();
    let begun = Instant::now();
    let patience = Duration::from_secs(300);
    // The workers wait for a person, and all continue when the gate is open.
    while desk.call(&["approve", "approve-outline"]).0 != 0 {
        assert!(
            begun.elapsed() < patience,
            "{}",
            desk.fine(&["fleet", "status"])
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    let (mut seed, mut kills) = (0x1234_5678_9abc_def1, 0);
    while crew
        .iter_mut()
        .any(|child| child.try_wait().unwrap().is_none())
    {
        assert!(
            begun.elapsed() < patience,
            "{}",
            desk.fine(&["fleet", "status"])
        );
        std::thread::sleep(Duration::from_millis(60 + next(&mut seed) % 240));
        let place = usize::try_from(next(&mut seed) % 3).unwrap();
        if crew[place].try_wait().unwrap().is_none() {
            crew[place].kill().unwrap();
            crew[place].wait().unwrap();
            kills += 1;
            crew[place] = worker(&desk);
        }
    }
    assert!(kills >= 3, "only {kills} were killed while they worked");
    for mut child in crew {
        assert!(child.wait().unwrap().success());
    }
    same_trees(&desk.tree(), &alone.tree());
    let project = Project::open(&desk.root, Options::default()).unwrap();
    let twice: Vec<_> = accepted(&project)
        .into_iter()
        .filter(|(_, n)| *n != 1)
        .collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert!(project.store.leases().unwrap().is_empty());
    desk.fine(&["verify"]);
}

#[test]
fn a_worker_that_is_asked_to_leave_gives_back_what_it_holds() {
    let desk = Desk::book_of(2);
    let hanging = [
        "worker",
        "--by",
        "command:sleep 60",
        "--flow",
        "book",
        "--jobs",
        "1",
    ];
    let mut child = desk
        .quipu(&hanging)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let workers = || -> serde_json::Value {
        serde_json::from_slice(
            &desk
                .quipu(&["fleet", "status", "--json"])
                .output()
                .unwrap()
                .stdout,
        )
        .unwrap()
    };
    let begun = Instant::now();
    while workers()["workers"][0]["claims"][0]["step"] != "outline" {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", workers());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(workers()["leases"].as_array().unwrap().len(), 1);
    let id = child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let left = workers();
    assert_eq!(
        (
            left["workers"].as_array().unwrap().len(),
            left["leases"].as_array().unwrap().len()
        ),
        (0, 0),
        "{left}"
    );
    let (code, said) = desk.call(&["worker", "--by", "rehearse", "--flow", "novel"]);
    assert!(code == 5 && said.contains("one of book"), "{said}");
}
