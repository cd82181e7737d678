//! Programs in other languages within a command: `python -c`, `node -e`, `awk '… > "file"'`.
//!
//! Their grammar is not parsed. If a program contains a word that writes, every file of the project
//! that it quotes counts as written.

use super::programs::Arguments;
use super::stream::Stream;
use super::word::Word;
use super::{How, Shell};

/// Interpreters, and the options that take a program. Without an option the first word is the
/// program.
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("node", &["-e", "--eval", "-p", "--print"]),
    ("deno", &["eval"]),
    ("bun", &["-e", "--eval"]),
    ("ruby", &["-e"]),
    ("perl", &["-e", "-E", "-ne", "-pe", "-le"]),
    ("php", &["-r"]),
    ("lua", &["-e"]),
    ("awk", &[]),
    ("gawk", &[]),
    ("mawk", &[]),
    ("sed", &["-e", "-n"]),
];

/// Modes that open a file for writing, as they appear in quotes.
const MODES: &[&str] = &[
    "w", "wb", "wt", "w+", "wb+", "w+b", "r+", "rb+", "r+b", "x", "xb",
];
const GROWING_MODES: &[&str] = &["a", "ab", "at", "a+", "ab+"];
/// Words that replace or remove a file.
const CHANGES: &[&str] = &[
    "write_text",
    "write_bytes",
    "writeFile",
    "createWriteStream",
    "File.write",
    "IO.write",
    "file_put_contents",
    "unlink",
    "os.remove",
    "rmtree",
    "fs.rm",
    "os.rename",
    "os.replace",
    ".rename(",
    "rename(",
    "renameSync",
    "truncate",
    "copyfile",
    "copyFile",
    "shutil.",
    "O_WRONLY",
    "O_RDWR",
    "O_TRUNC",
    "FileUtils",
    "File.delete",
    "fs.cp",
];
/// Words that remove or move a file or a folder.
const REMOVALS: &[&str] = &[
    "unlink",
    "os.remove",
    "rmtree",
    "rmdir",
    "fs.rm",
    "rmSync",
    "os.rename",
    "shutil.move",
    "renameSync",
    "FileUtils.rm",
    "File.delete",
];
/// Words that only append to a file.
const GROWTH: &[&str] = &["appendFile", "FILE_APPEND", "O_APPEND"];
/// Languages in which `>` writes.
const WITH_REDIRECTIONS: &[&str] = &["perl", "awk", "gawk", "mawk"];
/// Words for the arguments of a program.
const ARGUMENTS: &[&str] = &["argv", "ARGV", "args"];
/// Words that run a command.
const RUNS: &[&str] = &[
    "system",
    "subprocess",
    "popen",
    "child_process",
    "exec",
    "spawn",
    "qx",
    "`",
];

impl Shell {
    pub(super) fn code(&mut self, arguments: &Arguments, input: &Stream) {
        let name = arguments
            .name
            .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let Some((_, flags)) = INTERPRETERS.iter().find(|(known, _)| *known == name) else {
            return;
        };
        let mut texts: Vec<String> = arguments
            .values(flags)
            .iter()
            .filter_map(Word::text)
            .collect();
        let named = arguments.named();
        if flags.is_empty() || name == "sed" && texts.is_empty() {
            texts.extend(named.first().and_then(Word::text));
        } else if named.is_empty() || named.iter().any(|word| word.text().as_deref() == Some("-")) {
            texts.extend(self.texts_of(input).iter().map(Word::spelled));
        }
        for text in texts {
            // A program may write the files that its arguments name.
            let takes = ARGUMENTS.iter().any(|word| text.contains(word));
            let given = if takes { &named[..] } else { &[] };
            self.program_text(name, &text, given);
        }
    }

    fn program_text(&mut self, language: &str, text: &str, given: &[Word]) {
        // In `sed`, an unquoted file name follows `w`.
        if language == "sed" {
            for line in text.lines().filter_map(|line| line.rsplit_once("w ")) {
                self.mention(How::Change, &Word::plain(line.1.trim()));
            }
            return;
        }
        let mut quoted = quoted_in(text);
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if has(RUNS) {
            quoted.iter().for_each(|quoted| drop(self.run(quoted)));
            for words in lists_in(text) {
                self.simple(words, &Stream::default());
            }
        }
        let opens = |modes: &[&str]| quoted.iter().any(|quoted| modes.contains(&quoted.as_str()));
        let redirects = |sign: &str| {
            WITH_REDIRECTIONS.contains(&language) && text.replace(">>", "»").contains(sign)
        };
        let how = match () {
            () if has(CHANGES) || opens(MODES) || redirects(">") => How::Change,
            () if has(GROWTH) || opens(GROWING_MODES) || redirects("»") => How::Grow,
            () => return,
        };
        quoted.extend(given.iter().filter_map(Word::text));
        quoted.extend(self.joined(text));
        let removes = has(REMOVALS);
        for quoted in &quoted {
            let name = quoted.trim_start_matches(['>', '<', '+', ' ']);
            self.mention(how, &Word::plain(name));
            if name.contains('*') {
                self.mention(how, &Word::wildcard(name));
            }
            // The project itself is quoted for other reasons, such as a separator.
            if removes && name.contains(|c| !matches!(c, '.' | '/')) {
                self.mention(How::Remove, &Word::plain(name));
            }
        }
    }

    /// Pairs of a quoted folder and the next quoted word: `Path("meta") / "a.md"`.
    fn joined(&self, text: &str) -> Vec<String> {
        let words: Vec<String> = words_in(text).iter().filter_map(Word::text).collect();
        let is_folder = |name: &String| {
            let place = self.place(&Word::plain(name));
            !name.is_empty() && place.is_some_and(|place| place.is_dir())
        };
        let pairs = words.windows(2).filter(|pair| is_folder(&pair[0]));
        pairs
            .map(|pair| format!("{}/{}", pair[0].trim_end_matches('/'), pair[1]))
            .collect()
    }
}

/// The quoted words from a bracket to the next one, which may be a command: `run(["rm", "a.md"])`.
fn lists_in(text: &str) -> Vec<Vec<Word>> {
    let brackets = [['[', ']'], ['(', ')']];
    let parts = brackets.iter().flat_map(|pair| text.split(pair).skip(1));
    parts
        .map(words_in)
        .filter(|words| words.len() > 1)
        .collect()
}

/// The quoted words of a text, each with its own pair of quotes.
fn words_in(text: &str) -> Vec<Word> {
    let (mut words, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(['\'', '"']) {
        let (quote, behind) = rest[at..].split_at(1);
        let (word, behind) = behind.split_once(quote).unwrap_or((behind, ""));
        words.push(Word::plain(word));
        rest = behind;
    }
    words
}

/// The texts in quotes of any kind.
fn quoted_in(text: &str) -> Vec<String> {
    let mut quoted = Vec::new();
    for quote in ['\'', '"', '`'] {
        // Take every piece between two quotes, including the text between two strings: a quote
        // within the other kind shifts the pairs.
        quoted.extend(
            text.split(quote)
                .skip(1)
                .map(|part| part.replace("\\n", "\n")),
        );
    }
    quoted.retain(|text| !text.trim().is_empty() && text.len() < 4096);
    quoted
}
