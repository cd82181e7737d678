//! The set in natural prose: stories with contradictions and near-misses woven into new scenes.
//!
//! Each mark names the quotation and the line that decides it. Stories with an odd number are open
//! for study, those with an even number are blind: they are run, but not read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quipu_claims::{
    Answered, Bounds, Checked, Claim, Corpus, Evidence, Page, PromptLanguage, SceneEvidence,
    chapter_number, check, cut_claims, read_rulings, render_prompt,
};
use quipu_recall::Tier;
use quipu_text::{Counter, count_words};
use serde_json::Value;

use super::marks::{Mark, covers, load_marks};
use crate::Outcome;

/// The depths at which evidence for one claim is measured.
const DEPTHS: [usize; 2] = [6, 12];

/// What to run.
#[derive(Default)]
pub struct Wanted {
    /// Only stories with an odd (open) or even (blind) number.
    pub parity: Option<u64>,
    pub prompts: Option<PathBuf>,
    pub answers: Option<PathBuf>,
    pub verbose: bool,
}

/// Counts of one group of marks.
#[derive(Default, Clone, Copy)]
struct Tally {
    marks: usize,
    at_depth: [usize; 2],
    in_prompt: usize,
    flagged: usize,
    judged: usize,
    ruled: usize,
}

#[derive(Default)]
struct Totals {
    contradictions: BTreeMap<String, Tally>,
    near: BTreeMap<String, Tally>,
    /// Alarms on sentences without a mark: deterministic, by a model.
    unmarked: [usize; 2],
    scenes: usize,
    refused: usize,
    unanswered: usize,
    words: usize,
    tokens: u64,
}

pub fn run(folder: &Path, wanted: &Wanted) -> Outcome {
    let mut totals = Totals::default();
    for story in stories(folder, wanted.parity)? {
        run_story(&story, wanted, &mut totals)?;
    }
    report(&totals, wanted.answers.is_some());
    Ok(())
}

fn stories(folder: &Path, parity: Option<u64>) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let number: Option<u64> = name
            .split('-')
            .next()
            .and_then(|number| number.parse().ok());
        let is_wanted = number.is_some_and(|n| parity.is_none_or(|parity| n % 2 == parity));
        if is_wanted && path.join("story.json").is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Loads the pages of a story: memory and manuscripts.
fn load_pages(story: &Path) -> Outcome<Vec<Page>> {
    let mut pages = Vec::new();
    for (folder, tier) in [("memory", Tier::L1), ("manuscripts", Tier::L2)] {
        let mut files: Vec<PathBuf> = std::fs::read_dir(story.join(folder))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ext| ext == "md"))
            .collect();
        files.sort();
        for file in files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            pages.push(Page {
                path: format!("{folder}/{name}"),
                tier,
                is_memory: true,
                form: None,
                text: std::fs::read_to_string(&file)?,
            });
        }
    }
    Ok(pages)
}

fn run_story(story: &Path, wanted: &Wanted, totals: &mut Totals) -> Outcome {
    let name = story
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let settings: Value =
        serde_json::from_str(&std::fs::read_to_string(story.join("story.json"))?)?;
    let pages = load_pages(story)?;
    let mut scenes: Vec<PathBuf> = std::fs::read_dir(story.join("scenes"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "md"))
        .collect();
    scenes.sort();
    for scene in scenes {
        let draft = std::fs::read_to_string(&scene)?;
        let (chapter, marks) = load_marks(&scene.with_extension("json"), &draft, &pages)
            .map_err(|fault| format!("{}: {fault}", scene.display()))?;
        let bounds = Bounds {
            k: DEPTHS[1],
            chapter: chapter_number(&chapter),
            ..Bounds::default()
        };
        let corpus = Corpus::of(&pages, bounds.chapter);
        let claims = cut_claims(&draft);
        let (checked, asked) = check(&corpus, &draft, &claims, &bounds);
        let stem = scene
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let run = SceneRun {
            name: format!("{name}-{stem}"),
            language: settings["language"].as_str().unwrap_or("en"),
            draft: &draft,
            claims: &claims,
            checked: &checked,
            asked: &asked,
            marks: &marks,
        };
        run.measure(wanted, totals)?;
    }
    Ok(())
}

