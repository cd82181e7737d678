//! Detects problems in an agent's own calls: the same call fails repeatedly, or the task process
//! does not change for a long time.
//!
//! The state is kept per agent in a small derived file. Deleting it only resets the counts. The
//! agent gets a warning at its next call, once each time a limit is reached.

use serde::{Deserialize, Serialize};

/// The number of different failing calls that are remembered.
const REMEMBERED: usize = 16;

/// The limits for warnings. Without a limit in the contract there is no warning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub repeat_calls: Option<u32>,
    pub quiet_rounds: Option<u32>,
}

/// A completed call.
#[derive(Debug, Clone)]
pub struct Call<'c> {
    /// The operation, such as `task note`.
    pub name: &'c str,
    /// Distinguishes calls with different arguments without storing the arguments.
    pub fingerprint: String,
    /// The reason, if it failed.
    pub failure: Option<&'c str>,
    /// The task process after the call.
    pub process: String,
    /// The call started a task, or ended one.
    pub is_border: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calls {
    failing: Vec<Failing>,
    /// The calls since the current task started, or since the last one ended.
    rounds: u32,
    process: String,
    quiet: u32,
    quiet_told: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Failing {
    fingerprint: String,
    name: String,
    what: String,
    count: u32,
    told: bool,
}

impl Calls {
    /// The calls since the current task started, or since the last one ended.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Returns the due warnings. `process` names the agent's task process.
    pub fn warnings(&mut self, limits: Limits, process: &str) -> Vec<String> {
        let mut told = Vec::new();
        for call in self.failing.iter_mut().filter(|call| {
            !call.told
                && limits
                    .repeat_calls
                    .is_some_and(|limit| limit > 0 && call.count >= limit)
        }) {
            call.told = true;
            told.push(format!(
                "`quipu {}` failed {} times with the same arguments ({}): repeating it will not \
                 help; write down your assumption, then test it",
                call.name, call.count, call.what
            ));
        }
        if let Some(limit) = limits.quiet_rounds
            && limit > 0
            && self.quiet >= limit
            && !self.quiet_told
        {
            self.quiet_told = true;
            told.push(format!(
                "{} rounds without a change to {process}: write down your progress \
                (quipu task note \"…\")",
                self.quiet
            ));
        }
        told
    }

    /// Records a call.
    pub fn take(&mut self, call: &Call<'_>, limits: Limits) {
        self.rounds = match call.is_border {
            true => 0,
            false => self.rounds.saturating_add(1),
        };
        let known = self
            .failing
            .iter()
            .position(|one| one.fingerprint == call.fingerprint);
        match (call.failure, known) {
            (None, Some(at)) => drop(self.failing.remove(at)),
            (None, None) => {}
            (Some(what), Some(at)) => {
                let one = &mut self.failing[at];
                (one.count, one.told, one.what) = (one.count + 1, false, what.to_owned());
            }
            (Some(what), None) => {
                if self.failing.len() == REMEMBERED {
                    self.failing.remove(0);
                }
                let (fingerprint, name) = (call.fingerprint.clone(), call.name.to_owned());
                self.failing.push(Failing {
                    fingerprint,
                    name,
                    what: what.to_owned(),
                    count: 1,
                    told: false,
                });
            }
        }
        if self.process == call.process {
            self.quiet += 1;
            // Warn again after the same number of further calls.
            if self.quiet_told
                && limits
                    .quiet_rounds
                    .is_some_and(|limit| limit > 0 && self.quiet.is_multiple_of(limit))
            {
                self.quiet_told = false;
            }
        } else {
            (self.process, self.quiet, self.quiet_told) = (call.process.clone(), 0, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        repeat_calls: Some(3),
        quiet_rounds: Some(30),
    };

    fn call(fingerprint: &str, failure: Option<&'static str>, process: &str) -> Call<'static> {
        Call {
            name: "write",
            fingerprint: fingerprint.into(),
            failure,
            process: process.into(),
            is_border: false,
        }
    }

    #[test]
    fn rounds_are_the_calls_of_a_task() {
        let mut calls = Calls::default();
        let start = Call {
            is_border: true,
            ..call("start", None, "p")
        };
        calls.take(&call("read", None, "p"), LIMITS);
        calls.take(&start, LIMITS);
        assert_eq!(calls.rounds(), 0);
        calls.take(&call("read", None, "p"), LIMITS);
        calls.take(&call("write", Some("no"), "p"), LIMITS);
        assert_eq!(calls.rounds(), 2);
    }

    #[test]
    fn the_same_failing_call_is_told_once_at_three_and_again_at_four() {
        let mut calls = Calls::default();
        for _ in 0..3 {
            assert!(calls.warnings(LIMITS, "p").is_empty());
            calls.take(&call("a", Some("no"), "1"), LIMITS);
        }
        assert_eq!(calls.warnings(LIMITS, "p").len(), 1);
        assert!(calls.warnings(LIMITS, "p").is_empty());
        calls.take(&call("b", Some("no"), "1"), LIMITS);
        assert!(calls.warnings(LIMITS, "p").is_empty());
        calls.take(&call("a", Some("no"), "1"), LIMITS);
        assert!(calls.warnings(LIMITS, "p")[0].contains("failed 4 times"));
        calls.take(&call("a", None, "1"), LIMITS);
        calls.take(&call("a", Some("no"), "1"), LIMITS);
        assert!(calls.warnings(LIMITS, "p").is_empty());
    }

    #[test]
    fn thirty_silent_rounds_are_told_and_sixty_again() {
        let mut calls = Calls::default();
        let mut told = Vec::new();
        for number in 0..65 {
            if !calls.warnings(LIMITS, "p").is_empty() {
                told.push(number);
            }
            calls.take(&call("x", None, "same"), LIMITS);
        }
        // The first call only recorded the process.
        assert_eq!(told, [31, 61]);
        calls.take(&call("x", None, "changed"), LIMITS);
        assert!(calls.warnings(LIMITS, "p").is_empty());
        assert!(calls.warnings(Limits::default(), "p").is_empty());
    }
}
