//! Comments on a manuscript, and the answers to them in later rounds, as a report writes them.
//!
//! A comment is `[important] L103 "8.35 and 8.27": what is wrong and what to do`; an answer begins
//! with the id of its comment: `s6.1 [addressed] L99 "new words": why`.

use quipu_contract::Language;
use serde::Serialize;

use super::nothing::{Entry, read_entry};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    Critical,
    Important,
    Minor,
}

impl Severity {
    pub const ALL: [Severity; 3] = [Severity::Critical, Severity::Important, Severity::Minor];

    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Important => "important",
            Severity::Minor => "minor",
        }
    }

    pub const fn in_language(self, language: Language) -> &'static str {
        match (language, self) {
            (Language::En, severity) => severity.as_str(),
            (Language::Zh, Severity::Critical) => "关键",
            (Language::Zh, Severity::Important) => "重要",
            (Language::Zh, Severity::Minor) => "次要",
        }
    }

    /// Parses a severity in either language.
    pub fn parse(word: &str) -> Option<Severity> {
        match word.trim().to_lowercase().as_str() {
            "critical" | "关键" | "严重" => Some(Severity::Critical),
            "important" | "重要" => Some(Severity::Important),
            "minor" | "次要" | "轻微" => Some(Severity::Minor),
            _ => None,
        }
    }
}

/// What became of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// No later round has answered it.
    Open,
    Addressed,
    Partly,
    NotAddressed,
    /// It concerns something outside the texts of the review.
    CannotBeChecked,
    /// The authors refuse, with a reason that the reviewer accepts.
    Declined,
    Withdrawn,
}

impl Status {
    pub const OPEN: [Status; 4] = [
        Status::Open,
        Status::Partly,
        Status::NotAddressed,
        Status::CannotBeChecked,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Addressed => "addressed",
            Status::Partly => "partly",
            Status::NotAddressed => "not addressed",
            Status::CannotBeChecked => "cannot be checked",
            Status::Declined => "declined",
            Status::Withdrawn => "withdrawn",
        }
    }

    pub fn is_open(self) -> bool {
        Status::OPEN.contains(&self)
    }

    /// Whether an answer must quote the new text. A comment that is not addressed rests on its own
    /// words while they are in the text.
    const fn needs_words(self) -> bool {
        matches!(self, Status::Addressed | Status::Partly)
    }

    fn parse(word: &str) -> Option<Status> {
        match word.trim().to_lowercase().replace('-', " ").as_str() {
            "addressed" | "已解决" => Some(Status::Addressed),
            "partly" | "部分解决" => Some(Status::Partly),
            "not addressed" | "未解决" => Some(Status::NotAddressed),
            "cannot be checked" | "无法核对" => Some(Status::CannotBeChecked),
            "declined" | "同意不改" => Some(Status::Declined),
            "withdrawn" | "撤回" => Some(Status::Withdrawn),
            _ => None,
        }
    }
}

/// The lines and the words that an entry rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cited {
    /// Another file than the manuscript.
    pub path: Option<String>,
    pub lines: (usize, usize),
    pub quote: String,
}

/// A comment as a report writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenComment {
    /// Its line in the report.
    pub line: usize,
    pub severity: Severity,
    pub cited: Cited,
    pub text: String,
}

/// An answer as a report writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenAnswer {
    pub line: usize,
    pub id: String,
    pub status: Status,
    /// None if the status needs no words of the new text.
    pub cited: Option<Cited>,
    pub text: String,
}

const COMMENT_FORM: &str = "`- [critical|important|minor] L103 \"words of that line\": what is \
                            wrong and what to do`";
const ANSWER_FORM: &str = "`- s6.1 [addressed|partly] L103 \"words of the new text\": why`, or `- \
                           s6.1 [not addressed|cannot be checked|declined|withdrawn]: why`";

/// Parses one entry of the comments. `None` if it says that there are none.
pub(super) fn parse_comment(line: usize, entry: &str) -> Result<Option<WrittenComment>, String> {
    let bad = |what: &str| {
        let start: String = entry.chars().take(60).collect();
        format!("\"{start}\" {what}; write {COMMENT_FORM}")
    };
    let Some((word, rest)) = bracketed(entry) else {
        return match read_entry(entry) {
            Entry::Nothing => Ok(None),
            _ => Err(bad("has no severity, line and quotation")),
        };
    };
    let severity = Severity::parse(word).ok_or_else(|| bad("has an unknown severity"))?;
    let (cited, text) = parse_cited(rest).map_err(bad)?;
    if read_entry(text) == Entry::Nothing {
        return Err(bad("says that there is nothing to report"));
    }
    Ok(Some(WrittenComment {
        line,
        severity,
        cited,
        text: text.to_owned(),
    }))
}

