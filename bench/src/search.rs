//! Measures the speed of recall beside ripgrep over the same tree and SQLite FTS5 over the same
//! texts.
//!
//! The texts are synthetic: words and Chinese characters drawn by Zipf's law, so that common and
//! rare terms occur as in prose. They are stored in an ordinary project. The new-process case runs
//! `quipu recall` from start to exit; the in-process case calls `quipu_protocol::recall`. Both
//! check every file each time. The machine may be shared, so CPU time is printed beside elapsed
//! time.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use quipu_contract::{Actor, ProjectPath};
use quipu_protocol::{Ask, recall};
use quipu_store::Change;
use rusqlite::Connection;

use crate::Outcome;
use crate::layout::open_project;
use crate::machine::program;
use crate::recall::ask;

const PER_FILE: usize = 50;
/// Maximum number of distinct texts when the encoder is used; further texts repeat.
const DIFFERENT: usize = 20_000;

/// A small uniform random generator with a fixed seed: the same texts on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.roll() >> 11) % end
    }

    /// Draws a rank from `common` to `end` with probability proportional to 1/rank.
    fn rank(&mut self, end: f64, common: u64) -> u64 {
        loop {
            let even = (self.roll() >> 11) as f64 / (1u64 << 53) as f64;
            let rank = end.powf(even) as u64;
            if rank >= common {
                return rank;
            }
        }
    }
}

/// The words and characters of the texts, most frequent first: from `--words FILE`, or synthetic.
#[derive(Default)]
struct Vocabulary {
    words: Vec<String>,
    characters: Vec<char>,
}

impl Vocabulary {
    /// Collects the words and Chinese characters of a text, sorted by frequency.
    fn of(text: &str) -> Self {
        let is_chinese = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        let mut words: HashMap<String, usize> = HashMap::new();
        let mut characters: HashMap<char, usize> = HashMap::new();
        for word in text
            .split(|c: char| !c.is_alphabetic())
            .filter(|word| !word.is_empty())
        {
            if word.is_ascii() {
                *words.entry(word.to_lowercase()).or_default() += 1;
            }
            word.chars()
                .filter(|c| is_chinese(*c))
                .for_each(|c| *characters.entry(c).or_default() += 1);
        }
        Self {
            words: by_count(words),
            characters: by_count(characters),
        }
    }

    fn word(&self, dice: &mut Dice, common: u64) -> String {
        let rank = dice.rank(
            if self.words.is_empty() {
                40_000.0
            } else {
                self.words.len() as f64
            },
            common,
        );
        match self.words.get(rank as usize) {
            Some(word) => word.clone(),
            None => made_up(rank),
        }
    }

    fn character(&self, dice: &mut Dice, common: u64) -> char {
        let rank = dice.rank(
            if self.characters.is_empty() {
                4000.0
            } else {
                self.characters.len() as f64
            },
            common,
        );
        let made_up = char::from_u32(0x4e00 + rank as u32).unwrap_or('一');
        self.characters
            .get(rank as usize)
            .copied()
            .unwrap_or(made_up)
    }

    fn text(&self, dice: &mut Dice) -> String {
        if dice.below(4) == 0 {
            let length = 20 + dice.below(60);
            (0..length)
                .map(|_| self.character(dice, 1))
                .chain(['。'])
                .collect()
        } else {
            let length = 10 + dice.below(40);
            (0..length).map(|_| self.word(dice, 1) + " ").collect()
        }
    }

    /// Draws five words or six characters, skipping the most frequent. Those represent "the", "of"
    /// and 的, which nobody searches for.
    fn question(&self, dice: &mut Dice) -> String {
        if dice.below(4) == 0 {
            (0..6).map(|_| self.character(dice, 30)).collect()
        } else {
            (0..5).map(|_| self.word(dice, 100) + " ").collect()
        }
    }
}

fn by_count<T: Ord>(counts: HashMap<T, usize>) -> Vec<T> {
    let mut counted: Vec<(T, usize)> = counts.into_iter().collect();
    counted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counted.into_iter().map(|(what, _)| what).collect()
}

fn made_up(rank: u64) -> String {
    const SYLLABLES: [&str; 16] = [
        "ka", "ro", "mi", "ten", "sol", "va", "ner", "qui", "pu", "lan", "dor", "este", "wi",
        "gra", "hol", "ber",
    ];
    let mut out = String::new();
    let mut left = rank + 16;
    while left > 0 {
        out.push_str(SYLLABLES[(left % 16) as usize]);
        left /= 16;
    }
    out
}

