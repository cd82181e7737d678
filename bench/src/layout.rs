//! The projects used by the benchmarks: how texts become files, one section per text.

use std::collections::HashMap;
use std::path::Path;

use quipu_protocol::Project;
use quipu_recall::{Date, date_of};
use quipu_store::{Options, Store};

use crate::Outcome;

const CONTRACT: &str = "quipu = 1\n\n[[files]]\npath = \"sessions/**\"\nclass = \"append\"\n";

/// Creates an empty project in a folder, or opens the existing one.
pub fn open_project(root: &Path) -> Outcome<Project> {
    if !root.join("quipu.toml").exists() {
        std::fs::create_dir_all(root.join("sessions"))?;
        std::fs::write(root.join("quipu.toml"), CONTRACT)?;
        Store::init(root)?;
    }
    Ok(Project::open(root, Options::default())?)
}

/// Escapes a text for a Markdown file, so that no line of it starts a section or an unclosed block.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for line in text.lines() {
        let plain = line.trim_start();
        let underlines = !plain.is_empty() && plain.chars().all(|c| "=-*_ ".contains(c));
        if underlines || plain.starts_with(['#', '<', '`', '~', '$']) {
            out.push('\\');
            out.push_str(plain);
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// How the texts of a group become files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A file for each session, or for each text if there are no sessions.
    Session,
    /// A file for each text.
    One,
    /// All texts of a group in one file, in order.
    Group,
    /// This many texts a file, in an order that has nothing to do with their contents.
    Shuffled(usize),
}

impl Layout {
    /// Reads the value of `--layout`.
    pub fn parse(name: &str) -> Outcome<Self> {
        match name.split_once(':') {
            None if name == "session" => Ok(Self::Session),
            None if name == "one" => Ok(Self::One),
            None if name == "group" => Ok(Self::Group),
            Some(("shuffled", many)) => match many.parse()? {
                0 => Err("--layout shuffled:N needs at least one text a file".into()),
                many => Ok(Self::Shuffled(many)),
            },
            _ => Err(
                format!("unknown layout `{name}`: use session, one, group or shuffled:N").into(),
            ),
        }
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Session => write!(f, "session"),
            Self::One => write!(f, "one"),
            Self::Group => write!(f, "group"),
            Self::Shuffled(many) => write!(f, "shuffled:{many}"),
        }
    }
}

/// One line of a corpus. Empty fields are absent.
pub struct Text {
    pub id: String,
    pub session: String,
    pub date: String,
    pub speaker: String,
    pub text: String,
}

/// One group as files.
#[derive(Default)]
pub struct Group {
    pub files: Vec<(String, String)>,
    /// The first line and the id of each text, by file.
    pub ids: HashMap<String, Vec<(u32, String)>>,
    /// The last date of its texts.
    pub last_date: Option<Date>,
}

impl Group {
    /// Lays out the texts of a group. Every text is a section under its date and speaker.
    pub fn new(mut texts: Vec<Text>, layout: Layout) -> Self {
        if let Layout::Shuffled(_) = layout {
            shuffle(&mut texts);
        }
        let mut group = Self {
            last_date: texts.iter().filter_map(|text| date_of(&text.date)).max(),
            ..Self::default()
        };
        let mut before: Option<&Text> = None;
        for (number, text) in texts.iter().enumerate() {
            let begins = before.is_none_or(|before| match layout {
                Layout::Session => text.session.is_empty() || before.session != text.session,
                Layout::One => true,
                Layout::Group => false,
                Layout::Shuffled(many) => number % many == 0,
            });
            if begins {
                let path = format!("sessions/{:04}.md", group.files.len() + 1);
                group.files.push((path, String::new()));
            }
            let before = before.replace(text).filter(|_| !begins);
            group.add(text, before);
        }
        group
    }

    /// Adds a text to the last file, after another text of this file.
    fn add(&mut self, text: &Text, before: Option<&Text>) {
        let Some((path, file)) = self.files.last_mut() else {
            return;
        };
        let changed = before.is_none_or(|before| before.date != text.date);
        if !text.date.is_empty() && (changed || text.speaker.is_empty()) {
            file.push_str(&format!("# {}\n\n", text.date));
        }
        let line = file.lines().count() as u32 + 1;
        let first = if text.speaker.is_empty() && !text.date.is_empty() {
            line.saturating_sub(2).max(1)
        } else {
            line
        };
        let texts = self.ids.entry(path.clone()).or_default();
        texts.push((first, text.id.clone()));
        if !text.speaker.is_empty() {
            file.push_str(&format!("## {}\n\n", text.speaker));
        } else if text.date.is_empty() && before.is_some() {
            // A heading without words, so that each text is a section.
            file.push_str("## ·\n\n");
        }
        file.push_str(&escaped(&text.text));
        file.push('\n');
    }

    /// Returns the id of the text that contains a line.
    pub fn id(&self, path: &str, line: u32) -> &str {
        let texts = &self.ids[path];
        &texts[texts.partition_point(|(first, _)| *first <= line).max(1) - 1].1
    }
}

/// Shuffles texts, always in the same way (Fisher and Yates, with a linear congruential generator).
fn shuffle(texts: &mut [Text]) {
    let mut state = 29u64;
    for end in (1..texts.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        texts.swap(end, (state >> 33) as usize % (end + 1));
    }
}
