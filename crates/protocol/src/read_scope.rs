//! The part of a project that an actor reads, for commands that list files and commits.
//!
//! A list shows a role no more than `read` and `log PATH` show it file by file: paths that it reads
//! whole, and the reason of a commit only where it reads every file of that commit. What the role
//! wrote itself it is shown as it is.

use quipu_contract::{Actor, Binding, Contract, Grant, ProjectPath, Readable};
use quipu_store::{Kind, LogEntry, OpenSession, Problem, Survey, Who};

use crate::project::Project;

/// What an actor may read, resolved once for many paths.
pub struct ReadScope<'p> {
    contract: &'p Contract,
    grant: Option<Grant<'p>>,
    binding: Binding,
    who: Who,
}

impl<'p> ReadScope<'p> {
    /// An actor that the contract does not know reads nothing.
    pub fn of(project: &'p Project, actor: &Actor) -> ReadScope<'p> {
        let contract = &project.contract;
        ReadScope {
            contract,
            grant: contract.grant(actor).ok(),
            binding: contract.actor_binding(actor),
            who: Who::from(actor),
        }
    }

    /// Whether everything is shown: to people and to agents without a role.
    pub fn is_everything(&self) -> bool {
        self.grant.is_some_and(|grant| grant.role.is_none())
    }

    /// Whether the actor reads the whole of a file.
    pub fn reads(&self, path: &ProjectPath) -> bool {
        self.grant
            .is_some_and(|grant| grant.may_read(path, &self.binding) == Ok(Readable::Whole))
    }

    /// Whether a file may be named: one that the actor reads, or one of the contract, which
    /// everyone is told.
    fn names(&self, path: &str) -> bool {
        let is_contract = |path: &ProjectPath| {
            self.contract
                .rule(path)
                .is_some_and(|rule| rule.people_only)
        };
        ProjectPath::parse(path).is_ok_and(|path| is_contract(&path) || self.reads(&path))
    }

    /// A commit as the actor is shown it; none if it concerns no file that the actor reads. Leases,
    /// sessions and notes of others concern none.
    pub fn entry(&self, entry: &LogEntry) -> Option<LogEntry> {
        if self.is_everything() || entry.who == self.who {
            return Some(entry.clone());
        }
        if matches!(entry.kind, Kind::Lease | Kind::Note) {
            return None;
        }
        // As the log tells them: `session ID begins`, `session ID ends`.
        let is_file = |path: &&String| {
            !(path.starts_with("session ")
                && [" begins", " ends"].iter().any(|act| path.ends_with(act)))
        };
        let paths: Vec<String> = entry
            .paths
            .iter()
            .filter(|path| !is_file(path) || self.names(path))
            .cloned()
            .collect();
        let is_whole = paths.len() == entry.paths.len();
        let why = entry.why.clone().filter(|_| is_whole);
        (paths.iter().any(|path| is_file(&path)) || is_whole).then(|| LogEntry {
            paths,
            why,
            ..entry.clone()
        })
    }

    /// Removes from a survey what the actor does not read.
    pub fn narrow(&self, survey: &mut Survey) {
        if self.is_everything() {
            return;
        }
        survey.files.retain(|file| self.names(&file.path));
        survey.adopted.retain(|adopted| self.names(&adopted.path));
        survey.free.retain(|path| self.names(path));
        survey.free_journalled.retain(|file| self.names(&file.path));
        survey.waiting.retain(|path| self.names(path));
        survey.kept.retain(|kept| self.names(&kept.path));
        // Names that no contract can hold are in no role's pointers.
        survey.strange.clear();
    }

    /// Removes problems of files that the actor may not name, and returns how many.
    pub fn narrow_problems(&self, problems: &mut Vec<Problem>) -> usize {
        let before = problems.len();
        // A problem of the journal may name any file.
        problems.retain(|problem| self.is_everything() || self.names(&problem.place));
        before - problems.len()
    }

    /// Whether all of some paths may be named.
    pub fn names_all(&self, paths: &[String]) -> bool {
        self.is_everything() || paths.iter().all(|path| self.names(path))
    }

    /// Whether the actor may know what was asked and said in a session: everyone without a role,
    /// and the same role.
    pub fn hears(&self, session: &OpenSession) -> bool {
        self.is_everything() || self.who.role == session.who.role
    }
}
