//! The `check` command: checks a draft, or one sentence, against memory and manuscripts.
//!
//! Conflicts are printed first, then the evidence of each scene for the caller to judge by. With
//! `--prompt` it prints the ready question about each scene instead, and `--answers` reads what
//! somebody answered.

use clap::Args;
use quipu_contract::Language;
use quipu_protocol::{
    AnswersKept, CheckError, CheckRequest, Checking, Draft, SceneJudge, check_draft, keep_answers,
};
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::check_text;
use crate::judge_client::JudgeClient;
use crate::saved_answers::SavedAnswers;
use crate::session::Session;
use crate::shell_word::shell_word;
use crate::table::Operate;

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
    /// The answer to the question about the scene (`-` reads stdin), or a folder with scene-N.json
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
        let language = project.contract.language;
        let answer = match self.prompt {
            true => answer_prompts(&checking, language),
            false => self.answer_findings(&checking, is_list, language),
        };
        let answer = match saved.and_then(|saved| saved.unanswered()) {
            Some(note) => answer.say(note),
            None => answer,
        };
        let kept = keep_answers(&project, &session.actor, &checking, session.lease.clone())?;
        Ok(match kept {
            AnswersKept::Nothing | AnswersKept::Already => answer,
            AnswersKept::Saved { receipt, replaces } => {
                let names: Vec<&str> = receipt.versions.keys().map(AsRef::as_ref).collect();
                let (names, seq) = (names.join(", "), receipt.seq);
                let answer = answer.say(match language {
                    Language::En => format!("kept in {names} @{seq}"),
                    Language::Zh => format!("已存入 {names} @{seq}"),
                });
                match (replaces, language) {
                    (false, _) => answer,
                    (true, Language::En) => answer.say(
                        "this replaces earlier answers about the same scene: conflicts that only \
                         they named no longer count",
                    ),
                    (true, Language::Zh) => {
                        answer.say("它取代先前对同一场景的回答：只有先前回答指出的冲突不再计入")
                    }
                }
            }
            AnswersKept::Refused(error) => answer.say(match language {
                Language::En => format!("not kept: {error}"),
                Language::Zh => format!("未存：{error}"),
            }),
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

    /// The words of the command line that name the text.
    fn asked(&self) -> String {
        match (&self.path, &self.claim) {
            (Some(path), _) => shell_word(path).to_string(),
            (None, Some(claim)) => format!("--claim {}", shell_word(claim)),
            (None, None) => String::new(),
        }
    }

    /// Reports conflicts and, if nobody judged the scenes, their evidence.
    fn answer_findings(&self, checking: &Checking, is_list: bool, language: Language) -> Answer {
        let conflicts = checking.conflicts.iter().chain(&checking.old);
        let mut text: String = conflicts
            .map(|one| check_text::render_conflict(one, language))
            .collect();
        let here = checking.path.as_deref().unwrap_or("claim");
        if is_list {
            text.extend(
                checking
                    .scenes
                    .iter()
                    .map(|asked| check_text::render_scene(here, asked, language)),
            );
        }
        let mut answer = Answer::new(json!(checking), text);
        if !checking.conflicts.is_empty() {
            answer.exit = exit::NO;
        }
        for line in check_text::summary(checking, &self.asked(), language) {
            answer = answer.say(line);
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
            let number = checking.waived.len();
            answer = answer.say(match language {
                Language::En => format!("{number} waived{list}"),
                Language::Zh => format!("已豁免 {number} 处{list}"),
            });
        }
        answer
    }
}

/// Prints the prompts.
fn answer_prompts(checking: &Checking, language: Language) -> Answer {
    let data = json!({"path": checking.path, "prompts": checking.prompts});
    let text: Vec<&str> = checking
        .prompts
        .iter()
        .map(|one| one.text.as_str())
        .collect();
    let answer = Answer::new(data, text.join("\n"));
    let Some(first) = checking.prompts.first() else {
        return answer.say(match language {
            Language::En => "nothing to ask: neither memory nor manuscripts have evidence",
            Language::Zh => "无可发问：记忆与定稿都没有依据",
        });
    };
    let (Some(path), many) = (&checking.path, checking.prompts.len()) else {
        return answer;
    };
    let (path, scene) = (shell_word(path), first.scene);
    answer.say(match (language, many) {
        (Language::En, 1) => format!(
            "save the answer to a file; then: quipu check {path} --scene {scene} --answers FILE"
        ),
        (Language::En, _) => format!(
            "{many} questions, one for each scene; save each answer as FOLDER/scene-N.json; then: \
             quipu check {path} --answers FOLDER"
        ),
        (Language::Zh, 1) => {
            format!("把回答存成文件，然后：quipu check {path} --scene {scene} --answers FILE")
        }
        (Language::Zh, _) => format!(
            "{many} 个问题，每个场景一个；把每个回答存成 FOLDER/scene-N.json，然后：quipu check {path} \
             --answers FOLDER"
        ),
    })
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
