//! Formats the contradictions inside memory: for `check --memory`, and after a write of memory.

use quipu_claims::Inconsistency;
use quipu_contract::{Actor, Language};
use quipu_protocol::{MemoryChecking, Project, check_changed_memory, check_own_memory};
use quipu_store::Receipt;
use serde_json::json;

use crate::answer::{Answer, Failure, count, exit, in_language};

/// The number of findings that a write prints.
const SHOWN: usize = 3;

/// Answers `check --memory`.
pub fn answer(project: &Project, actor: &Actor) -> Result<Answer, Failure> {
    let checking: MemoryChecking = check_own_memory(project, actor)?;
    let language = project.contract.language;
    let conflicts = checking.conflicts.iter();
    let text: String = conflicts.map(|one| render(one, language)).collect();
    let mut answer = Answer::new(json!(checking), text);
    if !checking.conflicts.is_empty() {
        answer.exit = exit::NO;
        answer = answer.say(match language {
            Language::En => "close the one that ended with (until chNN); if both are meant: quipu waive ID --why \"…\"",
            Language::Zh => "已经不再成立的一条，加上（至 chNN）；若两条都是有意的：quipu waive ID --why \"…\"",
        });
    }
    let waived = match (checking.waived, language) {
        (0, _) => String::new(),
        (waived, Language::En) => format!(", {waived} waived"),
        (waived, Language::Zh) => format!("，已豁免 {waived} 处"),
    };
    let found = checking.conflicts.len();
    Ok(answer.say(match language {
        Language::En => format!("{} inside memory{waived}", count(found, "contradiction")),
        Language::Zh => format!("记忆内部矛盾 {found} 处{waived}"),
    }))
}

pub fn render(found: &Inconsistency, language: Language) -> String {
    let Inconsistency {
        id,
        kind,
        at,
        text,
        against,
        against_text,
        why,
    } = found;
    let label = match language {
        Language::En => "memory  ",
        Language::Zh => "记忆    ",
    };
    format!("{label}  {at} ⇄ {against}  {kind}  {id}\n    {text}\n    {against_text}\n    {why}\n")
}

/// Adds what a write of memory contradicts to its answer. A check that fails does not fail the
/// write, which is saved.
pub fn with_notes(answer: Answer, project: &Project, actor: &Actor, receipt: &Receipt) -> Answer {
    let language = project.contract.language;
    let found = match check_changed_memory(project, actor, receipt) {
        Ok(found) => found,
        Err(error) => {
            return answer.say(in_language(
                language,
                format!("memory was not checked: {error}"),
                format!("未能检查记忆：{error}"),
            ));
        }
    };
    let mut answer = answer;
    if !found.is_empty() && answer.json.is_object() {
        answer.json["memory_conflicts"] = json!(found);
    }
    for one in found.iter().take(SHOWN) {
        let (at, against, why, id) = (&one.at, &one.against, &one.why, &one.id);
        answer = answer.say(in_language(
            language,
            format!("{at} contradicts {against}: {why}  ({id})"),
            format!("{at} 与 {against} 矛盾：{why}  ({id})"),
        ));
    }
    match found.len() {
        0 => answer,
        all => answer.say(in_language(
            language,
            format!(
                "{} inside memory: quipu check --memory",
                count(all, "contradiction")
            ),
            format!("记忆内部矛盾 {all} 处：quipu check --memory"),
        )),
    }
}
