//! Everything that cannot be taken of a contract file, where the reader stops at the first: what it stumbles over is left out, and it
//! reads again.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::press::{Misread, press_table};

/// Nobody mends more at once.
const MOST: usize = 50;

/// What of a text cannot be read as a `T`, in the order it was found. Empty if all of it can.
pub(crate) fn misreads<T: DeserializeOwned>(text: &str) -> Vec<Misread> {
    let mut table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => return vec![Misread { message: error.message().to_owned(), span: error.span() }],
    };
    let mut found: Vec<Misread> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    while found.len() < MOST {
        let mut row = Vec::new();
        let span = table.span();
        let Err(mut misread) = press_table(table.get_ref(), span, &mut row).and_then(|()| crate::pressed::read::<T>(&row)) else { break };
        misread.message = in_plain_words(&misread.message);
        let place = misread.span.clone();
        // What is missing because it was left out is there.
        if !left_out.iter().any(|key| misread.message == format!("missing field `{key}`")) {
            found.push(misread);
        }
        // What is wrong with the file as a whole hides the rest.
        let Some(left) = place.and_then(|place| leave_out(table.get_mut(), &place)) else { break };
        left_out.push(left);
    }
    found
}

/// Leaves out the innermost key or value at a place, and tells its key: the first of several tables of one name begins where all of them
/// do. None if there is nothing.
fn leave_out(table: &mut DeTable<'_>, place: &Range<usize>) -> Option<String> {
    if let Some(left) = table.iter_mut().find_map(|(_, value)| leave_out_of(value, place)) {
        return Some(left);
    }
    let at_place = table.iter().find(|(key, value)| key.span() == *place || value.span() == *place).map(|(key, _)| key.clone())?;
    table.remove(&at_place).map(|_| at_place.get_ref().to_string())
}

fn leave_out_of(value: &mut Spanned<DeValue<'_>>, place: &Range<usize>) -> Option<String> {
    match value.get_mut() {
        DeValue::Table(table) => leave_out(table, place),
        DeValue::Array(values) => {
            if let Some(left) = values.iter_mut().find_map(|value| leave_out_of(value, place)) {
                return Some(left);
            }
            let before = values.len();
            let kept: DeArray<'_> = values.iter().filter(|value| value.span() != *place).cloned().collect();
            *values = kept;
            (values.len() != before).then(String::new)
        }
        _ => None,
    }
}

/// The reader names types as programs do.
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
    WORDS.iter().fold(message.to_owned(), |message, (theirs, plain)| message.replace(theirs, plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    #[test]
    fn every_fault_of_a_file_is_found() {
        let text = "quipu = 1\nprofiles = \"relay\"\n\n[[files]]\npth = \"a.md\"\n\n[[files]]\npath = \"b.md\"\nmarker = 3\ncreate = \"yes\"\n\n\
            [roles.x]\ntitle = 1\nfoo = 1\n\n[roles.y]\nduty = []\n\n[guards]\nshrink_below = \"x\"\ncredentials = 1\n\n[other]\n";
        let line = |span: &Option<Range<usize>>| text[..span.clone().unwrap().start].matches('\n').count() + 1;
        let mut found: Vec<(usize, String)> = misreads::<Manifest>(text).iter().map(|m| (line(&m.span), m.message.clone())).collect();
        found.sort();
        let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 4, 5, 7, 9, 10, 13, 14, 17, 20, 21, 23], "{found:#?}");
        let told: Vec<&str> = found.iter().map(|(_, what)| what.as_str()).collect();
        assert!(told.contains(&"invalid type: string \"x\", expected a number from 0 to 1"), "{told:#?}");
        assert!(told.contains(&"invalid type: string \"yes\", expected true or false"), "{told:#?}");
    }

    #[test]
    fn a_sound_file_has_none() {
        assert_eq!(misreads::<Manifest>("quipu = 1\nprofiles = [\"relay\"]\n[guards]\nshrink_below = 0\n"), []);
        for share in ["0.2", "1", "0.0"] {
            assert_eq!(misreads::<Manifest>(&format!("quipu = 1\n[guards]\nshrink_below = {share}\n")), []);
        }
    }
}
