//! Checks that code quoted with its place matches the source, line by line.
//!
//! Blank lines and indentation are ignored. A cut is marked by a line with an ellipsis, or by a
//! comment that the source does not have: writers use it to say what they left out. For a line with
//! an ellipsis, the parts around it are compared.

use std::collections::BTreeSet;

use quipu_text::{Blocks, CodeBlock, SourcePlace, find_source_places};

use super::Findings;
use super::places::Sources;

/// Words that may accompany the place above a block. Other words make the line a sentence about
/// something else.
const LABELS: [&str; 16] = [
    "source", "file", "from", "in", "at", "see", "line", "lines", "excerpt", "code", "出处",
    "来源", "源码", "见", "摘自", "行",
];
const COMMENTS: [&str; 9] = ["//", "#", "/*", "--", ";", "%", "<!--", "*", "'"];
/// Comment prefixes that a writer uses. `#include` and `*p = 1` are code, and doc comments belong
/// to the source.
const REMARKS: [&str; 8] = ["// ", "# ", "/* ", "-- ", "; ", "% ", "<!--", "* "];
/// At most this many possible start lines of a quotation are tried.
const MOST_STARTS: usize = 100;
/// Lines in messages are cut to this length.
const SHOWN: usize = 80;

pub fn check_quotes(path: &str, blocks: &Blocks, sources: &Sources<'_>, findings: &mut Findings) {
    for block in &blocks.code {
        let Some((places, code, plain)) = places_of(block) else {
            continue;
        };
        let mut fault = None;
        for place in &places {
            for file in sources.resolve(place.path) {
                let Some(text) = sources.text(file) else {
                    continue;
                };
                match compare(code, &text.text, place) {
                    Ok(()) => fault = Some(None),
                    Err(what) => drop(fault.get_or_insert_with(|| {
                        Some(format!(
                            "the code under `{}:{}` {}",
                            place.path,
                            shown(place),
                            what.render(file, sources.may_tell(file))
                        ))
                    })),
                }
            }
        }
        let Some(what) = fault.flatten() else {
            continue;
        };
        let what = format!("`{path}` line {}: {what}", block.line);
        if plain {
            findings.faults.push(what);
        } else if !is_other_language(block, &places) {
            findings.warnings.push(what);
        }
    }
}

fn shown(place: &SourcePlace<'_>) -> String {
    if place.first() == place.last() {
        place.first().to_string()
    } else {
        format!("{}-{}", place.first(), place.last())
    }
}

/// Returns the places that a block gives for its code, the code, and whether the block claims
/// explicitly to quote them.
fn places_of(block: &CodeBlock) -> Option<(Vec<SourcePlace<'_>>, &[String], bool)> {
    let code = || block.code.as_slice();
    // The first line may be a comment that contains only the place.
    if let Some(first) = block.code.first()
        && COMMENTS
            .iter()
            .any(|sign| first.trim_start().starts_with(sign))
    {
        let places = find_source_places(first);
        if !places.is_empty() && is_label(first, &places) {
            return Some((places, &block.code[1..], true));
        }
    }
    let inside = find_source_places(&block.info);
    if !inside.is_empty() {
        return Some((inside, code(), true));
    }
    let places = find_source_places(&block.above);
    if places.is_empty() {
        return None;
    }
    if is_label(&block.above, &places) {
        return Some((places, code(), true));
    }
    // A sentence that ends with the place: probably a quotation, but perhaps an example of its use.
    let last = places.last()?;
    let ends = !block.above[last.end..].contains(char::is_alphanumeric);
    ends.then(|| (vec![last.clone()], code(), false))
}

