//! How often recall finds the sections that answer a question.
//!
//! `corpus.jsonl` holds texts in order, `queries.jsonl` questions with the ids of the texts that
//! answer them. Every group becomes a project of its own: one file per session (or per text where
//! there are no sessions), one section per text, its date and speaker as headings. No id reaches the
//! index. A question is asked within its group through the function that the command calls.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use quipu_text::recall::{FileText, Index, Options, Section, Tier, Writer};
use serde_json::Value;

use crate::Outcome;

/// One group laid out as a project.
#[derive(Default)]
struct Project {
    files: Vec<FileText>,
    /// The id of the text behind each path and ordinal.
    ids: HashMap<(String, u32), String>,
}

struct Asked {
    group: String,
    question: String,
    gold: Vec<String>,
    category: String,
}

/// Sums of R@1, R@5, R@10 and all@5 over questions.
#[derive(Default, Clone, Copy)]
struct Tally {
    questions: usize,
    sums: [f64; 4],
}

impl Tally {
    fn add(&mut self, found: &[&str], gold: &[String]) {
        let within = |k: usize| {
            let top = &found[..found.len().min(k)];
            let hits = gold.iter().filter(|id| top.contains(&id.as_str())).count();
            hits as f64 / gold.len().max(1) as f64
        };
        self.questions += 1;
        self.sums[0] += within(1);
        self.sums[1] += within(5);
        self.sums[2] += within(10);
        self.sums[3] += if within(5) == 1.0 { 1.0 } else { 0.0 };
    }

    fn line(&self, name: &str) {
        let share = |sum: f64| 100.0 * sum / self.questions.max(1) as f64;
        let [one, five, ten, all] = self.sums.map(share);
        println!("  {name:<28}{:>6}{one:>8.1}{five:>8.1}{ten:>8.1}{all:>8.1}", self.questions);
    }
}

/// Runs the measurement over one folder.
pub fn run(arguments: &[String]) -> Outcome {
    let folder = arguments.iter().find(|word| !word.starts_with("--"));
    let folder = Path::new(folder.ok_or("recall needs a folder")?);
    let projects = load_projects(&folder.join("corpus.jsonl"))?;
    let asked = load_questions(&folder.join("queries.jsonl"))?;
    let temporary = tempfile::tempdir()?;
    // Encoding is slow: a folder that is kept lets the next run start from its indexes.
    let kept = arguments.iter().position(|word| word == "--keep");
    let home = kept.and_then(|at| arguments.get(at + 1)).map_or(temporary.path(), Path::new);
    let mut indexes = HashMap::new();
    let words_only = arguments.iter().any(|word| word == "--no-model");
    let started = Instant::now();
    for (number, (group, project)) in projects.iter().enumerate() {
        let place = home.join(number.to_string());
        if Index::open(&place).is_err() {
            let mut writer = Writer::create(&place)?;
            if words_only {
                writer.encode_at_most(0);
            }
            for file in &project.files {
                writer.replace(file)?;
            }
            writer.publish()?;
        }
        indexes.insert(group.as_str(), Index::open(&place)?);
    }
    let sections: usize = projects.values().flat_map(|project| &project.files).map(|file| file.sections.len()).sum();
    println!(
        "{}: {} groups, {sections} sections, {} questions; indexed in {:.1} s",
        folder.display(),
        projects.len(),
        asked.len(),
        started.elapsed().as_secs_f64()
    );
    if let Some(at) = arguments.iter().position(|word| word == "--features") {
        let out = arguments.get(at + 1).ok_or("--features needs a file")?;
        return write_features(&projects, &asked, &indexes, Path::new(out));
    }
    let models: &[bool] = if words_only { &[false] } else { &[true, false] };
    for use_model in models {
        measure(&projects, &asked, &indexes, *use_model)?;
    }
    Ok(())
}

