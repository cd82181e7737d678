//! A text with named gaps: matches a finished message against it, and fills it.

/// A part of a text of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Fixed(String),
    Gap { name: String, kind: Kind },
}

/// How the value of a gap appears in Chinese.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// As it is: a name, a path, a number.
    Kept,
    /// It must have an entry.
    Text,
    /// It may have an entry.
    Any,
}

impl Part {
    pub fn fixed(&self) -> usize {
        match self {
            Part::Fixed(text) => text.len(),
            Part::Gap { .. } => 0,
        }
    }
}

/// Reads `{name}`, `{name*}` and `{name?}`; other braces are text.
pub fn parse(text: &str) -> Vec<Part> {
    let (mut parts, mut fixed, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        fixed.push_str(before);
        match from.find('}').and_then(|end| gap(&from[1..end])) {
            Some((gap, length)) => {
                if !fixed.is_empty() {
                    parts.push(Part::Fixed(std::mem::take(&mut fixed)));
                }
                parts.push(gap);
                rest = &from[length + 2..];
            }
            None => {
                fixed.push('{');
                rest = &from[1..];
            }
        }
    }
    fixed.push_str(rest);
    if !fixed.is_empty() {
        parts.push(Part::Fixed(fixed));
    }
    parts
}

fn gap(inside: &str) -> Option<(Part, usize)> {
    let (name, kind) = match inside.strip_suffix('*') {
        Some(name) => (name, Kind::Text),
        None => match inside.strip_suffix('?') {
            Some(name) => (name, Kind::Any),
            None => (inside, Kind::Kept),
        },
    };
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase());
    let name = name.to_owned();
    is_name.then_some((Part::Gap { name, kind }, inside.len()))
}

/// A Chinese text, and how many bytes of the English one have entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    pub text: String,
    pub known: usize,
}

/// The Chinese text of a message that matches the English parts as a whole. `inner` translates the
/// value of a gap.
pub fn translate(
    english: &[Part],
    chinese: &[Part],
    message: &str,
    inner: &impl Fn(&str) -> Option<Said>,
) -> Option<Said> {
    let values = values(english, message, inner)?;
    let value = |name: &str| values.iter().find(|(known, _)| *known == name);
    let part = |part: &Part| match part {
        Part::Fixed(text) => text.clone(),
        Part::Gap { name, .. } => value(name).map_or_else(String::new, |(_, v)| v.text.clone()),
    };
    let fixed: usize = english.iter().map(Part::fixed).sum();
    Some(Said {
        text: chinese.iter().map(part).collect(),
        known: fixed + values.iter().map(|(_, value)| value.known).sum::<usize>(),
    })
}

/// The values of the gaps, by name.
fn values<'p>(
    parts: &'p [Part],
    text: &str,
    inner: &impl Fn(&str) -> Option<Said>,
) -> Option<Vec<(&'p str, Said)>> {
    let Some((part, rest)) = parts.split_first() else {
        return text.is_empty().then(Vec::new);
    };
    let (name, kind) = match part {
        Part::Fixed(fixed) => return values(rest, text.strip_prefix(fixed.as_str())?, inner),
        Part::Gap { name, kind } => (name.as_str(), *kind),
    };
    let ends_at = |end: usize| {
        let (value, after) = text.split_at(end);
        let mut found = values(rest, after, inner)?;
        let kept = || Said {
            text: value.to_owned(),
            known: 0,
        };
        let value = match kind {
            Kind::Kept => kept(),
            Kind::Text => inner(value)?,
            Kind::Any => inner(value).unwrap_or_else(kept),
        };
        found.push((name, value));
        Some(found)
    };
    match rest.first() {
        Some(Part::Fixed(next)) => {
            let mut ends = text.match_indices(next.as_str()).map(|(at, _)| at);
            ends.find_map(ends_at)
        }
        _ => ends_at(text.len()),
    }
}
