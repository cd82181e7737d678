//! Finds the first sentence of prose, in English and Chinese.
//!
//! Overviews quote one sentence of a section, so a false split (after `e.g.`, in `3.14`, inside a
//! quotation) is worse than a long sentence. In doubt the sentence continues. Headings, tables,
//! images, code and HTML are skipped. Quotations and list items are used only if no other prose
//! precedes them.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::anchor::is_cjk;
use crate::scan::options;

/// Words with a full stop that does not end a sentence.
const ABBREVIATIONS: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "rev", "gen", "col", "capt", "lt", "sgt",
    "hon", "vs", "e.g", "i.e", "cf", "al", "ca", "approx", "fig", "figs", "eq", "vol", "ch",
    "chap", "sec", "ed", "eds", "pp", "dept", "est", "inc", "ltd", "co", "corp", "bros", "op",
    "viz", "a.m", "p.m", "u.s", "u.k", "e.u", "ph.d", "jan", "feb", "mar", "apr", "jun", "jul",
    "aug", "sep", "sept", "oct", "nov", "dec",
];

/// Abbreviations only before a number: `No. 5`, `p. 12`.
const BEFORE_NUMBERS: &[&str] = &["no", "nos", "p", "art", "v"];

/// Verbs that attach a clause to the preceding speech: `“走吧。”他说。`
const SPEECH: &[char] = &['说', '道', '问', '喊', '叫', '嚷', '吼', '想'];

/// The maximum length of a clause that only names the speaker.
const SPEAKER_CHARS: usize = 12;

/// Returns the first sentence of a paragraph of plain text. Looks only a few characters past the
/// sentence, so that a paragraph can be split in linear time.
pub fn first_sentence(prose: &str) -> &str {
    let prose = prose.trim();
    let mut from = 0;
    while let Some(found) = prose[from..].find(is_terminator) {
        let start = from + found;
        let stop = prose[start..]
            .find(|c| !is_terminator(c))
            .map_or(prose.len(), |length| start + length);
        let mut end = stop;
        let mut closers = prose[stop..].chars();
        while let Some(c) = closers.next()
            && is_closer(c, closers.clone().next())
        {
            end += c.len_utf8();
        }
        if ends_here(
            &prose[..start],
            &prose[start..stop],
            end > stop,
            &prose[end..],
        ) {
            return &prose[..end];
        }
        from = end;
    }
    prose
}

fn is_terminator(c: char) -> bool {
    matches!(
        c,
        '.' | '!' | '?' | '…' | '。' | '！' | '？' | '；' | '．' | '｡'
    )
}

fn is_closer(c: char, next: Option<char>) -> bool {
    match c {
        '”' | '’' | '」' | '』' | '）' | '】' | '》' | '〉' | ')' | ']' | '*' | '_' => {
            true
        }
        // A straight quote closes only if no word follows it.
        '"' | '\'' => next.is_none_or(|c| !c.is_alphanumeric() || is_cjk(c)),
        _ => false,
    }
}

/// Decides whether the terminators in `run` end the sentence.
fn ends_here(before: &str, run: &str, quoted: bool, rest: &str) -> bool {
    let last = run.chars().next_back().unwrap_or('.');
    let following = rest.trim_start().chars().next();
    let Some(following) = following else {
        return true;
    };
    let spaced = rest.starts_with(char::is_whitespace);
    match last {
        '。' | '！' | '？' | '；' | '．' | '｡' => !(quoted && continues_speech(rest)),
        // An ellipsis is usually inside a sentence.
        '…' => {
            (quoted && !continues_speech(rest) && !following.is_lowercase())
                || (spaced && following.is_uppercase())
        }
        '!' | '?' => {
            (spaced || is_cjk(following) || is_opener(following))
                && !following.is_lowercase()
                && !(quoted && continues_speech(rest))
        }
        _ => {
            spaced
                && !following.is_lowercase()
                && !(run.chars().nth(1).is_none() && !quoted && is_abbreviation(before, following))
        }
    }
}

fn is_opener(c: char) -> bool {
    matches!(c, '“' | '「' | '『' | '（' | '《' | '"')
}

/// Returns true if the clause after a quotation only names the speaker.
fn continues_speech(rest: &str) -> bool {
    if rest.starts_with(['，', '、', '：', ',']) {
        return true;
    }
    let mut last = None;
    for (count, c) in rest.chars().enumerate() {
        if count > SPEAKER_CHARS {
            return false;
        }
        match c {
            '。' | '，' | '：' | '；' | '！' | '？' | '“' | '「' => break,
            c if c.is_whitespace() => return false,
            c => last = Some(c),
        }
    }
    last.is_some_and(|verb| SPEECH.contains(&verb))
}

fn is_abbreviation(before: &str, following: char) -> bool {
    let word = before
        .rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '"' | '“' | '‘' | '—'))
        .next()
        .unwrap_or(before);
    if word.len() == before.len() && !word.is_empty() && word.chars().all(|c| c.is_ascii_digit()) {
        return true; // a list number: `1. First`
    }
    let lower = word.to_ascii_lowercase();
    if ABBREVIATIONS.contains(&lower.as_str()) {
        return true;
    }
    if following.is_ascii_digit() && BEFORE_NUMBERS.contains(&lower.as_str()) {
        return true;
    }
    // An initial: `J. Smith`. `I` is a word.
    let mut letters = word.rsplit('.').next().unwrap_or(word).chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => {
            letter.is_ascii_uppercase() && letter != 'I' && following.is_uppercase()
        }
        _ => false,
    }
}

