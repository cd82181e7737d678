//! What a source tree holds: modules, types and functions with their documentation and places.

use crate::parse;
use crate::view::Seen;

/// A longer line is no one's handwriting.
const READABLE_LINE: usize = 5000;

/// A source file.
#[derive(Debug, Clone)]
pub(crate) struct Module {
    pub path: String,
    pub language: SourceLanguage,
    /// The comment that opens it.
    pub doc: String,
    pub items: Vec<Item>,
    pub lines: usize,
    /// Parts of it could not be parsed.
    pub broken: bool,
    /// Its lines are not those of the file.
    pub cut: bool,
    /// The title of the unit names it.
    pub focus: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceLanguage {
    Rust,
    Python,
    Script,
}

impl SourceLanguage {
    pub fn of(path: &str) -> Option<SourceLanguage> {
        Some(match path.rsplit_once('.')?.1 {
            "rs" => SourceLanguage::Rust,
            "py" | "pyi" => SourceLanguage::Python,
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => SourceLanguage::Script,
            _ => return None,
        })
    }

    /// What a code block calls it.
    pub fn name(self) -> &'static str {
        match self {
            SourceLanguage::Rust => "rust",
            SourceLanguage::Python => "python",
            SourceLanguage::Script => "typescript",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Type,
    Function,
}

/// A type or a function.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub kind: ItemKind,
    /// What its language calls it: `struct`, `class`, `fn`.
    pub word: &'static str,
    pub name: String,
    /// The type or module it belongs to.
    pub owner: Option<String>,
    pub public: bool,
    pub doc: String,
    /// Everything before the body, on one line.
    pub signature: String,
    /// Fields, variants or members, one line each.
    pub members: Vec<String>,
    /// The names it calls, in order.
    pub calls: Vec<String>,
    /// 1-based.
    pub line: usize,
    pub end: usize,
    /// Its own lines.
    pub code: String,
}

impl Item {
    /// `Journal::append`
    pub fn full_name(&self) -> String {
        match &self.owner {
            Some(owner) => format!("{owner}::{}", self.name),
            None => self.name.clone(),
        }
    }
}

impl Module {
    pub fn read(path: &str, seen: &Seen) -> Option<Module> {
        let language = SourceLanguage::of(path)?;
        // Lines that no one could read were made by a program.
        if seen.text.lines().any(|line| line.len() > READABLE_LINE) {
            return None;
        }
        let mut module = parse::module(path, language, &seen.text);
        module.cut = seen.cut;
        Some(module)
    }

    /// Where an item is, as far as the view can tell.
    pub fn place(&self, item: &Item) -> String {
        if self.cut {
            self.path.clone()
        } else {
            format!("{}:{}", self.path, item.line)
        }
    }

    pub fn of_kind(&self, kind: ItemKind) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| item.kind == kind)
    }

    /// The first sentence of its opening comment.
    pub fn gist(&self) -> Option<&str> {
        Some(quipu_text::first_sentence(&self.doc)).filter(|gist| !gist.is_empty())
    }
}
