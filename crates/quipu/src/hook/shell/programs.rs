//! The programs that write the files in their arguments.
//!
//! `git.rs`, `patches.rs` and `code.rs` handle theirs. Any other program counts as a reader.

use std::collections::BTreeSet;
use std::path::Path;

use super::stream::{Stream, found};
use super::word::{Piece, Word};
use super::{How, PROCESS, Shell, assignment};
use crate::session::PERSON;

/// Words before a command that do not change its effect on files.
const PREFIXES: &[&str] = &[
    "sudo", "doas", "env", "command", "builtin", "nohup", "time", "timeout", "nice", "ionice",
    "stdbuf", "setsid", "exec", "busybox", "if", "then", "elif", "else", "while", "until", "do",
    "!", "{", "}", "coproc", "function", "uv", "poetry", "pdm", "npx", "run",
];
/// Prefixes with a required or optional name before the command.
const NAMING: &[&str] = &["coproc", "function"];
/// A command with more interpretations of the options before it is denied.
const MOST_READINGS: usize = 64;
/// Programs that run shell commands.
const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "ksh", "ash"];
/// Programs that edit a file in place with `-i`, `--in-place` or `--write`.
const IN_PLACE: &[&str] = &[
    "sed",
    "gsed",
    "perl",
    "ruby",
    "yq",
    "awk",
    "gawk",
    "clang-format",
    "prettier",
    "gofmt",
    "black",
    "sd",
    "rustfmt",
];
/// Programs that write the file after `-o`, `-O`, `--output`.
const WITH_OUTPUT: &[&str] = &[
    "curl", "wget", "sort", "pandoc", "gcc", "cc", "clang", "rustc", "openssl", "xmllint", "dot",
    "uniq", "shuf", "iconv", "jq", "base64",
];
/// How many files of a copied folder are checked.
const MOST_COPIED: usize = 10_000;

/// Options of `xargs` that take a value.
const XARGS_VALUES: &[&str] = &[
    "-n",
    "-P",
    "-L",
    "-d",
    "-s",
    "-E",
    "--max-args",
    "--max-procs",
    "--max-lines",
    "--max-chars",
    "--delimiter",
    "--eof",
];
/// Above this number of words, `xargs` is analysed as one command with all of them, not as one
/// command per word.
const MOST_TARGETS: usize = 64;

/// A command's name and its arguments.
#[derive(Debug, Clone)]
pub struct Arguments {
    pub name: String,
    pub words: Vec<Word>,
}

/// The folder that a prefix runs its command in: `env -C FOLDER`, `env --chdir=FOLDER`.
pub fn folder_of_prefix(words: &[Word]) -> Option<Word> {
    let is_env = |word: &Word| {
        word.text()
            .is_some_and(|text| text.rsplit('/').next() == Some("env"))
    };
    let behind = words.iter().position(is_env)?;
    let options = Arguments {
        name: "env".into(),
        words: words[behind + 1..].to_vec(),
    };
    options.values(&["-C", "--chdir"]).into_iter().next()
}

impl Arguments {
    /// The command after its prefixes, in every interpretation: only the prefixes know which of
    /// their options take a value. None if there are too many.
    pub fn readings(words: Vec<Word>) -> Option<Vec<Arguments>> {
        let (mut readings, mut places) = (Vec::new(), BTreeSet::from([(0, false)]));
        while let Some((at, is_prefixed)) = places.pop_first() {
            let Some(word) = words.get(at) else { continue };
            let text = word.text();
            let name = text
                .as_deref()
                .map(|text| text.rsplit('/').next().unwrap_or_default())
                .unwrap_or_default();
            let beginning = word.beginning();
            let is_flag = is_prefixed && beginning.starts_with('-');
            if PREFIXES.contains(&name) {
                places.insert((at + 1, true));
                if NAMING.contains(&name) {
                    places.insert((at + 2, true));
                }
            } else if is_flag {
                // `env -S` joins its words.
                let split = match beginning.strip_prefix("--split-string") {
                    Some(rest) => Some(if rest.is_empty() { 14 } else { 15 }),
                    None => beginning
                        .find('S')
                        .filter(|_| !beginning.starts_with("--"))
                        .map(|at| at + 1),
                };
                if let Some(from) = split {
                    let glued = Word(word.0[from..].to_vec());
                    let joined = Some(glued)
                        .filter(|glued| !glued.0.is_empty())
                        .into_iter()
                        .chain(words[at + 1..].iter().cloned());
                    readings.push(Arguments {
                        name: "eval".into(),
                        words: joined.collect(),
                    });
                }
                places.insert((at + 1, true));
                if !beginning.contains('=') && beginning != "--" {
                    places.insert((at + 2, true));
                }
            } else if is_prefixed && (is_time(&beginning) || assignment(word).is_some()) {
                places.insert((at + 1, true));
            } else {
                readings.push(Arguments {
                    name: name.to_owned(),
                    words: words[at + 1..].to_vec(),
                });
            }
            if readings.len() > MOST_READINGS {
                return None;
            }
        }
        Some(readings)
    }

