//! Hostile input for parsers: valid samples, mutated.
//!
//! Random text fails at a parser's first check. A mutated sample is nearly valid and gets further.
//! The targets are in `tests/hostile/`, and in the program's `hostile_tests.rs`; `scripts/hunt`
//! runs them with new seeds.

use proptest::prelude::*;
use proptest::sample::Index;

/// Characters and pieces of syntax that often break parsers.
const TOKENS: [&str; 40] = [
    "\0",
    "\n",
    "\r",
    "\r\n",
    "\t",
    "\u{1b}[31m",
    "\u{200b}",
    "\u{202e}",
    "\u{2028}",
    "\u{feff}",
    "\"",
    "'",
    "\\",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<!--",
    "-->",
    "```",
    "---\n",
    "# ",
    "- ",
    "|",
    "..",
    "/",
    "//",
    "~",
    "*",
    "null",
    "-1",
    "1e999",
    "18446744073709551616",
    "é",
    "中文",
    "🜁",
];

/// Number of nested opening brackets, which a recursive parser must bound.
const DEEPEST: usize = 20_000;

#[derive(Debug, Clone)]
enum Mutation {
    Delete(Index, usize),
    Repeat(Index, usize, usize),
    Insert(Index, &'static str),
    Replace(Index, u8),
    Splice(Index, Index, usize),
    Nest(Index, &'static str, usize),
    Truncate(Index),
}

/// Generates mutated samples and mixtures of them.
pub fn mutated(samples: &'static [&'static str]) -> impl Strategy<Value = String> {
    mutated_bytes(
        samples
            .iter()
            .map(|sample| sample.as_bytes().to_vec())
            .collect(),
    )
    .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Like `mutated`, for bytes that need not be UTF-8.
pub fn mutated_bytes(samples: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    assert!(!samples.is_empty(), "there is something to mutate");
    (any::<Index>(), prop::collection::vec(mutation(), 0..6)).prop_map(move |(first, mutations)| {
        let mut bytes = first.get(&samples).clone();
        for mutation in &mutations {
            mutate(&mut bytes, mutation, &samples);
        }
        bytes
    })
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let nests = prop::sample::select(vec![
        "{\"a\":", "[", "(", "<b>", "> ", "- ", "*", "[[", "{{", "a.",
    ]);
    prop_oneof![
        3 => (any::<Index>(), 1usize..40).prop_map(|(at, length)| Mutation::Delete(at, length)),
        2 => (any::<Index>(), 1usize..60, 1usize..4).prop_map(|(at, length, times)| Mutation::Repeat(at, length, times)),
        4 => (any::<Index>(), prop::sample::select(TOKENS.to_vec())).prop_map(|(at, token)| Mutation::Insert(at, token)),
        3 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        2 => (any::<Index>(), any::<Index>(), 1usize..200).prop_map(|(at, from, length)| Mutation::Splice(at, from, length)),
        1 => (any::<Index>(), nests, 1..DEEPEST).prop_map(|(at, open, times)| Mutation::Nest(at, open, times)),
        1 => any::<Index>().prop_map(Mutation::Truncate),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation, samples: &[Vec<u8>]) {
    let place = |at: &Index| at.index(bytes.len() + 1);
    let range = |at: &Index, length: usize| {
        let start = at.index(bytes.len() + 1);
        start..(start + length).min(bytes.len())
    };
    match mutation {
        Mutation::Delete(at, length) => drop(bytes.drain(range(at, *length))),
        Mutation::Repeat(at, length, times) => {
            let range = range(at, *length);
            let piece = bytes[range.clone()].repeat(*times);
            bytes.splice(range.end..range.end, piece);
        }
        Mutation::Insert(at, token) => drop(bytes.splice(place(at)..place(at), token.bytes())),
        Mutation::Replace(at, byte) => {
            let at = at.index(bytes.len().max(1));
            bytes
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|old| *old = *byte);
        }
        Mutation::Splice(at, from, length) => {
            let other = from.get(samples);
            let start = from.index(other.len() + 1);
            let piece = other[start..(start + length).min(other.len())].to_vec();
            bytes.splice(place(at)..place(at), piece);
        }
        Mutation::Nest(at, open, times) => {
            drop(bytes.splice(place(at)..place(at), open.repeat(*times).into_bytes()))
        }
        Mutation::Truncate(at) => bytes.truncate(place(at)),
    }
}
