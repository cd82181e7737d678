//! The `check` command: checks a draft, or one sentence, against memory and manuscripts.

use clap::Args;
use quipu_claims::{Asked, Checked, Evidence, Verdict};
use quipu_protocol::{
    CheckError, CheckRequest, Checking, ClaimJudge, Draft, Unwaived, check_draft,
};
use quipu_text::Counter;
use serde_json::json;

use super::recall::shown_tier;
use crate::answer::{Answer, Failure, count, exit};
use crate::judge_client::JudgeClient;
use crate::session::Session;
use crate::table::Operate;
use quipu_text::recall::Tier;

#[derive(Debug, Args)]
pub struct Check {
    /// The draft, or one section of it
    #[arg(value_name = "FILE[#SECTION]", required_unless_present = "claim")]
    file: Option<String>,
    /// One sentence in place of a file
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    claim: Option<String>,
    /// Who judges what no rule decides: an agent as for `quipu run`, or command:PROGRAM
    #[arg(long, value_name = "AGENT")]
    judge: Option<String>,
    /// At most so many pieces of evidence for one claim
    #[arg(short = 'k', long = "k", value_name = "N", default_value_t = 6)]
    most: usize,
    /// At most so many tokens of evidence in all
    #[arg(long, value_name = "N", default_value_t = 1500)]
    tokens: u64,
}

impl Operate for Check {
    const NAME: &'static str = "check";
    const ABOUT: &'static str = "Check a draft, or one sentence, against what is already written";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let judge = self
            .judge
            .as_deref()
            .map(|name| JudgeClient::of(name, &project.contract, project.store.root()))
            .transpose()?;
        let draft = match (&self.claim, &self.file) {
            (Some(claim), _) => Draft::Claim(claim),
            (None, Some(file)) => Draft::File(file),
            (None, None) => {
                return Err(Failure::usage(
                    "nothing to check",
                    "quipu check FILE, or quipu check --claim \"…\"",
                ));
            }
        };
        let judge = judge.as_ref().map(|judge| judge as &dyn ClaimJudge);
        let checking = check_draft(
            &project,
            &session.actor,
            &CheckRequest {
                draft,
                k: self.most,
                judge,
            },
        )?;
        let mut text = String::new();
        checking
            .conflicts
            .iter()
            .for_each(|conflict| text.push_str(&render_conflict(conflict)));
        let (evidence, untold) = render_unknown(&checking, self.tokens);
        text.push_str(&evidence);
        let of = |verdict: Verdict| {
            checking
                .claims
                .iter()
                .filter(|claim| claim.verdict == verdict)
                .count()
        };
        let l1 = checking
            .claims
            .iter()
            .filter(|claim| claim.l1 == Asked::Hit)
            .count();
        let l2 = checking
            .claims
            .iter()
            .filter(|claim| claim.l2 == Asked::Hit)
            .count();
        let total = checking.claims.len();
        let mut answer = Answer::new(json!(checking), text);
        if !checking.conflicts.is_empty() {
            answer.exit = exit::NO;
        }
        answer = answer.say(format!(
            "{}: {}, {} consistent, {} unknown; memory has evidence for {l1}, none for {}; manuscripts have it for {l2}",
            count(total, "claim"),
            count(checking.conflicts.len(), "conflict"),
            of(Verdict::Consistent),
            of(Verdict::Unknown),
            total - l1
        ));
        if untold > 0 {
            answer = answer.say(format!(
                "{untold} more claims with evidence: --tokens N shows more, --json all"
            ));
        }
        if !checking.waived.is_empty() {
            // The list is shown to actors that may read the waivers.
            let list = if checking
                .waived
                .iter()
                .all(|waiver| waiver.reason.is_empty())
            {
                ""
            } else {
                ": quipu waive --list"
            };
            answer = answer.say(format!("{} waived{list}", checking.waived.len()));
        }
        Ok(answer)
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

/// Formats the claims that no rule decided, with evidence, up to a number of tokens, for the caller
/// to judge.
fn render_unknown(checking: &Checking, most: u64) -> (String, usize) {
    let here = checking.path.as_deref().unwrap_or("claim");
    let (mut text, mut spent, mut untold) = (String::new(), 0, 0);
    for checked in checking
        .claims
        .iter()
        .filter(|checked| checked.verdict != Verdict::Conflict && !checked.evidence.is_empty())
    {
        let told = render_claim(here, checked);
        let cost = Counter::O200k.count(&told).0;
        if spent + cost > most {
            untold += 1;
            continue;
        }
        spent += cost;
        text.push_str(&told);
    }
    (text, untold)
}

fn render_claim(here: &str, checked: &Checked) -> String {
    let asked = |asked: Asked| match asked {
        Asked::Hit => "hit",
        Asked::Miss => "miss",
        Asked::No => "not asked",
    };
    let mut text = format!(
        "{}  {here}:{}  memory {}, manuscripts {}\n    {}\n",
        checked.verdict.as_str(),
        checked.claim.line,
        asked(checked.l1),
        asked(checked.l2),
        checked.claim.text
    );
    for Evidence {
        at,
        tier,
        level,
        text: said,
        ..
    } in &checked.evidence
    {
        let tier = shown_tier(*tier);
        let level = level
            .map(|level| format!(" [{}]", level.name()))
            .unwrap_or_default();
        text.push_str(&format!(
            "    - {at} {tier}{level}  {}\n",
            said.split_whitespace().collect::<Vec<_>>().join(" ")
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
            CheckError::Search(_) => Failure::new(exit::IO, what, ""),
            CheckError::Judge { .. } => Failure::new(
                exit::AGENT,
                what,
                "run without --judge: the evidence is listed for you",
            ),
            CheckError::NoWaiver(_) => Failure::new(exit::NOT_FOUND, what, "quipu waive --list"),
            CheckError::NoReason => Failure::usage(what, "quipu waive ID --why \"…\""),
        }
    }
}
