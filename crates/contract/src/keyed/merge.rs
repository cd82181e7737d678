//! Merges two versions with a common base, by section and by key.
//!
//! The result starts from theirs and applies the changes that ours made to the base. If both set a
//! key to different values, ours wins because it is newer, and theirs moves to the section's
//! history. So a merge never conflicts and never loses a value. Text without a key is kept from
//! both sides. If both changed a section, the order is that of theirs.

use std::collections::BTreeSet;

use super::history::remember;
use super::parse::{Kind, Part, Unit, item_content, parse, render};

/// Merges ours, the newer, into theirs. `until` is the time that the history records for replaced
/// values of theirs.
pub fn merge_keyed(base: &str, ours: &str, theirs: &str, until: &str) -> String {
    if ours == theirs || base == ours {
        return theirs.to_owned();
    }
    if base == theirs {
        return ours.to_owned();
    }
    let (base, ours) = (parse(base), parse(ours));
    let mut merged = parse(theirs);
    let find = |parts: &[Part], id: &str| parts.iter().position(|part| part.id == id);
    let mut displaced: Vec<(String, String, String)> = Vec::new();

    // A section that ours deleted is deleted, unless theirs changed it meanwhile.
    merged.retain(|their| {
        let gone = find(&ours, &their.id).is_none();
        !gone || find(&base, &their.id).is_none_or(|at| base[at].render() != their.render())
    });
    for (index, our) in ours.iter().enumerate() {
        let old = find(&base, &our.id).map(|at| &base[at]);
        match find(&merged, &our.id) {
            Some(at) => {
                for (key, value) in merge_part(old, our, &mut merged[at]) {
                    displaced.push((our.id.clone(), key, value));
                }
            }
            None if old.is_some_and(|old| old.render() == our.render()) => {}
            None => insert_part(&mut merged, &ours[..index], our.clone()),
        }
    }
    for (id, key, value) in displaced {
        if let Some(at) = find(&merged, &id) {
            remember(&mut merged, at, &key, &value, until);
        }
    }
    render(&merged)
}

/// Inserts a section of ours after its predecessor in ours. Skips deeper sections, so that the new
/// section does not adopt them.
fn insert_part(merged: &mut Vec<Part>, before: &[Part], part: Part) {
    let follows = before
        .iter()
        .rev()
        .find_map(|one| merged.iter().position(|other| other.id == one.id));
    let mut at = follows.map_or(0, |at| at + 1);
    while merged.get(at).is_some_and(|next| next.level > part.level) {
        at += 1;
    }
    let blank = |part: &mut Part| {
        if let Some(last) = part.units.last_mut()
            && last.gap.is_empty()
            && !(last.text.is_empty() && part.level == 0)
        {
            last.gap = "\n".to_owned();
        }
    };
    let mut part = part;
    if at > 0 {
        blank(&mut merged[at - 1]);
    }
    if at < merged.len() {
        blank(&mut part);
    }
    merged.insert(at, part);
}

/// Applies the changes of ours to theirs. Returns the values of theirs that ours replaced.
fn merge_part(old: Option<&Part>, our: &Part, their: &mut Part) -> Vec<(String, String)> {
    let mut displaced = Vec::new();
    if old.is_some_and(|old| old.render() == our.render()) || our.render() == their.render() {
        return displaced;
    }
    if old.is_some_and(|old| old.render() == their.render()) {
        their.units.clone_from(&our.units);
        return displaced;
    }
    let history = their.is_history();
    let was = |id: &str| old.and_then(|old| old.find(id));
    let gone: BTreeSet<String> = their
        .units
        .iter()
        .filter(|unit| {
            our.find(&unit.id).is_none() && was(&unit.id).is_some_and(|old| old.text == unit.text)
        })
        .map(|unit| unit.id.clone())
        .collect();
    for id in gone {
        remove_unit(&mut their.units, &id);
    }
    for (index, unit) in our.units.iter().enumerate() {
        let old = was(&unit.id);
        match their.units.iter_mut().find(|other| other.id == unit.id) {
            Some(other)
                if other.text == unit.text || old.is_some_and(|old| old.text == unit.text) => {}
            Some(other) if old.is_some_and(|old| old.text == other.text) => {
                take(other, unit.clone())
            }
            Some(_) if history => {}
            Some(other) => displaced.extend(combine(old, unit, other)),
            None if old.is_some_and(|old| old.text == unit.text) => {}
            None => insert_unit(&mut their.units, &our.units, index),
        }
    }
    set_apart(&mut their.units);
    displaced
}

