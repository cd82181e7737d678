//! Computes the text after an edit tool.
//!
//! It works on texts alone. `call.rs` finds the replacements, and `verdict.rs` judges the result.

/// One replacement of literal text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    pub old: String,
    pub new: String,
    pub all: bool,
}

/// The text after some replacements; none if one of them matches nothing.
pub fn edited(text: &str, edits: &[Replacement]) -> Option<String> {
    edits
        .iter()
        .try_fold(text.to_owned(), |text, edit| match () {
            () if edit.old.is_empty() => Some(edit.new.clone()),
            () if !text.contains(&edit.old) => None,
            () if edit.all => Some(text.replace(&edit.old, &edit.new)),
            () => Some(text.replacen(&edit.old, &edit.new, 1)),
        })
}
