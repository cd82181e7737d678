//! Parses source locations as people and agents write them: `path:12`, `path:12-20`, `path:12,15`,
//! `path:12:5`, `path#L12`.
//!
//! This module does not check whether the file exists.

/// A file and lines in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePlace<'t> {
    pub path: &'t str,
    /// Every line that it names, in the order written. Never empty.
    pub lines: Vec<usize>,
    /// Its start and end in the text.
    pub at: usize,
    pub end: usize,
}

impl SourcePlace<'_> {
    pub fn first(&self) -> usize {
        self.lines.iter().copied().min().unwrap_or_default()
    }

    pub fn last(&self) -> usize {
        self.lines.iter().copied().max().unwrap_or_default()
    }
}

/// Parses a text that consists of one location. The path may contain any letters.
pub fn parse_source_place(text: &str) -> Option<SourcePlace<'_>> {
    let begin = text.len() - text.trim_start().len();
    let text = text.trim();
    text.match_indices([':', '#']).find_map(|(at, _)| {
        let digits = digits_behind(text, at)?;
        let (lines, length) = take_lines(digits, Spaces::Allowed);
        let path = &text[..at];
        let is_path = !path.contains("//")
            && path.contains(char::is_alphabetic)
            && !path
                .contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '`' | '#'));
        (is_path && length == digits.len()).then_some(SourcePlace {
            path,
            lines,
            at: begin,
            end: begin + text.len(),
        })
    })
}

/// Finds the locations in a line of prose. Skips those in quotation marks, which quote another
/// text. Paths must be ASCII here, because Chinese prose has no spaces around a path.
pub fn find_source_places(line: &str) -> Vec<SourcePlace<'_>> {
    let mut places: Vec<SourcePlace<'_>> = Vec::new();
    let (mut quotation, mut read) = (Quotation::of(line), 0);
    for (at, _) in line.match_indices([':', '#']) {
        if places.last().is_some_and(|place| at < place.end) {
            continue;
        }
        let Some(digits) = digits_behind(line, at) else {
            continue;
        };
        let start = line[..at]
            .rfind(|c: char| !is_path_letter(c))
            .map_or(0, |p| {
                p + line[p..].chars().next().map_or(1, char::len_utf8)
            });
        // A path starts after the previous location.
        let start = start.max(places.last().map_or(0, |place| place.end));
        let path = &line[start..at];
        quotation.go_on(&line[read.min(start)..start]);
        read = read.max(start);
        if path.starts_with("//")
            || !path.contains(|c: char| c.is_ascii_alphabetic())
            || quotation.is_around(start)
        {
            continue;
        }
        let (lines, length) = take_lines(digits, Spaces::End);
        places.push(SourcePlace {
            path,
            lines,
            at: start,
            end: line.len() - digits.len() + length,
        });
    }
    places
}

fn is_path_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+')
}

/// Returns the text from the first digit on, if the character at `at` joins a path and a line:
/// `:12`, `:L12`, `#L12`.
fn digits_behind(text: &str, at: usize) -> Option<&str> {
    let behind = &text[at + 1..];
    let is_number = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_digit());
    behind.strip_prefix('L').filter(is_number).or_else(|| {
        Some(behind)
            .filter(is_number)
            .filter(|_| text.as_bytes()[at] == b':')
    })
}

/// Selects whether a list of lines may contain spaces: `12, 15`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spaces {
    Allowed,
    End,
}

/// Parses the numbers at the start of a text and returns their end: `12-20,31`. A column (`12:5`)
/// is part of the location but not a line.
fn take_lines(digits: &str, spaces: Spaces) -> (Vec<usize>, usize) {
    let (mut lines, mut at) = (Vec::new(), 0);
    loop {
        let rest = &digits[at..];
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        lines.push(rest[..end].parse().unwrap_or(usize::MAX));
        at += end;
        let Some(rest) = ["-", "–", ","]
            .iter()
            .find_map(|sign| digits[at..].strip_prefix(sign))
        else {
            break;
        };
        let rest = if spaces == Spaces::Allowed {
            rest.trim_start()
        } else {
            rest
        };
        let rest = rest.strip_prefix('L').unwrap_or(rest);
        if !rest.starts_with(|c: char| c.is_ascii_digit()) {
            break;
        }
        at = digits.len() - rest.len();
    }
    let column = digits[at..].strip_prefix(':').map_or(0, |rest| {
        rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len()
    });
    (lines, if column > 0 { at + 1 + column } else { at })
}