/// Separates units that a merge made adjacent, because prose directly after an entry would be
/// parsed as part of it.
fn set_apart(units: &mut [Unit]) {
    for at in 1..units.len() {
        let (before, after) = units.split_at_mut(at);
        let (unit, next) = (&mut before[at - 1], &after[0]);
        let opens = item_content(&next.text).is_some()
            || next.text.trim_start().starts_with(['|', '`', '~', '<']);
        let absorbs = match unit.kind {
            Kind::Item | Kind::Block => !opens,
            Kind::Keyed { .. } => !opens && next.kind == Kind::Block,
            _ => false,
        };
        if absorbs && unit.gap.is_empty() {
            unit.gap = if unit.text.ends_with("\r\n") {
                "\r\n"
            } else {
                "\n"
            }
            .to_owned();
        }
    }
}

/// Replaces a unit of theirs by that of ours, keeping the blank lines of theirs.
fn take(other: &mut Unit, unit: Unit) {
    let gap = std::mem::take(&mut other.gap);
    *other = unit;
    other.gap = gap;
}

/// Merges an entry that both changed: ours wins, and nested lines are kept from both.
fn combine(old: Option<&Unit>, unit: &Unit, other: &mut Unit) -> Option<(String, String)> {
    let (key, value) = (other.key()?.to_owned(), other.value());
    let base_value = old.map(Unit::value);
    let theirs_changed = base_value.as_ref() != Some(&value);
    let ours_changed = base_value.as_ref() != Some(&unit.value());
    let lines = |unit: &Unit| {
        unit.rest()
            .split_inclusive('\n')
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (our, their, base) = (
        lines(unit),
        lines(other),
        old.map(lines).unwrap_or_default(),
    );
    let mut rest: Vec<String> = their
        .iter()
        .filter(|line| our.contains(line) || !base.contains(line))
        .cloned()
        .collect();
    rest.extend(
        our.iter()
            .filter(|line| !their.contains(line) && !base.contains(line))
            .cloned(),
    );
    let head = |unit: &Unit| match &unit.kind {
        Kind::Keyed { rest, .. } => unit.text[..*rest].to_owned(),
        _ => unit.text.clone(),
    };
    let mut text = if ours_changed || !theirs_changed {
        head(unit)
    } else {
        head(other)
    };
    for line in rest {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
    }
    let differs = ours_changed && theirs_changed && unit.value() != value;
    let gap = std::mem::take(&mut other.gap);
    let kind = if ours_changed || !theirs_changed {
        unit.kind.clone()
    } else {
        other.kind.clone()
    };
    *other = Unit {
        id: unit.id.clone(),
        text,
        gap,
        line: other.line,
        kind,
    };
    differs.then_some((key, value))
}

fn remove_unit(units: &mut Vec<Unit>, id: &str) {
    if let Some(at) = units
        .iter()
        .position(|unit| unit.id == id && unit.kind != Kind::Heading)
    {
        let unit = units.remove(at);
        if unit.gap.len() > units[at - 1].gap.len() {
            units[at - 1].gap = unit.gap;
        }
    }
}

/// Inserts an entry of ours after its predecessor in ours. If it is the last of its list, the blank
/// lines stay after the list.
fn insert_unit(units: &mut Vec<Unit>, ours: &[Unit], index: usize) {
    let mut unit = ours[index].clone();
    let found = ours[..index].iter().rev().find_map(|one| {
        units
            .iter()
            .position(|other| other.id == one.id)
            .map(|at| (one, at))
    });
    let Some((model, mut at)) = found else {
        return units.push(unit);
    };
    // Entries that theirs inserted at the same place come first. Either order would do; this one is
    // stable.
    let theirs_alone =
        |next: &Unit| next.key().is_some() && ours.iter().all(|one| one.id != next.id);
    while unit.key().is_some()
        && units[at].gap.is_empty()
        && units.get(at + 1).is_some_and(theirs_alone)
    {
        at += 1;
    }
    let eol = if units[at].text.ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    for open in [&mut units[at].text, &mut unit.text] {
        if !open.is_empty() && !open.ends_with('\n') {
            open.push_str(eol);
        }
    }
    let listed = |unit: &Unit| {
        matches!(
            unit.kind,
            Kind::Keyed { .. } | Kind::Row { .. } | Kind::Item
        )
    };
    let tight = model.gap.is_empty() || (listed(&units[at]) && listed(&unit));
    let gap = std::mem::take(&mut units[at].gap);
    units[at].gap = if tight {
        String::new()
    } else {
        model.gap.clone()
    };
    unit.gap = if gap.is_empty() && !tight && at + 1 < units.len() {
        eol.to_owned()
    } else {
        gap
    };
    units.insert(at + 1, unit);
}
