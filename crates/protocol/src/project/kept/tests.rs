//! Each test changes a project between two calls, and the second call must see the change. The
//! clock of these projects is ahead, so that folders which were just made count as settled.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_contract::{Actor, Class, ProjectPath};
use quipu_store::{Change, Clock, Expect, Instant, Options, Unwritable};
use tempfile::TempDir;

use super::KeptProject;
use crate::project::open::{Project, ProjectError};

const RULES: &str = "quipu = 1\n\n[[files]]\npath = \"log.md\"\nclass = \"append\"\n";
const AHEAD_US: i64 = 10_000_000;

struct Fixture {
    _folder: TempDir,
    root: PathBuf,
    kept: KeptProject,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = quipu_testkit::temp_folder();
        let root = folder.path().canonicalize().unwrap().join("project");
        make(&root, RULES);
        let system = Clock::system();
        let ahead = move || {
            let now = system.now();
            Instant {
                wall_us: now.wall_us + AHEAD_US,
                ..now
            }
        };
        let options = Options {
            clock: Clock::from_fn(ahead),
            ..Options::default()
        };
        let fixture = Fixture {
            _folder: folder,
            root,
            kept: KeptProject {
                options,
                slot: Default::default(),
            },
        };
        fixture.append("first");
        fixture
    }

    fn call(&self) -> Arc<Project> {
        self.kept.open_to_read(&self.root, None).unwrap()
    }

    /// One call that commits.
    fn append(&self, text: &str) {
        append(&self.call(), text);
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.root.join("log.md")).unwrap()
    }

    fn quipu(&self) -> PathBuf {
        self.root.join(".quipu")
    }
}

fn make(root: &Path, rules: &str) {
    std::fs::create_dir_all(root).unwrap();
    std::fs::write(root.join("quipu.toml"), rules).unwrap();
    Project::open(root, Options::default()).unwrap();
}

fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

fn append(project: &Project, text: &str) {
    let change = Change::by(&Actor::Person).append(&path("log.md"), format!("{text}\n"));
    project.store.validate(change).unwrap().publish().unwrap();
}

/// Copies a folder with `cp`, over the files that are there.
fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp")
        .arg("-a")
        .arg(from.join("."))
        .arg(to)
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn an_unchanged_project_stays_open() {
    let fixture = Fixture::new();
    let first = fixture.call();
    append(&first, "own");
    assert!(Arc::ptr_eq(&first, &fixture.call()));
}

#[test]
fn the_commits_of_other_processes_are_seen() {
    let fixture = Fixture::new();
    let first = fixture.call();
    append(
        &Project::open(&fixture.root, Options::default()).unwrap(),
        "other",
    );
    let second = fixture.call();
    assert!(Arc::ptr_eq(&first, &second));
    append(&second, "own");
    assert_eq!(fixture.log(), "first\nother\nown\n");
}

#[test]
fn a_project_that_a_command_has_just_left_stays_open() {
    let fixture = Fixture::new();
    // It was the last process with the file index open, and has removed files beside it.
    Project::open(&fixture.root, Options::default()).unwrap();
    let kept = KeptProject::default();
    let first = kept.open_to_read(&fixture.root, None).unwrap();
    append(&first, "own");
    let second = kept.open_to_read(&fixture.root, None).unwrap();
    assert!(Arc::ptr_eq(&first, &second));
}

#[test]
fn a_file_replaced_at_the_time_of_the_last_look_is_noticed() {
    let fixture = Fixture::new();
    let kept = KeptProject::default();
    let first = kept.open_to_read(&fixture.root, None).unwrap();
    let (old, new) = (fixture.quipu().join("watermarks"), fixture.root.join("new"));
    std::fs::copy(&old, &new).unwrap();
    std::fs::rename(new, old).unwrap();
    let second = kept.open_to_read(&fixture.root, None).unwrap();
    assert!(!Arc::ptr_eq(&first, &second));
}

#[test]
fn rules_edited_by_hand_hold_for_the_next_call() {
    let fixture = Fixture::new();
    let manifest = fixture.root.join("quipu.toml");
    assert_eq!(
        fixture.call().contract.class(&path("log.md")),
        Class::Append
    );
    // The same size and the same modification time, as an editor or `touch -r` may leave them.
    let modified = manifest.metadata().unwrap().modified().unwrap();
    std::fs::write(&manifest, RULES.replace("append", "sealed")).unwrap();
    let file = std::fs::File::options().write(true).open(&manifest);
    file.unwrap().set_modified(modified).unwrap();
    assert_eq!(
        fixture.call().contract.class(&path("log.md")),
        Class::Sealed
    );
}

#[test]
fn rules_committed_by_another_process_hold_for_the_next_call() {
    let fixture = Fixture::new();
    fixture.call();
    let other = Project::open(&fixture.root, Options::default()).unwrap();
    let rules = RULES.replace("append", "sealed");
    let change = Change::by(&Actor::Person).write(&path("quipu.toml"), rules, Expect::Any);
    other.validate(change).unwrap().publish().unwrap();
    assert_eq!(
        fixture.call().contract.class(&path("log.md")),
        Class::Sealed
    );
}

#[test]
fn removed_rules_are_missed_by_the_next_call() {
    let fixture = Fixture::new();
    fixture.call();
    std::fs::remove_file(fixture.root.join("quipu.toml")).unwrap();
    let result = fixture.kept.open_to_read(&fixture.root, None);
    assert!(matches!(result, Err(ProjectError::Removed(_))));
}

