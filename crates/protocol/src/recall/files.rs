//! The files that recall searches, at their current versions, split into sections.
//!
//! Only memory is searched: where a profile sorts its files into tiers, its files without a tier are
//! work in progress and are left out. Template lines and HTML comments are removed, and so is the text that
//! `quipu integrate` writes for agent hosts: its skills, and its blocks in `CLAUDE.md`, `AGENTS.md`
//! and similar files. Sections without content of their own are skipped. Front matter is a section
//! of its own. In a JSON file each value is a section (`files/json_place.rs`), without those that only
//! say which sessions there were. A file that cannot be searched is recorded as such, so that an
//! answer can name it.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use quipu_contract::{Class, Contract, Language, ProjectPath};
use quipu_recall::{FileText, Section, Tier};
use quipu_store::{StoreError, TreeFingerprint};
use quipu_text::Document;

use crate::files::index_file::refresh_index;
use crate::files::json_place::{is_json, json_places};
use crate::files::read::find_section;
use crate::project::library::Library;
use crate::project::open::Project;
use crate::session::finish::is_left_behind;

/// Larger files are data, not memory.
const LARGEST: usize = 8 << 20;
/// Increment this when files are split into different sections, so that they are read again.
const READING: &str = " 4";
/// A suffix to the version of a file that is not text, or too large.
const NOT_SEARCHED: &str = " not searched";

/// The version string of a file in the index.
fn noted(version: &str, is_searched: bool) -> String {
    format!(
        "{version}{READING}{}",
        if is_searched { "" } else { NOT_SEARCHED }
    )
}

/// Extracts the version of a file from the index entry.
pub(super) fn version_of(noted: &str) -> &str {
    noted.split(' ').next().unwrap_or(noted)
}

/// Whether the index entry says that a file could not be searched.
pub(super) fn is_not_searched(noted: &str) -> bool {
    noted.ends_with(NOT_SEARCHED)
}

/// Whether the index covers a file at this version.
pub(super) fn covers(noted: &str, version: &str) -> bool {
    let rest = noted
        .strip_prefix(version)
        .and_then(|rest| rest.strip_prefix(READING));
    rest.is_some_and(|rest| rest.is_empty() || rest == NOT_SEARCHED)
}

/// A searchable file at its current version.
pub(super) struct Current {
    pub tier: Tier,
    pub version: String,
}

/// Lists every memory file: files with a rule, and Markdown files without one. Also returns the
/// tree fingerprint for which the list is valid.
pub(super) fn current_files(
    project: &Project,
) -> Result<(BTreeMap<String, Current>, Option<TreeFingerprint>), StoreError> {
    refresh_index(project)?;
    let (scan, sight) = project.store.scan_with_fingerprint()?;
    let mut current = BTreeMap::new();
    for file in scan.files.iter().filter(|f| f.class != Class::Free) {
        let Ok(path) = ProjectPath::parse(&file.path) else {
            continue;
        };
        let tier = match project.contract.rule(&path).and_then(|r| r.tier.as_deref()) {
            Some("L0") => Tier::L0,
            Some("L2") => Tier::L2,
            _ => Tier::L1,
        };
        if !is_memory(&file.path) || project.contract.is_work_in_progress(&path) {
            continue;
        }
        // A file that was flagged before its first commit has no version; it is reported as not
        // searched.
        let version = match &file.version {
            Some(version) => Some(version.to_string()),
            None => project.store.stat_text(&path)?,
        };
        if let Some(version) = version {
            current.insert(file.path.clone(), Current { tier, version });
        }
    }
    for path in scan
        .free
        .iter()
        .filter(|path| has_ending(path, &MARKDOWN) && !path.ends_with(SKILL))
    {
        let Ok(parsed) = ProjectPath::parse(path) else {
            continue;
        };
        if let Some(version) = project.store.stat_text(&parsed)? {
            current.insert(
                path.clone(),
                Current {
                    tier: Tier::L1,
                    version,
                },
            );
        }
    }
    Ok((current, sight))
}

/// The path suffix of the skill that `integrate` writes for a host.
const SKILL: &str = "skills/quipu/SKILL.md";
/// The markers around the block that `integrate` writes into existing files.
const BLOCK: (&str, &str) = ("<!-- quipu:begin -->", "<!-- quipu:end -->");

const MARKDOWN: [&str; 2] = [".md", ".markdown"];

fn is_memory(path: &str) -> bool {
    path != "quipu.toml" && (has_ending(path, &MARKDOWN) || has_ending(path, &[".txt", ".json"]))
}

/// Whether a path has one of the endings, ignoring case.
fn has_ending(path: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| {
        path.len()
            .checked_sub(ending.len())
            .is_some_and(|at| path.as_bytes()[at..].eq_ignore_ascii_case(ending.as_bytes()))
    })
}

