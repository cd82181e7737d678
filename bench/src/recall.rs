//! Measures how often recall finds the sections that answer a question.
//!
//! `corpus.jsonl` holds texts in order; `queries.jsonl` holds questions with the ids of the texts
//! that answer them. Every group becomes its own project on disk: one Markdown file per session (or
//! per text if there are no sessions), one section per text, with its date and speaker as headings.
//! No id reaches the project. The benchmark asks each question within its group through
//! `quipu_protocol::recall`, the function behind the command. A hit counts for the text that
//! contains its line.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use quipu_contract::Actor;
use quipu_protocol::{Ask, Project, recall};
use quipu_text::recall::{Index, Options};
use serde_json::Value;

use crate::Outcome;
use crate::layout::{escaped, open_project};

/// One group as files.
#[derive(Default)]
struct Group {
    files: Vec<(String, String)>,
    /// The first line and the id of each text, by file.
    ids: HashMap<String, Vec<(u32, String)>>,
}

impl Group {
    /// Returns the id of the text that contains a line.
    fn id(&self, path: &str, line: u32) -> &str {
        let texts = &self.ids[path];
        &texts[texts.partition_point(|(first, _)| *first <= line).max(1) - 1].1
    }
}

/// An open project with the files of a group.
struct Laid {
    group: Group,
    project: Project,
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
        println!(
            "  {name:<28}{:>6}{one:>8.1}{five:>8.1}{ten:>8.1}{all:>8.1}",
            self.questions
        );
    }
}

/// Runs the benchmark on one folder.
pub fn run(arguments: &[String]) -> Outcome {
    let folder = arguments.iter().find(|word| !word.starts_with("--"));
    let folder = Path::new(folder.ok_or("recall needs a folder")?);
    let groups = load_groups(&folder.join("corpus.jsonl"))?;
    let asked = load_questions(&folder.join("queries.jsonl"))?;
    let temporary = tempfile::tempdir()?;
    // Encoding takes minutes. With `--keep`, the next run reuses the projects.
    let kept = arguments.iter().position(|word| word == "--keep");
    let home = kept
        .and_then(|at| arguments.get(at + 1))
        .map_or(temporary.path(), Path::new);
    let words_only = arguments.iter().any(|word| word == "--no-model");
    let mut laid = BTreeMap::new();
    let mut indexing = Duration::ZERO;
    let (mut sections, mut texts) = (0, 0);
    for (number, (name, group)) in groups.into_iter().enumerate() {
        let root = home.join(number.to_string());
        let project = open_project(&root)?;
        for (path, text) in &group.files {
            if !root.join(path).exists() {
                std::fs::write(root.join(path), text)?;
            }
        }
        // The first question indexes the files and encodes them all.
        let started = Instant::now();
        let first = recall(
            &project,
            &Actor::Person,
            &Ask {
                complete: !words_only,
                ..ask("?", !words_only)
            },
        )?;
        indexing += started.elapsed();
        sections += first.answer.sections;
        texts += group.ids.values().map(Vec::len).sum::<usize>();
        laid.insert(name, Laid { group, project });
    }
    println!(
        "{}: {} groups, {texts} texts, {sections} sections, {} questions; indexed in {:.1} s",
        folder.display(),
        laid.len(),
        asked.len(),
        indexing.as_secs_f64()
    );
    if let Some(at) = arguments.iter().position(|word| word == "--features") {
        let out = arguments.get(at + 1).ok_or("--features needs a file")?;
        return write_features(&laid, &asked, Path::new(out));
    }
    let models: &[bool] = if words_only { &[false] } else { &[true, false] };
    for use_model in models {
        measure(&laid, &asked, *use_model)?;
    }
    Ok(())
}

/// Builds a question with the settings that all benchmarks use.
pub fn ask(question: &str, use_model: bool) -> Ask<'_> {
    Ask {
        question,
        k: 10,
        within: None,
        tier: None,
        use_model,
        complete: false,
    }
}