#[test]
fn a_profile_in_the_project_is_read_again() {
    let fixture = Fixture::new();
    let profile = fixture.root.join("house/profile.toml");
    std::fs::create_dir(fixture.root.join("house")).unwrap();
    let rules = RULES.trim_start_matches("quipu = 1\n");
    std::fs::write(&profile, rules).unwrap();
    std::fs::write(
        fixture.root.join("quipu.toml"),
        "quipu = 1\nprofiles = [\"./house\"]\n",
    )
    .unwrap();
    assert_eq!(
        fixture.call().contract.class(&path("log.md")),
        Class::Append
    );
    std::fs::write(&profile, rules.replace("append", "sealed")).unwrap();
    assert_eq!(
        fixture.call().contract.class(&path("log.md")),
        Class::Sealed
    );
}

#[test]
fn a_deleted_journal_is_begun_anew() {
    let fixture = Fixture::new();
    fixture.call();
    std::fs::remove_dir_all(fixture.quipu()).unwrap();
    let project = fixture.call();
    assert!(project.began_anew);
    append(&project, "second");
    assert!(!fixture.call().began_anew);
    assert_eq!(fixture.log(), "first\nsecond\n");
    assert!(Project::open(&fixture.root, Options::default()).is_ok());
}

#[test]
fn a_backup_that_takes_the_place_of_the_journal_is_continued() {
    let fixture = Fixture::new();
    let backup = fixture.root.with_file_name("backup");
    std::fs::create_dir(&backup).unwrap();
    copy(&fixture.quipu(), &backup);
    let before = fixture.call().store.pulse().unwrap();
    fixture.append("newer");
    std::fs::rename(fixture.quipu(), fixture.root.with_file_name("moved")).unwrap();
    std::fs::rename(&backup, fixture.quipu()).unwrap();
    assert_eq!(fixture.call().store.pulse().unwrap(), before);
    fixture.append("after");
    // A process that starts now finds the commit in the journal that is in place.
    let other = Project::open_to_read(&fixture.root, Options::default()).unwrap();
    assert!(other.store.pulse().unwrap() > before);
    assert!(fixture.log().ends_with("after\n"));
}

#[test]
fn a_backup_that_is_copied_over_the_journal_is_continued() {
    let fixture = Fixture::new();
    let backup = fixture.root.with_file_name("backup");
    std::fs::create_dir(&backup).unwrap();
    copy(&fixture.quipu(), &backup);
    let first = fixture.call();
    let before = first.store.pulse().unwrap();
    append(&first, "newer");
    append(&first, "newest");
    copy(&backup, &fixture.quipu());
    let second = fixture.call();
    assert!(!Arc::ptr_eq(&first, &second));
    drop(first);
    append(&second, "after");
    assert!(fixture.log().ends_with("after\n"), "{}", fixture.log());
    let other = Project::open_to_read(&fixture.root, Options::default()).unwrap();
    assert!(other.store.pulse().unwrap() > before);
    assert!(fixture.log().ends_with("after\n"), "{}", fixture.log());
}

#[test]
fn a_segment_that_was_replaced_is_opened_again() {
    let fixture = Fixture::new();
    fixture.append("second");
    let journal = fixture.quipu().join("journal");
    let segment = std::fs::read_dir(&journal).unwrap().next().unwrap();
    let segment = segment.unwrap().path();
    let moved = fixture.root.with_file_name("moved");
    std::fs::rename(&segment, &moved).unwrap();
    std::fs::copy(&moved, &segment).unwrap();
    fixture.append("third");
    let text = std::fs::read_to_string(&segment).unwrap();
    assert!(
        text.contains("third"),
        "the commit is in a file that moved away"
    );
}

#[test]
fn a_project_that_was_moved_is_not_written() {
    let fixture = Fixture::new();
    fixture.call();
    let moved = fixture.root.with_file_name("moved");
    std::fs::rename(&fixture.root, &moved).unwrap();
    let missing = fixture.kept.open_to_read(&fixture.root, None);
    assert!(missing.is_err());
    make(&fixture.root, RULES);
    fixture.append("into the new one");
    assert_eq!(fixture.log(), "into the new one\n");
    let old = std::fs::read_to_string(moved.join("log.md")).unwrap();
    assert_eq!(old, "first\n");
}

#[test]
fn a_link_in_the_folder_of_the_store_is_refused() {
    let fixture = Fixture::new();
    fixture.call();
    let recall = fixture.quipu().join("recall");
    std::fs::create_dir(&recall).unwrap();
    fixture.call();
    std::os::unix::fs::symlink("/etc/passwd", recall.join("manifest")).unwrap();
    let result = fixture.kept.open_to_read(&fixture.root, None);
    let refused = result.err().map(|error| error.to_string());
    assert!(refused.is_some_and(|what| what.contains("symbolic link")));
    std::fs::remove_file(recall.join("manifest")).unwrap();
    fixture.append("second");
}

#[test]
fn a_disk_that_cannot_be_written_is_tried_again() {
    let fixture = Fixture::new();
    let options = Options {
        unwritable: Some(Unwritable::Full("the disk is full".into())),
        ..fixture.kept.options.clone()
    };
    let kept = KeptProject {
        options,
        slot: Default::default(),
    };
    let call = || kept.open_to_read(&fixture.root, None).unwrap();
    assert!(!Arc::ptr_eq(&call(), &call()));
}
