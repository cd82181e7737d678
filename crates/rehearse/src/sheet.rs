//! A Markdown writer, and the formatting rules that all outputs share.
//!
//! Quoted text cannot end its line or table cell, or open a comment.

use quipu_contract::Language;
use quipu_text::render_marker;

/// Selects the text for the output language.
pub(crate) fn say<'t>(language: Language, en: &'t str, zh: &'t str) -> &'t str {
    match language {
        Language::En => en,
        Language::Zh => zh,
    }
}

/// Counts the words of a text. A Han character counts as one word.
pub fn count_words(text: &str) -> usize {
    let mut count = 0;
    let mut inside = false;
    for c in text.chars() {
        if is_han(c) {
            count += 1;
            inside = false;
        } else if c.is_alphanumeric() {
            count += usize::from(!inside);
            inside = true;
        } else if !matches!(c, '\'' | '’' | '_') {
            inside = false;
        }
    }
    count
}

pub(crate) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{3040}'..='\u{30ff}' | '\u{20000}'..='\u{3ffff}')
}

/// Quotes a text on one line: escapes bars and disarms comments, which could end the file early.
pub(crate) fn quoted(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace("<!--", "<! --").replace('|', "\\|")
}

/// Formats inline code. Text with a backtick gets double backticks.
pub(crate) fn code(text: &str) -> String {
    if text.contains('`') {
        format!("`` {text} ``")
    } else {
        format!("`{text}`")
    }
}

#[derive(Default)]
pub(crate) struct Sheet {
    text: String,
}

impl Sheet {
    pub fn titled(title: &str) -> Sheet {
        Sheet {
            text: format!("# {}\n", quoted(title)),
        }
    }

    pub fn h2(&mut self, title: &str) {
        self.text.push_str(&format!("\n## {}\n\n", quoted(title)));
    }

    pub fn h3(&mut self, title: &str) {
        let gap = if self.text.ends_with("\n\n") {
            ""
        } else {
            "\n"
        };
        self.text
            .push_str(&format!("{gap}### {}\n\n", quoted(title)));
    }

    pub fn paragraph(&mut self, text: &str) {
        if !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
        self.text.push_str(text.trim());
        self.text.push('\n');
    }

    pub fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Writes list items, or one item that says that there are none.
    pub fn items(&mut self, items: &[String], none: &str) {
        match items {
            [] => self.line(&format!("- {none}")),
            items => items
                .iter()
                .for_each(|item| self.line(&format!("- {item}"))),
        }
    }

    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        self.line(&format!("| {} |", header.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(header.len())));
        for row in rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
    }

    /// Writes a code block verbatim, with a fence longer than any run of backticks in it.
    pub fn block(&mut self, language: &str, code: &str) {
        let longest = code
            .split(|c| c != '`')
            .map(str::len)
            .max()
            .unwrap_or_default();
        let fence = "`".repeat(longest.max(2) + 1);
        self.paragraph(&format!("{fence}{language}\n{code}\n{fence}"));
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Ends the text with a marker: the first alternative if `well`, else the second.
    pub fn finish(mut self, marker: Option<&str>, well: bool) -> String {
        if let Some(marker) = marker {
            let mut names = marker.split('|');
            let first = names.next().unwrap_or_default();
            let name = if well {
                first
            } else {
                names.next().unwrap_or(first)
            };
            self.text.push('\n');
            self.text.push_str(&render_marker(name));
            self.text.push('\n');
        }
        self.text
    }
}
