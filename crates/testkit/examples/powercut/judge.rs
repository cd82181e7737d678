//! Recovers one crash state and compares it with the recording.

use std::path::Path;
use std::process::Command;

use quipu_contract::{Actor, Class, ProjectPath};
use quipu_protocol::Project;
use quipu_store::{Change, Options, Store};

use crate::crash::Crash;
use crate::disk::{Disk, Mount};
use crate::record::{self, Files, Recording, difference, journal_lines};
use crate::workload::{self, EDITOR_FILE};

pub enum Verdict {
    /// With `had_losses`, some file lacked the text of the last record that reached the disk.
    Recovered {
        had_losses: bool,
    },
    Failed(String),
    /// The file system itself did not survive, for example because of a torn superblock.
    Unmountable,
}

/// Recovers a disk and compares it. Every tenth state is also checked by the program itself; in
/// every fifth the power fails again during recovery.
pub fn judge(
    recording: &Recording,
    crash: &Crash,
    disk: &Disk,
    folder: &Path,
    state: u64,
) -> Verdict {
    let acked = recording.acked(crash);
    let verdict = on_mounted(
        recording,
        disk,
        folder,
        &format!("crashed{state}"),
        &|root| {
            let had_losses = check(recording, acked, root)?;
            if state.is_multiple_of(10) && acked > 0 {
                check_program(root)?;
            }
            Ok(had_losses)
        },
    );
    if state % 5 != 3 || !matches!(verdict, Verdict::Recovered { .. }) {
        return verdict;
    }
    match judge_second_cuts(recording, acked, disk, folder, state) {
        Ok(()) => verdict,
        Err(what) => Verdict::Failed(what),
    }
}

/// Cuts the power a second time during recovery, at some moments.
fn judge_second_cuts(
    recording: &Recording,
    acked: usize,
    disk: &Disk,
    folder: &Path,
    state: u64,
) -> Result<(), String> {
    let folder = folder.join(format!("again{state}"));
    let text = |error: std::io::Error| error.to_string();
    std::fs::create_dir(&folder)
        .and_then(|()| disk.save(&folder.join("image")))
        .map_err(text)?;
    let mut log_bytes = 0;
    let mut recovered = Ok(());
    let mut log = record::log_writes(recording.log.system, &folder, &mut |disk, log| {
        let root = disk.join("book");
        if Project::find_root(&root).is_ok() {
            recovered = open(&root, "afterthecut")
                .and_then(|project| project.store.settle().map_err(|error| error.to_string()));
        }
        log_bytes = std::fs::metadata(log).map_or(0, |found| found.len());
    })?;
    recovered?;
    // Unmounting would write the rest in order, so later entries are dropped.
    log.entries.retain(|entry| entry.end <= log_bytes);
    for second in 0..if log.entries.is_empty() {
        0
    } else {
        SECOND_CUTS
    } {
        let crash = Crash::draw(&log, &[], state, second);
        let name = format!("crashed{second}");
        let verdict = on_mounted(recording, &crash.image(&log), &folder, &name, &|root| {
            check(recording, acked, root)
        });
        if let Verdict::Failed(what) = verdict {
            return Err(format!(
                "after a second power cut during recovery, {crash}: {what}"
            ));
        }
    }
    std::fs::remove_dir_all(folder).map_err(text)
}

/// Number of second power cuts per recovery.
const SECOND_CUTS: u64 = 3;

/// Mounts a disk and inspects its project.
fn on_mounted(
    recording: &Recording,
    disk: &Disk,
    folder: &Path,
    name: &str,
    look: &dyn Fn(&Path) -> Result<bool, String>,
) -> Verdict {
    // The name is unique, because a loop device that is still being freed must not serve an older
    // disk.
    let image = folder.join(name);
    let mounted = disk.save(&image).map_err(|error| error.to_string());
    let mounted =
        mounted.and_then(|()| Mount::new(recording.log.system, &image, &folder.join("mounted")));
    let Ok(mount) = mounted else {
        let _ = std::fs::remove_file(&image);
        return Verdict::Unmountable;
    };
    let looked = look(&mount.at.join("book"));
    drop(mount);
    let _ = std::fs::remove_file(&image);
    match looked {
        Ok(had_losses) => Verdict::Recovered { had_losses },
        Err(what) => Verdict::Failed(what),
    }
}

fn open(root: &Path, boot: &str) -> Result<Project, String> {
    let options = Options {
        boot: Some(boot.into()),
        ..Options::default()
    };
    Project::open(root, options).map_err(|error| format!("the project cannot be opened: {error}"))
}

