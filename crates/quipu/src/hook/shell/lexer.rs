//! Splits the text of a shell command into words and operators.
//!
//! It expands nothing and runs nothing. Brackets and here-documents are in `brackets.rs`.

use std::iter::Peekable;
use std::str::Chars;

use super::brackets::{HereDocument, document, enclosed, enclosed_in, mark};
use super::word::{Piece, Word};

/// A character set is searched for its end this far: file names are not longer.
const LONGEST_SET: usize = 255;
/// How many double brackets are tried that turn out not to be arithmetic.
const MOST_TRIES: usize = 64;
/// Characters that end a word besides a blank.
pub const ENDS: &str = ";|&<>()";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    Word(Word),
    /// `>`, or `>>` if it appends.
    Out {
        appends: bool,
    },
    /// `<`: the next word names the input file.
    In,
    /// `<<<`: the next word is the input.
    Here,
    /// The text of a here-document, which is the input.
    Document(String),
    /// Commands in a text that is not an argument: a here-document, arithmetic.
    Inner(Word),
    /// More brackets than the lexer tracks.
    TooMany,
    /// Between two commands.
    End,
    /// `||`: the second command may not run.
    Or,
    /// `&`: the command before it runs as a separate process.
    Background,
    /// A pipe: the second command reads the output of the first.
    Pipe,
    /// A subshell begins.
    Open,
    /// A subshell ends.
    Close,
}

impl Token {
    /// Whether a simple command ends here.
    pub fn ends_command(&self) -> bool {
        matches!(
            self,
            Token::End | Token::Or | Token::Background | Token::Pipe | Token::Open | Token::Close
        )
    }

    pub fn word(self) -> Option<Word> {
        match self {
            Token::Word(word) | Token::Inner(word) => Some(word),
            _ => None,
        }
    }
}

/// The tokens so far, and the current word.
#[derive(Default)]
struct Read {
    tokens: Vec<Token>,
    word: Vec<Piece>,
    begun: bool,
    /// Whether the current text is the elements of an array.
    is_element: bool,
    tries: usize,
}

impl Read {
    fn close(&mut self) {
        let word = std::mem::take(&mut self.word);
        if std::mem::take(&mut self.begun) {
            self.tokens.push(Token::Word(Word(word)));
        }
    }

    fn push(&mut self, piece: Piece) {
        self.begun = true;
        self.word.push(piece);
    }

    fn extend(&mut self, text: &str) {
        self.begun = true;
        self.word.extend(text.chars().map(Piece::Char));
    }

    /// A number before a redirection selects the stream and is not a word.
    fn close_but_number(&mut self) {
        if self
            .word
            .iter()
            .all(|piece| matches!(piece, Piece::Char(c) if c.is_ascii_digit()))
        {
            self.word.clear();
            self.begun = false;
        }
        self.close();
    }

    fn end(&mut self, token: Token) {
        self.close();
        self.tokens.push(token);
    }
}

/// A shell knows only these blanks: any other character is part of a word, even if it looks blank.
pub fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// Names of variables are ASCII: `$x手` is `$x` and a letter.
pub fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

pub fn tokens(command: &str) -> Vec<Token> {
    tokens_in(command, Read::default())
}

