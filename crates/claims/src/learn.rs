//! Proposals: sentences of a manuscript offered as facts for memory, until a user or an agent
//! accepts them.
//!
//! A proposal is one line of a file that people and agents can read and edit:
//!
//! `- l1a2b3c4d5e: [scene] His name is Zhou [→ manuscripts/ch01.md#fair] ⇒ characters.md#zhou`
//!
//! An agent that extracts facts from a whole chapter lists them without IDs, under `## FILE` and
//! `### SECTION`. These are proposals too.

use quipu_text::{Document, Level, Place as Where, SpliceError, first_sentence};
use serde::Serialize;

use crate::page::{Page, Place};
use crate::waiver::finding_id;

/// A proposed fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    pub id: String,
    /// The entry as memory would store it, including level and link.
    pub entry: String,
    /// The destination, as `path#section`.
    pub to: String,
    pub line: usize,
    /// The number of lines it occupies in its file.
    #[serde(skip)]
    pub lines: usize,
}

const ARROW: &str = " ⇒ ";

impl Proposal {
    pub fn new(text: &str, level: Level, source: &str, to: &str) -> Proposal {
        let text = text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace(ARROW, " ");
        let entry = format!(
            "[{}] {} [→ {source}]",
            level.name(),
            text.trim_start_matches("- ")
        );
        Proposal::of_entry(entry, to.to_owned(), 0)
    }

    fn of_entry(entry: String, to: String, line: usize) -> Proposal {
        Proposal {
            id: finding_id(&entry, &to).replacen('w', "l", 1),
            entry,
            to,
            line,
            lines: 1,
        }
    }

    /// Returns the destination file.
    pub fn file(&self) -> &str {
        self.to
            .split_once('#')
            .map_or(self.to.as_str(), |(file, _)| file)
    }

    /// Returns the destination section.
    pub fn section(&self) -> Option<&str> {
        self.to.split_once('#').map(|(_, section)| section)
    }

    /// Returns true if a text already contains the entry.
    pub fn stands_in(&self, text: &str) -> bool {
        text.lines().any(|line| {
            line.trim()
                .strip_prefix("- ")
                .is_some_and(|entry| entry == self.entry)
        })
    }

    /// Returns true if the entry replaces another fact, which needs a manual edit.
    pub fn supersedes(&self) -> bool {
        ["supersedes:", "取代：", "取代:"]
            .iter()
            .any(|sign| self.entry.contains(sign))
    }

    pub fn render(&self) -> String {
        format!("- {}: {}{ARROW}{}\n", self.id, self.entry, self.to)
    }
}

pub fn read_proposals(text: &str) -> Vec<Proposal> {
    let read = |(nth, line): (usize, &str)| {
        let (id, rest) = line.strip_prefix("- ")?.split_once(": ")?;
        let (entry, to) = rest.rsplit_once(ARROW)?;
        let known = id.starts_with('l') && id.len() == 11;
        known.then(|| Proposal {
            id: id.to_owned(),
            entry: entry.to_owned(),
            to: to.trim().to_owned(),
            line: nth + 1,
            lines: 1,
        })
    };
    text.lines().enumerate().filter_map(read).collect()
}

/// Reads the facts that a report offers: list items under `## FILE` and `### SECTION`. Ignores
/// everything else.
pub fn read_offers(text: &str) -> Vec<Proposal> {
    let (mut found, mut file, mut section): (Vec<Proposal>, Option<String>, Option<String>) =
        (Vec::new(), None, None);
    for (nth, line) in text.lines().enumerate() {
        if let Some(title) = line.strip_prefix("### ") {
            let title = title.split(" [").next().unwrap_or(title).trim();
            section = (!title.is_empty()).then(|| title.to_owned());
        } else if let Some(title) = line.strip_prefix("## ") {
            let path = title.trim().trim_matches('`');
            (file, section) = (path.ends_with(".md").then(|| path.to_owned()), None);
        } else if let (Some(entry), Some(file)) = (line.strip_prefix("- "), &file) {
            let to = section
                .as_ref()
                .map_or_else(|| file.clone(), |section| format!("{file}#{section}"));
            found.push(Proposal::of_entry(entry.trim().to_owned(), to, nth + 1));
        } else if line.starts_with("  ")
            && !line.trim().is_empty()
            && let Some(last) = found.last_mut()
            && last.line + last.lines == nth + 1
        {
            let entry = format!("{} {}", last.entry, line.trim());
            *last = Proposal {
                lines: last.lines + 1,
                ..Proposal::of_entry(entry, last.to.clone(), last.line)
            };
        }
    }
    // An item without a source is a remark, or says that nothing was found.
    found.retain(|offer| offer.entry.contains("[→ "));
    found
}