/// Parses one entry of the answers to earlier comments.
pub(super) fn parse_answer(line: usize, entry: &str) -> Result<Option<WrittenAnswer>, String> {
    let bad = |what: &str| {
        let start: String = entry.chars().take(60).collect();
        format!("\"{start}\" {what}; write {ANSWER_FORM}")
    };
    let (id, rest) = entry.split_once(char::is_whitespace).unwrap_or((entry, ""));
    let id = id.trim_matches(['`', '*', ':', '：']);
    let Some((word, rest)) = bracketed(rest).filter(|_| is_id(id)) else {
        return match read_entry(entry) {
            Entry::Nothing => Ok(None),
            _ => Err(bad("does not begin with the id of a comment and a status")),
        };
    };
    let status = Status::parse(word).ok_or_else(|| bad("has an unknown status"))?;
    let (cited, text) = match parse_cited(rest) {
        Ok((cited, text)) => (Some(cited), text),
        Err(_) if !status.needs_words() => {
            let text = rest.trim_start_matches([':', '：', ' ']).trim();
            (None, text)
        }
        Err(what) => return Err(bad(what)),
    };
    if !text.contains(char::is_alphanumeric) {
        return Err(bad("gives no reason"));
    }
    Ok(Some(WrittenAnswer {
        line,
        id: id.to_owned(),
        status,
        cited,
        text: text.to_owned(),
    }))
}

/// Splits `[word] rest`.
fn bracketed(entry: &str) -> Option<(&str, &str)> {
    let inner = entry.trim_start().strip_prefix(['[', '【'])?;
    let (word, rest) = inner.split_once([']', '】'])?;
    Some((word, rest.trim_start()))
}

/// Parses `L103 "words": text`, with a path before the line if it is not the manuscript.
fn parse_cited(rest: &str) -> Result<(Cited, &str), &'static str> {
    const NO_LINE: &str = "names no line";
    let (path, lines, rest) = match split_lines(rest) {
        Some((lines, rest)) => (None, lines, rest),
        None => {
            let (path, rest) = rest.split_once(char::is_whitespace).ok_or(NO_LINE)?;
            let (lines, rest) = split_lines(rest.trim_start()).ok_or(NO_LINE)?;
            (Some(path.trim_matches('`').to_owned()), lines, rest)
        }
    };
    if lines.0 == 0 || lines.1 < lines.0 {
        return Err(NO_LINE);
    }
    let (quote, text) = split_quote(rest.trim_start()).ok_or("quotes no words")?;
    if !text.contains(char::is_alphanumeric) {
        return Err("does not say what is wrong");
    }
    let quote = quote.to_owned();
    Ok((Cited { path, lines, quote }, text))
}

/// Splits `L103`, `L103-105` or `第103行` from what follows.
fn split_lines(text: &str) -> Option<((usize, usize), &str)> {
    let chinese = text.strip_prefix('第');
    let rest = chinese.or_else(|| text.strip_prefix(['L', 'l']))?;
    let (first, rest) = number(rest)?;
    let range = rest.strip_prefix(['-', '–', '—', '至']);
    let last = range.and_then(|rest| number(rest.trim_start_matches(['L', 'l', '第'])));
    let (last, rest) = last.unwrap_or((first, rest));
    let rest = match chinese {
        Some(_) => rest.strip_prefix('行')?,
        None => rest,
    };
    Some((
        (first, last),
        rest.trim_start_matches([',', '，', ':', '：']),
    ))
}

