//! Past sessions of a project, as far as an actor may read them.
//!
//! Records never change, so parsed records are cached (`kept.rs`). A start without a task needs less:
//! `newest_sessions` lists the names of all files and reads only the newest records.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use quipu_contract::{Actor, Class, Form, ProjectPath};
use quipu_store::StoreError;

use super::kept::{Kept, KeptSession, newest};
use super::session::{Session, read_session};
use crate::files::read_scope::ReadScope;
use crate::project::forms::folders_of;
use crate::project::open::Project;

/// The number of newest sessions that a start reads for its lists.
const NEWEST: usize = 40;
/// The maximum number of records in memory at once.
const AT_ONCE: usize = 1000;
/// After commits that changed this many files, the journal cursor is stored again.
const FAR_BEHIND: usize = 200;

/// A session with the path of its file.
pub type PastSession = (String, Session);

/// All sessions that the actor may read, oldest first.
pub fn load_sessions(project: &Project, actor: &Actor) -> Result<Vec<PastSession>, StoreError> {
    load_some(project, actor, &|_| true)
}

/// The wanted ones of all sessions that the actor may read, oldest first. Choosing before sorting
/// saves a finish the order of other agents' sessions.
pub fn load_some(
    project: &Project,
    actor: &Actor,
    is_wanted: &dyn Fn(&Session) -> bool,
) -> Result<Vec<PastSession>, StoreError> {
    let current = read_new(project)?;
    let reader = ReadScope::of(project, actor);
    let readable = |path: &str| ProjectPath::parse(path).is_ok_and(|path| reader.reads(&path));
    let mut sessions: Vec<PastSession> = current
        .into_iter()
        .filter(|(path, (_, session))| is_wanted(session) && readable(path))
        .map(|(path, (_, session))| (path, session))
        .collect();
    sort_by_time(project, &mut sessions)?;
    Ok(sessions)
}

/// All sessions, from the cache and from new files. A record changes only by a commit, so files
/// that no commit touched are not checked.
fn read_new(project: &Project) -> Result<BTreeMap<String, KeptSession>, StoreError> {
    let mut kept = Kept::load(project);
    let cursor = newest(project);
    let changed = kept.changed_since(project);
    let (mut current, mut fresh) = (BTreeMap::new(), Vec::new());
    for (path, is_record) in session_paths(project)? {
        let known = kept.sessions.remove(path.as_str());
        let is_settled = is_record
            && changed
                .as_ref()
                .is_some_and(|changed| !changed.contains(path.as_str()));
        let look = match known {
            Some(_) if is_settled => None,
            _ => project.store.stat_text(&path)?,
        };
        match (known, look) {
            (Some(known), look) if is_settled || look.as_ref() == Some(&known.0) => {
                drop(current.insert(path.as_str().to_owned(), known))
            }
            (_, Some(look)) => fresh.push((path, look)),
            (_, None) => {}
        }
    }
    let (paths, looks): (Vec<ProjectPath>, Vec<String>) = fresh.into_iter().unzip();
    let mut added = BTreeMap::new();
    for (part, looks) in paths.chunks(AT_ONCE).zip(looks.chunks(AT_ONCE)) {
        let read = read(project, part)?.into_iter().zip(looks);
        added.extend(
            read.filter_map(|((path, session), look)| Some((path, (look.clone(), session?)))),
        );
    }
    current.extend(added.clone());
    // The remaining entries were removed.
    let removed: Vec<String> = std::mem::take(&mut kept.sessions).into_keys().collect();
    let is_behind = changed
        .as_ref()
        .is_none_or(|changed| changed.len() > FAR_BEHIND);
    if !added.is_empty() || !removed.is_empty() || is_behind && kept.cursor != cursor {
        kept.add(cursor, added, removed, &current);
    }
    Ok(current)
}

