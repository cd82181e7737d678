//! Runs a job with the built-in agent, which plays the role of the job offline.

use std::time::{Duration, Instant};

use quipu_contract::Contract;
use quipu_protocol::flow::{Agent, Ended, Ending, Task, Watch};
use quipu_rehearse::{RehearseTask, rehearse};

pub struct RehearsalAgent<'c> {
    pub contract: &'c Contract,
    /// Minimum duration of each job. Real agents are slower, and a test of many workers must show
    /// that.
    pub pause: Duration,
}

impl Agent for RehearsalAgent<'_> {
    fn name(&self) -> &str {
        "rehearse"
    }

    fn perform(&self, task: &Task, watch: Watch<'_>) -> Ended {
        let ended = self.play(task);
        // The same view always gives the same text, so a second try is useless.
        let _ = (watch.look)(&ended);
        ended
    }
}

impl RehearsalAgent<'_> {
    fn play(&self, task: &Task) -> Ended {
        let until = Instant::now() + self.pause;
        while Instant::now() < until {
            if task.stop.is_asked() {
                return Ended {
                    ending: Ending::Stopped,
                    ..Ended::done()
                };
            }
            std::thread::sleep(Duration::from_millis(20).min(self.pause));
        }
        // In a panel each role is its own unit.
        let own = || {
            self.contract
                .units
                .iter()
                .find(|unit| unit.id.as_str() == task.role)
                .map(|unit| unit.id.clone())
        };
        let unit = task.job.unit.clone().or_else(own);
        let Some(mut asked) = RehearseTask::of(self.contract, &task.role, unit.as_ref()) else {
            return Ended::failed(format!("unknown role `{}`", task.role));
        };
        // A later round of a review asks about the role's own comments, each in an item of a list.
        let own = format!("- {}.", task.role);
        for item in task.brief.lines().filter(|line| line.starts_with(&own)) {
            let id = item.split(' ').nth(1);
            // An earlier answer of its own names a comment again.
            if !asked
                .earlier
                .iter()
                .any(|known| known.split(' ').nth(1) == id)
            {
                asked.earlier.push(item.to_owned());
            }
        }
        // All stages of a view are in one folder; the agent reads them at once.
        let staged = task
            .view
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("stage-"));
        let view = task.view.parent().filter(|_| staged).unwrap_or(&task.view);
        match rehearse(view, &task.out, &asked) {
            Ok(_) => Ended::done(),
            Err(error) => Ended::failed(error.to_string()),
        }
    }
}
