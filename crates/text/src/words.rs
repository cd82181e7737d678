//! Counts words as an editor does.
//!
//! A run of letters and digits is one word, and so is each Chinese, Japanese or Korean character.
//! Code blocks and comments do not count.

use crate::Document;

/// Counts the words of a Markdown text.
pub fn count_words(text: &str) -> usize {
    let document = Document::parse(text);
    let (mut count, mut in_word, mut comment) = (0, false, false);
    for (at, c) in text.char_indices() {
        if text[at..].starts_with("<!--") {
            comment = true;
        }
        if comment {
            comment = !text[..at].ends_with("--") || c != '>';
            in_word = false;
            continue;
        }
        if document.in_code_block(at) {
            in_word = false;
        } else if is_wide(c) {
            count += 1;
            in_word = false;
        } else if c.is_alphanumeric() {
            count += usize::from(!in_word);
            in_word = true;
        } else if !matches!(c, '\'' | '’' | '-' | '_') {
            in_word = false;
        }
    }
    count
}

fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{2fff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_both_languages() {
        for (text, words) in [
            ("", 0),
            ("# One two\n\nthree, it's four-fold.", 5),
            ("租约到期 lease 自动释放。", 9),
            (
                "a\n\n```\nlet not = counted;\n```\n\nb <!-- DRAFT_COMPLETE -->\n",
                2,
            ),
            ("a <!-- one\ntwo --> b", 2),
        ] {
            assert_eq!(count_words(text), words, "{text}");
        }
    }
}