/// Returns the first sentence of the prose in Markdown text.
pub(crate) fn first_prose_sentence(markdown: &str) -> Option<String> {
    let mut fallback = None;
    let mut text = String::new();
    let (mut skipping, mut quoted, mut items) = (0usize, 0usize, 0usize);
    for event in Parser::new_ext(markdown, options()) {
        match event {
            Event::Start(tag) if is_skipped(&tag) => skipping += 1,
            Event::End(
                TagEnd::Heading(_)
                | TagEnd::Table
                | TagEnd::Image
                | TagEnd::CodeBlock
                | TagEnd::HtmlBlock
                | TagEnd::FootnoteDefinition,
            ) => skipping = skipping.saturating_sub(1),
            _ if skipping > 0 => {}
            Event::Start(Tag::BlockQuote(_)) => quoted += 1,
            Event::Start(Tag::Item) => items += 1,
            Event::Text(part) | Event::Code(part) => text.push_str(&part),
            Event::SoftBreak | Event::HardBreak => text.push('\n'),
            Event::Start(Tag::List(_))
            | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::BlockQuote(_)) => {
                let joined = join_lines(&text);
                text.clear();
                if joined.chars().any(char::is_alphanumeric) {
                    let sentence = first_sentence(&joined).to_owned();
                    if quoted == 0 && items == 0 {
                        return Some(sentence);
                    }
                    fallback.get_or_insert(sentence);
                }
                match event {
                    Event::End(TagEnd::BlockQuote(_)) => quoted -= 1,
                    Event::End(TagEnd::Item) => items -= 1,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    fallback
}

fn is_skipped(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::Heading { .. }
            | Tag::Table(_)
            | Tag::Image { .. }
            | Tag::CodeBlock(_)
            | Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
    )
}

/// Joins wrapped lines with a space, but without one between two CJK characters.
fn join_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let tight = joined.chars().next_back().is_some_and(is_wide)
            && line.chars().next().is_some_and(is_wide);
        if !joined.is_empty() && !tight {
            joined.push(' ');
        }
        joined.push_str(line);
    }
    joined
}

fn is_wide(c: char) -> bool {
    is_cjk(c)
        || matches!(c as u32, 0x3001..=0x301F | 0xFF01..=0xFF60)
        || matches!(c, '“' | '”' | '…' | '—')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_sentences_end_where_they_end() {
        for (text, expected) in [
            ("He left. She stayed.", "He left."),
            ("See e.g. the map. Then go.", "See e.g. the map."),
            ("It costs 3.14 euros. Cheap.", "It costs 3.14 euros."),
            (
                "Dr. J. Watson met Mr. Holmes. They spoke.",
                "Dr. J. Watson met Mr. Holmes.",
            ),
            ("Read state.json first. Then act.", "Read state.json first."),
            ("\"Go!\" he said. She went.", "\"Go!\" he said."),
            ("He said \"Go.\" Then he left.", "He said \"Go.\""),
            ("“Really?” she asked. No.", "“Really?” she asked."),
            ("Is it? Yes.", "Is it?"),
            ("What?! No.", "What?!"),
            ("1. First things. Second.", "1. First things."),
            ("See No. 5 here. Next.", "See No. 5 here."),
            ("The answer is no. Next.", "The answer is no."),
            ("Use approx. five. Done.", "Use approx. five."),
            ("Wait… what now. End.", "Wait… what now."),
            ("It was I. Then he left.", "It was I."),
            ("(It rained.) He left.", "(It rained.)"),
            ("Version 1.2.3 is out. Get it.", "Version 1.2.3 is out."),
            ("no end at all", "no end at all"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), expected, "{text}");
        }
    }

    #[test]
    fn chinese_sentences_keep_their_quotes() {
        for (text, expected) in [
            ("他走了。她留下。", "他走了。"),
            ("“你真的要走？”她没有回答。", "“你真的要走？”"),
            ("“走吧。”他说。她跟上。", "“走吧。”他说。"),
            ("真的！？不。", "真的！？"),
            ("先读文件；再动手。", "先读文件；"),
            (
                "他想起了什么……却没有说出口。然后走了。",
                "他想起了什么……却没有说出口。",
            ),
            ("“我……”他低下头。完。", "“我……”"),
            ("圆周率是3.14。下一句。", "圆周率是3.14。"),
            ("（旁白。）正文。", "（旁白。）"),
            ("没有标点", "没有标点"),
        ] {
            assert_eq!(first_sentence(text), expected, "{text}");
        }
    }

    #[test]
    fn mixed_text_splits_at_either() {
        assert_eq!(
            first_sentence("用 Rust 1.95 编译 state.json。Then run it."),
            "用 Rust 1.95 编译 state.json。"
        );
        assert_eq!(first_sentence("Run it now! 然后停下。"), "Run it now!");
        assert_eq!(
            first_sentence("读 e.g. index.md，再说。好。"),
            "读 e.g. index.md，再说。"
        );
    }

    #[test]
    fn markdown_around_the_prose_is_skipped() {
        let text = "## H\n\n![alt text.](x.png)\n\n| a |\n|---|\n| B. c |\n\n```\ncode.\n```\n\n<!-- c. -->\n\n**Bold** first\nline. Second.\n";
        assert_eq!(
            first_prose_sentence(text).as_deref(),
            Some("Bold first line.")
        );
        assert_eq!(
            first_prose_sentence("被换行\n的中文。二。").as_deref(),
            Some("被换行的中文。")
        );
        assert_eq!(
            first_prose_sentence("> Quoted. x\n\nPlain. Y").as_deref(),
            Some("Plain.")
        );
        assert_eq!(
            first_prose_sentence("- One. Two.\n  - Sub.\n- Three").as_deref(),
            Some("One.")
        );
        assert_eq!(
            first_prose_sentence("- One. Two.\n\nAfter. All").as_deref(),
            Some("After.")
        );
        assert_eq!(first_prose_sentence("# Only\n\n---\n"), None);
    }
}
