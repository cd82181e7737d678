//! The model of a source tree: modules, types and functions with documentation and locations.
//!
//! `parse` fills it in. Generated files are skipped.

use crate::parse;
use crate::view::Seen;

/// Files with a longer line are considered generated.
const READABLE_LINE: usize = 5000;

/// A source file.
#[derive(Debug, Clone)]
pub(crate) struct Module {
    pub path: String,
    pub language: SourceLanguage,
    /// The comment at the start of the file.
    pub doc: String,
    pub items: Vec<Item>,
    pub lines: usize,
    /// Some parts could not be parsed.
    pub broken: bool,
    /// The view shows only parts of the file, so line numbers are unknown.
    pub cut: bool,
    /// The title of the unit names this module.
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

    /// The language name for code blocks.
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
    /// The keyword of the language: `struct`, `class`, `fn`.
    pub word: &'static str,
    pub name: String,
    /// The type or module that contains it.
    pub owner: Option<String>,
    pub public: bool,
    pub doc: String,
    /// Everything before the body, on one line.
    pub signature: String,
    /// Fields, variants or members, one line each.
    pub members: Vec<String>,
    /// The names of the functions it calls, in order.
    pub calls: Vec<String>,
    /// 1-based.
    pub line: usize,
    pub end: usize,
    /// The source lines of the item.
    pub code: String,
}

impl Item {
    /// Returns a qualified name such as `Journal::append`.
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
        // Skip generated files.
        if seen.text.lines().any(|line| line.len() > READABLE_LINE) {
            return None;
        }
        let mut module = parse::module(path, language, &seen.text);
        module.cut = seen.cut;
        Some(module)
    }

    /// Returns the location of an item, without a line if the view shows only parts of the file.
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

    /// Returns the first sentence of the opening comment.
    pub fn gist(&self) -> Option<&str> {
        Some(quipu_text::first_sentence(&self.doc)).filter(|gist| !gist.is_empty())
    }
}
