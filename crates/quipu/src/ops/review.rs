//! The `review` commands: the state of a panel, the authors' revision, and the letter to them.

use std::path::PathBuf;

use clap::Args;
use quipu_contract::{Form, Language, Privilege, ProjectPath};
use quipu_protocol::chinese;
use quipu_protocol::flow::{FlowCache, flow_now, refresh_panel};
use quipu_protocol::review::{
    AgentStatus, Comment, Member, PanelView, Revision, Severity, Sum, panel_view, revise,
    write_letter,
};
use serde_json::json;

use super::{pdf, receipt};
use crate::answer::{Answer, Failure, count, exit, in_language};
use crate::flow_text::table;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct ReviewStatus {}

impl Operate for ReviewStatus {
    const NAME: &'static str = "review status";
    const ABOUT: &'static str =
        "Show each reviewer's status and scores, averages, conflicts and the verdict";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::SeeAll)?;
        let project = session.project()?;
        if project.contract.of_form(Form::Report).next().is_none() {
            return Err(Failure::new(
                exit::NOT_FOUND,
                "the contract declares no reports",
                "quipu profile list     (the review profile has a panel)",
            ));
        }
        let memory = FlowCache::default();
        if !project.store.is_read_only() {
            refresh_panel(&project, &memory)?;
        }
        let (flow, _) = flow_now(&project, &memory)?;
        let read = |path: &ProjectPath| {
            project
                .store
                .read(path)
                .ok()
                .flatten()
                .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
        };
        let panel = panel_view(&project.contract, &flow, &read, &[]);
        let mut answer = Answer::new(json!(panel), render(&panel, project.contract.language));
        if panel.members.iter().any(|m| !m.faults.is_empty()) {
            answer.exit = exit::NO;
        }
        Ok(answer)
    }
}

#[derive(Debug, Args)]
pub struct ReviewRevise {
    /// The authors' revision: Markdown, plain text or a PDF
    revision: PathBuf,
    /// The revised bibliography
    #[arg(long, value_name = "FILE")]
    bib: Option<PathBuf>,
    /// The authors' reply to the comments
    #[arg(long, value_name = "FILE")]
    reply: Option<PathBuf>,
    /// The reason, for the journal
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    why: Option<String>,
}

impl Operate for ReviewRevise {
    const NAME: &'static str = "review revise";
    const ABOUT: &'static str =
        "Replace the manuscript with the authors' revision and open the next round; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        if session.actor.may(Privilege::Decide).is_err() {
            let what = "only people may open a round of a review";
            return Err(Failure::new(exit::REFUSED, what, "ask a person"));
        }
        let project = session.project()?;
        let load = |path: &PathBuf| pdf::as_text("manuscript.md", session.load_file(path)?);
        let revision = Revision {
            text: load(&self.revision)?,
            bibliography: self
                .bib
                .as_ref()
                .map(|path| session.load_file(path))
                .transpose()?,
            reply: self.reply.as_ref().map(load).transpose()?,
            why: self.why,
        };
        let revised = revise(&project, &session.actor, revision)?;
        let language = project.contract.language;
        let named = |ids: &[String]| match ids {
            [] => in_language(language, "none", "无").to_owned(),
            ids => ids.join(", "),
        };
        let (round, again, kept) = (revised.round, named(&revised.again), named(&revised.kept));
        let text = in_language(
            language,
            format!("round {round}\nreport again: {again}\nstill hold: {kept}\n"),
            format!("第 {round} 轮\n重新报告：{again}\n仍然有效：{kept}\n"),
        );
        let data = json!({"round": revised.round, "again": revised.again, "kept": revised.kept});
        Ok(
            receipt::with(project.contract.language, &revised.receipt, data, text)
                .say("to continue: quipu run --by NAME"),
        )
    }
}

#[derive(Debug, Args)]
pub struct ReviewLetter {}

impl Operate for ReviewLetter {
    const NAME: &'static str = "review letter";
    const ABOUT: &'static str =
        "Write the letter to the authors: Markdown, a page with margin comments, and SARIF";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::SeeAll)?;
        let project = session.project()?;
        let (receipt, _) = write_letter(&project)?;
        Ok(receipt::answer(project.contract.language, &receipt))
    }
}

