//! Flows: steps over units. Progress is never stored; the protocol crate derives it from markers,
//! versions and the journal.
//!
//! All differences between flows are data in this module: when a step applies, who may object and
//! which steps repeat then, how a batch ends, which files are merged and which are remembered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fault::Place;
use crate::language::Localized;

/// The scope over which a step repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Each {
    #[default]
    Once,
    Unit,
}

/// The part of a step's report that concerns the reports with a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PanelPart {
    /// It weighs them and gives the verdict.
    Weigh,
    /// It repeats the result of the step that weighs them.
    SumUp,
}

/// A length in each language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WordsIn {
    pub en: usize,
    pub zh: usize,
}

/// Steps that Quipu performs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Builtin {
    /// Merges several outputs into one, when all of them have their markers.
    Merge,
    /// Appends to long-term memory.
    Remember,
    /// Rewrites derived files, and creates missing ones.
    Derive,
    /// Produces the published form.
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
    /// The part of its report that concerns the reports with a domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panel: Option<PanelPart>,
    /// The maximum number of words of its report; of characters in Chinese.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_words: Option<WordsIn>,
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
    /// This step ends a batch of this many units. No unit of the next batch starts before all of
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
    /// The file whose conflicts with memory, and evidence, the brief shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Words of the headings whose sections its report judges; `#` is the title. A revision of one
    /// of these sections calls for a new report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passages: Vec<String>,
    /// The profile that states it; empty for `quipu.toml`.
    #[serde(skip)]
    pub profile: String,
    pub place: Place,
}

/// The condition under which a step applies: all parts given must be true.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct When {
    /// A variable: `yes` and `no` decide alone; with any other value `files` decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// A file that matches this pattern exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// One of these files contains one of these words; case is ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// A variable that names units: `all`, or ids separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<String>,
    /// A variable that must have one of the values in `is`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub var: Option<String>,
    /// The values of `var` with which the step applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub is: Vec<String>,
}

impl When {
    pub fn is_empty(&self) -> bool {
        *self == When::default()
    }
}

/// The form of an objection in an output.
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
    /// The plan: one section for each unit, with the unit's id alone as heading.
    pub from: String,
    /// The names of the line in such a section that contains the unit's title, one for each
    /// language.
    pub title: Vec<String>,
    /// The names of the line that contains the ids of the units it needs.
    pub needs: Vec<String>,
    /// A file with a section for each unit; each contains a table with existing paths in its first
    /// column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// A variable with the required number of units; without a number the plan decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
}

/// How reports are merged into one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// Signs from most to least severe: a sign, or a role and its sign (`r1 ❌`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// The parts of the merged report, by the signs of their items. Without parts, the reports are
    /// joined unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MergePart>,
    /// The heading of the merged report; `{unit}` and variables are replaced.
    #[serde(default)]
    pub title: Localized,
    /// The heading of the verdict.
    #[serde(default)]
    pub verdict: Localized,
    /// The verdict if there is an objection.
    #[serde(default)]
    pub back: Localized,
    /// The verdict if there is no objection.
    #[serde(default)]
    pub on: Localized,
    /// The heading of the table of scores.
    #[serde(default)]
    pub scores: Localized,
    /// The text of a part without items.
    #[serde(default)]
    pub none: Localized,
}

/// A part of a merged report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MergePart {
    pub title: Localized,
    /// The signs that the items of this part begin with.
    pub signs: Vec<String>,
}

/// The entries that are appended to long-term memory, and their source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// The report that lists the new items.
    pub from: String,
    /// The section of the report that contains them, under any of these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub section: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<RememberItem>,
    /// Whether each list item under `## FILE` and `### SECTION` of the report is added to that
    /// section of that file, if the file is memory in the contract (tier L1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub entries: bool,
    /// The text that becomes final, saved as `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The path of the final text; it ends with the step's marker.
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
    /// The file to append to.
    pub to: String,
    /// The way to append: `section` (the text, under the unit's id) or `rows` (rows of a table).
    #[serde(rename = "as")]
    pub kind: RememberKind,
    /// The check for each added row.
    #[serde(default)]
    pub check: RowCheck,
    /// The texts that a part without entries may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub none: Vec<String>,
    /// The number of words of a part: `200-300`, with a tolerance of one fifth.
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

/// A rule for the rows of a memory file. The first column is the key, the second its value, the
/// last names the row that it supersedes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RowCheck {
    #[default]
    None,
    /// Each key has one value.
    OneValue,
    /// Each key has one value, and each value one key.
    OneToOne,
}

/// The price of one million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The price of one million input tokens.
    pub input: f64,
    /// The price of one million output tokens.
    pub output: f64,
}

impl Price {
    /// Returns the cost of this many tokens.
    #[allow(clippy::cast_precision_loss, reason = "a price is an estimate")]
    pub fn cost(self, input: u64, output: u64) -> f64 {
        (input as f64 * self.input + output as f64 * self.output) / 1e6
    }
}

/// How long the folders of attempts are kept. The newest folder of each job and those of running
/// attempts are always kept. The journal records every attempt, even if its folder was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AttemptsKept {
    /// The number of newest folders that are always kept.
    pub keep: usize,
    /// The number of days that other folders are kept.
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
    /// The required number of words: a number, or a variable.
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
