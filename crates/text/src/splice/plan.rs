//! Plans single splices. `splice` checks the results.
//!
//! Every plan stays inside its section, including blank lines.

use std::ops::Range;

use super::{Place, Splice, SpliceError};
use crate::anchor::{fold, is_cjk};
use crate::document::Document;
use crate::keyed::Keyed;
use crate::marker::marker;
use crate::section::Section;

impl Document<'_> {
    /// Plans the replacement of a section's own body.
    pub fn plan_replace_body(&self, section: &Section, body: &str) -> Splice {
        let body = self.adopted(trim_blank_lines(body));
        let area = self.area(section);
        let content = self.content(&area);
        if content.is_empty() || body.is_empty() {
            return self.plan_fill(section, area, &body);
        }
        Splice {
            range: content,
            text: body,
        }
    }

    /// Plans an entry at the end of a section's own body.
    pub fn plan_append_entry(&self, section: &Section, entry: &str) -> Splice {
        let entry = self.adopted(trim_blank_lines(entry));
        let area = self.area(section);
        let content = self.content(&area);
        if content.is_empty() {
            return self.plan_fill(section, area, &entry);
        }
        let eol = self.eol();
        let joiner = if self.joins(&content, &entry) { 1 } else { 2 };
        let mut text = eol.repeat(joiner) + &entry;
        if content.end == self.text().len() {
            text.push_str(eol);
        }
        Splice {
            range: content.end..content.end,
            text,
        }
    }

    /// Plans a new section. Also returns the number of headings before it.
    pub(super) fn plan_insert_section(
        &self,
        place: Place,
        level: u8,
        title: &str,
        body: &str,
    ) -> Result<(Splice, usize), SpliceError> {
        if !(1..=6).contains(&level) {
            return Err(SpliceError::NoSuchLevel { level });
        }
        let title = one_line(title)?;
        let end = self.end();
        let at = match place {
            Place::Before(id) if self.section(id).level == 0 => {
                return Err(SpliceError::BeforePreamble);
            }
            Place::Before(id) => self.section(id).range.start,
            Place::After(id) => self.section(id).range.end.min(end),
            Place::End => end,
        };
        let eol = self.eol();
        let before = &self.text()[self.sections()[0].range.start.min(at)..at];
        let ends = before
            .bytes()
            .rev()
            .filter(|&b| b != b'\r')
            .take_while(|&b| b == b'\n')
            .count();
        let lead = if before.trim().is_empty() {
            0
        } else {
            2 - ends.min(2)
        };
        let body = self.adopted(trim_blank_lines(body));
        let mut text = eol.repeat(lead) + &"#".repeat(level.into()) + " " + title + eol;
        if !body.is_empty() {
            text = text + eol + &body + eol;
        }
        if at < self.text().len() {
            text.push_str(eol);
        }
        let after = self
            .sections()
            .iter()
            .filter(|section| section.level > 0 && section.range.start < at)
            .count();
        Ok((
            Splice {
                range: at..at,
                text,
            },
            after,
        ))
    }

    /// Plans a keyed line of a section.
    pub fn plan_set_keyed(
        &self,
        section: &Section,
        key: &str,
        value: &str,
    ) -> Result<Splice, SpliceError> {
        let key = one_line(key)?;
        let value = one_line(value)?;
        if let Some(line) = find_keyed(self, &section.body, key) {
            let tight = self.text()[..line.value.start].ends_with([':', '*', '_', '`']);
            let blank = if tight && !value.is_empty() { " " } else { "" };
            return Ok(Splice {
                range: line.value.clone(),
                text: format!("{blank}{value}"),
            });
        }
        let Some(model) = self.keyed_in(&section.body).last() else {
            let line = if key.chars().any(is_cjk) {
                format!("- **{key}**：{value}")
            } else {
                format!("- **{key}:** {value}")
            };
            return Ok(self.plan_append_entry(section, &line));
        };
        Ok(self.plan_keyed_like(model, key, value))
    }

    /// Plans a new keyed line after `model`, in the same style.
    fn plan_keyed_like(&self, model: &Keyed, key: &str, value: &str) -> Splice {
        let text = self.text();
        let line = text[..model.range.start].rfind('\n').map_or(0, |at| at + 1);
        let line = line.max(self.sections()[0].range.start);
        let lead = &text[line..model.key_range.start];
        let mut gap = text[model.key_range.end..model.value.start].to_owned();
        if let Some(first) = gap.find(['\r', '\n']) {
            gap.truncate(first); // the value is on the next line
        }
        if !gap.ends_with([' ', '：']) {
            gap.push(' ');
        }
        let around = |item: &&crate::Item| item.content.contains(&model.range.start);
        let at = match self
            .items_in(&(line..model.range.end))
            .iter()
            .rev()
            .find(around)
        {
            Some(item) => item.range.start + self.slice(&item.range).trim_end().len(),
            None => model.range.end,
        };
        Splice {
            range: at..at,
            text: format!("{}{lead}{key}{gap}{value}", self.eol()),
        }
    }

    /// Returns the line end of the document, taken from its first line.
    fn eol(&self) -> &'static str {
        match memchr::memchr(b'\n', self.text().as_bytes()) {
            Some(at) if at > 0 && self.text().as_bytes()[at - 1] == b'\r' => "\r\n",
            _ => "\n",
        }
    }

    fn adopted(&self, text: &str) -> String {
        let plain = text.replace("\r\n", "\n");
        match self.eol() {
            "\r\n" => plain.replace('\n', "\r\n"),
            _ => plain,
        }
    }

    /// Returns the end of the content: before a completion marker, if there is one.
    fn end(&self) -> usize {
        let text = self.text();
        marker(text).map_or(text.len(), |marker| {
            text[..marker.start]
                .rfind('\n')
                .map_or(marker.start, |at| at + 1)
        })
    }

    /// Returns the range of a section's own body without a completion marker.
    fn area(&self, section: &Section) -> Range<usize> {
        let end = match section.body.end == self.text().len() {
            true => section.body.end.min(self.end()),
            false => section.body.end,
        };
        section.body.start..end.max(section.body.start)
    }

    /// Returns an area without surrounding blank lines.
    fn content(&self, area: &Range<usize>) -> Range<usize> {
        let raw = self.slice(area);
        let start = area.start + raw.len() - trim_leading_lines(raw).len();
        let end = area.start + raw.trim_end().len();
        start.min(end.max(area.start))..end.max(area.start)
    }

    /// Fills an area that is empty, or empties it.
    fn plan_fill(&self, section: &Section, area: Range<usize>, body: &str) -> Splice {
        let eol = self.eol();
        let mut text = String::new();
        let heading = self.slice(&section.heading);
        if !heading.is_empty() && !heading.ends_with('\n') && !body.is_empty() {
            text.push_str(eol);
        }
        let follows = area.end < self.text().len();
        if !body.is_empty() {
            if section.level > 0 {
                text.push_str(eol);
            }
            text = text + body + eol;
        }
        if follows && (!body.is_empty() || section.level > 0) {
            text.push_str(eol);
        }
        Splice { range: area, text }
    }

    /// Returns true if an entry continues the list or table at the end of `content`.
    fn joins(&self, content: &Range<usize>, entry: &str) -> bool {
        let reaches =
            |range: &Range<usize>| range.start + self.slice(range).trim_end().len() >= content.end;
        if is_item(entry) {
            return self
                .items_in(content)
                .iter()
                .any(|item| reaches(&item.range));
        }
        entry.starts_with('|')
            && self
                .tables_in(content)
                .last()
                .is_some_and(|table| reaches(&table.range))
    }
}

