//! The `check` command: checks a draft, or one sentence, against memory and manuscripts.
//!
//! Conflicts are printed first, then the evidence of each scene for the caller to judge by. With
//! `--prompt` it prints the ready question about each scene instead, and `--answers` reads what
//! somebody answered.

use clap::Args;
use quipu_claims::{Asked, SceneEvidence, Verdict};
use quipu_protocol::{
    CheckError, CheckRequest, Checking, Draft, SceneJudge, Unwaived, check_draft,
};
use serde_json::json;

use super::recall::shown_tier;
use crate::answer::{Answer, Failure, count, exit};
use crate::judge_client::JudgeClient;
use crate::saved_answers::SavedAnswers;
use crate::session::Session;
use crate::table::Operate;
use quipu_recall::Tier;

/// The tokens of evidence that are listed by default. A prompt's evidence follows from its scene.
const LISTED: u64 = 1500;

#[derive(Debug, Args)]
pub struct Check {
    /// The draft, or one section of it
    #[arg(value_name = "FILE[#SECTION]", required_unless_present_any = ["claim", "memory"])]
    path: Option<String>,
    /// Check one sentence instead of a file
    #[arg(long, value_name = "TEXT", conflicts_with = "path")]
    claim: Option<String>,
    /// Check memory against itself instead of a draft
    #[arg(long, conflicts_with_all = ["path", "claim", "judge", "prompt", "answers"])]
    memory: bool,
    /// Print the question about each scene, with its evidence, for a model to answer
    #[arg(long, conflicts_with_all = ["judge", "answers"])]
    prompt: bool,
    /// Only this scene
    #[arg(long, value_name = "N")]
    scene: Option<usize>,
    /// The answer to the question about the scene, or a folder with scene-N.json
    #[arg(long, value_name = "PATH", conflicts_with = "judge")]
    answers: Option<String>,
    /// The agent that judges each scene, as for `quipu run`, or command:PROGRAM
    #[arg(long, value_name = "AGENT")]
    judge: Option<String>,
    /// The maximum number of pieces of evidence for one claim, with --json
    #[arg(short = 'k', long = "k", value_name = "N", default_value_t = 6)]
    most: usize,
    /// The maximum number of tokens of evidence in total [default: 1500 in the list; in a question
    /// it follows from the length of the scene]
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,
}

impl Operate for Check {
    const NAME: &'static str = "check";
    const ABOUT: &'static str = "Check a draft, or one sentence, against what is already written";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        if self.memory {
            return super::memory_check::answer(&project, &session.actor);
        }
        if self.tokens == Some(0) && (self.prompt || self.judge.is_some() || self.answers.is_some())
        {
            return Err(Failure::usage(
                "`--tokens 0` leaves a judge without evidence",
                "leave --tokens out: the evidence follows from the length of the scene",
            ));
        }
        let client = match &self.judge {
            Some(name) => {
                let root = project.store.root();
                Some(JudgeClient::of(name, &project.contract, root)?)
            }
            None => None,
        };
        let saved = self.answers.as_ref();
        let saved = saved.map(|path| SavedAnswers::at(session, path));
        let judge = match (&client, &saved) {
            (Some(client), _) => Some(client as &dyn SceneJudge),
            (None, saved) => saved.as_ref().map(|saved| saved as &dyn SceneJudge),
        };
        let draft = match (&self.claim, &self.path) {
            (Some(claim), _) => Draft::Claim(claim),
            (None, Some(file)) => Draft::File(file),
            (None, None) => {
                return Err(Failure::usage(
                    "nothing to check",
                    "quipu check FILE, or quipu check --claim \"…\"",
                ));
            }
        };
        let is_list = !self.prompt && judge.is_none();
        let checking = check_draft(
            &project,
            &session.actor,
            &CheckRequest {
                draft,
                k: self.most.max(1),
                tokens: self.tokens.or(is_list.then_some(LISTED)),
                scene: self.scene,
                judge,
            },
        )
        .map_err(|error| self.failed(error))?;
        let answer = match self.prompt {
            true => answer_prompts(&checking),
            false => self.answer_findings(&checking, is_list),
        };
        Ok(match saved.and_then(|saved| saved.unanswered()) {
            Some(note) => answer.say(note),
            None => answer,
        })
    }
}

impl Check {
    /// A saved answer that does not count is replaced by a new one.
    fn failed(&self, error: CheckError) -> Failure {
        let asked = match (&error, &self.answers, &self.path) {
            (CheckError::Judge { scene, .. }, Some(_), Some(file)) => Some((*scene, file)),
            _ => None,
        };
        let mut failure = Failure::from(error);
        if let Some((scene, file)) = asked {
            failure.remedy = Some(format!(
                "quipu check {file} --prompt --scene {scene}     (answer this question anew)"
            ));
        }
        failure
    }

