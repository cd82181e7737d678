//! Tests that an answer reflects the current files, regardless of cached notes about the index.

use std::path::Path;

use quipu_contract::ActorName;
use quipu_store::{Change, Options as StoreOptions, Store};

use super::*;

fn project(root: &Path, contract: &str) -> Project {
    std::fs::write(root.join("quipu.toml"), contract).unwrap();
    Store::init(root).unwrap();
    Project::open(root, StoreOptions::default()).unwrap()
}

fn contract(tier: &str) -> String {
    format!("quipu = 1\n\n[[files]]\npath = \"notes/**\"\nclass = \"append\"\ntier = \"{tier}\"\n")
}

fn put(root: &Path, path: &str, text: &str) {
    std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
    std::fs::write(root.join(path), text).unwrap();
}

fn asked(project: &Project, question: &str) -> Recalled {
    let ask = Ask {
        question,
        k: 5,
        within: None,
        kind: None,
        use_model: false,
        complete: false,
        as_of: None,
    };
    recall(project, &Actor::Person, &ask).unwrap()
}

fn paths(recalled: &Recalled) -> Vec<&str> {
    recalled
        .answer
        .hits
        .iter()
        .map(|hit| hit.path.as_str())
        .collect()
}

/// With a few files, and with enough files to check them in parallel with the query.
#[test]
fn a_note_never_stands_before_the_files() {
    for files in [1, 30] {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        for number in 0..files {
            put(
                root,
                &format!("notes/{number:02}.md"),
                &format!("# Note {number}\n\nThe lighthouse has {number} windows.\n"),
            );
        }
        put(root, "free.md", "# Free\n\nA heron stands here.\n");
        let open = || Project::open(root, StoreOptions::default()).unwrap();
        let running = project(root, &contract("L1"));
        let note = root.join(".quipu/recall/complete");
        assert!(asked(&running, "heron").read_anew > 0);
        let quiet = asked(&running, "heron");
        assert_eq!((quiet.read_anew, paths(&quiet)), (0, vec!["free.md"]));
        assert_eq!(KeptIndex::is_large(&index_folder(&running)), files > 1);
        let old = std::fs::read(&note).unwrap();
        assert_eq!(asked(&open(), "heron").answer, quiet.answer);

        // Edited in place with the same length: only the modification time differs.
        put(root, "free.md", "# Free\n\nA stork stands here.\n");
        for project in [&running, &open()] {
            assert_eq!(paths(&asked(project, "stork")), ["free.md"]);
            assert_eq!(paths(&asked(project, "heron")), [""; 0]);
        }
        // A note of an older state, a damaged note, no note.
        let right = asked(&open(), "stork windows").answer;
        for note_says in [Some(&old[..]), Some(b"quipu recall"), None] {
            match note_says {
                Some(bytes) => std::fs::write(&note, bytes).unwrap(),
                None => std::fs::remove_file(&note).unwrap(),
            }
            assert_eq!(asked(&open(), "stork windows").answer, right);
            assert_eq!(asked(&running, "stork windows").answer, right);
        }
        // A commit, a new file, a removed file, another contract, no index, a damaged index.
        let path = ProjectPath::parse("notes/00.md").unwrap();
        running
            .store
            .validate(Change::by(&Actor::Person).append(&path, "\nAnd a gull.\n"))
            .unwrap()
            .publish()
            .unwrap();
        assert_eq!(paths(&asked(&running, "gull")), ["notes/00.md"]);
        put(root, "more.md", "# More\n\nA pelican.\n");
        assert_eq!(paths(&asked(&open(), "pelican")), ["more.md"]);
        assert_eq!(paths(&asked(&running, "pelican")), ["more.md"]);
        std::fs::remove_file(root.join("more.md")).unwrap();
        assert_eq!(paths(&asked(&running, "pelican")), [""; 0]);
        std::fs::write(root.join("quipu.toml"), contract("L2")).unwrap();
        let right = asked(&open(), "gull").answer;
        assert_eq!(right.hits[0].tier, Tier::L2);
        std::fs::remove_dir_all(root.join(".quipu/recall")).unwrap();
        assert_eq!(asked(&open(), "gull").answer, right);
        for entry in std::fs::read_dir(root.join(".quipu/recall")).unwrap() {
            let file = entry.unwrap().path();
            if file.extension().is_some_and(|ending| ending == "seg") {
                let mut bytes = std::fs::read(&file).unwrap();
                bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
                std::fs::write(&file, bytes).unwrap();
            }
        }
        assert_eq!(asked(&open(), "gull").answer, right);
    }
}

