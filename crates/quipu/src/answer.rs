//! The result of an operation, independent of the interface that called it, and its exit code.

use quipu_contract::{BadPath, Fault, Faults, Language, Place, Withheld, in_one_line};
use quipu_protocol::chinese::{self, message_or_same};
use quipu_protocol::flow::{FlowError, GateError, ReplayError};
use quipu_protocol::review::{LetterError, ReviseError};
use quipu_protocol::{
    ChangeFileError, EjectError, InitError, ProjectError, PublishError, ReadError, RecallError,
    SourceError, WorkError,
};
use quipu_store::{StoreError, Version};
use serde_json::{Value, json};

/// Exit codes have fixed meanings.
pub mod exit {
    pub const FINE: u8 = 0;
    /// Negative result: conflicts found, verification failed.
    pub const NO: u8 = 1;
    pub const USAGE: u8 = 2;
    /// Refused by the contract.
    pub const REFUSED: u8 = 3;
    /// Stale version or lost lease.
    pub const STALE: u8 = 4;
    pub const NOT_FOUND: u8 = 5;
    /// An agent failed, and a person must act.
    pub const AGENT: u8 = 6;
    pub const IO: u8 = 7;

    /// Every code with its meaning, for the reference.
    #[cfg(test)]
    pub const MEANINGS: [(u8, &str); 8] = [
        (FINE, "fine"),
        (
            NO,
            "the answer is no: conflicts found, verification failed, files flagged",
        ),
        (
            USAGE,
            "usage: the command, a file passed to it or the contract is invalid",
        ),
        (REFUSED, "refused by the contract"),
        (
            STALE,
            "stale version, or a lease that was lost or is held by another",
        ),
        (NOT_FOUND, "not found"),
        (AGENT, "an agent failed"),
        (IO, "an I/O operation failed"),
    ];
}

/// The result of a successful operation.
#[derive(Debug, Default)]
pub struct Answer {
    /// The data for `--json`.
    pub json: Value,
    /// The data as text for people.
    pub text: String,
    /// The exact bytes of the data, if not even a newline may be added.
    pub raw: Option<Vec<u8>>,
    /// Messages printed beside the data.
    pub talk: Vec<String>,
    /// JSON on one line: the last of several.
    pub compact: bool,
    pub exit: u8,
}

impl Answer {
    pub fn new(json: Value, text: impl Into<String>) -> Answer {
        Answer {
            json,
            text: text.into(),
            raw: None,
            talk: Vec::new(),
            compact: false,
            exit: exit::FINE,
        }
    }

    /// Text that programs read: exact if stdout is not a terminal, with a newline at its end.
    pub fn data(json: Value, text: impl Into<String>) -> Answer {
        let mut answer = Answer::new(json, text);
        let end = if answer.text.is_empty() || answer.text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        answer.raw = Some(format!("{}{end}", answer.text).into_bytes());
        answer
    }

    pub fn say(mut self, line: impl Into<String>) -> Answer {
        self.talk.push(line.into());
        self
    }

    /// The messages beside the data in the project's language. The data stays as it is.
    pub fn in_language(mut self, language: Language) -> Answer {
        if language == Language::Zh {
            self.talk
                .iter_mut()
                .for_each(|line| *line = message_or_same(line));
        }
        self
    }
}

/// The text in a project's language.
pub fn in_language<T>(language: Language, en: T, zh: T) -> T {
    match language {
        Language::En => en,
        Language::Zh => zh,
    }
}

/// `1 file`, `2 files`.
pub fn count(number: usize, of: &str) -> String {
    format!("{number} {of}{}", if number == 1 { "" } else { "s" })
}

/// The reason why an operation failed.
#[derive(Debug)]
pub struct Failure {
    pub what: String,
    pub rule: Option<(Place, String)>,
    pub remedy: Option<String>,
    /// The faults of the contract, if they are the reason.
    pub faults: Option<Box<Faults>>,
    pub exit: u8,
}

