//! Parses server-sent events: extracts the data of each event from a stream of bytes.

use std::io::{self, BufRead};

/// Longest accepted line. A longer line means that the server is not sending events.
const LONGEST_LINE: u64 = 4 << 20;

/// Reads the data of the next event; `None` at the end of the stream. Comments and event names are
/// skipped, because the data of both APIs carries its own type.
pub fn next_event(stream: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut data: Option<String> = None;
    loop {
        let mut line = Vec::new();
        let read = io::Read::take(&mut *stream, LONGEST_LINE).read_until(b'\n', &mut line)?;
        if read as u64 == LONGEST_LINE {
            return Err(io::Error::other("a line without end"));
        }
        let ended = read == 0;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\n', '\r']);
        if let Some(more) = line.strip_prefix("data:") {
            let more = more.strip_prefix(' ').unwrap_or(more);
            match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(more);
                }
                None => data = Some(more.to_string()),
            }
        } else if line.is_empty() && data.is_some() {
            return Ok(data);
        } else if ended {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_with_comments_and_without_an_end() {
        let text = ": hello\r\nevent: a\r\ndata: one\r\n\r\n\ndata:two\ndata: three\n\ndata: torn";
        let mut stream = io::BufReader::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(data) = next_event(&mut stream).unwrap() {
            found.push(data);
        }
        // The truncated event has no blank line after it; its data is still returned, and the API
        // module judges it.
        assert_eq!(found, ["one", "two\nthree", "torn"]);
    }
}
