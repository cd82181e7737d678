//! Measures how often recall finds the sections that answer a question.
//!
//! `corpus.jsonl` holds texts in order; `queries.jsonl` holds questions with the ids of the texts
//! that answer them. Every group becomes its own project on disk, laid out as `--layout` says
//! (`layout`): Markdown files with one section per text, with its date and speaker as headings. No
//! id reaches the project. A question is asked on its own date or, if it has none, on the last date
//! of its group. The benchmark asks each question within its group through
//! `quipu_protocol::recall`, the function behind the command. A hit counts for the text that
//! contains its line.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use quipu_contract::Actor;
use quipu_protocol::{Ask, Project, recall};
use quipu_recall::{Date, Index, Options, date_of, differ_in_script};
use serde_json::Value;

use crate::Outcome;
use crate::layout::{Group, Layout, Text, open_project};

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
    /// The day on which it is asked.
    as_of: Option<Date>,
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

/// Returns the value of an option.
fn value<'a>(arguments: &'a [String], option: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|word| word == option)?;
    arguments.get(at + 1).map(String::as_str)
}

/// Runs the benchmark on one folder.
pub fn run(arguments: &[String]) -> Outcome {
    let folder = arguments.iter().find(|word| !word.starts_with("--"));
    let folder = Path::new(folder.ok_or("recall needs a folder")?);
    let layout = Layout::parse(value(arguments, "--layout").unwrap_or("session"))?;
    let mut groups = load_groups(&folder.join("corpus.jsonl"), layout)?;
    let mut asked = load_questions(&folder.join("queries.jsonl"))?;
    if let Some(first) = value(arguments, "--groups") {
        let first = first.parse()?;
        groups = groups.into_iter().take(first).collect();
        asked.retain(|asked| groups.contains_key(&asked.group));
    }
    let temporary = tempfile::tempdir()?;
    // Encoding takes minutes. With `--keep`, the next run reuses the projects.
    let home = value(arguments, "--keep").map_or(temporary.path().to_owned(), |kept| {
        Path::new(kept).join(layout.to_string().replace(':', "-"))
    });
    let words_only = arguments.iter().any(|word| word == "--no-model");
    let mut laid = BTreeMap::new();
    let mut indexing = Duration::ZERO;
    let (mut sections, mut texts) = (0, 0);
    for (number, (name, group)) in groups.into_iter().enumerate() {
        let (project, first, took) = open(&home.join(number.to_string()), &group, words_only)?;
        indexing += took;
        sections += first;
        texts += group.ids.values().map(Vec::len).sum::<usize>();
        laid.insert(name, Laid { group, project });
    }
    println!(
        "{}, layout {layout}: {} groups, {texts} texts, {sections} sections, {} questions; indexed in {:.1} s",
        folder.display(),
        laid.len(),
        asked.len(),
        indexing.as_secs_f64()
    );
    let places = load_places(&folder.join("corpus.jsonl"))?;
    if let Some(out) = value(arguments, "--features") {
        let strangers = match value(arguments, "--strangers") {
            Some(folder) => load_questions(&Path::new(folder).join("queries.jsonl"))?,
            None => Vec::new(),
        };
        return write_features(&laid, &asked, &strangers, &places, Path::new(out));
    }
    measure_bm25(&laid, &asked)?;
    let models: &[bool] = if words_only { &[false] } else { &[true, false] };
    for use_model in models {
        measure(&laid, &asked, &places, *use_model)?;
    }
    Ok(())
}

/// Opens the project of a group, writes its files and indexes them. Returns the number of sections
/// and the time that the index took.
fn open(root: &Path, group: &Group, words_only: bool) -> Outcome<(Project, usize, Duration)> {
    let project = open_project(root)?;
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
            ..ask("index", !words_only)
        },
    )?;
    Ok((project, first.answer.sections, started.elapsed()))
}

/// Builds a question with the settings that all benchmarks use.
pub fn ask(question: &str, use_model: bool) -> Ask<'_> {
    Ask {
        question,
        k: 10,
        within: None,
        kind: None,
        use_model,
        complete: false,
        as_of: None,
    }
}

