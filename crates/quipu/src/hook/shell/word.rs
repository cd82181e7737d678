//! Words of a shell command, in which some parts may be unknown.
//!
//! A [`Word`] is a list of pieces: known characters, wildcards, and unknown parts. It expands
//! braces, splits paths and matches names. An unknown part matches every name, so that the result
//! never hides a file. The lexer parses words, and `mod.rs` expands variables.

use std::path::Path;

/// Above this number of alternatives (from braces or a loop), the analysis gives up.
pub const MOST_WORDS: usize = 4096;
/// Above this number of brace pairs in one word, the analysis gives up.
const MOST_BRACES: usize = 32;

/// A part of a word. The lexer produces all of them except `TooMany`; after expansion only the
/// first six remain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Piece {
    Char(char),
    /// One character of a name: `?`, `[a-z]`.
    One,
    /// Any characters of a name.
    Star,
    /// Everything below a folder.
    All,
    /// Unknown text.
    Any,
    /// More alternatives than the analysis tracks.
    TooMany,
    Variable(String),
    /// `${NAME:-WORD}`: the value, or the word.
    Default(String, String),
    /// `${NAME%…}` and similar: a text derived from the value.
    Part(String, String),
    /// A command that is replaced by its output.
    Output(String),
    /// A number, and the expression that computes it.
    Computed(String),
    /// A command that is read or written like a file.
    Process(String),
    /// An unquoted brace, or a comma between braces.
    Brace(char),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Word(pub Vec<Piece>);

impl Word {
    pub fn plain(text: &str) -> Word {
        Word(text.chars().map(Piece::Char).collect())
    }

    /// A pattern of another language, with `*` and `?`.
    pub fn wildcard(text: &str) -> Word {
        let piece = |c| match c {
            '*' => Piece::Star,
            '?' => Piece::One,
            c => Piece::Char(c),
        };
        Word(text.chars().map(piece).collect())
    }

    pub fn any() -> Word {
        Word(vec![Piece::Any])
    }

    pub fn too_many() -> Word {
        Word(vec![Piece::TooMany])
    }

