//! Checks drafts and claims against the project's memory, and manages waivers.
//!
//! A waiver silences one conflict that somebody has reviewed. Evidence that the actor may not read
//! is never quoted. The claims crate finds the conflicts; this module reads the pages and applies
//! the contract.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quipu_claims::{
    Bounds, Checked, Evidence, Judged, Memory, Page, Passages, Verdict, Waiver, chapter_number,
    check, cut_claims, read_waivers, render_revocation, render_waiver,
};
use quipu_contract::{Actor, Form, ProjectPath};
use quipu_store::{
    Change, Judged as JudgedChange, LeaseToken, Op, Receipt, Refused, StoreError, merge_object,
};
use quipu_text::recall::{Damage, Tier};
use serde::Serialize;
use thiserror::Error;

use crate::asked::note_asked;
use crate::gather::gather;
use crate::project::Project;
use crate::reading::{ReadError, may_read_whole, read_pointer};

#[derive(Debug, Error)]
pub enum CheckError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the manuscripts cannot be searched: {0}")]
    Search(#[from] Damage),
    #[error("the judge failed on line {line}: {what}")]
    Judge { line: usize, what: String },
    #[error("no waiver `{0}` holds")]
    NoWaiver(String),
    #[error("a waiver needs a reason")]
    NoReason,
}

/// The text to check.
#[derive(Debug, Clone, Copy)]
pub enum Draft<'a> {
    File(&'a str),
    Claim(&'a str),
}

/// A judge's verdict on a claim, based on the evidence alone.
#[derive(Debug, Clone, Serialize)]
pub struct Ruling {
    pub verdict: Verdict,
    pub reason: String,
    /// The index of the deciding piece of evidence, from 0.
    pub evidence: Option<usize>,
    pub confidence: f32,
}

/// Judges a claim: implemented by programs and agents.
pub trait ClaimJudge {
    fn name(&self) -> &str;
    fn rule(&self, claim: &str, evidence: &[Evidence]) -> Result<Ruling, String>;
}

pub struct CheckRequest<'a> {
    pub draft: Draft<'a>,
    pub k: usize,
    pub judge: Option<&'a dyn ClaimJudge>,
}

/// A conflict that no waiver covers.
#[derive(Debug, Clone, Serialize)]
pub struct Unwaived {
    pub id: String,
    /// The place of the claim, as file:line.
    pub at: String,
    pub claim: String,
    /// The place in memory that contradicts it.
    pub against: String,
    pub evidence: String,
    pub tier: &'static str,
    pub level: Option<&'static str>,
    pub confidence: f32,
    pub judge: String,
    pub why: String,
}

/// The result of a check.
#[derive(Debug, Serialize)]
pub struct Checking {
    pub path: Option<String>,
    pub conflicts: Vec<Unwaived>,
    pub waived: Vec<Waiver>,
    pub claims: Vec<Checked>,
}

/// Checks a draft or one claim against the pages that the actor may read.
pub fn check_draft(
    project: &Project,
    actor: &Actor,
    request: &CheckRequest<'_>,
) -> Result<Checking, CheckError> {
    let (path, text) = match request.draft {
        Draft::Claim(text) => (None, text.to_owned()),
        Draft::File(pointer) => {
            let reading = read_pointer(project, actor, pointer, None)?;
            // Leading blank lines preserve the line numbers of a section.
            let lead = "\n".repeat(reading.line - 1);
            (
                Some(reading.path.as_str().to_owned()),
                lead + &String::from_utf8_lossy(&reading.bytes),
            )
        }
    };
    check_text(project, actor, path, &text, request)
}

