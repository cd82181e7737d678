//! Recovery of one crash state, and its comparison with the recording.

use std::path::Path;
use std::process::Command;

use quipu_contract::{Actor, Class, ProjectPath};
use quipu_protocol::Project;
use quipu_store::{Change, Options};

use crate::crash::Crash;
use crate::disk::{Disk, Mount};
use crate::record::{Recording, difference, journal_lines};
use crate::workload;

pub enum Verdict {
    /// Some file did not hold what it held after the last record that reached the disk.
    Recovered {
        had_losses: bool,
    },
    Failed(String),
    /// The file system itself did not survive: a torn superblock, for one.
    Unmountable,
}

/// Recovers a disk and compares it. Every tenth state is also looked at by the program itself.
pub fn judge(recording: &Recording, crash: &Crash, disk: &Disk, folder: &Path, state: u64) -> Verdict {
    // A name of its own: a loop device that is still being freed must not serve an older disk.
    let image = folder.join(format!("crashed{state}"));
    let mounted = disk.save(&image).map_err(|error| error.to_string());
    let mounted = mounted.and_then(|()| Mount::new(recording.system, &image, &folder.join("mounted")));
    let Ok(mount) = mounted else {
        let _ = std::fs::remove_file(&image);
        return Verdict::Unmountable;
    };
    let root = mount.at.join("book");
    let checked = || {
        let had_losses = check(recording, crash, &root)?;
        if state.is_multiple_of(10) && crash.acked > 0 {
            check_program(&root)?;
        }
        Ok(had_losses)
    };
    let checked = checked();
    drop(mount);
    let _ = std::fs::remove_file(&image);
    match checked {
        Ok(had_losses) => Verdict::Recovered { had_losses },
        Err(what) => Verdict::Failed(what),
    }
}

fn check(recording: &Recording, crash: &Crash, root: &Path) -> Result<bool, String> {
    let acked = crash.acked.checked_sub(1).map_or(0, |last| recording.acks[last].seq);
    let most = recording.acks.get(crash.acked).map_or(recording.lines.len() as u64, |next| next.seq);
    let is_project = Project::find_root(root).is_ok();
    if !is_project && acked == 0 {
        return Ok(false);
    }
    let left = workload::files(root);
    if crash.acked > 0
        && let Some(missing) = recording.folders.iter().find(|folder| !root.join(folder).is_dir())
    {
        return Err(format!("the folder `{}` is gone", missing.display()));
    }
    let project = Project::open(root, Options { boot: Some("afterthecut".into()), ..Options::default() });
    let project = project.map_err(|error| format!("the project cannot be opened: {error}"))?;
    let store = &project.store;
    store.settle().map_err(|error| format!("recovery failed: {error}"))?;
    let lines = journal_lines(root);
    let seq = lines.len() as u64;
    if seq < acked || seq > most {
        return Err(format!("the journal ends at {seq}; {acked} were acknowledged, {most} sent"));
    }
    if let Some((found, written)) = lines.iter().zip(&recording.lines).find(|(found, written)| found != written) {
        return Err(format!("the journal holds another record than was written:\n  {found}\n  {written}"));
    }
    if seq == 0 {
        return Ok(false);
    }
    let expected = &recording.states[&seq];
    let survey = store.survey().map_err(|error| format!("status failed: {error}"))?;
    let flagged: Vec<String> = survey.flagged().map(|file| format!("{} {:?}", file.path, file.flag)).collect();
    if !flagged.is_empty() || !survey.adopted.is_empty() || !survey.kept.is_empty() || !survey.strange.is_empty() {
        let (adopted, kept, strange) = (survey.adopted, survey.kept, survey.strange);
        return Err(format!("called an edit: flagged {flagged:?}, adopted {adopted:?}, kept {kept:?}, strange {strange:?}"));
    }
    let found = workload::files(root);
    if found != *expected {
        return Err(format!("files differ from record {seq}: {:?}", difference(&found, expected)));
    }
    for (path, bytes) in expected {
        let read = store.read(&ProjectPath::parse(path).unwrap()).map_err(|error| format!("cannot read `{path}`: {error}"))?;
        if read.map(|(read, _)| read).as_ref() != Some(bytes) {
            return Err(format!("`{path}` reads otherwise than committed"));
        }
    }
    let probe = project.contract.class(&ProjectPath::parse(workload::PROBE).unwrap());
    let class = workload::probe_class(&expected["quipu.toml"]).map_or(Class::Free, |name| Class::parse(name).unwrap());
    if probe != class {
        return Err(format!("judged by another contract: `{}` is {probe:?}, not {class:?}", workload::PROBE));
    }
    let problems = store.verify().map_err(|error| format!("verify failed: {error}"))?.problems;
    if !problems.is_empty() {
        return Err(format!("verify: {problems:?}"));
    }
    let more = Change::by(&Actor::Person).append(&ProjectPath::parse("after.md").unwrap(), "life goes on\n");
    store.judge(more).and_then(|judged| judged.publish()).map_err(|error| format!("cannot commit: {error}"))?;
    Ok(left != *expected)
}

/// The program, which belongs to yet another boot, finds nothing to say.
fn check_program(root: &Path) -> Result<(), String> {
    for arguments in [&["status"][..], &["verify"], &["decisions"], &["todo", "list"]] {
        crate::disk::run(Command::new(workload::program()).arg("-C").arg(root).args(arguments))?;
    }
    Ok(())
}
