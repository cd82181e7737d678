//! The format of `quipu.toml` and of a profile's TOML files, as serde types.
//!
//! Unknown keys are faults. Values that later messages refer to by line are [`Spanned`]. The JSON
//! Schema for editors is generated from the same types.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::capture::Capture;
use crate::finish::Occasion;
use crate::flow::{AttemptsKept, Builtin, Declare, Each, Merge, Objection, Price, Remember, When};
use crate::form::Form;
use crate::guard::Fraction;
use crate::hooks::Fail;
use crate::language::{Language, Localized};
use crate::rehearsal::Rehearsal;
use crate::retention::Keep;
use crate::role::AgentKind;
use crate::scene::{Moment, Paragraph};

/// A project's contract: the profiles it takes and what it adds or overrides.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, schemars(title = "quipu.toml"))]
pub struct Manifest {
    /// Version of this format. Always 1.
    #[cfg_attr(test, schemars(with = "u32", range(min = 1, max = 1)))]
    pub quipu: Spanned<u32>,
    /// Profiles: built-in names (book, novel, relay, worldlog, review) or folders of the project
    /// that hold a `profile.toml`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub profiles: Vec<Spanned<String>>,
    /// The language the project's own files are written in.
    #[serde(default)]
    pub language: Language,
    /// The folder that holds the memory files: every path of the profiles is below it. Without it,
    /// the project's own folder.
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
    /// File rules; they come before those of the profiles.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<FileTable>"))]
    pub files: Vec<Spanned<FileTable>>,
    /// Roles; one with the name of a profile's role replaces it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, RoleTable>"))]
    pub roles: BTreeMap<String, Spanned<RoleTable>>,
    /// Steps; one with the name of a profile's step replaces it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<StepTable>"))]
    pub steps: Vec<Spanned<StepTable>>,
    /// What must be so before anyone may say "done". One with the name of a profile's item replaces
    /// it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<FinishTable>"))]
    pub finish: Vec<Spanned<FinishTable>>,
    /// The ways to wake up. One with the name of a profile's scene replaces it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, SceneTable>"))]
    pub scenes: BTreeMap<String, Spanned<SceneTable>>,
    /// What Quipu does with git, beside merging.
    #[serde(default)]
    pub git: GitTable,
    /// What the journal records of an agent host's conversations: `off`, `requests` (what the user
    /// asked), or `full` (also the names of changed files and the agent's last message). Default
    /// full.
    #[serde(default)]
    pub capture: Capture,
    /// What the hooks of agent hosts do.
    #[serde(default)]
    pub hooks: HooksTable,
    /// How much text an agent's window has room for.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BudgetTable"))]
    pub budget: Option<Spanned<BudgetTable>>,
    /// What a million tokens cost with each agent, for estimates; `default` holds for the others.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    /// How long the folders of attempts are kept.
    #[serde(default)]
    pub attempts: AttemptsKept,
    /// Which old texts the history keeps when a person runs `quipu history prune`.
    #[serde(default)]
    pub history: HistoryTable,
    /// Agents of your own, by name, as in the guide on agents: a program, a model behind an
    /// address. Only here, not in a profile: a profile brings rules, not programs.
    #[serde(default)]
    #[cfg_attr(
        test,
        schemars(with = "BTreeMap<String, BTreeMap<String, serde_json::Value>>")
    )]
    pub agents: BTreeMap<String, toml::Table>,
    /// Where the project's order is kept, if not here: `postgres://user@host/database`. Without a
    /// password.
    #[serde(default)]
    pub store: Option<String>,
    /// What is refused when it is written.
    #[serde(default)]
    pub guards: GuardTable,
    /// Folders and files that are left out when the files are looked through. Those that a rule
    /// names, or that a commit touched, are never left out.
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
    /// What the profile is for, one sentence.
    #[serde(default)]
    pub about: Option<Localized>,
    /// Shown after `quipu init`: what lies where, and what to do first.
    #[serde(default)]
    pub welcome: Option<Localized>,
    /// What `quipu integrate` tells agents about this profile, as list items: which commands to
    /// use, and when.
    #[serde(default)]
    pub guide: Option<Localized>,
    /// What to use here in place of a command that only other profiles have: `task = 'quipu todo
    /// add "…"'`.
    #[serde(default)]
    pub instead: BTreeMap<String, String>,
    /// Further files of the profile's folder with more of the same keys.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub include: Vec<Spanned<String>>,
    /// What a unit is called and how its id looks.
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
    /// Folders that `init` makes, besides those of the files.
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
    /// What must be so before anyone may say "done".
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<FinishTable>"))]
    pub finish: Vec<Spanned<FinishTable>>,
    /// The ways to wake up.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, SceneTable>"))]
    pub scenes: BTreeMap<String, Spanned<SceneTable>>,
    /// How much text an agent's window has room for.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BudgetTable"))]
    pub budget: Option<Spanned<BudgetTable>>,
    /// What a million tokens cost with each agent, for estimates; `default` holds for the others.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
}