/// Finds the conflicts that block a text. Returns none if the contract only warns, and skips waived
/// conflicts. The check uses all of memory. Each conflict is returned as a fault that can be sent
/// to the actor; it quotes nothing that the actor may not read.
pub fn find_blocking(
    project: &Project,
    actor: &Actor,
    path: &ProjectPath,
    text: &str,
) -> Result<Vec<Blocking>, CheckError> {
    if !project.contract.blocks_conflicts(path) {
        return Ok(Vec::new());
    }
    let request = CheckRequest {
        draft: Draft::Claim(text),
        k: 0,
        judge: None,
    };
    let conflicts = check_text(
        project,
        &Actor::Person,
        Some(path.as_str().to_owned()),
        text,
        &request,
    )?
    .conflicts;
    let Some(role) = actor.role().filter(|_| !conflicts.is_empty()) else {
        return Ok(conflicts
            .into_iter()
            .map(|conflict| Blocking {
                fault: quoting(&conflict),
                id: conflict.id,
                at: conflict.at,
            })
            .collect());
    };
    let own = gather(project, actor)?.pages;
    let lines: BTreeMap<&str, Vec<&str>> = own
        .iter()
        .map(|page| (page.path.as_str(), page.text.lines().collect()))
        .collect();
    let is_read = |against: &str| {
        let place = against
            .rsplit_once(':')
            .and_then(|(path, line)| Some((path, line.parse::<usize>().ok()?)));
        let line = place.and_then(|(path, line)| lines.get(path)?.get(line.checked_sub(1)?));
        line.is_some_and(|line| !line.trim().is_empty())
    };
    let told = |conflict: Unwaived| match is_read(&conflict.against) {
        true => Blocking {
            fault: quoting(&conflict),
            id: conflict.id,
            at: conflict.at,
        },
        false => {
            let Unwaived { id, at, claim, .. } = conflict;
            Blocking {
                fault: format!(
                    "`{at}` contradicts memory that role `{role}` does not read: “{claim}”"
                ),
                id,
                at,
            }
        }
    };
    Ok(conflicts.into_iter().map(told).collect())
}

/// A conflict that blocks a text.
#[derive(Debug, Clone)]
pub struct Blocking {
    pub id: String,
    pub at: String,
    pub fault: String,
}

fn quoting(conflict: &Unwaived) -> String {
    let Unwaived {
        at,
        against,
        claim,
        evidence,
        why,
        ..
    } = conflict;
    format!("`{at}` contradicts `{against}`: “{claim}” / “{evidence}”: {why}")
}

impl Project {
    /// Judges a change. If the contract lets contradictions block, the new texts are first checked
    /// against memory; then the store judges the change. All entry points use this function.
    pub fn judge(&self, mut change: Change) -> Result<JudgedChange<'_>, StoreError> {
        change.with_rules = true;
        for (path, bytes) in self.resulting_texts(&change)? {
            // Skip files that the actor may not write: a finding would reveal their text. The store
            // refuses the change anyway.
            let binding = self.contract.actor_binding(&change.actor);
            if self
                .contract
                .grant(&change.actor)
                .map_or(true, |grant| grant.may_write(path, &binding).is_err())
            {
                continue;
            }
            let text = String::from_utf8_lossy(&bytes);
            let found =
                self.find_brought(&change.actor, path, &text)
                    .map_err(|error| match error {
                        CheckError::Store(error) => error,
                        other => StoreError::refused(
                            format!("`{path}` cannot be checked: {other}"),
                            format!("quipu check {path}"),
                        ),
                    })?;
            if let Some(first) = found.first() {
                let rule = self
                    .contract
                    .rule(path)
                    .map(|rule| (rule.place.clone(), "conflicts = \"block\"".to_owned()));
                let remedy = format!(
                    "fix it; or, if it is meant, quipu waive {} --why \"…\"",
                    first.id
                );
                let what = match may_read_whole(self, &change.actor, path) {
                    Ok(()) => first.fault.clone(),
                    Err(_) => format!(
                        "`{}` contradicts memory, and you do not read the file",
                        first.at
                    ),
                };
                return Err(StoreError::Refused(Refused { what, rule, remedy }));
            }
        }
        self.store.judge(change)
    }

    /// Returns the resulting text of each changed file for which contradictions block.
    fn resulting_texts<'c>(
        &self,
        change: &'c Change,
    ) -> Result<BTreeMap<&'c ProjectPath, Cow<'c, [u8]>>, StoreError> {
        let mut texts: BTreeMap<&ProjectPath, Cow<'_, [u8]>> = BTreeMap::new();
        for op in change
            .ops
            .iter()
            .filter(|op| self.contract.blocks_conflicts(op.path()))
        {
            let path = op.path();
            let mut so_far = || match texts.remove(path) {
                Some(text) => Ok(text.into_owned()),
                None => Ok::<_, StoreError>(
                    self.store
                        .read(path)?
                        .map(|(text, _)| text)
                        .unwrap_or_default(),
                ),
            };
            let text: Cow<'_, [u8]> = match op {
                Op::Write { bytes, .. }
                | Op::Create { bytes, .. }
                | Op::Derive { bytes, .. }
                | Op::Amend {
                    bytes: Some(bytes), ..
                }
                | Op::Restore {
                    bytes, older: true, ..
                } => bytes.into(),
                Op::Append { bytes, apart, .. } => {
                    let mut text = so_far()?;
                    // Join as the store does: an entry begins on a line of its own.
                    let is_open = text.last().is_some_and(|last| *last != b'\n')
                        && bytes.first().is_some_and(|first| *first != b'\n');
                    if *apart && is_open {
                        text.push(b'\n');
                    }
                    text.extend_from_slice(bytes);
                    text.into()
                }
                Op::Merge { value, .. } => {
                    let before = so_far()?;
                    match value.as_object().map(|patch| merge_object(&before, patch)) {
                        Some(Ok(merged)) => merged.into(),
                        // The store reports the error.
                        _ => continue,
                    }
                }
                Op::Amend { bytes: None, .. } => match self.store.on_disk(path)? {
                    Some(found) => found.into(),
                    None => continue,
                },
                // The newest version was already judged when it was committed, and a removal leaves
                // nothing to judge.
                Op::Restore { older: false, .. } | Op::Remove { .. } => {
                    texts.remove(path);
                    continue;
                }
            };
            texts.insert(path, text);
        }
        Ok(texts)
    }

    /// Returns the conflicts that the previous text does not have. The author of a change answers
    /// for the added text and its effect on the rest, but not for older conflicts.
    fn find_brought(
        &self,
        actor: &Actor,
        path: &ProjectPath,
        text: &str,
    ) -> Result<Vec<Blocking>, CheckError> {
        let mut found = find_blocking(self, actor, path, text)?;
        if found.is_empty() {
            return Ok(found);
        }
        let Some((before, _)) = self.store.read(path)? else {
            return Ok(found);
        };
        let mut stood: BTreeMap<String, usize> = BTreeMap::new();
        for conflict in find_blocking(self, actor, path, &String::from_utf8_lossy(&before))? {
            *stood.entry(conflict.id).or_default() += 1;
        }
        // Each earlier occurrence cancels one finding; a second occurrence of the same words is
        // new.
        found.retain(|conflict| match stood.get_mut(&conflict.id) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        });
        Ok(found)
    }
}