/// Loads the sections of a file, or only those that a role may read.
pub(super) fn load(
    project: &Project,
    path: &str,
    current: &Current,
    only: Option<&[String]>,
) -> Result<Option<FileText>, StoreError> {
    let Ok(parsed) = ProjectPath::parse(path) else {
        return Ok(None);
    };
    let committed = project.store.read(&parsed)?;
    if committed.is_none() && !project.store.root().join(path).is_file() {
        return Ok(None);
    }
    let text = committed
        .and_then(|(bytes, _)| String::from_utf8(bytes).ok())
        .filter(|text| text.len() <= LARGEST);
    let Some(text) = text else {
        // Recorded as a file without sections, so that it is not read again.
        let version = noted(&current.version, false);
        return Ok(Some(FileText {
            path: path.to_owned(),
            version,
            tier: current.tier,
            sections: Vec::new(),
        }));
    };
    if let (None, true, Some(places)) = (only, is_json(path), json_places(&text)) {
        return Ok(Some(FileText {
            path: path.to_owned(),
            version: noted(&current.version, true),
            tier: current.tier,
            sections: places
                .into_iter()
                .filter(|place| !is_left_behind(&place.text))
                .map(|place| Section {
                    line: u32::try_from(place.line).unwrap_or(u32::MAX),
                    heading_path: place.parts,
                    text: place.text,
                })
                .collect(),
        }));
    }
    let text = without_block(text);
    let furniture = Furniture::of(&project.contract, &project.library, &parsed);
    let document = Document::parse(&text);
    let ranges: Option<Vec<Range<usize>>> = only.map(|names| {
        names
            .iter()
            .filter_map(|name| find_section(&document, name).ok())
            .map(|s| s.range.clone())
            .collect()
    });
    let shown = |section: &quipu_text::Section| {
        ranges.as_ref().is_none_or(|ranges| {
            ranges
                .iter()
                .any(|r| r.start <= section.range.start && section.range.end <= r.end)
        })
    };
    let front = document
        .front_matter()
        .filter(|_| ranges.is_none())
        .map(|front| Section {
            line: 1,
            heading_path: Vec::new(),
            text: furniture.removed(document.slice(&front.content).to_owned()),
        });
    let sections = document
        .sections()
        .iter()
        .filter(|section| shown(section))
        .map(|section| Section {
            line: u32::try_from(section.line).unwrap_or(u32::MAX),
            // Headings above the section are hidden too, if the role may read only the section.
            heading_path: document
                .headings(section)
                .filter(|above| shown(above))
                .map(|above| above.title.clone())
                .collect(),
            text: furniture.removed(without_comments(document.slice(&section.body))),
        });
    let sections = front
        .into_iter()
        .chain(sections)
        .filter(|section| !section.text.trim().is_empty())
        .collect();
    Ok(Some(FileText {
        path: path.to_owned(),
        version: noted(&current.version, true),
        tier: current.tier,
        sections,
    }))
}

/// A text without the lines of its file's template.
pub(crate) fn without_template(project: &Project, path: &ProjectPath, text: String) -> String {
    Furniture::of(&project.contract, &project.library, path).removed(text)
}

/// Lines from the templates of earlier releases.
const EARLIER: [&str; 3] = [
    "_Why things are as they are. Append-only: nothing here is edited or deleted. To change a decision, append a new one with `Supersedes:` and the old number; listings show the chain._",
    "_An entry is an H2 with number and title, then Date, Status (Proposed, Accepted, Rejected), Context (what forced a choice), Decision (what was chosen, over what), Consequences (what is easier and what is harder now)._",
    "_每条是一个二级标题（编号与标题），其下为：日期、状态（提议、已采纳、已否决）、背景（是什么迫使做选择）、决策（选了什么，舍了什么）、影响（什么变容易，什么变难）。_",
];

/// The lines of a file's template in both languages. They explain the file and contain nothing
/// about the project.
#[derive(Default)]
struct Furniture(HashSet<String>);

impl Furniture {
    fn of(contract: &Contract, library: &Library, path: &ProjectPath) -> Self {
        let Some(rule) = contract.rule(path) else {
            return Self::default();
        };
        let Some(profile) = &rule.profile else {
            return Self::default();
        };
        let read = |language: Language| {
            library.read(
                profile,
                &contract.template_path(language, rule.path.as_str()),
            )
        };
        let texts = [Language::En, Language::Zh].into_iter().filter_map(read);
        let lines = texts.flat_map(|text| {
            text.lines()
                .map(|line| line.trim().to_owned())
                .collect::<Vec<_>>()
        });
        Self(lines.chain(EARLIER.map(str::to_owned)).collect())
    }

    fn removed(&self, text: String) -> String {
        if self.0.is_empty() {
            return text;
        }
        text.split_inclusive('\n')
            .filter(|line| line.trim().is_empty() || !self.0.contains(line.trim()))
            .collect()
    }
}

/// Blanks the lines of Quipu's own block. Line numbers are preserved.
fn without_block(text: String) -> String {
    let Some(begin) = text.find(BLOCK.0) else {
        return text;
    };
    let end = text[begin..]
        .find(BLOCK.1)
        .map_or(text.len(), |length| begin + length + BLOCK.1.len());
    let emptied: String = text[begin..end].chars().filter(|c| *c == '\n').collect();
    format!("{}{emptied}{}", &text[..begin], &text[end..])
}

/// Removes HTML comments: template examples and markers are not memory.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_not_searched() {
        assert_eq!(
            without_comments("a <!-- example\nx --> b\n<!-- DONE -->\n"),
            "a  b\n\n"
        );
        assert_eq!(without_comments("a <!-- open"), "a ");
        assert_eq!(without_comments("plain"), "plain");
    }

    #[test]
    fn the_block_of_the_tool_is_not_searched() {
        let text =
            "# Mine\n<!-- quipu:begin -->\n## Memory\nquipu start\n<!-- quipu:end -->\n## After\n";
        assert_eq!(without_block(text.to_owned()), "# Mine\n\n\n\n\n## After\n");
        assert_eq!(without_block("# Mine\n".to_owned()), "# Mine\n");
    }

    #[test]
    fn what_the_template_says_is_not_searched() {
        let furniture = Furniture(
            [
                "_Say what the world is made of._".to_owned(),
                "| term | meaning |".to_owned(),
            ]
            .into(),
        );
        let text = "_Say what the world is made of._\n\n_The sea is glass._\n| term | meaning |\n| tide | slow |\n";
        assert_eq!(
            furniture.removed(text.to_owned()),
            "\n_The sea is glass._\n| tide | slow |\n"
        );
    }
}
