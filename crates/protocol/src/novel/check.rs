//! Checks drafts and claims against the project's memory, and manages waivers.
//!
//! A waiver silences one conflict that somebody has reviewed. Evidence that the actor may not read
//! is never quoted. The claims crate finds the conflicts; this module reads the pages and applies
//! the contract.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quipu_claims::{
    Bounds, Checked, Corpus, Judged, KeptJudgements, Memory, Page, SceneEvidence, Verdict, Waiver,
    chapter_number, check, conflict_id, cut_claims, is_prompt, judge_claims, kept_judgements,
    read_waivers, render_revocation, render_waiver,
};
use quipu_contract::{Actor, Builtin, Class, Form, Language, ProjectPath};
use quipu_recall::Tier;
use quipu_store::{Change, LeaseToken, Op, Receipt, Refused, StoreError, Validated, merge_object};
use serde::Serialize;
use thiserror::Error;

use super::judged_file::{Sorted, told_again};
use super::judging::{JudgedNow, SceneJudge, ScenePrompt, judge_scenes, scene_prompts};
use crate::files::read::{ReadError, may_read_whole, read_pointer};
use crate::flow::job::fill_path;
use crate::novel::memory_check::{find_blocking_memory, is_checked_memory, memory_conflicts};
use crate::project::open::Project;
use crate::view::pages::gather;

#[derive(Debug, Error)]
pub enum CheckError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the judge failed on scene {scene}: {what}")]
    Judge { scene: usize, what: String },
    #[error("the draft has no scene {scene}: it has {count}")]
    NoScene { scene: usize, count: usize },
    #[error("unknown waiver `{0}`")]
    NoWaiver(String),
    #[error("a waiver needs a reason")]
    NoReason,
}

/// The text to check.
#[derive(Debug, Clone, Copy)]
pub enum Draft<'a> {
    File(&'a str),
    Claim(&'a str),
    /// A text that is not in the project yet, with the path that it will have.
    Text {
        path: &'a str,
        text: &'a str,
    },
}

pub struct CheckRequest<'a> {
    pub draft: Draft<'a>,
    /// The maximum number of pieces of evidence for one claim. With 0 no evidence is gathered.
    pub k: usize,
    /// The maximum number of tokens of evidence for all scenes together. By default the evidence
    /// of a scene follows from its length.
    pub tokens: Option<u64>,
    /// Only this scene gets evidence and is judged.
    pub scene: Option<usize>,
    pub judge: Option<&'a dyn SceneJudge>,
}