fn number(text: &str) -> Option<(usize, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Splits a quotation from the text after its colon. The quotation may contain quotation marks.
fn split_quote(text: &str) -> Option<(&str, &str)> {
    let open = text.chars().next()?;
    let close: &[char] = match open {
        '"' | '“' | '”' => &['"', '”', '“'],
        '「' => &['」'],
        '『' => &['』'],
        '«' => &['»'],
        _ => return None,
    };
    let inner = &text[open.len_utf8()..];
    inner.match_indices(close).find_map(|(at, mark)| {
        let after = inner[at + mark.len()..].trim_start();
        let said = after.strip_prefix([':', '：'])?;
        (at > 0).then(|| (&inner[..at], said.trim()))
    })
}

/// Whether a word has the form of a comment's id: `s6.1`.
pub(super) fn is_id(word: &str) -> bool {
    let Some((agent, number)) = word.rsplit_once('.') else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    agent.starts_with(|c: char| c.is_ascii_alphabetic())
        && agent
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && digits(number)
}

/// The ids of comments in a text, in order.
pub(super) fn ids_in(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')))
        .map(|word| word.trim_matches(['.', '-', '_']))
        .filter(|word| is_id(word))
        .collect()
}

/// The comment that a comment opposes: `against s5.2`, `反对 s5.2`.
pub(super) fn opposed(text: &str) -> Option<&str> {
    ["against ", "反对"].iter().find_map(|word| {
        let (_, rest) = text.split_once(word)?;
        let rest = rest.trim_start();
        let first = ids_in(rest).into_iter().next()?;
        rest.starts_with(first).then_some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entry: &str) -> WrittenComment {
        parse_comment(7, entry).unwrap().unwrap()
    }

    #[test]
    fn a_comment_is_read_in_both_languages() {
        let comment = read("[important] L103 \"8.35 and 8.27\": The two differ; say which.");
        assert_eq!(comment.severity, Severity::Important);
        assert_eq!(comment.cited.lines, (103, 103));
        assert_eq!(comment.cited.quote, "8.35 and 8.27");
        assert_eq!(comment.text, "The two differ; say which.");
        let comment = read("【关键】第12-13行「他说：“好”」：样本量不一致。");
        assert_eq!(
            (comment.severity, comment.cited.lines),
            (Severity::Critical, (12, 13))
        );
        assert_eq!(comment.cited.quote, "他说：“好”");
        let comment = read("[minor] `supplementary/a.md` L3-L5 “He said \"no\" twice”: Cut it.");
        assert_eq!(comment.cited.path.as_deref(), Some("supplementary/a.md"));
        assert_eq!(comment.cited.lines, (3, 5));
        assert_eq!(comment.cited.quote, "He said \"no\" twice");
        for none in ["None", "无。", "No comments."] {
            assert_eq!(parse_comment(1, none), Ok(None), "{none}");
        }
    }

    #[test]
    fn an_entry_out_of_form_goes_back() {
        for (entry, what) in [
            ("The sample is too small.", "has no severity"),
            ("[grave] L3 \"a word\": No.", "unknown severity"),
            ("[minor] \"a word\": It is wrong.", "names no line"),
            ("[minor] L0 \"a word\": It is wrong.", "names no line"),
            ("[minor] L3 a word: It is wrong.", "quotes no words"),
            ("[minor] L3 \"a word\"", "quotes no words"),
            ("[minor] L3 \"a word\": …", "does not say what is wrong"),
            (
                "[critical] L3 \"a word\": None identified.",
                "nothing to report",
            ),
        ] {
            let fault = parse_comment(1, entry).unwrap_err();
            assert!(fault.contains(what), "{entry}: {fault}");
        }
    }

    #[test]
    fn an_answer_names_its_comment() {
        let answer = parse_answer(3, "s6.1 [not addressed] L9 \"new words\": Still two.");
        let answer = answer.unwrap().unwrap();
        assert_eq!(
            (answer.id.as_str(), answer.status),
            ("s6.1", Status::NotAddressed)
        );
        let answer = parse_answer(3, "s6.2 [撤回]：我看错了行。")
            .unwrap()
            .unwrap();
        assert_eq!((answer.status, answer.cited), (Status::Withdrawn, None));
        for (word, status) in [
            ("cannot be checked", Status::CannotBeChecked),
            ("declined", Status::Declined),
            ("同意不改", Status::Declined),
        ] {
            let answer = parse_answer(3, &format!("s6.2 [{word}]: It is in the code."));
            assert_eq!(answer.unwrap().unwrap().status, status);
        }
        for bad in [
            "s6.1 addressed L9 \"x\": y",
            "s6.1 [addressed]: It is done.",
            "[addressed] L9 \"new\": It is done.",
            "s6.1 [done] L9 \"new\": It is done.",
        ] {
            assert!(parse_answer(3, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_are_found_in_prose() {
        assert_eq!(
            ids_in("s6.1, r5.2: see v1.2 (w3.10)."),
            ["s6.1", "r5.2", "v1.2", "w3.10"]
        );
        assert_eq!(opposed("Keep it, against s5.2."), Some("s5.2"));
        assert_eq!(opposed("反对 s5.2：保留。"), Some("s5.2"));
        assert_eq!(opposed("It goes against the grain of s5.2."), None);
    }
}
