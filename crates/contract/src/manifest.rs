//! The format of `quipu.toml` and of a profile's TOML files, as serde types.
//!
//! Unknown keys are faults. Values that later messages refer to by line are [`Spanned`]. The JSON
//! Schema for editors is generated from the same types.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::capture::Capture;
use crate::finish::Occasion;
use crate::flow::{
    AttemptsKept, Builtin, Declare, Each, Merge, Objection, PanelPart, Price, Remember, When,
    WordsIn,
};
use crate::form::Form;
use crate::guard::Fraction;
use crate::hooks::Fail;
use crate::language::{Language, Localized};
use crate::rehearsal::Rehearsal;
use crate::retention::Keep;
use crate::role::AgentKind;
use crate::scene::{Moment, Paragraph};

/// A project's contract: the profiles it uses, and what it adds or overrides.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, schemars(title = "quipu.toml"))]
pub struct Manifest {
    /// The version of this format. Always 1.
    #[cfg_attr(test, schemars(with = "u32", range(min = 1, max = 1)))]
    pub quipu: Spanned<u32>,
    /// Profiles: built-in names (book, novel, relay, worldlog, review) or folders of the project
    /// that contain a `profile.toml`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub profiles: Vec<Spanned<String>>,
    /// The language of the project's files.
    #[serde(default)]
    pub language: Language,
    /// The folder for the memory files: every path of the profiles is below it. By default the
    /// project's folder.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub dir: Option<Spanned<String>>,
    /// Values for `{name}` in paths and templates.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub vars: BTreeMap<String, Spanned<String>>,
    /// Units of work by id, in order: `[units.ch01]`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, UnitTable>"))]
    pub units: BTreeMap<String, Spanned<UnitTable>>,
    /// File rules. They take precedence over those of the profiles.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<FileTable>"))]
    pub files: Vec<Spanned<FileTable>>,
    /// Roles. A role with the name of a profile's role replaces it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, RoleTable>"))]
    pub roles: BTreeMap<String, Spanned<RoleTable>>,
    /// Steps. A step with the name of a profile's step replaces it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<StepTable>"))]
    pub steps: Vec<Spanned<StepTable>>,
    /// The checklist of `quipu finish`. An item with the name of a profile's item replaces it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<FinishTable>"))]
    pub finish: Vec<Spanned<FinishTable>>,
    /// Variants of the start text. A scene with the name of a profile's scene replaces it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, SceneTable>"))]
    pub scenes: BTreeMap<String, Spanned<SceneTable>>,
    /// Settings for git, apart from merging.
    #[serde(default)]
    pub git: GitTable,
    /// The parts of an agent host's conversations that the journal records: `off`, `requests` (the
    /// user's requests), or `full` (also the names of changed files and the agent's last message).
    /// Default full.
    #[serde(default)]
    pub capture: Capture,
    /// Settings for the hooks of agent hosts.
    #[serde(default)]
    pub hooks: HooksTable,
    /// The token budget of an agent's context window.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BudgetTable"))]
    pub budget: Option<Spanned<BudgetTable>>,
    /// The price of one million tokens for each agent, for estimates; `default` applies to all
    /// others.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    /// How long the folders of attempts are kept.
    #[serde(default)]
    pub attempts: AttemptsKept,
    /// The old versions that `quipu history prune` keeps.
    #[serde(default)]
    pub history: HistoryTable,
    /// Your own agents, by name: a program, or a model at an address; see the guide on agents.
    /// Allowed only here, not in a profile: a profile contains rules, not programs.
    #[serde(default)]
    #[cfg_attr(
        test,
        schemars(with = "BTreeMap<String, BTreeMap<String, serde_json::Value>>")
    )]
    pub agents: BTreeMap<String, toml::Table>,
    /// The shared store of the project, if it has one: `postgres://user@host/database`. Without a
    /// password.
    #[serde(default)]
    pub store: Option<String>,
    /// Checks on new text.
    #[serde(default)]
    pub guards: GuardTable,
    /// Folders and files to skip when the project is scanned. Files that a rule names or that a
    /// commit changed are never skipped.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub ignore: Vec<Spanned<String>>,
}