impl<'a> CheckRequest<'a> {
    /// Asks for the conflicts that the deterministic judges find, and nothing else.
    pub fn conflicts_of(draft: Draft<'a>) -> CheckRequest<'a> {
        CheckRequest {
            draft,
            k: 0,
            tokens: None,
            scene: None,
            judge: None,
        }
    }
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
    /// Where a judgement of a model is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// A judgement that was made earlier.
#[derive(Debug, Clone, Serialize)]
pub struct Kept {
    /// The place of the judgement, as file:line.
    pub at: String,
    /// True if the scene has changed since: a reader must judge again.
    pub old: bool,
}

impl Unwaived {
    /// Whether the scene has changed since a model judged it. Such a conflict is shown and counts
    /// for nothing.
    pub fn is_old(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.old)
    }
}

/// The result of a check.
#[derive(Debug, Serialize)]
pub struct Checking {
    pub path: Option<String>,
    pub conflicts: Vec<Unwaived>,
    /// Findings of models about scenes that have changed since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub old: Vec<Unwaived>,
    pub waived: Vec<Waiver>,
    pub claims: Vec<Checked>,
    /// The scenes of the draft with their evidence.
    pub scenes: Vec<SceneEvidence>,
    /// The question about each scene, ready for a judge.
    #[serde(skip)]
    pub prompts: Vec<ScenePrompt>,
    /// The scenes that a model has judged as they are, by number, with the judge.
    pub judged: BTreeMap<usize, String>,
    /// The scenes that no model has judged as they are.
    pub unjudged: Vec<usize>,
    /// The scenes that the judge of this request answered for.
    #[serde(skip)]
    pub judged_now: Vec<JudgedNow>,
    /// The claims that rules could judge.
    pub ruled: usize,
    /// The facts and rules of memory that the deterministic judges can read.
    #[serde(skip)]
    pub by_rules: usize,
    /// Whether there is anything to judge the text by.
    #[serde(skip)]
    pub has_sources: bool,
}

impl Checking {
    /// Describes the sentence and the line that an id stands for, whoever found the conflict.
    pub fn describe(&self, id: &str) -> Option<String> {
        let here = self.path.as_deref().unwrap_or("claim");
        let of = |at: &str, against: &str, claim: &str| format!("{at} ⇄ {against}: {claim}");
        let found = self.conflicts.iter().find(|conflict| conflict.id == id);
        if let Some(found) = found {
            return Some(of(&found.at, &found.against, &found.claim));
        }
        let pairs = self.scenes.iter().flat_map(|asked| {
            let claims = &self.claims[asked.scene.claims.clone()];
            let with_evidence = |one| asked.evidence.iter().map(move |evidence| (one, evidence));
            claims.iter().flat_map(with_evidence)
        });
        let mut pairs = pairs.filter(|(one, evidence): &(&Checked, &quipu_claims::Evidence)| {
            conflict_id(&one.claim.text, &evidence.text) == id
        });
        let (one, evidence) = pairs.next()?;
        let at = format!("{here}:{}", one.claim.line);
        Some(of(&at, &evidence.at.to_string(), &one.claim.text))
    }
}

/// Checks a draft or one claim against the pages that the actor may read.
pub fn check_draft(
    project: &Project,
    actor: &Actor,
    request: &CheckRequest<'_>,
) -> Result<Checking, CheckError> {
    let (path, text) = match request.draft {
        Draft::Claim(text) => (None, text.to_owned()),
        Draft::Text { path, text } => (Some(path.to_owned()), text.to_owned()),
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
    if is_checked_memory(project, path) {
        return find_blocking_memory(project, actor, path, text);
    }
    let mut found = find_open(project, actor, path, text)?;
    found.retain(|conflict| !conflict.old);
    Ok(found)
}

/// Finds the conflicts of a text that no waiver covers, whether they block it or not. Conflicts
/// that a model found and kept are among them, also those whose scene has changed since.
pub fn find_open(
    project: &Project,
    actor: &Actor,
    path: &ProjectPath,
    text: &str,
) -> Result<Vec<Blocking>, CheckError> {
    let request = CheckRequest::conflicts_of(Draft::Claim(text));
    let checking = check_text(
        project,
        &Actor::Person,
        Some(path.as_str().to_owned()),
        text,
        &request,
    )?;
    let conflicts: Vec<Unwaived> = checking.conflicts.into_iter().chain(checking.old).collect();
    let language = project.contract.language;
    let Some(role) = actor.role().filter(|_| !conflicts.is_empty()) else {
        let told = conflicts.into_iter().map(|one| blocking(one, language));
        return Ok(told.collect());
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
        true => blocking(conflict, language),
        false => {
            let old = conflict.is_old();
            let Unwaived { id, at, claim, .. } = conflict;
            Blocking {
                fault: match language {
                    Language::En => format!(
                        "`{at}` contradicts memory that role `{role}` may not read: “{claim}”"
                    ),
                    Language::Zh => format!("`{at}` 与角色 `{role}` 不可读的记忆矛盾：“{claim}”"),
                },
                id,
                at,
                against: String::new(),
                old,
                kept: None,
            }
        }
    };
    Ok(conflicts.into_iter().map(told).collect())
}

/// A conflict of a text, as it is reported to an actor.
#[derive(Debug, Clone, Serialize)]
pub struct Blocking {
    pub id: String,
    pub at: String,
    /// The place in memory. Empty if the actor may not read it.
    pub against: String,
    pub fault: String,
    /// True if a model found it and the scene has changed since. It blocks nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub old: bool,
    /// The place of a model's judgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

fn blocking(conflict: Unwaived, language: Language) -> Blocking {
    Blocking {
        fault: quoting(&conflict, language),
        old: conflict.is_old(),
        kept: conflict.kept.map(|kept| kept.at),
        id: conflict.id,
        at: conflict.at,
        against: conflict.against,
    }
}

fn quoting(conflict: &Unwaived, language: Language) -> String {
    let Unwaived {
        at,
        against,
        claim,
        evidence,
        why,
        judge,
        kept,
        ..
    } = conflict;
    let judged = kept.as_ref().map(|Kept { at, old }| match (language, old) {
        (Language::En, false) => {
            format!(" (judged by {judge}, {at}; the scene has not changed since)")
        }
        (Language::En, true) => format!(" (judged by {judge}, {at}; the scene has changed since)"),
        (Language::Zh, false) => format!("（判定者：{judge}，{at}；此后场景未改）"),
        (Language::Zh, true) => format!("（判定者：{judge}，{at}；此后场景已改）"),
    });
    let judged = judged.unwrap_or_default();
    match language {
        Language::En => {
            format!("`{at}` contradicts `{against}`: “{claim}” / “{evidence}”: {why}{judged}")
        }
        Language::Zh => {
            format!("`{at}` 与 `{against}` 矛盾：“{claim}”／“{evidence}”：{why}{judged}")
        }
    }
}

/// The open conflicts of texts that the contract or a step checks, at their current version. Memory
/// is left out: it is checked against itself.
pub fn open_conflicts<'p>(
    project: &Project,
    actor: &Actor,
    paths: impl IntoIterator<Item = &'p ProjectPath>,
) -> Result<Vec<Blocking>, CheckError> {
    let mut found = Vec::new();
    for path in paths {
        let is_text = project.contract.checks_conflicts(path) || is_checked_by_step(project, path);
        if !is_text
            || is_checked_memory(project, path)
            || may_read_whole(project, actor, path).is_err()
        {
            continue;
        }
        if let Some((bytes, _)) = project.store.read(path)? {
            found.extend(find_open(
                project,
                actor,
                path,
                &String::from_utf8_lossy(&bytes),
            )?);
        }
    }
    Ok(found)
}

/// Whether a step checks such a file. Its text is a draft: what is wrong with it is reported when it
/// is written, not as long as it exists.
fn is_checked_by_step(project: &Project, path: &ProjectPath) -> bool {
    let Some(rule) = project.contract.rule(path) else {
        return false;
    };
    let mut steps = project.contract.steps.iter();
    steps.any(|step| step.check.as_deref() == Some(rule.path.as_str()))
}

/// The open conflicts of all files that are checked and can still change: sealed text is checked
/// when it is written. Memory is checked against itself, since it may have been edited by hand.
pub fn conflicts_in_progress(
    project: &Project,
    actor: &Actor,
) -> Result<Vec<Blocking>, CheckError> {
    let is_open = |path: &ProjectPath| {
        project.contract.class(path) != Class::Sealed && project.contract.checks_conflicts(path)
    };
    let sealed: Vec<ProjectPath> = sealed_sources(project);
    let listed = project.store.list()?;
    let paths = listed
        .iter()
        .filter(|path| is_open(path) && !sealed.contains(path));
    let mut found = open_conflicts(project, actor, paths)?;
    found.extend(memory_conflicts(project, actor)?);
    Ok(found)
}

/// The drafts that an approved gate has sealed: their conflicts were reported at the approval.
fn sealed_sources(project: &Project) -> Vec<ProjectPath> {
    let mut found = Vec::new();
    for (unit, step) in project.contract.units.iter().flat_map(|unit| {
        let gates = project.contract.steps.iter();
        gates
            .filter(|step| step.builtin == Some(Builtin::Gate))
            .map(move |step| (unit, step))
    }) {
        let actor = Actor::Agent {
            role: None,
            unit: Some(unit.id.clone()),
            agent: None,
        };
        let binding = project.contract.actor_binding(&actor);
        for (read, write) in step.reads.iter().zip(&step.writes) {
            let [read, write] = [read, write].map(|path| fill_path(path, &binding));
            let is_sealed = write.is_some_and(|path| {
                project.contract.class(&path) == Class::Sealed
                    && matches!(project.store.read(&path), Ok(Some(_)))
            });
            found.extend(read.filter(|_| is_sealed));
        }
    }
    found
}

impl Project {
    /// Judges a change. If the contract lets contradictions block, the new texts are first checked
    /// against memory; then the store judges the change. All entry points use this function.
    pub fn validate(&self, mut change: Change) -> Result<Validated<'_>, StoreError> {
        change.with_rules = true;
        self.refuse_false_end(&change)?;
        let is_checked = |path: &ProjectPath| self.contract.blocks_conflicts(path);
        for (path, bytes) in self.resulting_texts(&change, is_checked)? {
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
                let id = &first.id;
                let remedy = match self.contract.language {
                    Language::En => format!(
                        "fix it; or, if the contradiction is intended: quipu waive {id} --why \"…\""
                    ),
                    Language::Zh => {
                        format!("改掉它；若是有意为之：quipu waive {id} --why \"…\"")
                    }
                };
                let what = match may_read_whole(self, &change.actor, path) {
                    Ok(()) => first.fault.clone(),
                    Err(_) => format!(
                        "`{}` contradicts memory in a file that you may not read",
                        first.at
                    ),
                };
                return Err(StoreError::Refused(Refused { what, rule, remedy }));
            }
        }
        self.store.validate(change)
    }

