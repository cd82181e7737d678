//! The input and output of commands, as far as the command line shows them.
//!
//! It reads short files for names and diffs. It runs no program.

use std::path::PathBuf;

use super::programs::Arguments;
use super::word::{Piece, Word};
use super::{Shell, lexer};

/// Longer files are not read for names or diffs.
const LONGEST_FILE: u64 = 1 << 20;
/// At most this many entries of a folder are compared with a pattern.
const MOST_ENTRIES: usize = 10_000;

/// The input or output of a command.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    /// Texts from the command itself.
    pub texts: Vec<Word>,
    /// File names, one per line.
    pub names: Vec<Word>,
    /// Files that contain the text.
    pub files: Vec<Word>,
    /// Diffs from git: the git command that lists their files, and the paths that limit them.
    pub diffs: Vec<(Vec<String>, Vec<Word>)>,
    /// There may be more.
    pub is_partial: bool,
}

impl Stream {
    pub fn unknown() -> Stream {
        Stream {
            is_partial: true,
            ..Stream::default()
        }
    }

    fn of_names(names: Vec<Word>) -> Stream {
        Stream {
            names,
            ..Stream::default()
        }
    }

    fn of_files(files: Vec<Word>) -> Stream {
        Stream {
            files,
            ..Stream::default()
        }
    }

    fn partial(self) -> Stream {
        Stream {
            is_partial: true,
            ..self
        }
    }

    pub fn merge(&mut self, other: Stream) {
        self.texts.extend(other.texts);
        self.names.extend(other.names);
        self.files.extend(other.files);
        self.diffs.extend(other.diffs);
        self.is_partial |= other.is_partial;
    }

    pub fn is_empty(&self) -> bool {
        let is_known = !self.texts.is_empty() || !self.names.is_empty();
        !is_known && self.files.is_empty() && self.diffs.is_empty() && !self.is_partial
    }

    /// Narrows unknown names to those that contain a plain text, as `grep TEXT` does.
    fn keep_matching(&mut self, pattern: &str) {
        let Some((text, is_end)) = literal(pattern) else {
            return;
        };
        for name in &mut self.names {
            let is_wild = |piece: &Piece| matches!(piece, Piece::Star | Piece::All);
            let Some(known) = name.0.iter().position(is_wild) else {
                continue;
            };
            let is_any = |piece: &Piece| is_wild(piece) || *piece == Piece::Char('/');
            if name.0[known..].iter().all(is_any) {
                name.0.truncate(known);
                name.0.push(Piece::All);
                name.0.extend(text.chars().map(Piece::Char));
                name.0.extend((!is_end).then_some(Piece::All));
            }
        }
    }

    /// The values of `$(…)` with this output.
    pub fn values(mut self) -> Vec<Word> {
        let is_whole = !self.is_partial && self.files.is_empty() && self.diffs.is_empty();
        self.texts.append(&mut self.names);
        if !is_whole || self.texts.is_empty() {
            self.texts.push(Word::any());
        }
        self.texts
    }
}

impl Shell {
    /// The known texts, including those in files.
    pub(super) fn texts_of(&self, stream: &Stream) -> Vec<Word> {
        let mut texts = stream.texts.clone();
        for place in stream.files.iter().flat_map(|file| self.places(file)) {
            let is_short = place
                .metadata()
                .is_ok_and(|about| about.is_file() && about.len() <= LONGEST_FILE);
            if is_short && let Ok(text) = std::fs::read_to_string(&place) {
                texts.push(Word::plain(&text));
            }
        }
        texts
    }

    /// The words and the lines of a stream, as `xargs` and `read` take them.
    pub(super) fn items_of(&self, stream: &Stream) -> Vec<Word> {
        let texts = self.texts_of(stream);
        let parts = |text: &Word, ends: fn(&Piece) -> bool| {
            let parts = text.0.split(ends).filter(|part| !part.is_empty());
            parts.map(|part| Word(part.to_vec())).collect::<Vec<Word>>()
        };
        let mut items = stream.names.clone();
        for text in &texts {
            items.extend(parts(text, is_blank));
            items.extend(parts(text, |piece| *piece == Piece::Char('\n')));
        }
        let is_whole = !stream.is_partial && texts.len() >= stream.files.len();
        if !is_whole || items.is_empty() {
            items.push(Word::any());
        }
        items.sort();
        items.dedup();
        items
    }

    /// The paths on disk that a word may name, in each possible working folder.
    pub(super) fn places(&self, word: &Word) -> Vec<PathBuf> {
        let in_folder = |folder: &Word| {
            let path = word.within(folder);
            match path.text() {
                Some(text) => vec![self.cwd.join(text)],
                None if path.0.contains(&Piece::Any) => Vec::new(),
                None => self.matching(&path),
            }
        };
        self.folders.iter().flat_map(in_folder).collect()
    }

