//! Writes `data/o200k.bin` from the published ranks of o200k_base.
//!
//! `cargo run --release -p quipu-text --example build_o200k -- o200k_base.tiktoken
//! crates/text/data/o200k.bin`
//!
//! The input is OpenAI's rank file (MIT), as the package `tiktoken-rs` carries it in `assets/`. The
//! output is deterministic; its layout is described in `src/tokens/table.rs`.

use std::collections::HashMap;

use regex::Regex;

#[allow(dead_code)]
#[path = "../src/tokens/table.rs"]
mod table;

use table::{BLOCK, BLOCKS, SAFE, SLOT, pair_hash, scale, slot_of};

/// How many pairs share one displacement, on average.
const PAIRS_PER_BUCKET: usize = 4;

/// Slots per hundred pairs: a little air keeps the search for displacements short.
const SLOTS_PERCENT: usize = 103;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(input), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: build_o200k RANKS OUTPUT".into());
    };
    let tokens = parse_ranks(&std::fs::read_to_string(input)?)?;
    let ranks: HashMap<&[u8], u32> = tokens
        .iter()
        .zip(0..)
        .map(|(token, rank)| (&token[..], rank))
        .collect();

    let mut bytes = Vec::new();
    for byte in 0..=255u8 {
        bytes.extend_from_slice(&ranks[&[byte][..]].to_le_bytes());
    }
    let pairs: Vec<(u32, u32, u32)> = tokens
        .iter()
        .zip(0..)
        .filter(|(token, _)| token.len() > 1)
        .map(|(token, rank)| split(token, rank, &ranks))
        .collect();
    let (blocks, classes) = plan_classes(&tokens)?;
    let (displacements, slots) = plan_hash(&pairs);

    let mut file = b"QO2\x01".to_vec();
    file.extend((classes.len() as u32 / BLOCK as u32).to_le_bytes());
    file.extend((displacements.len() as u32).to_le_bytes());
    file.extend((slots.len() as u32).to_le_bytes());
    file.extend(bytes);
    file.extend(blocks);
    file.extend(classes);
    file.extend(displacements.iter().flat_map(|d| d.to_le_bytes()));
    for slot in &slots {
        file.extend_from_slice(&slot.to_le_bytes()[..SLOT]);
    }
    file.push(0); // a slot is read as eight bytes
    std::fs::write(&output, &file)?;
    println!(
        "{output}: {} bytes, {} tokens, {} pairs",
        file.len(),
        tokens.len(),
        pairs.len()
    );
    Ok(())
}

fn parse_ranks(text: &str) -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    let mut tokens = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (token, rank) = line
            .split_once(' ')
            .ok_or("a line holds a token and a rank")?;
        if rank.parse::<usize>()? != tokens.len() {
            return Err("ranks must be in order".into());
        }
        tokens.push(parse_base64(token)?);
    }
    Ok(tokens)
}

fn parse_base64(text: &str) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut held, mut bytes) = (0u32, 0, Vec::new());
    for byte in text.bytes().filter(|&byte| byte != b'=') {
        let digit = DIGITS
            .iter()
            .position(|&one| one == byte)
            .ok_or("not base64")?;
        bits = bits << 6 | digit as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Ok(bytes)
}

/// The last pair that merging makes before it arrives at the token itself.
fn split(token: &[u8], rank: u32, ranks: &HashMap<&[u8], u32>) -> (u32, u32, u32) {
    let mut cuts: Vec<usize> = (0..=token.len()).collect();
    while cuts.len() > 3 {
        let lowest = (0..cuts.len() - 2)
            .filter_map(|at| Some((*ranks.get(&token[cuts[at]..cuts[at + 2]])?, at)))
            .filter(|(merged, _)| *merged < rank)
            .min();
        let (_, at) = lowest.expect("every token is reached by merging");
        cuts.remove(at + 1);
    }
    (ranks[&token[..cuts[1]]], ranks[&token[cuts[1]..]], rank)
}