/// The kind of a profile's units.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UnitKindTable {
    /// What one is called: chapter, session, task.
    pub name: Localized,
    /// How ids look: `ch##` is `ch` and at least two digits; `*` is any name.
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
    /// Variables that hold for this unit only.
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

/// A rule over files.
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
    /// What the file holds.
    #[serde(default)]
    pub about: Option<Localized>,
    /// How near to an agent it is: L0 always in view, L1 memory, L2 full texts.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<TierName>"))]
    pub tier: Option<Spanned<String>>,
    /// What is inside, for the commands that change parts of it.
    #[serde(default)]
    pub form: Option<Form>,
    /// The marker that proves it complete.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub marker: Option<Spanned<String>>,
    /// Whether `init` makes it from a template of the same path.
    #[serde(default)]
    pub create: bool,
    /// What the finished text must look like; `quipu run` checks it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<ShapeTable>"))]
    pub shape: Option<Spanned<ShapeTable>>,
    /// What a text that contradicts memory meets: `warn`, `block`, or the name of a variable that
    /// says which.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub conflicts: Option<Spanned<String>>,
}

/// What a finished text must look like.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ShapeTable {
    /// How many words are wanted: a number, or the name of a variable.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub words: Option<Spanned<String>>,
    /// How far off they may be, as a share. Default 0.2.
    #[serde(default)]
    pub tolerance: Option<f64>,
    /// How many headings of level 1: `1`, or `3-6`.
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
    /// Headings that must be there with text below them; names that serve as well are joined by
    /// `|`: `Verdict|结论`.
    #[serde(default)]
    pub sections: Vec<String>,
    /// A folder: every `path:line` is there, and a block of code with its place on the line above
    /// stands at that place.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub places: Option<Spanned<String>>,
    /// Whether every metric of the role is scored, by a whole number from 1 to 5.
    #[serde(default)]
    pub scores: bool,
    /// Whether the text must differ from every other under the same rule, and not repeat itself.
    #[serde(default)]
    pub distinct: bool,
    /// The Markdown text whose words must all be on this page, in order.
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
    /// Roles of other profiles that it is as well, where those profiles are taken: it reads and
    /// writes what they do.
    #[serde(default)]
    pub also: Vec<String>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<PointerTable>"))]
    pub read: Vec<Spanned<PointerTable>>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<WriteTable>"))]
    pub write: Vec<Spanned<WriteTable>>,
    /// What it must not read, with the reason.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<PointerTable>"))]
    pub deny: Vec<Spanned<PointerTable>>,
    /// What it may ask one question at a time with `quipu ask`, although it does not read it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<AskTable>"))]
    pub ask: Vec<Spanned<AskTable>>,
    /// Quality standards, one sentence each.
    #[serde(default)]
    pub standards: Vec<Localized>,
    /// What it scores, where it scores.
    #[serde(default)]
    pub metrics: Vec<Localized>,
    /// What the built-in agent does in this role.
    #[serde(default)]
    pub rehearse: Option<RehearseTable>,
}

/// How a role is rehearsed without a model.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RehearseTable {
    /// The kind of work.
    #[serde(rename = "as")]
    pub kind: Rehearsal,
    /// The file that is the matter at hand, among those the role reads.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub from: Option<Spanned<String>>,
}

/// A pointer that is read (or denied).
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
    /// How it may shrink: auto, recent(N), relevant, section, head, stage, never.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub shrink: Option<Spanned<String>>,
    /// A file whose section for the unit names, in the first column of a table, the files to show;
    /// the others are only listed.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub map: Option<Spanned<String>>,
}

/// Texts that may be asked and are not read.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AskTable {
    #[cfg_attr(test, schemars(with = "String"))]
    pub path: Spanned<String>,
}