impl Failure {
    pub fn new(exit: u8, what: impl Into<String>, remedy: impl Into<String>) -> Failure {
        let remedy = remedy.into();
        Failure {
            what: what.into(),
            rule: None,
            remedy: (!remedy.is_empty()).then_some(remedy),
            faults: None,
            exit,
        }
    }

    pub fn usage(what: impl Into<String>, remedy: impl Into<String>) -> Failure {
        Failure::new(exit::USAGE, what, remedy)
    }

    /// The failure in the project's language: places, paths and commands stay the same.
    pub fn in_language(self, language: Language) -> Failure {
        if language == Language::En {
            return self;
        }
        let faults = self.faults.map(|faults| {
            let fault = |fault: Fault| Fault {
                what: message_or_same(&fault.what),
                remedy: chinese::remedy(&fault.remedy),
                ..fault
            };
            Box::new(Faults(faults.0.into_iter().map(fault).collect()))
        });
        let what = match self.what.strip_prefix(FAULTY) {
            Some(faults) => FAULTY_IN_CHINESE.to_owned() + &faults_in_chinese(faults),
            None => message_or_same(&self.what),
        };
        Failure {
            what,
            rule: self
                .rule
                .map(|(place, rule)| (place, message_or_same(&rule))),
            remedy: self.remedy.map(|remedy| chinese::remedy(&remedy)),
            faults,
            exit: self.exit,
        }
    }

    pub fn json(&self) -> Value {
        let mut json = json!({
            "error": self.what,
            "rule": self.rule.as_ref().map(|(place, rule)| json!({"place": place.to_string(), "rule": rule})),
            "do": self.remedy,
            "exit": self.exit,
        });
        if let Some(faults) = &self.faults {
            let told = |f: &Fault| json!({"what": f.what, "at": f.place.to_string(), "and": f.other.as_ref().map(Place::to_string), "do": f.remedy});
            json["faults"] = faults.0.iter().map(told).collect();
        }
        json
    }

    /// Returns the reason, escaped for display.
    pub fn shown_what(&self) -> String {
        // Contract faults are escaped and split into lines already.
        if self.what.starts_with(FAULTY) || self.what.starts_with(FAULTY_IN_CHINESE) {
            self.what.clone()
        } else {
            in_own_lines(&self.what)
        }
    }

    /// Formats the message: the reason, the rule, and the command that fixes it.
    pub fn render(&self) -> String {
        let mut text = format!("error: {}", self.shown_what());
        if let Some(faults) = &self.faults {
            text.push_str(&format!("\n{faults}"));
        }
        if let Some((place, rule)) = &self.rule {
            text.push_str(&format!(
                "\n  rule  {}",
                in_one_line(&format!("{place}  {rule}"))
            ));
        }
        if let Some(remedy) = &self.remedy {
            text.push_str(&format!("\n  help  {}", without_labels(remedy)));
        }
        text
    }
}

/// Prefix of a refusal that lists the faults of a contract.
const FAULTY: &str = "the contract would be invalid\n";
const FAULTY_IN_CHINESE: &str = "契约会因此无效\n";