/// A scene file with everything that was found about it.
struct SceneRun<'r> {
    name: String,
    language: &'r str,
    draft: &'r str,
    claims: &'r [Claim],
    checked: &'r [Checked],
    asked: &'r [SceneEvidence],
    marks: &'r [Mark],
}

impl SceneRun<'_> {
    fn measure(&self, wanted: &Wanted, totals: &mut Totals) -> Outcome {
        totals.words += count_words(self.draft);
        totals.scenes += self.asked.len();
        let rulings = self.ask(wanted, totals)?;
        let judged = wanted.answers.is_some();
        let mut marked = vec![false; self.claims.len()];
        for mark in self.marks {
            let on = mark.claims_of(self.claims);
            on.iter().for_each(|nth| marked[*nth] = true);
            let tally = self.tally(mark, &on, judged.then_some(&rulings[..]));
            if wanted.verbose && mark.is_contradiction && tally.in_prompt == 0 {
                println!(
                    "  not in prompt {} {} {}: {}\n      {}",
                    self.name, mark.id, mark.kind, mark.quote, mark.deciding
                );
            }
            if wanted.verbose && !mark.is_contradiction && tally.flagged > 0 {
                println!(
                    "  false alarm {} {} {}: {}",
                    self.name, mark.id, mark.kind, mark.quote
                );
            }
            let groups = if mark.is_contradiction {
                &mut totals.contradictions
            } else {
                &mut totals.near
            };
            for group in [&mark.kind, self.language] {
                add(groups.entry(group.to_owned()).or_default(), &tally);
            }
        }
        for (nth, one) in self
            .checked
            .iter()
            .enumerate()
            .filter(|(nth, _)| !marked[*nth])
        {
            if has_conflict(one) {
                totals.unmarked[0] += 1;
                if wanted.verbose {
                    println!(
                        "  alarm without a mark {}: {} ({:?})",
                        self.name, one.claim.text, one.findings
                    );
                }
            }
            totals.unmarked[1] += usize::from(rulings.contains(&nth));
        }
        Ok(())
    }

    fn tally(&self, mark: &Mark, on: &[usize], rulings: Option<&[usize]>) -> Tally {
        let places: Vec<&Evidence> = self.asked.iter().flat_map(|one| &one.evidence).collect();
        let at = |depth: usize| {
            let top = |nth: &usize| self.checked[*nth].evidence.iter().take(depth);
            let found: Vec<&Evidence> = on.iter().flat_map(top).collect();
            usize::from(covers(&found, mark))
        };
        Tally {
            marks: 1,
            at_depth: DEPTHS.map(at),
            in_prompt: usize::from(covers(&places, mark)),
            flagged: usize::from(on.iter().any(|nth| has_conflict(&self.checked[*nth]))),
            judged: usize::from(rulings.is_some()),
            ruled: usize::from(rulings.is_some_and(|all| on.iter().any(|nth| all.contains(nth)))),
        }
    }

    /// Writes the prompts and reads the answers of a judge. Returns the claims it reports.
    fn ask(&self, wanted: &Wanted, totals: &mut Totals) -> Outcome<Vec<usize>> {
        let mut rulings = Vec::new();
        let language = PromptLanguage::of(self.draft);
        for asked in self.asked {
            let prompt = render_prompt(asked, self.claims, &self.name, language);
            totals.tokens += Counter::O200k.count(&prompt).0;
            let file = format!("{}-{}", self.name, asked.scene.number);
            if let Some(folder) = &wanted.prompts {
                std::fs::create_dir_all(folder)?;
                std::fs::write(folder.join(format!("{file}.md")), &prompt)?;
            }
            let Some(folder) = &wanted.answers else {
                continue;
            };
            let Ok(answer) = std::fs::read_to_string(folder.join(format!("{file}.json"))) else {
                totals.unanswered += 1;
                continue;
            };
            match read_rulings(&answer, Answered::Earlier, asked, self.claims) {
                Ok(found) => rulings.extend(found.into_iter().map(|ruling| ruling.claim)),
                Err(fault) => {
                    totals.refused += 1;
                    println!("  refused {file}: {fault}");
                }
            }
        }
        Ok(rulings)
    }
}