    /// The entries of a folder that match a pattern.
    fn matching(&self, pattern: &Word) -> Vec<PathBuf> {
        let Some(folder) = pattern.folder().text() else {
            return Vec::new();
        };
        let folder = self.cwd.join(folder);
        let name = pattern.file_name();
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        entries
            .take(MOST_ENTRIES)
            .filter(|entry| name.matches(entry.file_name().as_ref()))
            .map(|entry| entry.path())
            .collect()
    }

    /// The output of a command with these words and this input.
    pub(super) fn output(&self, words: &[Word], input: &Stream) -> Stream {
        let Some(readings) = Arguments::readings(words.to_vec()) else {
            return Stream::unknown();
        };
        let mut output = Stream::default();
        for arguments in &readings {
            output.merge(self.output_of_program(arguments, input));
        }
        output
    }

    fn output_of_program(&self, arguments: &Arguments, input: &Stream) -> Stream {
        let named = arguments.named();
        let or_input = |files: &[Word]| match files.iter().all(is_stdin) {
            true => input.clone(),
            false => Stream::of_files(files.to_vec()),
        };
        match arguments.name.as_str() {
            "cd" | "true" | ":" | "set" | "export" | "read" => Stream::default(),
            "echo" | "printf" => Stream {
                texts: echoed(&arguments.words),
                ..Stream::default()
            },
            "pwd" => Stream::of_names(self.value_of("PWD")),
            // A new file that no rule of a project names.
            "mktemp" => Stream::of_names(vec![Word::plain("/tmp/new-file")]),
            "ls" if arguments.short('d') => Stream::of_names(named),
            "ls" => Stream::of_names(self.listed_names(named)),
            "find" => Stream::of_names(found(arguments)),
            "fd" | "fdfind" => self.searched(named[named.len().min(1)..].to_vec(), &[]),
            "git" => self.output_of_git(arguments),
            "rg" if arguments.has(&["--files"]) => self.searched(named, &[]),
            "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" => {
                // The first word is the pattern, unless an option gives it.
                let has_pattern = !arguments
                    .values(&["-e", "--regexp", "-f", "--file"])
                    .is_empty();
                let files = &named[usize::from(!has_pattern).min(named.len())..];
                if arguments.short('l') || arguments.has(&["--files-with-matches", "-L"]) {
                    let included = arguments.values(&["--include", "-g", "--glob"]);
                    let roots: Vec<Word> = files
                        .iter()
                        .filter(|word| !included.contains(word))
                        .cloned()
                        .collect();
                    return self.searched(roots, &included);
                }
                let mut output = or_input(files);
                let is_plain = !"vix".chars().any(|flag| arguments.short(flag));
                if let (true, Some(pattern)) = (is_plain, named.first().and_then(Word::text)) {
                    output.keep_matching(&pattern);
                }
                match arguments.short('o') {
                    true => output.partial(),
                    false => output,
                }
            }
            "cat" | "sort" | "uniq" | "head" | "tail" | "tac" => or_input(&named),
            "tee" | "sponge" => input.clone(),
            "sed" | "awk" | "gawk" | "perl" | "tr" | "cut" | "rev" | "xargs" => {
                input.clone().partial()
            }
            _ => Stream::unknown(),
        }
    }

    /// The names that `ls` prints: entries of a folder have no folder prefix.
    fn listed_names(&self, mut named: Vec<Word>) -> Vec<Word> {
        let is_folder = |word: &Word| self.places(word).iter().any(|place| place.is_dir());
        if named.is_empty() || named.iter().any(is_folder) {
            named.push(Word(vec![Piece::Star]));
        }
        named
    }

    /// The names of files that a program finds in files and folders.
    fn searched(&self, roots: Vec<Word>, names: &[Word]) -> Stream {
        let is_file = |word: &Word| {
            let places = self.places(word);
            !places.is_empty() && !places.iter().any(|place| place.is_dir())
        };
        let (mut files, folders): (Vec<Word>, Vec<Word>) = roots.into_iter().partition(is_file);
        if files.is_empty() || !folders.is_empty() {
            files.extend(below(&folders, names));
        }
        Stream::of_names(files)
    }

