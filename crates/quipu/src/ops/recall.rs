//! The `recall` command: finds the sections that answer a question. The search is in the protocol
//! crate.

use clap::Args;
use clap::builder::PossibleValue;
use quipu_claims::{Asked, speaks_of};
use quipu_contract::{FileRule, Form, Pattern};
use quipu_protocol::{Ask, Tier, note_asked, recall};
use quipu_text::recall::Hit;
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Recall {
    /// The question, in words
    question: String,
    /// The number of sections to show at most
    #[arg(short = 'k', value_name = "N", default_value_t = 5)]
    most: usize,
    /// Only in files that match
    #[arg(long = "in", value_name = "GLOB")]
    within: Option<String>,
    /// Only in this tier: index, memory or manuscript (L0, L1, L2)
    #[arg(long, value_name = "TIER", value_parser = [
        PossibleValue::new("index").alias("L0"),
        PossibleValue::new("memory").alias("L1"),
        PossibleValue::new("manuscript").alias("L2"),
    ])]
    tier: Option<String>,
    /// Search by words alone, without the sentence encoder
    #[arg(long)]
    no_model: bool,
    /// Let the encoder read every section first, however long it takes
    #[arg(long, conflicts_with = "no_model")]
    complete: bool,
}

impl Operate for Recall {
    const NAME: &'static str = "recall";
    const ABOUT: &'static str = "Find the sections that answer a question";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let within = match &self.within {
            Some(glob) => {
                let pattern =
                    Pattern::parse(glob).map_err(|what| Failure::usage(what, "--in 'meta/**'"))?;
                if let Some(name) = pattern.variables().next() {
                    return Err(Failure::usage(
                        format!("`{glob}`: `{{{name}}}` stands for nothing here"),
                        "--in 'meta/**'",
                    ));
                }
                Some(pattern)
            }
            None => None,
        };
        let tier = match self.tier.as_deref() {
            Some("index" | "L0") => Some(Tier::L0),
            Some("memory" | "L1") => Some(Tier::L1),
            Some("manuscript" | "L2") => Some(Tier::L2),
            _ => None,
        };
        let project = session.project()?;
        let ask = Ask {
            question: &self.question,
            k: self.most,
            within,
            tier,
            use_model: !self.no_model,
            complete: self.complete,
        };
        let recalled = recall(&project, &session.actor, &ask)?;
        let answer = &recalled.answer;
        let hits: Vec<_> = answer
            .hits
            .iter()
            .map(|hit| {
                json!({"path": hit.path, "line": hit.line, "heading_path": hit.heading_path, "tier": name(hit.tier), "score": hit.score,
                       "snippet": hit.snippet, "version": hit.version})
            })
            .collect();
        let mut text = String::new();
        for hit in &answer.hits {
            text.push_str(&format!(
                "{}:{}  {}  {:.2}  {}\n",
                hit.path,
                hit.line,
                shown_tier(hit.tier),
                hit.score,
                hit.heading_path.join(" › ")
            ));
            text.push_str(&format!(
                "    {}\n",
                hit.snippet.split_whitespace().collect::<Vec<_>>().join(" ")
            ));
        }
        let mut told = Answer::new(
            json!({"hits": hits, "covers": {"current": true, "files": answer.files, "sections": answer.sections,
                   "encoded": answer.encoded, "read_anew": recalled.read_anew, "not_searched": recalled.not_searched}}),
            text,
        );
        let files = if answer.files == 1 { "file" } else { "files" };
        told = told.say(format!(
            "searched {} sections of {} {files}, all at their current versions",
            answer.sections, answer.files
        ));
        if !recalled.not_searched.is_empty() {
            told = told.say(format!(
                "not searched, since larger than 8 MB or not UTF-8: {}",
                recalled.not_searched.join(", ")
            ));
        }
        if !self.no_model && answer.encoded < answer.sections {
            told = told.say(format!(
                "the encoder has read {} of them: quipu recall --complete reads the rest",
                answer.encoded
            ));
        }
        if answer.hits.is_empty() {
            told.exit = exit::NO;
        }
        let speaks = |hit: &Hit| {
            speaks_of(
                &format!("{} {}", hit.heading_path.join(" "), hit.snippet),
                &self.question,
            )
        };
        // Manuscripts are the files that memory is distilled from. Other files of the lowest tier,
        // such as delegations, are not manuscripts.
        let is_manuscript = |rule: &FileRule| {
            rule.tier.as_deref() == Some("L2") && rule.form != Some(Form::Delegation)
        };
        let leaves = project.contract.files.iter().any(is_manuscript);
        if leaves && tier.is_none() {
            let knows = |tier: Tier| {
                answer
                    .hits
                    .iter()
                    .any(|hit| hit.tier == tier && speaks(hit))
            };
            let (l1, l2) = match (knows(Tier::L1), knows(Tier::L2)) {
                (true, _) => (Asked::Hit, Asked::No),
                (false, true) => (Asked::Miss, Asked::Hit),
                (false, false) => (Asked::Miss, Asked::Miss),
            };
            note_asked(&project, &[(l1, l2)]);
            told.json["tiers"] = json!({"L1": l1, "L2": l2});
            if (l1, l2) == (Asked::Miss, Asked::Hit) {
                told = told.say("found in manuscripts, not in memory; to add it: quipu learn QUESTION --to PATH#SECTION");
            }
        }
        if !answer.hits.iter().any(speaks) {
            let place = if leaves {
                " in memory or manuscripts"
            } else {
                ""
            };
            let rest = if answer.hits.is_empty() {
                ""
            } else {
                "; the nearest sections are shown"
            };
            told = told.say(format!("no good match{place}{rest}"));
        }
        Ok(told)
    }
}

/// Returns the tier's name for people; JSON has its number.
pub fn shown_tier(tier: Tier) -> &'static str {
    match tier {
        Tier::L0 => "index",
        Tier::L1 => "memory",
        Tier::L2 => "manuscript",
    }
}

fn name(tier: Tier) -> &'static str {
    match tier {
        Tier::L0 => "L0",
        Tier::L1 => "L1",
        Tier::L2 => "L2",
    }
}
