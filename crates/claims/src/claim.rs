//! Splits a draft into claims: sentences with their line numbers.
//!
//! Headings, code, comments and front matter make no claims. The judges see the rendered text, as a
//! reader does. A sentence that spans several lines has the number of its first line.

use quipu_text::{Comments, Document, blank_comments, first_sentence, link_labels, rendered_text};
use serde::Serialize;

/// One sentence of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Claim {
    pub line: usize,
    /// The rendered text, without Markdown syntax and invisible characters.
    pub text: String,
    /// True if the sentence opens its paragraph, so that no earlier name applies to it.
    #[serde(skip)]
    pub opens: bool,
    /// True if its whole line is in italics, like the instructions in templates.
    #[serde(skip)]
    pub italic: bool,
}

/// Consecutive lines of a draft that form one paragraph.
#[derive(Default)]
struct Paragraph {
    text: String,
    first_line: usize,
    quoted: bool,
    italic: bool,
}

/// Splits a draft, or a single sentence, into claims.
pub fn cut_claims(draft: &str) -> Vec<Claim> {
    let document = Document::parse(draft);
    let clean = blank_comments(draft, Comments::Blocks);
    let labels = link_labels(draft);
    let start = document.front_matter().map_or(0, |front| front.range.end);
    let (mut claims, mut paragraph, mut at) = (Vec::new(), Paragraph::default(), 0);
    for (nth, line) in clean.split_inclusive('\n').enumerate() {
        let inside = at >= start
            && !document.in_code_block(at)
            && !document.section_at(at).heading.contains(&at);
        at += line.len();
        let (text, quoted, item) = without_block_marks(line);
        let trimmed = text.trim();
        let row = trimmed.starts_with('|');
        let italic = trimmed.len() > 1 && trimmed.starts_with('_') && trimmed.ends_with('_');
        let says_nothing =
            !inside || trimmed.is_empty() || trimmed.chars().all(|c| "-*=|: ".contains(c));
        if says_nothing || item || row || quoted != paragraph.quoted || italic != paragraph.italic {
            flush(&mut claims, &mut paragraph, &labels);
        }
        if says_nothing {
            continue;
        }
        if paragraph.text.is_empty() {
            paragraph = Paragraph {
                text: String::new(),
                first_line: nth + 1,
                quoted,
                italic,
            };
        }
        paragraph.text.push_str(text);
        if row {
            flush(&mut claims, &mut paragraph, &labels);
        }
    }
    flush(&mut claims, &mut paragraph, &labels);
    claims
}

/// Strips quotation and list markers from the start of a line. Also returns whether the line is
/// quoted and whether it begins a list item.
fn without_block_marks(line: &str) -> (&str, bool, bool) {
    let (mut text, mut quoted, mut item) = (line, false, false);
    loop {
        let trimmed = text.trim_start_matches([' ', '\t']);
        let bullet = trimmed
            .strip_prefix(['-', '*', '+'])
            .filter(|rest| rest.starts_with([' ', '\t']));
        if let Some(rest) = trimmed.strip_prefix('>') {
            (text, quoted) = (rest, true);
        } else if let Some(rest) = bullet.filter(|_| !item) {
            (text, item) = (rest, true);
        } else {
            return (text, quoted, item);
        }
    }
}

/// Splits a complete paragraph into sentences.
fn flush(claims: &mut Vec<Claim>, paragraph: &mut Paragraph, labels: &[String]) {
    let Paragraph {
        text: source,
        first_line,
        italic,
        ..
    } = std::mem::take(paragraph);
    let shown = rendered_text(&source, labels);
    // Trailing whitespace would be scanned again for each sentence.
    let mut rest = shown.trim_end();
    let (mut opens, mut line) = (true, first_line);
    let newlines = |passed: &str| passed.matches('\n').count();
    loop {
        let from = rest.len() - rest.trim_start().len();
        let sentence = first_sentence(rest);
        if sentence.is_empty() {
            break;
        }
        line += newlines(&rest[..from]);
        let text = join(&sentence.split_whitespace().collect::<Vec<_>>());
        for piece in pieces(&text).filter(|piece| piece.chars().any(char::is_alphanumeric)) {
            claims.push(Claim {
                line,
                text: piece.to_owned(),
                opens,
                italic,
            });
            opens = false;
        }
        line += newlines(sentence);
        rest = &rest[from + sentence.len()..];
    }
}

/// Longer sentences are judged in pieces, because the cost of judging grows faster than linearly.
const LONGEST: usize = 4000;
/// The overlap of adjacent pieces. Judges compare words that are near each other, so every such
/// group is whole in one piece.
const SHARED: usize = 800;

