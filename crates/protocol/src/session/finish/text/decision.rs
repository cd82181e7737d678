//! Parses one decision of a finish text: a sentence, optionally with its reason, the rejected
//! alternatives and the person who decided.
//!
//! Text without a field name becomes the title, then the body. `decisions/record.rs` writes the
//! entry.

use super::blocks::Item;
use crate::session::decisions::NewDecision;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Why,
    Alternatives,
    By,
    Supersedes,
    Status,
    Context,
    Decision,
    Consequences,
    Id,
}

/// The names of each field. A longer name precedes its own prefixes.
const FIELDS: &[(Field, &[&str])] = &[
    (
        Field::Why,
        &[
            "why",
            "because",
            "reasons",
            "reason",
            "rationale",
            "理由",
            "原因",
            "因为",
            "为什么",
        ],
    ),
    (
        Field::Alternatives,
        &[
            "rejected alternatives",
            "alternatives rejected",
            "rejected",
            "alternatives considered",
            "alternatives",
            "alternative",
            "instead of",
            "considered",
            "否决",
            "备选方案",
            "备选",
            "落选",
            "未采用",
            "已否决",
            "不采用",
            "排除",
        ],
    ),
    (
        Field::By,
        &[
            "decided by",
            "decision by",
            "by",
            "who",
            "决定者",
            "决定人",
            "由谁决定",
            "决策人",
            "决策者",
        ],
    ),
    (
        Field::Supersedes,
        &["supersedes", "replaces", "取代", "替代", "代替"],
    ),
    (Field::Status, &["status", "状态"]),
    (Field::Context, &["context", "background", "背景"]),
    (
        Field::Decision,
        &["decision", "chosen", "decided", "决策", "决定"],
    ),
    (
        Field::Consequences,
        &["consequences", "consequence", "impact", "影响", "后果"],
    ),
    (Field::Id, &["id", "编号"]),
];

/// A longer title is cut after its first sentence, and the rest moves into the body.
const LONGEST_TITLE: usize = 110;

/// Whether a line is a field of the decision above it.
pub(super) fn is_field(line: &str) -> bool {
    field_at(&bare(line)).is_some()
}

/// The name before the colon.
pub(super) fn field_name(line: &str) -> &str {
    line.split([':', '：']).next().unwrap_or_default()
}

fn bare(line: &str) -> String {
    line.replace("**", "").replace("__", "").trim().to_owned()
}

/// The field at the beginning of a text, and its value.
fn field_at(text: &str) -> Option<(Field, &str)> {
    for (field, names) in FIELDS {
        for name in *names {
            let Some(head) = text
                .get(..name.len())
                .filter(|head| head.eq_ignore_ascii_case(name))
            else {
                continue;
            };
            if let Some(value) = text[head.len()..].trim_start().strip_prefix([':', '：']) {
                return Some((*field, value.trim()));
            }
        }
    }
    None
}

/// Parses an item. None if it has no title.
pub(super) fn parse_decision(item: &Item) -> Option<NewDecision> {
    let mut parts: Vec<(Option<Field>, String)> = Vec::new();
    split_fields(&bare(&item.text), &mut parts);
    for (is_entry, line) in &item.body {
        let line = if line.trim_start().starts_with("```") {
            line.clone()
        } else {
            bare(line)
        };
        match (field_at(&line).is_some(), parts.last_mut()) {
            (false, Some((field, text)))
                if !(field.is_none() && (*is_entry || item.is_heading)) =>
            {
                text.push_str(if *is_entry { "; " } else { " " });
                text.push_str(line.trim());
            }
            (false, _) => match line
                .strip_prefix("Because ")
                .or_else(|| line.strip_prefix("because "))
            {
                Some(why) => parts.push((Some(Field::Why), why.to_owned())),
                None => parts.push((Some(Field::Decision), line)),
            },
            (true, _) => split_fields(&line, &mut parts),
        }
    }
    let mut decision = NewDecision::default();
    for (field, text) in parts {
        put(&mut decision, field, text.trim());
    }
    take_marks(&mut decision);
    take_reason(&mut decision);
    shorten(&mut decision);
    if decision.title.is_empty() {
        decision.title =
            first_sentence(decision.decision.as_deref().unwrap_or_default()).to_owned();
    }
    (!decision.title.is_empty()).then_some(decision)
}

