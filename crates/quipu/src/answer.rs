//! What an operation returns, whichever door it was called through.

use quipu_contract::Place;
use quipu_contract::plan::{Overflow, Stuck};
use quipu_contract::{Shrink, Tokens};
use quipu_protocol::{Absent, BriefError, ChangeFileError, EjectError, FolderError, InitError, ProjectError, ReadError, ViewError};
use quipu_store::StoreError;
use serde_json::{Value, json};

/// Exit codes have fixed meanings.
pub mod exit {
    pub const FINE: u8 = 0;
    /// The answer is no: conflicts found, verification failed.
    pub const NO: u8 = 1;
    pub const USAGE: u8 = 2;
    /// Refused by the contract.
    pub const REFUSED: u8 = 3;
    /// Stale version or lost lease.
    pub const STALE: u8 = 4;
    pub const NOT_FOUND: u8 = 5;
    pub const IO: u8 = 7;
}

/// What an operation found or did.
#[derive(Debug, Default)]
pub struct Answer {
    /// The data, for `--json`.
    pub json: Value,
    /// The data, for people.
    pub text: String,
    /// The data byte for byte, where not even a newline may be added.
    pub raw: Option<Vec<u8>>,
    /// What is said beside the data.
    pub talk: Vec<String>,
    pub exit: u8,
}

impl Answer {
    pub fn new(json: Value, text: impl Into<String>) -> Answer {
        Answer { json, text: text.into(), raw: None, talk: Vec::new(), exit: exit::FINE }
    }

    pub fn say(mut self, line: impl Into<String>) -> Answer {
        self.talk.push(line.into());
        self
    }
}

/// Why an operation did nothing.
#[derive(Debug)]
pub struct Failure {
    pub what: String,
    pub rule: Option<(Place, String)>,
    pub mend: Option<String>,
    pub exit: u8,
}

impl Failure {
    pub fn new(exit: u8, what: impl Into<String>, mend: impl Into<String>) -> Failure {
        let mend = mend.into();
        Failure { what: what.into(), rule: None, mend: (!mend.is_empty()).then_some(mend), exit }
    }

    pub fn usage(what: impl Into<String>, mend: impl Into<String>) -> Failure {
        Failure::new(exit::USAGE, what, mend)
    }

    pub fn json(&self) -> Value {
        json!({
            "error": self.what,
            "rule": self.rule.as_ref().map(|(place, rule)| json!({"place": place.to_string(), "rule": rule})),
            "do": self.mend,
            "exit": self.exit,
        })
    }

