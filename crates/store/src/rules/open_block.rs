//! Unclosed comments and code fences in files that consist of entries.
//!
//! An unclosed `<!--` or code fence hides every later entry from Quipu's readers, although the
//! entry was acknowledged. Therefore no text may leave one open in a Markdown file of class append,
//! record or state, and an external edit that hides entries is flagged. The `RuleBook` parses the
//! Markdown.

use quipu_contract::{Class, FileRule, Form, Outside, ProjectPath};

use crate::change::Op;
use crate::error::Result;
use crate::rules::form_fault::FormFault;
use crate::rules::guards::refused_by;
use crate::rules::rule_book::Rules;

/// Whether a file consists of entries that readers find by their Markdown.
pub(crate) fn is_of_entries(rule: &FileRule, path: &ProjectPath) -> bool {
    matches!(rule.class, Class::Append | Class::Record | Class::State)
        && [".md", ".markdown"]
            .iter()
            .any(|ending| path.as_str().ends_with(ending))
}

/// Whether a text has a line that could close the front matter of the text before it.
fn may_close_front(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end);
    lines.any(|line| matches!(line, "---" | "+++" | "..."))
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// The message for an open block, by the text that would close it.
fn describe(close: &str) -> &'static str {
    match close {
        "-->" => "a comment is not closed",
        _ if close.starts_with(['`', '~']) => "a code fence is not closed",
        _ => "an HTML block is not closed",
    }
}

impl Rules {
    /// Refuses a text that would leave a block open at the end of its file. `continues` means that
    /// an append continues the last line of the file.
    pub(crate) fn check_closed(
        &self,
        op: &Op,
        rule: Option<&FileRule>,
        bytes: &[u8],
        continues: bool,
        before: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<()> {
        let path = op.path();
        let (Some(rule), Some(book), Ok(text)) = (
            rule.filter(|rule| is_of_entries(rule, path)),
            self.book.as_ref(),
            std::str::from_utf8(bytes),
        ) else {
            return Ok(());
        };
        let earlier = match op {
            // Text that was there before, or that a person accepts, is not validated again.
            Op::Restore { .. } | Op::Derive { .. } | Op::Amend { bytes: None, .. } => return Ok(()),
            Op::Append { .. } => {
                // Their entries are acknowledged with an id, so they must stay visible.
                let is_listed = matches!(rule.form, Some(Form::Decisions | Form::Delegation));
                let closes_front = !continues && may_close_front(text);
                if !is_listed && !continues && !closes_front && !book.may_open_block(text) {
                    return Ok(());
                }
                let earlier = before()?;
                if closes_front {
                    self.check_front(path, rule, &earlier, bytes)?;
                }
                earlier
            }
            _ => Vec::new(),
        };
        let whole = [&earlier, bytes].concat();
        let Some((line, close)) = std::str::from_utf8(&whole)
            .ok()
            .and_then(|whole| book.open_block(whole))
        else {
            return Ok(());
        };
        let lines_before = count_lines(&earlier);
        let (what, remedy) = if line <= lines_before {
            (
                format!("line {line} of the file: {}", describe(&close)),
                format!(
                    "quipu append {path} --text '{close}'     (then run the same command \
                    again)"
                ),
            )
        } else {
            let of = if matches!(op, Op::Append { .. }) {
                " of the new text"
            } else {
                ""
            };
            (
                format!("line {}{of}: {}", line - lines_before, describe(&close)),
                format!("run the same command with this as the last line of the text: {close}"),
            )
        };
        let what = format!("`{path}`, {what}: it would hide the entries after it");
        Err(refused_by(what, Some(rule), remedy))
    }

    /// Refuses an append that would turn entries into front matter: the file begins with `---`, and
    /// the new text has the closing line.
    fn check_front(
        &self,
        path: &ProjectPath,
        rule: &FileRule,
        earlier: &[u8],
        bytes: &[u8],
    ) -> Result<()> {
        let whole = [earlier, bytes].concat();
        let (Some(book), Ok(earlier), Ok(whole)) = (
            self.book.as_ref(),
            std::str::from_utf8(earlier),
            std::str::from_utf8(&whole),
        ) else {
            return Ok(());
        };
        let Some(line) = book.hidden_line(earlier, whole) else {
            return Ok(());
        };
        let what = format!(
            "`{path}` begins with a line `---` or `+++`, and the new text would close it: line {line} of the file would be hidden as front matter"
        );
        let remedy = "run the same command with `***` instead of the line that closes it".into();
        Err(refused_by(what, Some(rule), remedy))
    }

    /// The fault of an external edit that would otherwise be adopted: it leaves a new block open,
    /// or encloses existing entries in one.
    pub(crate) fn hiding_fault(
        &self,
        path: &ProjectPath,
        rule: Option<&FileRule>,
        before: Option<&[u8]>,
        validated: &Outside,
        after: &[u8],
    ) -> Option<FormFault> {
        let rule = rule.filter(|rule| is_of_entries(rule, path))?;
        let book = self.book.as_ref()?;
        let before = std::str::from_utf8(before.unwrap_or_default()).ok()?;
        let after = std::str::from_utf8(after).ok()?;
        let fault = |line, what: String| FormFault {
            line,
            what,
            allowed: String::new(),
        };
        if !matches!(validated, Outside::Grew { .. } | Outside::Replaced) {
            return None;
        }
        if let Some((line, close)) = book.open_block(after)
            && book.open_block(before).is_none()
        {
            let what = format!(
                "{}, which hides the entries after it (the line {close} closes it)",
                describe(&close)
            );
            return Some(fault(line, what));
        }
        let has_front = ["---", "+++", "\u{feff}"]
            .iter()
            .any(|sign| after.starts_with(sign));
        let line = match rule.class {
            Class::Append if *validated == Outside::Replaced || has_front => {
                book.hidden_line(before, after)?
            }
            Class::State if *validated == Outside::Replaced => book.covered_line(before, after)?,
            _ => return None,
        };
        let what =
            "a comment, code fence, HTML or front matter was put around existing entries".into();
        Some(fault(line, what))
    }
}
