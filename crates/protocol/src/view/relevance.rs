//! What matters to a unit: the seam between views and recall.
//!
//! Pieces are scored by recall's words, without its index and its encoder: a view depends on its files alone, so
//! nothing that may or may not be at hand has a say ([decision](../../../../docs/decisions/0016-relevance-by-words.md)).

use quipu_contract::ProjectPath;
use quipu_text::recall::likeness;

/// What a unit is about, in words: its title, its section of the outline, the headings of its own files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topic(pub String);

/// Says how much each piece of a text matters to a topic; 0 is not at all.
pub trait Relevance {
    fn scores(&self, topic: &Topic, path: &ProjectPath, pieces: &[&str]) -> Vec<u32>;
}

/// Counts shared words as recall does: rare ones weigh more, long pieces have no advantage.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lexical;

impl Relevance for Lexical {
    fn scores(&self, topic: &Topic, path: &ProjectPath, pieces: &[&str]) -> Vec<u32> {
        let named = if names_path(&topic.0, path) { NAMED } else { 0 };
        // Rounded, so that the last bits of a logarithm decide nothing; any shared word counts.
        let rounded = |score: f32| if score > 0.0 { ((100.0 * score).round() as u32).clamp(1, NAMED - 1) } else { 0 };
        likeness(&topic.0, pieces).into_iter().map(|score| named + rounded(score)).collect()
    }
}

/// What a file scores for being named by the topic: more than shared words ever give.
const NAMED: u32 = 100_000;

/// Whether a text names a path, whole or by its last parts, or a folder above it: `src/lease.rs`, `lease.rs:12`, `src/store/`.
fn names_path(text: &str, path: &ProjectPath) -> bool {
    let rooted = format!("/{path}");
    let apart = |c: char| {
        c.is_whitespace() || matches!(c, '|' | '`' | '"' | '\'' | '(' | ')' | '[' | ']' | '<' | '>' | ',' | ';' | '，' | '、' | '；')
    };
    text.split(apart).filter(|word| word.contains(['/', '.'])).any(|word| {
        let word = word.split(':').next().unwrap_or_default().trim_start_matches("./").trim_end_matches('.');
        match word.strip_suffix('/') {
            Some(folder) => !folder.is_empty() && rooted.contains(&format!("/{folder}/")),
            None => !word.is_empty() && rooted.ends_with(&format!("/{word}")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(topic: &str, pieces: &[&str]) -> Vec<u32> {
        Lexical.scores(&Topic(topic.into()), &ProjectPath::parse("a.md").unwrap(), pieces)
    }

    #[test]
    fn shared_words_score_and_rare_ones_more() {
        let found = scores("How leases expire", &["| lease | ends by itself |", "| journal | a log |", "| lease expiry | expired |"]);
        assert!(found[2] > found[0] && found[0] > 0, "{found:?}");
        assert_eq!(found[1], 0);
    }

    #[test]
    fn a_file_that_the_topic_names_matters_most() {
        let path = ProjectPath::parse("source/src/lease.rs").unwrap();
        for (topic, yes) in [
            ("| src/lease.rs | leases |", true),
            ("see `lease.rs:12`.", true),
            ("all of source/src/", true),
            ("src/release.rs and please.rs", false),
            ("A sentence. Another.", false),
        ] {
            assert_eq!(Lexical.scores(&Topic(topic.into()), &path, &["xyz"])[0] > 0, yes, "{topic}");
        }
    }
}