/// A profile: `profile.toml`, or a file that it includes.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, schemars(title = "profile.toml"))]
pub struct ProfileFile {
    /// The purpose of the profile, in one sentence.
    #[serde(default)]
    pub about: Option<Localized>,
    /// The text shown after `quipu init`: where the files are, and what to do first.
    #[serde(default)]
    pub welcome: Option<Localized>,
    /// The text that `quipu integrate` gives to agents, as list items: which commands to use, and
    /// when.
    #[serde(default)]
    pub guide: Option<Localized>,
    /// The command to use instead of one that only other profiles have: `task = 'quipu todo add
    /// "…"'`.
    #[serde(default)]
    pub instead: BTreeMap<String, String>,
    /// Further files in the profile's folder with more of the same keys.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub include: Vec<Spanned<String>>,
    /// The name of a unit and the form of its id.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<UnitKindTable>"))]
    pub unit: Option<Spanned<UnitKindTable>>,
    /// Units that every project of this profile has.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, UnitTable>"))]
    pub units: BTreeMap<String, Spanned<UnitTable>>,
    /// Variables with their meaning and default.
    #[serde(default)]
    pub vars: BTreeMap<String, VarTable>,
    /// Folders that `init` creates, in addition to those of the files.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub folders: Vec<Spanned<String>>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<FileTable>"))]
    pub files: Vec<Spanned<FileTable>>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, RoleTable>"))]
    pub roles: BTreeMap<String, Spanned<RoleTable>>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<StepTable>"))]
    pub steps: Vec<Spanned<StepTable>>,
    /// The checklist of `quipu finish`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<FinishTable>"))]
    pub finish: Vec<Spanned<FinishTable>>,
    /// Variants of the start text.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, SceneTable>"))]
    pub scenes: BTreeMap<String, Spanned<SceneTable>>,
    /// The token budget of an agent's context window.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BudgetTable"))]
    pub budget: Option<Spanned<BudgetTable>>,
    /// The price of one million tokens for each agent, for estimates; `default` applies to all
    /// others.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
}

/// The kind of a profile's units.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UnitKindTable {
    /// The name of one unit: chapter, session, task.
    pub name: Localized,
    /// The form of the ids: `ch##` is `ch` and at least two digits; `*` is any name.
    pub id: String,
}

/// A unit of work.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UnitTable {
    #[serde(default)]
    pub title: Option<Localized>,
    /// Units that must be done first.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub needs: Vec<Spanned<String>>,
    /// Variables for this unit only.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
}

/// A variable of a profile.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VarTable {
    pub about: Localized,
    #[serde(default)]
    pub default: Option<Localized>,
}

/// A rule for files.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileTable {
    /// A path, with `*`, `**`, `{unit}`, `{agent}` or a variable.
    #[cfg_attr(test, schemars(with = "String"))]
    pub path: Spanned<String>,
    /// How the file may change.
    #[cfg_attr(test, schemars(with = "ClassName"))]
    pub class: Spanned<String>,
    /// A description of the file's contents.
    #[serde(default)]
    pub about: Option<Localized>,
    /// The tier of the file: L0 always in view, L1 memory, L2 full texts.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<TierName>"))]
    pub tier: Option<Spanned<String>>,
    /// The structure of the file, for the commands that change parts of it.
    #[serde(default)]
    pub form: Option<Form>,
    /// The marker that shows that the file is complete.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub marker: Option<Spanned<String>>,
    /// Whether `init` creates it from a template of the same path.
    #[serde(default)]
    pub create: bool,
    /// Whether roles change it only in a finish. People may always change it.
    #[serde(default)]
    pub at_finish: bool,
    /// The required shape of the finished text; `quipu run` checks it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<ShapeTable>"))]
    pub shape: Option<Spanned<ShapeTable>>,
    /// The reaction to a text that contradicts memory: `warn`, `block`, or the name of a variable
    /// with one of these values.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub conflicts: Option<Spanned<String>>,
    /// Headings of sections with open points: a gate that reads the file shows their items to the
    /// person who decides.
    #[serde(default)]
    pub open: Vec<String>,
    /// The roles that may write it if their pointers name it; an empty list keeps every role out,
    /// whatever its pointers name. Without it, the pointers decide.
    #[serde(default)]
    pub roles: Option<Vec<String>>,
}

