//! Finds the files that a shell command writes, as far as its text shows.
//!
//! This is not a shell: it runs nothing and knows files only by name. It splits the command into
//! words (`lexer.rs`), expands variables that the same command sets, and knows the programs that
//! write the files in their arguments (`programs.rs`, `git.rs`, `code.rs`). A partly known word is
//! a pattern, and every file that it may name is judged (`../names.rs`). Scripts in files, and
//! programs that choose their own files, are not covered: `status`, `verify` and `finish` find
//! their changes.

mod brackets;
mod code;
mod git;
mod lexer;
mod parameter;
mod patches;
mod programs;
mod stream;
#[cfg(test)]
mod tests;
mod word;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lexer::{Token, tokens};
use programs::Arguments;
use stream::Stream;
pub use word::{Piece, Word};

use super::call::Deed;
use crate::session::PERSON;

/// More deeply nested commands are denied.
const DEEPEST: usize = 8;
/// A command with more possible working folders is denied if it writes.
const MOST_FOLDERS: usize = 64;
/// A command with more deeds is denied, because a host waits for its hooks only for a limited time.
const MOST_DEEDS: usize = 10_000;
/// A command with more words, after braces and variables, is denied as well.
const MOST_EXPANDED: usize = 200_000;
/// No ordinary command has a longer value.
const LONGEST_VALUE: usize = 8192;
/// The file name of a process substitution.
const PROCESS: &str = "/dev/fd/63";

/// The effect on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Change,
    Grow,
    Remove,
}

/// The effects of the command when it runs in this folder.
pub fn deeds(command: &str, cwd: &Path) -> Vec<Deed> {
    let mut shell = Shell::new(cwd);
    shell.run(command);
    shell.deeds
}

/// Every folder below `cwd` that may be the working folder at some point of the command.
pub fn folders(command: &str, cwd: &Path) -> Vec<PathBuf> {
    let mut shell = Shell::new(cwd);
    shell.run(command);
    shell
        .left
        .iter()
        .chain(&shell.folders)
        .filter_map(Word::text)
        .map(PathBuf::from)
        .collect()
}

/// The commands of Quipu in a shell command, without their options.
pub fn quipu_commands(command: &str, cwd: &Path) -> Vec<String> {
    let mut shell = Shell::new(cwd);
    shell.run(command);
    shell.quipu_commands
}

/// Whether a shell command runs Quipu as a person: with `--as person`, or with `QUIPU_ROLE=person`.
/// A role that cannot be known counts as `person`.
pub fn claims_person(command: &str, cwd: &Path) -> bool {
    let mut shell = Shell::new(cwd);
    shell.run(command);
    let unquoted = command.replace(['"', '\'', '\\'], "");
    shell.claims_person || unquoted.contains(&format!("QUIPU_ROLE={PERSON}"))
}

/// Like `deeds`, for a command that is a list of words.
pub fn deeds_of_words(words: &[String], cwd: &Path) -> Vec<Deed> {
    let mut shell = Shell::new(cwd);
    shell.simple(
        words.iter().map(|word| Word::plain(word)).collect(),
        &Stream::default(),
    );
    shell.deeds
}

struct Shell {
    cwd: PathBuf,
    /// The possible working folders, below `cwd`. There is more than one after a `cd` that may
    /// fail, not run, or run elsewhere.
    folders: Vec<Word>,
    /// Earlier working folders: `cd -` returns there.
    left: Vec<Word>,
    /// Whether the current command certainly runs, in this shell, and before any other.
    leads: bool,
    variables: BTreeMap<String, Vec<Word>>,
    /// Links that this command creates: each link, and its possible targets.
    links: BTreeMap<Word, BTreeSet<Word>>,
    /// The output of process substitutions.
    processes: Vec<Word>,
    /// The input of loops: `done < FILE`.
    loops: Stream,
    deeds: Vec<Deed>,
    quipu_commands: Vec<String>,
    claims_person: bool,
    /// The number of files in copied folders.
    copied: usize,
    expanded: usize,
    depth: usize,
    /// There are more possible working folders than are tracked.
    is_lost: bool,
    /// The command is denied in any case.
    is_given_up: bool,
}