/// A pointer that is written.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WriteTable {
    #[cfg_attr(test, schemars(with = "String"))]
    pub path: Spanned<String>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub marker: Option<Spanned<String>>,
    /// What form the text has to have.
    #[serde(default)]
    pub format: Option<Localized>,
    /// A run may go without it.
    #[serde(default)]
    pub optional: bool,
    /// How many words it usually has, for estimates.
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
    /// The role that does it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub role: Option<Spanned<String>>,
    /// Or what Quipu does itself.
    #[serde(default)]
    pub builtin: Option<Builtin>,
    #[serde(default)]
    pub each: Each,
    /// Steps that must be done first.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub after: Vec<Spanned<String>>,
    /// The part of the flow it belongs to, for whoever watches.
    #[serde(default)]
    pub phase: Option<String>,
    /// Scores of steps with one domain are averaged together.
    #[serde(default)]
    pub domain: Option<String>,
    /// When it applies; otherwise it is left out.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<When>"))]
    pub when: Option<Spanned<When>>,
    /// What in an output is an objection.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Objection>"))]
    pub objection: Option<Spanned<Objection>>,
    /// The steps that an objection sends the work back to.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub back: Vec<Spanned<String>>,
    /// How often an objection may send the work back.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<u32>"))]
    pub rounds: Option<Spanned<u32>>,
    /// So many failures in a row, and a person is asked. Default 3.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<u32>"))]
    pub retries: Option<Spanned<u32>>,
    /// How long one attempt may take: `90s`, `30m`, `2h`. Default 30m.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub deadline: Option<Spanned<String>>,
    /// It ends a batch of so many units: a number, or the name of a variable.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub batch: Option<Spanned<String>>,
    /// How `merge` joins reports.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Merge>"))]
    pub merge: Option<Spanned<Merge>>,
    /// What `remember` appends, and from where.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Remember>"))]
    pub remember: Option<Spanned<Remember>>,
    /// The units that a `gate` declares when it is approved.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Declare>"))]
    pub declare: Option<Spanned<Declare>>,
    /// Two files of which the brief shows the difference, the older first: for a role that checks a
    /// revision.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub compare: Option<Spanned<Vec<String>>>,
    /// Steps that judge one subject: scores two or more apart are a conflict.
    #[serde(default)]
    pub subjects: BTreeMap<String, Vec<String>>,
    /// Words of advice that cannot both be followed.
    #[serde(default)]
    pub opposites: Vec<Vec<String>>,
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
    /// What is asked for, one sentence.
    pub text: Localized,
    /// The form of the files it is about.
    pub form: Form,
    /// What must hold: changed, created, answered, filled(/pointer), filled(#section), cleared,
    /// settled.
    #[cfg_attr(test, schemars(with = "String"))]
    pub need: Spanned<String>,
    /// When it counts.
    #[serde(default)]
    pub when: Occasion,
    /// The roles it is asked of; everyone without.
    #[serde(default)]
    pub roles: Vec<String>,
    /// The command that supplies it.
    #[serde(rename = "do")]
    pub supply: String,
}

/// A way to wake up.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SceneTable {
    /// The role that wakes so.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub role: Option<Spanned<String>>,
    /// What it is shown, the most important first.
    #[serde(default)]
    pub show: Vec<Paragraph>,
    /// What to do next: one text, or steps of which each applies at its moment.
    #[serde(default)]
    pub next: Option<NextTable>,
}

/// What to do next.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum NextTable {
    Steps(Vec<StepText>),
    Text(Localized),
}

/// One step of what to do next.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepText {
    /// When it applies.
    #[serde(default)]
    pub when: Moment,
    pub text: Localized,
    /// The same in fewer words, for a small budget.
    #[serde(default)]
    pub short: Option<Localized>,
}

/// What Quipu does with git.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GitTable {
    /// Whether `quipu finish` makes a git commit of the memory files it wrote. Default false.
    #[serde(default)]
    pub finish: bool,
}

/// Which old texts the history keeps.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HistoryTable {
    /// So many versions of each file (`50`), or those of so many days (`"180 days"`). Default: all.
    /// Nothing is dropped before a person runs `quipu history prune`.
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

/// What the hooks of agent hosts do.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HooksTable {
    /// What happens to an edit that cannot be judged: `open` lets it go ahead, `closed` denies it.
    /// Default open.
    #[serde(default)]
    pub fail: Fail,
}

/// The room in an agent's window, in tokens: the window less the system prompt less the reserve is
/// for reading.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BudgetTable {
    /// Everything the agent can hold at once. Default 128,000 for `explore`, 200,000 for
    /// `general-purpose`.
    #[serde(default)]
    pub window: Option<u64>,
    /// Kept free for what the agent writes. Default: three times what the role usually writes;
    /// 8,000 for `explore` and 16,000 for `general-purpose` where the contract says nothing of its
    /// length.
    #[serde(default)]
    pub reserve: Option<u64>,
    /// The system prompt: the host's own, and the brief. Default 4,000.
    #[serde(default)]
    pub system: Option<u64>,
    /// Numbers for agents that explore, before those above.
    #[serde(default)]
    pub explore: BudgetNumbers,
    /// Numbers for general-purpose agents, before those above.
    #[serde(default)]
    pub general_purpose: BudgetNumbers,
}

/// The room in the window of one kind of agent.
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

/// What is refused when it is written.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GuardTable {
    /// Replacing a file by less than this share of it needs `--force`. Default 0.5; 0 turns it off.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<f64>", range(min = 0.0, max = 1.0)))]
    pub shrink_below: Option<Spanned<Fraction>>,
    /// Paths in which text that looks like a credential is allowed.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub credentials_in: Vec<Spanned<String>>,
    /// Literal texts that look like credentials and are none.
    #[serde(default)]
    pub credentials: Vec<String>,
}
