//! A flow as text: counts by step, the jobs that need a person, and the next command.

use quipu_contract::{Builtin, Class, Language, UnitId};
use quipu_protocol::Project;
use quipu_protocol::chinese;
use quipu_protocol::flow::{
    Estimate, Flow, JobStatus, PlannedJob, PlannedUnit, State, StepUsage, Usage, load_unit_plan,
    next_command, open_points,
};

use crate::answer::{Failure, in_language};

/// Maximum number of jobs listed per kind; the rest is counted.
const NAMED: usize = 8;

/// Summarizes the flow in a few lines.
pub fn render_flow(project: &Project, flow: &Flow<'_>) -> String {
    if flow.jobs.is_empty() {
        return in_language(
            project.contract.language,
            "flow: no units are declared yet; declare them in quipu.toml: [units.ID]\n",
            "流程：尚未声明任何单元；请写入 quipu.toml：[units.ID]\n",
        )
        .into();
    }
    let language = project.contract.language;
    let counts = |found: &dyn Fn(State) -> usize| {
        let said = State::ALL.iter().filter_map(|s| {
            Some(found(*s))
                .filter(|n| *n > 0)
                .map(|n| format!("{n} {}", word(language, *s)))
        });
        said.collect::<Vec<_>>().join(", ")
    };
    let counted = counts(&|state| flow.count(state));
    let mut text = in_language(
        language,
        format!("flow: {counted}\n"),
        format!("流程：{counted}\n"),
    );
    let mut rows = Vec::new();
    let mut steps: Vec<&str> = Vec::new();
    for job in flow.jobs.iter() {
        if !steps.contains(&job.job.step.as_str()) {
            steps.push(&job.job.step);
        }
    }
    for step in steps {
        let of = |state: State| {
            flow.statuses
                .iter()
                .filter(|s| s.job.step == step && s.state == state)
                .count()
        };
        let all = flow.statuses.iter().filter(|s| s.job.step == step).count();
        // Steps that only wait, and finished steps, carry no news.
        if of(State::Pending) < all && of(State::Done) + of(State::Skipped) < all {
            rows.push(vec![format!("  {step}"), counts(&of)]);
        }
    }
    text.push_str(&table(&rows));
    for state in [
        State::Running,
        State::Stale,
        State::Failed,
        State::Blocked,
        State::Waiting,
    ] {
        let found: Vec<_> = flow.statuses.iter().filter(|s| s.state == state).collect();
        for status in found.iter().take(NAMED) {
            let mut why = status.why.iter();
            text.push_str(
                &format!(
                    "  {:<8} {} {}\n",
                    word(language, state),
                    status.job,
                    why.next()
                        .map_or_else(String::new, |why| reason(language, why))
                )
                .replace(" \n", "\n"),
            );
            why.for_each(|more| {
                text.push_str(&format!("           {}\n", reason(language, more)));
            });
            text.push_str(&render_open(project, flow, status));
        }
        if found.len() > NAMED {
            let (more, state) = (found.len() - NAMED, word(language, state));
            text.push_str(&in_language(
                language,
                format!("           … and {more} more {state}\n"),
                format!("           ……另有 {more} 项{state}\n"),
            ));
        }
    }
    let doubted: Vec<_> = flow
        .statuses
        .iter()
        .filter(|s| s.state == State::Done && !s.warnings.is_empty())
        .collect();
    for status in doubted.iter().take(NAMED) {
        let more = match (status.warnings.len() - 1, language) {
            (0, _) => String::new(),
            (more, Language::En) => format!(" (and {more} more)"),
            (more, Language::Zh) => format!("（另有 {more} 条）"),
        };
        let label = in_language(language, "warning ", "警告    ");
        text.push_str(&format!(
            "  {label} {} {}{more}: quipu replay {}\n",
            status.job,
            reason(language, &status.warnings[0]),
            status.job
        ));
    }
    if doubted.len() > NAMED {
        let more = doubted.len() - NAMED;
        text.push_str(&in_language(
            language,
            format!("           … and {more} more with warnings\n"),
            format!("           ……另有 {more} 项有警告\n"),
        ));
    }
    // A sealed file is never stale, even if its inputs changed: a file written by a person raises
    // no doubt.
    let sealed = |t: &PlannedJob<'_>| {
        t.required()
            .all(|output| project.contract.class(&output.path) == Class::Sealed)
    };
    let certain = |t: &PlannedJob<'_>| {
        t.is_builtin(Builtin::Derive) || t.is_builtin(Builtin::Gate) || sealed(t)
    };
    let unknown = flow
        .jobs
        .iter()
        .zip(&flow.statuses)
        .filter(|(t, s)| s.state == State::Done && !s.known && !certain(t))
        .count();
    if unknown > 0 {
        text.push_str(&in_language(
            language,
            format!(
                "  {unknown} done by their markers alone: Quipu has no record of what they read and \
                 cannot detect changes\n"
            ),
            format!("  {unknown} 项只凭标记算作完成：没有它们读过什么的记录，无法发现改动\n"),
        ));
    }
    if let Some(next) = next_command(flow) {
        let next = reason(language, &next);
        text.push_str(&in_language(
            language,
            format!("next: {next}\n"),
            format!("接下来：{next}\n"),
        ));
    }
    text
}

