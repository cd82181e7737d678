//! git commands that write files of the work tree.
//!
//! This file only determines which git command lists these files. git itself lists them when the
//! command is judged (`../names.rs`).

use super::programs::Arguments;
use super::stream::Stream;
use super::word::{Piece, Word};
use super::{How, Shell};
use crate::hook::call::Deed;

impl Shell {
    pub(super) fn git(&mut self, arguments: &Arguments, input: &Stream) {
        let folders = self.folders.clone();
        let mut words = arguments.words.iter();
        let mut command = None;
        while let Some(word) = words.next() {
            match word.text().as_deref() {
                Some("-C" | "--work-tree") => {
                    self.change_folder(words.next().map_or(&[], std::slice::from_ref))
                }
                Some("-c" | "--git-dir") => drop(words.next()),
                Some(text) if text.starts_with('-') => {}
                text => {
                    command = text.map(str::to_owned);
                    break;
                }
            }
        }
        let rest = Arguments {
            name: command.unwrap_or_default(),
            words: words.cloned().collect(),
        };
        self.subcommand(&rest, input);
        self.folders = folders;
    }

    fn subcommand(&mut self, arguments: &Arguments, input: &Stream) {
        let named = arguments.named();
        let is_split = |word: &Word| word.text().as_deref() == Some("--");
        let paths_begin = arguments.words.iter().position(is_split);
        let behind: Option<Vec<Word>> = paths_begin.map(|at| arguments.words[at + 1..].to_vec());
        // Files that differ from the commit are reset.
        let is_forced =
            arguments.short('f') || arguments.has(&["--force", "--discard-changes", "--reset"]);
        match arguments.name.as_str() {
            "rm" if !arguments.has(&["--cached", "-n", "--dry-run"]) => {
                named.iter().for_each(|word| self.write(How::Remove, word))
            }
            "mv" => self.program(
                &Arguments {
                    name: "mv".into(),
                    words: arguments.words.clone(),
                },
                &Stream::default(),
            ),
            "apply" | "am" if !arguments.has(&["--check", "--stat", "--cached"]) => {
                self.apply_diffs(arguments, input)
            }
            "checkout" if !arguments.has(&["-b", "-B", "--orphan"]) => {
                let before: Vec<Word> = arguments.words[..paths_begin.unwrap_or(0)]
                    .iter()
                    .filter(|word| !word.is_flag())
                    .cloned()
                    .collect();
                let (from, paths) = match behind {
                    Some(paths) => (before.first().cloned(), paths),
                    // Without `--`, a word is a path if such a file exists; otherwise it names a
                    // commit.
                    None => {
                        let (paths, others): (Vec<Word>, Vec<Word>) =
                            named.into_iter().partition(|word| self.may_be_file(word));
                        (others.first().cloned(), paths)
                    }
                };
                self.revert(from, &paths);
                if is_forced {
                    self.revert(None, &[Word::plain(":/")]);
                }
            }
            "restore"
                if arguments.has(&["--worktree", "-W"]) || !arguments.has(&["--staged", "-S"]) =>
            {
                let from = arguments.values(&["--source", "-s"]);
                let paths: Vec<Word> = named
                    .into_iter()
                    .filter(|word| !from.contains(word))
                    .collect();
                self.revert(from.first().cloned(), &paths);
            }
            "reset" if arguments.has(&["--hard", "--merge", "--keep"]) => {
                self.revert(named.first().cloned(), &[Word::plain(":/")])
            }
            "switch" | "read-tree" | "checkout-index" if is_forced => {
                self.revert(None, &[Word::plain(":/")])
            }
            "diff" | "log" | "show" | "format-patch" | "archive" | "bundle" => {
                let mut files = arguments.values(&["--output"]);
                match arguments.name.as_str() {
                    "archive" => files.extend(arguments.values(&["-o"])),
                    "bundle" => files.extend(named.get(1).cloned()),
                    _ => {}
                }
                files.iter().for_each(|file| self.write(How::Change, file));
            }
            "stash" => match arguments.words.first().and_then(Word::text).as_deref() {
                None | Some("push" | "save") => {
                    self.revert(None, &behind.unwrap_or_else(|| vec![Word::plain(":/")]))
                }
                Some(option) if option.starts_with('-') => {
                    self.revert(None, &behind.unwrap_or_else(|| vec![Word::plain(":/")]))
                }
                _ => {}
            },
            "clean" if arguments.short('f') || arguments.has(&["--force"]) => {
                if arguments.short('n') || arguments.has(&["--dry-run"]) {
                    return;
                }
                let everything = arguments.short('x') || arguments.short('X');
                let excluded: Vec<Word> = arguments.values(&["-e", "--exclude"]);
                let paths: Vec<Word> = named
                    .into_iter()
                    .filter(|word| !excluded.contains(word))
                    .collect();
                let mut listing = vec!["ls-files".to_owned(), "--others".to_owned()];
                listing.extend((!everything).then(|| "--exclude-standard".to_owned()));
                listing.extend(
                    excluded
                        .iter()
                        .filter_map(Word::text)
                        .map(|text| format!("--exclude={text}")),
                );
                self.listed(How::Remove, listing, &paths);
            }
            _ => {}
        }
    }

    fn may_be_file(&self, word: &Word) -> bool {
        match self.place(word) {
            Some(place) => place.exists(),
            None => !matches!(word.0.first(), Some(Piece::Any)),
        }
    }

    /// Resets files to a commit: those that differ from it change.
    fn revert(&mut self, from: Option<Word>, paths: &[Word]) {
        if paths.is_empty() {
            return;
        }
        let from = from
            .map_or(Some("HEAD".to_owned()), |word| word.text())
            .filter(|text| !text.starts_with('-'));
        match from {
            Some(from) => self.listed(
                How::Change,
                vec!["diff".into(), "--name-only".into(), from],
                paths,
            ),
            // An unknown commit may contain anything.
            None => self.listed(How::Change, vec!["ls-files".into()], paths),
        }
    }

    pub(super) fn listed(&mut self, how: How, mut listing: Vec<String>, paths: &[Word]) {
        // Patterns belong to git as well as to the shell, and an unknown path may be any path.
        let spelled: Option<Vec<String>> = paths.iter().map(Word::text).collect();
        listing.extend(["-z".to_owned(), "--".to_owned()]);
        listing.extend(spelled.unwrap_or_else(|| vec![":/".to_owned()]));
        if self.is_lost {
            self.give_up("too many changes of the working folder");
        }
        for folder in self.folders.clone() {
            if let Some(folder) = folder.text() {
                self.deeds.push(Deed::Listed {
                    how,
                    folder: folder.into(),
                    listing: listing.clone(),
                });
            }
        }
    }
}
