//! The frequency of words in general language, independent of the project's files.
//!
//! In a small collection every rare word looks important: "wondering" occurs once, so it weighs as
//! much as "orphanage". This table separates them. `scripts/build-model` derives it from the
//! unigram scores of the encoder's vocabulary. It is always built in and needs no model to run.

use super::terms::Kind;

static TABLE: &[u8] = include_bytes!("../model/frequency.bin");

/// The minimum factor, which applies to the most common words.
const FLOOR: f32 = 0.1;

/// Chinese question and function characters. A pair of only these carries no information. Sorted
/// for binary search.
#[rustfmt::skip]
const CHINESE_FUNCTION: &[char] = &[
    '与', '个', '为', '么', '之', '了', '于', '什', '从', '何', '其', '几', '到', '及', '吗', '吧',
    '呢', '和', '哪', '啊', '在', '多', '少', '怎', '或', '把', '是', '有', '样', '由', '的', '被',
    '谁', '这', '那',
];

/// Returns the share of its weight that a term keeps, between `FLOOR` and 1.
pub(super) fn share(kind: Kind) -> f32 {
    match kind {
        Kind::Word(key) => FLOOR + (1.0 - FLOOR) * rarity(key),
        Kind::Function => FLOOR,
        Kind::Number | Kind::Pair | Kind::Single => 1.0,
    }
}

/// Returns true if a character mostly has a grammatical function.
pub(super) fn is_function(c: char) -> bool {
    CHINESE_FUNCTION.binary_search(&c).is_ok()
}

fn rarity(key: u32) -> f32 {
    let count = TABLE.len() / 5;
    let (keys, values) = TABLE.split_at(count * 4);
    let at =
        |index: usize| u32::from_le_bytes(keys[4 * index..4 * index + 4].try_into().expect("four"));
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = usize::midpoint(low, high);
        if at(middle) < key {
            low = middle + 1
        } else {
            high = middle
        }
    }
    if low < count && at(low) == key {
        f32::from(values[low]) / 255.0
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::terms::Reader;
    use super::*;

    fn share_of(word: &str) -> f32 {
        let mut out = 0.0;
        Reader::new().read(word, |_, kind| out = share(kind));
        out
    }

    #[test]
    fn characters_of_grammar_are_sorted() {
        assert!(CHINESE_FUNCTION.is_sorted());
    }

    #[test]
    fn common_words_weigh_less() {
        assert!(share_of("people") < share_of("wondering"));
        assert!(share_of("wondering") < share_of("orphanage"));
        assert_eq!(share_of("zyxwvu"), 1.0);
        assert!(share_of("谁") < share_of("铁"));
    }
}
