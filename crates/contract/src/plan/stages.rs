//! Stages: splits one large text over several smaller tasks.
//!
//! The pieces of staged pointers keep their order. Each stage takes as many as fit. More room never
//! needs more stages.

use super::ladder::{Ladder, Part};
use super::{MOST_STAGES, Share, Shown, Stage, Strategy};
use crate::tokens::Tokens;

/// The pieces of one stage, as (pointer, file, piece).
pub(super) type Packed = Vec<Vec<(usize, usize, usize)>>;

/// Packs the staged pieces. `None` if a piece is larger than the room or too many stages would be
/// needed.
pub(super) fn pack_stages(ladder: &Ladder<'_>, room: Tokens) -> Option<Packed> {
    let mut stages: Packed = Vec::new();
    let mut left = Tokens::ZERO;
    let mut last_file = None;
    for (ask, file, piece, tokens) in staged_pieces(ladder) {
        let opening = ladder.opening_cost(ask, file);
        let here = if last_file == Some((ask, file)) {
            tokens
        } else {
            tokens + opening
        };
        if stages.is_empty() || here > left {
            if tokens + opening > room || stages.len() == MOST_STAGES {
                return None;
            }
            stages.push(Vec::new());
            left = room.saturating_sub(tokens + opening);
        } else {
            left = left.saturating_sub(here);
        }
        last_file = Some((ask, file));
        if let Some(stage) = stages.last_mut() {
            stage.push((ask, file, piece));
        }
    }
    Some(stages)
}

/// Returns the least room that the staged pieces need.
pub(super) fn least_room(ladder: &Ladder<'_>) -> Tokens {
    let (mut low, mut high) = (
        0,
        staged_pieces(ladder)
            .map(|(a, f, _, t)| t + ladder.opening_cost(a, f))
            .sum::<Tokens>()
            .0,
    );
    while low < high {
        let middle = low + (high - low) / 2;
        match pack_stages(ladder, Tokens(middle)) {
            Some(_) => high = middle,
            None => low = middle + 1,
        }
    }
    Tokens(low)
}

fn staged_pieces<'l>(
    ladder: &'l Ladder<'_>,
) -> impl Iterator<Item = (usize, usize, usize, Tokens)> + 'l {
    (0..ladder.asks.len())
        .filter(|i| ladder.parts[*i] == Part::Staged)
        .flat_map(move |ask| {
            let shown = ladder.shown(ask);
            let entries: Vec<_> = ladder.asks[ask].entries().collect();
            entries.into_iter().filter_map(move |(f, p)| {
                let piece = &ladder.asks[ask].files[f].pieces[p];
                match shown[f][p] {
                    Shown::Whole => Some((ask, f, p, piece.tokens)),
                    Shown::Overview => Some((ask, f, p, piece.overview.unwrap_or(piece.tokens))),
                    Shown::Hidden => None,
                }
            })
        })
}

/// Returns the stages with a share for every pointer.
pub(super) fn packed_shares(ladder: &Ladder<'_>, packed: &Packed) -> Vec<Stage> {
    let of = packed.len().max(1);
    let empty = Vec::new();
    let parts = if packed.is_empty() {
        vec![&empty]
    } else {
        packed.iter().collect()
    };
    parts
        .into_iter()
        .enumerate()
        .map(|(index, pieces)| {
            let shares: Vec<Share> = (0..ladder.asks.len())
                .map(|ask| match ladder.parts[ask] {
                    Part::Staged => staged_share(ladder, ask, pieces, index + 1, of),
                    _ => ladder.share(ask),
                })
                .collect();
            Stage {
                tokens: shares.iter().map(|s| s.shown).sum(),
                shares,
            }
        })
        .collect()
}

fn staged_share(
    ladder: &Ladder<'_>,
    ask: usize,
    pieces: &[(usize, usize, usize)],
    number: usize,
    of: usize,
) -> Share {
    let all = ladder.shown(ask);
    let mut files: Vec<Vec<Shown>> = all.iter().map(|f| vec![Shown::Hidden; f.len()]).collect();
    let mut here: Vec<Vec<usize>> = vec![Vec::new(); files.len()];
    pieces
        .iter()
        .filter(|(a, ..)| *a == ask)
        .for_each(|(_, f, p)| here[*f].push(*p));
    let mut shown = Tokens::ZERO;
    let mut count = 0;
    for (f, file) in ladder.asks[ask]
        .files
        .iter()
        .enumerate()
        .filter(|(f, _)| !here[*f].is_empty())
    {
        count += here[f].len();
        let mut cost = ladder.opening_cost(ask, f);
        // Shows the frame and the entries of this stage.
        files[f].fill(Shown::Whole);
        file.entries().for_each(|p| files[f][p] = Shown::Hidden);
        for p in &here[f] {
            files[f][*p] = all[f][*p];
            let piece = &file.pieces[*p];
            cost += if all[f][*p] == Shown::Overview {
                piece.overview.unwrap_or(piece.tokens)
            } else {
                piece.tokens
            };
        }
        // A file that this stage shows completely has no note about parts.
        let whole = files[f].iter().all(|s| *s == Shown::Whole);
        shown += if whole { file.whole.min(cost) } else { cost };
    }
    let whole = ladder.asks[ask].whole();
    let strategy = if files.iter().flatten().all(|s| *s == Shown::Whole) {
        Strategy::Whole
    } else {
        Strategy::Stage {
            number,
            of,
            shown: count,
        }
    };
    Share {
        strategy,
        whole,
        shown,
        files,
    }
}
