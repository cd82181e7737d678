//! Tests of the four strategies, and of the invariants of every plan.

use proptest::prelude::*;
use proptest::strategy::Strategy as Generate;

use super::{Strategy, *};

fn entry(tokens: u64, score: u32, age: u32) -> Piece {
    Piece {
        tokens: Tokens(tokens),
        overview: Some(Tokens(10)),
        frame: false,
        age,
        score,
    }
}

/// A pointer to one file with a title of 5 tokens and entries of 100 tokens, the first the oldest.
fn ask(name: &str, need: Need, shrink: Shrink, scores: &[u32]) -> Ask {
    let count = u32::try_from(scores.len()).unwrap();
    let mut pieces = vec![Piece {
        tokens: Tokens(5),
        overview: None,
        frame: true,
        age: 0,
        score: 0,
    }];
    pieces.extend(
        scores
            .iter()
            .zip(0..)
            .map(|(score, i)| entry(100, *score, count - 1 - i)),
    );
    let whole = pieces.iter().map(|p| p.tokens).sum();
    Ask {
        name: name.into(),
        class: Class::Append,
        need,
        shrink,
        files: vec![AskFile {
            whole,
            note: Tokens(8),
            pieces,
        }],
    }
}

fn told(asks: &[Ask], budget: u64) -> Vec<Vec<String>> {
    match plan_view(asks, Tokens(budget)) {
        Ok(plan) => plan
            .stages
            .iter()
            .map(|stage| {
                stage
                    .shares
                    .iter()
                    .map(|s| format!("{}→{} {}", s.whole, s.shown, s.strategy))
                    .collect()
            })
            .collect(),
        Err(overflow) => vec![vec![overflow.to_string()]],
    }
}

#[test]
fn what_fits_is_whole() {
    let asks = [ask("a", Need::Must, Shrink::Recent(2), &[0; 4])];
    assert_eq!(told(&asks, 405), [["405→405 whole"]]);
}

#[test]
fn recent_keeps_the_newest_and_a_sentence_of_the_older() {
    let asks = [ask("a", Need::Must, Shrink::Recent(2), &[0; 4])];
    assert_eq!(
        told(&asks, 404),
        [["405→323 recent(3): 1 older as one sentence"]]
    );
    assert_eq!(
        told(&asks, 240),
        [["405→233 recent(2): 2 older as one sentence"]]
    );
    assert_eq!(
        told(&asks, 60),
        [["405→53 recent(0): 4 older as one sentence"]]
    );
    assert_eq!(
        told(&asks, 24),
        [["405→23 recent(0): 1 older as one sentence, 3 not shown"]]
    );
    assert_eq!(
        told(&asks, 22),
        [["`a` cannot fit: at least 23 tokens are needed, and the budget is 22"]]
    );
}

#[test]
fn relevant_keeps_what_matters() {
    let asks = [ask("a", Need::Must, Shrink::Relevant, &[0, 9, 0, 3])];
    let plan = plan_view(&asks, Tokens(230)).unwrap();
    assert_eq!(told(&asks, 230), [["405→213 relevant: 2 of 4"]]);
    let shown = &plan.stages[0].shares[0].files[0];
    assert_eq!(
        shown[1..],
        [Shown::Hidden, Shown::Whole, Shown::Hidden, Shown::Whole]
    );
    assert_eq!(told(&asks, 150), [["405→113 relevant: 1 of 4"]]);
    assert_eq!(
        plan_view(&asks, Tokens(150)).unwrap().stages[0].shares[0].files[0][2],
        Shown::Whole,
        "the best stays"
    );
}

#[test]
fn stages_split_what_must_be_read_whole() {
    let asks = [
        ask("style", Need::Must, Shrink::Never, &[0]),
        ask("source", Need::Must, Shrink::Stage, &[0; 4]),
    ];
    assert_eq!(
        told(&asks, 330),
        [
            ["105→105 whole", "405→213 stage 1 of 2: 2 here"],
            ["105→105 whole", "405→213 stage 2 of 2: 2 here"]
        ]
    );
}

#[test]
fn auto_takes_the_strategies_in_order() {
    let asks = [ask("log", Need::Must, Shrink::Auto, &[0, 0, 0, 1, 1, 1])];
    assert_eq!(
        told(&asks, 500),
        [["605→433 recent(4): 2 older as one sentence"]],
        "first recent"
    );
    assert_eq!(
        told(&asks, 320),
        [["605→313 relevant: 3 of 6"]],
        "then relevant"
    );
    assert_eq!(told(&asks, 220).len(), 2, "then stages");
}

