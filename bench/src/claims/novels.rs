//! Benchmarks the constraint query on claims about whole novels: whether the deciding passage is
//! among the evidence, how much text is shown, and how long it takes.
//!
//! The data does not mark the deciding passage. For a false claim with an explanation, the
//! benchmark picks the passages that share most words with the explanation and with the true twin
//! of the claim, weighted by rarity in the book. The query never sees these texts, and the scorer
//! is independent of the one under test.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quipu_claims::{Bounds, Corpus, Page, Passages, check, cut_claims, render_evidence};
use quipu_recall::Tier;
use serde_json::{Value, json};

use crate::Outcome;

const DEPTHS: [usize; 4] = [1, 3, 6, 10];
/// Number of passages accepted as deciding. An explanation seldom points at only one.
const DECIDING: usize = 3;

struct Told {
    book: String,
    text: String,
    truth: bool,
    explanation: String,
    pair: String,
    about: String,
}

fn load_claims(folder: &Path) -> Outcome<Vec<Told>> {
    let mut claims = Vec::new();
    for line in std::fs::read_to_string(folder.join("claims.jsonl"))?.lines() {
        let value: Value = serde_json::from_str(line)?;
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let truth = value["type"]
            .as_bool()
            .unwrap_or(value["label"] == "consistent");
        let book = if text("book_title").is_empty() {
            text("book")
        } else {
            text("book_title")
        };
        let pair = value["index"]
            .as_u64()
            .map(|index| index.to_string())
            .unwrap_or_default();
        claims.push(Told {
            book,
            text: text("claim"),
            truth,
            explanation: text("false-claim-explanation"),
            pair,
            about: text("about"),
        });
    }
    Ok(claims)
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() > 2);
    words
        .map(|word| {
            word.to_lowercase()
                .trim_end_matches("'s")
                .trim_end_matches('s')
                .to_owned()
        })
        .collect()
}

