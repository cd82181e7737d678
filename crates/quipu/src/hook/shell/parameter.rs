//! Computes `${NAME%…}` and similar expansions.
//!
//! The result is none if it cannot be computed; the caller then also assumes an unknown value.

use super::lexer::tokens;
use super::word::{Piece, Word};

/// The value after an operation, if it is known.
pub fn changed(value: &Word, operation: &str) -> Option<Word> {
    // Any element of an array.
    if let Some(rest) = operation
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .map(|(_, rest)| rest)
    {
        return if rest.is_empty() {
            Some(value.clone())
        } else {
            changed(value, rest)
        };
    }
    let text: Vec<char> = value.text()?.chars().collect();
    let word = |letters: &[char]| Word(letters.iter().copied().map(Piece::Char).collect());
    let first = operation.chars().next()?;
    let is_double = operation.chars().nth(1) == Some(first);
    let rest = &operation[first.len_utf8() * if is_double { 2 } else { 1 }..];
    match first {
        ',' | '^' if rest.is_empty() => {
            let letter = |(at, c): (usize, &char)| match (at == 0 || is_double, first) {
                (false, _) => *c,
                (true, ',') => c.to_lowercase().next().unwrap_or(*c),
                (true, _) => c.to_uppercase().next().unwrap_or(*c),
            };
            Some(word(
                &text.iter().enumerate().map(letter).collect::<Vec<_>>(),
            ))
        }
        ':' => {
            let (from, most) = rest
                .split_once(':')
                .map_or((rest, None), |(from, most)| (from, Some(most)));
            let from = from.trim().parse::<usize>().ok()?.min(text.len());
            let most = most.map_or(Some(text.len()), |most| most.trim().parse().ok())?;
            Some(word(&text[from..text.len().min(from.saturating_add(most))]))
        }
        '/' => {
            let (old, new) = rest.split_once('/').unwrap_or((rest, ""));
            let (old, new) = (
                pattern(old)?.text()?,
                if new.is_empty() {
                    String::new()
                } else {
                    pattern(new)?.text()?
                },
            );
            let text = value.text()?;
            Some(Word::plain(&if is_double {
                text.replace(&old, &new)
            } else {
                text.replacen(&old, &new, 1)
            }))
        }
        '%' | '#' => {
            let pattern = pattern(rest)?.0;
            let lengths: Vec<usize> = if is_double {
                (0..=text.len()).rev().collect()
            } else {
                (0..=text.len()).collect()
            };
            let cut = |length: usize| {
                if first == '#' {
                    text.split_at(length)
                } else {
                    text.split_at(text.len() - length)
                }
            };
            for length in lengths {
                let (head, tail) = cut(length);
                let (kept, taken) = if first == '#' {
                    (tail, head)
                } else {
                    (head, tail)
                };
                if fits(&pattern, taken) {
                    return Some(word(kept));
                }
            }
            Some(value.clone())
        }
        _ => None,
    }
}

/// A pattern of known letters and wildcards.
fn pattern(text: &str) -> Option<Word> {
    let [word] = &tokens(text)
        .into_iter()
        .map(|token| token.word())
        .collect::<Option<Vec<Word>>>()?[..]
    else {
        return None;
    };
    let [word] = &word.without_braces()[..] else {
        return None;
    };
    let is_known = |piece: &Piece| {
        matches!(
            piece,
            Piece::Char(_) | Piece::One | Piece::Star | Piece::All
        )
    };
    (word.0.iter().all(is_known) && word.0.len() < 64).then(|| word.clone())
}

/// Unlike in file names, a star here matches slashes and leading dots.
fn fits(pattern: &[Piece], text: &[char]) -> bool {
    let mut places = vec![false; text.len() + 1];
    places[0] = true;
    for piece in pattern {
        let mut next = vec![false; text.len() + 1];
        for at in 0..=text.len() {
            match piece {
                Piece::Char(c) if at > 0 => next[at] = places[at - 1] && text[at - 1] == *c,
                Piece::One if at > 0 => next[at] = places[at - 1],
                Piece::Star | Piece::All => next[at] = places[at] || at > 0 && next[at - 1],
                _ => {}
            }
        }
        places = next;
    }
    places[text.len()]
}
