//! A project for one actor.

use std::path::Path;

use quipu_contract::{Actor, ActorName, ProjectPath, Tokens, UnitId};
use quipu_protocol::{
    Ask, CANDIDATES, Caller, Layout, Project, RecallError, StartRequest, lay_out, may_expect,
    may_read_whole, read_pointer, recall, start,
};
use quipu_store::{Change, Expect, Op, Options, Version};

use crate::Error;

/// The token budget of a start text.
const START_TOKENS: u64 = 1_200;

/// The memory of one project, for one actor.
///
/// A new value acts as a person, who may do everything but what a class forbids. Agents name
/// themselves with [`agent`](Memory::agent), and take a role of the contract with
/// [`role`](Memory::role).
pub struct Memory {
    project: Project,
    actor: Actor,
}

/// The text of a file or section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// The version of the whole file, which [`Memory::write`] can expect.
    pub version: String,
    /// The first line of the text in the file.
    pub line: usize,
}

/// The result of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The number of the commit in the journal.
    pub commit: u64,
    /// The version of the file after it.
    pub version: String,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// The sections that answer, best first.
    pub hits: Vec<Hit>,
    /// Nothing answers well: the hits are only the nearest sections.
    pub is_weak: bool,
}

/// A section that answers a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The file.
    pub path: String,
    /// The line of the section.
    pub line: u32,
    /// The headings above it.
    pub headings: Vec<String>,
    /// The part of its text that matches best.
    pub snippet: String,
    /// Comparable within one answer only.
    pub score: f32,
}

/// A file that is not as the contract allows: somebody edited it outside Quipu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flagged {
    /// The file.
    pub path: String,
    /// The fault; completes the sentence "`path` …".
    pub what: String,
    /// The command that repairs it.
    pub repair: String,
}

impl Memory {
    /// Opens the project of a folder, or of a folder above it.
    pub fn open(folder: impl AsRef<Path>) -> Result<Memory, Error> {
        let root = Project::find_root(folder.as_ref())?;
        Ok(Memory {
            project: Project::open(&root, Options::default())?,
            actor: Actor::Person,
        })
    }

    /// Creates a project with a built-in profile: `relay`, `book`, `novel`, `review` or `worldlog`.
    pub fn create(folder: impl AsRef<Path>, profile: &str) -> Result<Memory, Error> {
        let layout = Layout {
            profiles: vec![profile.to_owned()],
            ..Layout::default()
        };
        lay_out(folder.as_ref(), &layout, Options::default())?;
        Memory::open(folder)
    }

    /// Acts as an agent of this name.
    pub fn agent(self, name: &str) -> Result<Memory, Error> {
        let name = parse_name(name)?;
        Ok(self.acting(|_, role, unit| (Some(name), role, unit)))
    }

    /// Acts in a role of the contract: with its pointers, and with nothing else.
    pub fn role(self, role: &str) -> Result<Memory, Error> {
        let role = parse_name(role)?;
        let memory = self.acting(|agent, _, unit| (agent, Some(role), unit));
        memory
            .project
            .contract
            .grant(&memory.actor)
            .map_err(|what| Error::refused(what, "quipu contract show"))?;
        Ok(memory)
    }

    /// Acts for one unit, such as a chapter.
    pub fn unit(self, unit: &str) -> Result<Memory, Error> {
        let unit = UnitId::parse(unit).map_err(|bad| Error::refused(bad, "quipu contract show"))?;
        Ok(self.acting(|agent, role, _| (agent, role, Some(unit))))
    }

    fn acting(
        self,
        change: impl FnOnce(
            Option<ActorName>,
            Option<ActorName>,
            Option<UnitId>,
        ) -> (Option<ActorName>, Option<ActorName>, Option<UnitId>),
    ) -> Memory {
        let (agent, role, unit) = match self.actor {
            Actor::Agent { agent, role, unit } => change(agent, role, unit),
            _ => change(None, None, None),
        };
        Memory {
            actor: Actor::Agent { agent, role, unit },
            ..self
        }
    }

    /// Reads a file, or one section of it: `PATH`, `PATH#SECTION` or `PATH:LINE`.
    pub fn read(&self, pointer: &str) -> Result<Text, Error> {
        self.read_version(pointer, None)
    }

    /// Reads an older version: a hash, `@12` (a commit), `~1` (versions ago) or a time.
    pub fn read_at(&self, pointer: &str, version: &str) -> Result<Text, Error> {
        self.read_version(pointer, Some(version))
    }