/// Runs the benchmark: `search [SECTIONS…] [--model] [--words FILE]… [--keep DIR] [--running]`; the
/// default sizes are 10,000 and 1,000,000. `--running` skips new processes, updates and other
/// tools, for profiling.
pub fn run(arguments: &[String]) -> Outcome {
    let mut sizes: Vec<usize> = arguments
        .iter()
        .filter_map(|word| word.parse().ok())
        .collect();
    if sizes.is_empty() {
        sizes = vec![10_000, 1_000_000];
    }
    let with_model = arguments.iter().any(|word| word == "--model");
    let kept = arguments
        .iter()
        .position(|word| word == "--keep")
        .and_then(|at| arguments.get(at + 1));
    let mut text = String::new();
    for (_, file) in arguments
        .iter()
        .zip(&arguments[1.min(arguments.len())..])
        .filter(|(option, _)| *option == "--words")
    {
        text.push_str(&std::fs::read_to_string(file)?);
    }
    let words = Vocabulary::of(&text);
    for size in sizes {
        let temporary = tempfile::tempdir()?;
        let home = kept.map_or(temporary.path().to_owned(), |kept| {
            Path::new(kept).join(size.to_string())
        });
        measure(
            &home,
            size,
            with_model,
            arguments.iter().any(|word| word == "--running"),
            &words,
        )?;
    }
    Ok(())
}

/// Asks one question and prints how long it took.
pub fn once(root: &Path, question: &str, use_model: bool) -> Outcome {
    let started = Instant::now();
    let project = open_project(root)?;
    let opened = started.elapsed();
    let recalled = recall(&project, &Actor::Person, &ask(question, use_model))?;
    let first = recalled
        .answer
        .hits
        .first()
        .map_or("", |hit| hit.path.as_str());
    println!(
        "{opened:?} to open, {:?} in all: {} sections, {first}",
        started.elapsed(),
        recalled.answer.sections
    );
    Ok(())
}