fn measure(
    laid: &BTreeMap<String, Laid>,
    asked: &[Asked],
    places: &HashMap<String, usize>,
    use_model: bool,
) -> Outcome {
    let mut overall = Tally::default();
    let mut categories: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut halves = [Tally::default(); 2];
    let mut times: Vec<Duration> = Vec::new();
    let order: HashMap<&str, usize> = laid
        .keys()
        .enumerate()
        .map(|(place, group)| (group.as_str(), place))
        .collect();
    for question in asked {
        let Laid { group, project } = &laid[&question.group];
        let started = Instant::now();
        let ask = Ask {
            as_of: question.as_of.or(group.last_date),
            ..ask(&question.question, use_model)
        };
        let answer = recall(project, &Actor::Person, &ask)?.answer;
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
        // The weights were fitted on every other group (in a single group, on the questions whose
        // answer is at an even place).
        let half = if order.len() > 1 {
            order[question.group.as_str()]
        } else {
            question
                .gold
                .first()
                .and_then(|id| places.get(id))
                .copied()
                .unwrap_or_default()
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

/// Measures plain BM25 over the sections' texts, which no layout may fall below.
fn measure_bm25(laid: &BTreeMap<String, Laid>, asked: &[Asked]) -> Outcome {
    let mut overall = Tally::default();
    let options = Options {
        use_model: false,
        ..Options::default()
    };
    for question in asked {
        let Laid { group, project } = &laid[&question.group];
        let index = Index::open(&project.store.root().join(".quipu/recall"))?;
        let mut explained = index.explain(&question.question, &options)?.candidates;
        explained.sort_by(|a, b| b.features[0].total_cmp(&a.features[0]));
        let mut found: Vec<&str> = Vec::new();
        for section in &explained {
            let id = group.id(&section.path, section.line);
            if !found.contains(&id) && found.len() < 10 {
                found.push(id);
            }
        }
        overall.add(&found, &question.gold);
    }
    overall.line("plain BM25");
    Ok(())
}

/// Writes every candidate's features as lines of JSON, for `scripts/fit-ranking`. A question that
/// nothing answers has no gold: each question is also asked of the next group, and the questions of
/// another folder are asked if there is one group only.
fn write_features(
    laid: &BTreeMap<String, Laid>,
    asked: &[Asked],
    strangers: &[Asked],
    places: &HashMap<String, usize>,
    out: &Path,
) -> Outcome {
    let mut out = std::io::BufWriter::new(std::fs::File::create(out)?);
    let groups: Vec<&String> = laid.keys().collect();
    // The place of the answer in the corpus or, without one, of the question.
    let place_of = |number: usize, gold: &[String]| {
        gold.first()
            .and_then(|id| places.get(id))
            .copied()
            .unwrap_or(number)
    };
    let mut write = |number: usize, of: &str, ask: &Asked, gold: &[String]| -> Outcome {
        let Laid { group, project } = &laid[of];
        let index = Index::open(&project.store.root().join(".quipu/recall"))?;
        let rows = |use_model| -> Outcome<_> {
            let options = Options {
                use_model,
                as_of: ask.as_of.or(group.last_date),
                ..Options::default()
            };
            let mut rows = Vec::new();
            let explained = index.explain(&ask.question, &options)?;
            for section in explained.candidates {
                let id = group.id(&section.path, section.line);
                let right = gold.iter().any(|gold| gold == id);
                let is_turn = u8::from(section.is_turn);
                rows.push(serde_json::json!([
                    u8::from(right),
                    section.features,
                    is_turn
                ]));
            }
            Ok(((explained.known, explained.weight), rows))
        };
        let (((known, weight), words), (_, meaning)) = (rows(false)?, rows(true)?);
        let line = serde_json::json!({
            "group": of, "place": place_of(number, gold), "category": ask.category, "gold": gold.len(), "known": known, "weight": weight,
            "foreign": group.files.first().is_some_and(|(_, text)| differ_in_script(&ask.question, text)),
            "words": words, "meaning": meaning,
        });
        Ok(writeln!(out, "{line}")?)
    };
    for (number, ask) in asked.iter().enumerate() {
        write(number, &ask.group, ask, &ask.gold)?;
        let place = groups.iter().position(|group| **group == ask.group);
        if let (Some(place), true) = (place, groups.len() > 1) {
            write(number, groups[(place + 1) % groups.len()], ask, &[])?;
        }
    }
    if let [group] = groups[..] {
        strangers
            .iter()
            .enumerate()
            .try_for_each(|(number, ask)| write(number, group, ask, &[]))?;
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

fn load_groups(path: &Path, layout: Layout) -> Outcome<BTreeMap<String, Group>> {
    let mut groups: BTreeMap<String, Vec<Text>> = BTreeMap::new();
    for line in lines(path)? {
        let field = |name| text_of(&line, name).to_owned();
        groups.entry(field("group")).or_default().push(Text {
            id: field("id"),
            session: field("session"),
            date: field("date"),
            speaker: field("speaker"),
            text: field("text"),
        });
    }
    let laid = groups
        .into_iter()
        .map(|(name, texts)| (name, Group::new(texts, layout)));
    Ok(laid.collect())
}

/// Returns the position of each text in the corpus.
fn load_places(path: &Path) -> Outcome<HashMap<String, usize>> {
    let lines = lines(path)?;
    let ids = lines.iter().map(|line| text_of(line, "id").to_owned());
    Ok(ids.zip(0..).collect())
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
            as_of: date_of(text_of(&line, "date")),
        });
    }
    Ok(asked)
}
