//! Flows: steps over units. Progress is never stored; the protocol crate derives it from markers,
//! versions and the journal.
//!
//! All differences between flows are data in this module: when a step applies, who may object and
//! which steps repeat then, how a batch ends, which files are merged and which are remembered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fault::Place;
use crate::language::Localized;

/// Over what a step repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Each {
    #[default]
    Once,
    Unit,
}

/// Steps that Quipu does itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Builtin {
    /// Joins several outputs into one, when all their markers are there.
    Merge,
    /// Appends to the long-term memory.
    Remember,
    /// Rewrites derived files, and lays out what is missing.
    Derive,
    /// Makes the published form.
    Publish,
    /// Waits for a person.
    Gate,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    pub name: String,
    pub about: Localized,
    /// The role that does it; `None` for a built-in step.
    pub role: Option<String>,
    pub builtin: Option<Builtin>,
    pub each: Each,
    pub after: Vec<String>,
    /// The phase of the flow it belongs to, for display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Scores of steps with the same domain are averaged together; steps without one are not
    /// averaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    #[serde(skip_serializing_if = "When::is_empty")]
    pub when: When,
    /// The text in an output that sends the work back, or stops it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objection: Option<Objection>,
    /// The steps to repeat after an objection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub back: Vec<String>,
    /// Maximum number of objections before a person is asked.
    pub rounds: Option<u32>,
    /// Maximum consecutive failures before a person is asked.
    pub retries: u32,
    /// Time limit of one attempt.
    pub deadline_seconds: u64,
    /// This step ends a batch of this many units. No unit of the next batch begins before all of
    /// these have passed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Files a built-in step reads and writes.
    pub reads: Vec<String>,
    pub writes: Vec<String>,
    pub marker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declare: Option<Declare>,
    /// Two files to compare in the brief, the older first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compare: Vec<String>,
    /// Steps that judge one subject. Scores far apart count as a conflict.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub subjects: BTreeMap<String, Vec<String>>,
    /// Pairs of contradictory advice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub opposites: Vec<Vec<String>>,
    /// The profile that states it; empty for `quipu.toml`.
    #[serde(skip)]
    pub profile: String,
    pub place: Place,
}

/// When a step applies: every part that is said must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct When {
    /// A variable: `yes` and `no` decide alone, anything else looks at `files`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// A file of this pattern is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// And one of them holds one of these words, whatever their letter case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// A variable that names units: `all`, or ids joined by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<String>,
    /// A variable …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub var: Option<String>,
    /// … that has one of these values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub is: Vec<String>,
}

impl When {
    pub fn is_empty(&self) -> bool {
        *self == When::default()
    }
}

/// What in an output is an objection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Objection {
    /// A list item that begins with this sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<String>,
    /// An output that ends with this marker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<String>,
}

/// The units that a gate declares in `quipu.toml` when it is approved.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Declare {
    /// The plan: a section for each unit, headed by its id alone.
    pub from: String,
    /// The names of the line in such a section that is the unit's title, one for each language.
    pub title: Vec<String>,
    /// The names of the line with the ids that it needs.
    pub needs: Vec<String>,
    /// A file with a section for each unit, and in it a table whose first column has paths that are
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// A variable with the number of units that are wanted; without a number the plan decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
}

/// How reports become one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// Gravest first: a sign, or a role and its sign (`r1 ❌`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// The parts of the merged report, by the signs of their items. Without parts the reports
    /// follow one another whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MergePart>,
    /// The heading of the merged report; `{unit}` and variables are filled.
    #[serde(default)]
    pub title: Localized,
    /// The heading of the verdict.
    #[serde(default)]
    pub verdict: Localized,
    /// What the verdict says when someone objects.
    #[serde(default)]
    pub back: Localized,
    /// What the verdict says when no one does.
    #[serde(default)]
    pub on: Localized,
    /// The heading of the table of scores.
    #[serde(default)]
    pub scores: Localized,
    /// What stands where a part has no items.
    #[serde(default)]
    pub none: Localized,
}

/// A part of a merged report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MergePart {
    pub title: Localized,
    /// Items that begin with one of these.
    pub signs: Vec<String>,
}

/// What is appended to the long-term memory, and from where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// The report that lists the new items.
    pub from: String,
    /// The section that holds them, under any of these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub section: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<RememberItem>,
    /// Whether each list item under `## FILE` and `### SECTION` of the report goes to that section
    /// of that file, if the contract counts the file as memory (tier L1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub entries: bool,
    /// The text that becomes final …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// … and under which name; it ends with the step's marker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// One kind of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RememberItem {
    /// The subsection, under any of these names.
    pub section: Vec<String>,
    /// The file that grows.
    pub to: String,
    /// How: `section` (the text, under the unit's id) or `rows` (rows of a table).
    #[serde(rename = "as")]
    pub kind: RememberKind,
    /// What is checked when a row is added.
    #[serde(default)]
    pub check: RowCheck,
    /// A part without entries says one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub none: Vec<String>,
    /// How many words a part has: `200-300`, give or take a fifth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// How new items are appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RememberKind {
    Section,
    Rows,
}

/// What rows of a memory file must keep to. The first column is the key, the second its value, the
/// last what the row supersedes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RowCheck {
    #[default]
    None,
    /// One key has one value.
    OneValue,
    /// One key has one value, and one value one key.
    OneToOne,
}

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// For a million tokens that are read.
    pub input: f64,
    /// For a million tokens that are written.
    pub output: f64,
}

impl Price {
    /// Returns the cost of this many tokens.
    #[allow(clippy::cast_precision_loss, reason = "a price is an estimate")]
    pub fn cost(self, input: u64, output: u64) -> f64 {
        (input as f64 * self.input + output as f64 * self.output) / 1e6
    }
}

/// How long the folders of attempts are kept. The newest of each job, and those that are not over,
/// stay in any case; what happened in a run is in the journal, whether its folder is there or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AttemptsKept {
    /// So many of the newest stay, however old.
    pub keep: usize,
    /// Others stay for so many days.
    pub days: u32,
}

impl Default for AttemptsKept {
    fn default() -> Self {
        AttemptsKept {
            keep: 200,
            days: 30,
        }
    }
}

/// The required shape of a finished text.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Shape {
    /// The wanted number of words: a number, or a variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// Allowed deviation from the number of words, as a fraction.
    pub tolerance: f64,
    /// Minimum and maximum number of headings per level.
    pub headings: BTreeMap<u8, (u32, u32)>,
    /// The required sections, each with its accepted titles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<Vec<String>>,
    /// The folder of the files it names and quotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<String>,
    /// Whether it must score every metric of its role.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub scores: bool,
    /// Whether the text must be original: no copy of another text, and no passage repeated over and
    /// over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub distinct: bool,
    /// The Markdown text that this page must contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shows: Option<String>,
}

/// Parses a duration: `90s`, `30m`, `2h`.
pub(crate) fn parse_seconds(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let number: u64 = digits.parse().ok()?;
    let times = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        _ => return None,
    };
    number.checked_mul(times).filter(|seconds| *seconds > 0)
}

/// Parses a number or a range: `1`, `3-6`.
pub fn parse_span(text: &str) -> Option<(u32, u32)> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let (least, most) = (least.trim().parse().ok()?, most.trim().parse().ok()?);
    (least <= most).then_some((least, most))
}