/// Splits `Title. Why: …; rejected: …` into the text before the first field and the fields.
fn split_fields(text: &str, parts: &mut Vec<(Option<Field>, String)>) {
    let mut starts = vec![];
    let (mut may_begin, mut is_behind_space) = (true, false);
    for (at, c) in text.char_indices() {
        // A capitalised name needs no separator before it: `By: Mira Status: proposed`.
        let begins = may_begin || is_behind_space && (c.is_uppercase() || !c.is_ascii());
        if begins && !c.is_whitespace() && field_at(&text[at..]).is_some() {
            starts.push(at);
        }
        is_behind_space = c.is_whitespace();
        may_begin = matches!(
            c,
            '.' | ';' | ',' | '—' | '–' | '|' | '(' | '（' | '。' | '；' | '，'
        ) || (may_begin && (c.is_whitespace() || c == '-'));
    }
    let first = starts.first().copied().unwrap_or(text.len());
    let trimmed = |part: &str| {
        part.trim()
            .trim_end_matches(['—', '–', '|', ';', '；', ',', '，', '(', '（', '-'])
            .trim()
            .to_owned()
    };
    let head = trimmed(&text[..first]);
    if !head.is_empty() {
        parts.push((None, head));
    }
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(text.len());
        if let Some((field, value)) = field_at(&text[*start..end]) {
            let value = trimmed(value);
            let open = value.matches(['(', '（']).count();
            let value = if value.matches([')', '）']).count() > open {
                value.trim_end_matches([')', '）']).to_owned()
            } else {
                value
            };
            parts.push((Some(field), value));
        }
    }
}

fn put(decision: &mut NewDecision, field: Option<Field>, text: &str) {
    // Names, statuses and ids need no full stop. Text cut from a title begins with the separator.
    let text = match field {
        Some(Field::By | Field::Status | Field::Id) => {
            text.trim_end_matches(['.', '。', ';', '；']).trim_end()
        }
        None | Some(Field::Decision) => {
            text.trim_start_matches([':', '：', ';', '；']).trim_start()
        }
        _ => text,
    };
    if text.is_empty() {
        return;
    }
    let slot = match field {
        None if decision.title.is_empty() => {
            decision.title = text.to_owned();
            return;
        }
        Some(Field::Supersedes) => {
            let names = text.split([',', '，', '、', ' ', ';']).map(|n| {
                n.trim_matches(['`', '[', ']', '.', '。', '(', ')'])
                    .to_owned()
            });
            decision
                .supersedes
                .extend(names.filter(|n| !n.is_empty() && n != "and"));
            return;
        }
        Some(Field::Why) => &mut decision.why,
        Some(Field::Alternatives) => &mut decision.alternatives,
        Some(Field::By) => &mut decision.by,
        Some(Field::Status) if text.eq_ignore_ascii_case("proposed") => {
            return decision.status = Some("Proposed".into());
        }
        Some(Field::Status) => &mut decision.status,
        Some(Field::Context) => &mut decision.context,
        Some(Field::Consequences) => &mut decision.consequences,
        Some(Field::Id) => &mut decision.id,
        None | Some(Field::Decision) => &mut decision.decision,
    };
    *slot = Some(
        slot.take()
            .map_or_else(|| text.to_owned(), |old| format!("{old} {text}")),
    );
}