impl Shell {
    fn new(cwd: &Path) -> Shell {
        Shell {
            cwd: cwd.to_owned(),
            folders: vec![Word::default()],
            left: Vec::new(),
            leads: false,
            variables: BTreeMap::new(),
            links: BTreeMap::new(),
            processes: Vec::new(),
            loops: Stream::default(),
            deeds: Vec::new(),
            quipu_commands: Vec::new(),
            claims_person: false,
            copied: 0,
            expanded: 0,
            depth: 0,
            is_lost: false,
            is_given_up: false,
        }
    }

    /// Analyses a command and returns its output.
    fn run(&mut self, command: &str) -> Stream {
        let mut output = Stream::default();
        if self.depth >= DEEPEST {
            self.give_up("commands are nested too deeply");
            return output;
        }
        self.depth += 1;
        let (mut outer, mut simple, mut piped) = (Vec::new(), Vec::new(), Stream::default());
        let tokens = tokens(command);
        self.note_loops(&tokens);
        let (stood, led) = (self.folders.clone(), self.leads);
        let mut leads = !tokens.contains(&Token::Background);
        for token in tokens.into_iter().chain([Token::End]) {
            if !token.ends_command() {
                simple.push(token);
                continue;
            }
            if self.is_given_up {
                break;
            }
            leads &= token == Token::End && (simple.is_empty() || is_plain_cd(&simple));
            self.leads = leads;
            let printed = self.command(std::mem::take(&mut simple), std::mem::take(&mut piped));
            match token {
                Token::Pipe => piped = printed,
                _ => output.merge(printed),
            }
            match token {
                Token::Open => outer.push(self.folders.clone()),
                Token::Close => self.folders = outer.pop().unwrap_or_else(|| self.folders.clone()),
                _ => {}
            }
        }
        self.depth -= 1;
        self.leads = led;
        // A nested command may be a separate process or not (`eval`).
        if self.depth > 0 {
            self.stand(stood);
        }
        output
    }

    /// Records the input of loops before their bodies are analysed: `while read f; do …; done <
    /// FILE`.
    fn note_loops(&mut self, tokens: &[Token]) {
        for simple in tokens.split(Token::ends_command) {
            let is_done = matches!(simple.first(), Some(Token::Word(word)) if word.text().as_deref() == Some("done"));
            let reads =
                |token: &Token| matches!(token, Token::In | Token::Here | Token::Document(_));
            if is_done && simple.iter().any(reads) {
                let input = self.redirected(simple.to_vec(), false).1;
                self.loops.merge(input);
            }
        }
    }

    /// The words of a simple command, and its redirected input. Records the files that redirections
    /// write.
    fn redirected(&mut self, simple: Vec<Token>, writes: bool) -> (Vec<Word>, Stream) {
        let (mut words, mut input) = (Vec::new(), Stream::default());
        let mut tokens = simple.into_iter();
        while let Some(token) = tokens.next() {
            match token {
                Token::Word(word) => words.push(word),
                Token::Document(text) => input.texts.push(Word::plain(&text)),
                Token::TooMany => self.give_up("too many brackets"),
                Token::Inner(word) => drop(self.expanded(&word)),
                Token::In | Token::Here => {
                    let Some(Token::Word(read)) = tokens.next() else {
                        continue;
                    };
                    // `<<< "$(…)"` and `< <(…)` read the output of the command.
                    if let [Piece::Output(command) | Piece::Process(command)] = &read.0[..] {
                        input.merge(self.run(command));
                        continue;
                    }
                    let read = self.expanded(&read);
                    match token {
                        Token::Here => input.texts.extend(read),
                        _ => input.files.extend(read),
                    }
                }
                Token::Out { appends } => {
                    let Some(Token::Word(target)) = tokens.next() else {
                        continue;
                    };
                    let how = if appends { How::Grow } else { How::Change };
                    for target in self.expanded(&target) {
                        if writes {
                            self.write(how, &target);
                        }
                    }
                }
                _ => {}
            }
        }
        (words, input)
    }

