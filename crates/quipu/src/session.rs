//! The caller and context of an operation: folder, actor, lease, and caches that live for one call.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use quipu_contract::{Actor, ActorName, Form, Language, ProjectPath, UnitId};
use quipu_protocol::flow::{FlowCache, refresh_panel};
use quipu_protocol::{
    Caller, KeptProject, Project, ProjectError, Sources, Terms, find_host_session, find_parent,
    read_manifest,
};
use quipu_store::{LeaseToken, Options, StoreError, Who};

use crate::answer::{Answer, Failure, exit};
use crate::calls::Watched;
use crate::conflict_notice::{ConflictNotice, told_conflicts};

/// The role name with which a person says who they are, below a host whose agent is in a session.
pub const PERSON: &str = "person";

/// The caller of an operation.
#[derive(Debug, Clone)]
pub struct Session {
    /// The folder the command was called in, or `-C`.
    pub folder: PathBuf,
    pub actor: Actor,
    pub lease: Option<LeaseToken>,
    /// The Quipu session that the caller names: `QUIPU_SESSION`.
    pub conversation: Option<String>,
    /// The agent that the environment names, if the caller names a subagent of it.
    pub parent: Option<String>,
    /// The watch on an agent's calls, set when its project is known.
    pub watched: OnceLock<Watched>,
    /// The project of this call, if it has a derived state of a panel.
    pub panel: OnceLock<PanelProject>,
    /// The caller named only a unit, with `--unit`. The unit may then select the target; it does
    /// not identify the caller.
    pub means_unit: bool,
    /// The caller gave no name, or only a unit: a person, unless a host with an open session started
    /// this process.
    pub is_nameless: bool,
    /// The names come from the host that started this process.
    pub is_of_host: bool,
    /// The conflict copies that existed when the project was opened.
    pub conflict_notice: OnceLock<ConflictNotice>,
    /// The reason why the project's shared store is not contacted, with the remedy.
    pub offline: OnceLock<String>,
    /// The interface of the caller, for the journal; `None` for the command line.
    pub door: Option<&'static str>,
    /// The input of a command whose stdin is not the caller's. `None`: stdin itself.
    pub input: Option<Arc<str>>,
    /// Whether the caller wants JSON. Only used for output during an operation.
    pub json: bool,
    /// The project that stays open for the next call of this process. Every call gets it through
    /// `project`, which checks it and the caller's role again.
    pub kept: Arc<KeptProject>,
}

/// A project with a derived state of a panel.
#[derive(Clone)]
pub struct PanelProject(Arc<Project>);

impl std::fmt::Debug for PanelProject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PanelProject")
    }
}

/// The names that the caller gave for itself.
#[derive(Debug, Default)]
pub struct Names {
    pub role: Option<String>,
    pub unit: Option<String>,
    pub agent: Option<String>,
    pub lease: Option<String>,
    pub session: Option<String>,
}

impl Names {
    /// Returns these names where `others` has none.
    pub fn unless(self, others: &Names) -> Names {
        let keep = |own: Option<String>, other: &Option<String>| own.filter(|_| other.is_none());
        Names {
            role: keep(self.role, &others.role),
            unit: keep(self.unit, &others.unit),
            agent: keep(self.agent, &others.agent),
            lease: keep(self.lease, &others.lease),
            session: keep(self.session, &others.session),
        }
    }

    /// Drops the role `person`: in the environment it is only a default, and a person may act as a
    /// role.
    pub fn without_person(self) -> Names {
        Names {
            role: self.role.filter(|role| role != PERSON),
            ..self
        }
    }
}