/// Finds the keyed line with this key in a range, ignoring case.
pub(super) fn find_keyed<'d>(
    document: &'d Document<'_>,
    range: &Range<usize>,
    key: &str,
) -> Option<&'d Keyed> {
    let wanted = fold(key);
    document
        .keyed_in(range)
        .iter()
        .find(|line| fold(&line.key) == wanted)
}

fn one_line(text: &str) -> Result<&str, SpliceError> {
    let trimmed = text.trim();
    if trimmed.contains(['\n', '\r']) {
        return Err(SpliceError::NotOneLine {
            text: text.to_owned(),
        });
    }
    Ok(trimmed)
}

/// Removes blank lines at both ends, but keeps the first line's indentation.
fn trim_blank_lines(text: &str) -> &str {
    trim_leading_lines(text).trim_end()
}

fn trim_leading_lines(text: &str) -> &str {
    let first = text.len() - text.trim_start().len();
    let line = text[..first].rfind('\n').map_or(0, |at| at + 1);
    &text[line..]
}

fn is_item(entry: &str) -> bool {
    let entry = entry.trim_start();
    let rest = match entry.strip_prefix(['-', '*', '+']) {
        Some(rest) => rest,
        None => {
            let rest = entry.trim_start_matches(|c: char| c.is_ascii_digit());
            match rest.strip_prefix(['.', ')']) {
                Some(after) if rest.len() < entry.len() => after,
                _ => return false,
            }
        }
    };
    rest.starts_with([' ', '\t']) || rest.is_empty()
}