fn tokens_in(command: &str, mut read: Read) -> Vec<Token> {
    let mut documents: Vec<HereDocument> = Vec::new();
    let mut letters = command.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '\'' => {
                let text: String = letters.by_ref().take_while(|c| *c != '\'').collect();
                read.extend(&text);
            }
            '"' => quoted(&mut letters, &mut read),
            '\\' => match letters.next() {
                Some('\n') | None => {}
                Some(c) => read.push(Piece::Char(c)),
            },
            '$' => dollar(&mut letters, &mut read, false),
            '`' => {
                let text = backticks(&mut letters);
                read.push(Piece::Output(text));
            }
            '#' if !read.begun => while letters.next_if(|c| *c != '\n').is_some() {},
            '>' => redirection(&mut letters, &mut read),
            '<' => reading(&mut letters, &mut read, &mut documents),
            '&' if letters.peek() == Some(&'>') => read.close(),
            '\n' => {
                read.close();
                for mark in documents.drain(..) {
                    let text = document(&mut letters, &mark, false);
                    if !mark.is_quoted {
                        read.tokens.extend(inner(&text));
                    }
                    read.tokens.push(Token::Document(text));
                }
                read.tokens.push(Token::End);
            }
            '|' if letters.peek() != Some(&'|') => {
                letters.next_if_eq(&'&');
                read.end(Token::Pipe);
            }
            '|' => {
                letters.next();
                read.end(Token::Or);
            }
            '&' if letters.next_if_eq(&'&').is_none() => read.end(Token::Background),
            ';' | '&' => {
                letters.next_if_eq(&';');
                read.end(Token::End);
            }
            '(' => parenthesis(&mut letters, &mut read),
            ')' => read.end(Token::Close),
            c if is_blank(c) => read.close(),
            '*' if read.word.last() == Some(&Piece::Star) => {
                let _ = read.word.pop().map(|_| read.word.push(Piece::All));
            }
            '*' => read.push(Piece::Star),
            '?' => read.push(Piece::One),
            '[' => bracket(&mut letters, &mut read),
            '{' | '}' | ',' => read.push(Piece::Brace(c)),
            '~' if !read.begun => match letters.peek() {
                Some('+') => letters
                    .next()
                    .into_iter()
                    .for_each(|_| read.push(Piece::Variable("PWD".to_owned()))),
                Some('-') => letters
                    .next()
                    .into_iter()
                    .for_each(|_| read.push(Piece::Variable("OLDPWD".to_owned()))),
                Some(c) if !is_blank(*c) && *c != '/' && !ENDS.contains(*c) => {
                    read.push(Piece::Any)
                }
                _ => read.push(Piece::Variable("HOME".to_owned())),
            },
            c => read.push(Piece::Char(c)),
        }
    }
    read.close();
    read.tokens
}

/// The rest of a text in double quotes.
fn quoted(letters: &mut Peekable<Chars>, read: &mut Read) {
    read.begun = true;
    while let Some(c) = letters.next() {
        match c {
            '"' => break,
            '\\' => match letters.next() {
                Some('\n') | None => {}
                Some(c) if "$`\"\\".contains(c) => read.push(Piece::Char(c)),
                Some(c) => {
                    read.push(Piece::Char('\\'));
                    read.push(Piece::Char(c));
                }
            },
            '$' => dollar(letters, read, true),
            '`' => {
                let text = backticks(letters);
                read.push(Piece::Output(text));
            }
            c => read.push(Piece::Char(c)),
        }
    }
}

/// `(` was read: a subshell, arithmetic, the elements of an array, or a pattern.
fn parenthesis(letters: &mut Peekable<Chars>, read: &mut Read) {
    match read.word.last() {
        Some(Piece::Char('=')) if read.begun && !read.is_element => {
            let name = std::mem::take(&mut read.word);
            read.begun = false;
            for token in tokens_in(
                &enclosed(letters, '(', ')'),
                Read {
                    is_element: true,
                    ..Read::default()
                },
            ) {
                let Token::Word(Word(mut element)) = token else {
                    continue;
                };
                // `[0]=x`
                if element.starts_with(&[Piece::One, Piece::Char('=')]) {
                    element.drain(..2);
                }
                read.tokens
                    .push(Token::Word(Word([&name[..], &element[..]].concat())));
            }
        }
        // `!(…)` may be a subshell as well.
        Some(Piece::Char('@' | '+' | '!') | Piece::One | Piece::Star) => {
            let text = enclosed(letters, '(', ')');
            read.tokens
                .push(Token::Inner(Word(vec![Piece::Output(text)])));
            read.word.pop();
            read.push(Piece::Star);
        }
        _ => {
            if letters.peek() != Some(&'(') || read.tries > MOST_TRIES {
                return read.end(Token::Open);
            }
            let mut ahead = letters.clone();
            let Some(sum) = arithmetic(&enclosed(&mut ahead, '(', ')')) else {
                read.tries += 1;
                if read.tries > MOST_TRIES {
                    read.tokens.push(Token::TooMany);
                }
                return read.end(Token::Open);
            };
            *letters = ahead;
            read.close();
            read.tokens.extend(inner(&sum));
            // Some shells parse it as two subshells. A comparison is not a redirection.
            if !sum.contains(['<', '>']) {
                read.tokens
                    .push(Token::Inner(Word(vec![Piece::Output(sum)])));
            }
        }
    }
}