    fn read_version(&self, pointer: &str, at: Option<&str>) -> Result<Text, Error> {
        let reading = read_pointer(&self.project, &self.actor, pointer, at)?;
        Ok(Text {
            text: String::from_utf8_lossy(&reading.bytes).into_owned(),
            version: reading.version.to_string(),
            line: reading.line,
        })
    }

    /// Adds a text at the end of a file.
    pub fn append(&self, path: &str, text: &str) -> Result<Receipt, Error> {
        let path = parse_path(path)?;
        let bytes = with_newline(text);
        self.commit(Op::Append {
            path,
            bytes,
            apart: true,
        })
    }

    /// Creates a file, or replaces its whole text. A state file needs the version that was read.
    pub fn write(&self, path: &str, text: &str, expect: Option<&str>) -> Result<Receipt, Error> {
        let path = parse_path(path)?;
        let expect = expect.map_or(Expect::Any, |version| {
            Expect::Version(Version::parse(version))
        });
        self.commit(Op::Write {
            path,
            bytes: with_newline(text),
            expect,
        })
    }

    fn commit(&self, op: Op) -> Result<Receipt, Error> {
        let path = op.path().clone();
        let change = Change::by(&self.actor).op(op);
        may_expect(&self.project, &change)?;
        let receipt = self.project.validate(change)?.publish()?;
        let is_seen = may_read_whole(&self.project, &self.actor, &path).is_ok();
        let version = match self.project.store.read(&path)? {
            Some((_, version)) if is_seen => version,
            _ => Version::withheld(),
        };
        Ok(Receipt {
            commit: receipt.seq,
            version: version.to_string(),
        })
    }

    /// Finds the sections that answer a question, among those that the actor may read.
    pub fn recall(&self, question: &str) -> Result<Recalled, Error> {
        let ask = Ask {
            question,
            k: CANDIDATES,
            within: None,
            kind: None,
            use_model: true,
            complete: false,
            as_of: None,
        };
        let answer = match recall(&self.project, &self.actor, &ask) {
            Ok(recalled) => recalled.answer,
            Err(RecallError::NoWords(_)) => {
                return Ok(Recalled {
                    hits: Vec::new(),
                    is_weak: true,
                });
            }
            Err(error) => return Err(error.into()),
        };
        let is_weak = answer.is_weak();
        let hits = answer.hits.into_iter().map(|hit| Hit {
            path: hit.path,
            line: hit.line,
            headings: hit.heading_path,
            snippet: hit.snippet,
            score: hit.score,
        });
        Ok(Recalled {
            hits: hits.collect(),
            is_weak,
        })
    }

    /// The text that brings an agent without memory up to date. An agent that names itself begins a
    /// session with it.
    pub fn start(&self) -> Result<String, Error> {
        let request = StartRequest {
            budget: Tokens(START_TOKENS),
            scene: None,
            delegation: None,
            task: None,
            suspect: None,
            peek: false,
            full: false,
            notices: Vec::new(),
            caller: Caller::default(),
        };
        Ok(start(&self.project, &self.actor, &request)?.text)
    }

    /// Compares the files with the journal. Edits that the contract allows are adopted; the others
    /// are returned.
    pub fn flagged(&self) -> Result<Vec<Flagged>, Error> {
        let scan = self.project.store.scan_status()?;
        let readable = |path: &str| {
            ProjectPath::parse(path)
                .is_ok_and(|path| may_read_whole(&self.project, &self.actor, &path).is_ok())
        };
        let flagged = scan.flagged().filter(|file| readable(&file.path));
        Ok(flagged
            .map(|file| Flagged {
                path: file.path.clone(),
                what: file
                    .flag
                    .as_ref()
                    .map(|flag| flag.what.clone())
                    .unwrap_or_default(),
                repair: file.remedy(),
            })
            .collect())
    }
}

fn parse_path(path: &str) -> Result<ProjectPath, Error> {
    ProjectPath::parse(path).map_err(|bad| Error::refused(bad, "a path relative to the project"))
}

fn parse_name(name: &str) -> Result<ActorName, Error> {
    ActorName::parse_given(name).map_err(|bad| Error::refused(bad, "another name"))
}

/// A text ends with a newline.
fn with_newline(text: &str) -> Vec<u8> {
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{text}{end}").into_bytes()
}
