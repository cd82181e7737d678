//! The `verify` command: checks the journal, all files and the leases.

use clap::Args;
use quipu_contract::Language;
use quipu_protocol::ReadScope;
use quipu_store::{ExpectedHead, Problem};
use serde_json::json;

use crate::answer::{Answer, Failure, count, exit, in_language};
use crate::heads::{self, Compared};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Verify {
    /// Fail unless the journal contains exactly this record: SEQ:HASH or a hash, as printed by
    /// `head` and `finish`
    #[arg(long, value_name = "HEAD")]
    expect: Option<String>,
}

impl Operate for Verify {
    const NAME: &'static str = "verify";
    const ABOUT: &'static str =
        "Check the journal, all files and the leases; exit 1 if something is wrong";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.history()?;
        let language = project.contract.language;
        let expected = self.expect.as_deref().map(parse_head).transpose()?;
        let mut found = project.store.verify()?;
        let scope = ReadScope::of(&project, &session.actor);
        let elsewhere = scope.narrow_problems(&mut found.problems);
        if !scope.is_everything() {
            found.healed.clear();
        }
        let compared = heads::compare(&project.store)?;
        let shared = heads::compare_shared(&project.store)?;
        let problem = |(place, what, remedy): &(String, String, String)| Problem {
            place: place.clone(),
            what: what.clone(),
            remedy: remedy.clone(),
        };
        found.problems.extend(
            compared
                .problems
                .iter()
                .chain(shared.iter().filter_map(|shared| shared.problem.as_ref()))
                .map(problem),
        );
        if let Some(head) = &expected
            && let Some((what, remedy)) = heads::compare_one(&project.store, head)?
        {
            found.problems.push(Problem {
                place: "--expect".into(),
                what,
                remedy,
            });
        }
        let mut text = String::new();
        for problem in &found.problems {
            text.push_str(&format!(
                "{}: {}\n  help  {}\n",
                problem.place, problem.what, problem.remedy
            ));
        }
        for torn in &found.torn {
            text.push_str(&format!(
                "{torn}: bytes found after the last complete record. They \
                belong to a write that was never acknowledged, unless the journal itself was \
                truncated or damaged. Inspect the file, then delete it\n"
            ));
        }
        for healed in &found.healed {
            text.push_str(&format!("known damage: {healed}\n"));
        }
        for notice in &found.notices {
            text.push_str(&format!("{notice}\n"));
        }
        if found.dropped > 0 {
            text.push_str(&format!(
                "{} deleted by retention\n",
                count(usize::try_from(found.dropped).unwrap_or(usize::MAX), "text")
            ));
        }
        let number = |n: u64, of| count(usize::try_from(n).unwrap_or(usize::MAX), of);
        let problems = match (found.problems.len(), elsewhere, language) {
            (0, 0, Language::En) => "no problems found".to_owned(),
            (0, 0, Language::Zh) => "没有发现问题".to_owned(),
            (here, 0, Language::En) => count(here, "problem"),
            (here, 0, Language::Zh) => format!("{here} 个问题"),
            (here, elsewhere, Language::En) => format!(
                "{}, {elsewhere} of them in files that your role may not read; ask a person to \
                 run: quipu verify",
                count(here + elsewhere, "problem")
            ),
            (here, elsewhere, Language::Zh) => format!(
                "{} 个问题，其中 {elsewhere} 个在你的角色不可读的文件里；请人执行：quipu verify",
                here + elsewhere
            ),
        };
        let (records, files, leases) = (found.records, found.files, found.leases);
        text.push_str(&in_language(
            language,
            format!(
                "{}, {}, {}: {problems}\n",
                number(records, "record"),
                number(files, "file"),
                number(leases, "lease")
            ),
            format!("{records} 条记录，{files} 个文件，{leases} 个租约：{problems}\n"),
        ));
        text.push_str(&told_heads(&compared, expected.as_ref()));
        text.push_str(shared.as_ref().map_or("", |shared| &shared.report));
        let mut answer = Answer::new(json!(found), text);
        answer.json["heads"] = json!(compared);
        if elsewhere > 0 {
            answer.json["problems_elsewhere"] = json!(elsewhere);
        }
        if let Some(shared) = shared {
            answer.json["shared"] = shared.json;
        }
        answer.exit = if found.problems.is_empty() && elsewhere == 0 {
            exit::FINE
        } else {
            exit::NO
        };
        Ok(answer)
    }
}

fn parse_head(text: &str) -> Result<ExpectedHead, Failure> {
    let remedy = "quipu verify --expect SEQ:HASH     (as `quipu head` prints it; at least 8 digits of the hash)";
    ExpectedHead::parse(text)
        .ok_or_else(|| Failure::usage(format!("`{text}` is not a head"), remedy))
}

/// Reports which recorded heads were compared, and which were not.
fn told_heads(compared: &Compared, expected: Option<&ExpectedHead>) -> String {
    let mut text = String::new();
    if let Some(head) = expected {
        text.push_str(&format!("compared with the head you expect, {head}\n"));
    }
    if compared.any {
        let signed = if compared.signed > 0 {
            format!(", {} signed by you", compared.signed)
        } else {
            String::new()
        };
        text.push_str(&format!(
            "{} in git and .quipu/{} agree{signed}",
            count(compared.agree, "recorded head"),
            heads::SIGNED
        ));
        if compared.of_other_journals > 0 {
            text.push_str(&format!(
                "; {} of other journals not compared",
                compared.of_other_journals
            ));
        }
        if compared.by_other_keys > 0 {
            text.push_str(&format!(
                "; {} by other keys not checked",
                count(compared.by_other_keys, "signature")
            ));
        }
        text.push('\n');
    }
    text
}