    /// The word in shell syntax, with an unset variable for each unknown part.
    pub fn spelled(&self) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Char(c) => text.push(*c),
                Piece::One => text.push('?'),
                Piece::Star | Piece::All => text.push('*'),
                _ => text.push_str("${_}"),
            }
        }
        text
    }

    /// The text, if every piece is known.
    pub fn text(&self) -> Option<String> {
        let letter = |piece: &Piece| match piece {
            Piece::Char(c) => Some(*c),
            _ => None,
        };
        self.0.iter().map(letter).collect()
    }

    /// The known text at the beginning.
    pub fn beginning(&self) -> String {
        let letters = self.0.iter().map_while(|piece| match piece {
            Piece::Char(c) => Some(*c),
            _ => None,
        });
        letters.collect()
    }

    pub fn is_flag(&self) -> bool {
        self.0.first() == Some(&Piece::Char('-')) && self.0.len() > 1
    }

    /// Whether the file name is known, at least as a pattern.
    pub fn tells_a_name(&self) -> bool {
        !self.0.contains(&Piece::Any) || !self.file_name().0.contains(&Piece::Any)
    }

    /// This word as a path in a folder.
    pub fn within(&self, folder: &Word) -> Word {
        match self.0.first() {
            Some(Piece::Char('/') | Piece::Any) => self.clone(),
            _ if folder.0.is_empty() => self.clone(),
            _ => Word([&folder.0[..], &[Piece::Char('/')], &self.0[..]].concat()),
        }
    }

    /// Splits at a character that is known.
    pub fn split_once(&self, at: char) -> Option<(Word, Word)> {
        let place = self.0.iter().position(|piece| *piece == Piece::Char(at))?;
        Some((
            Word(self.0[..place].to_vec()),
            Word(self.0[place + 1..].to_vec()),
        ))
    }

    /// The folder of a path: all before its last part.
    pub fn folder(&self) -> Word {
        let end = self
            .0
            .iter()
            .rposition(|piece| *piece != Piece::Char('/'))
            .map_or(0, |last| last + 1);
        let slash = self.0[..end]
            .iter()
            .rposition(|piece| *piece == Piece::Char('/'));
        Word(slash.map_or(Vec::new(), |slash| self.0[..slash.max(1)].to_vec()))
    }

    /// The last part of a path.
    pub fn file_name(&self) -> Word {
        let end = self
            .0
            .iter()
            .rposition(|piece| *piece != Piece::Char('/'))
            .map_or(0, |last| last + 1);
        let begin = self.0[..end]
            .iter()
            .rposition(|piece| *piece == Piece::Char('/'))
            .map_or(0, |slash| slash + 1);
        Word(self.0[begin..end].to_vec())
    }

    /// The words that braces make of this one.
    pub fn without_braces(&self) -> Vec<Word> {
        match self
            .0
            .iter()
            .filter(|piece| **piece == Piece::Brace('{'))
            .count()
            > MOST_BRACES
        {
            true => vec![Word::too_many()],
            false => self.alternatives(),
        }
    }

    fn alternatives(&self) -> Vec<Word> {
        let open = self.0.iter().rposition(|piece| *piece == Piece::Brace('{'));
        let close = open.and_then(|open| {
            Some(
                open + self.0[open..]
                    .iter()
                    .position(|piece| *piece == Piece::Brace('}'))?,
            )
        });
        let (Some(open), Some(close)) = (open, close) else {
            let letter = |piece: &Piece| match piece {
                Piece::Brace(c) => Piece::Char(*c),
                other => other.clone(),
            };
            return vec![Word(self.0.iter().map(letter).collect())];
        };
        let inner = &self.0[open + 1..close];
        let parts: Vec<Vec<Piece>> = match inner.contains(&Piece::Brace(',')) {
            true => inner
                .split(|piece| *piece == Piece::Brace(','))
                .map(<[Piece]>::to_vec)
                .collect(),
            // `{1..9}` is a sequence. Any other braces stay as they are.
            false
                if inner
                    .windows(2)
                    .any(|two| two == [Piece::Char('.'), Piece::Char('.')]) =>
            {
                vec![vec![Piece::Star]]
            }
            false => vec![[&[Piece::Char('{')], inner, &[Piece::Char('}')]].concat()],
        };
        let mut words = Vec::new();
        for part in parts {
            words.extend(
                Word([&self.0[..open], &part[..], &self.0[close + 1..]].concat()).alternatives(),
            );
            if words.len() > MOST_WORDS {
                return vec![Word::too_many()];
            }
        }
        words
    }

    /// Whether the word may name this path. As in a shell, a wildcard at the beginning of a name
    /// does not match a dot.
    pub fn matches(&self, path: &Path) -> bool {
        let text: Vec<char> = path.to_string_lossy().chars().collect();
        let is_one = |piece: &&Piece| matches!(piece, Piece::Char(_) | Piece::One);
        if self.0.iter().filter(is_one).count() > text.len() {
            return false;
        }
        // The offsets in the text that the pieces so far can reach.
        let mut places = vec![false; text.len() + 1];
        places[0] = true;
        let begins_hidden =
            |at: usize| text.get(at) == Some(&'.') && (at == 0 || text[at - 1] == '/');
        let mut before = None;
        for piece in &self.0 {
            // Two equal wildcards in a row match the same as one.
            if !is_one(&piece) && before.replace(piece) == Some(piece) {
                continue;
            }
            before = Some(piece);
            let mut next = vec![false; text.len() + 1];
            let mut carried = false;
            for at in 0..=text.len() {
                match piece {
                    Piece::Char(c) => {
                        if places[at] && text.get(at) == Some(c) {
                            next[at + 1] = true;
                        }
                    }
                    Piece::One => {
                        if places[at] && at < text.len() && text[at] != '/' && !begins_hidden(at) {
                            next[at + 1] = true;
                        }
                    }
                    Piece::Star => {
                        carried |= places[at];
                        next[at] |= carried;
                        carried &= at < text.len() && text[at] != '/' && !begins_hidden(at);
                    }
                    _ => {
                        carried |= places[at];
                        next[at] = carried;
                    }
                }
            }
            places = next;
        }
        places[text.len()]
    }
}