impl Session {
    /// A flag cannot override the environment, because a runtime that starts an agent in a role
    /// must be able to rely on it.
    pub fn new(folder: PathBuf, flags: Names, environment: Names) -> Result<Session, Failure> {
        let means_unit = flags.unit.is_some() && environment.unit.is_none();
        let says_person = [&flags.role, &environment.role]
            .into_iter()
            .any(|role| role.as_deref() == Some(PERSON));
        let environment = environment.without_person();
        let role = agree("--as", "QUIPU_ROLE", flags.role, environment.role)?;
        let unit = agree("--unit", "QUIPU_UNIT", flags.unit, environment.unit)?;
        // A subagent inherits the environment of its parent. Whether it is one, the project knows.
        let parent = environment.agent.filter(|parent| !parent.is_empty());
        let is_subagent =
            flags
                .agent
                .as_ref()
                .zip(parent.as_ref())
                .is_some_and(|(agent, parent)| {
                    agent
                        .strip_prefix(parent)
                        .is_some_and(|rest| rest.starts_with('-'))
                });
        let (parent, given) = if is_subagent {
            (parent, None)
        } else {
            (None, parent)
        };
        if role.as_deref() == Some(PERSON)
            && let Some(agent) = flags.agent.as_ref().or(given.as_ref())
        {
            return Err(Failure::new(
                exit::REFUSED,
                format!("--as {PERSON} contradicts the agent `{agent}`"),
                format!("omit --as {PERSON}"),
            ));
        }
        let role = role.filter(|role| role != PERSON);
        let agent = agree("--agent", "QUIPU_AGENT", flags.agent, given)?;
        let bad =
            |e: quipu_contract::BadName| Failure::usage(e.to_string(), "--agent NAME, --as ROLE");
        let actor = if role.is_none() && unit.is_none() && agent.is_none() {
            Actor::Person
        } else {
            Actor::Agent {
                role: role
                    .as_deref()
                    .map(ActorName::parse_given)
                    .transpose()
                    .map_err(bad)?,
                unit: unit
                    .as_deref()
                    .map(UnitId::parse)
                    .transpose()
                    .map_err(bad)?,
                agent: agent
                    .as_deref()
                    .map(ActorName::parse_given)
                    .transpose()
                    .map_err(bad)?,
            }
        };
        let lease = match flags.lease.or(environment.lease) {
            Some(text) => Some(LeaseToken::parse(&text).ok_or_else(|| {
                Failure::usage(format!("`{text}` is not a lease"), "--lease ID:FENCE")
            })?),
            None => None,
        };
        let means_unit = means_unit && role.is_none() && agent.is_none();
        let is_nameless = !says_person && (means_unit || actor == Actor::Person);
        Ok(Session {
            folder,
            actor,
            lease,
            conversation: environment.session.filter(|id| !id.is_empty()),
            parent,
            watched: OnceLock::new(),
            panel: OnceLock::new(),
            conflict_notice: OnceLock::new(),
            offline: OnceLock::new(),
            door: None,
            means_unit,
            is_nameless,
            is_of_host: false,
            input: None,
            json: false,
            kept: Arc::default(),
        })
    }

    /// Gives a caller without a name the names of the agent whose host started this process. A
    /// command that an agent runs in its shell is then never taken for a person's.
    pub fn with_names_of_host(self) -> Session {
        if !self.is_nameless {
            return self;
        }
        // A project that cannot be opened is reported by the operation itself.
        let root = Project::find_root(&self.folder).ok();
        let project = root.and_then(|root| self.open(&root).ok());
        let host = project.and_then(|project| find_host_session(&project).ok().flatten());
        let Some(host) = host else { return self };
        let name = |name: &Option<String>| ActorName::parse_given(name.as_deref()?).ok();
        let unit = host
            .who
            .unit
            .as_deref()
            .and_then(|unit| UnitId::parse(unit).ok());
        Session {
            actor: Actor::Agent {
                role: name(&host.who.role),
                unit: self.actor.unit().cloned().or(unit),
                agent: name(&host.who.agent),
            },
            means_unit: false,
            is_of_host: true,
            ..self
        }
    }

    /// Says why a person was refused who works below a host, and how a person says so.
    pub fn explain_host(&self, failure: &Failure) -> Option<String> {
        let is_refused = self.is_of_host && failure.exit == exit::REFUSED;
        is_refused.then(|| {
            format!(
                "note: a session of {} is open in the program that started this command, so the \
                 command counts as that agent's; a person adds --as {PERSON}",
                Who::from(&self.actor)
            )
        })
    }

    /// The language of messages: that of the project at the caller's folder.
    pub fn language(&self) -> Language {
        language_at(&self.folder)
    }

    /// The messages of a result in that language. Most results have none.
    pub fn in_language(&self, result: Result<Answer, Failure>) -> Result<Answer, Failure> {
        match result {
            Ok(answer) if answer.talk.is_empty() => Ok(answer),
            Ok(answer) => Ok(answer.in_language(self.language())),
            Err(failure) => Err(failure.in_language(self.language())),
        }
    }

    pub fn project(&self) -> Result<Arc<Project>, Failure> {
        let root = self.root()?;
        self.known(self.open(&root)?)
    }

