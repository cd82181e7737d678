//! Checks that a report has its required sections and scores.
//!
//! The caller passes the required names. Findings go back to the agent.

use quipu_contract::Language;
use quipu_text::{Document, Section, count_words, split_blocks};

use super::Findings;

/// A report with fewer words per section on average gets a warning.
const TELLING_WORDS: usize = 2;

/// Normalises a heading for comparison: lower-case letters and digits, without the leading number.
fn folded(title: &str) -> String {
    let title =
        title.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ')' | ' '));
    title
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

fn find<'d>(document: &'d Document<'_>, names: &[String]) -> Option<&'d Section> {
    let names: Vec<String> = names.iter().map(|name| folded(name)).collect();
    let mut titled = document
        .sections()
        .iter()
        .filter(|section| section.level > 0);
    let is_named = |section: &&Section| names.contains(&folded(&section.title));
    // Prefer a heading that is exactly the name: the title of the report may also contain it.
    titled.clone().find(is_named).or_else(|| {
        titled.find(|section| {
            section.level > 1 && names.iter().any(|n| folded(&section.title).contains(n))
        })
    })
}

/// The name in the given language, if there is one per language.
fn name_in(language: Language, names: &[String]) -> &str {
    let nth = Language::ALL
        .iter()
        .position(|one| *one == language)
        .unwrap_or_default();
    names.get(nth).or(names.first()).map_or("", String::as_str)
}

pub fn check_sections(
    path: &str,
    text: &str,
    wanted: &[Vec<String>],
    language: Language,
    findings: &mut Findings,
) {
    if wanted.is_empty() {
        return;
    }
    let document = Document::parse(text);
    let (mut words, mut missing) = (0, Vec::new());
    for names in wanted {
        let Some(section) = find(&document, names) else {
            missing.push(format!("`## {}`", name_in(language, names)));
            continue;
        };
        let body = document.slice(&(section.body.start..section.range.end));
        let empty = body
            .lines()
            .all(|line| line.trim().is_empty() || line.trim_start().starts_with("<!--"));
        // `## Verdict: pass` has its content in the heading.
        if empty
            && names
                .iter()
                .any(|name| folded(name) == folded(&section.title))
        {
            let none = if language == Language::Zh {
                "无"
            } else {
                "none"
            };
            findings.faults.push(format!(
                "`{path}` line {}: the section `{}` is empty; if there is nothing to report, \
                 write `{none}`",
                section.line, section.title
            ));
        }
        words += count_words(body);
    }
    if !missing.is_empty() {
        findings
            .faults
            .push(format!("`{path}` has no section {}", missing.join(", ")));
    }
    if findings.faults.is_empty() && words < wanted.len() * TELLING_WORDS {
        findings.warnings.push(format!(
            "`{path}` has too little text: {words} words in {} sections",
            wanted.len()
        ));
    }
}

/// Checks that each metric has an integer score from 1 to 5 in a line that names it.
pub fn check_scores(path: &str, text: &str, metrics: &[&str], findings: &mut Findings) {
    let prose = split_blocks(text).prose;
    for metric in metrics {
        let asked = format!("write `- **{metric}:** 4: the reason`, a whole number from 1 to 5");
        let named: Vec<&(usize, String)> = prose
            .iter()
            .filter(|(_, line)| after(line, metric).is_some())
            .collect();
        let scored = |(number, line): &(usize, String)| {
            // The score of a heading may be on the line below.
            let below = prose
                .iter()
                .find(|(at, line)| at > number && !line.trim().is_empty())
                .map_or("", |(_, line)| line.as_str());
            let below = if line.trim_start().starts_with('#') {
                first_number(below)
            } else {
                None
            };
            after(line, metric).and_then(first_number).or(below)
        };
        match named
            .iter()
            .find_map(|line| scored(line).map(|score| (line.0, score)))
        {
            Some((_, score)) if matches!(score.as_str(), "1" | "2" | "3" | "4" | "5") => {}
            Some((line, score)) => findings.faults.push(format!(
                "`{path}` line {line}: the score of \"{metric}\" is `{score}`; {asked}"
            )),
            None => findings
                .faults
                .push(format!("`{path}` has no score of \"{metric}\": {asked}")),
        }
    }
}

/// The rest of a line after a name, ignoring case.
fn after<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    line.char_indices()
        .find_map(|(at, _)| without_beginning(&line[at..], &name))
}

/// The rest of a text after a prefix, which is given in lower case. Compares characters, because
/// lower and upper case may differ in byte length.
fn without_beginning<'t>(text: &'t str, beginning: &[char]) -> Option<&'t str> {
    let mut wanted = beginning.iter();
    for (at, letter) in text.char_indices() {
        if wanted.as_slice().is_empty() {
            return Some(&text[at..]);
        }
        if letter
            .to_lowercase()
            .any(|small| wanted.next() != Some(&small))
        {
            return None;
        }
    }
    wanted.as_slice().is_empty().then_some("")
}