/// Whether a line contains only places and labels.
fn is_label(line: &str, places: &[SourcePlace<'_>]) -> bool {
    let mut rest = String::new();
    let mut at = 0;
    for place in places {
        rest.push_str(&line[at..place.at]);
        rest.push(' ');
        at = place.end;
    }
    rest.push_str(&line[at..]);
    rest.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .all(|word| {
            LABELS.contains(&word.to_lowercase().as_str())
                || word.chars().all(|c| c.is_ascii_digit())
        })
}

/// Whether the language of a block differs from that of the file, as with TOML under a place in a
/// Python file.
fn is_other_language(block: &CodeBlock, places: &[SourcePlace<'_>]) -> bool {
    let kinds: [&[&str]; 12] = [
        &["py", "python", "pyi"],
        &["rs", "rust"],
        &["js", "javascript", "mjs", "jsx", "ts", "typescript", "tsx"],
        &["c", "h", "cpp", "c++", "cc", "hpp"],
        &["go", "golang"],
        &["java", "kt", "kotlin"],
        &["sh", "bash", "shell", "zsh", "console"],
        &["toml", "ini", "cfg"],
        &["yaml", "yml"],
        &["md", "markdown"],
        &["rb", "ruby"],
        &["json"],
    ];
    let kind = |name: &str| {
        kinds
            .iter()
            .position(|names| names.contains(&name.to_lowercase().as_str()))
    };
    let own = kind(block.language());
    let of = |place: &SourcePlace<'_>| {
        place
            .path
            .rsplit_once('.')
            .and_then(|(_, ending)| kind(ending))
    };
    own.is_none() || places.iter().all(|place| of(place) != own)
}

/// A line of a quotation.
#[derive(Debug, PartialEq)]
enum Line<'t> {
    /// The whole line and, if it has an ellipsis, the parts around each.
    Text(&'t str, Vec<&'t str>),
    Cut,
}

fn parse_line<'t>(line: &'t str, source: &BTreeSet<&str>) -> Line<'t> {
    let line = line.trim();
    if source.contains(line) {
        return Line::Text(line, Vec::new());
    }
    if REMARKS.iter().any(|sign| line.starts_with(sign)) {
        return Line::Cut;
    }
    let parts = split_at_ellipses(line);
    match parts.len() {
        1 => Line::Text(line, Vec::new()),
        _ if parts.iter().all(|part| part.is_empty()) => Line::Cut,
        _ => Line::Text(line, parts),
    }
}

/// Splits a line at each ellipsis. Brackets around the ellipsis and a comment after it are dropped.
fn split_at_ellipses(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some((at, sign)) = ["...", "…", "⋮"]
        .iter()
        .filter_map(|sign| Some((rest.find(sign)?, sign)))
        .min()
    {
        parts.push(&rest[..at]);
        rest = &rest[at + sign.len()..];
    }
    parts.push(rest);
    let last = parts.len() - 1;
    let opens = |c: char| c.is_whitespace() || "/#*-[({<".contains(c);
    let closes = |c: char| c.is_whitespace() || "])}>".contains(c);
    let bare = |(at, part): (usize, &'_ str)| -> std::ops::Range<usize> {
        let start = if at == 0 {
            0
        } else {
            part.len() - part.trim_start_matches(closes).len()
        };
        let end = if at == last {
            part.trim_end().len()
        } else {
            part.trim_end_matches(opens).len()
        };
        let inner = start..end.max(start);
        let is_comment = ["//", "#", "/*", "--", "<!--", "*/", "-->"]
            .iter()
            .any(|sign| part[start..].starts_with(sign));
        let says_nothing = !part[inner.clone()].contains(char::is_alphanumeric) || is_comment;
        if at > 0 && says_nothing {
            start..start
        } else {
            inner
        }
    };
    parts
        .into_iter()
        .enumerate()
        .map(|(at, part)| &part[bare((at, part))])
        .collect()
}

fn is_same(quoted: &Line<'_>, source: &str) -> bool {
    match quoted {
        Line::Text(line, parts) => *line == source || has_parts(source, parts),
        Line::Cut => false,
    }
}

