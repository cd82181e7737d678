//! Reads the text of a shell command into words and what stands between them.

use std::iter::Peekable;
use std::str::Chars;

use super::word::{Piece, Word};

/// A set of characters is looked for so far: names are not longer.
const LONGEST_SET: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    Word(Word),
    /// `>`, or `>>` if it appends.
    Out {
        appends: bool,
    },
    /// What a command reads: the text of a here-document or a here-string.
    Document(String),
    /// Between two commands.
    End,
    /// `||`: the second command may not be run.
    Or,
    /// `&`: what stands before it is a process of its own.
    Background,
    /// Between two commands, the second of which reads what the first one prints.
    Pipe,
    /// A subshell begins.
    Open,
    /// A subshell ends.
    Close,
}

/// Tokens so far, and the word that is being read.
#[derive(Default)]
struct Read {
    tokens: Vec<Token>,
    word: Vec<Piece>,
    begun: bool,
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

    fn end(&mut self, token: Token) {
        self.close();
        self.tokens.push(token);
    }
}

pub fn tokens(command: &str) -> Vec<Token> {
    let mut read = Read::default();
    let mut documents: Vec<String> = Vec::new();
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
                    let text = document(&mut letters, &mark);
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
            '(' => read.end(Token::Open),
            ')' => read.end(Token::Close),
            c if c.is_whitespace() => read.close(),
            '*' if read.word.last() == Some(&Piece::Star) => drop(read.word.pop().map(|_| read.word.push(Piece::All))),
            '*' => read.push(Piece::Star),
            '?' => read.push(Piece::One),
            '[' => bracket(&mut letters, &mut read),
            '{' | '}' | ',' => read.push(Piece::Brace(c)),
            '~' if !read.begun => match letters.peek() {
                Some('+') => letters.next().into_iter().for_each(|_| read.push(Piece::Variable("PWD".to_owned()))),
                Some('-') => letters.next().into_iter().for_each(|_| read.push(Piece::Variable("OLDPWD".to_owned()))),
                Some(c) if !c.is_whitespace() && !"/;|&<>()".contains(*c) => read.push(Piece::Any),
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

/// What follows a dollar sign.
fn dollar(letters: &mut Peekable<Chars>, read: &mut Read, is_quoted: bool) {
    let is_name = |c: &char| c.is_alphanumeric() || *c == '_';
    match letters.peek().copied() {
        Some('(') => {
            letters.next();
            let text = enclosed(letters, '(', ')');
            read.push(if text.starts_with('(') { Piece::Any } else { Piece::Output(text) });
        }
        Some('{') => {
            letters.next();
            let text = enclosed(letters, '{', '}');
            let name: String = text.chars().take_while(|c| is_name(c)).collect();
            let rest = &text[name.len()..];
            let default = rest.strip_prefix(':').unwrap_or(rest).strip_prefix(['-', '=', '+']);
            read.push(match default {
                _ if name.is_empty() => Piece::Any,
                Some(word) => Piece::Default(name, word.to_owned()),
                None if rest.is_empty() => Piece::Variable(name),
                None => Piece::Any,
            });
        }
        Some('\'') if !is_quoted => {
            letters.next();
            escaped(letters, read);
        }
        Some('"') if !is_quoted => {}
        Some(c) if c.is_alphabetic() || c == '_' => {
            let mut name = String::new();
            while let Some(c) = letters.next_if(is_name) {
                name.push(c);
            }
            read.push(Piece::Variable(name));
        }
        Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
            letters.next();
            read.push(Piece::Any);
        }
        _ => read.push(Piece::Char('$')),
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
        let Some(digit) = letters.next_if(|c| c.is_digit(base)).and_then(|c| c.to_digit(base)) else { break };
        value = value.checked_mul(base)?.checked_add(digit)?;
    }
    char::from_u32(value)
}

/// The text up to the bracket that closes one which was read already.
fn enclosed(letters: &mut Peekable<Chars>, open: char, close: char) -> String {
    let (mut text, mut depth, mut quote) = (String::new(), 1, None);
    while let Some(c) = letters.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => {
                text.push(c);
                text.extend(letters.next());
                continue;
            }
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(begun)) if c == begun => quote = None,
            (c, None) if c == open => depth += 1,
            (c, None) if c == close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        text.push(c);
    }
    text
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
    let ahead = letters.clone().take(LONGEST_SET).take_while(|c| !c.is_whitespace() && !"/;|&<>()".contains(*c)).collect::<String>();
    match ahead.char_indices().skip(1).find(|(_, c)| *c == ']') {
        Some((end, _)) => {
            letters.nth(ahead[..end].chars().count());
            read.push(Piece::One);
        }
        None => read.push(Piece::Char('[')),
    }
}

/// `>` was read. A number before it says which stream; `>&2` names another stream and no file.
fn redirection(letters: &mut Peekable<Chars>, read: &mut Read) {
    if read.word.iter().all(|piece| matches!(piece, Piece::Char(c) if c.is_ascii_digit())) {
        read.word.clear();
        read.begun = false;
    }
    read.close();
    // `>(command)` is a command of its own.
    if letters.peek() == Some(&'(') {
        return;
    }
    let appends = letters.next_if_eq(&'>').is_some();
    letters.next_if_eq(&'|');
    let joins = letters.next_if_eq(&'&').is_some();
    let target: String = letters.clone().skip_while(|c| *c == ' ').take_while(|c| !c.is_whitespace() && !";|&<>()".contains(*c)).collect();
    if joins && !target.is_empty() && target.chars().all(|c| c.is_ascii_digit() || c == '-') {
        while letters.next_if(|c| c.is_ascii_digit() || matches!(c, '-' | ' ')).is_some() {}
    } else {
        read.tokens.push(Token::Out { appends });
    }
}

/// `<` was read. What a command reads from a file is no deed; what it reads from the command line may be.
fn reading(letters: &mut Peekable<Chars>, read: &mut Read, documents: &mut Vec<String>) {
    read.close();
    match letters.peek() {
        Some('(') => {}
        // `<>` opens a file for both.
        Some('>') => {
            letters.next();
            read.tokens.push(Token::Out { appends: false });
        }
        Some('<') => {
            letters.next();
            if letters.next_if_eq(&'<').is_some() {
                let text = operand(letters);
                read.tokens.push(Token::Document(text));
                return;
            }
            letters.next_if_eq(&'-');
            documents.push(operand(letters));
        }
        _ => drop(operand(letters)),
    }
}

/// The word behind `<`, `<<` or `<<<`, without its quotes.
fn operand(letters: &mut Peekable<Chars>) -> String {
    while letters.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
    let (mut text, mut quote) = (String::new(), None);
    while let Some(c) = letters.next_if(|c| quote.is_some() || !c.is_whitespace() && !";|&<>()".contains(*c)) {
        match (c, quote) {
            ('\\', None | Some('"')) => text.extend(letters.next()),
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(begun)) if c == begun => quote = None,
            _ => text.push(c),
        }
    }
    text
}

/// The lines of a here-document.
fn document(letters: &mut Peekable<Chars>, mark: &str) -> String {
    let mut text = String::new();
    while letters.peek().is_some() {
        let line: String = letters.by_ref().take_while(|c| *c != '\n').collect();
        if line.trim_start_matches('\t') == mark {
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}