/// Why a job is in its state, or the command that goes on.
fn reason(language: Language, text: &str) -> String {
    in_language(language, text.to_owned(), chinese::remedy(text))
}

/// The word for a state, as on the page.
fn word(language: Language, state: State) -> &'static str {
    let zh = match state {
        State::Pending => "等前一步",
        State::Ready => "可以开始",
        State::Running => "进行中",
        State::Done => "完成",
        State::Stale => "已过时",
        State::Failed => "失败",
        State::Blocked => "受阻",
        State::Waiting => "等人决定",
        State::Skipped => "不适用",
    };
    in_language(language, state.as_str(), zh)
}

/// The points that the reports before a waiting gate leave to a person. A report that cannot be read is shown by
/// `status` itself.
fn render_open(project: &Project, flow: &Flow<'_>, status: &JobStatus) -> String {
    let gate = flow.find(&status.job).map(|index| &flow.jobs[index]);
    let gate = gate.filter(|job| status.state == State::Waiting && job.is_builtin(Builtin::Gate));
    let points = gate.and_then(|gate| open_points(project, gate).ok());
    points
        .unwrap_or_default()
        .iter()
        .map(|point| {
            format!(
                "           {}: {}  ({})\n",
                point.section, point.text, point.at
            )
        })
        .collect()
}

/// Formats a unit of a plan.
pub fn render_unit(unit: &PlannedUnit) -> String {
    let needs = unit
        .needs
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    let needs = if needs.is_empty() {
        String::new()
    } else {
        format!(" (needs {needs})")
    };
    format!("{} \"{}\"{needs}", unit.id, unit.title)
}

/// Shows the units that approving a plan would declare, and differences between a plan and the
/// declared units.
pub fn render_plans(project: &Project, flow: &Flow<'_>) -> Result<String, Failure> {
    let language = project.contract.language;
    let mut text = String::new();
    for (planned, status) in flow.jobs.iter().zip(&flow.statuses) {
        let decided = status.state == State::Done;
        let Some(plan) =
            load_unit_plan(project, planned)?.filter(|_| decided || status.state == State::Waiting)
        else {
            continue;
        };
        let fresh: Vec<_> = plan.fresh(&project.contract).collect();
        if decided && !fresh.is_empty() {
            let ids = fresh
                .iter()
                .map(|unit| unit.id.as_str())
                .collect::<Vec<_>>()
                .join(", ");
            let step = &planned.job.step;
            let path = &plan.path;
            text.push_str(&in_language(
                language,
                format!(
                    "  `{path}` has {ids}, which are not declared in quipu.toml: quipu approve \
                     {step}\n"
                ),
                format!("  `{path}` 中的 {ids} 尚未写入 quipu.toml：quipu approve {step}\n"),
            ));
        } else {
            let declares = in_language(language, "approving declares", "批准后写入");
            fresh
                .iter()
                .for_each(|unit| text.push_str(&format!("  {declares} {}\n", render_unit(unit))));
        }
        let is_shown = !decided || !fresh.is_empty() || !planned.outputs.is_empty();
        let faults = plan.faults.iter().filter(|_| is_shown);
        faults.for_each(|fault| text.push_str(&format!("  plan     {fault}\n")));
    }
    Ok(text)
}

/// Formats tokens and their cost.
pub fn render_usage(language: Language, used: Usage) -> String {
    let (input, output) = (used.input, used.output);
    let cost = used.cost.map(render_cost);
    match (language, cost) {
        (Language::En, None) => format!("{input} tokens read, {output} written"),
        (Language::En, Some(cost)) => {
            format!("{input} tokens read, {output} written, {cost} by the contract's prices")
        }
        (Language::Zh, None) => format!("读 {input} 个词元，写 {output} 个"),
        (Language::Zh, Some(cost)) => {
            format!("读 {input} 个词元，写 {output} 个，按契约的价格为 {cost}")
        }
    }
}

/// Formats an amount with two decimals, or four if it is below 0.1.
pub fn render_cost(cost: f64) -> String {
    if cost == 0.0 || cost >= 0.1 {
        format!("{cost:.2}")
    } else {
        format!("{cost:.4}")
    }
}

