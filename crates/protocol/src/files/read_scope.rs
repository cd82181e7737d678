//! The part of a project that an actor may read, for commands that list files and commits.
//!
//! A list shows a role no more than `read` and `log PATH` do for single files: paths that it may
//! read completely, and the reason of a commit only if it may read every file of that commit. A
//! role always sees its own commits.

use quipu_contract::{Actor, Binding, Contract, Grant, ProjectPath, Readable};
use quipu_store::{Kind, LogEntry, OpenSession, Problem, StatusScan, Who};

use crate::project::open::Project;

/// An actor's read rights, resolved once for many paths.
pub struct ReadScope<'p> {
    contract: &'p Contract,
    grant: Option<Grant<'p>>,
    binding: Binding,
    who: Who,
}

impl<'p> ReadScope<'p> {
    /// An actor unknown to the contract reads nothing.
    pub fn of(project: &'p Project, actor: &Actor) -> ReadScope<'p> {
        let contract = &project.contract;
        ReadScope {
            contract,
            grant: contract.grant(actor).ok(),
            binding: contract.actor_binding(actor),
            who: Who::from(actor),
        }
    }

    /// Whether everything is visible: for people and for agents without a role.
    pub fn is_everything(&self) -> bool {
        self.grant.is_some_and(|grant| grant.role.is_none())
    }

    /// Whether the actor may read a whole file.
    pub fn reads(&self, path: &ProjectPath) -> bool {
        self.grant
            .is_some_and(|grant| grant.may_read(path, &self.binding) == Ok(Readable::Whole))
    }

    /// Whether a file may be named: a file that the actor reads, or a file of the contract, which
    /// everyone may see.
    fn names(&self, path: &str) -> bool {
        let is_contract = |path: &ProjectPath| {
            self.contract
                .rule(path)
                .is_some_and(|rule| rule.people_only)
        };
        ProjectPath::parse(path).is_ok_and(|path| is_contract(&path) || self.reads(&path))
    }

    /// A commit as visible to the actor. None if it concerns no file that the actor reads. Leases,
    /// sessions and notes of other actors concern no file.
    pub fn entry(&self, entry: &LogEntry) -> Option<LogEntry> {
        if self.is_everything() || entry.who == self.who {
            return Some(entry.clone());
        }
        if matches!(entry.kind, Kind::Lease | Kind::Note) {
            return None;
        }
        // The log renders sessions as `session ID begins` and `session ID ends`.
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

    /// Removes files that the actor does not read from a status scan.
    pub fn narrow(&self, scan: &mut StatusScan) {
        if self.is_everything() {
            return;
        }
        scan.files.retain(|file| self.names(&file.path));
        scan.adopted.retain(|adopted| self.names(&adopted.path));
        scan.free.retain(|path| self.names(path));
        scan.free_journalled.retain(|file| self.names(&file.path));
        scan.waiting.retain(|path| self.names(path));
        scan.kept.retain(|kept| self.names(&kept.path));
        // Names that no contract can contain match no role's pointers.
        scan.strange.clear();
    }

    /// Removes problems of files that the actor may not name, and returns their number.
    pub fn narrow_problems(&self, problems: &mut Vec<Problem>) -> usize {
        let before = problems.len();
        // A problem of the journal may name any file.
        problems.retain(|problem| self.is_everything() || self.names(&problem.place));
        before - problems.len()
    }

    /// Whether all of the paths may be named.
    pub fn names_all(&self, paths: &[String]) -> bool {
        self.is_everything() || paths.iter().all(|path| self.names(path))
    }

    /// Whether the actor may see the requests and messages of a session: every actor without a
    /// role, and the same role. An actor with a unit sees only sessions of that unit: the words of
    /// a child are its order and its report.
    pub fn hears(&self, session: &OpenSession) -> bool {
        self.is_everything()
            || (self.who.role == session.who.role
                && (self.who.unit.is_none() || self.who.unit == session.who.unit))
    }
}
