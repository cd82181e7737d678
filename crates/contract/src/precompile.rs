//! Encodes a contract file as a flat sequence of values, each with its span in the text;
//! `precompiled.rs` decodes it.
//!
//! A value is a tag, the start and end of its span, and its content. Numbers are little-endian,
//! `u32` unless noted:
//!
//! `s` length, UTF-8 · `i` i64 · `f` f64 · `b` u8 · `a` count, values · `t` count, pairs of a key
//! (written as an `s` without its tag) and a value
//!
//! The build script of the crate that holds the profiles uses this file too.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error in a contract file, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub message: String,
    pub span: Option<Range<usize>>,
}

/// Encodes a text.
pub fn precompile(text: &str) -> Result<Vec<u8>, SyntaxError> {
    let parsed = DeTable::parse(text).map_err(|error| SyntaxError {
        message: error.message().to_owned(),
        span: error.span(),
    })?;
    let mut row = Vec::with_capacity(2 * text.len());
    precompile_table(parsed.get_ref(), parsed.span(), &mut row)?;
    Ok(row)
}

fn precompile_value(value: &Spanned<DeValue<'_>>, row: &mut Vec<u8>) -> Result<(), SyntaxError> {
    let span = value.span();
    let bad = |message: &str| SyntaxError {
        message: message.to_owned(),
        span: Some(span.clone()),
    };
    match value.get_ref() {
        DeValue::String(text) => {
            row.push(b's');
            press_text(text, &span, row);
        }
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| bad("the number has too many digits"))?;
            press_head(b'i', &span, row);
            row.extend(number.to_le_bytes());
        }
        DeValue::Float(number) => {
            let number = number
                .as_str()
                .parse::<f64>()
                .map_err(|_| bad("this is not a number"))?;
            press_head(b'f', &span, row);
            row.extend(number.to_le_bytes());
        }
        DeValue::Boolean(value) => {
            press_head(b'b', &span, row);
            row.push(u8::from(*value));
        }
        DeValue::Array(values) => {
            press_head(b'a', &span, row);
            press_number(values.len(), row);
            for value in values.iter() {
                precompile_value(value, row)?;
            }
        }
        DeValue::Table(table) => precompile_table(table, span, row)?,
        DeValue::Datetime(_) => return Err(bad("no key takes a date; put a text in quotes")),
    }
    Ok(())
}

pub(crate) fn precompile_table(
    table: &DeTable<'_>,
    span: Range<usize>,
    row: &mut Vec<u8>,
) -> Result<(), SyntaxError> {
    press_head(b't', &span, row);
    press_number(table.len(), row);
    for (key, value) in table.iter() {
        press_text(key.get_ref(), &key.span(), row);
        precompile_value(value, row)?;
    }
    Ok(())
}

fn press_head(tag: u8, span: &Range<usize>, row: &mut Vec<u8>) {
    row.push(tag);
    press_number(span.start, row);
    press_number(span.end, row);
}

fn press_text(text: &str, span: &Range<usize>, row: &mut Vec<u8>) {
    press_number(span.start, row);
    press_number(span.end, row);
    press_number(text.len(), row);
    row.extend(text.as_bytes());
}

/// Encodes an offset or a length. In a contract file over 4 GiB the number saturates, and decoding
/// reports the error.
fn press_number(number: usize, row: &mut Vec<u8>) {
    row.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}