/// Sorts oldest first, and sessions of the same second in commit order.
fn sort_by_time(project: &Project, sessions: &mut [PastSession]) -> Result<(), StoreError> {
    sessions.sort_by(|(a, x), (b, y)| (&x.date, &x.time, a).cmp(&(&y.date, &y.time, b)));
    let is_same =
        |(_, x): &PastSession, (_, y): &PastSession| (&x.date, &x.time) == (&y.date, &y.time);
    let groups = sessions.chunk_by(is_same).filter(|group| group.len() > 1);
    let paths: Vec<ProjectPath> = groups
        .flatten()
        .filter_map(|(path, _)| ProjectPath::parse(path).ok())
        .collect();
    if paths.is_empty() {
        return Ok(());
    }
    // One look at the index for all groups.
    let commits: BTreeMap<&str, u64> = paths
        .iter()
        .map(ProjectPath::as_str)
        .zip(project.store.newest_of(&paths)?)
        .collect();
    for group in sessions
        .chunk_by_mut(is_same)
        .filter(|group| group.len() > 1)
    {
        group.sort_by_key(|(path, _)| commits.get(path.as_str()).copied());
    }
    Ok(())
}

/// The newest sessions, oldest first. The number is bounded; of other sessions only the names are
/// listed.
pub fn newest_sessions(project: &Project, actor: &Actor) -> Result<Vec<PastSession>, StoreError> {
    let reader = ReadScope::of(project, actor);
    // Names begin with their date.
    let mut newest: BinaryHeap<Reverse<(String, String)>> = BinaryHeap::new();
    each_session_file(project, &mut |folder, name| {
        let is_older = |Reverse((oldest, _)): &Reverse<(String, String)>| oldest.as_str() >= name;
        if newest.len() == NEWEST && newest.peek().is_some_and(is_older) {
            return;
        }
        newest.push(Reverse((name.to_owned(), folder.to_owned())));
        if newest.len() > NEWEST {
            newest.pop();
        }
    })?;
    let paths: Vec<ProjectPath> = newest
        .iter()
        .filter_map(|Reverse((name, folder))| session_path(project, &joined(folder, name)))
        .filter(|path| reader.reads(path))
        .collect();
    let read = read(project, &paths)?;
    let mut sessions: Vec<PastSession> = read
        .into_iter()
        .filter_map(|(path, session)| Some((path, session?)))
        .collect();
    sort_by_time(project, &mut sessions)?;
    Ok(sessions)
}

/// Reads records together, so that external edits are adopted in one commit instead of one each.
fn read(
    project: &Project,
    paths: &[ProjectPath],
) -> Result<Vec<(String, Option<Session>)>, StoreError> {
    let found = project.store.read_all(paths)?;
    let read = |path: &ProjectPath, bytes: Vec<u8>| {
        read_session(stem(path), &String::from_utf8_lossy(&bytes))
    };
    Ok(paths
        .iter()
        .zip(found)
        .map(|(path, found)| {
            (
                path.as_str().to_owned(),
                found.map(|(bytes, _)| read(path, bytes)),
            )
        })
        .collect())
}

/// The file name of a session without its extension.
pub fn stem(path: &ProjectPath) -> &str {
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".md").unwrap_or(name)
}

/// The contract's session files in order, and whether each has class `record`.
fn session_paths(project: &Project) -> Result<Vec<(ProjectPath, bool)>, StoreError> {
    let mut names: Vec<String> = Vec::new();
    each_session_file(project, &mut |folder, name| {
        names.push(joined(folder, name))
    })?;
    names.sort();
    names.dedup();
    Ok(names
        .iter()
        .filter_map(|name| {
            session_rule(project, name).map(|(path, class)| (path, class == Class::Record))
        })
        .collect())
}

fn session_path(project: &Project, name: &str) -> Option<ProjectPath> {
    session_rule(project, name).map(|(path, _)| path)
}

fn session_rule(project: &Project, name: &str) -> Option<(ProjectPath, Class)> {
    let path = ProjectPath::parse(name).ok()?;
    let rule = project
        .contract
        .rule(&path)
        .filter(|rule| rule.form == Some(Form::Session))?;
    Some((path, rule.class))
}

