//! The only module that writes to stdout and stderr.
//!
//! Messages and text for people are written through [`printable`], to a terminal and to a pipe
//! alike: a name, a reason or a line of an agent must not move the cursor, write the clipboard or
//! fake a line. Data is exact: JSON keeps its values, and the bytes of a file are escaped only if
//! stdout is a terminal.

#![allow(clippy::disallowed_methods)]

use std::io::{self, IsTerminal, StdoutLock, Write};

use quipu_contract::printable;

/// Writes a message to stderr, with a newline.
pub fn say(message: &str) {
    let text = printable(message);
    let colours = uses_colours(
        stderr_is_terminal(),
        std::env::var("NO_COLOR").ok().as_deref(),
        std::env::var("TERM").ok().as_deref(),
    );
    if colours {
        write_stderr(&format!("{}\n", paint(&text)))
    } else {
        write_stderr(&format!("{text}\n"))
    }
}

/// Whether to use colours: on a terminal, unless its owner objects (no-color.org).
fn uses_colours(is_terminal: bool, no_color: Option<&str>, term: Option<&str>) -> bool {
    is_terminal && no_color.is_none_or(str::is_empty) && term != Some("dumb")
}

/// The labels of messages and their colour codes.
const LABELS: [(&str, &str); 4] = [
    ("error:", "1;31"),
    ("warning:", "1;33"),
    ("  rule  ", "36"),
    ("  help  ", "32"),
];

/// Colours the labels of a message. Its text is [`printable`], so these are the only escape
/// sequences.
fn paint(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        match LABELS.iter().find(|(label, _)| line.starts_with(label)) {
            Some((label, code)) => {
                format!("\u{1b}[{code}m{label}\u{1b}[0m{}", &line[label.len()..])
            }
            None => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Writes text to stderr unchanged, for the program's own cursor movements around [`printable`]
/// text.
pub fn write_stderr(text: &str) {
    // A closed stderr is not an error.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Writes text for people to stdout.
pub fn show_text(text: &str) -> io::Result<()> {
    write_stdout(printable(text).as_bytes())
}

/// Writes JSON to stdout, with a newline.
pub fn show_json(json: &str) -> io::Result<()> {
    write_stdout(format!("{}\n", escaped_json(json)).as_bytes())
}

/// Writes the bytes of a file to stdout: exactly, unless stdout is a terminal that would interpret
/// them.
pub fn show_bytes(bytes: &[u8]) -> io::Result<()> {
    match io::stdout().is_terminal() {
        true => show_text(&String::from_utf8_lossy(bytes)),
        false => write_stdout(bytes),
    }
}

/// The output pipe of a protocol with JSON messages.
pub fn protocol_pipe() -> StdoutLock<'static> {
    io::stdout().lock()
}

fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Escapes the characters that JSON permits unescaped but a terminal interprets, as `\u009b`. They
/// occur only in strings, so the values stay the same.
fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if printable(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8() {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_coloured_on_terminals_only() {
        assert_eq!(
            paint("error: no\n  help  quipu x\nand so on"),
            "\u{1b}[1;31merror:\u{1b}[0m no\n\u{1b}[32m  help  \u{1b}[0mquipu x\nand so on"
        );
        assert!(uses_colours(true, None, Some("xterm")) && uses_colours(true, Some(""), None));
        for (is_terminal, no_color, term) in [
            (false, None, None),
            (true, Some("1"), None),
            (true, None, Some("dumb")),
        ] {
            assert!(!uses_colours(is_terminal, no_color, term));
        }
    }

    #[test]
    fn json_keeps_its_values() {
        let value = serde_json::json!({"why": "a\u{1b}[2J\u{9b}\u{202e}\r\n\u{e0041}é", "list": [1, "\u{7f}"]});
        for json in [value.to_string(), format!("{value:#}")] {
            let shown = escaped_json(&json);
            assert_eq!(printable(&shown), shown);
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
                value
            );
        }
    }
}