/// The required shape of a finished text.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ShapeTable {
    /// The required number of words: a number, or the name of a variable.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub words: Option<Spanned<String>>,
    /// The allowed deviation from the number of words, as a fraction. Default 0.2.
    #[serde(default)]
    pub tolerance: Option<f64>,
    /// The number of headings of level 1: `1`, or `3-6`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub h1: Option<Spanned<String>>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub h2: Option<Spanned<String>>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub h3: Option<Spanned<String>>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub h4: Option<Spanned<String>>,
    /// Headings that must exist with text below them. `|` separates alternative names:
    /// `Verdict|结论`.
    #[serde(default)]
    pub sections: Vec<String>,
    /// A folder: every `path:line` must exist in it, and a code block with a place on the line
    /// above must match the source at that place.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub places: Option<Spanned<String>>,
    /// Whether every metric of the role must have a score, a whole number from 1 to 5.
    #[serde(default)]
    pub scores: bool,
    /// Whether the text must differ from every other text under the same rule and must not repeat
    /// itself.
    #[serde(default)]
    pub distinct: bool,
    /// The Markdown text that this page must contain in full, in order.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub shows: Option<Spanned<String>>,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[cfg_attr(test, schemars(rename_all = "lowercase"))]
#[allow(dead_code, reason = "only its schema is used")]
enum ClassName {
    Sealed,
    Append,
    Record,
    Overwrite,
    State,
    Derived,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
enum TierName {
    L0,
    L1,
    L2,
}

/// A role and its pointers.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoleTable {
    pub title: Localized,
    /// Completes "You are the {title}, responsible for …".
    pub duty: Localized,
    #[serde(default)]
    pub kind: AgentKind,
    /// Roles of other profiles that this role includes, if those profiles are used: it may read and
    /// write what they may.
    #[serde(default)]
    pub also: Vec<String>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<PointerTable>"))]
    pub read: Vec<Spanned<PointerTable>>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<WriteTable>"))]
    pub write: Vec<Spanned<WriteTable>>,
    /// Paths that the role must not read, with the reason.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<PointerTable>"))]
    pub deny: Vec<Spanned<PointerTable>>,
    /// Files that the role may not read but may query with `quipu ask`, one question at a time.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<AskTable>"))]
    pub ask: Vec<Spanned<AskTable>>,
    /// Quality standards, one sentence each.
    #[serde(default)]
    pub standards: Vec<Localized>,
    /// The metrics that the role scores.
    #[serde(default)]
    pub metrics: Vec<Localized>,
    /// The work of the built-in rehearsal agent in this role.
    #[serde(default)]
    pub rehearse: Option<RehearseTable>,
}

/// The rehearsal of a role without a model.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RehearseTable {
    /// The kind of work.
    #[serde(rename = "as")]
    pub kind: Rehearsal,
    /// The input file, among those the role reads.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub from: Option<Spanned<String>>,
}

/// A pointer to read (or deny).
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PointerTable {
    #[cfg_attr(test, schemars(with = "String"))]
    pub path: Spanned<String>,
    /// Only this section: an anchor, with variables.
    #[serde(default)]
    pub section: Option<String>,
    #[serde(default)]
    pub why: Option<Localized>,
    /// `must` (default) or `if-room`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub need: Option<Spanned<String>>,
    /// How it may be shortened: auto, recent(N), relevant, section, head, stage, never.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub shrink: Option<Spanned<String>>,
    /// A file that names the files to show in the section for the unit, in the first column of a
    /// table; all other files are only listed.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub map: Option<Spanned<String>>,
}

