//! The commands `approve` and `reject`: decide at a gate, or overrule an objection.

use clap::Args;
use quipu_contract::{Class, Contract, ProjectPath};
use quipu_protocol::flow::{
    AttemptResult, Decided, FlowCache, Job, decide_gate, flow_now, next_command,
};
use serde_json::json;

use crate::answer::{Answer, Failure, in_language};
use crate::flow_text::render_unit;
use crate::session::Session;
use crate::shell_word::shell_word;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Approve {
    /// The gate, or the step with the objection to overrule
    gate: String,
    /// The reason
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

impl Operate for Approve {
    const NAME: &'static str = "approve";
    const ABOUT: &'static str =
        "Approve a gate, overrule an objection, or excuse a failed reviewer; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        decide(
            session,
            &self.gate,
            AttemptResult::Approved,
            self.why.as_deref(),
        )
    }
}

#[derive(Debug, Args)]
pub struct Reject {
    /// The gate
    gate: String,
    /// What is wrong; the next attempt receives this text
    #[arg(long, value_name = "TEXT")]
    why: String,
}

impl Operate for Reject {
    const NAME: &'static str = "reject";
    const ABOUT: &'static str = "Reject the work before a gate and send it back; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        decide(
            session,
            &self.gate,
            AttemptResult::Rejected,
            Some(&self.why),
        )
    }
}

fn decide(
    session: &Session,
    gate: &str,
    ruling: AttemptResult,
    why: Option<&str>,
) -> Result<Answer, Failure> {
    let project = session.project()?;
    let job = Job {
        step: gate.to_owned(),
        unit: session.actor.unit().cloned(),
    };
    let Decided {
        receipt,
        made,
        declared,
        stale,
        open,
        excused,
        kept,
    } = decide_gate(&project, &session.decider(), &job, ruling, why)?;
    let language = project.contract.language;
    let verb = if excused {
        in_language(language, "excused", "不再等待")
    } else if ruling == AttemptResult::Approved {
        in_language(language, "approved", "已批准")
    } else {
        in_language(language, "rejected", "已退回")
    };
    let mut text = format!("{verb} {job}\n");
    for path in &made {
        text.push_str(&format!(
            "{path} {}\n",
            receipt
                .versions
                .get(path)
                .map(ToString::to_string)
                .unwrap_or_default()
        ));
    }
    for path in &kept {
        let command = format!("quipu amend {} --why \"…\"", shell_word(path.as_str()));
        text.push_str(&in_language(
            language,
            format!("{path} is sealed already and stays as it is; to change it: {command}\n"),
            format!("{path} 已经封存，保持原样；要改：{command}\n"),
        ));
    }
    for unit in &declared {
        let declared = in_language(language, "declared", "已写入");
        text.push_str(&format!("{declared} {}\n", render_unit(unit)));
    }
    if excused {
        text.push_str(in_language(
            language,
            "the panel goes on without its report, which enters no average\n",
            "评审继续，不等它的报告；该报告不计入任何平均分\n",
        ));
    }
    let mut answer = Answer::new(
        json!({"job": job, "ruling": ruling, "made": made, "declared": declared, "stale": stale, "open": open, "excused": excused, "receipt": receipt}),
        text,
    );
    if !stale.is_empty() {
        let names = stale
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let sealed: Vec<String> = made
            .iter()
            .filter(|path| is_sealed(&project.contract, path))
            .map(|path| format!("`{path}`"))
            .collect();
        let sealed = if sealed.is_empty() {
            String::new()
        } else {
            let sealed = sealed.join(", ");
            in_language(
                language,
                format!(" (sealed with the changed text: {sealed})"),
                format!("（封存的是改动后的文本：{sealed}）"),
            )
        };
        let is = if stale.len() == 1 { "is" } else { "are" };
        answer = answer.say(in_language(
            language,
            format!(
                "warning: what you approved changed after its review: {names} {is} stale{sealed}; \
                 to review it again: quipu run --stale --by NAME"
            ),
            format!(
                "警告：你批准的内容在审阅之后有改动：{names} 已过时{sealed}；重新审阅：quipu run \
                 --stale --by NAME"
            ),
        ));
    }
    for point in open.iter().filter(|_| ruling == AttemptResult::Approved) {
        let (at, section, text) = (&point.at, &point.section, &point.text);
        answer = answer.say(in_language(
            language,
            format!("left open: {section}: {text}  ({at})"),
            format!("尚未解决：{section}：{text}  ({at})"),
        ));
    }
    let sealed: Vec<ProjectPath> = made
        .iter()
        .filter_map(|path| ProjectPath::parse(path).ok())
        .collect();
    let answer = super::receipt::with_open_conflicts(&project, &session.decider(), &sealed, answer);
    // Opened again: the decision may have declared units.
    let project = session.project()?;
    let (flow, _) = flow_now(&project, &FlowCache::default())?;
    let next = next_command(&flow).map_or_else(String::new, |next| {
        let command = next.split("     (").next().unwrap_or_default();
        in_language(
            language,
            format!("; to continue: {command}"),
            format!("；接下来：{command}"),
        )
    });
    Ok(answer.say(super::receipt::saved(language, receipt.seq) + &next))
}

fn is_sealed(contract: &Contract, path: &str) -> bool {
    ProjectPath::parse(path).is_ok_and(|path| contract.class(&path) == Class::Sealed)
}
