//! What a shell command writes, as far as its text tells.
//!
//! This is no shell: it runs nothing and knows no files but by their names. It reads words (`lexer.rs`), fills in variables that the same
//! command sets, and knows the programs that write what their arguments name (`programs.rs`, `git.rs`, `code.rs`). A word that is known
//! only in part is a pattern, and what it may name is judged (`../names.rs`). Scripts in files and
//! programs that choose their own files are not seen here: `status`, `verify` and `finish` find what they changed.

mod code;
mod git;
mod lexer;
mod programs;
#[cfg(test)]
mod tests;
mod word;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lexer::{Token, tokens};
use programs::Arguments;
pub use word::{Piece, Word};

use super::call::Deed;

/// Commands within commands deeper than this are not read.
const DEEPEST: usize = 8;
/// A command that may stand in more folders is not read.
const MOST_FOLDERS: usize = 32;

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Change,
    Grow,
    Remove,
}

/// What the command does when it is run in this folder.
pub fn deeds(command: &str, cwd: &Path) -> Vec<Deed> {
    let mut shell = Shell::new(cwd);
    shell.run(command);
    shell.deeds
}

/// Every folder beneath `cwd` that the command may stand in at some time.
pub fn folders(command: &str, cwd: &Path) -> Vec<PathBuf> {
    let mut shell = Shell::new(cwd);
    shell.run(command);
    shell.left.iter().chain(&shell.folders).filter_map(Word::text).map(PathBuf::from).collect()
}

/// The same for a command that comes as a list of words.
pub fn deeds_of_words(words: &[String], cwd: &Path) -> Vec<Deed> {
    let mut shell = Shell::new(cwd);
    shell.simple(words.iter().map(|word| Word::plain(word)).collect(), &[], None);
    shell.deeds
}

/// A simple command with its words filled in, whose output the next one may read.
#[derive(Clone)]
struct Printed(Vec<Word>);

struct Shell {
    cwd: PathBuf,
    /// Where it may stand, beneath `cwd`. More than one after a `cd` that may fail, or not be run, or be run elsewhere.
    folders: Vec<Word>,
    /// Where it stood before: `cd -` leads back.
    left: Vec<Word>,
    /// Whether the command that is being read is run, here, and before any other.
    leads: bool,
    variables: BTreeMap<String, Vec<Word>>,
    /// Names that this command makes for files: the link, and what it leads to.
    links: Vec<(Word, Word)>,
    deeds: Vec<Deed>,
    depth: usize,
}

impl Shell {
    fn new(cwd: &Path) -> Shell {
        Shell {
            cwd: cwd.to_owned(),
            folders: vec![Word::default()],
            left: Vec::new(),
            leads: false,
            variables: BTreeMap::new(),
            links: Vec::new(),
            deeds: Vec::new(),
            depth: 0,
        }
    }

    fn run(&mut self, command: &str) {
        if self.depth == DEEPEST {
            self.deeds.push(Deed::Unknown { word: command.chars().take(60).collect() });
            return;
        }
        self.depth += 1;
        let (mut outer, mut simple, mut printed) = (Vec::new(), Vec::new(), None);
        let tokens = tokens(command);
        let (stood, led) = (self.folders.clone(), self.leads);
        let mut leads = !tokens.contains(&Token::Background);
        for token in tokens.into_iter().chain([Token::End]) {
            if !matches!(token, Token::End | Token::Or | Token::Background | Token::Pipe | Token::Open | Token::Close) {
                simple.push(token);
                continue;
            }
            leads &= token == Token::End && (simple.is_empty() || is_plain_cd(&simple));
            self.leads = leads;
            let before = self.tokens(std::mem::take(&mut simple), printed.take());
            match token {
                Token::Pipe => printed = before,
                Token::Open => outer.push(self.folders.clone()),
                Token::Close => self.folders = outer.pop().unwrap_or_else(|| self.folders.clone()),
                _ => {}
            }
        }
        self.depth -= 1;
        self.leads = led;
        // A command within another may be a process of its own, or not (`eval`).
        if self.depth > 0 {
            self.stand(stood);
        }
    }