/// The lines of faults, as `Faults` prints them.
fn faults_in_chinese(faults: &str) -> String {
    let line = |line: &str| match line.strip_prefix("  help  ") {
        Some(remedy) => format!("  help  {}", chinese::remedy(remedy)),
        None => message_or_same(line),
    };
    faults.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Labels at the start of message lines.
const LABELS: [&str; 5] = ["error:", "  rule  ", "  help  ", "  at    ", "  and   "];

/// Escapes a message for display. A message contains foreign values: names, keys, texts. Quipu
/// indents its own further lines; a line without indent, or with a label, comes from such a value,
/// so its line break is spelled out.
fn in_own_lines(text: &str) -> String {
    joined(text, |line| {
        line.starts_with("  ") && !LABELS.iter().any(|label| line.starts_with(label))
    })
}

/// Escapes a remedy for display. It may be a text to copy, but no line of it may look like another
/// part of a message.
fn without_labels(text: &str) -> String {
    joined(text, |line| {
        !LABELS.iter().any(|label| line.starts_with(label))
    })
}

/// Joins the lines of a text, spelling out the line break before a line that is not `own`.
fn joined(text: &str, own: impl Fn(&str) -> bool) -> String {
    let mut shown = String::new();
    for (nth, line) in text.split('\n').enumerate() {
        if nth > 0 {
            shown.push_str(if own(line) { "\n" } else { "\\n" });
        }
        shown.push_str(&in_one_line(line));
    }
    shown
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        use std::io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory};
        let (what, is_full, is_closed) = (
            error.to_string(),
            error.is_full_disk(),
            error.is_closed_index(),
        );
        match error {
            StoreError::Refused(refused) => Failure {
                rule: refused.rule,
                ..Failure::new(exit::REFUSED, what, refused.remedy)
            },
            StoreError::Stale { path, now, .. } if now.if_any().is_none() => Failure::new(
                exit::STALE,
                what,
                format!(
                    "quipu write {path} --expect none     (creates the file, which does not \
                    exist)"
                ),
            ),
            StoreError::Stale { now, .. } if now == Version::withheld() => Failure::new(
                exit::STALE,
                what,
                "quipu contract show     (your role may not read this file: append to it, or \
                 merge)",
            ),
            StoreError::Stale { path, .. } => Failure::new(
                exit::STALE,
                what,
                format!(
                    "quipu read {path} --json     (prints the current version; then write \
                    with --expect)"
                ),
            ),
            StoreError::LeaseLost { .. } => Failure::new(
                exit::STALE,
                what,
                "quipu lease list     (a person can end a lease: quipu lease release ID)",
            ),
            StoreError::NotFound { remedy, .. } => Failure::new(exit::NOT_FOUND, what, remedy),
            StoreError::Busy { .. } => Failure::new(
                exit::IO,
                what,
                "wait for that process, or end it; the lock is released when it exits",
            ),
            StoreError::Unfinished { path, source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                Failure::new(
                    exit::IO,
                    what,
                    format!(
                        "grant permission, then run: quipu restore {path}     (do not repeat the \
                         command)"
                    ),
                )
            }
            StoreError::Full { .. } | StoreError::FileIndex(_) | StoreError::Io { .. }
                if is_full =>
            {
                Failure::new(
                    exit::IO,
                    what,
                    "free some disk space, then run the same command \
                    again",
                )
            }
            StoreError::Unfinished { source, .. }
                if !is_full
                    && matches!(source.kind(), InvalidInput | NotADirectory | IsADirectory) =>
            {
                Failure::new(
                    exit::IO,
                    what,
                    "move the obstacle away, then run: quipu doctor     (do not repeat the \
                     command)",
                )
            }
            StoreError::FileIndex(_) if is_closed => Failure::new(
                exit::IO,
                what,
                "delete `.quipu/index.db`; Quipu rebuilds it",
            ),
            StoreError::Unfinished { .. } => Failure::new(
                exit::IO,
                what,
                "free disk space or grant permission, then run: quipu doctor     (do not repeat \
                 the command)",
            ),
            StoreError::Unsure { .. } => Failure::new(
                exit::IO,
                what,
                "quipu log     (after the disk is repaired; shows whether the commit was saved; \
                 do not repeat the command before)",
            ),
            StoreError::Unreachable {
                sent: false,
                remedy: Some(remedy),
                ..
            } => Failure::new(exit::REFUSED, what, remedy),
            StoreError::Unreachable { sent, .. } => Failure::new(
                exit::IO,
                what,
                if sent {
                    "quipu sync     (when the server is back; reports whether the commit was \
                     accepted)"
                } else {
                    "nothing was written, and reading still works; run the same command again \
                     when the server is back"
                },
            ),
            StoreError::NoStore(_) => Failure::new(exit::NOT_FOUND, what, "quipu init"),
            // No command can recover the lost record.
            StoreError::Damaged { segment: 0, .. } => Failure::new(
                exit::IO,
                what,
                "quipu verify     (names the damaged record; intact versions: quipu log PATH)",
            ),
            StoreError::Failing { .. } => Failure::new(
                exit::IO,
                what,
                "repair the disk, then run the same command again; reading still works",
            ),
            StoreError::Full { .. } | StoreError::Damaged { .. } | StoreError::FileIndex(_) => {
                Failure::new(exit::IO, what, "quipu verify; quipu doctor")
            }
            StoreError::Io { ref source, .. } => {
                // The kernel refuses a link or a special file because of Quipu's rule; it is not a
                // disk fault.
                if source.kind() == std::io::ErrorKind::InvalidInput {
                    return Failure::new(
                        exit::REFUSED,
                        what,
                        "name a regular file: Quipu does not store folders, links or devices",
                    );
                }
                let remedy = match source.kind() {
                    std::io::ErrorKind::PermissionDenied => {
                        "grant permission, then run the same command again"
                    }
                    std::io::ErrorKind::ReadOnlyFilesystem => {
                        "make the disk writable, then run the same command again"
                    }
                    _ => "",
                };
                Failure::new(exit::IO, what, remedy)
            }
        }
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Failure {
        let what = error.to_string();
        match error {
            ProjectError::NotFound(_) => Failure::new(
                exit::NOT_FOUND,
                what,
                "quipu init --profile NAME     (quipu profile list)",
            ),
            ProjectError::Removed(_) => Failure::new(
                exit::NOT_FOUND,
                what,
                "quipu restore quipu.toml     (people only)",
            ),
            ProjectError::Unreadable { .. } => Failure::new(exit::IO, what, ""),
            ProjectError::Faulty(faults) => Failure {
                faults: Some(Box::new(faults)),
                ..Failure::new(exit::USAGE, "the contract is invalid", "")
            },
            ProjectError::Store(error) => error.into(),
        }
    }
}

