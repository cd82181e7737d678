//! Measures a text and turns the measurements into scores from 1 to 5.
//!
//! A measure is a number with a scale, never an opinion. The words of a metric's name select the
//! measure. If none matches, the score depends on how much the text says on the subject.

use quipu_contract::Language;

use crate::review::{prose_lines, sentences};
use crate::sheet::{count_words, is_han, say};

/// The counts of one text.
pub(crate) struct Measured {
    pub words: usize,
    pub sentence: f64,
    pub long_share: f64,
    pub paragraph: f64,
    pub headings: usize,
    pub citations: usize,
    pub numbers: usize,
    pub abbreviations: usize,
    pub explained: usize,
    pub joints: usize,
    pub figures: usize,
    /// The longest sentence, for quotation.
    pub longest: String,
    pub longest_line: usize,
}

/// A score with the measurement behind it.
pub(crate) struct Scored {
    pub score: u8,
    pub reason: String,
}

const JOINTS: [&str; 16] = [
    "however",
    "therefore",
    "because",
    "thus",
    "first",
    "then",
    "finally",
    "but",
    "so",
    "因此",
    "但是",
    "然而",
    "所以",
    "首先",
    "然后",
    "因为",
];

impl Measured {
    pub fn of(text: &str) -> Measured {
        let mut measured = Measured {
            words: 0,
            sentence: 0.0,
            long_share: 0.0,
            paragraph: 0.0,
            headings: 0,
            citations: 0,
            numbers: 0,
            abbreviations: 0,
            explained: 0,
            joints: 0,
            figures: 0,
            longest: String::new(),
            longest_line: 0,
        };
        let (mut count, mut long, mut paragraphs, mut longest) = (0usize, 0usize, 0usize, 0usize);
        let mut known: Vec<&str> = Vec::new();
        let numbered: Vec<(usize, &str)> = text.lines().enumerate().collect();
        let prose: std::collections::HashSet<*const u8> =
            prose_lines(text).map(str::as_ptr).collect();
        for (at, line) in numbered {
            if !prose.contains(&line.as_ptr()) || line.trim().is_empty() || line.starts_with("<!--")
            {
                continue;
            }
            if line.starts_with('#') {
                measured.headings += 1;
                continue;
            }
            paragraphs += 1;
            measured.words += count_words(line);
            measured.figures += usize::from(line.starts_with('|') || line.contains("!["));
            for sentence in sentences(line) {
                let words = count_words(sentence);
                count += 1;
                long += usize::from(words > if sentence.chars().any(is_han) { 80 } else { 40 });
                if words > longest {
                    (longest, measured.longest, measured.longest_line) =
                        (words, sentence.to_owned(), at + 1);
                }
            }
            let lower = line.to_lowercase();
            measured.joints += JOINTS.iter().filter(|joint| lower.contains(*joint)).count();
            measured.citations += line.matches("](").count()
                + line.matches("et al").count()
                + bracketed(line)
                + cited_places(line);
            for word in line
                .split(|c: char| !c.is_alphanumeric())
                .filter(|word| !word.is_empty())
            {
                if word.chars().all(|c| c.is_ascii_digit()) {
                    measured.numbers += 1;
                }
                let capitals = word.len() >= 2
                    && word.len() <= 6
                    && word.chars().all(|c| c.is_ascii_uppercase());
                if capitals && !known.contains(&word) {
                    known.push(word);
                    measured.abbreviations += 1;
                    measured.explained += usize::from(
                        text.contains(&format!("({word})"))
                            || text.contains(&format!("（{word}）"))
                            || text.contains(&format!("{word} (")),
                    );
                }
            }
        }
        measured.sentence = measured.words as f64 / count.max(1) as f64;
        measured.long_share = long as f64 / count.max(1) as f64;
        measured.paragraph = measured.words as f64 / paragraphs.max(1) as f64;
        measured
    }