    /// One simple command with its redirections.
    fn tokens(&mut self, simple: Vec<Token>, printed: Option<Printed>) -> Option<Printed> {
        let (mut words, mut documents) = (Vec::new(), Vec::new());
        let mut tokens = simple.into_iter();
        while let Some(token) = tokens.next() {
            match token {
                Token::Word(word) => words.push(word),
                Token::Document(text) => documents.push(text),
                Token::Out { appends } => {
                    let Some(Token::Word(target)) = tokens.next() else { continue };
                    let how = if appends { How::Grow } else { How::Change };
                    for target in self.expanded(&target) {
                        self.write(how, &target);
                    }
                }
                _ => {}
            }
        }
        let first = words.iter().position(|word| assignment(word).is_none()).unwrap_or(words.len());
        let rest = words.split_off(first);
        for (name, value) in words.iter().filter_map(assignment) {
            let values = self.expanded(&value);
            // What is set before a command holds for that command alone; taking it for longer only adds readings.
            self.variables.entry(name).or_default().extend(values);
        }
        let expanded: Vec<Word> = rest.iter().flat_map(|word| self.expanded(word)).collect();
        self.simple(expanded.clone(), &documents, printed.as_ref());
        (!expanded.is_empty()).then_some(Printed(expanded))
    }

    /// The words that a word becomes. Commands within it are run.
    fn expanded(&mut self, word: &Word) -> Vec<Word> {
        let mut all = Vec::new();
        for word in word.without_braces() {
            let mut words = vec![Vec::new()];
            let mut may_split = false;
            for piece in word.0 {
                let values = match piece {
                    Piece::Variable(name) => self.value_of(&name),
                    Piece::Default(name, default) => {
                        let defaults = tokens(&default).into_iter().filter_map(|token| match token {
                            Token::Word(word) => Some(word),
                            _ => None,
                        });
                        let defaults: Vec<Word> = defaults.collect();
                        let mut values = self.value_of(&name);
                        values.extend(defaults.iter().flat_map(|word| self.expanded(word)));
                        values
                    }
                    Piece::Output(command) => self.output_of(&command),
                    piece => {
                        words.iter_mut().for_each(|word| word.push(piece.clone()));
                        continue;
                    }
                };
                if let [value] = &values[..] {
                    may_split |= value.0.contains(&Piece::Char(' '));
                    words.iter_mut().for_each(|word| word.extend_from_slice(&value.0));
                    continue;
                }
                may_split |= values.iter().any(|value| value.0.contains(&Piece::Char(' ')));
                if words.len() * values.len() > word::MOST_WORDS {
                    return vec![Word::any()];
                }
                words = words.iter().flat_map(|word| values.iter().map(|value| [&word[..], &value.0[..]].concat())).collect();
            }
            if may_split {
                let parts: Vec<Vec<Piece>> =
                    words.iter().flat_map(|word| word.split(|p| *p == Piece::Char(' ')).map(<[Piece]>::to_vec)).collect();
                words.extend(parts);
            }
            all.extend(words.into_iter().map(Word));
        }
        all
    }

    fn value_of(&self, name: &str) -> Vec<Word> {
        if let Some(values) = self.variables.get(name) {
            return values.clone();
        }
        match (name, std::env::var(name)) {
            ("HOME" | "TMPDIR", Ok(value)) => vec![Word::plain(&value)],
            ("PWD", _) => self.folders.iter().map(|folder| Word::plain(&self.cwd.to_string_lossy()).joined(folder)).collect(),
            ("OLDPWD", _) => {
                let folders = self.left.iter().chain(&self.folders);
                folders.map(|folder| Word::plain(&self.cwd.to_string_lossy()).joined(folder)).collect()
            }
            _ => vec![Word::any()],
        }
    }

    /// What a command prints, where that is plain.
    fn output_of(&mut self, command: &str) -> Vec<Word> {
        self.run(command);
        let mut words = Vec::new();
        for token in tokens(command) {
            match token {
                Token::Word(word) => words.extend(self.expanded_value(&word)),
                _ => return vec![Word::any()],
            }
        }
        let name = words.first().and_then(Word::text).unwrap_or_default();
        match name.as_str() {
            "echo" | "printf" => echoed(&words[1..]),
            "pwd" => self.value_of("PWD"),
            // A new file of its own, which no rule of a project names.
            "mktemp" => vec![Word::plain("/tmp/new-file")],
            _ => vec![Word::any()],
        }
    }

    /// As `expanded`, for a word whose commands were run already.
    fn expanded_value(&mut self, word: &Word) -> Vec<Word> {
        match word.0.iter().any(|piece| matches!(piece, Piece::Output(_))) {
            true => vec![Word::any()],
            false => self.expanded(word),
        }
    }