/// Class bytes of all characters, as an index of blocks and the distinct blocks.
fn plan_classes(tokens: &[Vec<u8>]) -> Result<(Vec<u8>, Vec<u8>), Box<dyn std::error::Error>> {
    // In the order of `pieces::Class`, from 1.
    let patterns = [
        r"[\p{Lu}\p{Lt}]",
        r"\p{Ll}",
        r"[\p{Lm}\p{Lo}]",
        r"\p{M}",
        r"\p{N}",
        r"\s",
        r"[\r\n]",
    ];
    let mut class = vec![0u8; BLOCK * BLOCKS];
    let all: String = (0..=0x10_FFFF).filter_map(char::from_u32).collect();
    for (pattern, bits) in patterns.iter().zip(1u8..) {
        for found in Regex::new(pattern)?.find_iter(&all) {
            for c in found.as_str().chars() {
                class[c as usize] = bits;
            }
        }
    }
    let (chars, openings) = straddled(tokens);
    let mut torn_han = 0;
    for c in all.chars() {
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        if chars.contains(&c) || openings.iter().any(|opening| bytes.starts_with(opening)) {
            torn_han += usize::from(('\u{4e00}'..='\u{9fff}').contains(&c));
        } else {
            class[c as usize] |= SAFE;
        }
    }
    println!("{torn_han} Han characters must be merged byte by byte");

    let mut distinct: Vec<&[u8]> = Vec::new();
    let mut blocks = Vec::new();
    for block in class.chunks(BLOCK) {
        let at = distinct
            .iter()
            .position(|one| *one == block)
            .unwrap_or_else(|| {
                distinct.push(block);
                distinct.len() - 1
            });
        blocks.push(u8::try_from(at)?);
    }
    Ok((blocks, distinct.concat()))
}

/// Finds what stands at a boundary where some token holds only part of a character.
///
/// A token can end in the first bytes of a character: then the whole character before them is
/// returned. It can start with the last bytes of one: then the (perhaps partial) character after
/// them. A text without any of these holds no such token, so its characters can be merged on their
/// own first.
fn straddled(tokens: &[Vec<u8>]) -> (Vec<char>, Vec<Vec<u8>>) {
    let (mut chars, mut openings) = (Vec::new(), Vec::new());
    for token in tokens {
        let tail = token
            .iter()
            .take_while(|&&byte| byte & 0xC0 == 0x80)
            .count();
        let rest = &token[tail..];
        let valid = match std::str::from_utf8(rest) {
            Ok(whole) => whole.len(),
            Err(error) => error.valid_up_to(),
        };
        let whole = std::str::from_utf8(&rest[..valid]).expect("valid up to here");
        if tail > 0 && !rest.is_empty() {
            let first = whole.chars().next().map_or(rest.len(), char::len_utf8);
            openings.push(rest[..first].to_vec());
        }
        if valid < rest.len() {
            chars.extend(whole.chars().next_back());
        }
    }
    openings.sort();
    openings.dedup();
    (chars, openings)
}

/// A perfect hash: a displacement per bucket, largest buckets first.
fn plan_hash(pairs: &[(u32, u32, u32)]) -> (Vec<u16>, Vec<u64>) {
    let bucket_count = pairs.len().div_ceil(PAIRS_PER_BUCKET);
    let slot_count = pairs.len() * SLOTS_PERCENT / 100;
    let mut buckets: Vec<Vec<usize>> = vec![Vec::new(); bucket_count];
    for (at, &(left, right, _)) in pairs.iter().enumerate() {
        buckets[scale(pair_hash(left, right), bucket_count)].push(at);
    }
    let mut order: Vec<usize> = (0..bucket_count).collect();
    order.sort_by_key(|&bucket| std::cmp::Reverse(buckets[bucket].len()));
    let mut displacements = vec![0u16; bucket_count];
    // No pair has this key: both ranks are beyond the vocabulary.
    let mut slots = vec![u64::MAX >> 10; slot_count];
    let mut taken = vec![false; slot_count];
    for bucket in order {
        let places = |displacement: u16| -> Vec<usize> {
            let one = |&at: &usize| {
                slot_of(
                    pair_hash(pairs[at].0, pairs[at].1),
                    displacement,
                    slot_count,
                )
            };
            buckets[bucket].iter().map(one).collect()
        };
        let found = (0..=u16::MAX).find(|&displacement| {
            let mut places = places(displacement);
            let free = places.iter().all(|&slot| !taken[slot]);
            places.sort_unstable();
            free && places.windows(2).all(|two| two[0] != two[1])
        });
        let displacement = found.expect("there is room for every bucket");
        displacements[bucket] = displacement;
        for (slot, &at) in places(displacement).into_iter().zip(&buckets[bucket]) {
            let (left, right, rank) = pairs[at];
            taken[slot] = true;
            slots[slot] = u64::from(rank) << 36 | u64::from(left) << 18 | u64::from(right);
        }
    }
    (displacements, slots)
}