    /// What, which rule, and the command that mends it.
    pub fn render(&self) -> String {
        let mut text = format!("error: {}", self.what);
        if let Some((place, rule)) = &self.rule {
            text.push_str(&format!("\n  rule  {place}  {rule}"));
        }
        if let Some(mend) = &self.mend {
            text.push_str(&format!("\n  do    {mend}"));
        }
        text
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let what = error.to_string();
        match error {
            StoreError::Refused(refused) => Failure { what, rule: refused.rule, mend: Some(refused.mend), exit: exit::REFUSED },
            StoreError::Stale { path, .. } => {
                Failure::new(exit::STALE, what, format!("quipu read {path} --json     (then write on that version)"))
            }
            StoreError::LeaseLost { .. } => Failure::new(exit::STALE, what, "quipu lease list"),
            StoreError::NotFound { mend, .. } => Failure::new(exit::NOT_FOUND, what, mend),
            StoreError::Busy { .. } => Failure::new(exit::IO, what, "wait for it, or end it; the lock goes with the process"),
            StoreError::Unfinished { .. } => {
                Failure::new(exit::IO, what, "make room or give permission, then: quipu doctor     (do not repeat the command)")
            }
            StoreError::NoStore(_) => Failure::new(exit::NOT_FOUND, what, "quipu init"),
            StoreError::Damaged { .. } | StoreError::Heads(_) => Failure::new(exit::IO, what, "quipu verify; quipu doctor"),
            StoreError::Io { ref source, .. } => {
                // The kernel's refusal of a link or an odd file is a rule of ours, not a fault of the disk.
                let code = if source.kind() == std::io::ErrorKind::InvalidInput { exit::REFUSED } else { exit::IO };
                Failure::new(code, what, "")
            }
        }
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Failure {
        let what = error.to_string();
        match error {
            ProjectError::NotFound(_) => Failure::new(exit::NOT_FOUND, what, "quipu init --profile NAME     (quipu profile list)"),
            ProjectError::Unreadable { .. } => Failure::new(exit::IO, what, ""),
            ProjectError::Faulty(_) => Failure::new(exit::USAGE, format!("the contract is faulty\n{what}"), ""),
            ProjectError::Store(error) => error.into(),
        }
    }
}

impl From<InitError> for Failure {
    fn from(error: InitError) -> Failure {
        let what = error.to_string();
        match error {
            InitError::Exists => Failure::new(exit::REFUSED, what, "quipu status; or quipu init --force to replace it"),
            InitError::NoProfile => Failure::usage(what, "quipu profile list"),
            InitError::Project(error) => error.into(),
            InitError::Store(error) => error.into(),
            InitError::Template(_) => Failure::usage(what, "quipu profile show NAME"),
            InitError::Io { .. } => Failure::new(exit::IO, what, ""),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        let what = error.to_string();
        match error {
            ReadError::Path(_) => Failure::new(exit::REFUSED, what, "name a path below the project root"),
            ReadError::Denied(denial) => Failure {
                what,
                rule: Some((denial.place, "pointers of the role".into())),
                mend: Some("quipu contract show --role NAME     (what it may read)".into()),
                exit: exit::REFUSED,
            },
            ReadError::OnlySections { path, sections } => {
                let section = sections.first().cloned().unwrap_or_default();
                Failure::new(exit::REFUSED, what, format!("quipu read '{path}#{section}'"))
            }
            ReadError::UnknownActor(_) => Failure::new(exit::USAGE, what, "quipu contract show"),
            ReadError::NotFound(_) => Failure::new(exit::NOT_FOUND, what, "quipu status"),
            ReadError::NoSection { path, miss } => match miss.nearest.first() {
                Some(nearest) => Failure::new(exit::NOT_FOUND, what, format!("quipu read '{path}#{nearest}'")),
                None => Failure::new(exit::NOT_FOUND, what, format!("quipu read {path}")),
            },
            ReadError::NotText(path) => Failure::new(exit::USAGE, what, format!("quipu read {path}")),
            ReadError::BadVersion(_) => Failure::usage(what, "quipu log PATH"),
            ReadError::Store(error) => error.into(),
        }
    }
}

impl From<ChangeFileError> for Failure {
    fn from(error: ChangeFileError) -> Failure {
        Failure::usage(error.to_string(), "{\"ops\": [{\"op\": \"append|write|create|merge|remove\", \"path\": …, \"text\": …}]}")
    }
}

impl From<EjectError> for Failure {
    fn from(error: EjectError) -> Failure {
        let what = error.to_string();
        match error {
            EjectError::Unknown(_) => Failure::new(exit::NOT_FOUND, what, "quipu profile list"),
            EjectError::Exists(_) => Failure::new(exit::REFUSED, what, "edit it there, or move it away"),
            EjectError::Io { .. } => Failure::new(exit::IO, what, ""),
        }
    }
}

impl From<ViewError> for Failure {
    fn from(error: ViewError) -> Failure {
        let what = error.to_string();
        match error {
            ViewError::UnknownActor(_) => Failure::new(exit::NOT_FOUND, what, "quipu contract show"),
            ViewError::NeedsUnit { place, .. } => {
                Failure { rule: Some((place, "its pointers name `{unit}`".into())), ..Failure::usage(what, "--unit UNIT") }
            }
            ViewError::NeedsAgent { place, .. } => {
                Failure { rule: Some((place, "its pointers name `{agent}`".into())), ..Failure::usage(what, "--agent NAME") }
            }
            ViewError::NoValue { ref name, ref place } => {
                let mend = format!("set it in quipu.toml under [units.UNIT.vars] or [vars]: {name} = \"…\"");
                Failure { rule: Some((place.clone(), "a pointer names it".into())), ..Failure::usage(what, mend) }
            }
            ViewError::Absent(absent) => {
                let rule = absent.first().map(|a| (a.place.clone(), "need = \"must\"".to_owned()));
                Failure { rule, ..Failure::new(exit::NOT_FOUND, what, mend_absent(&absent)) }
            }
            ViewError::Overflow { overflow, places } => {
                let rule = places.into_iter().next().zip(overflow.stuck.first().map(|s| told_shrink(s)));
                Failure { rule, ..Failure::new(exit::NO, what, mend_overflow(&overflow)) }
            }
            ViewError::Store(error) => error.into(),
        }
    }
}

fn mend_absent(absent: &[Absent]) -> String {
    let writer = absent.iter().flat_map(|a| &a.writers).find_map(|w| w.role.clone());
    match writer {
        Some(role) => format!("quipu brief {role} …     (or --partial, to go on without)"),
        None => "put it there, or --partial, to go on without".into(),
    }
}

fn told_shrink(stuck: &Stuck) -> String {
    let Stuck { whole, least, .. } = stuck;
    let shrink = serde_json::to_value(stuck.shrink).ok();
    let name = match shrink {
        Some(Value::String(name)) => name,
        Some(Value::Object(map)) => map.iter().map(|(name, n)| format!("{name}({n})")).collect(),
        _ => String::new(),
    };
    format!("shrink = \"{name}\": {whole} tokens whole, {least} at the least")
}

/// Which pointer to shrink, and how, or how much room to give.
fn mend_overflow(overflow: &Overflow) -> String {
    let Tokens(least) = overflow.least;
    let room = format!("--budget {least}");
    match overflow.stuck.first() {
        Some(stuck) if matches!(stuck.shrink, Shrink::Never | Shrink::Section) => {
            format!(
                "let `{}` shrink in the contract (shrink = \"relevant\", \"head\" or \"stage\"), shorten it, or give {room}",
                stuck.name
            )
        }
        Some(stuck) => format!("shorten the sections of `{}`, or give {room}", stuck.name),
        None => format!("give {room}"),
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Failure {
        let what = error.to_string();
        match error {
            FolderError::NotEmpty(_) => Failure::new(exit::REFUSED, what, "name an empty or a new folder"),
            FolderError::IsProject(_) => Failure::new(exit::REFUSED, what, "name an empty or a new folder"),
            FolderError::NoManifest(_) => Failure::new(exit::NOT_FOUND, what, "quipu view ROLE --out DIR"),
            FolderError::BadManifest { .. } => Failure::new(exit::USAGE, what, "quipu view ROLE --out DIR     (make it anew)"),
            FolderError::Io { .. } => Failure::new(exit::IO, what, ""),
            FolderError::Store(error) => error.into(),
        }
    }
}

impl From<BriefError> for Failure {
    fn from(error: BriefError) -> Failure {
        let what = error.to_string();
        match error {
            BriefError::View(error) => error.into(),
            BriefError::Template(_) => Failure::usage(what, "quipu profile eject NAME     (then mend the template)"),
            BriefError::NoStage { .. } => Failure::new(exit::NOT_FOUND, what, "quipu view ROLE --explain"),
        }
    }
}