/// Files that may be queried but not read.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AskTable {
    #[cfg_attr(test, schemars(with = "String"))]
    pub path: Spanned<String>,
}

/// A pointer to write.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WriteTable {
    #[cfg_attr(test, schemars(with = "String"))]
    pub path: Spanned<String>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub marker: Option<Spanned<String>>,
    /// The required format of the text.
    #[serde(default)]
    pub format: Option<Localized>,
    /// Whether an attempt may omit this output.
    #[serde(default)]
    pub optional: bool,
    /// The usual number of words, for estimates.
    #[serde(default)]
    pub words: Option<u32>,
}

/// A step of a flow.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepTable {
    #[cfg_attr(test, schemars(with = "String"))]
    pub name: Spanned<String>,
    #[serde(default)]
    pub about: Option<Localized>,
    /// The role that performs the step.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub role: Option<Spanned<String>>,
    /// The built-in step that Quipu performs itself, instead of a role.
    #[serde(default)]
    pub builtin: Option<Builtin>,
    #[serde(default)]
    pub each: Each,
    /// Steps that must be done first.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub after: Vec<Spanned<String>>,
    /// The phase of the flow that it belongs to, for display.
    #[serde(default)]
    pub phase: Option<String>,
    /// Scores of steps with the same domain are averaged together.
    #[serde(default)]
    pub domain: Option<String>,
    /// `weigh`: the report weighs the reports with a domain and gives the verdict. `sum-up`: it
    /// repeats that result. Both are checked against the computed result.
    #[serde(default)]
    pub panel: Option<PanelPart>,
    /// The maximum number of words of the report, `{ en = 400, zh = 700 }`; of characters in
    /// Chinese.
    #[serde(default)]
    pub most_words: Option<WordsIn>,
    /// The condition under which the step applies; otherwise it is skipped.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<When>"))]
    pub when: Option<Spanned<When>>,
    /// The form of an objection in an output.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Objection>"))]
    pub objection: Option<Spanned<Objection>>,
    /// The steps that an objection sends the work back to.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub back: Vec<Spanned<String>>,
    /// The maximum number of times that an objection sends the work back.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<u32>"))]
    pub rounds: Option<Spanned<u32>>,
    /// The number of consecutive failures after which a person is asked. Default 3.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<u32>"))]
    pub retries: Option<Spanned<u32>>,
    /// The time limit of one attempt: `90s`, `30m`, `2h`. Default 30m.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub deadline: Option<Spanned<String>>,
    /// This step ends a batch of this many units: a number, or the name of a variable.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub batch: Option<Spanned<String>>,
    /// How `merge` merges reports.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Merge>"))]
    pub merge: Option<Spanned<Merge>>,
    /// The entries that `remember` appends, and their source.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Remember>"))]
    pub remember: Option<Spanned<Remember>>,
    /// The units that a `gate` declares when it is approved.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Declare>"))]
    pub declare: Option<Spanned<Declare>>,
    /// Two files; the brief shows their difference. The older file comes first. For a role that
    /// checks a revision.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub compare: Option<Spanned<Vec<String>>>,
    /// A file; the brief shows where it contradicts memory, with the evidence for its other claims.
    /// A report of this step must answer each contradiction.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub check: Option<Spanned<String>>,
    /// Words of the headings whose sections its report judges; `#` is the title. A revision of one
    /// of these sections calls for a new report.
    #[serde(default)]
    pub passages: Vec<String>,
    /// Files that a built-in step reads.
    #[serde(default)]
    pub reads: Vec<String>,
    /// Files that a built-in step writes.
    #[serde(default)]
    pub writes: Vec<String>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub marker: Option<Spanned<String>>,
}