/// Another process may publish an index of an earlier state at any moment. Missing text is then
/// read from the files.
#[test]
fn an_index_of_earlier_files_is_laid_over_with_the_files() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path();
    put(root, "notes/a.md", "# A\n\nA heron.\n");
    put(root, "b.md", "# B\n\nA stork.\n");
    let project = project(root, &contract("L1"));
    asked(&project, "heron");
    let of_others = project.index.open(&index_folder(&project)).unwrap();
    let path = ProjectPath::parse("notes/a.md").unwrap();
    project
        .store
        .validate(Change::by(&Actor::Person).append(&path, "\nAnd a gull.\n"))
        .unwrap()
        .publish()
        .unwrap();
    std::fs::remove_file(root.join("b.md")).unwrap();
    let (current, _) = current_files(&project).unwrap();
    let (fresh, gone) = beyond(&project, &of_others, &current).unwrap();
    assert_eq!(
        fresh
            .iter()
            .map(|file| file.path.as_str())
            .collect::<Vec<_>>(),
        ["notes/a.md"]
    );
    assert!(fresh[0].sections[0].text.contains("gull"));
    let asking = Asking {
        project: &project,
        actor: &Actor::Person,
        ask: &Ask {
            question: "gull stork",
            k: 5,
            within: None,
            kind: None,
            use_model: false,
            complete: false,
            as_of: None,
        },
    };
    let recalled = asking
        .answer(UpToDate {
            index: of_others,
            fresh,
            gone,
            read_anew: Vec::new(),
        })
        .unwrap();
    assert_eq!(paths(&recalled), ["notes/a.md"]);
}

#[test]
fn what_cannot_be_searched_is_named_and_not_counted() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path();
    put(root, "notes/a.MD", "---\ntags: [heron]\n---\n\nA stork.\n");
    std::fs::create_dir_all(root.join("notes")).unwrap();
    std::fs::write(root.join("notes/latin.md"), b"caf\xe9\n").unwrap();
    std::fs::write(
        root.join("notes/long.txt"),
        "word ".repeat((8 << 20) / 5 + 1),
    )
    .unwrap();
    let project = project(root, &contract("L1"));
    for _ in 0..2 {
        let recalled = asked(&project, "heron");
        assert_eq!(
            (
                recalled.answer.hits[0].line,
                recalled.answer.hits[0].path.as_str()
            ),
            (1, "notes/a.MD")
        );
        assert_eq!(recalled.not_searched, ["notes/latin.md", "notes/long.txt"]);
        assert_eq!(recalled.answer.files, 1);
    }
    let ask = Ask {
        question: "word",
        k: 5,
        within: Some(Pattern::parse("**/a.MD").unwrap()),
        kind: None,
        use_model: false,
        complete: false,
        as_of: None,
    };
    assert_eq!(
        recall(&project, &Actor::Person, &ask).unwrap().not_searched,
        [""; 0]
    );
}

#[test]
fn a_role_finds_its_own_section_and_learns_nothing_of_others() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path();
    let rules = "\n[roles.reader]\ntitle = \"Reader\"\nduty = \"reading\"\nread = [{ path = \"notes/plan.md\", section = \"ch01\" }]\n";
    put(
        root,
        "notes/plan.md",
        "# The Secret Title\n\n## ch01: Leases\n\nA quokka.\n\n### More\n\nA wombat.\n\n## ch02: Locks\n\nA quoll.\n",
    );
    put(root, "notes/hidden.md", "# Hidden\n\nA quokka.\n");
    let project = project(root, &(contract("L1") + rules));
    let reader = Actor::Agent {
        role: Some(ActorName::parse("reader").unwrap()),
        unit: None,
        agent: None,
    };
    let ask = |question| Ask {
        question,
        k: 5,
        within: None,
        kind: None,
        use_model: false,
        complete: false,
        as_of: None,
    };
    let found = recall(&project, &reader, &ask("quokka wombat quoll")).unwrap();
    let mut paths: Vec<Vec<String>> = found
        .answer
        .hits
        .iter()
        .map(|hit| hit.heading_path.clone())
        .collect();
    paths.sort();
    assert_eq!(paths, [vec!["ch01: Leases"], vec!["ch01: Leases", "More"]]);
    put(
        root,
        "notes/hidden.md",
        "# Hidden\n\nA quokka and another.\n",
    );
    assert_eq!(
        recall(&project, &reader, &ask("quokka")).unwrap().read_anew,
        0
    );
}