    fn open(&self, root: &Path) -> Result<Arc<Project>, ProjectError> {
        self.kept.open_to_read(root, self.door)
    }

    /// Opens the project for commands that need its history and not its rules. With a faulty
    /// contract, a person can still inspect it and restore the rules.
    pub fn history(&self) -> Result<Arc<Project>, Failure> {
        let root = self.root()?;
        match self.open(&root) {
            Err(ProjectError::Faulty(_) | ProjectError::Removed(_))
                if self.actor == Actor::Person =>
            {
                let options = Options {
                    door: self.door,
                    ..Options::default()
                };
                Ok(Arc::new(Project::open_unruled(&root, options)?))
            }
            opened => self.known(opened?),
        }
    }

    fn root(&self) -> Result<PathBuf, Failure> {
        let root = Project::find_root(&self.folder)?;
        let _ = self
            .conflict_notice
            .set(ConflictNotice::of(&root, &self.actor));
        Ok(root)
    }

    /// Rebuilds the derived state of a panel, before an operation reads it and after one that may have
    /// changed a report. A failure is left to the operations that need the flow.
    pub fn refresh_panel(&self) {
        if let Some(PanelProject(project)) = self.panel.get() {
            let _ = refresh_panel(project, &FlowCache::default());
        }
    }

    /// Refuses a caller that the contract does not know, in every operation.
    fn known(&self, project: Arc<Project>) -> Result<Arc<Project>, Failure> {
        project
            .contract
            .grant(&self.actor)
            .map_err(|what| Failure::new(exit::REFUSED, what, "quipu contract show"))?;
        self.check_parent(&project)?;
        if !project.store.is_read_only() && project.contract.of_form(Form::Panel).next().is_some() {
            // A report or manuscript may have been edited outside Quipu since the last call.
            if self.panel.set(PanelProject(Arc::clone(&project))).is_ok() {
                self.refresh_panel();
            }
        }
        if let Some(watched) = Watched::of(&project, &self.actor) {
            let _ = self.watched.set(watched);
        }
        if let Some((why, remedy)) = project.store.commit_log().and_then(|order| order.offline()) {
            let remedy = remedy
                .map(|remedy| format!("; to agree: {remedy}"))
                .unwrap_or_default();
            let _ = self.offline.set(format!("{why}{remedy}"));
        }
        Ok(project)
    }

    /// Refuses a name that begins like the one of the environment, unless a hook registered it as
    /// a subagent.
    fn check_parent(&self, project: &Project) -> Result<(), Failure> {
        let Some(given) = self.parent.as_deref() else {
            return Ok(());
        };
        let parent = find_parent(project, &self.actor)?;
        if parent.is_some_and(|parent| parent.who.agent.as_deref() == Some(given)) {
            return Ok(());
        }
        let said = self.actor.agent().map(ToString::to_string);
        agree("--agent", "QUIPU_AGENT", said, Some(given.to_owned())).map(drop)
    }