fn check(recording: &Recording, count: usize, root: &Path) -> Result<bool, String> {
    let acked = count
        .checked_sub(1)
        .map_or(0, |last| recording.acks[last].seq);
    let next = recording.acks.get(count);
    let most = next.map_or(recording.lines.len() as u64, |next| next.seq);
    let is_project = Project::find_root(root).is_ok();
    if !is_project && acked == 0 {
        return Ok(false);
    }
    let left = workload::files(root);
    if count > 0
        && let Some(missing) = recording
            .folders
            .iter()
            .find(|folder| !root.join(folder).is_dir())
    {
        return Err(format!("the folder `{}` is gone", missing.display()));
    }
    let project = open(root, "afterthelastcut")?;
    let store = &project.store;
    store
        .settle()
        .map_err(|error| format!("recovery failed: {error}"))?;
    let lines = journal_lines(root);
    let seq = lines.len() as u64;
    if seq < acked || seq > most {
        return Err(format!(
            "the journal ends at {seq}; {acked} were acknowledged, {most} sent"
        ));
    }
    if let Some((found, written)) = lines
        .iter()
        .zip(&recording.lines)
        .find(|(found, written)| found != written)
    {
        return Err(format!(
            "the journal holds another record than was written:\n  {found}\n  {written}"
        ));
    }
    if seq == 0 {
        return Ok(false);
    }
    // An external edit that no command has recorded may be lost or torn; all other files may not.
    let by_hand = next
        .filter(|next| seq < next.seq)
        .and_then(|next| next.by_hand.as_deref());
    let without_edit = |files: &Files| {
        let mut files = files.clone();
        files.retain(|path, _| by_hand.is_none_or(|edited| path != edited && path != EDITOR_FILE));
        files
    };
    let expected = without_edit(&recording.states[&seq]);
    check_called_edits(store, by_hand)?;
    let found = without_edit(&workload::files(root));
    if found != expected {
        return Err(format!(
            "files differ from record {seq}: {:?}",
            difference(&found, &expected)
        ));
    }
    for (path, bytes) in &expected {
        let read = store.read(&ProjectPath::parse(path).unwrap());
        let read = read.map_err(|error| format!("cannot read `{path}`: {error}"))?;
        if read.map(|(read, _)| read).as_ref() != Some(bytes) {
            return Err(format!("`{path}` reads otherwise than committed"));
        }
    }
    let probe = project
        .contract
        .class(&ProjectPath::parse(workload::PROBE).unwrap());
    let class = workload::probe_class(&expected["quipu.toml"])
        .map_or(Class::Free, |name| Class::parse(name).unwrap());
    if probe != class {
        return Err(format!(
            "judged by another contract: `{}` is {probe:?}, not {class:?}",
            workload::PROBE
        ));
    }
    let problems = store
        .verify()
        .map_err(|error| format!("verify failed: {error}"))?
        .problems;
    if !problems.is_empty() {
        return Err(format!("verify: {problems:?}"));
    }
    let more = Change::by(&Actor::Person)
        .append(&ProjectPath::parse("after.md").unwrap(), "life goes on\n");
    store
        .validate(more)
        .and_then(|judged| judged.publish())
        .map_err(|error| format!("cannot commit: {error}"))?;
    Ok(without_edit(&left) != expected)
}

/// Checks that no effect of the power cut is reported as an edit.
fn check_called_edits(store: &Store, by_hand: Option<&str>) -> Result<(), String> {
    let survey = store
        .scan_status()
        .map_err(|error| format!("status failed: {error}"))?;
    let mut called: Vec<String> = survey
        .flagged()
        .map(|file| format!("{} {:?}", file.path, file.flag))
        .collect();
    called.extend(
        survey
            .adopted
            .iter()
            .map(|adopted| format!("{} adopted", adopted.path)),
    );
    called.extend(survey.kept.iter().map(|kept| format!("{kept:?} kept")));
    called.extend(
        survey
            .strange
            .iter()
            .map(|strange| format!("{strange:?} strange")),
    );
    called.retain(|line| {
        by_hand.is_none_or(|edited| !line.contains(edited) && !line.contains(EDITOR_FILE))
    });
    if called.is_empty() {
        Ok(())
    } else {
        Err(format!("called an edit: {called:?}"))
    }
}

/// Checks that the program, in yet another boot, reports no problem.
fn check_program(root: &Path) -> Result<(), String> {
    for arguments in [
        &["status"][..],
        &["verify"],
        &["decisions"],
        &["todo", "list"],
    ] {
        crate::disk::run(
            Command::new(workload::program())
                .arg("-C")
                .arg(root)
                .args(arguments),
        )?;
    }
    Ok(())
}