fn check_text(
    project: &Project,
    actor: &Actor,
    path: Option<String>,
    text: &str,
    request: &CheckRequest<'_>,
) -> Result<Checking, CheckError> {
    let mut pages = gather(project, actor)?.pages;
    pages.retain(|page| Some(&page.path) != path.as_ref());
    let memory = Memory::of(&pages);
    let passages = Passages::of(pages.iter().filter(|page| page.tier == Tier::L2))?;
    let chapter = path
        .as_deref()
        .and_then(chapter_number)
        .or_else(|| actor.unit().and_then(|unit| chapter_number(unit.as_str())));
    let bounds = Bounds {
        k: request.k,
        chapter,
        ..Bounds::default()
    };
    let mut claims = check(&memory, &passages, &cut_claims(text), &bounds);
    note_asked(
        project,
        &claims
            .iter()
            .map(|claim| (claim.l1, claim.l2))
            .collect::<Vec<_>>(),
    );

    let mut held: BTreeMap<String, Waiver> = waivers(project)?
        .into_iter()
        .map(|waiver| (waiver.id.clone(), waiver))
        .collect();
    if may_read_whole(project, actor, &waiver_file(project)).is_err() {
        // A waiver applies to everyone, but its reason is shown only to actors that may read the
        // file.
        held.values_mut()
            .for_each(|waiver| (waiver.reason, waiver.about) = (String::new(), String::new()));
    }
    let here = path.clone().unwrap_or_else(|| "claim".to_owned());
    let (mut conflicts, mut waived) = (Vec::new(), Vec::new());
    for checked in &mut claims {
        for judged in checked
            .findings
            .iter()
            .filter(|judged| judged.finding.conflict)
        {
            match held.get(&judged.id) {
                Some(waiver) => waived.push(waiver.clone()),
                None => conflicts.push(told(&here, checked, judged)),
            }
        }
        checked
            .findings
            .retain(|judged| !held.contains_key(&judged.id));
        if checked.verdict == Verdict::Conflict && checked.findings.is_empty() {
            checked.verdict = Verdict::Unknown;
        }
        if let (Some(judge), Verdict::Unknown, false) =
            (request.judge, checked.verdict, checked.evidence.is_empty())
        {
            let line = checked.claim.line;
            let ruling = judge
                .rule(&checked.claim.text, &checked.evidence)
                .map_err(|what| CheckError::Judge { line, what })?;
            checked.verdict = ruling.verdict;
            if let (Verdict::Conflict, Some(evidence)) = (
                ruling.verdict,
                checked.evidence.get(ruling.evidence.unwrap_or(0)),
            ) {
                let id = quipu_claims::finding_id(&checked.claim.text, &evidence.text);
                match held.get(&id) {
                    Some(waiver) => waived.push(waiver.clone()),
                    None => conflicts.push(Unwaived {
                        id,
                        at: format!("{here}:{line}"),
                        claim: checked.claim.text.clone(),
                        against: evidence.at.to_string(),
                        evidence: evidence.text.clone(),
                        tier: tier_name(evidence.tier),
                        level: evidence.level.map(|level| level.name()),
                        confidence: ruling.confidence,
                        judge: judge.name().to_owned(),
                        why: ruling.reason.clone(),
                    }),
                }
            }
        }
    }
    Ok(Checking {
        path,
        conflicts,
        waived,
        claims,
    })
}