/// Formats the plan of a dry run.
pub fn render_estimate(language: Language, estimate: &Estimate) -> String {
    let say = |en: &str, zh: &str| in_language(language, en, zh).to_owned();
    let costs = match estimate.cost {
        Some(_) => say("costs", "费用"),
        None => String::new(),
    };
    let mut rows = vec![vec![
        say("job", "任务"),
        say("who", "执行者"),
        say("state", "状态"),
        say("reads", "读"),
        say("writes", "写"),
        costs,
    ]];
    for job in &estimate.jobs {
        let reads = match &job.fault {
            Some(fault) => reason(language, fault.lines().next().unwrap_or_default()),
            None if job.input.0 == 0 => String::new(),
            None => job.input.to_string(),
        };
        let writes = if job.output.0 == 0 {
            String::new()
        } else {
            job.output.to_string()
        };
        let cost = job.cost.map(render_cost).unwrap_or_default();
        let name = if job.times > 1 {
            format!("{} ×{}", job.job, job.times)
        } else {
            job.job.to_string()
        };
        rows.push(vec![
            name,
            match &job.agent {
                Some(agent) => format!("{}: {agent}", job.who),
                None => job.who.clone(),
            },
            word(language, job.state).to_owned(),
            reads,
            writes,
            cost,
        ]);
    }
    let cost = estimate.cost.map(render_cost).unwrap_or_default();
    rows.push(vec![
        say("total", "合计"),
        String::new(),
        String::new(),
        estimate.input.to_string(),
        estimate.output.to_string(),
        cost,
    ]);
    let Usage {
        input,
        output,
        cost,
    } = estimate.with_tools;
    if input > 0 {
        rows.push(vec![
            say("with tools", "连同工具"),
            String::new(),
            say("up to", "至多"),
            input.to_string(),
            output.to_string(),
            cost.map(render_cost).unwrap_or_default(),
        ]);
    }
    table(&rows) + &render_batches(language, &estimate.batches)
}

/// Compares the usage of a run with the estimate, by step.
pub fn render_compared(language: Language, steps: &[StepUsage]) -> String {
    let priced = steps.iter().any(|step| step.used.cost.is_some());
    let names: [&[&str]; 2] = match language {
        Language::En => [
            &["step", "jobs", "read", "estimated", "written", "estimated"],
            &["cost", "estimated"],
        ],
        Language::Zh => [
            &["步骤", "任务数", "读", "预计", "写", "预计"],
            &["费用", "预计"],
        ],
    };
    let head = names[0].iter().chain(names[1].iter().filter(|_| priced));
    let mut rows = vec![head.map(|name| (*name).to_owned()).collect::<Vec<_>>()];
    let mut total = StepUsage {
        step: in_language(language, "total", "合计").to_owned(),
        jobs: 0,
        used: Usage::default(),
        estimated: Usage::default(),
    };
    for step in steps {
        total.jobs += step.jobs;
        total.used.add(step.used);
        total.estimated.add(step.estimated);
    }
    for StepUsage {
        step,
        jobs,
        used,
        estimated,
    } in steps.iter().chain([&total])
    {
        let mut row = vec![step.clone()];
        row.extend(
            [
                *jobs as u64,
                used.input,
                estimated.input,
                used.output,
                estimated.output,
            ]
            .map(|number| number.to_string()),
        );
        row.extend(
            [used.cost, estimated.cost]
                .iter()
                .filter(|_| priced)
                .map(|cost| cost.map(render_cost).unwrap_or_default()),
        );
        rows.push(row);
    }
    table(&rows)
}

/// Shows which units are processed together, derived from their dependencies.
fn render_batches(language: Language, batches: &[Vec<UnitId>]) -> String {
    if batches.is_empty() {
        return String::new();
    }
    let said: Vec<String> = batches
        .iter()
        .map(|batch| {
            batch
                .iter()
                .map(UnitId::as_str)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    let said = said.join(" | ");
    in_language(
        language,
        format!(
            "batches: {said}     (by `needs`; a unit can read what earlier batches added to memory)\n"
        ),
        format!("批次：{said}     （依 `needs` 而定；单元可以读到前面各批写入记忆的内容）\n"),
    )
}

/// Aligns the columns of rows; wide characters take two columns.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|c| {
            rows.iter()
                .filter_map(|r| r.get(c))
                .map(|cell| width(cell))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .enumerate()
            .map(|(c, cell)| format!("{cell}{}", " ".repeat(widths[c] - width(cell))));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

pub fn width(text: &str) -> usize {
    text.chars().map(|c| if matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}') { 2 } else { 1 }).sum()
}