    /// One command, its words filled in.
    fn simple(&mut self, words: Vec<Word>, documents: &[String], printed: Option<&Printed>) {
        let folder = programs::folder_of_prefix(&words);
        let Some(arguments) = Arguments::of(words) else { return };
        let Some(folder) = folder else { return self.program(&arguments, documents, printed) };
        let stood = self.folders.clone();
        self.leads = false;
        self.change_folder(Some(&folder));
        self.program(&arguments, documents, printed);
        self.folders = stood;
    }

    /// Notes what happens to the file that a word names.
    fn write(&mut self, how: How, word: &Word) {
        for folder in self.folders.clone() {
            let path = word.within(&folder);
            let leads = |(link, real): &(Word, Word)| match *link == path {
                true => Some(real.clone()),
                false => path.below(link).map(|rest| rest.within(real)),
            };
            let real: Vec<Word> = self.links.iter().filter_map(leads).collect();
            for path in [path].into_iter().chain(real) {
                self.deeds.push(match path.text() {
                    Some(text) => how.to(text.into()),
                    None => Deed::Matching { how, name: path },
                });
            }
        }
    }

    /// Notes what happens to a file if it is one that the project knows.
    fn mention(&mut self, how: How, text: &str) {
        for folder in self.folders.clone() {
            self.deeds.push(Deed::Matching { how, name: Word::plain(text).within(&folder) });
        }
    }

    /// A place on the disk, where all of it is known.
    fn place(&self, word: &Word) -> Option<PathBuf> {
        let [folder] = &self.folders[..] else { return None };
        Some(self.cwd.join(word.within(folder).text()?))
    }

    fn change_folder(&mut self, to: Option<&Word>) {
        if to.and_then(Word::text).is_none_or(|to| to == "-") {
            self.stand(self.left.clone());
        }
        let to = to.cloned().unwrap_or_else(Word::any);
        // With the dot: whoever may not enter a folder stays where it is.
        let is_there = self.place(&to).is_some_and(|place| place.join(".").is_dir());
        let inside: Vec<Word> = self.folders.iter().map(|folder| to.within(folder)).collect();
        if self.leads && is_there {
            self.left.append(&mut self.folders);
        }
        self.stand(inside);
    }

    /// It may stand in these folders, too.
    fn stand(&mut self, folders: Vec<Word>) {
        for folder in folders {
            if !self.folders.contains(&folder) {
                self.folders.push(folder);
            }
        }
        if self.folders.len() > MOST_FOLDERS {
            self.folders.truncate(MOST_FOLDERS);
            self.deeds.push(Deed::Unknown { word: "cd".to_owned() });
        }
    }
}

impl How {
    pub fn to(self, path: PathBuf) -> Deed {
        match self {
            How::Change => Deed::Change { path },
            How::Grow => Deed::Grow { path },
            How::Remove => Deed::Remove { path },
        }
    }
}

impl Word {
    fn joined(self, path: &Word) -> Word {
        path.within(&self)
    }
}

/// `cd FOLDER`, and nothing else that could make it fail.
fn is_plain_cd(simple: &[Token]) -> bool {
    let text = |word: &Word| word.text().unwrap_or_default();
    matches!(simple, [Token::Word(name), Token::Word(folder)] if text(name) == "cd" && !text(folder).is_empty() && !text(folder).starts_with('-'))
}

/// `NAME=value`
fn assignment(word: &Word) -> Option<(String, Word)> {
    let (name, value) = word.split_once('=')?;
    let name = name.text()?;
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// What `echo` and `printf` print of their words: each of them, and all together.
fn echoed(words: &[Word]) -> Vec<Word> {
    let shown: Vec<&Word> = words.iter().filter(|word| !word.is_flag() && !word.beginning().starts_with('%')).collect();
    match shown[..] {
        [] => vec![Word::any()],
        [one] => vec![one.clone()],
        _ => vec![Word(shown.iter().map(|word| word.0.clone()).collect::<Vec<_>>().join(&Piece::Char(' ')))],
    }
}

/// A word for a message.
pub fn shown(word: &Word) -> String {
    let letter = |piece: &Piece| match piece {
        Piece::Char(c) => *c,
        Piece::One => '?',
        Piece::Star | Piece::All => '*',
        _ => '…',
    };
    word.0.iter().map(letter).collect()
}
