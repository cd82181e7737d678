//! Titles of people: `Captain Orrin Vale` is `Orrin Vale`.
//!
//! A word that may name a relative or a spouse (`Old`, `Lady`, `Mrs`) is no title here: it may stand
//! before the name of somebody else.

use crate::words::has_han;

const TITLES: &[&str] = &[
    "captain",
    "capt",
    "doctor",
    "dr",
    "mr",
    "sir",
    "professor",
    "prof",
    "sergeant",
    "lieutenant",
    "colonel",
    "major",
    "general",
    "admiral",
    "commander",
    "corporal",
    "inspector",
    "constable",
    "detective",
    "sheriff",
    "judge",
    "bishop",
    "abbot",
    "father",
    "brother",
    "sister",
    "reverend",
    "king",
    "queen",
    "prince",
    "princess",
    "lord",
    "count",
    "baron",
    "duke",
    "mayor",
    "chancellor",
    "president",
    "nurse",
];
const TITLES_ZH: &[&str] = &[
    "船长", "队长", "将军", "师傅", "师父", "先生", "医生", "大夫", "老师", "老板", "掌柜", "县令",
    "大人", "道长", "警官", "督察", "站长", "馆长", "校长", "主任", "教授", "博士",
];

/// Returns a name without its title, if it has one.
pub fn without_title(name: &str) -> Option<&str> {
    let name = name.trim();
    if has_han(name) {
        let mut titles = TITLES_ZH.iter();
        let rest = titles.find_map(|title| {
            name.strip_prefix(title)
                .or_else(|| name.strip_suffix(title))
        })?;
        return (rest.chars().count() >= 2).then_some(rest);
    }
    let (first, rest) = name.split_once(' ')?;
    (is_title(first) && rest.starts_with(char::is_uppercase)).then_some(rest)
}

/// Whether a word is a title, as before a name.
pub fn is_title(word: &str) -> bool {
    let word = word.trim_end_matches('.').to_lowercase();
    TITLES.contains(&word.as_str()) || TITLES_ZH.contains(&word.as_str())
}

/// Returns a text without the title at its end.
pub fn before_title(text: &str) -> &str {
    let text = text.trim_end();
    let mut titles = TITLES_ZH.iter();
    if let Some(rest) = titles.find_map(|title| text.strip_suffix(title)) {
        return rest;
    }
    let last = text.rsplit(' ').next().unwrap_or_default();
    match is_title(last) {
        true => text[..text.len() - last.len()].trim_end(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_no_part_of_a_name() {
        for (name, bare) in [
            ("Captain Orrin Vale", Some("Orrin Vale")),
            ("Dr. Vale", Some("Vale")),
            ("Mrs Vale", None),
            ("Orrin Vale", None),
            ("Captain of the guard", None),
            ("船长沈砚", Some("沈砚")),
            ("沈砚船长", Some("沈砚")),
            ("沈砚", None),
        ] {
            assert_eq!(without_title(name), bare, "{name}");
        }
        assert_eq!(
            before_title("on the bridge stood Captain "),
            "on the bridge stood"
        );
        assert_eq!(before_title("桥上站着船长"), "桥上站着");
    }
}
