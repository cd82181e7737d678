//! Learning: a sentence of a manuscript, offered as a fact of memory with its link, until someone accepts it.
//!
//! A proposal is one line of a file that people and agents can read and edit:
//! `- l1a2b3c4d5e: [scene] The old man's name is Zhou [→ manuscripts/ch01.md#fair] ⇒ characters.md#zhou`

use quipu_text::{Document, Level, Place as Where, SpliceError, first_sentence};
use serde::Serialize;

use crate::page::{Page, Place};
use crate::waiver::finding_id;

/// A fact that is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    pub id: String,
    /// The entry as it would stand in memory, level and link included.
    pub entry: String,
    /// `path#section`.
    pub to: String,
    pub line: usize,
}

const ARROW: &str = " ⇒ ";

impl Proposal {
    pub fn new(text: &str, level: Level, source: &str, to: &str) -> Proposal {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(ARROW, " ");
        let entry = format!("[{}] {} [→ {source}]", level.name(), text.trim_start_matches("- "));
        Proposal { id: finding_id(&entry, to).replacen('w', "l", 1), entry, to: to.to_owned(), line: 0 }
    }

    pub fn render(&self) -> String {
        format!("- {}: {}{ARROW}{}\n", self.id, self.entry, self.to)
    }
}

/// The proposals of a file.
pub fn read_proposals(text: &str) -> Vec<Proposal> {
    let read = |(nth, line): (usize, &str)| {
        let (id, rest) = line.strip_prefix("- ")?.split_once(": ")?;
        let (entry, to) = rest.rsplit_once(ARROW)?;
        let known = id.starts_with('l') && id.len() == 11;
        known.then(|| Proposal { id: id.to_owned(), entry: entry.to_owned(), to: to.trim().to_owned(), line: nth + 1 })
    };
    text.lines().enumerate().filter_map(read).collect()
}

/// A page with an entry under a section, which is made if it is not there.
pub fn with_entry(text: &str, section: Option<&str>, entry: &str) -> Result<String, SpliceError> {
    let document = Document::parse(text);
    let line = format!("- {entry}");
    match section {
        Some(name) => match document.find(name) {
            Ok(section) => document.append_entry(section, &line),
            Err(_) => document.insert_section(Where::End, 2, name, &line),
        },
        None => {
            let last = document.sections().last().expect("a document has at least one section");
            document.append_entry(last, &line)
        }
    }
}

/// The sentence of a text that answers a question best, with its line: the one that shares most of its words.
pub fn best_sentence(page: &Page, question: &str) -> Option<(String, Place)> {
    let asked = crate::memory::content(question);
    let stems: Vec<&str> = asked.iter().map(|word| crate::words::stem(word)).collect();
    let mut best: Option<(f32, String, usize)> = None;
    for claim in crate::claim::cut_claims(&page.text) {
        let said = crate::memory::content(&claim.text);
        let shared = stems.iter().filter(|stem| said.iter().any(|word| crate::words::stem(word) == **stem)).count();
        // Among equals the shorter sentence says it more plainly.
        let score = shared as f32 - claim.text.chars().count() as f32 / 2000.0;
        if shared > 0 && best.as_ref().is_none_or(|(most, _, _)| score > *most) {
            best = Some((score, claim.text, claim.line));
        }
    }
    best.map(|(_, text, line)| (first_sentence(&text).to_owned(), Place::new(&page.path, line)))
}

/// Whether a text speaks of at least half of what is asked.
pub fn speaks_of(text: &str, question: &str) -> bool {
    let asked = crate::memory::content(question);
    let said = crate::memory::content(text);
    let shared = asked.iter().filter(|word| said.iter().any(|other| crate::words::stem(other) == crate::words::stem(word))).count();
    !asked.is_empty() && shared * 2 >= asked.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_text::recall::Tier;

    #[test]
    fn a_proposal_survives_its_file() {
        let one = Proposal::new("The old man's name\nis Zhou.", Level::Scene, "manuscripts/ch01.md#fair", "characters.md#zhou");
        let read = read_proposals(&format!("# Learned\n\n{}", one.render()));
        assert_eq!(read, [Proposal { line: 3, ..one.clone() }]);
        assert_eq!(one.entry, "[scene] The old man's name is Zhou. [→ manuscripts/ch01.md#fair]");
    }

    #[test]
    fn an_entry_finds_its_section_or_makes_it() {
        let text = "# C\n\n## Otto\n- a\n\n## Mara\n- b\n";
        assert_eq!(with_entry(text, Some("otto"), "x").unwrap(), "# C\n\n## Otto\n- a\n- x\n\n## Mara\n- b\n");
        assert_eq!(with_entry(text, Some("周老"), "x").unwrap(), format!("{text}\n## 周老\n\n- x\n"));
    }

    #[test]
    fn the_sentence_that_answers_is_found() {
        let page = |text: &str| Page { path: "m.md".into(), tier: Tier::L2, is_memory: true, form: None, text: text.into() };
        let english = page("# A\n\nThe sea was calm. The lamp hung from her left\nhand, swinging. She sang.\n");
        assert_eq!(best_sentence(&english, "Which hand held the lamp?").unwrap().1.line, 3);
        let chinese = page("# 一\n\n海很静。\n卖红绳的老人姓周。\n");
        let (said, at) = best_sentence(&chinese, "卖红绳的老人姓什么？").unwrap();
        assert_eq!((said.as_str(), at.line), ("卖红绳的老人姓周。", 4));
        assert!(best_sentence(&english, "Who is king?").is_none());
        assert!(speaks_of("The lamp hung from her hand", "which hand held the lamp"));
        assert!(!speaks_of("The sea was calm", "which hand held the lamp"));
    }
}
