//! Checks that places in a source tree (`path:line`) exist.
//!
//! A path may start at the project or at the source root, or be the end of a path: agents write all
//! three. Places in quotation marks, code blocks and comments are not checked: they are quotations,
//! program output, or invisible.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use quipu_contract::{Actor, ProjectPath};
use quipu_store::StoreError;
use quipu_text::{Blocks, find_source_places, split_blocks};

use super::Findings;
use crate::files::read_scope::ReadScope;
use crate::project::open::Project;

/// Reads a file of the project.
type ReadFile<'s> = Box<dyn Fn(&str) -> Option<String> + 's>;

/// The source tree that a text refers to.
pub struct Sources<'s> {
    root: String,
    /// Every file of the project.
    files: Vec<String>,
    read: ReadFile<'s>,
    known: RefCell<BTreeMap<String, Option<Rc<SourceText>>>>,
    /// The files that the writer of the checked text may read. Messages reveal nothing about other
    /// files.
    told: Option<ReadScope<'s>>,
}

/// A source file, read once.
pub struct SourceText {
    pub text: String,
    pub lines: usize,
}

impl<'s> Sources<'s> {
    pub fn of(project: &'s Project, writer: &Actor, root: &str) -> Result<Sources<'s>, StoreError> {
        let files = project
            .store
            .list()?
            .iter()
            .map(ToString::to_string)
            .collect();
        let read = |path: &str| {
            let (bytes, _) = project.store.read(&ProjectPath::parse(path).ok()?).ok()??;
            String::from_utf8(bytes).ok()
        };
        Ok(Sources {
            root: format!("{}/", root.trim_end_matches('/')),
            files,
            read: Box::new(read),
            known: RefCell::default(),
            told: Some(ReadScope::of(project, writer)),
        })
    }

    #[cfg(test)]
    pub fn sample(files: &'s [(&'s str, &'s str)]) -> Sources<'s> {
        let read = |path: &str| {
            files
                .iter()
                .find(|(name, _)| *name == path)
                .map(|(_, text)| (*text).to_owned())
        };
        Sources {
            root: "source/".into(),
            files: files.iter().map(|(name, _)| (*name).to_owned()).collect(),
            read: Box::new(read),
            known: RefCell::default(),
            told: None,
        }
    }

    /// Returns the text of a file below the root. None for other files and for non-text files.
    pub fn text(&self, path: &str) -> Option<Rc<SourceText>> {
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let text = path
            .starts_with(&self.root)
            .then(|| (self.read)(path))
            .flatten();
        let found = text.map(|text| {
            Rc::new(SourceText {
                lines: text.lines().count().max(1),
                text,
            })
        });
        self.known
            .borrow_mut()
            .insert(path.to_owned(), found.clone());
        found
    }

    /// Whether the writer may read a file.
    pub fn may_tell(&self, path: &str) -> bool {
        self.told
            .as_ref()
            .is_none_or(|told| ProjectPath::parse(path).is_ok_and(|path| told.reads(&path)))
    }

    /// Returns the files that a path may mean: the exact path, a path below the root, or the end of
    /// a path.
    pub fn resolve(&self, path: &str) -> Vec<&str> {
        let path = path.trim_start_matches("./").trim_start_matches('/');
        let below = format!("{}{path}", self.root);
        if let Some(exact) = self
            .files
            .iter()
            .find(|file| **file == path || **file == below)
        {
            return vec![exact];
        }
        let end = format!("/{path}");
        self.files
            .iter()
            .filter(|file| file.ends_with(&end))
            .map(String::as_str)
            .collect()
    }

    /// Whether a missing path clearly refers to the source tree.
    fn is_claimed(&self, path: &str) -> bool {
        let path = path.trim_start_matches("./").trim_start_matches('/');
        let Some((first, _)) = path.split_once('/') else {
            return false;
        };
        path.starts_with(&self.root)
            || self.below().any(|file| {
                file.split_once('/')
                    .is_some_and(|(folder, _)| folder == first)
            })
    }

    /// Whether the source tree has files with the extension of this path, such as `.py`.
    fn has_ending(&self, path: &str) -> bool {
        let ending = |path: &str| {
            path.rsplit('/')
                .next()
                .and_then(|name| name.rsplit_once('.'))
                .map(|(_, ending)| ending.to_owned())
        };
        ending(path).is_some_and(|wanted| {
            self.below()
                .any(|file| ending(file).is_some_and(|own| own == wanted))
        })
    }

    fn below(&self) -> impl Iterator<Item = &str> {
        self.files
            .iter()
            .filter_map(|file| file.strip_prefix(&self.root))
    }
}

/// Places after this many are not checked.
const MOST_PLACES: usize = 2_000;

/// Checks that every place in the prose of a text exists.
pub fn check_places(path: &str, blocks: &Blocks, sources: &Sources<'_>, findings: &mut Findings) {
    let all = blocks.prose.iter().flat_map(|(number, line)| {
        find_source_places(line)
            .into_iter()
            .map(move |place| (number, line, place))
    });
    for (count, (number, line, place)) in all.enumerate() {
        if count == MOST_PLACES {
            findings.warnings.push(format!("`{path}` names more than {MOST_PLACES} places: those from line {number} on were not checked"));
            return;
        }
        let named = &line[place.at..place.end];
        let files = sources.resolve(place.path);
        let texts = files
            .iter()
            .filter_map(|file| Some((*file, sources.text(file)?.lines)));
        match texts.max_by_key(|(_, lines)| *lines) {
            Some((file, lines)) if place.last() > lines || place.first() == 0 => {
                let known = if sources.may_tell(file) {
                    format!(": `{file}` has {lines} lines")
                } else {
                    String::new()
                };
                findings.faults.push(format!(
                    "`{path}` line {number}: `{named}` does not exist{known}"
                ));
            }
            Some(_) => {}
            // A file of the project outside the source root, or a non-text file.
            None if !files.is_empty() => {}
            None => check_absent(path, *number, named, place.path, sources, findings),
        }
    }
}

fn check_absent(
    path: &str,
    number: usize,
    named: &str,
    absent: &str,
    sources: &Sources<'_>,
    findings: &mut Findings,
) {
    let name = absent.rsplit('/').next().unwrap_or(absent);
    let alike: Vec<&str> = sources
        .resolve(name)
        .into_iter()
        .filter(|file| sources.may_tell(file))
        .collect();
    let alike = if alike.is_empty() {
        String::new()
    } else {
        format!("; `{}` has that name", alike.join("`, `"))
    };
    let what = format!(
        "`{path}` line {number}: `{named}`: no file `{absent}` in `{}`{alike}",
        sources.root
    );
    if sources.is_claimed(absent) {
        findings.faults.push(what);
    } else if sources.has_ending(absent) {
        findings.warnings.push(what);
    }
}

/// Checks places and quotations.
pub fn check(path: &str, text: &str, sources: &Sources<'_>, findings: &mut Findings) {
    let blocks = split_blocks(text);
    check_places(path, &blocks, sources, findings);
    super::quotes::check_quotes(path, &blocks, sources, findings);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 3] = [
        ("source/src/a.py", "one\ntwo\nthree\n"),
        ("source/Makefile", "all:\n"),
        ("drafts/ch01-draft.md", "# One\n"),
    ];

    fn found(text: &str) -> Findings {
        let mut findings = Findings::default();
        check("r.md", text, &Sources::sample(&FILES), &mut findings);
        findings
    }

    #[test]
    fn what_is_there_passes() {
        for text in [
            "`source/src/a.py:3`, `src/a.py:1-3`, `a.py:2`, ./src/a.py:1, Makefile:1",
            "The draft says so at drafts/ch01-draft.md:99, `ch01-draft.md:99`.",
            "- ❌ \"it is at src/a.py:99\" (Heading) | source: src/a.py:2",
            "Ready at localhost:8080 in Python 3.11: 2 of 3, Error:12.",
            "```\nTraceback: src/nope.py:99\n```",
        ] {
            let found = found(text);
            assert!(
                found.faults.is_empty() && found.warnings.is_empty(),
                "{text} {found:?}"
            );
        }
    }

    #[test]
    fn what_is_not_there_goes_back_with_what_is() {
        for (text, said) in [
            (
                "`src/a.py:4`",
                "`r.md` line 1: `src/a.py:4` does not exist: `source/src/a.py` has 3 lines",
            ),
            ("见 `a.py:2-9`。", "`a.py:2-9` does not exist"),
            ("src/a.py:0", "does not exist"),
            (
                "source/lib/a.py:1",
                "no file `source/lib/a.py` in `source/`; `source/src/a.py` has that name",
            ),
            ("src/b.py:1", "no file `src/b.py` in `source/`"),
        ] {
            let faults = found(text).faults;
            assert!(
                faults.len() == 1 && faults[0].contains(said),
                "{text} {faults:?}"
            );
        }
        let doubtful = found("Given a file `config.py:3` of your own");
        assert!(
            doubtful.faults.is_empty() && doubtful.warnings.len() == 1,
            "{doubtful:?}"
        );
        assert_eq!(
            found("Given `example.toml:3` and example.com:80").warnings,
            [""; 0]
        );
    }

    /// In each case, Markdown ends the block, comment or quotation before the place, or in the same
    /// line.
    #[test]
    fn nothing_that_readers_see_as_prose_hides_a_place() {
        for text in [
            "> ~~~\nsource/src/a.py:999 is wrong",
            "    ~~~\nsource/src/a.py:999 is wrong",
            "- ~~~\n\nsource/src/a.py:999 is wrong",
            "<!-- --> source/src/a.py:999 is wrong",
            "<!-- a\nb --> source/src/a.py:999 is wrong",
            "\" source/src/a.py:999 is wrong",
            "“ source/src/a.py:999 is wrong",
        ] {
            assert_eq!(found(text).faults.len(), 1, "{text}");
        }
        check(
            "d.md",
            "a.rs:1-2b:1 and c.rs:3\n\n```\nx\n```\n",
            &Sources::sample(&[]),
            &mut Findings::default(),
        );
    }
}