/// The arithmetic expression, if a text between brackets is exactly one more pair of brackets.
fn arithmetic(text: &str) -> Option<String> {
    let mut letters = text.strip_prefix('(')?.chars().peekable();
    let sum = enclosed(&mut letters, '(', ')');
    (letters.peek().is_none() && text.ends_with(')')).then_some(sum)
}

/// The commands in a text that is expanded like double quotes.
pub fn inner(text: &str) -> Vec<Token> {
    let (mut read, mut letters) = (Read::default(), text.chars().peekable());
    while let Some(c) = letters.next() {
        match c {
            '\\' => drop(letters.next()),
            '$' => dollar(&mut letters, &mut read, true),
            '`' => {
                let text = backticks(&mut letters);
                read.push(Piece::Output(text));
            }
            _ => {}
        }
    }
    let runs = |piece: &Piece| {
        matches!(
            piece,
            Piece::Output(_) | Piece::Computed(_) | Piece::Default(..) | Piece::Part(..)
        )
    };
    read.word
        .into_iter()
        .filter(runs)
        .map(|piece| Token::Inner(Word(vec![piece])))
        .collect()
}

/// Parses the text after a dollar sign.
fn dollar(letters: &mut Peekable<Chars>, read: &mut Read, is_quoted: bool) {
    match letters.peek().copied() {
        Some('(') => {
            letters.next();
            let text = enclosed(letters, '(', ')');
            match arithmetic(&text) {
                Some(sum) => read.push(Piece::Computed(sum)),
                None => read.push(Piece::Output(text)),
            }
        }
        Some('{') => {
            letters.next();
            let text = enclosed_in(letters, '{', '}', is_quoted);
            read.push(parameter(&text));
        }
        Some('\'') if !is_quoted => {
            letters.next();
            escaped(letters, read);
        }
        Some('"') if !is_quoted => {}
        Some(c) if c.is_ascii_alphabetic() || c == '_' => {
            let mut name = String::new();
            while let Some(c) = letters.next_if(|c| is_name(*c)) {
                name.push(c);
            }
            read.push(Piece::Variable(name));
        }
        Some(c) if c.is_ascii_digit() || "@*".contains(c) => {
            letters.next();
            read.push(Piece::Variable("@".to_owned()));
        }
        Some(c) if "#?$!-".contains(c) => {
            letters.next();
            read.push(Piece::Any);
        }
        _ => read.push(Piece::Char('$')),
    }
}

/// The text between the braces of `${…}`.
fn parameter(text: &str) -> Piece {
    let (text, is_indirect) = text
        .strip_prefix('!')
        .map_or((text, false), |text| (text, true));
    let is_arguments = text.starts_with(|c: char| c.is_ascii_digit() || "@*".contains(c));
    let name: String = text.chars().take_while(|c| is_name(*c)).collect();
    let rest = if is_arguments && name.is_empty() {
        &text[1..]
    } else {
        &text[name.len()..]
    };
    let name = if is_arguments { "@".to_owned() } else { name };
    let default = rest
        .strip_prefix(':')
        .unwrap_or(rest)
        .strip_prefix(['-', '=', '+']);
    match default {
        _ if name.is_empty() => Piece::Any,
        _ if is_indirect => Piece::Part(name, "!".to_owned()),
        Some(word) => Piece::Default(name, word.to_owned()),
        None if rest.is_empty() => Piece::Variable(name),
        None => Piece::Part(name, rest.to_owned()),
    }
}

