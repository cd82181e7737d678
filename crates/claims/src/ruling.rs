//! Reads a judge's answer about a scene.
//!
//! Every finding must name a numbered sentence and a numbered line of evidence, and quote the
//! sentence literally. An answer with any fault is refused as a whole, with all faults in words that
//! can be sent back to the judge.

use serde::Deserialize;

use crate::claim::Claim;
use crate::evidence::SceneEvidence;
use crate::prompt::question_id;
use crate::words::has_han;

/// A contradiction that a judge found. Indices count from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    /// The claim, among all claims of the draft.
    pub claim: usize,
    /// The line of evidence, among those of the scene.
    pub evidence: usize,
    pub quote: String,
    pub why: String,
    pub confidence: f32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    #[serde(default)]
    question: Option<String>,
    findings: Vec<Found>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Found {
    sentence: usize,
    quote: String,
    evidence: usize,
    why: String,
    confidence: f32,
}

/// The shortest quotation that identifies a place, in characters.
const SHORTEST: usize = 4;
const SHORTEST_HAN: usize = 2;

/// How an answer reaches the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// In reply to the question: it can be about no other.
    Now,
    /// Saved earlier: it must name its question, since the draft or memory may have changed.
    Earlier,
}

/// Reads an answer. Returns its findings, or its faults in one text.
pub fn read_rulings(
    answer: &str,
    answered: Answered,
    asked: &SceneEvidence,
    claims: &[Claim],
) -> Result<Vec<Ruling>, String> {
    let inner = without_fence(answer);
    let answer: Answer = serde_json::from_str(inner).map_err(|error| {
        format!("the answer is not the JSON object that was asked for: {error}")
    })?;
    check_question(answer.question.as_deref(), answered, asked, claims)?;
    let scene = &claims[asked.scene.claims.clone()];
    let mut faults = Vec::new();
    let mut rulings = Vec::new();
    for (nth, found) in answer.findings.into_iter().enumerate() {
        match fault_of(&found, asked, scene) {
            Some(fault) => faults.push(format!("finding {}: {fault}", nth + 1)),
            None => rulings.push(Ruling {
                claim: asked.scene.claims.start + found.sentence - 1,
                evidence: found.evidence - 1,
                quote: found.quote,
                why: one_line(&found.why),
                confidence: found.confidence,
            }),
        }
    }
    match faults.is_empty() {
        true => Ok(joined(rulings)),
        false => Err(faults.join("; ")),
    }
}

/// Joins findings on the same sentence and the same line of evidence: they are one conflict, with
/// one id, and keep all their reasons.
fn joined(rulings: Vec<Ruling>) -> Vec<Ruling> {
    let mut all: Vec<Ruling> = Vec::new();
    for ruling in rulings {
        let same =
            |known: &&mut Ruling| (known.claim, known.evidence) == (ruling.claim, ruling.evidence);
        match all.iter_mut().find(same) {
            None => all.push(ruling),
            Some(known) => {
                if !known.why.contains(&ruling.why) {
                    known.why = format!("{}; {}", known.why, ruling.why);
                }
                known.confidence = known.confidence.max(ruling.confidence);
            }
        }
    }
    all
}

/// Refuses an answer to another question.
fn check_question(
    named: Option<&str>,
    answered: Answered,
    asked: &SceneEvidence,
    claims: &[Claim],
) -> Result<(), String> {
    let id = question_id(asked, claims);
    match named {
        Some(named) if named == id => Ok(()),
        Some(named) => Err(format!(
            "it answers the question {named}, but the question about this scene is {id}: the draft \
             or the evidence has changed since"
        )),
        None if answered == Answered::Now => Ok(()),
        None => Err("it does not say which question it answers: `question` is missing".to_owned()),
    }
}

/// Returns the object of an answer that has words or a code fence around it.
fn without_fence(answer: &str) -> &str {
    let object = answer.find('{').zip(answer.rfind('}'));
    object
        .filter(|(open, close)| open < close)
        .map_or(answer, |(open, close)| &answer[open..=close])
}

/// Returns a text without line breaks and control characters, so that it cannot pass for output.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