    /// Analyses one simple command with its redirections. Returns its output.
    fn command(&mut self, simple: Vec<Token>, piped: Stream) -> Stream {
        let (mut words, mut input) = self.redirected(simple, true);
        input.merge(piped);
        let first = words
            .iter()
            .position(|word| assignment(word).is_none())
            .unwrap_or(words.len());
        let rest = words.split_off(first);
        for (name, value) in words.iter().filter_map(assignment) {
            let values = self.expanded(&value);
            // A variable before a command is set only for that command. Keeping it longer only adds
            // interpretations.
            self.set(&name, values);
        }
        let expanded: Vec<Word> = rest.iter().flat_map(|word| self.expanded(word)).collect();
        if expanded.is_empty() {
            return Stream::default();
        }
        let output = self.output(&expanded, &input);
        self.simple(expanded, &input);
        output
    }

    /// Adds possible values of a variable. `NAME+` appends them to the existing ones.
    fn set(&mut self, name: &str, values: Vec<Word>) {
        let known = self
            .variables
            .entry(name.trim_end_matches('+').to_owned())
            .or_default();
        let mut all = values.clone();
        if name.ends_with('+') && known.len() * values.len() <= word::MOST_WORDS {
            all.extend(known.iter().flat_map(|old| {
                values
                    .iter()
                    .map(|new| Word([&old.0[..], &new.0[..]].concat()))
            }));
        }
        known.extend(all);
        if known.len() > word::MOST_WORDS || known.iter().any(|value| value.0.len() > LONGEST_VALUE)
        {
            *known = vec![Word::too_many()];
        }
    }

    /// Denies the command and stops the analysis: no ordinary command is like this.
    fn give_up(&mut self, what: &str) {
        if !std::mem::replace(&mut self.is_given_up, true) {
            self.deeds.push(Deed::TooMuch {
                what: what.to_owned(),
            });
        }
    }

    /// The expansion of a word. Commands within it are analysed.
    fn expanded(&mut self, word: &Word) -> Vec<Word> {
        let mut all = Vec::new();
        for word in word.without_braces() {
            let mut words = vec![Vec::new()];
            let mut may_split = false;
            for piece in word.0 {
                let Some(values) = self.values_of(&piece) else {
                    words.iter_mut().for_each(|word| word.push(piece.clone()));
                    continue;
                };
                may_split |= values
                    .iter()
                    .any(|value| value.0.iter().any(stream::is_blank));
                if words.len() * values.len() > word::MOST_WORDS {
                    return vec![Word::too_many()];
                }
                words = match &values[..] {
                    [value] => words
                        .into_iter()
                        .map(|word| [&word[..], &value.0[..]].concat())
                        .collect(),
                    _ => words
                        .iter()
                        .flat_map(|word| {
                            values
                                .iter()
                                .map(|value| [&word[..], &value.0[..]].concat())
                        })
                        .collect(),
                };
            }
            if may_split {
                let parts: Vec<Vec<Piece>> = words
                    .iter()
                    .flat_map(|word| word.split(stream::is_blank).map(<[Piece]>::to_vec))
                    .filter(|part| !part.is_empty())
                    .collect();
                words.extend(parts);
            }
            all.extend(words.into_iter().map(Word));
        }
        self.expanded += all.len();
        if self.expanded > MOST_EXPANDED {
            self.give_up("too many words");
        }
        all
    }

