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
use crate::question::{counts_what_is_asked, only_asks, without_asking};
use crate::supersede::{identity, is_over_before, start_of};
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

    /// Returns true if the entry is in its section of a text already, closed or not. Two people may
    /// have the same fact, and a fact that has ended may begin again.
    pub fn stands_in(&self, text: &str) -> bool {
        let wanted = identity(&self.entry);
        let start = start_of(&self.entry);
        let document = Document::parse(text);
        let own = match self.section().map(|name| document.find(name)) {
            Some(Ok(section)) => document.slice(&section.body),
            Some(Err(_)) => "",
            None => text,
        };
        own.lines().any(|line| {
            line.trim()
                .strip_prefix("- ")
                .is_some_and(|entry| identity(entry) == wanted && !is_over_before(entry, start))
        })
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

/// A report of extracted facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactsReport {
    pub offers: Vec<Proposal>,
    /// Items that contradict memory, with their lines. A person decides about them.
    pub contradictions: Vec<(usize, String)>,
    /// Lines that are no part of an item or that belong to no file, with their numbers.
    pub lost: Vec<(usize, String)>,
}

/// The heading for what contradicts memory.
const CONTRADICTIONS: [&str; 2] = ["contradictions", "矛盾"];
/// Items that say that nothing was found.
const NOTHING: [&str; 6] = ["none", "nothing", "n/a", "无", "没有", "暂无"];

/// Reads the facts that a report offers: list items under `## FILE` and `### SECTION`.
pub fn read_offers(text: &str) -> Vec<Proposal> {
    read_report(text).offers
}

/// Reads a report of extracted facts. Every line below the first `##` heading is part of the result.
pub fn read_report(text: &str) -> FactsReport {
    enum Under {
        Title,
        File(String),
        Contradictions,
        Other,
    }
    let mut report = FactsReport::default();
    let (mut under, mut section) = (Under::Title, None::<String>);
    let body = quipu_text::marker(text).map_or(text, |marker| &text[..marker.start]);
    for (nth, line) in body.lines().enumerate() {
        let number = nth + 1;
        if line.trim().is_empty() {
        } else if let Some(title) = line.strip_prefix("### ") {
            let title = title.split(" [").next().unwrap_or(title).trim();
            section = (!title.is_empty()).then(|| title.to_owned());
        } else if let Some(title) = line.strip_prefix("## ") {
            let title = title.trim().trim_matches('`');
            section = None;
            under = if title.ends_with(".md") {
                Under::File(title.to_owned())
            } else if CONTRADICTIONS.contains(&title.to_lowercase().as_str()) {
                Under::Contradictions
            } else {
                Under::Other
            };
        } else if let Some(entry) = item(line) {
            let said = entry
                .trim_matches(|c: char| "*_`()（）.。 ".contains(c))
                .to_lowercase();
            if NOTHING.contains(&said.as_str()) {
                continue;
            }
            match &under {
                Under::File(file) => {
                    let to = section
                        .as_ref()
                        .map_or_else(|| file.clone(), |section| format!("{file}#{section}"));
                    report
                        .offers
                        .push(Proposal::of_entry(entry.to_owned(), to, number));
                }
                Under::Contradictions => report.contradictions.push((number, entry.to_owned())),
                Under::Title | Under::Other => report.lost.push((number, line.trim().to_owned())),
            }
        } else if line.starts_with([' ', '\t'])
            && let Some(last) = report.offers.last_mut()
            && last.line + last.lines == number
        {
            let entry = format!("{} {}", last.entry, line.trim());
            *last = Proposal {
                lines: last.lines + 1,
                ..Proposal::of_entry(entry, last.to.clone(), last.line)
            };
        } else if matches!(under, Under::File(_)) {
            report.lost.push((number, line.trim().to_owned()));
        }
    }
    report
}

/// Returns the text of a list item, at any depth.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let numbered = || {
        let (number, rest) = line.split_once(['.', ')'])?;
        let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
        rest.strip_prefix(' ').filter(|_| is_number)
    };
    let rest = ["- ", "* ", "+ "]
        .iter()
        .find_map(|sign| line.strip_prefix(sign));
    rest.or_else(numbered)
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