    /// Returns the resulting texts of the changed files that are asked about.
    pub(crate) fn resulting_texts<'c>(
        &self,
        change: &'c Change,
        is_asked: impl Fn(&ProjectPath) -> bool,
    ) -> Result<BTreeMap<&'c ProjectPath, Cow<'c, [u8]>>, StoreError> {
        let mut texts: BTreeMap<&ProjectPath, Cow<'_, [u8]>> = BTreeMap::new();
        for op in change.ops.iter().filter(|op| is_asked(op.path())) {
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
    let earlier = match &path {
        Some(path) => kept_judgements(&pages, path, text, &cut_claims(text)),
        None => KeptJudgements::default(),
    };
    let chapter = path
        .as_deref()
        .and_then(chapter_number)
        .or_else(|| actor.unit().and_then(|unit| chapter_number(unit.as_str())));
    pages.retain(|page| Some(&page.path) != path.as_ref() && !is_later(page, chapter));
    pages.retain(|page| !is_prompt(&page.text));
    if path.is_some() {
        // The text may be sealed already, or lie in another file too.
        pages.retain(|page| page.text.trim() != text.trim());
    }
    let bounds = Bounds {
        k: request.k,
        chapter,
        tokens: request.tokens,
        ..Bounds::default()
    };
    let memory = Memory::of(&pages);
    let by_rules = memory.decides();
    let has_sources = !memory.facts.is_empty() || pages.iter().any(|page| page.tier == Tier::L2);
    let (mut claims, scenes) = gather_evidence(memory, &pages, text, request, &bounds)?;
    let here = path.clone().unwrap_or_else(|| "claim".to_owned());
    let ruled = claims.iter().filter(|one| !one.findings.is_empty()).count();
    let prompts = scene_prompts(text, &here, &claims, &scenes);
    let judged_now = match request.judge {
        Some(judge) => judge_scenes(judge, &here, &mut claims, &scenes, &prompts)?,
        None => Vec::new(),
    };

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
    let mut sorted = Sorted::default();
    for checked in &mut claims {
        for judged in checked
            .findings
            .iter()
            .filter(|judged| judged.finding.conflict)
        {
            sorted.add(told(&here, checked, judged), &held);
        }
        checked
            .findings
            .retain(|judged| !held.contains_key(&judged.id));
    }
    let mut judged: BTreeMap<usize, String> = earlier.judged;
    let mut unjudged = earlier.unjudged;
    for one in &judged_now {
        judged.insert(one.scene, one.judge.clone());
        unjudged.retain(|scene| *scene != one.scene);
        for conflict in &one.conflicts {
            sorted.add(conflict.clone(), &held);
        }
    }
    for kept in earlier.conflicts {
        let is_judged_now = |one: &JudgedNow| one.has(kept.claim.line, &kept.claim.text);
        if !judged_now.iter().any(is_judged_now) {
            sorted.add(told_again(&here, &pages, kept), &held);
        }
    }
    let Sorted {
        mut conflicts,
        old,
        waived,
        ..
    } = sorted;
    conflicts.sort_by_key(|conflict: &Unwaived| line_of(&conflict.at));
    for checked in claims
        .iter_mut()
        .filter(|one| one.verdict == Verdict::Conflict)
    {
        let at = format!("{here}:{}", checked.claim.line);
        let is_open = |one: &Unwaived| one.at == at && one.claim == checked.claim.text;
        if !conflicts.iter().any(is_open) {
            checked.verdict = Verdict::Unknown;
        }
    }
    Ok(Checking {
        path,
        conflicts,
        old,
        waived,
        claims,
        scenes,
        prompts,
        judged,
        unjudged,
        judged_now,
        ruled,
        by_rules,
        has_sources,
    })
}

/// Whether a page is this chapter or a later one: it is no evidence for it.
fn is_later(page: &Page, chapter: Option<u64>) -> bool {
    page.tier == Tier::L2 && chapter.is_some() && chapter_number(&page.path) >= chapter
}

fn line_of(at: &str) -> usize {
    at.rsplit_once(':')
        .and_then(|(_, line)| line.parse().ok())
        .unwrap_or(0)
}

/// Judges the claims of a text, and gathers evidence if the request wants any.
fn gather_evidence(
    memory: Memory,
    pages: &[Page],
    text: &str,
    request: &CheckRequest<'_>,
    bounds: &Bounds,
) -> Result<(Vec<Checked>, Vec<SceneEvidence>), CheckError> {
    let claims = cut_claims(text);
    if request.k == 0 {
        let checked = judge_claims(&memory, text, &claims, bounds);
        return Ok((checked, Vec::new()));
    }
    let corpus = Corpus::with(memory, pages, bounds.chapter);
    let (checked, mut scenes) = check(&corpus, text, &claims, bounds);
    if let Some(number) = request.scene {
        let count = scenes.len();
        scenes.retain(|asked| asked.scene.number == number);
        if scenes.is_empty() {
            return Err(CheckError::NoScene {
                scene: number,
                count,
            });
        }
    }
    Ok((checked, scenes))
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
        kept: None,
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

pub(crate) fn waivers(project: &Project) -> Result<Vec<Waiver>, StoreError> {
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
    Ok(project.validate(change)?.publish()?)
}

/// The number of the last final chapter.
pub fn last_chapter(pages: &[Page]) -> Option<u64> {
    pages
        .iter()
        .filter(|page| page.tier == Tier::L2)
        .filter_map(|page| chapter_number(&page.path))
        .max()
}