    /// The words that may replace a piece; none if it stays as it is.
    fn values_of(&mut self, piece: &Piece) -> Option<Vec<Word>> {
        Some(match piece {
            Piece::Variable(name) => self.value_of(name),
            Piece::Default(name, default) => {
                let mut values = self.value_of(name);
                values.extend(self.deeper(tokens(default)));
                values
            }
            Piece::Part(name, operation) => self.parts_of(name, operation),
            Piece::Output(command) => self.output_of(command),
            Piece::Computed(sum) => {
                self.deeper(lexer::inner(sum));
                vec![Word::any()]
            }
            Piece::Process(command) => {
                let stood = self.folders.clone();
                let printed = self.output_of(command);
                self.processes.extend(printed);
                self.folders = stood;
                vec![Word::plain(PROCESS)]
            }
            _ => return None,
        })
    }

    /// Expands the words of a text within a word.
    fn deeper(&mut self, tokens: Vec<Token>) -> Vec<Word> {
        if self.depth >= DEEPEST && !tokens.is_empty() {
            self.give_up("values are nested too deeply");
            return Vec::new();
        }
        self.depth += 1;
        let words = tokens
            .into_iter()
            .filter_map(Token::word)
            .flat_map(|word| self.expanded(&word))
            .collect();
        self.depth -= 1;
        words
    }

    /// The possible values of `${NAME%…}` and similar. Commands in the operation are analysed.
    fn parts_of(&mut self, name: &str, operation: &str) -> Vec<Word> {
        self.deeper(lexer::inner(operation));
        let Some(known) = self.variables.get(name) else {
            return vec![Word::any()];
        };
        if operation == "!" {
            let names: Vec<String> = known.iter().filter_map(Word::text).collect();
            return names
                .iter()
                .flat_map(|name| self.value_of(name))
                .chain([Word::any()])
                .collect();
        }
        let part = |value: &Word| {
            parameter::changed(value, operation)
                .map_or_else(|| vec![value.clone(), Word::any()], |part| vec![part])
        };
        known.iter().flat_map(part).collect()
    }

    fn value_of(&self, name: &str) -> Vec<Word> {
        if let Some(values) = self.variables.get(name) {
            return values.clone();
        }
        match (name, std::env::var(name)) {
            ("HOME" | "TMPDIR", Ok(value)) => vec![Word::plain(&value)],
            ("PWD", _) => self
                .folders
                .iter()
                .map(|folder| Word::plain(&self.cwd.to_string_lossy()).joined(folder))
                .collect(),
            ("OLDPWD", _) => {
                let folders = self.left.iter().chain(&self.folders);
                folders
                    .map(|folder| Word::plain(&self.cwd.to_string_lossy()).joined(folder))
                    .collect()
            }
            _ => vec![Word::any()],
        }
    }

    /// The possible values of a command's output, if they are plain.
    fn output_of(&mut self, command: &str) -> Vec<Word> {
        let output = self.run(command);
        match self.is_given_up {
            true => vec![Word::any()],
            false => output.values(),
        }
    }

    /// Analyses one command with expanded words.
    fn simple(&mut self, words: Vec<Word>, input: &Stream) {
        if words
            .first()
            .is_some_and(|word| word.0.contains(&Piece::TooMany))
        {
            return self.give_up("too many words");
        }
        let folder = programs::folder_of_prefix(&words);
        let Some(readings) = Arguments::readings(words) else {
            return self.give_up("too many options before a command");
        };
        let stood = self.folders.clone();
        if let Some(folder) = &folder {
            self.leads = false;
            self.change_folder(std::slice::from_ref(folder));
        }
        readings
            .iter()
            .for_each(|arguments| self.program(arguments, input));
        if folder.is_some() {
            self.folders = stood;
        }
    }

