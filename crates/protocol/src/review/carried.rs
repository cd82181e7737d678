//! Open comments on which a revision has nothing new: their words and the sentences beside them are as
//! they were, no change elsewhere shares words with them, and the reply does not speak of them. Their
//! agent is not asked about them again.
//!
//! Pure: texts and comments in, decisions out. When in doubt a comment is asked about.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::comment::{Cited, ids_in};
use super::passage::{Passage, Passages};
use super::revised::{RELATED, Revision, blocks, lines_in, replies_to, said_to_all};
use super::rounds::Comment;
use super::sentences::bytes_of_lines;
use crate::view::words;

/// A word in more sentences of a text than this says little about any of them.
const RARE: usize = 2;

/// The news of a round: the change of a text, and the authors' reply.
pub(super) struct News<'t> {
    old: &'t str,
    new: &'t str,
    revision: Revision<'t>,
    /// The words that each change brings.
    brought: Vec<BTreeSet<String>>,
    /// The sentences of the old text in which a word stands.
    frequency: BTreeMap<String, usize>,
    reply: &'t str,
}

impl<'t> News<'t> {
    pub fn of(old: &'t str, new: &'t str, reply: &'t str) -> News<'t> {
        let revision = Revision::of(old, new);
        let brought = revision.hunks.iter().map(|hunk| revision.brought(hunk));
        let mut frequency = BTreeMap::new();
        for sentence in &revision.before {
            for word in words(&sentence.plain) {
                *frequency.entry(word).or_insert(0) += 1;
            }
        }
        News {
            old,
            new,
            brought: brought.collect(),
            frequency,
            reply,
            revision,
        }
    }

    /// Whether nothing here concerns a comment. `with` are the words that the comments rest on for
    /// which it answers.
    pub fn spares(&self, comment: &Comment, with: &[Cited]) -> bool {
        let quoted = (comment.last_quote(), comment.written_line);
        let others = with
            .iter()
            .map(|cited| (cited.quote.as_str(), cited.lines.0));
        let is_as_it_was = |(quote, line)| self.place(quote, line).is_some();
        if !std::iter::once(quoted).chain(others).all(is_as_it_was) {
            return false;
        }
        let text = format!("{} {}", comment.last_quote(), comment.text);
        let own = words(&text);
        let quote = words(comment.last_quote());
        // A word of the quotation is enough.
        let is_related = |brought: &BTreeSet<String>| {
            brought.intersection(&own).count() >= RELATED || !brought.is_disjoint(&quote)
        };
        let named = lines_in(&comment.text).into_iter();
        let named: Vec<_> = named
            .map(|(first, last)| bytes_of_lines(self.old, first, last))
            .map(|bytes| whole_entry(self.old, bytes))
            .collect();
        let mut hunks = self.revision.hunks.iter();
        !self.brought.iter().any(is_related)
            && !hunks.any(|hunk| self.revision.meets(hunk, &named, &[]))
            && !self.is_replied(comment, quoted, &own)
    }

    fn is_rare(&self, word: &str) -> bool {
        self.frequency.get(word).copied().unwrap_or(0) <= RARE
    }

    /// The place of a quotation in both texts, if its sentences and those beside them are as they were.
    fn place(&self, quote: &str, line: usize) -> Option<(Passage, Passage)> {
        let nearest = |text: &str| {
            let found = Passages::of(text).find(quote).into_iter();
            found.min_by_key(|passage| passage.first.abs_diff(line))
        };
        let (old, new) = (nearest(self.old)?, nearest(self.new)?);
        let there = whole_entry(self.old, Passages::of(self.old).bytes(&old.plain));
        let here = whole_entry(self.new, Passages::of(self.new).bytes(&new.plain));
        let own = self.revision.overlapping(&here);
        let revision = &self.revision;
        let mut hunks = revision.hunks.iter();
        let touches = hunks.any(|hunk| {
            let (there, here) = (std::slice::from_ref(&there), std::slice::from_ref(&here));
            revision.meets(hunk, there, here) || revision.weighs_on(hunk, &own)
        });
        (!touches).then_some((old, new))
    }

    /// Whether the reply speaks of a comment: by its id, by its line and a word of it, or by words that
    /// are rare in the text.
    fn is_replied(&self, comment: &Comment, quoted: (&str, usize), own: &BTreeSet<String>) -> bool {
        let ids = || {
            let with = comment.matter.iter().flat_map(|matter| &matter.with);
            std::iter::once(&comment.id).chain(with).map(String::as_str)
        };
        if replies_to(self.reply, &ids().collect::<Vec<_>>()) {
            return true;
        }
        let Some((old, new)) = self.place(quoted.0, quoted.1) else {
            return true;
        };
        let quote = words(quoted.0);
        blocks(&said_to_all(self.reply)).iter().any(|block| {
            let said = words(block);
            let is_here = |(first, last): &(usize, usize)| {
                let meets = |place: &Passage| *first <= place.last && place.first <= *last;
                meets(&old) || meets(&new)
            };
            let names = ids_in(block);
            let by_line = lines_in(block).iter().any(is_here) && !said.is_disjoint(&quote);
            ids().any(|id| names.contains(&id))
                || by_line
                || said
                    .intersection(own)
                    .filter(|word| self.is_rare(word))
                    .count()
                    >= RELATED
        })
    }
}

/// The entry of a bibliography that some bytes are in, from `@` to the next one; in another text the bytes.
fn whole_entry(text: &str, bytes: Range<usize>) -> Range<usize> {
    let start = match text[..bytes.start].rfind("\n@") {
        _ if text[bytes.start..].starts_with('@') => bytes.start,
        Some(before) => before + 1,
        None if text.starts_with('@') => 0,
        None => return bytes,
    };
    let next = text[bytes.end..].find("\n@");
    start..next.map_or(text.len(), |next| bytes.end + next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::comment::{Severity, WrittenComment};

    const OLD: &str = "# T\n\nSeven cords were tied. They were wet. We weighed hands. It took a day.\n\n\
                       We sampled often. The knots held.\n";

    fn comment(line: usize, quote: &str, text: &str) -> Comment {
        let cited = Cited {
            path: None,
            lines: (line, line),
            quote: quote.into(),
        };
        let written = WrittenComment {
            line: 1,
            severity: Severity::Minor,
            cited,
            text: text.into(),
        };
        Comment::new("s1.1".into(), "s1", 1, &written)
    }

    fn spares(new: &str, reply: &str, comment: &Comment) -> bool {
        News::of(OLD, new, reply).spares(comment, &[])
    }

    #[test]
    fn a_comment_is_asked_about_only_if_something_concerns_it() {
        let own = comment(
            5,
            "The knots held",
            "Name the sampling interval of the probe; see L3.",
        );
        let asked = |from: &str, to: &str, reply: &str| {
            let new = OLD.replace(from, to);
            assert!(new != OLD || !reply.is_empty());
            !spares(&new, reply, &own)
        };
        assert!(!asked("# T", "# Title", ""));
        assert!(asked("knots held", "knots broke", ""));
        // A line that it names, and words that it shares.
        assert!(asked("were wet", "were dry", ""));
        assert!(asked("# T", "# T\n\nThe sampling interval was 2 s.", ""));
        // The sentence beside it: more than a correction.
        assert!(!asked("sampled often", "samplet often", ""));
        assert!(asked("We sampled often. ", "", ""));
        let more = "sampled often, with brass weights on silk threads below ice";
        assert!(asked("sampled often", more, ""));
        // The reply.
        assert!(!asked("# T", "# Title", "We changed the title."));
        assert!(asked("# T", "# Title", "s1.1: we decline."));
        assert!(asked("# T", "# Title", "L5: the knots are as they are."));
        assert!(asked(
            "# T",
            "# Title",
            "The interval of the probe is secret."
        ));
    }

    #[test]
    fn an_entry_of_a_bibliography_is_one_place() {
        let old = "@book{a,\n  title={A},\n}\n\n@book{b,\n  title={B},\n}\n";
        let new = old.replace("  title={A},\n", "  title={A},\n  pages={7},\n");
        let news = News::of(old, &new, "");
        assert!(!news.spares(&comment(1, "@book{a,", "It has no year."), &[]));
        assert!(news.spares(&comment(5, "@book{b,", "It has no year."), &[]));
    }

    #[test]
    fn a_comment_that_answers_for_others_depends_on_their_words_too() {
        let own = comment(5, "The knots held", "Why?");
        let new = OLD.replace("were wet", "were dry");
        let other = |quote: &str| Cited {
            path: None,
            lines: (3, 3),
            quote: quote.into(),
        };
        let news = News::of(OLD, &new, "");
        assert!(news.spares(&own, &[other("It took a day")]));
        assert!(!news.spares(&own, &[other("They were wet")]));
    }
}
