//! Has scenes judged: by a program, an agent, or answers that somebody saved.
//!
//! A judge gets one prompt for each scene. Its findings count only if they cite evidence and quote
//! the draft; `quipu_claims` checks both. This module turns them into conflicts with ids for
//! waivers.

use quipu_claims::{
    Answered, Checked, Claim, PromptLanguage, Ruling, SceneEvidence, Verdict, conflict_id,
    question_id, read_rulings, render_judged_scene, render_judgement, render_prompt, scene_id,
};
use serde::Serialize;

use super::check::{CheckError, Unwaived, tier_name};

/// Reads an answer: its findings, or its fault in words that can be sent back.
pub type Accept<'a> = &'a dyn Fn(&str) -> Result<Vec<Ruling>, String>;

/// Judges a scene: implemented by programs, agents and saved answers.
pub trait SceneJudge {
    fn name(&self) -> &str;
    /// How its answers reach Quipu.
    fn answered(&self) -> Answered {
        Answered::Now
    }
    /// Answers the prompt of a scene. An answer that is not accepted may be sent back once. `None`
    /// means that nobody answers for this scene.
    fn judge(
        &self,
        scene: usize,
        prompt: &str,
        accept: Accept<'_>,
    ) -> Result<Option<Vec<Ruling>>, String>;
}

/// A ready prompt for one scene.
#[derive(Debug, Clone, Serialize)]
pub struct ScenePrompt {
    pub scene: usize,
    /// Changes with the scene and its evidence; a saved answer names it.
    pub question: String,
    pub text: String,
}

/// Writes the prompt of each scene that has evidence.
pub fn scene_prompts(
    draft: &str,
    here: &str,
    claims: &[Checked],
    scenes: &[SceneEvidence],
) -> Vec<ScenePrompt> {
    let language = PromptLanguage::of(draft);
    let claims = claims_of(claims);
    let asked = scenes.iter().filter(|asked| !asked.evidence.is_empty());
    asked
        .map(|asked| ScenePrompt {
            scene: asked.scene.number,
            question: question_id(asked, &claims),
            text: render_prompt(asked, &claims, here, language),
        })
        .collect()
}

fn claims_of(checked: &[Checked]) -> Vec<Claim> {
    checked.iter().map(|one| one.claim.clone()).collect()
}

/// A scene that a judge has answered for.
#[derive(Debug, Clone)]
pub struct JudgedNow {
    pub scene: usize,
    pub judge: String,
    lines: (usize, usize),
    claims: Vec<Claim>,
    pub conflicts: Vec<Unwaived>,
}

impl JudgedNow {
    pub(super) fn has(&self, line: usize, text: &str) -> bool {
        let mut claims = self.claims.iter();
        claims.any(|claim| claim.line == line && claim.text == text)
    }

    pub(super) fn scene_id(&self) -> String {
        scene_id(&self.claims)
    }

    /// Writes the answer as it is kept.
    pub(super) fn render(&self, here: &str) -> String {
        let id = self.scene_id();
        let mut text = render_judged_scene(here, self.lines, &id, &self.judge);
        for conflict in &self.conflicts {
            text.push_str(&render_judgement(
                [&conflict.at, &conflict.against],
                [&conflict.claim, &conflict.evidence],
                &conflict.why,
                conflict.confidence,
                &conflict.judge,
            ));
        }
        text
    }
}

/// Asks the judge about each prompt. Returns its answers, and marks the claims that it contradicts.
pub(super) fn judge_scenes(
    judge: &dyn SceneJudge,
    here: &str,
    checked: &mut [Checked],
    scenes: &[SceneEvidence],
    prompts: &[ScenePrompt],
) -> Result<Vec<JudgedNow>, CheckError> {
    let claims = claims_of(checked);
    let mut judged = Vec::new();
    for prompt in prompts {
        let Some(asked) = scenes.iter().find(|one| one.scene.number == prompt.scene) else {
            continue;
        };
        let accept = |answer: &str| read_rulings(answer, judge.answered(), asked, &claims);
        let rulings = judge
            .judge(prompt.scene, &prompt.text, &accept)
            .map_err(|what| CheckError::Judge {
                scene: prompt.scene,
                what,
            })?;
        let Some(rulings) = rulings else {
            continue;
        };
        let mut conflicts = Vec::new();
        for ruling in rulings {
            let one = &mut checked[ruling.claim];
            let place = &asked.evidence[ruling.evidence].at;
            if one
                .findings
                .iter()
                .any(|known| known.finding.conflict && known.finding.at == *place)
            {
                continue;
            }
            one.verdict = Verdict::Conflict;
            conflicts.push(conflict_of(judge.name(), here, one, asked, &ruling));
        }
        judged.push(JudgedNow {
            scene: prompt.scene,
            judge: judge.name().to_owned(),
            lines: (asked.scene.first_line, asked.scene.last_line),
            claims: claims[asked.scene.claims.clone()].to_vec(),
            conflicts,
        });
    }
    Ok(judged)
}

fn conflict_of(
    judge: &str,
    here: &str,
    checked: &Checked,
    asked: &SceneEvidence,
    ruling: &Ruling,
) -> Unwaived {
    let evidence = &asked.evidence[ruling.evidence];
    Unwaived {
        id: conflict_id(&checked.claim.text, &evidence.text),
        at: format!("{here}:{}", checked.claim.line),
        claim: checked.claim.text.clone(),
        against: evidence.at.to_string(),
        evidence: evidence.text.clone(),
        tier: tier_name(evidence.tier),
        level: evidence.level.map(|level| level.name()),
        confidence: ruling.confidence,
        judge: judge.to_owned(),
        why: ruling.why.clone(),
        kept: None,
    }
}