    pub fn has(&self, flags: &[&str]) -> bool {
        let is = |word: &Word| {
            word.text()
                .is_some_and(|text| flags.contains(&text.split('=').next().unwrap_or_default()))
        };
        self.words.iter().any(is)
    }

    /// Whether a short option is given, alone or with others.
    pub fn short(&self, letter: char) -> bool {
        self.words
            .iter()
            .map(Word::beginning)
            .any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(letter))
    }

    pub fn named(&self) -> Vec<Word> {
        self.words
            .iter()
            .filter(|word| !word.is_flag())
            .cloned()
            .collect()
    }

    /// The values of an option: `-o X`, `-oX`, `--output X`, `--output=X`.
    pub fn values(&self, flags: &[&str]) -> Vec<Word> {
        let mut values = Vec::new();
        for (at, word) in self.words.iter().enumerate() {
            let text = word.beginning();
            if word
                .text()
                .is_some_and(|text| flags.contains(&text.as_str()))
            {
                values.extend(self.words.get(at + 1).cloned());
            } else if let Some(flag) = flags
                .iter()
                .find(|flag| flag.starts_with("--") && text.starts_with(&format!("{flag}=")))
            {
                values.push(Word(word.0[flag.len() + 1..].to_vec()));
            } else if let Some(flag) = flags
                .iter()
                .find(|flag| flag.len() == 2 && text.starts_with(**flag))
            {
                values.push(Word(word.0[flag.len()..].to_vec()));
            }
        }
        values
    }
}

/// The target folder of `cp`, `mv`, `install` and `ln`: `-t DIR`, `-vtDIR`,
/// `--target-directory=DIR` or an abbreviation of that.
fn target_folder(arguments: &Arguments) -> Option<Word> {
    if arguments.name == "rsync" {
        return None;
    }
    let is_long = |name: &str| name.len() > 3 && "--target-directory".starts_with(name);
    for (at, word) in arguments.words.iter().enumerate() {
        let text = word.beginning();
        let (name, has_value) = text
            .split_once('=')
            .map_or((text.as_str(), false), |(name, _)| (name, true));
        match text.find('t').filter(|end| is_cluster(&text[..*end])) {
            _ if is_long(name) && has_value => {
                return Some(Word(word.0[name.len() + 1..].to_vec()));
            }
            _ if is_long(name) => return arguments.words.get(at + 1).cloned(),
            Some(end) if end + 1 < word.0.len() => return Some(Word(word.0[end + 1..].to_vec())),
            Some(_) => return arguments.words.get(at + 1).cloned(),
            None => {}
        }
    }
    None
}

/// Whether a word is a cluster of short options.
fn is_cluster(text: &str) -> bool {
    text.strip_prefix('-')
        .is_some_and(|letters| letters.chars().all(|c| c.is_ascii_alphabetic()))
}

/// The files after `-fsSLo`, `-qO` and similar.
fn clustered_outputs(words: &[Word]) -> Vec<Word> {
    let ends = |word: &Word| {
        word.text()
            .is_some_and(|text| text.len() > 2 && is_cluster(&text) && text.ends_with(['o', 'O']))
    };
    words
        .windows(2)
        .filter(|two| ends(&two[0]))
        .map(|two| two[1].clone())
        .collect()
}

fn is_time(text: &str) -> bool {
    text.trim_end_matches(['s', 'm', 'h', 'd'])
        .parse::<f64>()
        .is_ok()
}

fn is_number(word: &Word) -> bool {
    word.text().is_some_and(|text| {
        text.trim_start_matches(['+', '-', '<', '>'])
            .trim_end_matches(['K', 'M', 'G'])
            .parse::<i64>()
            .is_ok()
    })
}

