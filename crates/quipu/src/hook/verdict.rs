//! Decides whether a tool call may run. Each deed becomes a change that the store judges and nobody
//! publishes.
//!
//! Nothing is written here. `call.rs` and `shell/` find the deeds.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use quipu_contract::{Act, Actor, BadPath, HOST_FILES, ProjectPath, RESERVED};
use quipu_protocol::{Project, may_read_whole, state_folder};
use quipu_store::{Change, Expect, Op, Options, StoreError};

use super::call::Deed;
use super::{edit, patch};
use crate::answer::{Failure, exit};
use crate::session::Session;

/// Judges the deeds of one session.
pub struct Judge<'s> {
    pub(super) session: &'s Session,
    actor: Actor,
    projects: BTreeMap<PathBuf, Rc<Project>>,
    /// The files of the projects that were listed so far.
    pub(super) files: BTreeMap<PathBuf, Rc<Vec<ProjectPath>>>,
}

impl<'s> Judge<'s> {
    /// The caller of a host's tool is always an agent, even if the session names a person. It gets
    /// no privilege that is reserved for a person.
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

    /// The reason why a deed is refused, if it is.
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
        // The kernel follows a link before it applies `..`; some programs remove `..` in the text
        // first. Both results are checked.
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
        // The records of trust and of integrated hosts are the user's.
        if state_folder().is_some_and(|folder| place.starts_with(resolve(&folder))) {
            let what = "Quipu's own records outside projects are changed by people alone";
            return Ok(Some(Failure::new(exit::REFUSED, what, "ask a person")));
        }
        // Removing a project removes its journal.
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
            // Quipu's own folder, and a spelling that only looks like another path. Git's folder is
            // left to git.
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

    /// The actor in a project. An agent has no role in a project that does not define its role.
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

    /// A folder is removed or moved: checks each file in it.
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
        for path in judged_files(project)?
            .iter()
            .filter(|p| p.as_str().starts_with(&below))
        {
            if let Some(refusal) = self.refusal_of(project, path, deed)? {
                return Ok(Some(refusal));
            }
        }
        Ok(None)
    }

    /// The reason why a deed on one file is refused, if it is. If the text cannot be read because a
    /// record is damaged, the class alone decides.
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
        // The contract does not cover a file that no rule names and no role is denied, unless the
        // file would itself be a contract.
        let is_unnamed = contract.rule(path).is_none()
            && contract.look_alike(path).is_none()
            && contract.near_name(path).is_none();
        // The same holds for settings of hosts once one of them contains Quipu: another settings
        // file could disable its hooks.
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
        // An editor that corrects an invalid text edits the text on disk.
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
        // Whether a guessed edit matches would reveal a text that the actor may not read.
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
            // If the new text is unknown, judge the current text instead. The same holds for an
            // edit that does not match: several hosts apply it anyway if only blanks or quotation
            // marks differ.
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
        let flag = project.store.validate_external(path, &after)?;
        if is_invalid && flag.is_none() && may_write() {
            return Ok(None);
        }
        let write = Op::Write {
            path: path.clone(),
            bytes: after,
            expect,
        };
        match flag {
            // The guards ask whether a loss is intended; here the lost text is known.
            Some(flag) => {
                let what = if may_read_whole(project, actor, path).is_ok() {
                    &flag.what
                } else {
                    "would lose existing content"
                };
                Ok(ask(write, true)?.or_else(|| Some(not_adopted(path, what))))
            }
            None => ask(write, false),
        }
    }

    fn ask(&self, project: &Project, op: Op, is_meant: bool) -> Result<Option<Failure>, Failure> {
        let mut change = Change::by(&self.actor_in(project)).op(op);
        change.force = is_meant;
        change.revised = true; // judged, never written
        change.lease = self.session.lease.clone();
        match project.validate(change) {
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

/// The files that a command with a folder or a pattern may mean: memory, and settings of hosts.
pub(super) fn judged_files(project: &Project) -> Result<Vec<ProjectPath>, StoreError> {
    let mut files = project.store.list()?;
    let there = |path: &ProjectPath| project.store.root().join(path.as_str()).is_file();
    let settings = HOST_FILES
        .iter()
        .filter_map(|file| ProjectPath::parse(file).ok());
    files.extend(settings.filter(there));
    Ok(files)
}

/// An edit that Quipu itself could make, but that would be flagged when an editor makes it.
fn not_adopted(path: &ProjectPath, what: &str) -> Failure {
    let what = format!("Quipu would flag this edit instead of adopting it: `{path}` {what}");
    let remedy = format!(
        "quipu read {path} --json     (prints its version; then: quipu write {path} --expect \
         VERSION --file FILE)"
    );
    Failure::new(exit::REFUSED, what, remedy)
}

impl Deed {
    /// The single file that the deed affects.
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

/// The kernel gives up after the same number of links in one path.
const MOST_LINKS: usize = 40;

/// Resolves a path as the kernel does: it follows each link before it applies the parts after it. A
/// link to a missing file is followed as well.
pub fn resolve(path: &Path) -> PathBuf {
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

/// The parts of a path in reverse order.
fn parts(path: &Path) -> Vec<PathBuf> {
    path.components()
        .rev()
        .filter(|part| *part != Component::CurDir)
        .map(|part| part.as_os_str().into())
        .collect()
}

/// A path without `..`: each one removes the part before it.
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

/// Whether a folder is a project, or contains the project of the working directory.
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
