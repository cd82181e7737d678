//! Finds texts that repeat one passage many times or copy another file.
//!
//! The comparison counts short runs of words.

use std::collections::HashSet;

use quipu_contract::{FileRule, ProjectPath};
use quipu_store::StoreError;
use quipu_text::split_blocks;

use super::Findings;
use crate::project::open::Project;

/// Length of the compared runs, in words.
const RUN: usize = 4;
/// Repetition in shorter texts is ignored.
const LEAST_WORDS: usize = 60;
/// In prose of both languages, 90% or more of the runs are new; in lists of similar items about
/// 60%.
const FEW_NEW: f64 = 0.25;
const RATHER_FEW_NEW: f64 = 0.5;
/// Chapters of one book share about 5% of their runs. Two chapters about one small file may
/// legitimately share most of them, so this is only a warning.
const RATHER_MANY_SHARED: f64 = 0.4;

/// The words of the prose without headings, in lower case. Each Chinese, Japanese or Korean
/// character counts as one word.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (_, line) in split_blocks(text)
        .prose
        .into_iter()
        .filter(|(_, line)| !line.starts_with('#'))
    {
        let mut word = String::new();
        for c in line.chars() {
            let wide = c >= '\u{2e80}' && c.is_alphanumeric();
            if (wide || !c.is_alphanumeric()) && !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            match wide {
                true => words.push(c.to_string()),
                false if c.is_alphanumeric() => word.extend(c.to_lowercase()),
                false => {}
            }
        }
        if !word.is_empty() {
            words.push(word);
        }
    }
    words
}

fn runs(words: &[String]) -> HashSet<&[String]> {
    words.windows(RUN).collect()
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Checks that the text does not repeat itself.
fn check_repetition(path: &str, words: &[String], findings: &mut Findings) {
    let (new, all) = (runs(words).len(), words.len().saturating_sub(RUN - 1));
    let what = || {
        format!(
            "`{path}` repeats itself: only {}% of its words are new",
            (share(new, all) * 100.0).round()
        )
    };
    if words.len() >= LEAST_WORDS && share(new, all) < FEW_NEW {
        findings
            .faults
            .push(format!("{}. Write everything only once", what()));
    } else if words.len() >= LEAST_WORDS && share(new, all) < RATHER_FEW_NEW {
        findings.warnings.push(what());
    }
}

/// Checks that the text is not a copy of another.
fn check_other(path: &str, own: &[String], other: &str, text: &str, findings: &mut Findings) {
    let others = words(text);
    let (own, others) = (runs(own), runs(&others));
    let shared = own.intersection(&others).count();
    // A single changed word changes as many runs as a run has words.
    let same = own.len().max(others.len()) - shared <= RUN && shared > 2 * RUN;
    let of = share(shared, own.len().min(others.len()));
    if same {
        findings
            .faults
            .push(format!("`{path}` is a copy of `{other}`. Write a new text"));
    } else if of >= RATHER_MANY_SHARED {
        findings.warnings.push(format!(
            "{}% of `{path}` is copied from `{other}`",
            (of * 100.0).round()
        ));
    }
}

/// Compares a text with itself and with every other file under the same rule.
pub fn check(
    project: &Project,
    rule: &FileRule,
    path: &ProjectPath,
    text: &str,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let own = words(text);
    check_repetition(path.as_str(), &own, findings);
    for other in project.store.list()? {
        let alike = other != *path
            && project
                .contract
                .rule(&other)
                .is_some_and(|others| others.path.as_str() == rule.path.as_str());
        if alike && let Some((bytes, _)) = project.store.read(&other)? {
            check_other(
                path.as_str(),
                &own,
                other.as_str(),
                &String::from_utf8_lossy(&bytes),
                findings,
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EN: &str = "A lease is a right that ends by itself. Whoever holds it may write, and nobody else; when the time is over the right is gone, whether or not the holder noticed. That is the whole trick: no message has to arrive for the others to go on. The price is a clock, and clocks differ. So each commit carries the number of the lease, and the store refuses a number that is not the newest one it knows of.";
    const ZH: &str = "租约是一种会自行到期的权利。持有者可以写入，旁人不行；时间一到，权利就消失，不论持有者是否察觉。妙处就在这里：不必等任何消息，其他人就能继续。代价是要有时钟，而时钟各不相同。所以每次提交都带上租约的编号，凡不是最新的编号，存储一概拒绝。";

    fn alone(text: &str) -> Findings {
        let mut findings = Findings::default();
        check_repetition("d.md", &words(text), &mut findings);
        findings
    }

    fn beside(text: &str, other: &str) -> Findings {
        let mut findings = Findings::default();
        check_other("d.md", &words(text), "e.md", other, &mut findings);
        findings
    }

    #[test]
    fn one_passage_over_and_over_goes_back() {
        for text in [EN, ZH] {
            assert!(alone(text).faults.is_empty() && alone(text).warnings.is_empty());
            assert_eq!(alone(&format!("{text}\n").repeat(5)).faults.len(), 1);
            assert_eq!(alone(&format!("{text}\n").repeat(3)).warnings.len(), 1);
        }
        assert_eq!(
            alone(&"word ".repeat(100)).faults,
            ["`d.md` repeats itself: only 1% of its words are new. Write everything only once"]
        );
        assert_eq!(alone(&"字".repeat(100)).faults.len(), 1);
        assert_eq!(
            alone(&format!("> ~~~\n\n{}", "word ".repeat(100)))
                .faults
                .len(),
            1,
            "the quotation ends, and its block with it"
        );
        assert!(
            alone(&"word ".repeat(20)).faults.is_empty(),
            "too short to tell"
        );
    }

    #[test]
    fn another_units_text_goes_back() {
        for (text, changed) in [
            (EN, EN.replace("lease", "lock")),
            (ZH, ZH.replace("时钟", "计时器")),
        ] {
            assert_eq!(beside(text, text).faults.len(), 1);
            let titled = format!("# Another title\n\n{text}");
            assert_eq!(beside(&titled, text).faults.len(), 1);
            assert_eq!(
                (
                    beside(text, &changed).faults.len(),
                    beside(text, &changed).warnings.len()
                ),
                (0, 1),
                "nearly the same"
            );
        }
        assert!(beside(EN, ZH).faults.is_empty() && beside(EN, ZH).warnings.is_empty());
        assert!(beside(EN, &"word ".repeat(100)).faults.is_empty());
    }
}