/// Returns the passages that share most words with a text. Rare words weigh more.
fn deciding(
    passages: &[(Vec<usize>, BTreeSet<String>)],
    rarity: &HashMap<String, f64>,
    text: &str,
) -> Vec<Vec<usize>> {
    let wanted = words(text);
    let mut scored: Vec<(f64, &Vec<usize>)> = passages
        .iter()
        .map(|(place, said)| {
            (
                wanted
                    .intersection(said)
                    .filter_map(|word| rarity.get(word))
                    .sum::<f64>(),
                place,
            )
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored
        .into_iter()
        .take(DECIDING)
        .map(|(_, place)| place.clone())
        .collect()
}

/// Tokens of evidence for a claim, unless the caller says otherwise.
const TOKENS: u64 = 700;

pub fn run(folder: &Path, judge: Option<&str>, most: Option<u64>, out: Option<&Path>) -> Outcome {
    let claims = load_claims(folder)?;
    let books: BTreeSet<&str> = claims.iter().map(|claim| claim.book.as_str()).collect();
    println!(
        "{}: {} claims about {} book(s)",
        folder.display(),
        claims.len(),
        books.len()
    );
    let (mut hits, mut chance, mut asked) = ([0usize; 4], [0f64; 4], 0usize);
    let mut in_budget = 0usize;
    let (mut tokens, mut spent, mut named, mut about) = (0u64, Vec::new(), 0usize, 0usize);
    let mut rulings: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    let (mut right, mut judged) = (0usize, 0usize);
    for book in &books {
        let text = std::fs::read_to_string(folder.join(format!("{book}.txt")))?;
        let words_in_book = text.split_whitespace().count();
        let started = Instant::now();
        let page = Page {
            path: format!("{book}.txt"),
            tier: Tier::L2,
            is_memory: true,
            form: None,
            text,
        };
        let passages = Passages::of([&page]).map_err(|e| e.to_string())?;
        let corpus = Corpus::of(std::slice::from_ref(&page), None);
        let built = started.elapsed();
        let cut: Vec<(Vec<usize>, BTreeSet<String>)> = passages
            .all()
            .map(|p| (p.lines.clone(), words(&p.text)))
            .collect();
        let mut counts: HashMap<String, usize> = HashMap::new();
        cut.iter()
            .flat_map(|(_, said)| said)
            .for_each(|word| *counts.entry(word.clone()).or_default() += 1);
        let rarity: HashMap<String, f64> = counts
            .into_iter()
            .map(|(word, n)| (word, (cut.len() as f64 / n as f64).ln()))
            .collect();
        println!(
            "  {book}: {words_in_book} words, {} passages, read in {:.0} ms",
            cut.len(),
            built.as_secs_f64() * 1000.0
        );
        for claim in claims.iter().filter(|claim| claim.book == *book) {
            let bounds = Bounds {
                k: 10,
                tokens: Some(most.unwrap_or(TOKENS)),
                ..Bounds::default()
            };
            let started = Instant::now();
            let cut_claim = cut_claims(&claim.text);
            let (checked, scenes) = check(&corpus, &claim.text, &cut_claim, &bounds);
            spent.push(started.elapsed());
            let evidence = &checked[0].evidence;
            let shown: Vec<_> = scenes.iter().flat_map(|one| one.evidence.clone()).collect();
            tokens += scenes.iter().map(|one| one.tokens).sum::<u64>();
            if let Some(out) = out {
                std::fs::create_dir_all(out)?;
                let name = format!("{}-{}.md", claim.pair, if claim.truth { "a" } else { "b" });
                let text = format!(
                    "# Claim\n{}\n\n# Evidence\n{}",
                    claim.text,
                    render_evidence(&shown)
                );
                std::fs::write(out.join(name), text)?;
            }
            if !claim.about.is_empty() {
                about += 1;
                let names: Vec<&str> = claim
                    .about
                    .split(['/', ' '])
                    .filter(|name| name.len() > 2)
                    .collect();
                named += usize::from(
                    evidence
                        .iter()
                        .take(6)
                        .any(|one| names.iter().any(|name| one.text.contains(name))),
                );
            }
            let twin = claims
                .iter()
                .find(|other| other.pair == claim.pair && other.book == claim.book && other.truth);
            if let (false, false, Some(twin)) = (claim.truth, claim.explanation.is_empty(), twin) {
                asked += 1;
                let gold = deciding(
                    &cut,
                    &rarity,
                    &format!("{} {}", claim.explanation, twin.text),
                );
                let found: Vec<usize> = evidence.iter().map(|one| one.at.line).collect();
                let is_gold = |line: &usize| gold.iter().any(|lines| lines.contains(line));
                in_budget += usize::from(shown.iter().any(|one| is_gold(&one.at.line)));
                for (nth, depth) in DEPTHS.iter().enumerate() {
                    hits[nth] += usize::from(found.iter().take(*depth).any(is_gold));
                    let miss = 1.0 - DECIDING as f64 / cut.len() as f64;
                    chance[nth] += 1.0 - miss.powi(i32::try_from(*depth)?);
                }
            }
            if let Some(command) = judge {
                let conflict =
                    ask(command, &json!({"claim": claim.text, "evidence": shown}))? == "conflict";
                judged += 1;
                right += usize::from(conflict != claim.truth);
                rulings
                    .entry(&claim.pair)
                    .or_default()
                    .push(conflict != claim.truth);
            }
        }
    }
    if asked > 0 {
        let line = |name: &str, share: [f64; 4]| {
            println!(
                "  {name:<34}{}",
                share.map(|s| format!("{:>8.1}", s * 100.0)).join("")
            )
        };
        println!(
            "  the deciding passage is among the first{:>3}{:>8}{:>8}{:>8}",
            DEPTHS[0], DEPTHS[1], DEPTHS[2], DEPTHS[3]
        );
        line(
            &format!("of {asked} explained false claims, %"),
            hits.map(|hit| hit as f64 / asked as f64),
        );
        line("by chance, %", chance.map(|sum| sum / asked as f64));
        println!(
            "  within the budget: {in_budget} of {asked}, {:.1} %",
            in_budget as f64 * 100.0 / asked as f64
        );
    }
    if about > 0 {
        println!("  evidence names the character: {named} of {about}");
    }
    spent.sort_unstable();
    let at = |share: usize| spent[(spent.len() * share / 100).min(spent.len() - 1)];
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "  tokens of evidence a claim: {}",
        tokens / claims.len() as u64
    );
    println!(
        "  time a claim: median {:.1} ms, 95th {:.1} ms, worst {:.1} ms",
        ms(at(50)),
        ms(at(95)),
        ms(at(100))
    );
    if judged > 0 {
        let pairs: Vec<&Vec<bool>> = rulings.values().filter(|pair| pair.len() == 2).collect();
        let whole = pairs
            .iter()
            .filter(|pair| pair.iter().all(|right| *right))
            .count();
        println!(
            "  judged by `{}`: {right} of {judged} claims right ({:.1} %)",
            judge.unwrap_or_default(),
            right as f64 * 100.0 / judged as f64
        );
        let trues = claims.iter().filter(|claim| claim.truth).count();
        println!(
            "  one verdict for all would be right for {} of {judged}",
            trues.max(judged - trues)
        );
        if !pairs.is_empty() {
            println!(
                "  pairs with both right: {whole} of {} ({:.1} %; guessing 25 %)",
                pairs.len(),
                whole as f64 * 100.0 / pairs.len() as f64
            );
        }
    }
    Ok(())
}

fn ask(command: &str, question: &Value) -> Outcome<String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    std::io::Write::write_all(
        &mut child.stdin.take().ok_or("no stdin")?,
        question.to_string().as_bytes(),
    )?;
    let output = child.wait_with_output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    Ok(answer["verdict"].as_str().unwrap_or_default().to_owned())
}
