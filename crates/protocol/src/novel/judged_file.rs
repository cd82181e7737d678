//! Keeps what a model answered about the scenes of a draft.
//!
//! The contract names the file by the form `judgements`; a project without one keeps nothing. Like
//! waivers, the file is append-only: a later answer about the same scene replaces an earlier one.

use std::collections::BTreeMap;

use quipu_claims::{KeptConflict, Page, Waiver};
use quipu_contract::{Actor, Form, Language, ProjectPath};
use quipu_store::{Change, LeaseToken, Receipt, StoreError};

use super::check::{CheckError, Checking, Kept, Unwaived, tier_name};
use super::judging::JudgedNow;
use crate::project::open::Project;

/// The result of keeping the answers of a check.
#[derive(Debug)]
pub enum AnswersKept {
    /// There is nothing to keep: a single claim, no answer, or no file for them.
    Nothing,
    /// The file says the same already.
    Already,
    Saved {
        receipt: Receipt,
        /// It replaces earlier answers about the same scenes, and their conflicts no longer count.
        replaces: bool,
    },
    /// The actor may not write the file.
    Refused(StoreError),
}

/// Appends the answers of a check to the file of judgements.
pub fn keep_answers(
    project: &Project,
    actor: &Actor,
    checking: &Checking,
    lease: Option<LeaseToken>,
) -> Result<AnswersKept, CheckError> {
    let (Some(here), Some(file)) = (&checking.path, file_of_judgements(project)) else {
        return Ok(AnswersKept::Nothing);
    };
    let before = match project.store.read(&file)? {
        Some((bytes, _)) => String::from_utf8_lossy(&bytes).into_owned(),
        None => String::new(),
    };
    let answers = checking.judged_now.iter().map(|one| one.render(here));
    let answers: Vec<String> = answers.collect();
    if answers.is_empty() {
        return Ok(AnswersKept::Nothing);
    }
    let text: String = answers
        .into_iter()
        .filter(|answer| !before.contains(answer.as_str()))
        .collect();
    if text.is_empty() {
        return Ok(AnswersKept::Already);
    }
    let head = match (before.is_empty(), project.contract.language) {
        (false, _) => "",
        (true, Language::En) => "# Conflicts that models found\n\n",
        (true, Language::Zh) => "# 模型查出的冲突\n\n",
    };
    let mut change = Change::by(actor).append(&file, format!("{head}{text}"));
    change.lease = lease;
    let validated = match project.validate(change) {
        Ok(validated) => validated,
        Err(error @ StoreError::Refused(_)) => return Ok(AnswersKept::Refused(error)),
        Err(error) => return Err(error.into()),
    };
    let is_answered = |one: &JudgedNow| before.contains(&one.scene_id());
    Ok(AnswersKept::Saved {
        receipt: validated.publish()?,
        replaces: checking.judged_now.iter().any(is_answered),
    })
}

fn file_of_judgements(project: &Project) -> Option<ProjectPath> {
    let mut rules = project.contract.of_form(Form::Judgements);
    rules.find_map(|rule| ProjectPath::parse(rule.path.as_literal()?).ok())
}

/// Conflicts by what becomes of them.
#[derive(Default)]
pub(super) struct Sorted {
    pub conflicts: Vec<Unwaived>,
    pub old: Vec<Unwaived>,
    pub waived: Vec<Waiver>,
    silenced: Vec<Unwaived>,
}

impl Sorted {
    /// Adds a conflict, unless the same one is known: a report names also what rules have found, and
    /// quotes a part of it.
    pub fn add(&mut self, conflict: Unwaived, held: &BTreeMap<String, Waiver>) {
        let is_same = |known: &Unwaived| {
            known.at == conflict.at
                && known.claim == conflict.claim
                && (known.against == conflict.against || known.evidence == conflict.evidence)
        };
        let known = self.conflicts.iter().chain(&self.old).chain(&self.silenced);
        if known.into_iter().any(is_same) {
            return;
        }
        match held.get(&conflict.id) {
            Some(waiver) => {
                self.waived.push(waiver.clone());
                self.silenced.push(conflict);
            }
            None if conflict.is_old() => self.old.push(conflict),
            None => self.conflicts.push(conflict),
        }
    }
}

/// A kept conflict. Its place in memory is where the evidence is now.
pub(super) fn told_again(here: &str, pages: &[Page], kept: KeptConflict) -> Unwaived {
    let KeptConflict {
        id,
        claim,
        against,
        judgement,
        is_old,
    } = kept;
    let page = pages.iter().find(|page| page.path == against.path);
    let tier = page.map_or("", |page| tier_name(page.tier));
    Unwaived {
        id,
        at: format!("{here}:{}", claim.line),
        claim: claim.text,
        against: against.to_string(),
        evidence: judgement.evidence,
        tier,
        level: None,
        confidence: judgement.confidence,
        judge: judgement.judge,
        why: judgement.why,
        kept: Some(Kept {
            at: judgement.kept.to_string(),
            old: is_old,
        }),
    }
}