#[test]
fn if_room_is_trimmed_for_a_must() {
    let asks = [
        ask("notes", Need::IfRoom, Shrink::Never, &[0; 3]),
        ask("task", Need::Must, Shrink::Never, &[0; 2]),
    ];
    assert_eq!(told(&asks, 510), [["305→305 whole", "205→205 whole"]]);
    assert_eq!(
        told(&asks, 509),
        [["305→0 trimmed: no room", "205→205 whole"]]
    );
}

#[test]
fn the_least_relevant_spare_pointer_goes_first() {
    let asks = [
        ask("near", Need::IfRoom, Shrink::Never, &[7]),
        ask("far", Need::IfRoom, Shrink::Never, &[1]),
        ask("task", Need::Must, Shrink::Never, &[0]),
    ];
    assert_eq!(
        told(&asks, 250),
        [["105→105 whole", "105→0 trimmed: no room", "105→105 whole"]]
    );
}

#[test]
fn what_cannot_fit_is_named_with_what_it_needs() {
    let asks = [
        ask("style", Need::Must, Shrink::Never, &[0; 9]),
        ask("log", Need::Must, Shrink::Recent(3), &[0; 9]),
    ];
    let overflow = plan_view(&asks, Tokens(400)).unwrap_err();
    assert_eq!(
        overflow
            .stuck
            .iter()
            .map(|s| s.name.as_str())
            .collect::<Vec<_>>(),
        ["style"]
    );
    assert_eq!(
        (overflow.least, overflow.stuck[0].least),
        (Tokens(905 + 23), Tokens(905))
    );
}

#[test]
fn a_cut_that_saves_nothing_is_not_made() {
    let mut small = ask("a", Need::Must, Shrink::Relevant, &[0, 0]);
    small.files[0].note = Tokens(300);
    let asks = [small, ask("b", Need::Must, Shrink::Recent(1), &[0; 4])];
    let plan = plan_view(&asks, Tokens(450)).unwrap();
    assert_eq!(plan.stages[0].shares[0].strategy, Strategy::Whole);
}

/// An algorithm that is quadratic in the pieces would take many minutes here.
#[test]
fn a_plan_takes_as_long_as_the_text_is() {
    let count = 100_000;
    for shrink in [Shrink::Recent(2), Shrink::Auto, Shrink::Stage] {
        let mut many = ask("log", Need::Must, shrink, &vec![0; count]);
        // Every other piece is frame, as a text between two tables is.
        many.files[0]
            .pieces
            .iter_mut()
            .step_by(2)
            .for_each(|piece| (piece.frame, piece.tokens) = (true, Tokens(0)));
        let whole = many.whole().0;
        for budget in [whole - 1, whole / 2, whole / 20] {
            plan_view(std::slice::from_ref(&many), Tokens(budget)).unwrap();
        }
    }
}

fn pieces() -> impl Generate<Value = Vec<(u64, Option<u64>, bool, u32)>> {
    prop::collection::vec(
        (
            1u64..400,
            prop::option::of(1u64..60),
            prop::bool::weighted(0.2),
            0u32..4,
        ),
        1..7,
    )
}

fn any_ask() -> impl Generate<Value = Ask> {
    let shrink = prop::sample::select(vec![
        Shrink::Auto,
        Shrink::Recent(1),
        Shrink::Recent(3),
        Shrink::Relevant,
        Shrink::Section,
        Shrink::Head,
        Shrink::Stage,
        Shrink::Never,
    ]);
    let class = prop::sample::select(vec![Class::Append, Class::Sealed, Class::Overwrite]);
    (
        any::<bool>(),
        shrink,
        class,
        prop::collection::vec((pieces(), 1u64..30), 1..4),
    )
        .prop_map(|(must, shrink, class, files)| {
            let total: usize = files.iter().map(|(p, _)| p.len()).sum();
            let mut left = u32::try_from(total).unwrap();
            let files = files
                .into_iter()
                .map(|(pieces, note)| {
                    let pieces: Vec<Piece> = pieces
                        .into_iter()
                        .map(|(tokens, overview, frame, score)| {
                            left -= 1;
                            Piece {
                                tokens: Tokens(tokens),
                                overview: overview.map(Tokens),
                                frame,
                                age: left,
                                score,
                            }
                        })
                        .collect();
                    AskFile {
                        whole: pieces.iter().map(|p| p.tokens).sum(),
                        note: Tokens(note),
                        pieces,
                    }
                })
                .collect();
            Ask {
                name: "p".into(),
                class,
                need: if must { Need::Must } else { Need::IfRoom },
                shrink,
                files,
            }
        })
}