    /// Returns the score for a metric, and the reason.
    pub fn score(&self, metric: &str, l: Language) -> Scored {
        let name = metric.to_lowercase();
        let any = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let per_thousand = |count: usize| count as f64 * 1000.0 / self.words.max(1) as f64;
        let (score, en, zh) = if any(&[
            "abbrev",
            "term",
            "defin",
            "convention",
            "knowledge",
            "缩写",
            "术语",
            "定义",
            "惯例",
            "知识",
        ]) {
            let share = if self.abbreviations == 0 {
                1.0
            } else {
                self.explained as f64 / self.abbreviations as f64
            };
            let known = format!("{} / {}", self.explained, self.abbreviations);
            (
                rising(share, [0.1, 0.3, 0.6, 0.9]),
                format!("abbreviations explained: {known}"),
                format!("已解释的缩写：{known}"),
            )
        } else if any(&[
            "citation",
            "reference",
            "support",
            "literature",
            "coverage",
            "currency",
            "attribution",
            "source",
            "引用",
            "文献",
            "有据",
            "覆盖",
            "归属",
        ]) {
            let rate = per_thousand(self.citations);
            (
                rising(rate, [1.0, 3.0, 6.0, 12.0]),
                format!("citations in a thousand words: {rate:.1}"),
                format!("每千字引用：{rate:.1}"),
            )
        } else if any(&[
            "number",
            "unit",
            "statistic",
            "uncertainty",
            "sample",
            "data",
            "result",
            "evidence",
            "数字",
            "统计",
            "样本",
            "数据",
            "不确定",
            "结果",
            "依据",
        ]) {
            let rate = per_thousand(self.numbers);
            (
                rising(rate, [1.0, 3.0, 8.0, 15.0]),
                format!("numbers in a thousand words: {rate:.1}"),
                format!("每千字数字：{rate:.1}"),
            )
        } else if any(&[
            "order",
            "transition",
            "story",
            "chain",
            "structure",
            "lead",
            "curve",
            "argument",
            "次序",
            "衔接",
            "主线",
            "链条",
            "结构",
            "曲线",
            "论证",
        ]) {
            let rate = per_thousand(self.joints);
            (
                rising(rate, [3.0, 8.0, 15.0, 25.0]),
                format!("words that join sentences, in a thousand: {rate:.1}"),
                format!("每千字连接词：{rate:.1}"),
            )
        } else if any(&[
            "example",
            "figure",
            "accessib",
            "practical",
            "action",
            "图",
            "例",
            "无障碍",
            "实用",
            "操作",
        ]) {
            let count = self.figures + self.citations / 3;
            (
                rising(count as f64, [1.0, 2.0, 4.0, 8.0]),
                format!("tables, figures and places to look at: {count}"),
                format!("表、图与可查之处：{count}"),
            )
        } else if any(&[
            "concis", "brevity", "sentence", "plain", "fluen", "grammar", "clarity", "language",
            "density", "register", "length", "time", "简洁", "简短", "句", "平实", "流畅", "语",
            "密度", "篇幅", "时间",
        ]) {
            (
                falling(self.long_share, [0.02, 0.08, 0.2, 0.4]),
                format!(
                    "sentences that are too long: {:.0} %; words a sentence: {:.1}",
                    self.long_share * 100.0,
                    self.sentence
                ),
                format!(
                    "过长的句子：{:.0} %；每句字数：{:.1}",
                    self.long_share * 100.0,
                    self.sentence
                ),
            )
        } else if any(&["focus", "paragraph", "emphasis", "主旨", "详略"]) {
            (
                falling(self.paragraph, [80.0, 130.0, 200.0, 300.0]),
                format!("words a paragraph: {:.0}", self.paragraph),
                format!("每段字数：{:.0}", self.paragraph),
            )
        } else {
            (
                rising(self.words as f64, [40.0, 120.0, 300.0, 900.0]),
                format!("words on the subject: {}", self.words),
                format!("与此有关的字数：{}", self.words),
            )
        };
        Scored {
            score,
            reason: say(l, &en, &zh).to_owned(),
        }
    }
}

fn rising(value: f64, steps: [f64; 4]) -> u8 {
    1 + steps.iter().filter(|step| value >= **step).count() as u8
}

fn falling(value: f64, steps: [f64; 4]) -> u8 {
    5 - steps.iter().filter(|step| value > **step).count() as u8
}

/// Counts citations such as `[12]`.
fn bracketed(line: &str) -> usize {
    line.split('[')
        .skip(1)
        .filter(|rest| {
            rest.split_once(']').is_some_and(|(inner, _)| {
                !inner.is_empty()
                    && inner
                        .chars()
                        .all(|c| c.is_ascii_digit() || matches!(c, ',' | ' ' | '-' | '–'))
            })
        })
        .count()
}

/// Counts source locations such as `` `path:12` ``.
fn cited_places(line: &str) -> usize {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter(|span| {
            span.rsplit_once(':')
                .is_some_and(|(path, line)| path.contains('.') && line.parse::<usize>().is_ok())
        })
        .count()
}
