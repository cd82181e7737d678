//! Explains why a run that was restricted to some jobs began none of them.
//!
//! It names the jobs that were looked at, what each waits for, and one command that works.

use std::collections::BTreeSet;

use quipu_contract::Language;

use super::engine::Choice;
use super::job::Job;
use super::next::retry_command;
use super::state::{Flow, JobStatus, State, render_job};
use crate::project::open::Project;

/// Maximum number of jobs named; the rest is counted.
const NAMED: usize = 8;

/// Why a run did nothing.
#[derive(Debug, Clone)]
pub struct Idle {
    /// The jobs that were looked at, with a line for each that is not done.
    pub lines: Vec<String>,
    /// The command that goes on, if there is one.
    pub remedy: Option<String>,
    /// Whether a chosen job could be done by another choice, without a person's decision.
    pub is_by_choice: bool,
}

/// Returns None if the run was not restricted: then the status of the flow says everything.
pub fn explain_idle(project: &Project, flow: &Flow<'_>, choice: &Choice) -> Option<Idle> {
    let is_restricted = choice.stale
        || choice.until.is_some()
        || !choice.steps.is_empty()
        || !choice.units.is_empty();
    if !is_restricted {
        return None;
    }
    let explaining = Explaining {
        project,
        flow,
        choice,
        language: project.contract.language,
    };
    Some(explaining.explain())
}

struct Explaining<'e, 'c> {
    project: &'e Project,
    flow: &'e Flow<'c>,
    choice: &'e Choice,
    language: Language,
}

impl Explaining<'_, '_> {
    fn explain(&self) -> Idle {
        let looked: Vec<usize> = (0..self.flow.statuses.len())
            .filter(|index| self.is_chosen(*index))
            .collect();
        let is_over = |index: &&usize| {
            matches!(
                self.flow.statuses[**index].state,
                State::Done | State::Skipped
            )
        };
        let over = looked.iter().filter(is_over).count();
        let open: Vec<usize> = looked
            .iter()
            .filter(|index| !is_over(index))
            .copied()
            .collect();
        let mut lines = vec![self.head(looked.len(), over)];
        for index in open.iter().take(NAMED) {
            let status = &self.flow.statuses[*index];
            let (state, job) = (status.state.as_str(), &status.job);
            lines.push(format!("  {state:<8} {job}: {}", self.why(*index)));
        }
        if open.len() > NAMED {
            let more = open.len() - NAMED;
            lines.push(self.say(
                format!("  … and {more} more"),
                format!("  ……另有 {more} 项"),
            ));
        }
        // The command for the last job does the earlier ones too.
        let by_choice = open
            .iter()
            .rev()
            .find_map(|index| self.other_choice(*index));
        let is_by_choice = by_choice.is_some();
        let remedy = by_choice
            .or_else(|| open.iter().find_map(|index| self.decision(*index)))
            .or_else(|| self.redo(&looked).filter(|_| open.is_empty()));
        Idle {
            lines,
            remedy,
            is_by_choice,
        }
    }

    fn head(&self, looked: usize, over: usize) -> String {
        let choice = self.choice;
        if looked == 0 {
            return self.say(
                "nothing was done: the chosen steps have no job for the chosen units".into(),
                "什么也没有做：所选步骤在所选单元中没有任务".into(),
            );
        }
        if looked == over && choice.stale && choice.steps.is_empty() {
            return self.say(
                "nothing was done: no job is stale".into(),
                "什么也没有做：没有过时的任务".into(),
            );
        }
        if looked == over {
            return self.say(
                format!("nothing was done: every chosen job is done or skipped ({looked})"),
                format!("什么也没有做：所选任务都已完成或跳过（{looked} 项）"),
            );
        }
        self.say(
            format!("nothing was done (jobs looked at: {looked}; done or skipped: {over})"),
            format!("什么也没有做（查看的任务：{looked} 项；已完成或跳过：{over} 项）"),
        )
    }

    fn why(&self, index: usize) -> String {
        let status = &self.flow.statuses[index];
        let first = self.first_before(index);
        if !first.is_empty() {
            let names: Vec<String> = first
                .iter()
                .map(|other| {
                    let status = &self.flow.statuses[*other];
                    format!("{} ({})", status.job, status.state.as_str())
                })
                .collect();
            let names = names.join(", ");
            let is_left = first.iter().any(|other| !self.is_chosen(*other));
            return match is_left {
                true => self.say(
                    format!("waits for {names}, which you did not choose"),
                    format!("等待 {names}，不在所选之内"),
                ),
                false => self.say(format!("waits for {names}"), format!("等待 {names}")),
            };
        }
        match status.state {
            State::Stale if !self.choice.stale => self.say(
                "a run without --stale leaves stale jobs alone".into(),
                "不带 --stale 的运行不处理过时的任务".into(),
            ),
            State::Ready if self.choice.stale => self.say(
                "it has never been done, so it is not stale".into(),
                "从未做过，因此不算过时".into(),
            ),
            _ => status.why.join("; "),
        }
    }