/// Adds an entry to a section of a page. Creates the section if it does not exist.
pub fn with_entry(text: &str, section: Option<&str>, entry: &str) -> Result<String, SpliceError> {
    let document = Document::parse(text);
    let line = format!("- {entry}");
    match section {
        Some(name) => match document.find(name) {
            Ok(section) => document.append_entry(section, &line),
            Err(_) => document.insert_section(Where::End, 2, name, &line),
        },
        None => {
            let last = document
                .sections()
                .last()
                .expect("a document has at least one section");
            document.append_entry(last, &line)
        }
    }
}

/// Returns the sentence that shares the most words with a question, and its line.
pub fn best_sentence(page: &Page, question: &str) -> Option<(String, Place)> {
    let asked = crate::memory::content(question);
    let stems: Vec<&str> = asked.iter().map(|word| crate::words::stem(word)).collect();
    let mut best: Option<(f32, String, usize)> = None;
    for claim in crate::claim::cut_claims(&page.text)
        .into_iter()
        .filter(|claim| !claim.italic)
    {
        let said = crate::memory::content(&claim.text);
        let shared = stems
            .iter()
            .filter(|stem| said.iter().any(|word| crate::words::stem(word) == **stem))
            .count();
        // Prefer the shorter of two equal sentences.
        let score = shared as f32 - claim.text.chars().count() as f32 / 2000.0;
        if shared > 0 && best.as_ref().is_none_or(|(most, _, _)| score > *most) {
            best = Some((score, claim.text, claim.line));
        }
    }
    best.map(|(_, text, line)| {
        (
            first_sentence(&text).to_owned(),
            Place::new(&page.path, line),
        )
    })
}

/// Returns true if a text contains at least half of the content words of a question.
pub fn speaks_of(text: &str, question: &str) -> bool {
    let asked = crate::memory::content(question);
    let said = crate::memory::content(text);
    let shared = asked
        .iter()
        .filter(|word| {
            said.iter()
                .any(|other| crate::words::stem(other) == crate::words::stem(word))
        })
        .count();
    !asked.is_empty() && shared * 2 >= asked.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_text::recall::Tier;

    #[test]
    fn a_proposal_survives_its_file() {
        let one = Proposal::new(
            "The old man's name\nis Zhou.",
            Level::Scene,
            "manuscripts/ch01.md#fair",
            "characters.md#zhou",
        );
        let read = read_proposals(&format!("# Learned\n\n{}", one.render()));
        assert_eq!(
            read,
            [Proposal {
                line: 3,
                ..one.clone()
            }]
        );
        assert_eq!(
            one.entry,
            "[scene] The old man's name is Zhou. [→ manuscripts/ch01.md#fair]"
        );
    }

    #[test]
    fn a_report_offers_what_it_lists_under_files() {
        let text = "# ch06\n\n## characters.md\n### Mara Dunn [arc]\n- [chapter] lies in the log,\n  because it pays [→ manuscripts/ch06.md#log]\n- none\n\n## Contradictions\n- [chapter] x [→ m.md]\n";
        let [offer] = read_offers(text).try_into().unwrap();
        let entry = "[chapter] lies in the log, because it pays [→ manuscripts/ch06.md#log]";
        assert_eq!(
            (offer.entry.as_str(), offer.file(), offer.section()),
            (entry, "characters.md", Some("Mara Dunn"))
        );
        assert_eq!((offer.line, offer.lines), (5, 2));
        assert!(offer.stands_in(&format!("# C\n- {entry}\n")));
    }

    #[test]
    fn an_entry_finds_its_section_or_makes_it() {
        let text = "# C\n\n## Otto\n- a\n\n## Mara\n- b\n";
        assert_eq!(
            with_entry(text, Some("otto"), "x").unwrap(),
            "# C\n\n## Otto\n- a\n- x\n\n## Mara\n- b\n"
        );
        assert_eq!(
            with_entry(text, Some("周老"), "x").unwrap(),
            format!("{text}\n## 周老\n\n- x\n")
        );
    }

    #[test]
    fn the_sentence_that_answers_is_found() {
        let page = |text: &str| Page {
            path: "m.md".into(),
            tier: Tier::L2,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let english = page(
            "# A\n\nThe sea was calm. The lamp hung from her left\nhand, swinging. She sang.\n",
        );
        assert_eq!(
            best_sentence(&english, "Which hand held the lamp?")
                .unwrap()
                .1
                .line,
            3
        );
        let chinese = page("# 一\n\n海很静。\n卖红绳的老人姓周。\n");
        let (said, at) = best_sentence(&chinese, "卖红绳的老人姓什么？").unwrap();
        assert_eq!((said.as_str(), at.line), ("卖红绳的老人姓周。", 4));
        assert!(best_sentence(&english, "Who is king?").is_none());
        assert!(speaks_of(
            "The lamp hung from her hand",
            "which hand held the lamp"
        ));
        assert!(!speaks_of("The sea was calm", "which hand held the lamp"));
    }
}