fn has_conflict(checked: &Checked) -> bool {
    checked
        .findings
        .iter()
        .any(|judged| judged.finding.conflict)
}

fn add(sum: &mut Tally, one: &Tally) {
    sum.marks += one.marks;
    sum.at_depth
        .iter_mut()
        .zip(one.at_depth)
        .for_each(|(sum, one)| *sum += one);
    sum.in_prompt += one.in_prompt;
    sum.flagged += one.flagged;
    sum.judged += one.judged;
    sum.ruled += one.ruled;
}

fn report(totals: &Totals, judged: bool) {
    let languages = ["en", "zh", "mixed"];
    for (title, groups) in [
        ("contradictions", &totals.contradictions),
        ("near-misses", &totals.near),
    ] {
        println!(
            "{title:<16}{:>6}{:>9}{:>9}{:>9}{:>9}{:>9}",
            "marks", "k = 6, %", "k = 12", "prompt", "rules", "model"
        );
        let is_language = |name: &str| languages.contains(&name);
        let mut sum = Tally::default();
        let kinds = groups.iter().filter(|(name, _)| !is_language(name));
        kinds.clone().for_each(|(_, tally)| add(&mut sum, tally));
        let by_language = groups.iter().filter(|(name, _)| is_language(name));
        for (name, tally) in kinds.chain(by_language) {
            print_row(name, tally);
        }
        print_row("all", &sum);
    }
    let sum = |groups: &BTreeMap<String, Tally>, value: fn(&Tally) -> usize| -> usize {
        let kinds = groups
            .iter()
            .filter(|(name, _)| !languages.contains(&name.as_str()));
        kinds.map(|(_, tally)| value(tally)).sum()
    };
    let precision = |found: usize, near: usize, unmarked: usize| {
        let alarms = near + unmarked;
        format!(
            "{found} found, {alarms} false alarms ({unmarked} on unmarked sentences), precision {:.3}",
            found as f64 / (found + alarms).max(1) as f64
        )
    };
    let flagged: fn(&Tally) -> usize = |tally| tally.flagged;
    let ruled: fn(&Tally) -> usize = |tally| tally.ruled;
    println!(
        "deterministic: {}",
        precision(
            sum(&totals.contradictions, flagged),
            sum(&totals.near, flagged),
            totals.unmarked[0]
        )
    );
    if judged {
        println!(
            "model: {}; {} answers refused, {} missing",
            precision(
                sum(&totals.contradictions, ruled),
                sum(&totals.near, ruled),
                totals.unmarked[1]
            ),
            totals.refused,
            totals.unanswered
        );
    }
    println!(
        "{} prompts, {} words, {} tokens: {:.0} for each 1,000 words",
        totals.scenes,
        totals.words,
        totals.tokens,
        totals.tokens as f64 * 1000.0 / totals.words.max(1) as f64
    );
}

fn print_row(name: &str, tally: &Tally) {
    let share = |count: usize| count as f64 * 100.0 / tally.marks.max(1) as f64;
    let model = match tally.judged {
        0 => "–".to_owned(),
        _ => format!("{:.1}", share(tally.ruled)),
    };
    println!(
        "  {name:<14}{:>6}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{model:>9}",
        tally.marks,
        share(tally.at_depth[0]),
        share(tally.at_depth[1]),
        share(tally.in_prompt),
        share(tally.flagged)
    );
}
