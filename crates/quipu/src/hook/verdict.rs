//! Judging deeds: each becomes a change that the store judges and nobody publishes.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use quipu_contract::{Act, Actor, BadPath, HOST_FILES, ProjectPath, RESERVED};
use quipu_protocol::{Project, may_read_whole};
use quipu_store::{Change, Expect, Op, Options, StoreError};

use super::call::Deed;
use super::{edit, patch};
use crate::answer::{Failure, exit};
use crate::session::Session;

/// Who judges, for whom.
pub struct Judge<'s> {
    pub(super) session: &'s Session,
    actor: Actor,
    projects: BTreeMap<PathBuf, Rc<Project>>,
    /// The files of those that were asked for them.
    pub(super) files: BTreeMap<PathBuf, Rc<Vec<ProjectPath>>>,
}

impl<'s> Judge<'s> {
    /// Whoever calls a tool of a host is an agent, whatever it is named: nothing a person alone may
    /// do is open to it.
    pub fn new(session: &'s Session) -> Judge<'s> {
        let actor = match &session.actor {
            Actor::Person => Actor::Agent {
                role: None,
                unit: None,
                agent: None,
            },
            named => named.clone(),
        };
        Judge {
            session,
            actor,
            projects: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    /// Why a deed may not be done, if it may not.
    pub fn refusal(&mut self, cwd: &Path, deed: &Deed) -> Result<Option<Failure>, Failure> {
        let path = match deed {
            Deed::Matching { how, name } => return self.refusal_of_name(cwd, *how, name),
            Deed::Listed {
                how,
                folder,
                listing,
            } => return self.refusal_of_listed(&cwd.join(folder), *how, listing),
            Deed::TooMuch { what } => return Ok(self.refusal_of_too_much(cwd, what)),
            Deed::Put { path, .. }
            | Deed::Edit { path, .. }
            | Deed::Patch { path, .. }
            | Deed::Change { path }
            | Deed::Grow { path }
            | Deed::Remove { path } => path,
        };
        // The kernel goes through a link before it goes up, some programs go up in the text: it may
        // be either.
        let path = cwd.join(path);
        let (place, in_text) = (resolve(&path), resolve(&without_ups(&path)));
        let refusal = self.refusal_at(cwd, &place, deed)?;
        if refusal.is_some() || place == in_text {
            Ok(refusal)
        } else {
            self.refusal_at(cwd, &in_text, deed)
        }
    }

    fn refusal_at(
        &mut self,
        cwd: &Path,
        place: &Path,
        deed: &Deed,
    ) -> Result<Option<Failure>, Failure> {
        // Whoever removes a project removes its journal.
        if matches!(deed, Deed::Remove { .. }) && holds_project(place, cwd) {
            return Ok(ProjectPath::parse(RESERVED[0]).err().map(Failure::from));
        }
        let Some(root) = root_of(place) else {
            return Ok(None);
        };
        let Ok(relative) = place.strip_prefix(&root) else {
            return Ok(None);
        };
        let text = relative.to_string_lossy();
        if text.is_empty() {
            return Ok(None);
        }
        let path = match ProjectPath::parse(&text) {
            Ok(path) => path,
            // Quipu's own folder, and a spelling that only pretends to be another path. What is
            // git's stays git's.
            Err(
                error @ (BadPath::Reserved {
                    folder: ".quipu", ..
                }
                | BadPath::NotNormal { .. }
                | BadPath::OddCharacter(_)),
            ) => {
                return Ok(Some(error.into()));
            }
            Err(_) => return Ok(None),
        };
        let project = self.project(&root)?;
        if place.is_dir() {
            return self.refusal_below(&project, &path, deed);
        }
        self.refusal_of(&project, &path, deed)
    }

    pub(super) fn project(&mut self, root: &Path) -> Result<Rc<Project>, Failure> {
        if let Some(project) = self.projects.get(root) {
            return Ok(project.clone());
        }
        let project = Project::open(
            root,
            Options {
                offline: true,
                ..Options::default()
            },
        )?;
        if let Err(what) = project.contract.grant(&self.actor)
            && Project::find_root(&self.session.folder).is_ok_and(|own| own == root)
        {
            return Err(Failure::usage(what, "quipu contract show"));
        }
        Ok(self
            .projects
            .entry(root.to_owned())
            .or_insert(Rc::new(project))
            .clone())
    }

    /// The actor in a project. An agent whose role another project does not know is an agent
    /// without a role there.
    fn actor_in(&self, project: &Project) -> Actor {
        match (&self.actor, project.contract.grant(&self.actor)) {
            (Actor::Agent { agent, .. }, Err(_)) => Actor::Agent {
                role: None,
                unit: None,
                agent: agent.clone(),
            },
            (actor, _) => actor.clone(),
        }
    }

    /// A folder that is removed or moved: what holds for each file in it.
    fn refusal_below(
        &self,
        project: &Project,
        folder: &ProjectPath,
        deed: &Deed,
    ) -> Result<Option<Failure>, Failure> {
        if !matches!(deed, Deed::Remove { .. }) {
            return Ok(None);
        }
        let below = format!("{folder}/");
        for path in project
            .store
            .list()?
            .iter()
            .filter(|p| p.as_str().starts_with(&below))
        {
            if let Some(refusal) = self.refusal_of(project, path, deed)? {
                return Ok(Some(refusal));
            }
        }
        Ok(None)
    }

    /// Why a deed may not be done to one file. Where its text cannot be read, because a record is
    /// damaged, the class alone decides.
    fn refusal_of(
        &self,
        project: &Project,
        path: &ProjectPath,
        deed: &Deed,
    ) -> Result<Option<Failure>, Failure> {
        self.refusal_by_text(project, path, deed)
            .or_else(|failure| match self.refusal_by_class(project, path, deed) {
                Some(refusal) => Ok(Some(refusal)),
                None => Err(failure),
            })
    }

    fn refusal_by_class(
        &self,
        project: &Project,
        path: &ProjectPath,
        deed: &Deed,
    ) -> Option<Failure> {
        let act = match deed {
            Deed::Remove { .. } => Act::Remove,
            Deed::Grow { .. } => Act::Append,
            _ => Act::Replace { expected: true },
        };
        let class = project.contract.class(path);
        let refusal = class.allows(act, &self.actor_in(project), true).err()?;
        let help = refusal.remedy.replace("{path}", path.as_str());
        let what = format!("`{path}` {}", refusal.what);
        Some(Failure::new(exit::REFUSED, what, help))
    }

    fn refusal_by_text(
        &self,
        project: &Project,
        path: &ProjectPath,
        deed: &Deed,
    ) -> Result<Option<Failure>, Failure> {
        let contract = &project.contract;
        let actor = &self.actor_in(project);
        let may_write = || {
            contract.grant(actor).is_ok_and(|grant| {
                grant
                    .may_write(path, &contract.actor_binding(actor))
                    .is_ok()
            })
        };
        // What no rule names and no role is kept from is none of the contract's business, unless it
        // would be a contract itself.
        let is_unnamed = contract.rule(path).is_none()
            && contract.look_alike(path).is_none()
            && contract.near_name(path).is_none();
        // So with the settings of hosts, once Quipu is in one of them: another file could switch
        // its hooks off.
        let names_quipu = |file: &str| {
            let file = project.store.root().join(file);
            file.is_file()
                && std::fs::read(file)
                    .is_ok_and(|text| text.windows(5).any(|word| word == b"quipu"))
        };
        let is_set_up = || names_quipu(path.as_str()) || HOST_FILES.into_iter().any(names_quipu);
        let is_held = path.begins_a_project() || path.sets_up_hosts() && is_set_up();
        if is_unnamed && !is_held && may_write() {
            return Ok(None);
        }
        let ask = |op: Op, is_meant: bool| self.ask(project, op, is_meant);
        let now = project.store.read(path)?;
        let expect = now
            .as_ref()
            .map_or(Expect::Any, |(_, version)| Expect::Version(version.clone()));
        let before = now.map(|(bytes, _)| bytes).unwrap_or_default();
        // An editor that corrects a text which is not valid edits the text on disk.
        let is_invalid = project
            .store
            .flagged(path)?
            .and_then(|file| file.flag)
            .is_some_and(|flag| flag.is_invalid());
        let found = if is_invalid {
            project.store.on_disk(path)?
        } else {
            None
        };
        let text = || String::from_utf8_lossy(found.as_ref().unwrap_or(&before)).into_owned();
        // Whether a guess of it fits would tell a text that is not for the actor.
        let is_unseen = !before.is_empty() && may_read_whole(project, actor, path).is_err();
        let after = match deed {
            Deed::Put { .. } | Deed::Edit { .. } | Deed::Patch { .. } if is_unseen => None,
            Deed::Put { text, .. } => Some(text.clone()),
            Deed::Edit { edits, .. } => edit::edited(&text(), edits),
            Deed::Patch { hunks, .. } => patch::patched(&text(), hunks),
            Deed::Change { .. } => None,
            Deed::Grow { .. } => {
                return ask(
                    Op::Append {
                        path: path.clone(),
                        bytes: Vec::new(),
                        apart: false,
                    },
                    false,
                );
            }
            Deed::Remove { .. } => {
                return ask(
                    Op::Remove {
                        path: path.clone(),
                        expect: Expect::Any,
                    },
                    false,
                );
            }
            Deed::Matching { .. } | Deed::Listed { .. } | Deed::TooMuch { .. } => return Ok(None),
        };
        let Some(after) = after.map(String::into_bytes) else {
            // A text that cannot be told is asked about as the one that stands. So is an edit that
            // does not fit: several hosts make it all the same, where blanks or quotation marks are
            // the only difference.
            return match deed {
                Deed::Edit { .. } | Deed::Patch { .. } if before.is_empty() => Ok(None),
                _ => ask(
                    Op::Write {
                        path: path.clone(),
                        bytes: before,
                        expect,
                    },
                    false,
                ),
            };
        };
        if let Some(added) = after
            .strip_prefix(before.as_slice())
            .filter(|_| !before.is_empty())
        {
            let grown = ask(
                Op::Append {
                    path: path.clone(),
                    bytes: added.to_vec(),
                    apart: false,
                },
                false,
            )?;
            if grown.is_none() {
                return Ok(None);
            }
        }
        let flag = project.store.judge_external(path, &after)?;
        if is_invalid && flag.is_none() && may_write() {
            return Ok(None);
        }
        let write = Op::Write {
            path: path.clone(),
            bytes: after,
            expect,
        };
        match flag {
            // The guards ask whether a loss is meant; here it is known what is lost.
            Some(flag) => {
                let what = if may_read_whole(project, actor, path).is_ok() {
                    &flag.what
                } else {
                    "would lose something that stands there"
                };
                Ok(ask(write, true)?.or_else(|| Some(not_adopted(path, what))))
            }
            None => ask(write, false),
        }
    }

    fn ask(&self, project: &Project, op: Op, is_meant: bool) -> Result<Option<Failure>, Failure> {
        let mut change = Change::by(&self.actor_in(project)).op(op);
        change.force = is_meant;
        change.revised = true; // only judged, never written
        change.lease = self.session.lease.clone();
        match project.judge(change) {
            Ok(_) | Err(StoreError::NotFound { .. }) => Ok(None),
            Err(
                error @ (StoreError::Refused(_)
                | StoreError::LeaseLost { .. }
                | StoreError::Stale { .. }),
            ) => Ok(Some(error.into())),
            Err(error) => Err(error.into()),
        }
    }
}

/// An edit that Quipu itself could make and that would be flagged when an editor has made it.
fn not_adopted(path: &ProjectPath, what: &str) -> Failure {
    let what = format!("an editor's change would be flagged and not adopted: `{path}` {what}");
    let remedy = format!(
        "quipu read {path} --json     (for its version; then: quipu write {path} --expect VERSION --file FILE)"
    );
    Failure::new(exit::REFUSED, what, remedy)
}

impl Deed {
    /// The one file that it is about.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Deed::Put { path, .. }
            | Deed::Edit { path, .. }
            | Deed::Patch { path, .. }
            | Deed::Change { path }
            | Deed::Grow { path }
            | Deed::Remove { path } => Some(path),
            Deed::Matching { .. } | Deed::Listed { .. } | Deed::TooMuch { .. } => None,
        }
    }
}

/// More links than this in one path, and the kernel gives up as well.
const MOST_LINKS: usize = 40;

/// Where a path leads, as the kernel goes: each link is followed before what is behind it, also one
/// to a file that is not there yet.
pub(super) fn resolve(path: &Path) -> PathBuf {
    let mut place = PathBuf::new();
    let mut ahead: Vec<PathBuf> = parts(path);
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        if part.as_os_str() == ".." {
            place.pop();
            continue;
        }
        place.push(&part);
        if links < MOST_LINKS
            && let Ok(target) = std::fs::read_link(&place)
        {
            links += 1;
            place.pop();
            ahead.extend(parts(&target));
        }
    }
    place
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<PathBuf> {
    path.components()
        .rev()
        .filter(|part| *part != Component::CurDir)
        .map(|part| part.as_os_str().into())
        .collect()
}

/// A path without `..`, each taken together with the part before it.
fn without_ups(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Whether a folder is a project, or holds the one that is worked in.
fn holds_project(place: &Path, cwd: &Path) -> bool {
    place.join("quipu.toml").is_file()
        || Project::find_root(cwd).is_ok_and(|root| root.starts_with(place))
}

fn root_of(place: &Path) -> Option<PathBuf> {
    place
        .ancestors()
        .skip(1)
        .find(|folder| folder.join("quipu.toml").is_file())
        .map(Path::to_owned)
}