    fn output_of_git(&self, arguments: &Arguments) -> Stream {
        let Some(at) = arguments.words.iter().position(|word| !word.is_flag()) else {
            return Stream::unknown();
        };
        let rest = Arguments {
            name: arguments.words[at].text().unwrap_or_default(),
            words: arguments.words[at + 1..].to_vec(),
        };
        let (paths, commits): (Vec<Word>, Vec<Word>) = rest
            .named()
            .into_iter()
            .filter(|word| word.text().as_deref() != Some("--"))
            .partition(|word| self.places(word).iter().any(|place| place.exists()));
        let commits: Option<Vec<String>> = commits.iter().map(Word::text).collect();
        let is_known = commits.is_some();
        let mut listing: Vec<String> = match rest.name.as_str() {
            "ls-files" => return self.searched(paths, &[]),
            "grep" if rest.short('l') || rest.has(&["--files-with-matches"]) => {
                return self.searched(paths, &[]);
            }
            "diff" => vec!["diff".into(), "--name-only".into()],
            "show" => ["diff-tree", "--no-commit-id", "--name-only", "-r"]
                .map(String::from)
                .to_vec(),
            _ => return Stream::unknown(),
        };
        match commits.unwrap_or_default() {
            none if none.is_empty() => listing.push("HEAD".into()),
            some => listing.extend(some),
        }
        // An unknown commit may contain anything.
        if !is_known {
            listing = vec!["ls-files".into()];
        }
        let paths = match paths.is_empty() {
            true => vec![Word::plain(":/")],
            false => paths,
        };
        Stream {
            diffs: vec![(listing, paths)],
            ..Stream::default()
        }
    }
}

/// The text of a regular expression, if it is plain, and whether a line must end with it.
fn literal(pattern: &str) -> Option<(String, bool)> {
    let (pattern, is_end) = match pattern.strip_suffix('$') {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    let text = pattern.replace("\\.", "\0");
    let is_plain = |c: char| c.is_alphanumeric() || "/_-\0".contains(c);
    text.chars()
        .all(is_plain)
        .then(|| (text.replace('\0', "."), is_end))
}

pub fn is_blank(piece: &Piece) -> bool {
    matches!(piece, Piece::Char(c) if lexer::is_blank(*c))
}

fn is_stdin(word: &Word) -> bool {
    matches!(word.text().as_deref(), Some("-" | "/dev/stdin"))
}

/// The output of `echo` and `printf`: all words together.
fn echoed(words: &[Word]) -> Vec<Word> {
    // Any other word with a dash is printed.
    let is_option = |word: &Word| {
        let text = word.text().unwrap_or_default();
        let letters = text.strip_prefix('-').unwrap_or_default();
        text == "--" || !letters.is_empty() && letters.chars().all(|c| "neE".contains(c))
    };
    let shown: Vec<Vec<Piece>> = words
        .iter()
        .filter(|word| !is_option(word) && !word.beginning().starts_with('%'))
        .map(|word| word.0.clone())
        .collect();
    match shown.is_empty() {
        true => vec![Word::any()],
        false => vec![Word(shown.join(&Piece::Char(' ')))],
    }
}

/// The files that `find` may print: below its folders, with its names.
pub fn found(find: &Arguments) -> Vec<Word> {
    let is_root =
        |word: &&Word| !word.is_flag() && !matches!(word.text().as_deref(), Some("(" | "!" | ")"));
    let roots: Vec<Word> = find.words.iter().take_while(is_root).cloned().collect();
    let mut names = find.values(&["-name"]);
    for name in find.values(&["-iname"]) {
        let changed = |change: fn(&char) -> char| {
            let letter = |piece: &Piece| match piece {
                Piece::Char(c) => Piece::Char(change(c)),
                other => other.clone(),
            };
            Word(name.0.iter().map(letter).collect())
        };
        names.extend([
            changed(char::to_ascii_lowercase),
            changed(char::to_ascii_uppercase),
            name,
        ]);
    }
    below(&roots, &names)
}

/// Every file with one of these names, in these folders or, if there are none, in the working
/// folder.
fn below(roots: &[Word], names: &[Word]) -> Vec<Word> {
    let names: Vec<Word> = match names.is_empty() {
        true => vec![Word(vec![Piece::All])],
        false => names.iter().map(Word::as_pattern).collect(),
    };
    let here = [Word::default()];
    let roots = if roots.is_empty() { &here } else { roots };
    let below = |root: &Word, name: &Word| {
        let slash: &[Piece] = match root.0.is_empty() {
            true => &[],
            false => &[Piece::Char('/')],
        };
        let deep = [Piece::All, Piece::Char('/')];
        // In the folder itself, or in any below it.
        [
            Word([&root.0[..], slash, &name.0[..]].concat()),
            Word([&root.0[..], slash, &deep, &name.0[..]].concat()),
        ]
    };
    roots
        .iter()
        .flat_map(|root| names.iter().flat_map(move |name| below(root, name)))
        .collect()
}

impl Word {
    /// A quoted pattern that a program interprets as one.
    fn as_pattern(&self) -> Word {
        let piece = |piece: &Piece| match piece {
            Piece::Char('*') => Piece::Star,
            Piece::Char('?') => Piece::One,
            other => other.clone(),
        };
        Word(self.0.iter().map(piece).collect())
    }
}
