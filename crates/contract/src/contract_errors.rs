//! Collects all errors of a contract file. The deserializer stops at the first error, so this
//! module removes the offending value and reads again.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::precompile::{SyntaxError, precompile_table};

/// Maximum number of reported errors.
const MOST: usize = 50;

/// The errors of a text, in the order found, and the parsed remainder.
pub(crate) struct Reading<T> {
    pub misreads: Vec<SyntaxError>,
    /// `None` if other parts may depend on a removed value; they would then report false errors.
    pub rest: Option<T>,
}

/// Parses a text and collects its errors.
pub(crate) fn read_all<T: DeserializeOwned>(text: &str) -> Reading<T> {
    let mut table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            return Reading {
                misreads: vec![SyntaxError {
                    message: error.message().to_owned(),
                    span: error.span(),
                }],
                rest: None,
            };
        }
    };
    let mut misreads: Vec<SyntaxError> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    let mut rests_on_nothing = true;
    while misreads.len() < MOST {
        let mut row = Vec::new();
        let span = table.span();
        let mut misread = match precompile_table(table.get_ref(), span, &mut row)
            .and_then(|()| crate::precompiled::read::<T>(&row))
        {
            Ok(rest) => {
                return Reading {
                    misreads,
                    rest: rests_on_nothing.then_some(rest),
                };
            }
            Err(misread) => misread,
        };
        misread.message = in_plain_words(&misread.message);
        let place = misread.span.clone();
        // A value that is reported missing because it was removed is not an error.
        if !left_out
            .iter()
            .any(|key| misread.message == format!("missing field `{key}`"))
        {
            misreads.push(misread);
        }
        // An error about the whole file hides the rest.
        let mut path = Vec::new();
        let Some(whole) = place.and_then(|place| leave_out(table.get_mut(), &place, &mut path))
        else {
            break;
        };
        rests_on_nothing &= !whole
            && !path
                .first()
                .is_some_and(|top| NAMING.contains(&top.as_str()));
        left_out.extend(path.pop());
    }
    Reading {
        misreads,
        rest: None,
    }
}

/// Tables with keys that other parts refer to.
const NAMING: [&str; 4] = ["vars", "units", "profiles", "include"];

/// Removes the innermost key or value at a place. Returns the keys on the path to it, and whether
/// it was more than a plain value, because the span of the first of several tables with one name
/// covers all of them. `None` if nothing is at the place.
fn leave_out(
    table: &mut DeTable<'_>,
    place: &Range<usize>,
    path: &mut Vec<String>,
) -> Option<bool> {
    for (key, value) in table.iter_mut() {
        path.push(key.get_ref().to_string());
        if let Some(whole) = leave_out_of(value, place, path) {
            return Some(whole);
        }
        path.pop();
    }
    let at_place = table
        .iter()
        .find(|(key, value)| key.span() == *place || value.span() == *place)
        .map(|(key, _)| key.clone())?;
    path.push(at_place.get_ref().to_string());
    // Nothing refers to an unknown key, regardless of its value.
    let is_unknown = at_place.span() == *place;
    table.remove(&at_place).map(|value| {
        !is_unknown && matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_))
    })
}

fn leave_out_of(
    value: &mut Spanned<DeValue<'_>>,
    place: &Range<usize>,
    path: &mut Vec<String>,
) -> Option<bool> {
    match value.get_mut() {
        DeValue::Table(table) => leave_out(table, place, path),
        DeValue::Array(values) => {
            for value in values.iter_mut() {
                if let Some(whole) = leave_out_of(value, place, path) {
                    return Some(whole);
                }
            }
            let before = values.len();
            let kept: DeArray<'_> = values
                .iter()
                .filter(|value| value.span() != *place)
                .cloned()
                .collect();
            *values = kept;
            (values.len() != before).then_some(true)
        }
        _ => None,
    }
}

/// Replaces Rust type names in the deserializer's messages.
fn in_plain_words(message: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("expected f64", "expected a number"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected usize", "expected a whole number"),
        ("expected i64", "expected a whole number"),
        ("expected a sequence", "expected a list: [\"…\"]"),
        ("expected a map", "expected a table"),
        ("expected a boolean", "expected true or false"),
        ("expected a string", "expected text in quotes"),
    ];
    WORDS
        .iter()
        .fold(message.to_owned(), |message, (theirs, plain)| {
            message.replace(theirs, plain)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    #[test]
    fn every_fault_of_a_file_is_found() {
        let text = "quipu = 1\nprofiles = \"relay\"\n\n[[files]]\npth = \"a.md\"\n\n[[files]]\npath = \"b.md\"\nmarker = 3\ncreate = \"yes\"\n\n\
            [roles.x]\ntitle = 1\nfoo = 1\n\n[roles.y]\nduty = []\n\n[guards]\nshrink_below = \"x\"\ncredentials = 1\n\n[other]\n";
        let line = |span: &Option<Range<usize>>| {
            text[..span.clone().unwrap().start].matches('\n').count() + 1
        };
        let mut found: Vec<(usize, String)> = read_all::<Manifest>(text)
            .misreads
            .iter()
            .map(|m| (line(&m.span), m.message.clone()))
            .collect();
        found.sort();
        let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(
            lines,
            [2, 4, 5, 7, 9, 10, 13, 14, 17, 20, 21, 23],
            "{found:#?}"
        );
        let told: Vec<&str> = found.iter().map(|(_, what)| what.as_str()).collect();
        assert!(
            told.contains(&"invalid type: string \"x\", expected a number from 0 to 1"),
            "{told:#?}"
        );
        assert!(
            told.contains(&"invalid type: string \"yes\", expected true or false"),
            "{told:#?}"
        );
    }

    #[test]
    fn what_others_rest_on_hides_the_rest() {
        for (text, is_read) in [
            ("quipu = 1\nlanguage = \"fr\"\n", true),
            (
                "quipu = 1\nother = [1]\n[guards]\nshrink_below = \"x\"\n",
                true,
            ),
            ("quipu = 1\n[vars]\nname = 3\n", false),
            ("quipu = 1\n[[files]]\npth = \"a.md\"\n", false),
            ("quipu = 1\nprofiles = 3\n", false),
        ] {
            let reading = read_all::<Manifest>(text);
            assert!(
                !reading.misreads.is_empty() && reading.rest.is_some() == is_read,
                "{text}: {:?}",
                reading.misreads
            );
        }
    }

    #[test]
    fn a_sound_file_has_none() {
        assert_eq!(
            read_all::<Manifest>("quipu = 1\nprofiles = [\"relay\"]\n[guards]\nshrink_below = 0\n")
                .misreads,
            []
        );
        for share in ["0.2", "1", "0.0"] {
            assert_eq!(
                read_all::<Manifest>(&format!("quipu = 1\n[guards]\nshrink_below = {share}\n"))
                    .misreads,
                []
            );
        }
    }
}
