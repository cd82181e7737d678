//! The synthetic set: contradictions and near-misses of every kind, generated deterministically
//! from templates.

use std::collections::BTreeMap;
use std::time::Instant;

use quipu_claims::{Bounds, Memory, Page, cut_claims, judge_claims};
use quipu_contract::Form;
use quipu_recall::Tier;

use super::templates::Kind;
use super::{second_set, templates};
use crate::Outcome;

/// The kinds of both languages, with the names that fill them.
pub struct Set {
    en: (&'static [Kind], &'static [&'static str]),
    zh: (&'static [Kind], &'static [&'static str]),
}

pub const FIRST: Set = Set {
    en: (templates::EN, templates::NAMES_EN),
    zh: (templates::ZH, templates::NAMES_ZH),
};
pub const SECOND: Set = Set {
    en: (second_set::EN, second_set::NAMES_EN),
    zh: (second_set::ZH, second_set::NAMES_ZH),
};

/// Number of contradictions; the set has the same number of near-misses.
const EACH: usize = 200;

struct Case {
    kind: &'static str,
    language: &'static str,
    memory: String,
    sentence: String,
    contradicts: bool,
}

/// Expands every template with every pair of values, cycling through the names, then samples evenly
/// so that each kind has the same number of cases.
fn cases(set: &Set, contradicts: bool) -> Vec<Case> {
    let kinds = set.en.0.len() + set.zh.0.len();
    let mut all = Vec::new();
    for round in 0.. {
        let english = set.en.0.iter().map(|kind| ("en", kind, set.en.1));
        let chinese = set.zh.0.iter().map(|kind| ("zh", kind, set.zh.1));
        for (nth, (language, kind, names)) in english.chain(chinese).enumerate() {
            if all.len() == EACH {
                return all;
            }
            all.push(case(
                language,
                kind,
                names,
                round,
                nth + round * kinds,
                contradicts,
            ));
        }
    }
    all
}

fn case(
    language: &'static str,
    kind: &'static Kind,
    names: &[&str],
    round: usize,
    nth: usize,
    contradicts: bool,
) -> Case {
    let templates = if contradicts { kind.bad } else { kind.fine };
    let (x, y) = kind.values[(round / templates.len() + round) % kind.values.len()];
    let (n, m) = (names[nth % names.len()], names[(nth + 3) % names.len()]);
    let fill = |text: &str| {
        text.replace("{n}", n)
            .replace("{m}", m)
            .replace("{x}", x)
            .replace("{y}", y)
    };
    Case {
        kind: kind.name,
        language,
        memory: fill(kind.memory),
        sentence: fill(templates[round % templates.len()]),
        contradicts,
    }
}

fn flagged(case: &Case) -> bool {
    let form = (case.kind == "thread").then_some(Form::Threads);
    let page = Page {
        path: "memory.md".into(),
        tier: Tier::L1,
        is_memory: true,
        form,
        text: case.memory.clone(),
    };
    let memory = Memory::of(std::slice::from_ref(&page));
    let bounds = Bounds {
        chapter: Some(9),
        ..Bounds::default()
    };
    let checked = judge_claims(
        &memory,
        &case.sentence,
        &cut_claims(&case.sentence),
        &bounds,
    );
    checked
        .iter()
        .any(|one| one.findings.iter().any(|judged| judged.finding.conflict))
}

pub fn run(set: &Set, verbose: bool) -> Outcome {
    let started = Instant::now();
    let all: Vec<Case> = cases(set, true)
        .into_iter()
        .chain(cases(set, false))
        .collect();
    let mut tallies: BTreeMap<(&str, &str), [usize; 4]> = BTreeMap::new();
    for case in &all {
        let hit = flagged(case);
        let tally = tallies.entry((case.kind, case.language)).or_default();
        match (case.contradicts, hit) {
            (true, true) => tally[0] += 1,
            (true, false) => tally[1] += 1,
            (false, true) => tally[2] += 1,
            (false, false) => tally[3] += 1,
        }
        if verbose && case.contradicts != hit {
            println!(
                "  {} {} {}: {}",
                if hit { "false alarm" } else { "missed" },
                case.kind,
                case.language,
                case.sentence
            );
        }
    }
    println!(
        "synthetic: {} sentences, {:.1} ms each",
        all.len(),
        started.elapsed().as_secs_f64() * 1000.0 / all.len() as f64
    );
    println!(
        "  {:<10}{:<4}{:>8}{:>8}{:>8}",
        "kind", "", "found", "missed", "alarms"
    );
    let mut sum = [0usize; 4];
    for ((kind, language), tally) in &tallies {
        println!(
            "  {kind:<10}{language:<4}{:>8}{:>8}{:>8}",
            tally[0], tally[1], tally[2]
        );
        sum.iter_mut().zip(tally).for_each(|(sum, one)| *sum += one);
    }
    let precision = sum[0] as f64 / (sum[0] + sum[2]).max(1) as f64;
    let recall = sum[0] as f64 / (sum[0] + sum[1]).max(1) as f64;
    println!(
        "  precision {precision:.3}  recall {recall:.3}  ({} contradictions, {} near-misses)",
        sum[0] + sum[1],
        sum[2] + sum[3]
    );
    Ok(())
}