/// The quotation marks of a line up to the current position. An unclosed quotation does not count.
struct Quotation {
    straight: usize,
    curved: isize,
    cornered: isize,
    /// The position of the last closing mark of each kind.
    ends: [Option<usize>; 3],
}

impl Quotation {
    fn of(line: &str) -> Quotation {
        Quotation {
            straight: 0,
            curved: 0,
            cornered: 0,
            ends: ['"', '”', '」'].map(|sign| line.rfind(sign)),
        }
    }

    fn go_on(&mut self, text: &str) {
        for sign in text.chars() {
            match sign {
                '"' => self.straight += 1,
                '“' => self.curved += 1,
                '”' => self.curved -= 1,
                '「' => self.cornered += 1,
                '」' => self.cornered -= 1,
                _ => {}
            }
        }
    }

    /// Returns true if the text at `at`, the current position, is quoted.
    fn is_around(&self, at: usize) -> bool {
        let open = [self.straight % 2 == 1, self.curved > 0, self.cornered > 0];
        open.into_iter()
            .zip(self.ends)
            .any(|(open, end)| open && end.is_some_and(|end| end > at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_agents_write_them() {
        let read = |line: &str| {
            find_source_places(line)
                .iter()
                .map(|p| (p.path.to_owned(), p.lines.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            read("see `src/a.py:12-20,31` and a.py#L3-L4."),
            [
                ("src/a.py".into(), vec![12, 20, 31]),
                ("a.py".into(), vec![3, 4])
            ]
        );
        assert_eq!(
            read("见source/a.py:3–5，（b.py:7:2）"),
            [("source/a.py".into(), vec![3, 5]), ("b.py".into(), vec![7])]
        );
        assert_eq!(
            read("at 12:30, http://x.org:80/ and 127.0.0.1:80, \"a.py:3\", “a.py:3”, 「a.py:3」"),
            []
        );
        assert_eq!(read("a.py:12, 15 files"), [("a.py".into(), vec![12])]);
    }

    #[test]
    fn a_quotation_that_is_not_closed_hides_nothing() {
        for line in [
            "\" a.py:3",
            "“a.py:3 ",
            "「a.py:3",
            "\"x\" and \" a.py:3",
            "” “a.py:3",
        ] {
            assert_eq!(find_source_places(line).len(), 1, "{line}");
        }
    }

    #[test]
    fn places_do_not_overlap() {
        let places = find_source_places("a.rs:1-2b:1 and c.rs:3");
        let places: Vec<(&str, usize)> = places
            .iter()
            .map(|place| (place.path, place.first()))
            .collect();
        assert_eq!(places, [("a.rs", 1), ("b", 1), ("c.rs", 3)]);
    }

    #[test]
    fn a_whole_text_is_one_place_or_none() {
        let read = |text| parse_source_place(text).map(|place| (place.path, place.lines));
        for (text, path, lines) in [
            ("source/a.rs:12", "source/a.rs", vec![12]),
            (" a/b.rs:12-20 ", "a/b.rs", vec![12, 20]),
            ("a.rs:L3–L9", "a.rs", vec![3, 9]),
            ("a.rs:12, 15", "a.rs", vec![12, 15]),
            ("a.rs:12:5", "a.rs", vec![12]),
            ("a.rs#L3", "a.rs", vec![3]),
            ("源码/甲.rs:3", "源码/甲.rs", vec![3]),
        ] {
            assert_eq!(read(text), Some((path, lines)), "{text}");
        }
        for none in [
            "a.rs",
            "a.rs:",
            "http://x:80",
            "a b.rs:1",
            "Vec::new",
            "12:30",
            "12:30:",
            ":1",
            "x:1a",
            "`a.rs:1",
            "a.rs:1-",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