/// Adds an entry to a section of a page. Creates the section if it does not exist. An entry with a
/// key goes into the line of that key if the line has no value yet: `- closed:`.
pub(crate) fn with_entry(
    text: &str,
    section: Option<&str>,
    entry: &str,
) -> Result<String, SpliceError> {
    let document = Document::parse(text);
    let line = format!("- {entry}");
    match section {
        Some(name) => match document.find(name) {
            Ok(section) => match empty_label(&document, &section.body, entry) {
                Some(range) => Ok(format!(
                    "{}{line}{}",
                    &text[..range.start],
                    &text[range.end..]
                )),
                None => document.append_entry(section, &line),
            },
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

/// Finds the line in a section body that has the key of an entry and no value.
fn empty_label(
    document: &Document<'_>,
    body: &std::ops::Range<usize>,
    entry: &str,
) -> Option<std::ops::Range<usize>> {
    let key = entry
        .split([':', '：'])
        .next()
        .filter(|key| key.len() < entry.len())?;
    let mut start = body.start;
    for line in document.slice(body).split_inclusive('\n') {
        let own = line.trim_end();
        let label = own
            .strip_prefix("- ")
            .map(|label| label.trim_end_matches([':', '：']));
        if label == Some(key.trim()) && own.ends_with([':', '：']) {
            return Some(start..start + own.len());
        }
        start += line.len();
    }
    None
}

/// Returns the sentence that shares the most telling words with a question, and its line.
pub fn best_sentence(page: &Page, question: &str) -> Option<(String, Place)> {
    let asked = crate::memory::content(&without_asking(question));
    let stems: Vec<&str> = asked.iter().map(|word| crate::words::stem(word)).collect();
    let claims: Vec<_> = crate::claim::cut_claims(&page.text)
        .into_iter()
        .filter(|claim| !claim.italic && !only_asks(&claim.text))
        .map(|claim| (crate::memory::content(&claim.text), claim))
        .collect();
    let says =
        |said: &[String], stem: &str| said.iter().any(|word| crate::words::stem(word) == stem);
    // A word that is everywhere in the text, such as the name of its hero, decides little.
    let weights: Vec<f32> = stems
        .iter()
        .map(|stem| {
            let count = claims.iter().filter(|(said, _)| says(said, stem)).count();
            1.0 / count.max(1) as f32
        })
        .collect();
    let mut best: Option<(f32, String, usize)> = None;
    for (said, claim) in claims {
        let shared: f32 = stems
            .iter()
            .zip(&weights)
            .filter(|(stem, _)| says(&said, stem))
            .map(|(_, weight)| weight)
            .sum();
        // Prefer the shorter of two equal sentences.
        // The number that is asked for weighs more than all names of the question.
        let counts = match counts_what_is_asked(question, &claim.text) {
            true => stems.len() as f32,
            false => 0.0,
        };
        let score = shared + counts - claim.text.chars().count() as f32 / 2000.0;
        if shared > 0.0 && best.as_ref().is_none_or(|(most, _, _)| score > *most) {
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
    use quipu_recall::Tier;

    #[test]
    fn a_question_in_the_text_answers_none() {
        for (text, question, answer) in [
            (
                "# 礁道\n\n“没有。”沈砚说，“我熄的。”\n\n“为什么？”\n\n沈砚熄灯是因为收了钱。\n",
                "沈砚为什么熄灯？",
                "沈砚熄灯是因为收了钱。",
            ),
            (
                "台阶八十八级，他数出了声。\n\n裴伯仰面躺在台阶底下，一只鞋还在上面。\n",
                "裴伯的台阶有多少级？",
                "台阶八十八级，他数出了声。",
            ),
            (
                "“Why did you put out the light, Joss?”\n\nJoss put it out for money.\n",
                "Why did Joss put out the light?",
                "Joss put it out for money.",
            ),
            (
                "The stair has eighty-eight steps.\n\nPell lay below the steps of the tower, one shoe on.\n",
                "How many steps has Pell's tower?",
                "The stair has eighty-eight steps.",
            ),
        ] {
            let page = Page {
                path: "manuscripts/ch03.md".into(),
                tier: Tier::L2,
                is_memory: true,
                form: None,
                text: text.into(),
            };
            let found = best_sentence(&page, question).map(|(text, _)| text);
            assert_eq!(found.as_deref(), Some(answer), "{question}");
        }
        let page = Page {
            path: "m.md".into(),
            tier: Tier::L2,
            is_memory: true,
            form: None,
            text: "“Why the light?”\n".into(),
        };
        assert!(best_sentence(&page, "Why did the light go out?").is_none());
    }

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
        // Items without a link arrive too: promises, due dates, keyed facts.
        let keyed = read_report(
            "# ch06\n\n## threads.md\n### The bell\n- planted: [→ manuscripts/ch06.md#bell]\n* due: ch08\n\n## characters.md\n### Mara\n  - handed: left\n1. age: 41\nMara is tired.\n- none\n\n## Mood\n- dark\n\n## Contradictions\n- the scar [→ m.md]\n\n<!-- FACTS_COMPLETE -->\n",
        );
        let told: Vec<_> = keyed
            .offers
            .iter()
            .map(|o| (o.to.as_str(), o.entry.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "threads.md#The bell",
                    "planted: [→ manuscripts/ch06.md#bell]"
                ),
                ("threads.md#The bell", "due: ch08"),
                ("characters.md#Mara", "handed: left"),
                ("characters.md#Mara", "age: 41"),
            ]
        );
        let lost: Vec<_> = keyed.lost.iter().map(|(line, _)| *line).collect();
        assert_eq!((lost, keyed.contradictions.len()), (vec![12, 16], 1));

        let text = "# ch06\n\n## characters.md\n### Mara Dunn [arc]\n- [chapter] lies in the log,\n  because it pays [→ manuscripts/ch06.md#log]\n- none\n\n## Contradictions\n- [chapter] x [→ m.md]\n";
        let [offer] = read_offers(text).try_into().unwrap();
        let entry = "[chapter] lies in the log, because it pays [→ manuscripts/ch06.md#log]";
        assert_eq!(
            (offer.entry.as_str(), offer.file(), offer.section()),
            (entry, "characters.md", Some("Mara Dunn"))
        );
        assert_eq!((offer.line, offer.lines), (5, 2));
        assert!(offer.stands_in(&format!("# C\n\n## Mara Dunn\n- {entry}\n")));
        let of_another = format!("# C\n\n## Mara Dunn\n- tall\n\n## Hale\n- {entry}\n");
        assert!(!offer.stands_in(&of_another));
    }

    #[test]
    fn an_entry_finds_its_section_or_makes_it() {
        let text = "# C\n\n## Otto\n- a\n\n## Mara\n- b\n";
        assert_eq!(
            with_entry(
                "# T\n\n## Bell\n- due: ch03\n- closed:\n- x\n",
                Some("bell"),
                "closed: ch02"
            )
            .unwrap(),
            "# T\n\n## Bell\n- due: ch03\n- closed: ch02\n- x\n"
        );
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

    #[test]
    fn a_fact_that_has_ended_may_begin_again() {
        let offer = |entry: &str| Proposal::of_entry(entry.into(), "characters.md#Finch".into(), 0);
        let text = "# C\n\n## Finch\n- goes by: Tobias Finch (until ch03)\n- goes by: Tom (from ch03)\n- 化名：阿七（至 ch03）\n";
        assert!(!offer("goes by: Tobias Finch (from ch05)").stands_in(text));
        assert!(!offer("化名：阿七（自 ch05）").stands_in(text));
        assert!(offer("goes by: Tobias Finch (from ch01)").stands_in(text));
        assert!(offer("goes by: Tom (from ch03)").stands_in(text));
        // Without a date nothing says that it is another time.
        assert!(offer("goes by: Tobias Finch").stands_in(text));
    }
}
