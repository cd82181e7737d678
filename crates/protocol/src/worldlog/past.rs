//! Past sessions of a project, as far as an actor may read them.
//!
//! Records never change, so parsed records are cached (`kept.rs`). A command that needs the sessions of
//! one agent lists the names of all files and parses only the records of that agent. A start without
//! a task needs less: `newest_sessions` reads only the newest records.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use quipu_contract::{Actor, Class, Form, ProjectPath};
use quipu_store::StoreError;

use super::kept::{Kept, agent_key, newest, read_file};
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
    load_of(project, actor, None)
}

/// The sessions of one agent that the actor may read, oldest first. Case does not matter.
pub fn load_sessions_of(
    project: &Project,
    actor: &Actor,
    agent: &str,
) -> Result<Vec<PastSession>, StoreError> {
    load_of(project, actor, Some(&agent_key(agent)))
}

fn load_of(
    project: &Project,
    actor: &Actor,
    agent: Option<&str>,
) -> Result<Vec<PastSession>, StoreError> {
    let text = read_file(project);
    let sessions = match read_new(project, agent, Kept::parse(&text))? {
        Some(sessions) => sessions,
        // A record that cannot be read: without the cache, all are read again.
        None => read_new(project, agent, Kept::default())?.unwrap_or_default(),
    };
    let reader = ReadScope::of(project, actor);
    let mut sessions: Vec<PastSession> = sessions
        .into_iter()
        .filter(|(path, _)| reader.reads(path))
        .map(|(path, session)| (path.as_str().to_owned(), session))
        .collect();
    sort_by_time(project, &mut sessions)?;
    Ok(sessions)
}

/// The sessions of an agent, or of all, from the cache and from new files. A record changes only by
/// a commit, so files that no commit touched are not checked. None if a cached record cannot be read.
fn read_new(
    project: &Project,
    agent: Option<&str>,
    mut kept: Kept<'_>,
) -> Result<Option<Vec<(ProjectPath, Session)>>, StoreError> {
    let cursor = newest(project);
    let changed = kept.changed_since(project);
    let fresh = find_fresh(project, &mut kept, changed.as_ref())?;
    let mut sessions = Vec::new();
    for (path, known) in &kept.sessions {
        if known.is_seen
            && known.is_of(agent)
            && let Some(path) = session_path(project, path)
        {
            let Some(session) = known.session() else {
                return Ok(None);
            };
            sessions.push((path, session));
        }
    }
    let mut added = BTreeMap::new();
    for part in fresh.chunks(AT_ONCE) {
        let paths: Vec<ProjectPath> = part.iter().map(|(path, _)| path.clone()).collect();
        for ((path, look), (_, session)) in part.iter().zip(read(project, &paths)?) {
            let Some(session) = session else { continue };
            let key = session.agent.as_deref().map(agent_key);
            if agent.is_none_or(|agent| key.as_deref() == Some(agent)) {
                sessions.push((path.clone(), session.clone()));
            }
            added.insert(path.as_str().to_owned(), (look.clone(), session));
        }
    }
    let unseen = kept.sessions.iter().filter(|(_, known)| !known.is_seen);
    let removed: Vec<String> = unseen
        .filter(|(path, _)| !added.contains_key(path.as_ref()))
        .map(|(path, _)| path.to_string())
        .collect();
    let is_behind = changed.is_none_or(|changed| changed.len() > FAR_BEHIND);
    if !added.is_empty() || !removed.is_empty() || is_behind && kept.cursor != cursor {
        kept.add(project, cursor, &added, removed);
    }
    Ok(Some(sessions))
}

/// The session files that the cache does not have as they are, with their file stats. Marks the
/// others as seen.
fn find_fresh(
    project: &Project,
    kept: &mut Kept<'_>,
    changed: Option<&BTreeSet<String>>,
) -> Result<Vec<(ProjectPath, String)>, StoreError> {
    let is_untouched = |name: &str| changed.is_some_and(|changed| !changed.contains(name));
    let mut rules = project.contract.of_form(Form::Session);
    let are_records = rules.all(|rule| rule.class == Class::Record);
    let (mut names, mut name) = (Vec::new(), String::new());
    each_session_file(project, &mut |folder, file| {
        join_into(&mut name, folder, file);
        match kept.sessions.get_mut(name.as_str()) {
            Some(known) if are_records && is_untouched(&name) => known.is_seen = true,
            _ => names.push(name.clone()),
        }
    })?;
    names.sort();
    names.dedup();
    let mut fresh = Vec::new();
    for name in &names {
        let Some((path, class)) = session_rule(project, name) else {
            continue;
        };
        let known = kept.sessions.get_mut(name.as_str());
        let is_settled = known.is_some() && class == Class::Record && is_untouched(name);
        let look = match is_settled {
            true => None,
            false => project.store.stat_text(&path)?,
        };
        match (known, look) {
            (Some(known), look) if is_settled || look.as_deref() == Some(&*known.stat) => {
                known.is_seen = true;
            }
            (_, Some(look)) => fresh.push((path, look)),
            (_, None) => {}
        }
    }
    Ok(fresh)
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
    let mut path = String::new();
    join_into(&mut path, folder, name);
    path
}

fn join_into(path: &mut String, folder: &str, name: &str) {
    path.clear();
    if !folder.is_empty() {
        path.push_str(folder);
        path.push('/');
    }
    path.push_str(name);
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

        // One more record is appended to the cache, with a header. The other files are not checked, so changes to
        // them are not detected here.
        let kept = folder.path().join(".quipu/sessions.jsonl");
        let lines = || std::fs::read_to_string(&kept).unwrap().lines().count();
        let before = lines();
        write("2026-01-02_fix_new");
        assert_eq!(load_sessions(&project, &actor).unwrap().len(), 302);
        assert_eq!(lines(), before + 2);
        assert_eq!(load_sessions(&project, &actor).unwrap().len(), 302);
        assert_eq!(lines(), before + 2);
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

    #[test]
    fn the_sessions_of_one_agent_are_read_from_new_files_and_from_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout {
            profiles: vec!["worldlog".into()],
            ..Layout::default()
        };
        lay_out(folder.path(), &layout, Options::default()).unwrap();
        let write = |name: &str, agent: &str| {
            let text = format!("## Task\n\n- Agent: {agent}\n\n## Problem\n\nx\n");
            std::fs::write(folder.path().join(format!(".sessions/{name}.md")), text).unwrap();
        };
        let project = Project::open(folder.path(), Options::default()).unwrap();
        let names = |agent: &str| -> Vec<String> {
            let found = load_sessions_of(&project, &Actor::Person, agent).unwrap();
            found.into_iter().map(|(_, session)| session.name).collect()
        };
        write("2026-01-01_fix_a", "Otto");
        write("2026-01-02_fix_b", "anna");
        write("2026-01-03_fix_c", "otto");
        let of_otto = ["2026-01-01_fix_a", "2026-01-03_fix_c"];
        assert_eq!(names("OTTO"), of_otto);
        assert_eq!(names("otto"), of_otto);
        assert_eq!(names("anna"), ["2026-01-02_fix_b"]);
        // The records that are read for one agent are cached for all.
        write("2026-01-04_fix_d", "anna");
        assert_eq!(names("otto"), of_otto);
        assert_eq!(names("anna"), ["2026-01-02_fix_b", "2026-01-04_fix_d"]);
        assert_eq!(load_sessions(&project, &Actor::Person).unwrap().len(), 4);
    }
}