fn measure(projects: &BTreeMap<String, Project>, asked: &[Asked], indexes: &HashMap<&str, Index>, use_model: bool) -> Outcome {
    let options = Options { k: 10, use_model, ..Options::default() };
    let mut overall = Tally::default();
    let mut categories: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut halves = [Tally::default(); 2];
    let mut times: Vec<Duration> = Vec::new();
    let order: HashMap<&str, usize> = projects.keys().enumerate().map(|(place, group)| (group.as_str(), place)).collect();
    for (number, ask) in asked.iter().enumerate() {
        let (project, index) = (&projects[&ask.group], &indexes[ask.group.as_str()]);
        let started = Instant::now();
        let answer = index.recall(&ask.question, &options)?;
        times.push(started.elapsed());
        let hits = answer.hits.iter();
        let found: Vec<&str> = hits.map(|hit| project.ids[&(hit.path.clone(), hit.ordinal)].as_str()).collect();
        overall.add(&found, &ask.gold);
        categories.entry(&ask.category).or_default().add(&found, &ask.gold);
        // Weights were fitted on every other group (every other question of a lone group).
        let half = if order.len() > 1 { order[ask.group.as_str()] } else { number };
        halves[half % 2].add(&found, &ask.gold);
    }
    times.sort();
    let name = if use_model { "with the encoder" } else { "words alone" };
    println!("\n  {name:<28}{:>6}{:>8}{:>8}{:>8}{:>8}", "n", "R@1", "R@5", "R@10", "all@5");
    overall.line("all");
    halves[0].line("the half fitted on");
    halves[1].line("the half held out");
    for (category, tally) in &categories {
        tally.line(category);
    }
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("  a question takes {:.2} ms at the median, {:.2} ms at p99", at(0.5), at(0.99));
    Ok(())
}

/// Writes every candidate's features as lines of JSON, for `scripts/fit-ranking`.
fn write_features(projects: &BTreeMap<String, Project>, asked: &[Asked], indexes: &HashMap<&str, Index>, out: &Path) -> Outcome {
    let mut out = std::io::BufWriter::new(std::fs::File::create(out)?);
    for ask in asked {
        let project = &projects[&ask.group];
        let explained = indexes[ask.group.as_str()].explain(&ask.question, &Options::default())?;
        let mut rows = Vec::new();
        for (path, ordinal, features) in explained {
            let gold = ask.gold.contains(&project.ids[&(path, ordinal)]);
            rows.push(serde_json::json!([u8::from(gold), features]));
        }
        let line = serde_json::json!({
            "group": ask.group, "category": ask.category, "gold": ask.gold.len(), "rows": rows,
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn lines(path: &Path) -> Outcome<Vec<Value>> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn text_of<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or("")
}

fn load_projects(path: &Path) -> Outcome<BTreeMap<String, Project>> {
    let mut projects: BTreeMap<String, Project> = BTreeMap::new();
    let mut last: HashMap<String, (String, u32)> = HashMap::new();
    for line in lines(path)? {
        let group = text_of(&line, "group").to_owned();
        let project = projects.entry(group.clone()).or_default();
        let (session, date) = (text_of(&line, "session"), text_of(&line, "date"));
        let known = last.get(&group).is_some_and(|(before, _)| before == session);
        if session.is_empty() || !known {
            let path = format!("sessions/{:04}.md", project.files.len() + 1);
            let (version, sections) = ("1".to_owned(), Vec::new());
            project.files.push(FileText { path, version, tier: Tier::L1, sections });
            last.insert(group, (session.to_owned(), 1));
        }
        let file = project.files.last_mut().ok_or("no file")?;
        let headings = [date, text_of(&line, "speaker")].into_iter().filter(|part| !part.is_empty());
        let text = text_of(&line, "text").to_owned();
        let next = last.get_mut(text_of(&line, "group")).ok_or("no session")?;
        let section = Section { line: next.1, heading_path: headings.map(str::to_owned).collect(), text };
        next.1 += section.text.lines().count() as u32 + 3;
        let ordinal = file.sections.len() as u32;
        project.ids.insert((file.path.clone(), ordinal), text_of(&line, "id").to_owned());
        file.sections.push(section);
    }
    Ok(projects)
}

fn load_questions(path: &Path) -> Outcome<Vec<Asked>> {
    let mut asked = Vec::new();
    for line in lines(path)? {
        let gold = line["gold"].as_array().ok_or("a question without gold")?;
        asked.push(Asked {
            group: text_of(&line, "group").to_owned(),
            question: text_of(&line, "question").to_owned(),
            gold: gold.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect(),
            category: text_of(&line, "category").to_owned(),
        });
    }
    Ok(asked)
}
