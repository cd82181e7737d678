//! Reads narrative threads: the chapters in which a thread is planted, due and closed.
//!
//! The status of a thread depends on a chapter, not on the clock.

use quipu_text::Document;
use serde::Serialize;

use crate::memory::{listed, plain};
use crate::page::{Page, Place};

/// A promise to the reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thread {
    pub name: String,
    pub at: Place,
    pub planted: Option<String>,
    pub promise: Option<String>,
    pub due: Option<String>,
    pub closed: Option<String>,
    /// Aliases of the thread, if the section lists any.
    #[serde(skip)]
    pub names: Vec<String>,
}

/// The status of a thread after a chapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    Overdue,
    Due,
    Open,
    /// Not yet planted at that chapter.
    Ahead,
    Closed,
}

impl Standing {
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Overdue => "overdue",
            Standing::Due => "due",
            Standing::Open => "open",
            Standing::Ahead => "ahead",
            Standing::Closed => "closed",
        }
    }
}

const PLANTED: &[&str] = &["planted", "plant", "埋于", "埋在", "埋下"];
/// Keys of the question that a thread leaves open.
pub(crate) const PROMISE: &[&str] = &["promise", "question", "悬念", "疑问"];
const DUE: &[&str] = &["due", "by", "应收", "该收", "计划收"];
const CLOSED: &[&str] = &["closed", "paid off", "answered", "收于", "收在", "已收"];

/// Reads the threads of a page, one per section.
pub fn read_threads(page: &Page, document: &Document<'_>) -> Vec<Thread> {
    let mut threads = Vec::new();
    for section in document
        .sections()
        .iter()
        .filter(|section| section.level >= 2)
    {
        let mut thread = Thread {
            name: section.title.clone(),
            at: Place::new(&page.path, section.line),
            planted: None,
            promise: None,
            due: None,
            closed: None,
            names: vec![section.title.clone()],
        };
        for keyed in document.keyed_in(&section.body) {
            let raw = document.slice(&keyed.value);
            let target = document
                .links_in(&keyed.range)
                .first()
                .map(|link| match &link.anchor {
                    Some(anchor) => format!("{}#{anchor}", link.path),
                    None => link.path.clone(),
                });
            let value = target
                .or_else(|| Some(plain(raw)))
                .filter(|value| !value.is_empty());
            let key = keyed.key.to_lowercase();
            let slot = match key.as_str() {
                key if PLANTED.contains(&key) => &mut thread.planted,
                key if PROMISE.contains(&key) => &mut thread.promise,
                key if DUE.contains(&key) => &mut thread.due,
                key if CLOSED.contains(&key) => &mut thread.closed,
                "aliases" | "别名" => {
                    thread.names.extend(listed(raw));
                    continue;
                }
                _ => continue,
            };
            *slot = value;
        }
        threads.push(thread);
    }
    threads
}

impl Thread {
    /// Returns the status after chapter `now`, counted from 1. `None` means after the last written
    /// chapter.
    pub fn standing(&self, now: Option<u64>) -> Standing {
        let chapter = |text: &Option<String>| text.as_deref().and_then(chapter_number);
        let Some(now) = now else {
            return if self.closed.is_some() {
                Standing::Closed
            } else {
                Standing::Open
            };
        };
        if chapter(&self.planted).is_some_and(|planted| planted > now) {
            return Standing::Ahead;
        }
        if self.closed.is_some() && chapter(&self.closed).is_none_or(|closed| closed <= now) {
            return Standing::Closed;
        }
        match chapter(&self.due) {
            Some(due) if due < now => Standing::Overdue,
            Some(due) if due == now => Standing::Due,
            _ => Standing::Open,
        }
    }
}

/// Returns the number of a chapter from a name: `ch09`, `manuscripts/ch09.md#x`, `第九章`,
/// `chapter 9`.
pub fn chapter_number(text: &str) -> Option<u64> {
    let lower = text.split('#').next().unwrap_or(text).to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    for (at, _) in name.match_indices("ch") {
        let digits: String = name[at + 2..]
            .trim_start_matches("apter")
            .trim_start()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        if let Ok(number) = digits.parse() {
            return Some(number);
        }
    }
    let (_, after) = text.split_once('第')?;
    let (number, _) = after.split_once(['章', '回', '节'])?;
    crate::words::numbers(number)
        .first()
        .map(|number| number.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_recall::Tier;

    #[test]
    fn threads_stand_by_their_chapters() {
        let text = "# T\n\n## The second key\n- planted: [→ manuscripts/ch02.md#watch]\n- promise: [arc] who else?\n- due: ch04\n- closed:\n\n## 红绳\n- 埋于：[→ manuscripts/ch01.md#集市]\n- 应收：第三章\n- 收于：[→ manuscripts/ch03.md#结]\n";
        let page = Page {
            path: "threads.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let threads = read_threads(&page, &Document::parse(text));
        assert_eq!(
            threads[0].planted.as_deref(),
            Some("manuscripts/ch02.md#watch")
        );
        assert_eq!(threads[0].promise.as_deref(), Some("who else?"));
        assert_eq!(threads[0].closed, None);
        let at = |thread: usize, now| threads[thread].standing(Some(now));
        assert_eq!(
            [at(0, 1), at(0, 3), at(0, 4), at(0, 5)],
            [
                Standing::Ahead,
                Standing::Open,
                Standing::Due,
                Standing::Overdue
            ]
        );
        assert_eq!([at(1, 2), at(1, 3)], [Standing::Open, Standing::Closed]);
        assert_eq!(threads[1].standing(None), Standing::Closed);
    }

    #[test]
    fn chapters_are_found_in_names() {
        for (text, number) in [
            ("manuscripts/ch15.md#决裂", Some(15)),
            ("第十二章", Some(12)),
            ("chapter 7", Some(7)),
            ("the end", None),
        ] {
            assert_eq!(chapter_number(text), number, "{text}");
        }
    }
}