/// An item of the finish checklist.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FinishTable {
    #[cfg_attr(test, schemars(with = "String"))]
    pub name: Spanned<String>,
    /// The request, in one sentence.
    pub text: Localized,
    /// The form of the files it concerns.
    pub form: Form,
    /// The condition: changed, created, answered, filled(/pointer), filled(#section), cleared,
    /// settled.
    #[cfg_attr(test, schemars(with = "String"))]
    pub need: Spanned<String>,
    /// When the item applies.
    #[serde(default)]
    pub when: Occasion,
    /// The roles it applies to; by default all.
    #[serde(default)]
    pub roles: Vec<String>,
    /// The command that fulfils it.
    #[serde(rename = "do")]
    pub supply: String,
}

/// A variant of the start text.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SceneTable {
    /// The role of the scene.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub role: Option<Spanned<String>>,
    /// The sections to show, most important first.
    #[serde(default)]
    pub show: Vec<Paragraph>,
    /// The next steps: one text, or several steps, each for its situation.
    #[serde(default)]
    pub next: Option<NextTable>,
}

/// The next steps.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum NextTable {
    Steps(Vec<StepText>),
    Text(Localized),
}

/// One next step.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepText {
    /// When it applies.
    #[serde(default)]
    pub when: Moment,
    pub text: Localized,
    /// A shorter form, for a small budget.
    #[serde(default)]
    pub short: Option<Localized>,
}

/// Settings for git.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GitTable {
    /// Whether `quipu finish` commits the memory files it wrote to git. Default false.
    #[serde(default)]
    pub finish: bool,
}

/// The old versions to keep.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HistoryTable {
    /// Keep this number of versions of each file (`50`), or all versions of this period (`"180
    /// days"`). Default: all. Versions are deleted only when a person runs `quipu history prune`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<KeepForms>"))]
    pub keep: Option<Keep>,
}

/// A number of versions, or a text such as `180 days`.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum KeepForms {
    Versions(#[schemars(range(min = 1))] u32),
    Text(#[schemars(regex(pattern = r"^[1-9][0-9]*( ?(days?|versions?))?$"))] String),
}

/// Settings for the hooks of agent hosts.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HooksTable {
    /// The treatment of an edit that cannot be checked: `open` allows it, `closed` denies it.
    /// Default open.
    #[serde(default)]
    pub fail: Fail,
}

/// The token budget of an agent's context window: window minus system prompt minus reserve is
/// available for reading.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BudgetTable {
    /// The size of the context window. Default 128,000 for `explore`, 200,000 for
    /// `general-purpose`.
    #[serde(default)]
    pub window: Option<u64>,
    /// Tokens reserved for the agent's output. Default: three times the usual output of the role;
    /// if the contract does not state its length, 8,000 for `explore` and 16,000 for
    /// `general-purpose`.
    #[serde(default)]
    pub reserve: Option<u64>,
    /// The size of the system prompt: the host's own and the brief. Default 4,000.
    #[serde(default)]
    pub system: Option<u64>,
    /// Values for `explore` agents, which override those above.
    #[serde(default)]
    pub explore: BudgetNumbers,
    /// Values for `general-purpose` agents, which override those above.
    #[serde(default)]
    pub general_purpose: BudgetNumbers,
}

/// The token budget of one kind of agent.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BudgetNumbers {
    #[serde(default)]
    pub window: Option<u64>,
    #[serde(default)]
    pub reserve: Option<u64>,
    #[serde(default)]
    pub system: Option<u64>,
}

/// Checks on new text.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GuardTable {
    /// Replacing a file by less than this fraction of it needs `--force`. Default 0.5; 0 disables
    /// the check.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<f64>", range(min = 0.0, max = 1.0)))]
    pub shrink_below: Option<Spanned<Fraction>>,
    /// Paths in which text that looks like a credential is allowed.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub credentials_in: Vec<Spanned<String>>,
    /// Literal texts that look like credentials but are not.
    #[serde(default)]
    pub credentials: Vec<String>,
}