fn measure(laid: &BTreeMap<String, Laid>, asked: &[Asked], use_model: bool) -> Outcome {
    let mut overall = Tally::default();
    let mut categories: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut halves = [Tally::default(); 2];
    let mut times: Vec<Duration> = Vec::new();
    let order: HashMap<&str, usize> = laid
        .keys()
        .enumerate()
        .map(|(place, group)| (group.as_str(), place))
        .collect();
    for (number, question) in asked.iter().enumerate() {
        let Laid { group, project } = &laid[&question.group];
        let started = Instant::now();
        let answer = recall(project, &Actor::Person, &ask(&question.question, use_model))?.answer;
        times.push(started.elapsed());
        let mut found: Vec<&str> = Vec::new();
        for hit in &answer.hits {
            let id = group.id(&hit.path, hit.line);
            if !found.contains(&id) {
                found.push(id);
            }
        }
        overall.add(&found, &question.gold);
        categories
            .entry(&question.category)
            .or_default()
            .add(&found, &question.gold);
        // The weights were fitted on every other group (every other question of a single group).
        let half = if order.len() > 1 {
            order[question.group.as_str()]
        } else {
            number
        };
        halves[half % 2].add(&found, &question.gold);
    }
    times.sort();
    let name = if use_model {
        "with the encoder"
    } else {
        "words alone"
    };
    println!(
        "\n  {name:<28}{:>6}{:>8}{:>8}{:>8}{:>8}",
        "n", "R@1", "R@5", "R@10", "all@5"
    );
    overall.line("all");
    halves[0].line("the half fitted on");
    halves[1].line("the half held out");
    for (category, tally) in &categories {
        tally.line(category);
    }
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "  a question takes {:.2} ms at the median, {:.2} ms at p99",
        at(0.5),
        at(0.99)
    );
    Ok(())
}

/// Writes every candidate's features as lines of JSON, for `scripts/fit-ranking`.
fn write_features(laid: &BTreeMap<String, Laid>, asked: &[Asked], out: &Path) -> Outcome {
    let mut out = std::io::BufWriter::new(std::fs::File::create(out)?);
    for ask in asked {
        let Laid { group, project } = &laid[&ask.group];
        let index = Index::open(&project.store.root().join(".quipu/recall"))?;
        let explained = index.explain(&ask.question, &Options::default())?;
        let mut rows = Vec::new();
        for (path, line, features) in explained {
            let gold = ask.gold.iter().any(|id| id == group.id(&path, line));
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
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

fn text_of<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or("")
}

fn load_groups(path: &Path) -> Outcome<BTreeMap<String, Group>> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut last: HashMap<String, String> = HashMap::new();
    for line in lines(path)? {
        let name = text_of(&line, "group").to_owned();
        let group = groups.entry(name.clone()).or_default();
        let (session, date, speaker) = (
            text_of(&line, "session"),
            text_of(&line, "date"),
            text_of(&line, "speaker"),
        );
        if session.is_empty() || last.get(&name).is_none_or(|before| before != session) {
            let path = format!("sessions/{:04}.md", group.files.len() + 1);
            let heading = if date.is_empty() {
                String::new()
            } else {
                format!("# {date}\n\n")
            };
            group.files.push((path, heading));
            last.insert(name, session.to_owned());
        }
        let (path, text) = group.files.last_mut().ok_or("no file")?;
        let texts = group.ids.entry(path.clone()).or_default();
        texts.push((
            text.lines().count() as u32 + 1,
            text_of(&line, "id").to_owned(),
        ));
        if !speaker.is_empty() {
            text.push_str(&format!("## {speaker}\n\n"));
        }
        text.push_str(&escaped(text_of(&line, "text")));
        text.push('\n');
    }
    Ok(groups)
}

fn load_questions(path: &Path) -> Outcome<Vec<Asked>> {
    let mut asked = Vec::new();
    for line in lines(path)? {
        let gold = line["gold"].as_array().ok_or("a question without gold")?;
        asked.push(Asked {
            group: text_of(&line, "group").to_owned(),
            question: text_of(&line, "question").to_owned(),
            gold: gold
                .iter()
                .filter_map(|id| id.as_str().map(str::to_owned))
                .collect(),
            category: text_of(&line, "category").to_owned(),
        });
    }
    Ok(asked)
}