fn told(here: &str, checked: &Checked, judged: &Judged) -> Unwaived {
    Unwaived {
        id: judged.id.clone(),
        at: format!("{here}:{}", checked.claim.line),
        claim: checked.claim.text.clone(),
        against: judged.finding.at.to_string(),
        evidence: judged.finding.evidence.clone(),
        tier: tier_name(judged.tier),
        level: judged.finding.level.map(|level| level.name()),
        confidence: judged.finding.confidence,
        judge: judged.finding.judge.to_owned(),
        why: judged.finding.why.clone(),
    }
}

pub(crate) fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::L0 => "L0",
        Tier::L1 => "L1",
        Tier::L2 => "L2",
    }
}

/// Returns the file of a form if the contract names it by a literal path, else the usual name.
pub(crate) fn file_of(project: &Project, form: Form, usual: &str) -> ProjectPath {
    let named = project
        .contract
        .of_form(form)
        .find_map(|rule| ProjectPath::parse(rule.path.as_literal()?).ok());
    named.unwrap_or_else(|| ProjectPath::parse(usual).expect("the usual names are plain paths"))
}

fn waiver_file(project: &Project) -> ProjectPath {
    file_of(project, Form::Waivers, "waivers.md")
}

/// The waivers in force.
pub fn waivers_for(project: &Project, actor: &Actor) -> Result<Vec<Waiver>, CheckError> {
    may_read_whole(project, actor, &waiver_file(project))?;
    Ok(waivers(project)?)
}

fn waivers(project: &Project) -> Result<Vec<Waiver>, StoreError> {
    let path = waiver_file(project);
    let text = project
        .store
        .read(&path)?
        .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    Ok(read_waivers(path.as_str(), &text))
}

/// Waives a conflict, with a reason.
pub fn waive(
    project: &Project,
    actor: &Actor,
    id: &str,
    why: &str,
    about: &str,
    lease: Option<LeaseToken>,
) -> Result<Receipt, CheckError> {
    if why.trim().is_empty() {
        return Err(CheckError::NoReason);
    }
    add(project, actor, render_waiver(id, why, about), lease)
}

/// Revokes a waiver.
pub fn revoke_waiver(
    project: &Project,
    actor: &Actor,
    id: &str,
    why: &str,
    lease: Option<LeaseToken>,
) -> Result<Receipt, CheckError> {
    if !waivers(project)?.iter().any(|waiver| waiver.id == id) {
        return Err(CheckError::NoWaiver(id.to_owned()));
    }
    add(project, actor, render_revocation(id, why), lease)
}

fn add(
    project: &Project,
    actor: &Actor,
    line: String,
    lease: Option<LeaseToken>,
) -> Result<Receipt, CheckError> {
    let path = waiver_file(project);
    let head = if project.store.read(&path)?.is_some() {
        ""
    } else {
        "# Waivers\n\n"
    };
    let mut change = Change::by(actor).append(&path, format!("{head}{line}"));
    change.lease = lease;
    Ok(project.judge(change)?.publish()?)
}

/// The number of the last final chapter.
pub fn last_chapter(pages: &[Page]) -> Option<u64> {
    pages
        .iter()
        .filter(|page| page.tier == Tier::L2)
        .filter_map(|page| chapter_number(&page.path))
        .max()
}