/// Parses `(proposed)`, `(decided by Mira)` or `(supersedes ADR-1)` at the end, and `Proposed:` at
/// the beginning.
fn take_marks(decision: &mut NewDecision) {
    for (word, status) in [
        ("proposed:", "Proposed"),
        ("proposal:", "Proposed"),
        ("提议：", "提议"),
        ("建议：", "提议"),
    ] {
        if decision
            .title
            .get(..word.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(word))
        {
            decision.title = decision.title[word.len()..].trim().to_owned();
            decision.status.get_or_insert_with(|| status.to_owned());
        }
    }
    while let Some((title, inner)) = last_group(&decision.title) {
        let mut rest = NewDecision::default();
        let unknown: Vec<&str> = inner
            .split([',', ';', '，', '；'])
            .map(str::trim)
            .filter(|part| !take_mark(&mut rest, part))
            .collect();
        if rest.status.is_none() && rest.by.is_none() && rest.supersedes.is_empty() {
            return;
        }
        let unknown = unknown.join("; ");
        decision.title = if unknown.is_empty() {
            title
        } else {
            format!("{title} ({unknown})")
        };
        decision.status = decision.status.take().or(rest.status);
        decision.by = decision.by.take().or(rest.by);
        decision.supersedes.extend(rest.supersedes);
    }
}

fn take_mark(decision: &mut NewDecision, part: &str) -> bool {
    let after = |words: &[&str]| {
        words.iter().find_map(|word| {
            let head = part
                .get(..word.len())
                .filter(|head| head.eq_ignore_ascii_case(word))?;
            let rest = part[head.len()..].trim_start_matches([':', '：']).trim();
            (!rest.is_empty()).then(|| rest.to_owned())
        })
    };
    if matches!(
        part.to_lowercase().as_str(),
        "proposed" | "proposal" | "提议" | "待定" | "建议"
    ) {
        decision.status = Some(if part.is_ascii() {
            "Proposed".into()
        } else {
            "提议".into()
        });
    } else if let Some(who) = after(&["decided by ", "by ", "由"]) {
        decision.by = Some(who.trim_end_matches("决定").trim().to_owned());
    } else if let Some(old) = after(&["supersedes ", "replaces ", "取代", "替代"]) {
        put(decision, Some(Field::Supersedes), &old);
    } else {
        return false;
    }
    true
}

/// Splits off a final group in brackets. Returns the text before it and the content of the
/// brackets.
fn last_group(text: &str) -> Option<(String, String)> {
    let bare = text.trim().trim_end_matches(['.', '。']);
    let (open, close) = [('(', ')'), ('（', '）'), ('[', ']')]
        .into_iter()
        .find(|(_, close)| bare.ends_with(*close))?;
    let start = bare.rfind(open)?;
    let inner = bare[start + open.len_utf8()..bare.len() - close.len_utf8()]
        .trim()
        .to_owned();
    Some((bare[..start].trim().to_owned(), inner)).filter(|(title, _)| !title.is_empty())
}

/// Splits `Sort explicitly because ties must be stable` into title and reason.
fn take_reason(decision: &mut NewDecision) {
    if decision.why.is_some() {
        return;
    }
    for word in [" because ", "，因为", ", since "] {
        if let Some((title, why)) = decision.title.split_once(word)
            && !title.trim().is_empty()
            && !why.trim().is_empty()
        {
            let why = if why.starts_with("of ") {
                format!("because {}", why.trim())
            } else {
                why.trim().to_owned()
            };
            decision.why = Some(why);
            decision.title = title.trim().trim_end_matches([',', '，', ';']).to_owned();
            return;
        }
    }
}

/// Cuts a long title to its first sentence and moves the rest into the body.
fn shorten(decision: &mut NewDecision) {
    let first = first_sentence(&decision.title);
    if decision.title.chars().count() > LONGEST_TITLE && first.len() < decision.title.len() {
        let rest = decision.title[first.len()..]
            .trim_start_matches(['.', '。', ';', '；', ' '])
            .trim()
            .to_owned();
        let body = decision
            .decision
            .take()
            .map_or(rest.clone(), |old| format!("{rest} {old}"));
        decision.decision = Some(body).filter(|b| !b.is_empty());
        decision.title = first.to_owned();
    } else if let Some(bare) = decision
        .title
        .strip_suffix('.')
        .or_else(|| decision.title.strip_suffix('。'))
        && !bare.ends_with('.')
    {
        decision.title = bare.to_owned();
    }
}

fn first_sentence(text: &str) -> &str {
    let ends = [". ", "。"];
    let end = ends
        .iter()
        .filter_map(|mark| text.find(mark))
        .filter(|end| *end > 8)
        .min();
    end.map_or(text, |end| &text[..end]).trim()
}