fn any_asks() -> impl Generate<Value = Vec<Ask>> {
    prop::collection::vec(any_ask(), 1..6)
}

/// The best form of each piece over all stages: 2 whole, 1 a sentence, 0 nothing.
fn best(plan: &Plan, ask: usize) -> Vec<u8> {
    let worth = |s: &Shown| match s {
        Shown::Whole => 2,
        Shown::Overview => 1,
        Shown::Hidden => 0,
    };
    let mut best: Vec<u8> = Vec::new();
    for stage in &plan.stages {
        let here: Vec<u8> = stage.shares[ask]
            .files
            .iter()
            .flatten()
            .map(worth)
            .collect();
        best.resize(here.len(), 0);
        best.iter_mut()
            .zip(here)
            .for_each(|(b, h)| *b = (*b).max(h));
    }
    best
}

/// Recomputes the tokens of a share from its pieces alone.
fn recount(ask: &Ask, share: &Share) -> Tokens {
    let files = ask.files.iter().zip(&share.files);
    files
        .map(|(file, shown)| {
            if shown.iter().all(|s| *s == Shown::Whole) {
                return file.whole;
            }
            let seen = file.entries().any(|p| shown[p] != Shown::Hidden);
            if !seen {
                return Tokens::ZERO;
            }
            let tokens = |(piece, shown): (&Piece, &Shown)| match shown {
                Shown::Whole => piece.tokens,
                Shown::Overview => piece.overview.unwrap(),
                Shown::Hidden => Tokens::ZERO,
            };
            file.pieces.iter().zip(shown).map(tokens).sum::<Tokens>() + file.note
        })
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_plan_keeps_its_budget_and_every_must(asks in any_asks(), budget in 0u64..4_000) {
        match plan_view(&asks, Tokens(budget)) {
            Ok(plan) => {
                prop_assert_eq!(&plan, &plan_view(&asks, Tokens(budget)).unwrap());
                for stage in &plan.stages {
                    let counted: Tokens = asks.iter().zip(&stage.shares).map(|(a, s)| recount(a, s)).sum();
                    prop_assert!(counted <= stage.tokens, "{counted} counted, {} planned", stage.tokens);
                    prop_assert!(stage.tokens <= plan.budget);
                    prop_assert_eq!(stage.shares.iter().map(|s| s.shown).sum::<Tokens>(), stage.tokens);
                }
                for (i, ask) in asks.iter().enumerate().filter(|(_, a)| a.need == Need::Must) {
                    let seen = best(&plan, i);
                    let entries: Vec<bool> = ask.files.iter().flat_map(|f| (0..f.pieces.len()).map(|p| f.entries().any(|e| e == p))).collect();
                    prop_assert!(seen.iter().zip(entries).any(|(s, entry)| entry && *s > 0), "a must is missing");
                    if matches!(ask.shrink, Shrink::Never | Shrink::Section | Shrink::Stage) {
                        prop_assert!(seen.iter().all(|s| *s == 2), "{:?} lost something", ask.shrink);
                    }
                }
                for (ask, share) in asks.iter().zip(&plan.stages[0].shares) {
                    if share.strategy == Strategy::Trimmed {
                        prop_assert_eq!(ask.need, Need::IfRoom);
                    }
                }
            }
            Err(overflow) => {
                prop_assert!(!overflow.stuck.is_empty());
                prop_assert!(overflow.least > Tokens(budget));
                prop_assert!(plan_view(&asks, overflow.least).is_ok(), "what it asks for is enough");
            }
        }
    }

    #[test]
    fn a_larger_budget_never_shows_less_of_a_must(asks in any_asks(), budget in 0u64..4_000, more in 0u64..1_000) {
        if let Ok(smaller) = plan_view(&asks, Tokens(budget)) {
            let larger = plan_view(&asks, Tokens(budget + more)).expect("more room is enough where less was");
            for (i, _) in asks.iter().enumerate().filter(|(_, a)| a.need == Need::Must) {
                let pairs = best(&smaller, i).into_iter().zip(best(&larger, i));
                prop_assert!(pairs.clone().all(|(s, l)| s <= l), "{:?}", pairs.collect::<Vec<_>>());
            }
        }
    }
}