    /// Opens the project after updating a working copy. Also returns a notice if its server does
    /// not answer.
    pub fn newest_project(&self, root: &Path) -> Result<(Arc<Project>, Option<String>), Failure> {
        let _ = self
            .conflict_notice
            .set(ConflictNotice::of(root, &self.actor));
        let project = self.open(root)?;
        self.check_parent(&project)?;
        if project.store.commit_log().is_none() || project.store.is_read_only() {
            return Ok((project, None));
        }
        match project.store.sync() {
            // The update may have changed the contract.
            Ok(synced) if synced.to > synced.from => Ok((
                Arc::new(Project::open(root, Options::default())?),
                told_conflicts(&project.store, &synced.conflicts),
            )),
            Ok(_) => Ok((project, None)),
            Err(StoreError::Unreachable {
                what, remedy: None, ..
            }) => {
                let at = project.store.pulse()?;
                Ok((project, Some(format!("{what}; this is revision {at}"))))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Describes the origin of a call, for calls that do not come from a hook.
    pub fn caller(&self) -> Caller {
        Caller {
            session: self.conversation.clone(),
            ..Caller::default()
        }
    }

    /// Returns the actor that decides at a gate. With only `--unit`, the caller is a person who
    /// selects a gate.
    pub fn decider(&self) -> Actor {
        if self.means_unit {
            Actor::Person
        } else {
            self.actor.clone()
        }
    }

    /// Returns the metadata of a change: the reason for the journal, and the lease.
    pub fn terms(&self, why: impl Into<String>) -> Terms {
        Terms {
            why: why.into(),
            lease: self.lease.clone(),
            ends: None,
        }
    }

    /// Parses a path that the caller gave, relative to the project root.
    pub fn path(text: &str) -> Result<ProjectPath, Failure> {
        Ok(ProjectPath::parse(text)?)
    }

    /// Reads a source file that an argument names, relative to the folder of the call. An agent
    /// must not copy files that it may not read.
    pub fn load_file(&self, file: &Path) -> Result<Vec<u8>, Failure> {
        Ok(Sources::of(&self.actor, &self.folder).read(&self.folder.join(file), file)?)
    }

    /// Reads stdin, which may be a file that the shell opened, or what the caller sent in its place.
    pub fn load_stdin(&self) -> Result<Vec<u8>, Failure> {
        if let Some(input) = &self.input {
            return Ok(input.as_bytes().to_vec());
        }
        Ok(Sources::of(&self.actor, &self.folder).read_stdin()?)
    }
}

/// The language of the project at a folder, also if its contract has faults. English where there
/// is no project.
pub fn language_at(folder: &Path) -> Language {
    let manifest = Project::find_root(folder).and_then(|root| read_manifest(&root));
    manifest.map_or(Language::En, |bytes| {
        language_of(&String::from_utf8_lossy(&bytes))
    })
}

/// The value of the key `language` before the first table of a `quipu.toml`.
fn language_of(manifest: &str) -> Language {
    let keys = manifest
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with('['));
    let values = keys.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.split('#').next().unwrap_or_default();
        (key.trim() == "language").then(|| value.trim().trim_matches(['"', '\'']))
    });
    values
        .filter_map(Language::parse)
        .last()
        .unwrap_or_default()
}

fn agree(
    flag: &str,
    variable: &str,
    said: Option<String>,
    given: Option<String>,
) -> Result<Option<String>, Failure> {
    match (said, given.filter(|g| !g.is_empty())) {
        (Some(said), Some(given)) if said != given => Err(Failure::new(
            exit::REFUSED,
            format!("{flag} {said} contradicts {variable}={given}"),
            format!("omit {flag}"),
        )),
        (said, given) => Ok(given.or(said)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(role: Option<&str>) -> Names {
        Names {
            role: role.map(str::to_owned),
            ..Names::default()
        }
    }

    #[test]
    fn the_language_is_known_even_if_the_contract_is_faulty() {
        for (manifest, wanted) in [
            ("quipu = 1\nlanguage = \"zh\"\n", Language::Zh),
            ("language='zh' # Chinese\nquipu = \n", Language::Zh),
            ("quipu = 1\n", Language::En),
            ("language = \"fr\"\n", Language::En),
            ("[vars]\nlanguage = \"zh\"\n", Language::En),
        ] {
            assert_eq!(language_of(manifest), wanted, "{manifest}");
        }
    }

    #[test]
    fn without_a_name_it_is_a_person() {
        assert_eq!(
            Session::new(".".into(), names(None), names(None))
                .unwrap()
                .actor,
            Actor::Person
        );
        assert_eq!(
            Session::new(".".into(), names(None), names(Some("")))
                .unwrap()
                .actor,
            Actor::Person
        );
    }

    #[test]
    fn a_person_says_so_and_an_agent_cannot() {
        let person = |role, environment| Session::new(".".into(), names(role), environment);
        let session = person(Some("person"), names(None)).unwrap();
        assert!(session.actor == Actor::Person && !session.is_nameless);
        assert!(person(None, names(None)).unwrap().is_nameless);
        let claude = Names {
            agent: Some("claude".into()),
            ..Names::default()
        };
        assert!(person(Some("person"), claude).is_err());
        assert!(person(Some("person"), names(Some("writer"))).is_err());
        let writer = person(Some("writer"), names(Some("person"))).unwrap();
        assert_eq!(writer.actor.role().unwrap().as_str(), "writer");
    }

    #[test]
    fn a_flag_cannot_overrule_the_environment() {
        assert!(Session::new(".".into(), names(Some("editor")), names(Some("writer"))).is_err());
        let session = Session::new(".".into(), names(None), names(Some("writer"))).unwrap();
        assert_eq!(session.actor.role().unwrap().as_str(), "writer");
    }
}
