//! Injuries: state that begins, lasts and heals.
//!
//! Someone may have several injuries at one time. `injury: the left wrist, healed` ends those of the
//! left wrist, `injury: none` ends all.

use std::collections::BTreeSet;

use crate::words::{is_han, stem, words};

/// Words that say that an injury is over.
const HEALED: &[&str] = &["healed", "recovered", "mended", "cured", "none"];
/// Words that take such a word back, or say how somebody was hurt.
const UNHEALED: &[&str] = &[
    "not", "never", "half", "hardly", "barely", "partly", "nearly", "almost", "until", "yet",
];
const HEALED_HAN: &[&str] = &["愈", "康复", "复原", "好了", "无伤", "已好"];
const UNHEALED_HAN: &[&str] = &[
    "未", "没", "不", "难愈", "尚", "将愈", "愈发", "愈加", "愈来",
];
/// Words that name no part of the body.
const EMPTY: &[&str] = &[
    "the", "a", "an", "of", "her", "his", "their", "its", "has", "have", "is", "was", "fully",
    "again", "now", "all", "injury", "injuries", "wound", "wounds",
];
const EMPTY_HAN: &str = "已的了全伤完无好愈痊康复原都皆之处口势";
const SIDES: [[&str; 2]; 2] = [["left", "左"], ["right", "右"]];

/// Returns true if the value of an injury says that it is over.
pub(crate) fn is_healed(value: &str) -> bool {
    let lower = value.to_lowercase();
    let said = words(&lower);
    let has = |wanted: &[&str]| {
        said.iter()
            .any(|word| wanted.contains(&word.lower.as_str()))
    };
    let has_han = |wanted: &[&str]| wanted.iter().any(|sign| value.contains(sign));
    has(HEALED) && !has(UNHEALED)
        || has_han(HEALED_HAN) && !has_han(UNHEALED_HAN)
        || ["无", "沒有", "没有"].contains(&value.trim())
}

/// Returns true if a value that says that an injury is over is about this one.
pub(crate) fn heals(over: &str, injury: &str) -> bool {
    let (over, injury) = (parts(over), parts(injury));
    let has_other_side = over
        .side
        .zip(injury.side)
        .is_some_and(|(one, other)| one != other);
    let is_about_all = over.names.is_empty() && over.side.is_none();
    is_about_all || !has_other_side && !over.names.is_disjoint(&injury.names)
}

/// Returns true if a value says that somebody has no injury at all.
pub(crate) fn is_whole(value: &str) -> bool {
    let parts = parts(value);
    is_healed(value) && parts.names.is_empty() && parts.side.is_none()
}

/// The words that a value names, and the side of the body.
struct Parts {
    names: BTreeSet<String>,
    side: Option<usize>,
}

fn parts(value: &str) -> Parts {
    let lower = value.to_lowercase();
    // The reason comes after `because`; the words before it name the injury.
    let said = lower.split("because").next().unwrap_or_default();
    let said = said.split("因为").next().unwrap_or_default();
    let english = words(said).into_iter().map(|word| word.lower);
    let side = SIDES
        .iter()
        .position(|signs| signs.iter().any(|sign| said.contains(sign)));
    let is_name = |word: &String| {
        let word = word.as_str();
        ![EMPTY, HEALED].concat().contains(&word) && !SIDES.concat().contains(&word)
    };
    let latin = english
        .filter(is_name)
        .filter(|word| !word.chars().any(is_han))
        .map(|word| stem(&word).to_owned());
    let han = said
        .chars()
        .filter(|c| is_han(*c) && !EMPTY_HAN.contains(*c) && !"左右".contains(*c))
        .map(String::from);
    Parts {
        names: latin.chain(han).collect(),
        side,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_healed_is_told_from_what_is_not() {
        for value in [
            "healed",
            "the left wrist, healed",
            "none",
            "recovered fully",
            "已愈",
            "左腕痊愈",
            "无",
        ] {
            assert!(is_healed(value), "{value}");
        }
        for value in [
            "left wrist broken",
            "the burn, not healed",
            "half healed",
            "左腕骨折",
            "腕伤未愈",
            "伤口没好",
            "疼得愈发厉害",
        ] {
            assert!(!is_healed(value), "{value}");
        }
    }

    #[test]
    fn healing_ends_the_injury_that_it_names() {
        for (over, injury, ends) in [
            ("healed", "left wrist broken", true),
            ("none", "burnt hand", true),
            (
                "left wrist healed",
                "the left wrist, broken in the fall",
                true,
            ),
            ("left wrist healed", "left hand burnt", false),
            ("left wrist healed", "right wrist sprained", false),
            ("痊愈", "左腕骨折", true),
            ("左腕已愈", "左腕骨折，摔的", true),
            ("左腕已愈", "左肩中箭", false),
            ("左腕已愈", "右腕扭伤", false),
        ] {
            assert_eq!(heals(over, injury), ends, "{over} / {injury}");
        }
    }
}
