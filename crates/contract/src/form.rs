//! Forms: the content type of a file, for the commands that read and write parts of it.
//!
//! A command such as `quipu todo add` does not know a path: it asks the contract which file has the
//! form `todos`. A profile can therefore choose any path for such a file.

use serde::{Deserialize, Serialize};

/// What the text of a file is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Who we are: what the project is and which constraints hold.
    Identity,
    /// Where things stand: a JSON object with phase, task and progress.
    State,
    /// A JSON list of todos.
    Todos,
    /// Decisions, one section each, the newest last.
    Decisions,
    /// An order to a child and, below it, its reports.
    Delegation,
    /// The shared world: sections of keyed lines.
    World,
    /// The record of one task.
    Session,
    /// What one agent has learnt.
    Knowledge,
    /// One agent's working memory for the task at hand.
    Task,
    /// A finished text of a unit, which is published.
    Chapter,
    /// A chapter as a page.
    Page,
    /// The contents of all pages.
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
    /// The source files that chapters cite, as pages.
    SourcePage,
    /// Anomalies of a flow, one section each.
    Audit,
    /// The report of one reviewing agent, with scores.
    Report,
    /// The state of a review, derived from its reports.
    Panel,
    /// Path and first line of each file, kept by Quipu.
    Index,
    /// Terms with their definitions, and the words that must not stand for them.
    Glossary,
    /// Which metaphor belongs to which concept.
    Metaphors,
    /// Which unit refers to which, and about what.
    References,
    /// What was planted, when it is due, where it was closed.
    Threads,
    /// What has happened, an arc a section and a chapter a subsection.
    Chronicle,
    /// Facts offered for memory.
    Facts,
    /// Conflicts that someone lets stand.
    Waivers,
}

impl Form {
    pub const ALL: [Form; 29] = [
        Form::Identity,
        Form::State,
        Form::Todos,
        Form::Decisions,
        Form::Delegation,
        Form::World,
        Form::Session,
        Form::Knowledge,
        Form::Task,
        Form::Chapter,
        Form::Page,
        Form::Contents,
        Form::Stylesheet,
        Form::Media,
        Form::Ebook,
        Form::GlossaryPage,
        Form::SearchPage,
        Form::SourcePage,
        Form::Audit,
        Form::Report,
        Form::Panel,
        Form::Index,
        Form::Glossary,
        Form::Metaphors,
        Form::References,
        Form::Threads,
        Form::Chronicle,
        Form::Facts,
        Form::Waivers,
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
            Form::Task => "task",
            Form::Chapter => "chapter",
            Form::Page => "page",
            Form::Contents => "contents",
            Form::Stylesheet => "stylesheet",
            Form::Media => "media",
            Form::Ebook => "ebook",
            Form::GlossaryPage => "glossary-page",
            Form::SearchPage => "search-page",
            Form::SourcePage => "source-page",
            Form::Audit => "audit",
            Form::Report => "report",
            Form::Panel => "panel",
            Form::Index => "index",
            Form::Glossary => "glossary",
            Form::Metaphors => "metaphors",
            Form::References => "references",
            Form::Threads => "threads",
            Form::Chronicle => "chronicle",
            Form::Facts => "facts",
            Form::Waivers => "waivers",
        }
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