fn measure(
    root: &Path,
    size: usize,
    with_model: bool,
    only_running: bool,
    words: &Vocabulary,
) -> Outcome {
    let laid = root.join("quipu.toml").exists();
    let project = open_project(root)?;
    let mut dice = Dice(42);
    let mut database = Connection::open_in_memory()?;
    database.execute_batch("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter')")?;
    let (mut bytes, mut theirs) = (0, 0.0);
    let few: Vec<String> = if with_model && size > DIFFERENT {
        (0..DIFFERENT).map(|_| words.text(&mut dice)).collect()
    } else {
        Vec::new()
    };
    for number in 0..size / PER_FILE {
        let mut markdown = String::new();
        let mut texts = Vec::with_capacity(PER_FILE);
        for at in 0..PER_FILE {
            let text = if few.is_empty() {
                words.text(&mut dice)
            } else {
                few[dice.below(DIFFERENT as u64) as usize].clone()
            };
            bytes += text.len();
            markdown.push_str(&format!("## Section {at}\n\n{text}\n\n"));
            texts.push(text);
        }
        if !laid {
            let folder = root.join(format!("sessions/{:03}", number / 100));
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join(format!("{number:06}.md")), markdown)?;
        }
        if only_running {
            continue;
        }
        let started = Instant::now();
        let batch = database.transaction()?;
        for text in &texts {
            batch
                .prepare_cached("INSERT INTO t VALUES (?)")?
                .execute([text])?;
        }
        batch.commit()?;
        theirs += started.elapsed().as_secs_f64();
    }
    let megabytes = bytes as f64 / 1e6;
    println!(
        "\n{size} sections in {} files, {megabytes:.1} MB of text",
        size / PER_FILE
    );
    if !few.is_empty() {
        println!(
            "  {DIFFERENT} different texts, which repeat: vectors are made once for each text"
        );
    }
    let started = Instant::now();
    project.store.scan_status()?;
    println!(
        "  adopting the files: {:.1} s",
        started.elapsed().as_secs_f64()
    );
    let started = Instant::now();
    recall(&project, &Actor::Person, &ask("index", false))?;
    let ours = started.elapsed().as_secs_f64();
    print!(
        "  indexing words: {ours:.1} s, {:.1} MB/s",
        megabytes / ours
    );
    println!(
        "{}",
        if only_running {
            String::new()
        } else {
            format!(" (SQLite FTS5 {:.1} MB/s)", megabytes / theirs)
        }
    );
    if with_model {
        let (started, before) = (Instant::now(), cpu());
        recall(
            &project,
            &Actor::Person,
            &Ask {
                complete: true,
                ..ask("index", true)
            },
        )?;
        println!(
            "  encoding: {:.1} s, {:.1} s on the processor",
            started.elapsed().as_secs_f64(),
            (cpu() - before) / 1e3
        );
    }
    let index: u64 = std::fs::read_dir(root.join(".quipu/recall"))?
        .map(|entry| Ok(entry?.metadata()?.len()))
        .sum::<Outcome<u64>>()?;
    println!("  index on disk: {:.0} MB", index as f64 / 1e6);
    // Half a gigabyte of index is being written back. No measured question should wait for that.
    Command::new("sync").status()?;
    println!(
        "  {:<40}{:>10}{:>10}{:>10}{:>14}",
        "", "best ms", "p50 ms", "p99 ms", "processor ms"
    );
    for model in if with_model {
        &[false, true][..]
    } else {
        &[false]
    } {
        let name = if *model { "encoder" } else { "words" };
        if !only_running {
            let quipu = program();
            row(
                &format!("quipu recall, {name}"),
                40,
                words,
                &mut Dice(7),
                |question| {
                    let mut command = Command::new(&quipu);
                    command
                        .args(["recall", question, "-k", "10"])
                        .current_dir(root)
                        .stdout(Stdio::null())
                        .stderr(Stdio::null());
                    if !model {
                        command.arg("--no-model");
                    }
                    // ripgrep exits with 1 if it finds nothing.
                    command
                        .status()?
                        .code()
                        .filter(|code| *code < 2)
                        .map(drop)
                        .ok_or_else(|| "the process failed".into())
                },
            )?;
        }
        row(
            &format!("running process, {name}"),
            200,
            words,
            &mut Dice(7),
            |question| Ok(recall(&project, &Actor::Person, &ask(question, *model)).map(drop)?),
        )?;
    }
    if only_running {
        return Ok(());
    }
    let grows = ProjectPath::parse("sessions/000/000000.md")?;
    let mut dice = Dice(9);
    let mut append = || -> Outcome {
        let entry = format!("\n## Appended\n\n{}\n", words.question(&mut dice));
        project
            .store
            .validate(Change::by(&Actor::Person).append(&grows, entry))?
            .publish()?;
        Ok(())
    };
    row_after(
        "update after one append, and an answer",
        20,
        words,
        &mut Dice(7),
        &mut append,
        |question| Ok(recall(&project, &Actor::Person, &ask(question, with_model)).map(drop)?),
    )?;
    row(
        "SQLite FTS5, running process",
        30,
        words,
        &mut Dice(7),
        |question| {
            let terms = question
                .split_whitespace()
                .map(|word| format!("\"{word}\""));
            let terms = terms.collect::<Vec<_>>().join(" OR ");
            let mut found = database
                .prepare_cached("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10")?;
            found
                .query_map([terms], |row| row.get::<_, i64>(0))?
                .for_each(drop);
            Ok(())
        },
    )?;
    row(
        "ripgrep over the tree, one word",
        10,
        words,
        &mut Dice(7),
        |question| {
            let word = question.split_whitespace().next().unwrap_or("a");
            Command::new("rg")
                .args(["-ic", word])
                .arg(root.join("sessions"))
                .output()?;
            Ok(())
        },
    )
}

fn row(
    name: &str,
    count: usize,
    words: &Vocabulary,
    dice: &mut Dice,
    ask: impl FnMut(&str) -> Outcome,
) -> Outcome {
    row_after(name, count, words, dice, &mut || Ok(()), ask)
}

/// Like `row`, with unmeasured work before each question.
fn row_after(
    name: &str,
    count: usize,
    words: &Vocabulary,
    dice: &mut Dice,
    prepare: &mut dyn FnMut() -> Outcome,
    mut ask: impl FnMut(&str) -> Outcome,
) -> Outcome {
    let mut times = Vec::new();
    let before = cpu();
    for _ in 0..count {
        let question = words.question(dice);
        prepare()?;
        let started = Instant::now();
        ask(&question)?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let processor = (cpu() - before) / count as f64;
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    println!(
        "  {name:<40}{:>10.2}{:>10.2}{:>10.2}{processor:>14.2}",
        times[0],
        at(0.5),
        at(0.99)
    );
    Ok(())
}

/// CPU milliseconds so far, of this process and of the children it has waited for. The kernel
/// counts in hundredths of a second, so a reliable figure needs many questions.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    fields
        .skip(11)
        .take(4)
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        * 10.0
}