fn render(panel: &PanelView, language: Language) -> String {
    let say = |en: &'static str, zh: &'static str| in_language(language, en, zh);
    let mut rows = vec![
        [
            say("agent", "评审者"),
            "",
            say("status", "状态"),
            say("score", "分数"),
            say("confidence", "信心"),
            say("scores", "分项"),
            say("open", "未解决"),
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    rows.extend(
        panel
            .members
            .iter()
            .map(|member| row(panel, member, language)),
    );
    if let Some(checks) = &panel.checks {
        let none = String::new;
        let status = say("checked", "已检查").to_owned();
        let open = open_of(panel, &checks.id);
        rows.push(vec![
            checks.id.clone(),
            checks.title.clone(),
            status,
            none(),
            none(),
            none(),
            open,
        ]);
    }
    let mut text = table(&rows);
    for member in panel.members.iter().filter(|m| !m.faults.is_empty()) {
        for fault in &member.faults {
            text.push_str(&format!(
                "  {} {}:{} {}\n",
                say("fault   ", "错误    "),
                member.path,
                fault.line,
                chinese::in_language(language, fault.what.clone())
            ));
        }
    }
    let open: Vec<&Comment> = panel.comments.iter().filter(|c| c.is_asked()).collect();
    if !panel.comments.is_empty() {
        let joined = panel.comments.iter().filter(|c| c.joined_to.is_some());
        let joined = joined.count();
        let closed = panel.comments.len() - joined - open.len();
        let with = match joined {
            0 => String::new(),
            _ => in_language(
                language,
                format!(", {joined} joined to others"),
                format!("，{joined} 条并入其他意见"),
            ),
        };
        let (round, open) = (panel.round, open.len());
        text.push_str(&in_language(
            language,
            format!(
                "\nround {round}: {} open, {closed} resolved{with}\n",
                count(open, "comment"),
            ),
            format!("\n第 {round} 轮：{open} 条意见未解决，{closed} 条已解决{with}\n"),
        ));
    }
    for severity in [Severity::Critical, Severity::Important] {
        for comment in open.iter().filter(|c| c.severity == severity) {
            text.push_str(&format!(
                "{}: {} {} \"{}\": {}\n",
                severity.in_language(language),
                comment.id,
                comment.place(language),
                comment.shown_quote(),
                comment.text
            ));
        }
    }
    if let Some(sum) = &panel.sum {
        text.push('\n');
        text.push_str(&render_sum(sum, language));
    }
    if let Some(verdict) = &panel.verdict {
        text.push_str(&format!("{}{verdict}\n", say("verdict: ", "结论：")));
    }
    text
}

/// The number of open comments of an agent; nothing for none.
fn open_of(panel: &PanelView, agent: &str) -> String {
    let own = panel.comments.iter().filter(|c| c.agent == agent);
    match own.filter(|c| c.is_asked()).count() {
        0 => String::new(),
        open => open.to_string(),
    }
}

fn row(panel: &PanelView, member: &Member, language: Language) -> Vec<String> {
    let status = in_language(
        language,
        member.status.as_str(),
        status_in_chinese(member.status),
    );
    let number = |n: Option<u8>| n.map(|n| n.to_string()).unwrap_or_default();
    let report = member.report.as_ref();
    let score = |score: &Option<u8>| score.map_or("n/a".to_owned(), |score| score.to_string());
    let scores: Vec<String> = report
        .into_iter()
        .flat_map(|r| r.scores.iter().map(|(_, s)| score(s)))
        .collect();
    vec![
        member.id.clone(),
        member.title.clone(),
        match (member.excused, member.stale) {
            (true, _) => format!(
                "{status}{}",
                in_language(language, ", excused", "，不再等待")
            ),
            (_, true) => format!("{status}{}", in_language(language, ", stale", "，已过时")),
            _ => status.to_owned(),
        },
        number(report.map(|r| r.score)),
        number(report.map(|r| r.confidence)),
        scores.join(" "),
        open_of(panel, &member.id),
    ]
}

fn status_in_chinese(status: AgentStatus) -> &'static str {
    match status {
        AgentStatus::Pending => "未交",
        AgentStatus::InProgress => "进行中",
        AgentStatus::Completed => "已交",
        AgentStatus::Failed => "失败",
        AgentStatus::NotApplicable => "不适用",
    }
}

fn render_sum(sum: &Sum, language: Language) -> String {
    let say = |en: &'static str, zh: &'static str| in_language(language, en, zh);
    let mut text = String::new();
    for domain in &sum.domains {
        let (name, mean, agents) = (&domain.name, domain.mean, domain.agents);
        text.push_str(&in_language(
            language,
            format!("{name}: {mean:.1} ({})\n", count(agents, "agent")),
            format!("{name}：{mean:.1}（{agents} 份）\n"),
        ));
    }
    let overall = sum.overall;
    text.push_str(&in_language(
        language,
        format!("overall: {overall:.2}, weighted by confidence\n"),
        format!("总分：{overall:.2}，按信心加权\n"),
    ));
    for shared in &sum.shared {
        text.push_str(&format!(
            "{}L{} \"{}\": {}\n",
            say("same passage: ", "同一段："),
            shared.line,
            shared.quote,
            shared.comments.join(", ")
        ));
    }
    for conflict in &sum.conflicts {
        text.push_str(&format!(
            "{}{}: {}\n",
            say("conflict: ", "冲突："),
            conflict.comments.join(" | "),
            conflict
                .ruling
                .as_deref()
                .unwrap_or(say("not ruled on yet", "尚未裁定"))
        ));
    }
    let verdict = sum
        .verdict
        .unwrap_or(say("open until every report is in", "报告到齐之前不定"));
    text.push_str(&format!("{}{verdict}\n", say("by the rule: ", "照规则：")));
    text
}