    /// Records an effect on the file that a word names.
    fn write(&mut self, how: How, word: &Word) {
        if word.0.contains(&Piece::TooMany) {
            return self.give_up("too many words");
        }
        if self.is_lost && !matches!(word.0.first(), Some(Piece::Char('/') | Piece::Any)) {
            return self.give_up("too many changes of the working folder");
        }
        for folder in self.folders.clone() {
            let path = word.within(&folder);
            // The link itself, or a folder above that is a link.
            let slashes = path
                .0
                .iter()
                .enumerate()
                .filter(|(_, piece)| **piece == Piece::Char('/'))
                .map(|(at, _)| at);
            let mut real = BTreeSet::new();
            for end in slashes
                .chain([path.0.len()])
                .filter(|_| !self.links.is_empty())
            {
                let rest = Word(path.0[end..].iter().skip(1).cloned().collect());
                let leads = self
                    .links
                    .get(&Word(path.0[..end].to_vec()))
                    .into_iter()
                    .flatten();
                real.extend(leads.map(|real| {
                    if end == path.0.len() {
                        real.clone()
                    } else {
                        rest.within(real)
                    }
                }));
            }
            for path in [path].into_iter().chain(real) {
                self.deeds.push(match path.text() {
                    Some(text) => how.to(text.into()),
                    None => Deed::Matching { how, name: path },
                });
            }
        }
        if self.deeds.len() - self.copied.min(self.deeds.len()) > MOST_DEEDS {
            self.give_up("too many writes");
        }
    }

    /// Records an effect on a file if the project knows it.
    fn mention(&mut self, how: How, word: &Word) {
        if self.is_lost {
            return self.give_up("too many changes of the working folder");
        }
        for folder in self.folders.clone() {
            self.deeds.push(Deed::Matching {
                how,
                name: word.within(&folder),
            });
        }
    }

    /// A path on disk, if it is completely known.
    fn place(&self, word: &Word) -> Option<PathBuf> {
        let [folder] = &self.folders[..] else {
            return None;
        };
        Some(self.cwd.join(word.within(folder).text()?))
    }

    /// Changes to one of these folders, or back if there are none.
    fn change_folder(&mut self, to: &[Word]) {
        if to.is_empty() || to.iter().any(|to| to.text().is_none_or(|to| to == "-")) {
            self.stand(self.left.clone());
        }
        // With the dot: if a folder may not be entered, the shell stays where it is.
        let is_there =
            matches!(to, [to] if self.place(to).is_some_and(|place| place.join(".").is_dir()));
        let any = [Word::any()];
        let to = if to.is_empty() { &any } else { to };
        let inside: Vec<Word> = self
            .folders
            .iter()
            .flat_map(|folder| to.iter().map(|to| without_ups(to.within(folder))))
            .collect();
        if self.leads && is_there {
            self.left.append(&mut self.folders);
        }
        self.stand(inside);
    }

    /// Adds possible working folders.
    fn stand(&mut self, folders: Vec<Word>) {
        for folder in folders {
            if self.folders.contains(&folder) {
                continue;
            }
            if self.folders.len() == MOST_FOLDERS {
                self.is_lost = true;
                break;
            }
            self.folders.push(folder);
        }
    }
}

/// A folder without `a/..`: a shell resolves `..` in the text, not through links.
fn without_ups(folder: Word) -> Word {
    let Some(text) = folder.text() else {
        return folder;
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/').filter(|part| *part != ".") {
        match parts.last() {
            Some(&last) if part == ".." && !last.is_empty() && last != ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    Word::plain(&parts.join("/"))
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

/// `cd FOLDER`, and nothing that could make it fail.
fn is_plain_cd(simple: &[Token]) -> bool {
    let text = |word: &Word| word.text().unwrap_or_default();
    matches!(simple, [Token::Word(name), Token::Word(folder)] if text(name) == "cd" && !text(folder).is_empty() && !text(folder).starts_with('-'))
}

/// `NAME=value`, and `NAME+` for `NAME+=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let (name, value) = word.split_once('=')?;
    // The index of an array element does not matter.
    let name = Word(
        name.0
            .into_iter()
            .filter(|piece| *piece != Piece::One)
            .collect(),
    )
    .text()?;
    let plain = name.strip_suffix('+').unwrap_or(&name);
    let is_name = plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && plain.chars().all(lexer::is_name);
    is_name.then_some((name, value))
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
