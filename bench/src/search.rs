//! How fast recall is, beside ripgrep over the same tree and SQLite FTS5 over the same texts.
//!
//! Texts are made up: words and Chinese characters drawn by Zipf's law, so that common and rare terms
//! occur as they do in prose. A fresh process is this program run again; its time holds everything
//! from start to exit.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use quipu_text::recall::{FileText, Index, Options, Section, Tier, Writer};
use rusqlite::Connection;

use crate::Outcome;

const PER_FILE: usize = 50;

/// A small generator of even numbers; the same texts on every machine.
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

    /// A rank from 1 to `end`, drawn with chance 1/rank.
    fn zipf(&mut self, end: f64) -> u64 {
        let even = (self.roll() >> 11) as f64 / (1u64 << 53) as f64;
        end.powf(even) as u64
    }
}

fn word(rank: u64) -> String {
    const SYLLABLES: [&str; 16] =
        ["ka", "ro", "mi", "ten", "sol", "va", "ner", "qui", "pu", "lan", "dor", "este", "wi", "gra", "hol", "ber"];
    let mut out = String::new();
    let mut left = rank + 16;
    while left > 0 {
        out.push_str(SYLLABLES[(left % 16) as usize]);
        left /= 16;
    }
    out
}

fn text(dice: &mut Dice) -> String {
    let mut out = String::new();
    if dice.below(4) == 0 {
        for _ in 0..20 + dice.below(60) {
            out.extend(char::from_u32(0x4e00 + dice.zipf(4000.0) as u32));
        }
        out.push('。');
    } else {
        for _ in 0..10 + dice.below(40) {
            out.push_str(&word(dice.zipf(40_000.0)));
            out.push(' ');
        }
    }
    out
}

/// Five words or six characters, not among the commonest: those stand for "the", "of" and 的, which
/// no question is searched by.
fn question(dice: &mut Dice) -> String {
    let mut rank = |end: f64, common: u64| {
        loop {
            let rank = dice.zipf(end);
            if rank >= common {
                return rank;
            }
        }
    };
    if rank(4.0, 1) == 1 {
        (0..6).filter_map(|_| char::from_u32(0x4e00 + rank(4000.0, 30) as u32)).collect()
    } else {
        (0..5).map(|_| word(rank(40_000.0, 100)) + " ").collect()
    }
}

/// Runs the measurement: `search [SECTIONS…]`, by default 10,000 and 1,000,000.
pub fn run(arguments: &[String]) -> Outcome {
    if let [flag, folder, question, model] = arguments
        && flag == "--ask"
    {
        let options = Options { use_model: model == "model", ..Options::default() };
        let answer = Index::open(Path::new(folder))?.recall(question, &options)?;
        println!("{}", answer.hits.len());
        return Ok(());
    }
    let mut sizes: Vec<usize> = arguments.iter().filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![10_000, 1_000_000];
    }
    let with_model = arguments.iter().any(|word| word == "--model");
    for size in sizes {
        measure(size, with_model)?;
    }
    Ok(())
}

fn measure(size: usize, with_model: bool) -> Outcome {
    let home = tempfile::tempdir()?;
    let (tree, folder) = (home.path().join("tree"), home.path().join("index"));
    std::fs::create_dir(&tree)?;
    let mut dice = Dice(42);
    let mut database = Connection::open(home.path().join("fts.db"))?;
    database.execute_batch("PRAGMA synchronous=OFF; CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter')")?;
    let (mut bytes, mut ours, mut theirs) = (0, 0.0, 0.0);
    let mut writer = Writer::create(&folder)?;
    writer.encode_at_most(if with_model { usize::MAX } else { 0 });
    let mut last = None;
    for number in 0..size / PER_FILE {
        let mut file = FileText { path: format!("{number:06}.md"), version: "1".into(), tier: Tier::L1, sections: Vec::new() };
        let mut markdown = String::new();
        for at in 0..PER_FILE {
            let text = text(&mut dice);
            bytes += text.len();
            markdown.push_str(&format!("## Section {at}\n\n{text}\n\n"));
            let heading_path = vec![format!("Section {at}")];
            file.sections.push(Section { line: 4 * at as u32 + 1, heading_path, text });
        }
        std::fs::write(tree.join(&file.path), markdown)?;
        let started = Instant::now();
        writer.replace(&file)?;
        ours += started.elapsed().as_secs_f64();
        let started = Instant::now();
        let batch = database.transaction()?;
        for section in &file.sections {
            batch.prepare_cached("INSERT INTO t VALUES (?)")?.execute([&section.text])?;
        }
        batch.commit()?;
        theirs += started.elapsed().as_secs_f64();
        last = Some(file);
    }
    let started = Instant::now();
    writer.publish()?;
    ours += started.elapsed().as_secs_f64();
    let index = Index::open(&folder)?;
    let megabytes = bytes as f64 / 1e6;
    println!("\n{size} sections, {megabytes:.1} MB of text, {} segments", index.segments());
    println!("  {:<44}{:>10}{:>10}", "", "p50 ms", "p99 ms");
    println!("  Quipu: indexing {:.1} MB/s, {:.0} MB on disk", megabytes / ours, index.size() as f64 / 1e6);
    for model in if with_model { &["words", "model"][..] } else { &["words"] } {
        let options = Options { use_model: *model == "model", ..Options::default() };
        let program = std::env::current_exe()?;
        let folder = folder.to_str().ok_or("a path that is not text")?;
        row(&format!("Quipu, fresh process, {model}"), 40, &mut Dice(7), |question| {
            let run = Command::new(&program).args(["search", "--ask", folder, question, model]).output()?;
            run.status.success().then_some(()).ok_or_else(|| "the process failed".into())
        })?;
        row(&format!("Quipu, running process, {model}"), 200, &mut Dice(7), |question| {
            Ok(index.recall(question, &options).map(|_| ())?)
        })?;
    }
    let mut file = last.ok_or("no files")?;
    row("Quipu, update after one append", 20, &mut Dice(9), |question| {
        let heading_path = vec!["Appended".to_owned()];
        file.sections.push(Section { line: 999, heading_path, text: question.to_owned() });
        file.version.push('+');
        let mut writer = Writer::open(&folder)?;
        writer.encode_at_most(if with_model { usize::MAX } else { 0 });
        writer.replace(&file)?;
        writer.publish()?;
        Ok(())
    })?;
    println!("  SQLite FTS5: indexing {:.1} MB/s", megabytes / theirs);
    row("SQLite FTS5, running process", 30, &mut Dice(7), |question| {
        let terms = question.split_whitespace().map(|word| format!("\"{word}\""));
        let terms = terms.collect::<Vec<_>>().join(" OR ");
        let mut found = database.prepare_cached("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10")?;
        found.query_map([terms], |row| row.get::<_, i64>(0))?.for_each(drop);
        Ok(())
    })?;
    row("ripgrep over the tree, one word", 10, &mut Dice(7), |question| {
        let word = question.split_whitespace().next().unwrap_or("a");
        Command::new("rg").args(["-ic", word]).arg(&tree).output()?;
        Ok(())
    })
}

fn row(name: &str, count: usize, dice: &mut Dice, mut ask: impl FnMut(&str) -> Outcome) -> Outcome {
    let mut times = Vec::new();
    for _ in 0..count {
        let question = question(dice);
        let started = Instant::now();
        ask(&question)?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    println!("  {name:<44}{:>10.2}{:>10.2}", at(0.5), at(0.99));
    Ok(())
}