impl From<InitError> for Failure {
    fn from(error: InitError) -> Failure {
        let what = error.to_string();
        match error {
            InitError::Exists => Failure::new(
                exit::REFUSED,
                what,
                "quipu status; or, to replace it: quipu init --profile NAME --force",
            ),
            InitError::Removed => Failure::new(
                exit::REFUSED,
                what,
                "quipu restore quipu.toml; or, to start with another: quipu init --profile NAME \
                 --force",
            ),
            InitError::Foreign(_) => Failure::new(exit::REFUSED, what, "quipu init --dir memory"),
            InitError::UnknownProfile(_) => {
                Failure::new(exit::NOT_FOUND, what, "quipu profile list")
            }
            InitError::NoProfile => Failure::usage(what, "quipu profile list"),
            InitError::Project(error) => error.into(),
            InitError::Store(error) => error.into(),
            InitError::Template(_) => Failure::usage(
                what,
                "fix the template; declare a variable in the profile ([vars.NAME]), or set it: \
                 quipu init --var NAME=…",
            ),
            InitError::Io { .. } => Failure::new(exit::IO, what, ""),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        let what = error.to_string();
        match error {
            ReadError::Path(error) => error.into(),
            ReadError::Denied(denial) => Failure {
                rule: Some((denial.place, "pointers of the role".into())),
                ..Failure::new(
                    exit::REFUSED,
                    what,
                    format!(
                        "quipu contract show --role {}     (shows the files it may read)",
                        denial.role
                    ),
                )
            },
            ReadError::OnlySections { path, sections } => {
                let section = sections.first().cloned().unwrap_or_default();
                Failure::new(
                    exit::REFUSED,
                    what,
                    format!("quipu read '{path}#{section}'"),
                )
            }
            ReadError::UnknownActor(_) => Failure::new(exit::REFUSED, what, "quipu contract show"),
            ReadError::NotFound {
                near: Some(near), ..
            } => Failure::new(exit::NOT_FOUND, what, format!("quipu read {near}")),
            ReadError::NotFound { .. } => Failure::new(exit::NOT_FOUND, what, "quipu status"),
            ReadError::NoSection { path, miss, .. } => match miss.nearest.first() {
                Some(nearest) => Failure::new(
                    exit::NOT_FOUND,
                    what,
                    format!("quipu read '{path}#{nearest}'"),
                ),
                None => Failure::new(exit::NOT_FOUND, what, format!("quipu read {path}")),
            },
            ReadError::NoLine { path, .. } => {
                Failure::new(exit::NOT_FOUND, what, format!("quipu read {path}"))
            }
            ReadError::NotText(path) => {
                Failure::new(exit::USAGE, what, format!("quipu read {path}"))
            }
            ReadError::BadVersion { path, .. } => Failure::usage(what, format!("quipu log {path}")),
            ReadError::Store(error) => error.into(),
        }
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Failure {
        let what = error.to_string();
        match error {
            SourceError::Unreadable { source, .. }
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Failure::new(exit::NOT_FOUND, what, "")
            }
            SourceError::Unreadable { .. } => Failure::new(exit::IO, what, ""),
            SourceError::NoPlace(_) => {
                Failure::new(exit::REFUSED, what, "copy the text to a new file first")
            }
            SourceError::NoRule(denial) => Failure {
                rule: Some((denial.place, "pointers of the role".into())),
                ..Failure::new(
                    exit::REFUSED,
                    what,
                    "pipe the text in (--file -), or use a file outside the project",
                )
            },
            SourceError::Denied(error) => error.into(),
            SourceError::Project(error) => error.into(),
            SourceError::Store(error) => error.into(),
        }
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Failure {
        let what = error.to_string();
        match error {
            PublishError::NoForm(form) => Failure::new(
                exit::NOT_FOUND,
                what,
                format!(
                    "[[files]] path = \"…\" class = \"…\" form = \"{form}\"     (in quipu.toml)"
                ),
            ),
            PublishError::NothingFinal(_) => Failure::new(
                exit::NOT_FOUND,
                what,
                "quipu contract show     (shows the marker that ends a chapter)",
            ),
            PublishError::Denied(denial) => ReadError::Denied(denial).into(),
            PublishError::Read(error) => error.into(),
            PublishError::Store(error) => error.into(),
        }
    }
}

impl From<BadPath> for Failure {
    fn from(error: BadPath) -> Failure {
        let remedy = match &error {
            BadPath::Empty | BadPath::Absolute(_) | BadPath::Leaves(_) => {
                "give a path below the project root, such as notes/a.md"
            }
            BadPath::Reserved { .. } => "give another path: that folder cannot hold memory files",
            BadPath::NotNormal { .. } | BadPath::OddCharacter(_) | BadPath::TooLong(_) => {
                "use a name that is valid on every operating system"
            }
        };
        Failure::new(exit::REFUSED, error.to_string(), remedy)
    }
}

impl From<ChangeFileError> for Failure {
    fn from(error: ChangeFileError) -> Failure {
        if let ChangeFileError::BadPath { source, .. } = &error {
            return Failure {
                what: error.to_string(),
                ..source.clone().into()
            };
        }
        Failure::usage(
            error.to_string(),
            "{\"ops\": [{\"op\": \"append|write|create|merge|remove\", \"path\": …, \"text\": …}]}",
        )
    }
}

impl From<EjectError> for Failure {
    fn from(error: EjectError) -> Failure {
        let what = error.to_string();
        match error {
            EjectError::Unknown(_) => Failure::new(exit::NOT_FOUND, what, "quipu profile list"),
            EjectError::Exists(_) => {
                Failure::new(exit::REFUSED, what, "edit it there, or move it away")
            }
            EjectError::Path(_) => Failure::usage(what, "quipu profile list"),
            EjectError::Io { ref source, .. }
                if source.kind() == std::io::ErrorKind::InvalidInput =>
            {
                Failure::new(
                    exit::REFUSED,
                    what,
                    "replace it with a plain folder named `profiles`",
                )
            }
            EjectError::Io { .. } => Failure::new(exit::IO, what, ""),
        }
    }
}

impl From<RecallError> for Failure {
    fn from(error: RecallError) -> Failure {
        match error {
            RecallError::NoWords(_) => Failure::usage(
                error.to_string(),
                "quipu recall \"words that the text contains\"",
            ),
            RecallError::Store(error) => error.into(),
            RecallError::Read(error) => error.into(),
            RecallError::Index(error) => Failure::new(
                exit::IO,
                error.to_string(),
                "rm -r .quipu/recall     (Quipu rebuilds it)",
            ),
        }
    }
}

impl From<WorkError> for Failure {
    fn from(error: WorkError) -> Failure {
        let what = error.to_string();
        match error {
            WorkError::NoForm(form) => Failure::new(
                exit::NOT_FOUND,
                what,
                format!(
                    "add [[files]] path = \"…\" class = \"…\" form = \"{form}\" to quipu.toml, or \
                     use a profile that has one: quipu profile list"
                ),
            ),
            WorkError::WhichAgent { .. } => {
                Failure::usage(what, "--agent NAME, or QUIPU_AGENT=NAME in the environment")
            }
            WorkError::Task(error) => error.into(),
            WorkError::Keyed(error) => error.into(),
            WorkError::Splice(error) => error.into(),
            WorkError::Malformed { path, allowed, .. } => {
                let allowed = if allowed.is_empty() {
                    String::new()
                } else {
                    format!("allowed: {allowed}; ")
                };
                let remedy = format!(
                    "{allowed}correct `{path}` in an editor; quipu status     (shows whether an \
                     earlier version can be restored)"
                );
                Failure::new(exit::NO, what, remedy)
            }
            WorkError::Refused { remedy, .. } => Failure::new(exit::REFUSED, what, remedy),
            WorkError::NotFound { remedy, .. } => Failure::new(exit::NOT_FOUND, what, remedy),
            WorkError::Usage { remedy, .. } => Failure::usage(what, remedy),
            WorkError::Unfinished(_) => Failure::new(exit::REFUSED, what, "quipu finish --dry-run"),
            WorkError::Crowded(_) => Failure::new(
                exit::STALE,
                what,
                "run the same command again: nothing was changed",
            ),
            WorkError::Read(error) => error.into(),
            WorkError::Template(_) => Failure::usage(what, "fix the profile's template"),
            WorkError::Store(error) => error.into(),
        }
    }
}

impl From<FlowError> for Failure {
    fn from(error: FlowError) -> Failure {
        match error {
            FlowError::Project(error) => error.into(),
            FlowError::Store(error) => error.into(),
            FlowError::Template(error) => Failure::usage(
                error.to_string(),
                "quipu profile eject NAME     (then fix the template)",
            ),
            FlowError::Busy | FlowError::NoStage(_) => {
                Failure::new(exit::IO, error.to_string(), "run the same command again")
            }
        }
    }
}

impl From<Withheld> for Failure {
    fn from(withheld: Withheld) -> Failure {
        Failure::new(exit::REFUSED, withheld.what, withheld.remedy)
    }
}

impl From<GateError> for Failure {
    fn from(error: GateError) -> Failure {
        let what = error.to_string();
        match error {
            GateError::Unknown(_) => Failure::new(exit::NOT_FOUND, what, "quipu contract show"),
            GateError::NeedsUnit(_) => Failure::usage(what, "--unit UNIT"),
            GateError::NotWaiting { .. } => Failure::new(exit::REFUSED, what, "quipu status"),
            GateError::Plan { job, .. } => {
                let (what, remedy) = (
                    format!("the plan cannot be approved: {what}"),
                    format!(
                        "fix the plan, then: quipu approve {step}; or send it back: quipu \
                         reject {step} --why \"…\"",
                        step = job.step
                    ),
                );
                Failure::new(exit::REFUSED, what, remedy)
            }
            GateError::Flagged { what, remedy } => Failure::new(exit::REFUSED, what, remedy),
            GateError::Withheld(withheld) => withheld.into(),
            GateError::NoGate(_) => Failure::new(
                exit::REFUSED,
                what,
                "quipu run --step STEP --again --by NAME",
            ),
            GateError::Flow(error) => error.into(),
            GateError::Store(error) => error.into(),
        }
    }
}

impl From<ReviseError> for Failure {
    fn from(error: ReviseError) -> Failure {
        let what = error.to_string();
        match error {
            ReviseError::NoRounds => {
                let remedy = "quipu profile list     (the review profile has rounds)";
                Failure::new(exit::NOT_FOUND, what, remedy)
            }
            ReviseError::NoManuscript(path) => Failure::new(
                exit::NOT_FOUND,
                what,
                format!("quipu write {path} --file PAPER.md"),
            ),
            ReviseError::NotOver { .. } => Failure::new(
                exit::REFUSED,
                what,
                "quipu run --by NAME     (a failed reviewer: quipu approve STEP; a correction \
                 within this round: quipu amend)",
            ),
            ReviseError::Unchanged(_) => {
                Failure::new(exit::REFUSED, what, "name the file with the revised text")
            }
            ReviseError::WhichBibliography(paths) => {
                let path = paths.first().map(ToString::to_string).unwrap_or_default();
                let remedy = format!(
                    "quipu amend {path} --why \"the revision\" --file NEW.bib     (after quipu review \
                     revise, without --bib)"
                );
                Failure::new(exit::REFUSED, what, remedy)
            }
            ReviseError::NotText => {
                let remedy = "pass Markdown, plain text or a PDF";
                Failure::new(exit::REFUSED, what, remedy)
            }
            ReviseError::Withheld(withheld) => withheld.into(),
            ReviseError::Flow(error) => error.into(),
            ReviseError::Gate(error) => error.into(),
            ReviseError::Store(error) => error.into(),
        }
    }
}

impl From<LetterError> for Failure {
    fn from(error: LetterError) -> Failure {
        let what = error.to_string();
        match error {
            LetterError::NoLetter => {
                let remedy = "quipu profile list     (the review profile has a letter)";
                Failure::new(exit::NOT_FOUND, what, remedy)
            }
            LetterError::NoReports => Failure::new(exit::NOT_FOUND, what, "quipu run --by NAME"),
            LetterError::Flow(error) => error.into(),
            LetterError::Store(error) => error.into(),
        }
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Failure {
        let what = error.to_string();
        match error {
            ReplayError::NoRun(_) => Failure::new(
                exit::NOT_FOUND,
                what,
                "quipu replay STEP/UNIT, or PATH for the attempt that wrote it",
            ),
            ReplayError::Ambiguous { .. } => Failure::usage(
                what,
                "quipu replay ATTEMPT, with more characters of its name",
            ),
            ReplayError::NotMade { path, .. } => {
                Failure::new(exit::NOT_FOUND, what, format!("quipu log {path}"))
            }
            ReplayError::Store(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_in_a_message_begins_a_line() {
        let forged = Failure::usage(
            "unknown status `x\nerror: y\n  help  run this\r\u{2028}z`",
            "quipu a\n  rule  b",
        );
        assert_eq!(
            forged.render(),
            "error: unknown status `x\\nerror: y\\n  help  run this\\r\\u{2028}z`\n  help  quipu a\\n  rule  b"
        );
        assert_eq!(
            Failure::usage("it has\n  a.md\n  b.md", "").render(),
            "error: it has\n  a.md\n  b.md"
        );
    }
}