impl Shell {
    pub(super) fn program(&mut self, arguments: &Arguments, input: &Stream) {
        let named = arguments.named();
        let name = arguments.name.as_str();
        self.settings(arguments, &named, input);
        match name {
            "cd" | "pushd" => self.change_folder(&named),
            "popd" => self.change_folder(&[]),
            "git" => self.git(arguments, input),
            "eval" | "trap" => self.run_words(if name == "trap" {
                &named[..named.len().min(1)]
            } else {
                &arguments.words
            }),
            "xargs" | "parallel" => self.for_each(arguments, input),
            "find" => self.find(arguments),
            "tee" | "sponge" => {
                let how = if arguments.short('a') || arguments.has(&["--append"]) {
                    How::Grow
                } else {
                    How::Change
                };
                named.iter().for_each(|word| self.write(how, word));
            }
            "rm" | "unlink" | "shred" | "gzip" | "bzip2" | "xz" | "rmdir" => {
                named
                    .iter()
                    .filter(|word| !is_number(word))
                    .for_each(|word| self.write(How::Remove, word));
            }
            "truncate" | "fallocate" | "ed" | "ex" | "vi" | "vim" | "nvim" | "nano" => {
                named
                    .iter()
                    .filter(|word| !is_number(word))
                    .for_each(|word| self.write(How::Change, word));
            }
            "dd" => {
                let target = |word: &Word| {
                    word.split_once('=')
                        .filter(|(key, _)| key.text().as_deref() == Some("of"))
                        .map(|(_, file)| file)
                };
                named
                    .iter()
                    .filter_map(target)
                    .for_each(|word| self.write(How::Change, &word));
            }
            "quipu" => {
                let roles = arguments.values(&["--as"]);
                let is_person = |role: &Word| role.text().is_none_or(|role| role == PERSON);
                self.claims_person |= roles.iter().any(is_person);
                self.quipu_commands.extend(quipu_command(arguments));
            }
            "ln" | "link" => self.link(arguments, &named),
            "mv" | "cp" | "install" | "rsync" => self.copy(arguments, &named),
            "patch" => self.patch(arguments, input),
            "." | "source" => self.script(&named, input),
            _ if SHELLS.contains(&name) => self.shell(arguments, &named, input),
            _ if IN_PLACE.contains(&name) && is_in_place(arguments) => {
                edited_files(&arguments.words)
                    .iter()
                    .for_each(|word| self.write(How::Change, word));
            }
            _ => self.code(arguments, input),
        }
        if WITH_OUTPUT.contains(&name) {
            let mut files =
                arguments.values(&["-o", "-O", "--output", "--output-document", "-out"]);
            files.extend(clustered_outputs(&arguments.words));
            // `curl -O URL` writes a file named like the last part of the URL.
            let file = |word: &Word| {
                if word.beginning().contains("://") {
                    word.file_name()
                } else {
                    word.clone()
                }
            };
            files
                .iter()
                .for_each(|word| self.write(How::Change, &file(word)));
        }
    }

    /// Variables that a command sets.
    fn settings(&mut self, arguments: &Arguments, named: &[Word], input: &Stream) {
        match (arguments.name.as_str(), named) {
            ("export" | "local" | "declare" | "typeset" | "readonly", _) => {
                for (name, value) in named.iter().filter_map(assignment) {
                    self.set(&name, vec![value]);
                }
            }
            ("for" | "select", [variable, rest @ ..]) => {
                // Without a list, a loop iterates over the arguments.
                let values = if rest.is_empty() {
                    self.value_of("@")
                } else {
                    rest[1..].to_vec()
                };
                self.variables
                    .extend(variable.text().map(|name| (name, values)));
            }
            // The possible values of `$1` and `$@`.
            ("set", _) if arguments.has(&["--"]) => {
                self.set("@", named.iter().cloned().chain([Word::any()]).collect())
            }
            ("read" | "mapfile" | "readarray", _) => {
                let input = if input.is_empty() { &self.loops } else { input };
                let values = self.items_of(input);
                let names = named.iter().filter_map(Word::text);
                self.variables
                    .extend(names.map(|name| (name, values.clone())));
            }
            _ => {}
        }
    }

    /// Analyses words as a command.
    fn run_words(&mut self, words: &[Word]) {
        let joined = Word(
            words
                .iter()
                .map(|word| word.0.clone())
                .collect::<Vec<_>>()
                .join(&Piece::Char(' ')),
        );
        if joined.text().is_none() {
            let is_too_much = joined.0.contains(&Piece::TooMany);
            self.write(
                How::Change,
                &if is_too_much {
                    Word::too_many()
                } else {
                    Word::any()
                },
            );
        }
        self.run(&joined.spelled());
    }

    fn shell(&mut self, arguments: &Arguments, named: &[Word], input: &Stream) {
        if arguments.short('c') {
            self.set(
                "@",
                named.iter().skip(1).cloned().chain([Word::any()]).collect(),
            );
            // An option before it may take a value: `-o pipefail -c COMMAND`.
            let (first, rest) = named.split_at(named.len().min(1));
            self.run_words(first);
            rest.iter()
                .filter(|word| word.text().is_some())
                .for_each(|word| self.run_words(std::slice::from_ref(word)));
            return;
        }
        self.script(named, input);
    }

