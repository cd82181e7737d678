//! How much each of some texts shares with a topic, by recall's own words: stems, Chinese pairs, rarity among the
//! texts and in general language. Pure, and the same for the same input: no index and no encoder takes part.

use std::collections::HashMap;

use super::background::share;
use super::question::{rarity_of, saturate};
use super::terms::{Kind, Reader, Term};

/// Words of the topic that keep less of their weight are too common in general language to tell anything.
const TELLING: f32 = 0.35;

/// A score for each text; zero if it shares no telling word with the topic.
#[must_use]
pub fn likeness(topic: &str, texts: &[&str]) -> Vec<f32> {
    let mut reader = Reader::new();
    let mut wanted: HashMap<Term, (usize, f32)> = HashMap::new();
    reader.read(topic, |term, kind| {
        let telling = matches!(kind, Kind::Word(_) | Kind::Pair) && share(kind) >= TELLING;
        let next = wanted.len();
        if telling {
            wanted.entry(term).or_insert((next, share(kind)));
        }
    });
    let mut shares = vec![0.0; wanted.len()];
    wanted.values().for_each(|(place, share)| shares[*place] = *share);
    let mut lengths = Vec::with_capacity(texts.len());
    let mut times = vec![0u16; texts.len() * shares.len()];
    for (number, text) in texts.iter().enumerate() {
        let mut length = 0u32;
        reader.read(text, |term, _| {
            length += 1;
            if let Some((place, _)) = wanted.get(&term) {
                let times = &mut times[number * shares.len() + place];
                *times = times.saturating_add(1);
            }
        });
        lengths.push(length as f32);
    }
    let mean = (lengths.iter().sum::<f32>() / texts.len().max(1) as f32).max(1.0);
    // Summed in the order of the topic, so that equal input gives equal bits.
    let mut scores = vec![0.0f32; texts.len()];
    for (place, share) in shares.iter().enumerate() {
        let held = |number: usize| times[number * shares.len() + place];
        let holders = (0..texts.len()).filter(|number| held(*number) > 0).count();
        let weight = share * rarity_of(holders as f32, texts.len() as f32);
        for (number, score) in scores.iter_mut().enumerate().filter(|(number, _)| held(*number) > 0) {
            *score += weight * saturate(f32::from(held(number)), lengths[number], mean);
        }
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_words_count_and_rare_ones_more() {
        let found =
            likeness("How leases expire", &["a lease ends by itself", "the journal is a log", "leases and their expiry: they expired"]);
        assert!(found[2] > found[0] && found[0] > 0.0, "{found:?}");
        assert_eq!(found[1], 0.0);
        let found = likeness("租约的过期", &["租约：写入的权利", "日志：记录一切", "过期的租约"]);
        assert!(found[2] > found[0] && found[0] > 0.0, "{found:?}");
        assert_eq!(found[1], 0.0);
        assert_eq!(likeness("the and of 10", &["the and of 10"]), [0.0]);
        assert!(likeness("nothing", &[]).is_empty());
    }
}