/// The first number of a text, with its fraction. A scale such as `(1-5)` is skipped.
fn first_number(text: &str) -> Option<String> {
    let mut rest = text;
    loop {
        rest = &rest[rest.find(|c: char| c.is_ascii_digit())?..];
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, behind) = (rest[..end].trim_end_matches('.'), &rest[end..]);
        let scale = number == "1"
            && [
                "-5", "–5", "~5", " to 5", "到5", "至5", " 到 5", " 至 5", "—5",
            ]
            .iter()
            .any(|s| behind.starts_with(s));
        if !scale {
            return Some(number.to_owned());
        }
        rest = &behind[behind.find('5').map_or(behind.len(), |at| at + 1)..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(text: &str, wanted: &[&str], language: Language) -> Findings {
        let wanted: Vec<Vec<String>> = wanted
            .iter()
            .map(|names| names.split('|').map(str::to_owned).collect())
            .collect();
        let mut findings = Findings::default();
        check_sections("r.md", text, &wanted, language, &mut findings);
        findings
    }

    const WANTED: [&str; 2] = ["Verdict|结论", "Not verifiable|无法核实"];

    #[test]
    fn sections_count_with_numbers_in_any_case_and_both_languages() {
        for text in [
            "# R1\n\n## Verdict\n\npass, and all of it was checked\n\n## Not verifiable\n\nnone\n",
            "# R1\n\n## 1. VERDICT: pass\n\n## 4) Not verifiable from the source\n\n- what it costs, in time and room\n",
            "# R1\n\n### Verdict\npass, fine\n\n### **Not verifiable**\n\n#### Speed\n\nunknown to me\n",
            "# R1\n\n## 结论\n\n通过，都已核对\n\n## 四、无法核实\n\n无\n",
        ] {
            let found = faults_of(text, &WANTED, Language::En);
            assert!(
                found.faults.is_empty() && found.warnings.is_empty(),
                "{text} {found:?}"
            );
        }
    }

    #[test]
    fn what_is_missing_or_empty_is_told_in_the_language_of_the_project() {
        let lacking = |text: &str, language| faults_of(text, &WANTED, language).faults;
        assert_eq!(
            lacking("ok\n", Language::En),
            ["`r.md` has no section `## Verdict`, `## Not verifiable`"]
        );
        assert_eq!(
            lacking("## 结论\n\n通过\n", Language::Zh),
            ["`r.md` has no section `## 无法核实`"]
        );
        let empty = lacking(
            "# R\n\n## Verdict\n\npass\n\n## Not verifiable\n\n<!-- DONE -->\n",
            Language::En,
        );
        assert_eq!(
            empty,
            [
                "`r.md` line 7: the section `Not verifiable` is empty; if there is nothing to report, write `none`"
            ]
        );
        assert_eq!(
            faults_of(
                "## Verdict\n\nok\n\n## Not verifiable\n\nok\n",
                &WANTED,
                Language::En
            )
            .warnings
            .len(),
            1
        );
    }

    #[test]
    fn scores_are_found_where_readers_write_them() {
        let found = |text: &str, metric: &str| {
            let mut findings = Findings::default();
            check_scores("r.md", text, &[metric], &mut findings);
            findings.faults
        };
        for text in [
            "- **Learning curve:** 4: steep at first, then 3 pages of ease",
            "| learning curve | 4 | steep |",
            "### Learning curve (1–5): 4/5",
            "### Learning curve\n\n**4** because",
            "**Learning curve** — 4.",
        ] {
            assert_eq!(found(text, "Learning curve"), [""; 0], "{text}");
        }
        assert_eq!(found("- **学习曲线：** 4：平缓\n", "学习曲线"), [""; 0]);
        for (text, said) in [
            ("- **Learning curve:** 3.5: so so", "is `3.5`"),
            ("- **Learning curve:** 8/10", "is `8`"),
            ("ok", "has no score"),
        ] {
            let faults = found(text, "Learning curve");
            assert!(faults.len() == 1 && faults[0].contains(said), "{faults:?}");
        }
        assert_eq!(found("- **学习曲线：** 很好\n", "学习曲线").len(), 1);
    }

    #[test]
    fn a_name_is_found_whatever_room_its_letters_take() {
        assert_eq!(
            after("İİLearning curve学\u{212a} 4", "learning Curve"),
            Some("学\u{212a} 4")
        );
        assert_eq!(after("LEARNING CURVE", "Learning curve"), Some(""));
        assert_eq!(after("learning", "Learning curve"), None);
    }
}