    /// Analyses commands from the command line. A script in a file is not read.
    fn script(&mut self, named: &[Word], input: &Stream) {
        let file = named.iter().filter_map(Word::text).next();
        match file.as_deref() {
            Some(PROCESS) => std::mem::take(&mut self.processes)
                .iter()
                .for_each(|word| self.run_words(std::slice::from_ref(word))),
            Some(file)
                if !["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].contains(&file)
                    && !file.starts_with('+') =>
            {
                return;
            }
            None if !named.is_empty() => return,
            _ => {}
        }
        for text in self.texts_of(input) {
            self.run_words(&[text]);
        }
    }

    /// `xargs`: runs a command with the words of its input.
    fn for_each(&mut self, arguments: &Arguments, input: &Stream) {
        let mut input = input.clone();
        let mut words = arguments.words.iter().peekable();
        let mut marks = Vec::new();
        while let Some(flag) = words.next_if(|word| word.is_flag()) {
            match flag.text().as_deref() {
                Some("-I" | "--replace") => marks.extend(words.next().cloned()),
                Some("-i") => marks.push(Word::plain("{}")),
                Some("-a" | "--arg-file") => input.files.extend(words.next().cloned()),
                Some(flag) if XARGS_VALUES.contains(&flag) => drop(words.next()),
                _ => {}
            }
        }
        let command: Vec<Word> = words.cloned().collect();
        let targets = self.items_of(&input);
        if marks.is_empty() && targets.len() > MOST_TARGETS {
            return self.simple([command, targets].concat(), &Stream::default());
        }
        for target in &targets {
            let mut filled: Vec<Word> = command
                .iter()
                .map(|word| {
                    marks
                        .iter()
                        .fold(word.clone(), |word, mark| word.replaced(mark, target))
                })
                .collect();
            if marks.is_empty() {
                filled.push(target.clone());
            }
            self.simple(filled, &Stream::default());
        }
    }

    fn find(&mut self, arguments: &Arguments) {
        let targets = found(arguments);
        let is = |word: &Word, flags: &[&str]| {
            word.text()
                .is_some_and(|text| flags.contains(&text.as_str()))
        };
        if arguments.has(&["-delete"]) {
            targets
                .iter()
                .for_each(|target| self.write(How::Remove, target));
        }
        arguments
            .values(&["-fprint", "-fprint0", "-fprintf", "-fls"])
            .iter()
            .for_each(|file| self.write(How::Change, file));
        for (at, _) in arguments
            .words
            .iter()
            .enumerate()
            .filter(|(_, word)| is(word, &["-exec", "-execdir", "-ok", "-okdir"]))
        {
            let command: Vec<Word> = arguments.words[at + 1..]
                .iter()
                .take_while(|word| !is(word, &[";", "+"]))
                .cloned()
                .collect();
            for target in &targets {
                let filled = command
                    .iter()
                    .map(|word| word.replaced(&Word::plain("{}"), target))
                    .collect();
                self.simple(filled, &Stream::default());
            }
        }
    }

    /// A link is a second name. A later check cannot recognise a hard link to a protected file, so
    /// creating one counts as a change of that file.
    fn link(&mut self, arguments: &Arguments, named: &[Word]) {
        let is_hard = !(arguments.short('s') || arguments.has(&["--symbolic"]));
        let folder = target_folder(arguments);
        let named: Vec<Word> = named
            .iter()
            .filter(|word| Some(*word) != folder.as_ref())
            .cloned()
            .collect();
        let (target, sources) = match (&folder, named.split_last()) {
            (Some(folder), _) => (folder, &named[..]),
            // A single word is linked into the working folder.
            (None, Some((_, []))) => (&Word::plain("."), &named[..]),
            (None, Some((target, sources))) => (target, sources),
            (None, None) => return,
        };
        for source in sources {
            for target in [target.clone(), source.file_name().within(target)] {
                self.write(How::Change, &target);
                // A hard link's source is relative to the working folder, a symbolic link's to the
                // folder of the link.
                let from = |folder: &Word| match target.within(folder) {
                    _ if is_hard => folder.clone(),
                    target => target.folder(),
                };
                for folder in &self.folders {
                    self.links
                        .entry(target.within(folder))
                        .or_default()
                        .insert(source.within(&from(folder)));
                }
                if self.is_given_up {
                    return;
                }
            }
            if is_hard {
                self.write(How::Change, source);
            }
        }
    }

    fn copy(&mut self, arguments: &Arguments, named: &[Word]) {
        let folder = target_folder(arguments);
        let named: Vec<Word> = named
            .iter()
            .filter(|word| Some(*word) != folder.as_ref())
            .cloned()
            .collect();
        let (target, sources) = match (&folder, named.split_last()) {
            (Some(folder), _) => (folder.clone(), &named[..]),
            (None, Some((target, sources))) if !sources.is_empty() => (target.clone(), sources),
            _ => return,
        };
        for source in sources {
            if arguments.name == "cp"
                && (arguments.short('l')
                    || arguments.short('s')
                    || arguments.has(&["--link", "--symbolic-link"]))
            {
                self.write(How::Change, source);
            }
            if arguments.name == "mv" || arguments.has(&["--remove-source-files"]) {
                self.write(How::Remove, source);
            }
            // In a folder it keeps its name. The judge sees which of the two exists.
            let inside = source.file_name().within(&target);
            if inside.text().is_some() || source.text().is_none() {
                self.write(How::Change, &inside);
            }
            if let Some(place) = self
                .place(source)
                .filter(|place| place.is_dir() && arguments.name != "mv")
            {
                for file in files_below(&place) {
                    let file = Word::plain(&file);
                    self.copied += 2 * self.folders.len();
                    self.write(How::Change, &file.within(&inside));
                    self.write(How::Change, &file.within(&target));
                }
                if self.copied > MOST_COPIED * 8 {
                    self.give_up("too many files");
                }
            }
        }
        let deletes = |word: &Word| word.beginning().starts_with("--delete");
        let how = if arguments.name == "rsync" && arguments.words.iter().any(deletes) {
            How::Remove
        } else {
            How::Change
        };
        self.write(how, &target);
    }
}

impl Word {
    /// Replaces a placeholder in this word.
    fn replaced(&self, mark: &Word, by: &Word) -> Word {
        if mark.0.is_empty() {
            return self.clone();
        }
        let (mut pieces, mut at) = (Vec::new(), 0);
        while at < self.0.len() {
            if self.0[at..].starts_with(&mark.0) {
                pieces.extend(by.0.clone());
                at += mark.0.len();
            } else {
                pieces.push(self.0[at].clone());
                at += 1;
            }
        }
        Word(pieces)
    }
}

/// The command of Quipu that the arguments call: the first word that is neither an option nor the
/// value of one. None if they ask for help.
fn quipu_command(arguments: &Arguments) -> Option<String> {
    const WITH_VALUE: [&str; 5] = ["-C", "--as", "--unit", "--agent", "--lease"];
    if arguments.has(&["-h", "--help"]) {
        return None;
    }
    let mut words = arguments.words.iter();
    while let Some(word) = words.next() {
        if !word.is_flag() {
            return word.text();
        }
        if word
            .text()
            .is_some_and(|text| WITH_VALUE.contains(&text.as_str()))
        {
            words.next();
        }
    }
    None
}

/// The files below a copied folder, relative to it.
fn files_below(folder: &Path) -> Vec<String> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => files.extend(
                    entry
                        .path()
                        .strip_prefix(folder)
                        .map(|path| path.to_string_lossy().into_owned()),
                ),
            }
            if files.len() >= MOST_COPIED {
                return files;
            }
        }
    }
    files
}

fn is_in_place(arguments: &Arguments) -> bool {
    let flags = ["--in-place", "--write", "--inplace", "-w", "inplace"];
    // Formatters write in place by default.
    let formats = ["black", "rustfmt", "sd"].contains(&arguments.name.as_str())
        && !arguments.has(&["--check", "--diff", "-p", "--preview"]);
    arguments.has(&flags)
        || formats
        || !["prettier", "awk"].contains(&arguments.name.as_str()) && arguments.short('i')
}

/// The files of `sed -i` and similar: every word except the options and the script.
fn edited_files(words: &[Word]) -> Vec<Word> {
    let (mut files, mut scripted, mut words) = (Vec::new(), false, words.iter());
    while let Some(word) = words.next() {
        let text = word.beginning();
        let is_cluster = text.starts_with('-') && !text.starts_with("--");
        if text == "--expression"
            || text == "--file"
            || (is_cluster && (text.ends_with('e') || text == "-f"))
        {
            scripted = true;
            words.next();
        } else if word.is_flag() {
            scripted |= text.starts_with("--expression=") || text.starts_with("-e");
        } else {
            files.push(word.clone());
        }
    }
    let skipped = usize::from(!scripted && files.len() > 1);
    files.split_off(skipped)
}