/// The rest of `$'…'`.
fn escaped(letters: &mut Peekable<Chars>, read: &mut Read) {
    read.begun = true;
    while let Some(c) = letters.next() {
        let letter = match c {
            '\'' => break,
            '\\' => match letters.next() {
                Some('n') => Some('\n'),
                Some('t') => Some('\t'),
                Some('x') => number(letters, 16, 2, 0),
                Some('u') => number(letters, 16, 4, 0),
                Some('U') => number(letters, 16, 8, 0),
                Some(c @ '0'..='7') => number(letters, 8, 2, c.to_digit(8).unwrap_or_default()),
                other => other,
            },
            c => Some(c),
        };
        read.push(letter.map_or(Piece::Any, Piece::Char));
    }
}

fn number(letters: &mut Peekable<Chars>, base: u32, most: usize, first: u32) -> Option<char> {
    let mut value = first;
    for _ in 0..most {
        let Some(digit) = letters
            .next_if(|c| c.is_digit(base))
            .and_then(|c| c.to_digit(base))
        else {
            break;
        };
        value = value.checked_mul(base)?.checked_add(digit)?;
    }
    char::from_u32(value)
}

fn backticks(letters: &mut Peekable<Chars>) -> String {
    let mut text = String::new();
    while let Some(c) = letters.next() {
        match c {
            '`' => break,
            '\\' => text.extend(letters.next()),
            c => text.push(c),
        }
    }
    text
}

/// A set of characters, if it is closed within the word.
fn bracket(letters: &mut Peekable<Chars>, read: &mut Read) {
    let ahead = letters
        .clone()
        .take(LONGEST_SET)
        .take_while(|c| !is_blank(*c) && *c != '/' && !ENDS.contains(*c))
        .collect::<String>();
    match ahead.char_indices().skip(1).find(|(_, c)| *c == ']') {
        Some((end, _)) => {
            letters.nth(ahead[..end].chars().count());
            read.push(Piece::One);
        }
        None => read.push(Piece::Char('[')),
    }
}

/// `>` was read. A number before it selects the stream; `>&2` names another stream and not a file.
fn redirection(letters: &mut Peekable<Chars>, read: &mut Read) {
    if process(letters, read) {
        return;
    }
    read.close_but_number();
    let appends = letters.next_if_eq(&'>').is_some();
    letters.next_if_eq(&'|');
    let joins = letters.next_if_eq(&'&').is_some();
    let target: String = letters
        .clone()
        .skip_while(|c| *c == ' ')
        .take_while(|c| !is_blank(*c) && !ENDS.contains(*c))
        .collect();
    if joins && !target.is_empty() && target.chars().all(|c| c.is_ascii_digit() || c == '-') {
        while letters
            .next_if(|c| c.is_ascii_digit() || matches!(c, '-' | ' '))
            .is_some()
        {}
    } else {
        read.tokens.push(Token::Out { appends });
    }
}

/// `<(command)`, `>(command)`: the command runs, and the word names its output or input.
fn process(letters: &mut Peekable<Chars>, read: &mut Read) -> bool {
    let is_process = letters.next_if_eq(&'(').is_some();
    if is_process {
        let text = enclosed(letters, '(', ')');
        read.push(Piece::Process(text));
    }
    is_process
}

/// `<` was read. Reading from a file is not a deed; input from the command line may contain one.
fn reading(letters: &mut Peekable<Chars>, read: &mut Read, documents: &mut Vec<HereDocument>) {
    if process(letters, read) {
        return;
    }
    read.close_but_number();
    match letters.peek() {
        // `<>` opens a file for reading and writing.
        Some('>') => {
            letters.next();
            read.tokens.push(Token::Out { appends: false });
        }
        Some('<') => {
            letters.next();
            if letters.next_if_eq(&'<').is_some() {
                read.tokens.push(Token::Here);
                return;
            }
            documents.push(mark(letters));
        }
        _ => {
            letters.next_if_eq(&'&');
            read.tokens.push(Token::In);
        }
    }
}