/// Returns a sentence, or the overlapping pieces of a very long one.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut from = Some(0);
    std::iter::from_fn(move || {
        let start = from?;
        if text.len() - start <= LONGEST {
            from = None;
            return Some(&text[start..]);
        }
        let end = text.floor_char_boundary(start + LONGEST);
        from = Some(text.floor_char_boundary(end - SHARED));
        Some(&text[start..end])
    })
}

/// Joins words with spaces, but without a space between two non-ASCII characters, such as Han
/// characters around a line break.
fn join(words: &[&str]) -> String {
    let mut text = String::new();
    for word in words {
        let tight = text.chars().next_back().is_some_and(|c| !c.is_ascii())
            && word.chars().next().is_some_and(|c| !c.is_ascii());
        if !text.is_empty() && !tight {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_keep_their_lines() {
        let draft = "---\na: 1\n---\n# Title\n\nOtto came. He sat\ndown. “Go!” she said.\n\n<!-- x.\ny. -->\n- one. two\n\n他走了。\n她没走。\n<!-- DONE -->\n";
        let told: Vec<(usize, String)> = cut_claims(draft)
            .into_iter()
            .map(|c| (c.line, c.text))
            .collect();
        let expected = [
            (6, "Otto came."),
            (6, "He sat down."),
            (7, "“Go!” she said."),
            (11, "one. two"),
            (13, "他走了。"),
            (14, "她没走。"),
        ];
        assert_eq!(told, expected.map(|(line, text)| (line, text.to_owned())));
    }

    /// Each case would take minutes if every heading or sentence were compared with all others.
    #[test]
    fn long_drafts_are_cut_in_linear_time() {
        const MANY: usize = 60_000;
        assert!(cut_claims(&"## Heading\n\n".repeat(MANY)).is_empty());
        let claims = cut_claims(&"He came.\nShe went. ".repeat(MANY));
        assert_eq!(
            (claims.len(), claims[2 * MANY - 1].line),
            (2 * MANY, MANY + 1)
        );
        let blanks = " ".repeat(MANY);
        assert_eq!(
            cut_claims(&("He came. ".repeat(MANY) + &blanks)).len(),
            MANY
        );
    }

    #[test]
    fn a_very_long_sentence_is_judged_in_pieces_that_share_their_ends() {
        for word in ["one-", "手", "a"] {
            let claims = cut_claims(&format!(
                "{}Joss signed with his right hand",
                word.repeat(240_000 / word.len())
            ));
            assert!(
                claims.iter().all(|claim| claim.text.len() <= LONGEST) && claims.len() > 60,
                "{word}"
            );
            assert!(
                claims[claims.len() - 1]
                    .text
                    .ends_with("Joss signed with his right hand")
            );
        }
        // One of the pieces contains the phrase, at every position of the cut.
        for padding in LONGEST - SHARED - 40..LONGEST + 40 {
            let claims = cut_claims(&format!(
                "{} Joss is right here {}",
                "x".repeat(padding),
                "y".repeat(LONGEST)
            ));
            assert!(
                claims
                    .iter()
                    .any(|claim| claim.text.contains("Joss is right here")),
                "{padding}"
            );
        }
    }

    #[test]
    fn marks_and_invisible_characters_hide_nothing() {
        let plain = "Joss signed with his right hand.";
        for draft in [
            "*Joss* signed with his **right** hand.",
            "_Joss signed with his right hand._",
            "Jo\u{200b}ss signed with his ri\u{ad}ght hand.",
            "- Joss signed with\n  his right hand.",
            "> Joss signed with\n> his right hand.",
            "> - *Joss* signed with his right hand.",
            "Joss signed with his [right] [r] hand.\n\n[r] x",
            "Joss signed with his [right][r] hand.\n\n[r]: http://a.b\n",
            "Joss signed&nbsp;with his ri<!-- -->ght hand.",
            "Joss signed with his right<br>hand.",
            "Joss<BR class='x'/>signed with his right hand.",
            "Joss signed with his right\rhand.",
            "<!-- -->Joss signed with his right hand.",
            "Joss signed with his right<sup>1</sup> hand.",
            "Joss signed with his right<sup class=\"note\">a, *</sup> hand.",
            "Joss signed with his right¹² hand.",
            "Joss signed with his <![CDATA[right]]> hand.",
            "Joss signed with his <?x?>right hand.",
        ] {
            let found = cut_claims(draft);
            let shown = found[0].text.replace("[right] [r]", "right");
            assert_eq!((found[0].line, shown.as_str()), (1, plain), "{draft:?}");
        }
        assert_eq!(cut_claims("One <!-- two.\n\nJoss signed.")[1].line, 3);
    }

    #[test]
    fn one_sentence_is_one_claim() {
        assert_eq!(
            cut_claims("奥托用右手签了名"),
            [Claim {
                line: 1,
                text: "奥托用右手签了名".into(),
                opens: true,
                italic: false
            }]
        );
        assert!(cut_claims("# Only a heading\n").is_empty());
    }
}