    /// Reports conflicts and, if nobody judged the scenes, their evidence.
    fn answer_findings(&self, checking: &Checking, is_list: bool) -> Answer {
        let mut text: String = checking.conflicts.iter().map(render_conflict).collect();
        let here = checking.path.as_deref().unwrap_or("claim");
        if is_list {
            text.extend(
                checking
                    .scenes
                    .iter()
                    .map(|asked| render_scene(here, asked)),
            );
        }
        let mut answer = Answer::new(json!(checking), text);
        if !checking.conflicts.is_empty() {
            answer.exit = exit::NO;
        }
        answer = answer.say(summary(checking));
        if let (true, Some(file), Some(_)) = (is_list, &self.path, checking.prompts.first()) {
            answer = answer.say(format!(
                "no model has judged it; the questions to one: quipu check {file} --prompt"
            ));
        }
        if !checking.waived.is_empty() {
            // The list is shown to actors that may read the waivers.
            let is_hidden = checking
                .waived
                .iter()
                .all(|waiver| waiver.reason.is_empty());
            let list = if is_hidden {
                ""
            } else {
                ": quipu waive --list"
            };
            answer = answer.say(format!("{} waived{list}", checking.waived.len()));
        }
        answer
    }
}

fn summary(checking: &Checking) -> String {
    let claims = &checking.claims;
    let of = |verdict: Verdict| {
        claims
            .iter()
            .filter(|claim| claim.verdict == verdict)
            .count()
    };
    let l1 = claims.iter().filter(|claim| claim.l1 == Asked::Hit).count();
    let l2 = claims.iter().filter(|claim| claim.l2 == Asked::Hit).count();
    format!(
        "{}: {}, {} consistent, {} unknown; memory has evidence for {l1} and none for {}; \
         manuscripts have evidence for {l2}",
        count(claims.len(), "claim"),
        count(checking.conflicts.len(), "conflict"),
        of(Verdict::Consistent),
        of(Verdict::Unknown),
        claims.len() - l1
    )
}

/// Prints the prompts.
fn answer_prompts(checking: &Checking) -> Answer {
    let data = json!({"path": checking.path, "prompts": checking.prompts});
    let text: Vec<&str> = checking
        .prompts
        .iter()
        .map(|one| one.text.as_str())
        .collect();
    let answer = Answer::new(data, text.join("\n"));
    let Some(first) = checking.prompts.first() else {
        return answer.say("nothing to ask: neither memory nor manuscripts have evidence");
    };
    match (&checking.path, checking.prompts.len()) {
        (Some(path), 1) => answer.say(format!(
            "save the answer to a file; then: quipu check {path} --scene {} --answers FILE",
            first.scene
        )),
        (Some(path), many) => answer.say(format!(
            "{many} questions, one for each scene; save each answer as FOLDER/scene-N.json; then: \
             quipu check {path} --answers FOLDER"
        )),
        (None, _) => answer,
    }
}

fn render_conflict(conflict: &Unwaived) -> String {
    let Unwaived {
        id,
        at,
        claim,
        against,
        evidence,
        tier,
        level,
        confidence,
        judge,
        why,
    } = conflict;
    let level = level.map(|level| format!(" [{level}]")).unwrap_or_default();
    let tier = if *tier == "L2" {
        shown_tier(Tier::L2)
    } else {
        shown_tier(Tier::L1)
    };
    format!(
        "conflict  {at} ⇄ {against}  {tier}{level}  {confidence:.2}  {judge}  {id}\n    {claim}\n    {evidence}\n    {why}\n"
    )
}

/// Lists the evidence of a scene.
fn render_scene(here: &str, asked: &SceneEvidence) -> String {
    let scene = &asked.scene;
    if asked.evidence.is_empty() {
        return String::new();
    }
    let claims = count(scene.claims.len(), "claim");
    let (first, last) = (scene.first_line, scene.last_line);
    let mut text = format!("scene {}  {here}:{first}-{last}  {claims}\n", scene.number);
    for one in &asked.evidence {
        let tier = shown_tier(one.tier);
        let level = one
            .level
            .map(|level| format!(" [{}]", level.name()))
            .unwrap_or_default();
        let about = match one.about.as_str() {
            "" => String::new(),
            about => format!("{about}: "),
        };
        let holds = one
            .holds
            .as_ref()
            .map(|holds| format!("({holds}) "))
            .unwrap_or_default();
        text.push_str(&format!(
            "    - {} {tier}{level}  {holds}{about}{}\n",
            one.at, one.text
        ));
    }
    text
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Failure {
        let what = error.to_string();
        match error {
            CheckError::Read(error) => error.into(),
            CheckError::Store(error) => error.into(),
            CheckError::NoScene { .. } => Failure::new(
                exit::NOT_FOUND,
                what,
                "run without --scene: all scenes are then checked",
            ),
            CheckError::Judge { .. } => Failure::new(
                exit::AGENT,
                what,
                "run without --judge or --answers: the evidence is then listed for you to judge",
            ),
            CheckError::NoWaiver(_) => Failure::new(exit::NOT_FOUND, what, "quipu waive --list"),
            CheckError::NoReason => Failure::usage(what, "quipu waive ID --why \"…\""),
        }
    }
}