/// Whether a line begins with the first part, ends with the last, and contains the others in order.
fn has_parts(source: &str, parts: &[&str]) -> bool {
    let [first, between @ .., last] = parts else {
        return false;
    };
    let Some(mut rest) = source.strip_prefix(first) else {
        return false;
    };
    for part in between {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// How a quotation differs from the source.
#[derive(Debug, PartialEq)]
enum Off {
    /// It matches other lines of the file.
    Elsewhere(usize, usize),
    /// This line does not match; the second field is the source line at that point.
    Differs(String, Option<(usize, String)>),
}

impl Off {
    fn render(&self, file: &str, may_tell: bool) -> String {
        let clip = |line: &str| line.chars().take(SHOWN).collect::<String>();
        match self {
            Off::Elsewhere(..) if !may_tell => {
                "does not match the source. Give the place as it is in your material".to_owned()
            }
            Off::Elsewhere(first, last) => {
                format!("is at `{file}:{first}-{last}`: write that place")
            }
            Off::Differs(line, _) if !may_tell => format!(
                "differs: `{}` is not in the source. Quote the lines as they are in your \
                 material, and mark a cut with a comment that contains `…`",
                clip(line)
            ),
            Off::Differs(line, Some((number, there))) => format!(
                "differs: it has `{}`, but `{file}:{number}` has `{}`. Quote the lines exactly, \
                 and mark a cut with a comment that contains `…`",
                clip(line),
                clip(there)
            ),
            Off::Differs(line, None) => format!(
                "does not exist: no line of `{file}` is `{}`. Quote the lines exactly, and mark a \
                 cut with a comment that contains `…`",
                clip(line)
            ),
        }
    }
}

fn compare(code: &[String], source: &str, place: &SourcePlace<'_>) -> Result<(), Off> {
    let source: Vec<(usize, &str)> = source
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let there: BTreeSet<&str> = source.iter().map(|(_, line)| *line).collect();
    let lines: Vec<Line<'_>> = code
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(|line| parse_line(line, &there))
        .collect();
    let Some(first) = lines.iter().find(|line| **line != Line::Cut) else {
        return Ok(());
    };
    let mut starts: Vec<usize> = (0..source.len())
        .filter(|at| is_same(first, source[*at].1))
        .collect();
    // A line such as `}` occurs in thousands of places; try only the nearest ones.
    starts.sort_by_key(|at| source[*at].0.abs_diff(place.first()));
    starts.truncate(MOST_STARTS);
    let mut elsewhere = None;
    let mut furthest: Option<(usize, Option<usize>)> = None;
    for start in starts {
        match follow(&lines, &source, start) {
            Ok(last) => {
                let (from, to) = (source[start].0, source[last].0);
                if from <= place.last() && place.first() <= to {
                    return Ok(());
                }
                elsewhere.get_or_insert(Off::Elsewhere(from, to));
            }
            Err((line, there)) if furthest.is_none_or(|(best, _)| line > best) => {
                furthest = Some((line, there))
            }
            Err(_) => {}
        }
    }
    let said = |at: usize| match &lines[at] {
        Line::Text(line, _) => (*line).to_owned(),
        Line::Cut => String::new(),
    };
    let there = |at: usize| {
        source
            .get(at)
            .map(|(number, line)| (*number, (*line).to_owned()))
    };
    Err(elsewhere.unwrap_or_else(|| match furthest {
        Some((line, at)) => Off::Differs(said(line), at.and_then(there)),
        None => Off::Differs(
            said(
                lines
                    .iter()
                    .position(|line| line == first)
                    .unwrap_or_default(),
            ),
            None,
        ),
    }))
}

/// Matches a quotation against the source from one line on. Returns the last matched line, or the
/// first quoted line that does not match and its position in the source.
fn follow(
    lines: &[Line<'_>],
    source: &[(usize, &str)],
    start: usize,
) -> Result<usize, (usize, Option<usize>)> {
    let (mut at, mut last) = (start, start);
    let (mut begun, mut cut) = (false, false);
    for (index, line) in lines.iter().enumerate() {
        let Line::Text(_, parts) = line else {
            cut = begun;
            continue;
        };
        if cut {
            at = (at..source.len())
                .find(|at| is_same(line, source[*at].1))
                .ok_or((index, None))?;
        } else if source
            .get(at)
            .is_none_or(|(_, there)| !is_same(line, there))
        {
            return Err((index, Some(at)));
        }
        (last, begun, cut) = (at, true, !parts.is_empty());
        at += 1;
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use quipu_text::split_blocks;

    use super::*;

    const SOURCE: &str = "import re\n\n\ndef parse(text):\n    \"\"\"Reads it.\"\"\"\n    if not text:\n        return {}\n\n    for line in text.splitlines():\n        read(line)\n    return out\n\n\ndef read(line):\n    return line.strip()  # once\n";

    fn found(text: &str) -> Findings {
        let files = [("source/src/a.py", SOURCE)];
        let mut findings = Findings::default();
        check_quotes(
            "d.md",
            &split_blocks(text),
            &Sources::sample(&files),
            &mut findings,
        );
        findings
    }

    #[test]
    fn code_that_stands_at_its_place_passes() {
        for text in [
            "`source/src/a.py:4`\n\n```python\ndef parse(text):\n    \"\"\"Reads it.\"\"\"\n    if not text:\n        return {}\n```\n",
            // Without its indentation, within the named lines.
            "**`a.py:6-7`**:\n```python\nif not text:\n    return {}\n```\n",
            // Cuts, and an incomplete line.
            "来源：`src/a.py:4-11`\n```py\ndef parse(text):\n    # …\n    for line in text.splitlines():\n        ...\n    return out\n```\n",
            "`a.py:4`\n```py\ndef parse(text): ...\n```\n",
            "`a.py:4-14`\n```py\ndef parse(text):\n    # left out: all that it does\n\ndef read(line):\n    return line.strip() …\n```\n",
            "`a.py:14`\n```py\ndef read(line):\n    return line… # once\n```\n",
            "`a.py:14`\n```py\ndef read(…):\n    return [...].strip()  # once\n```\n",
            // The place inside the block.
            "As follows.\n\n```python\n# src/a.py:14\ndef read(line):\n```\n",
            "```python src/a.py:14\ndef read(line):\n```\n",
            // A block without a place claims nothing. An example in another language, below a
            // sentence about a place, claims nothing either.
            "```python\nimport a\na.parse('x')\n```\n",
            "An empty document never gets past `a.py:6`:\n\n```toml\nx = 1\n```\n",
            "This is how `a.py:6` is reached by a caller:\n\n```python\nparse('')\n```\n",
        ] {
            let found = found(text);
            assert!(
                found.faults.is_empty() && found.warnings.is_empty(),
                "{text} {found:?}"
            );
        }
    }

    #[test]
    fn code_that_does_not_goes_back_with_the_exact_words() {
        for (text, said) in [
            (
                "`a.py:40`\n```py\ndef read(line):\n    return line.strip()  # once\n```\n",
                "`d.md` line 3: the code under `a.py:40` is at `source/src/a.py:14-15`: write that place",
            ),
            (
                "出处：`a.py:14`\n```py\ndef read(line):\n    return line.strip()\n```\n",
                "differs: it has `return line.strip()`, but `source/src/a.py:15` has `return line.strip()  # once`",
            ),
            // An unmarked cut.
            (
                "`a.py:4`\n```py\ndef parse(text):\n    if not text:\n```\n",
                "it has `if not text:`, but `source/src/a.py:5` has `\"\"\"Reads it.\"\"\"`",
            ),
            (
                "`a.py:4`\n```py\n#include <a.h>\ndef parse(text):\n```\n",
                "no line of `source/src/a.py` is `#include <a.h>`",
            ),
            (
                "`a.py:4`\n```py\ndef parser(text):\n```\n",
                "no line of `source/src/a.py` is `def parser(text):`",
            ),
            (
                "`a.py:4`\n```py\ndef parse(text):\n    # …\n    yield 1\n```\n",
                "no line of `source/src/a.py` is `yield 1`",
            ),
            // Words after an ellipsis, and code that is indented or in a quotation.
            (
                "`a.py:4`\n```py\nd… all of this is made up\n```\n",
                "no line of `source/src/a.py` is `d… all of this is made up`",
            ),
            (
                "`a.py:4`\n```py\nd… made up …\n```\n",
                "no line of `source/src/a.py` is `d… made up …`",
            ),
            (
                "`a.py:4`\n```py\ndef parse(text):\n… made up\n```\n",
                "it has `… made up`",
            ),
            (
                "`a.py:4`\n\n    def parser(text):\n",
                "no line of `source/src/a.py` is `def parser(text):`",
            ),
            (
                "> `a.py:4`\n>\n> ```py\n> def parser(text):\n> ```\n",
                "no line of `source/src/a.py` is `def parser(text):`",
            ),
        ] {
            let found = found(text);
            assert!(
                found.faults.len() == 1 && found.faults[0].contains(said),
                "{text} {found:?}"
            );
        }
    }

    #[test]
    fn a_sentence_about_a_place_is_only_doubted() {
        let found = found("The loop is in `a.py:9`:\n\n```python\nfor line in lines:\n```\n");
        assert!(
            found.faults.is_empty() && found.warnings.len() == 1,
            "{found:?}"
        );
    }

    #[test]
    fn what_the_writer_may_not_read_is_not_told() {
        let off = Off::Differs("x".into(), Some((3, "KEY = 1".into())));
        assert!(off.render("source/a.py", true).contains("KEY = 1"));
        assert!(!off.render("source/a.py", false).contains("KEY"));
        let off = Off::Elsewhere(3, 4).render("source/hidden.py", false);
        assert!(!off.contains("hidden") && !off.contains('3'), "{off}");
    }
}
