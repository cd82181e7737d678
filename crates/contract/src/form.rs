//! Forms: the content type of a file, for the commands that read and write parts of it.
//!
//! A command such as `quipu todo add` does not know a path: it asks the contract which file has the
//! form `todos`. A profile can therefore choose any path for such a file.

use serde::{Deserialize, Serialize};

/// The structure of a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The identity of the project: its purpose and its constraints.
    Identity,
    /// The current state: a JSON object with phase, task and progress.
    State,
    /// A JSON list of todos.
    Todos,
    /// Decisions, one section each, newest last.
    Decisions,
    /// A delegated task and, below it, its reports.
    Delegation,
    /// The shared world state: sections of keyed lines.
    World,
    /// The record of one task.
    Session,
    /// The knowledge of one agent.
    Knowledge,
    /// Knowledge that people give to agents: a start names the files with their titles.
    Guidance,
    /// One agent's working memory for its current task.
    Task,
    /// A finished text of a unit, which is published.
    Chapter,
    /// A chapter as a page.
    Page,
    /// The table of contents of all pages.
    Contents,
    /// The stylesheet of all pages.
    Stylesheet,
    /// The images that pages show.
    Media,
    /// All chapters as one EPUB.
    Ebook,
    /// The glossary as a page.
    GlossaryPage,
    /// The page that searches all others.
    SearchPage,
    /// All chapters on one page, for printing.
    PrintPage,
    /// The source files that chapters cite, as pages.
    SourcePage,
    /// Anomalies of a flow, one section each.
    Audit,
    /// The text under review. Views number its lines, and comments cite them.
    Manuscript,
    /// The works that the manuscript cites, in BibTeX or BibLaTeX. Views number its lines.
    Bibliography,
    /// The criteria of the outlet for a manuscript, and its limits of length.
    Criteria,
    /// The report of one reviewing agent, with scores.
    Report,
    /// The findings of Quipu in the manuscript, made without a model; they have no score.
    Checks,
    /// The files of the earlier rounds of a review, a folder for each.
    Rounds,
    /// The letter to the authors; the ending of its name decides whether it is a page, Markdown or
    /// SARIF.
    Letter,
    /// The state of a review, derived from its reports.
    Panel,
    /// The path and first line of each file; Quipu maintains it.
    Index,
    /// Terms with their definitions, and the words that must not be used for them.
    Glossary,
    /// Metaphors, and the concept that each belongs to.
    Metaphors,
    /// Cross-references between units, with their subjects.
    References,
    /// Story threads: what was planted, when it is due, where it was closed.
    Threads,
    /// The events of the story: one section per arc, one subsection per chapter.
    Chronicle,
    /// The plan of the story: intentions, not facts.
    Outline,
    /// Facts proposed for memory.
    Facts,
    /// Accepted conflicts.
    Waivers,
    /// Conflicts that models have found, with both texts.
    Judgements,
}

impl Form {
    pub const ALL: [Form; 39] = [
        Form::Identity,
        Form::State,
        Form::Todos,
        Form::Decisions,
        Form::Delegation,
        Form::World,
        Form::Session,
        Form::Knowledge,
        Form::Guidance,
        Form::Task,
        Form::Chapter,
        Form::Page,
        Form::Contents,
        Form::Stylesheet,
        Form::Media,
        Form::Ebook,
        Form::GlossaryPage,
        Form::SearchPage,
        Form::PrintPage,
        Form::SourcePage,
        Form::Audit,
        Form::Manuscript,
        Form::Bibliography,
        Form::Criteria,
        Form::Report,
        Form::Checks,
        Form::Rounds,
        Form::Letter,
        Form::Panel,
        Form::Index,
        Form::Glossary,
        Form::Metaphors,
        Form::References,
        Form::Threads,
        Form::Chronicle,
        Form::Outline,
        Form::Facts,
        Form::Waivers,
        Form::Judgements,
    ];

    /// The name in the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Form::Identity => "identity",
            Form::State => "state",
            Form::Todos => "todos",
            Form::Decisions => "decisions",
            Form::Delegation => "delegation",
            Form::World => "world",
            Form::Session => "session",
            Form::Knowledge => "knowledge",
            Form::Guidance => "guidance",
            Form::Task => "task",
            Form::Chapter => "chapter",
            Form::Page => "page",
            Form::Contents => "contents",
            Form::Stylesheet => "stylesheet",
            Form::Media => "media",
            Form::Ebook => "ebook",
            Form::GlossaryPage => "glossary-page",
            Form::SearchPage => "search-page",
            Form::PrintPage => "print-page",
            Form::SourcePage => "source-page",
            Form::Audit => "audit",
            Form::Manuscript => "manuscript",
            Form::Bibliography => "bibliography",
            Form::Criteria => "criteria",
            Form::Report => "report",
            Form::Checks => "checks",
            Form::Rounds => "rounds",
            Form::Letter => "letter",
            Form::Panel => "panel",
            Form::Index => "index",
            Form::Glossary => "glossary",
            Form::Metaphors => "metaphors",
            Form::References => "references",
            Form::Threads => "threads",
            Form::Chronicle => "chronicle",
            Form::Outline => "outline",
            Form::Facts => "facts",
            Form::Waivers => "waivers",
            Form::Judgements => "judgements",
        }
    }

    /// Whether such a file states intentions. They are no memory: nothing in it is true yet.
    pub const fn is_plan(self) -> bool {
        matches!(self, Form::Outline)
    }

    /// Whether such a file is text. Other forms are images and archives.
    pub const fn is_text(self) -> bool {
        !matches!(self, Form::Media | Form::Ebook)
    }
}

/// Returns the line of the first byte that is not UTF-8.
pub fn bad_line(bytes: &[u8]) -> Option<usize> {
    let error = std::str::from_utf8(bytes).err()?;
    Some(
        1 + bytes[..error.valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count(),
    )
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
