//! Detects files that read like a dialogue.
//!
//! A turn of a dialogue is understood from the turns around it, a paragraph of an article or an
//! entry of a diary by itself. Only in a dialogue do the neighbours of a section count when it is
//! ranked. The file itself decides, not its name: its sections are short, a few speakers take
//! turns, and some turns ask.

use super::Section;

/// A shorter file shows no pattern.
const FEWEST: usize = 4;
/// The largest median length of a turn, in bytes.
const LONGEST: usize = 600;
/// The smallest chance that two random turns have the same speaker: eight equally busy speakers.
const RECURRING: f32 = 1.0 / 8.0;
/// Speakers that take turns follow themselves at most this share as often as in a random order.
const ALTERNATING: f32 = 0.6;
/// The smallest share of turns that end with a question.
const ASKING: f32 = 0.04;

/// Returns true if the sections of a file are turns of a dialogue.
#[must_use]
pub fn reads_like_dialogue(sections: &[Section]) -> bool {
    if sections.len() < FEWEST {
        return false;
    }
    let count = sections.len() as f32;
    let share = |of: usize| of as f32 / count;
    let mut lengths: Vec<usize> = sections.iter().map(|section| section.text.len()).collect();
    let (_, median, _) = lengths.select_nth_unstable(sections.len() / 2);
    let asking = sections.iter().filter(|section| asks(section)).count();
    if *median > LONGEST || share(asking) < ASKING {
        return false;
    }
    let mut speakers: Vec<Option<&String>> = sections
        .iter()
        .map(|section| section.heading_path.last())
        .collect();
    let same = speakers.windows(2).filter(|two| two[0] == two[1]).count();
    speakers.sort_unstable();
    let turns: Vec<usize> = speakers.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
    let by_chance: f32 = turns.iter().map(|turns| share(*turns).powi(2)).sum();
    2 * turns.len() <= sections.len()
        && by_chance >= RECURRING
        && same as f32 / (count - 1.0) <= ALTERNATING * by_chance
}

fn asks(section: &Section) -> bool {
    section.text.trim_end().ends_with(['?', '？'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(turns: &[(&str, &str)]) -> Vec<Section> {
        let section = |(line, (speaker, text)): (u32, &(&str, &str))| Section {
            line,
            heading_path: vec!["2024-05-01".to_owned(), (*speaker).to_owned()],
            text: (*text).to_owned(),
        };
        (1..).zip(turns).map(section).collect()
    }

    #[test]
    fn turns_of_two_speakers_are_a_dialogue() {
        for (a, b, ask) in [
            ("Ann", "Ben", "Did you call?"),
            ("小安", "小本", "你打了吗？"),
        ] {
            let turns = [
                (a, ask),
                (b, "Yes."),
                (a, "Good."),
                (b, "Late."),
                (a, "Oh."),
            ];
            assert!(reads_like_dialogue(&file(&turns)));
        }
    }

    #[test]
    fn articles_diaries_and_mixed_up_turns_are_not() {
        let long = "word ".repeat(200);
        let article = [("A", "Why?"), ("B", &long), ("A", &long), ("B", &long)];
        assert!(!reads_like_dialogue(&file(&article)));
        let diary = [
            ("Note", "Rain."),
            ("Note", "Sun?"),
            ("Note", "Wind."),
            ("Note", "Snow."),
        ];
        assert!(!reads_like_dialogue(&file(&diary)));
        let manual = [
            ("Set up", "Run it."),
            ("Use", "Why?"),
            ("Stop", "Halt."),
            ("Fix", "Ask."),
        ];
        assert!(!reads_like_dialogue(&file(&manual)));
        let days = [
            ("Morning", "Rain."),
            ("Evening", "Sun."),
            ("Morning", "Wind."),
            ("Evening", "Snow."),
        ];
        assert!(!reads_like_dialogue(&file(&days)));
        let mixed = [
            ("Ann", "Late."),
            ("Ann", "Did you call?"),
            ("Ben", "Oh."),
            ("Ben", "Yes."),
            ("Ann", "Good."),
            ("Ann", "No."),
        ];
        assert!(!reads_like_dialogue(&file(&mixed)));
    }
}