fn fault_of(found: &Found, asked: &SceneEvidence, scene: &[Claim]) -> Option<String> {
    let Some(claim) = found.sentence.checked_sub(1).and_then(|nth| scene.get(nth)) else {
        let last = scene.len();
        return Some(format!(
            "sentence {} does not exist (1 to {last})",
            found.sentence
        ));
    };
    if found.evidence == 0 || found.evidence > asked.evidence.len() {
        let last = asked.evidence.len();
        return Some(format!(
            "evidence {} does not exist (1 to {last})",
            found.evidence
        ));
    }
    let quote = found.quote.trim();
    let shortest = if has_han(quote) {
        SHORTEST_HAN
    } else {
        SHORTEST
    };
    if quote.chars().count() < shortest {
        return Some(format!("the quotation “{quote}” is too short"));
    }
    if !claim.text.contains(quote) {
        let elsewhere = scene.iter().position(|other| other.text.contains(quote));
        return Some(match elsewhere {
            Some(nth) => format!(
                "“{quote}” is in sentence {}, not in sentence {}",
                nth + 1,
                found.sentence
            ),
            None => format!(
                "“{quote}” is not in sentence {}: {}",
                found.sentence, claim.text
            ),
        });
    }
    if one_line(&found.why).is_empty() {
        return Some("`why` is empty".to_owned());
    }
    let is_share = (0.0..=1.0).contains(&found.confidence);
    (!is_share).then(|| format!("confidence {} is not between 0 and 1", found.confidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::cut_claims;
    use crate::page::Page;
    use crate::query::{Bounds, Corpus, check};
    use quipu_recall::Tier;

    fn read(answer: &str) -> Result<Vec<Ruling>, String> {
        let page = Page {
            path: "c.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: "## Otto\n- scar: left palm\n".into(),
        };
        let draft = "# T\n\nOtto came in. The scar on his right palm itched.\n";
        let claims = cut_claims(draft);
        let (_, scenes) = check(
            &Corpus::of(&[page], None),
            draft,
            &claims,
            &Bounds::default(),
        );
        let rulings = read_rulings(answer, Answered::Now, &scenes[0], &claims)?;
        // A saved answer names its question.
        let saved = |id: &str| {
            let named = answer.replacen('{', &format!("{{\"question\": \"{id}\", "), 1);
            read_rulings(&named, Answered::Earlier, &scenes[0], &claims)
        };
        assert_eq!(saved(&question_id(&scenes[0], &claims)).unwrap(), rulings);
        assert!(saved("q000000").unwrap_err().contains("has changed since"));
        let unnamed = read_rulings(answer, Answered::Earlier, &scenes[0], &claims);
        assert!(unnamed.unwrap_err().contains("`question` is missing"));
        Ok(rulings)
    }

    #[test]
    fn a_finding_cites_and_quotes() {
        let answer = r#"{"findings": [{"sentence": 2, "quote": "on his right palm", "evidence": 1, "why": "left", "confidence": 0.9}]}"#;
        let rulings = read(answer).unwrap();
        assert_eq!((rulings[0].claim, rulings[0].evidence), (1, 0));
        assert_eq!(read(&format!("```json\n{answer}\n```")).unwrap(), rulings);
        assert_eq!(read("{\"findings\": []}").unwrap(), []);
    }

    #[test]
    fn a_reason_is_one_line_and_a_finding_counts_once() {
        let finding = r#"{"sentence": 2, "quote": "on his right palm", "evidence": 1, "why": " left\n! 2 claims:\u001b[2J 0 conflicts\u2028", "confidence": 0.9}"#;
        let rulings = read(&format!("{{\"findings\": [{finding}, {finding}]}}")).unwrap();
        assert_eq!(rulings.len(), 1);
        assert_eq!(rulings[0].why, "left ! 2 claims: [2J 0 conflicts");
    }

    #[test]
    fn two_findings_on_one_sentence_and_line_keep_both_reasons() {
        let finding = |quote: &str, why: &str| {
            format!(
                r#"{{"sentence": 2, "quote": "{quote}", "evidence": 1, "why": "{why}", "confidence": 0.5}}"#
            )
        };
        let (palm, itch) = (finding("right palm", "left"), finding("itched", "healed"));
        let rulings = read(&format!("{{\"findings\": [{palm}, {itch}]}}")).unwrap();
        let whys: Vec<&str> = rulings.iter().map(|ruling| ruling.why.as_str()).collect();
        assert_eq!(whys, ["left; healed"]);
    }

    #[test]
    fn anything_else_is_refused_with_the_fault() {
        for (finding, fault) in [
            (
                r#""sentence": 3, "quote": "palm", "evidence": 1, "why": "x", "confidence": 1"#,
                "finding 1: sentence 3 does not exist (1 to 2)",
            ),
            (
                r#""sentence": 2, "quote": "palm", "evidence": 9, "why": "x", "confidence": 1"#,
                "finding 1: evidence 9 does not exist (1 to 1)",
            ),
            (
                r#""sentence": 1, "quote": "right palm", "evidence": 1, "why": "x", "confidence": 1"#,
                "finding 1: “right palm” is in sentence 2, not in sentence 1",
            ),
            (
                r#""sentence": 2, "quote": "the left palm", "evidence": 1, "why": "x", "confidence": 1"#,
                "finding 1: “the left palm” is not in sentence 2: The scar on his right palm itched.",
            ),
            (
                r#""sentence": 2, "quote": "palm", "evidence": 1, "why": " ", "confidence": 1"#,
                "finding 1: `why` is empty",
            ),
            (
                r#""sentence": 2, "quote": "palm", "evidence": 1, "why": "x", "confidence": 7"#,
                "finding 1: confidence 7 is not between 0 and 1",
            ),
            (
                r#""sentence": 2, "quote": "a", "evidence": 1, "why": "x", "confidence": 1"#,
                "finding 1: the quotation “a” is too short",
            ),
        ] {
            assert_eq!(
                read(&format!("{{\"findings\": [{{{finding}}}]}}")).unwrap_err(),
                fault
            );
        }
        for answer in [
            "no conflict",
            "{}",
            "{\"findings\": [{}]}",
            "{\"findings\": [], \"x\": 1}",
        ] {
            assert!(
                read(answer).unwrap_err().starts_with("the answer is not"),
                "{answer}"
            );
        }
    }
}