/// Visits the Markdown files in session folders as folder and name, in no particular order.
fn each_session_file(
    project: &Project,
    tell: &mut dyn FnMut(&str, &str),
) -> Result<(), StoreError> {
    for folder in folders_of(project, Form::Session) {
        project.store.each_name(&folder, &mut |name| {
            if name.ends_with(".md") {
                tell(&folder, name);
            }
        })?;
    }
    Ok(())
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// Writes a derived file atomically, so that readers never see a partial file.
pub fn write_derived(file: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    let aside = file.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&aside, bytes)?;
    std::fs::rename(&aside, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    use quipu_contract::ActorName;
    use quipu_store::Options;

    use crate::project::init::{Layout, lay_out};
    use crate::worldlog::find_matches;

    #[test]
    fn a_start_reads_the_newest_sessions_and_a_match_finds_old_ones() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout {
            profiles: vec!["worldlog".into()],
            ..Layout::default()
        };
        lay_out(folder.path(), &layout, Options::default()).unwrap();
        let name = |text: &str| ActorName::parse(text).ok();
        let actor = Actor::Agent {
            role: name("agent"),
            unit: None,
            agent: name("otto"),
        };
        let write = |name: &str| {
            std::fs::write(
                folder.path().join(format!(".sessions/{name}.md")),
                "## Problem\n\nx\n",
            )
            .unwrap()
        };
        write("2020-01-01_debug_undefined_var_add");
        std::fs::write(
            folder
                .path()
                .join(".sessions/2020-01-01_debug_undefined_var_add.md"),
            "## Problem\n\nadd fails\n\n## Lessons\n\n- Cause: a variable was used before it was \
             defined\n- Cure: define the variable first\n",
        )
        .unwrap();
        (0..300).for_each(|number| write(&format!("2026-01-01_fix_case_{number}")));
        let project = Project::open(folder.path(), Options::default()).unwrap();
        let newest = newest_sessions(&project, &actor).unwrap();
        assert_eq!(
            (newest.len(), newest[0].1.date.as_str()),
            (40, "2026-01-01")
        );
        let found = find_matches(
            &project,
            &actor,
            "multiply fails",
            Some("the variable is not defined"),
        )
        .unwrap();
        assert_eq!(
            found.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(),
            ["2020-01-01_debug_undefined_var_add"]
        );
        assert_eq!(load_sessions(&project, &actor).unwrap().len(), 301);
        assert_eq!(load_sessions(&project, &actor).unwrap().len(), 301);

        // One more record is appended to the cache. The other files are not checked, so changes to
        // them are not detected here.
        let kept = folder.path().join(".quipu/sessions.jsonl");
        let lines = || std::fs::read_to_string(&kept).unwrap().lines().count();
        let before = lines();
        write("2026-01-02_fix_new");
        assert_eq!(load_sessions(&project, &actor).unwrap().len(), 302);
        assert_eq!(lines(), before + 1);
        assert_eq!(load_sessions(&project, &actor).unwrap().len(), 302);
        assert_eq!(lines(), before + 1);
        std::fs::remove_file(folder.path().join(".sessions/2026-01-02_fix_new.md")).unwrap();
        assert_eq!(load_sessions(&project, &actor).unwrap().len(), 301);

        // After a damaged or incomplete line, its records and all later ones are read again.
        let problem_of_7 = || {
            let all = load_sessions(&project, &actor).unwrap();
            (
                all.len(),
                all.into_iter()
                    .find(|(_, s)| s.name.ends_with("case_7"))
                    .unwrap()
                    .1
                    .problem,
            )
        };
        assert_eq!(problem_of_7(), (301, "x".to_owned()));
        let whole = std::fs::read(&kept).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 6) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&kept, &bytes).unwrap();
            assert_eq!(problem_of_7(), (301, "x".to_owned()), "byte {at}");
            std::fs::write(&kept, &whole[..at]).unwrap();
            assert_eq!(problem_of_7(), (301, "x".to_owned()), "cut at {at}");
        }
    }
}