    /// The open jobs that have to be done first, none of which waits for another.
    fn first_before(&self, index: usize) -> Vec<usize> {
        let mut found = BTreeSet::new();
        let (mut next, mut seen) = (self.before(index), BTreeSet::new());
        while let Some(at) = next.pop() {
            if !seen.insert(at) {
                continue;
            }
            let before = self.before(at);
            if before.is_empty() {
                found.insert(at);
            }
            next.extend(before);
        }
        found.into_iter().collect()
    }

    fn before(&self, index: usize) -> Vec<usize> {
        let status = &self.flow.statuses[index];
        let through = status.through.iter().filter_map(|job| self.flow.find(job));
        let open = self.flow.open_before[index].iter().copied().chain(through);
        open.filter(|other| {
            !matches!(
                self.flow.statuses[*other].state,
                State::Done | State::Skipped
            )
        })
        .collect()
    }

    /// The command that does a job, if only the choice of the run kept it from being done.
    fn other_choice(&self, index: usize) -> Option<String> {
        let first = self.first_before(index);
        let can_run = |status: &JobStatus| matches!(status.state, State::Ready | State::Stale);
        let all = |others: &[usize]| {
            others
                .iter()
                .all(|other| can_run(&self.flow.statuses[*other]))
        };
        let status = &self.flow.statuses[index];
        if !first.is_empty() {
            let stale = first
                .iter()
                .any(|other| self.flow.statuses[*other].state == State::Stale);
            return all(&first).then(|| self.command(&status.job, &first, stale));
        }
        match status.state {
            State::Stale if !self.choice.stale => Some(self.command(&status.job, &[], true)),
            State::Ready if self.choice.stale => Some(self.command(&status.job, &[], false)),
            _ => None,
        }
    }

    fn command(&self, job: &Job, first: &[usize], stale: bool) -> String {
        let units = self.choice.units.as_slice();
        let is_inside = |other: &usize| {
            let unit = &self.flow.statuses[*other].job.unit;
            unit.as_ref().is_none_or(|unit| units.contains(unit))
        };
        let unit = match units {
            [unit] if first.iter().all(is_inside) => format!(" --unit {unit}"),
            _ => String::new(),
        };
        let stale = if stale { " --stale" } else { "" };
        let choice = self.choice;
        let steps: String = match (first.is_empty(), &choice.until) {
            (true, _) => {
                let named = choice.steps.iter().map(|step| format!(" --step {step}"));
                named.collect()
            }
            (false, None) if choice.steps.is_empty() => String::new(),
            (false, _) => format!(" --until {}", job.step),
        };
        let note = match (first.is_empty(), self.language) {
            (true, _) => "",
            (false, Language::En) => "     (also does the jobs before it)",
            (false, Language::Zh) => "     （连同其前的任务一起做）",
        };
        format!("quipu run{stale}{steps}{unit} --by NAME{note}")
    }

    /// The decision of a person that a job waits for.
    fn decision(&self, index: usize) -> Option<String> {
        let mut first = self.first_before(index);
        first.push(index);
        first.into_iter().find_map(|at| {
            let status = &self.flow.statuses[at];
            match status.state {
                State::Waiting => status.why.first().cloned(),
                State::Failed => Some(retry_command(status)),
                _ => None,
            }
        })
    }

    /// The command that does finished jobs again.
    fn redo(&self, looked: &[usize]) -> Option<String> {
        let job = looked
            .iter()
            .map(|index| &self.flow.statuses[*index].job)
            .next()?;
        let step = self.choice.steps.first()?;
        let is_one = self.choice.steps.len() == 1 && looked.len() == 1;
        let job = if is_one {
            render_job(job)
        } else {
            step.clone()
        };
        let note = self.say("     (does it again)".into(), "     （重做）".into());
        Some(format!("quipu run --step {job} --again --by NAME{note}"))
    }

    fn is_chosen(&self, index: usize) -> bool {
        self.choice
            .allows(self.project, &self.flow.statuses[index].job)
    }

    fn say(&self, en: String, zh: String) -> String {
        match self.language {
            Language::En => en,
            Language::Zh => zh,
        }
    }
}
