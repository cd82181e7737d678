//! The `http` adapter: a model behind OpenAI-compatible chat completions or Anthropic messages.
//!
//! The model works with three tools bound to its workspace (list, read, write), or gets everything
//! in the prompt. The agent runs no program on this machine.

mod anthropic;
mod call;
mod openai;
mod sse;
mod talk;
mod tools;

use crate::adapter::{Adapter, Limit, Turns, Watch};
use crate::assignment::Assignment;
use crate::host::{Api, Host, HostError, Material};
use crate::outcome::{Attempt, Confinement, Ending, Event, Outcome, Usage};
use crate::transcript::Transcript;
use crate::workspace::Workspace;
use call::{Caller, Endpoint};
use talk::{End, Said};

pub(crate) use talk::Tool;
pub use tools::{call_workspace_tool, workspace_tools};

/// Maximum rounds of tool calls. A model that reaches it is assumed to loop.
const MOST_ROUNDS: u32 = 100;
/// Default maximum tokens of an answer, for an API that requires a number.
const DEFAULT_OUTPUT: u64 = 16_000;

pub struct HttpAgent {
    name: String,
    host: Host,
    model: String,
    api: Api,
}

impl HttpAgent {
    pub fn new(name: String, host: Host, model: Option<String>) -> Result<Self, HostError> {
        let faulty = |why: &str| HostError::Faulty {
            name: name.clone(),
            why: why.to_string(),
        };
        let api = host.api.ok_or_else(|| faulty("`api` is missing"))?;
        let model = model
            .or_else(|| host.model.clone())
            .ok_or_else(|| faulty("`model` is missing"))?;
        Ok(HttpAgent {
            name,
            host,
            model,
            api,
        })
    }

    /// Returns the endpoint. Environment variables are read here, just before the first call.
    fn endpoint(&self) -> Result<Endpoint, String> {
        let variable = |name: &Option<String>| {
            let name = name.as_ref()?;
            std::env::var(name).ok().filter(|value| !value.is_empty())
        };
        let base = variable(&self.host.base_from)
            .or_else(|| self.host.base.clone())
            .unwrap_or_default();
        let key = variable(&self.host.key);
        if let (Some(name), None) = (&self.host.key, &key) {
            return Err(format!("{name} is not set: it contains the key for {base}"));
        }
        if key.is_some() && !is_private(&base) {
            return Err(format!(
                "{base} is not encrypted: the key would be sent unencrypted"
            ));
        }
        let max_output = self.host.max_output;
        Ok(match self.api {
            Api::Openai => openai::endpoint(&base, key.as_deref()),
            Api::Anthropic => anthropic::endpoint(&base, key.as_deref()),
        }
        .with(self.model.clone(), max_output, self.host.body.clone()))
    }
}

/// Whether data sent to this address is protected: encrypted, or local to this machine.
fn is_private(base: &str) -> bool {
    let Some(rest) = base.strip_prefix("http://") else {
        return base.starts_with("https://");
    };
    let host = rest.split('/').next().unwrap_or_default();
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.split(']').next())
        .unwrap_or(host.split(':').next().unwrap_or(host));
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

impl Adapter for HttpAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn ready(&self) -> Result<(), String> {
        self.endpoint().map(|_| ())
    }

    fn open<'a>(&'a self, assignment: &'a Assignment, watch: Watch<'a>) -> Box<dyn Turns + 'a> {
        Box::new(HttpTurns {
            agent: self,
            assignment,
            watch,
            limit: Limit::after(assignment.deadline),
            said: Vec::new(),
        })
    }
}

struct HttpTurns<'a> {
    agent: &'a HttpAgent,
    assignment: &'a Assignment,
    watch: Watch<'a>,
    limit: Limit,
    said: Vec<Said>,
}

/// The results gathered during one turn.
#[derive(Default)]
struct Gathered {
    message: Option<String>,
    usage: Usage,
    denied: Vec<Attempt>,
}

impl Turns for HttpTurns<'_> {
    fn first(&mut self) -> Outcome {
        let prompt = self.prompt();
        self.take_turn(prompt)
    }

    fn again(&mut self, fault: &str) -> Outcome {
        let whole = match self.said.last() {
            Some(Said::Assistant { .. }) => self.assignment.returned(fault),
            // The model has not answered yet, so there is nothing of its own to fix.
            _ => {
                self.said.clear();
                self.prompt()
            }
        };
        self.take_turn(whole)
    }
}

impl HttpTurns<'_> {
    fn inline(&self) -> bool {
        self.agent.host.material == Material::Inline
    }

    fn prompt(&self) -> String {
        match (&self.assignment.inline, self.inline()) {
            (Some(inline), true) => inline.clone(),
            (None, true) => self.assignment.brief.clone(),
            (_, false) => tools::brief(self.assignment),
        }
    }

    fn take_turn(&mut self, prompt: String) -> Outcome {
        let record = &self.assignment.record;
        let mut transcript = match Transcript::open(record, self.assignment.bounds.transcript) {
            Ok(transcript) => transcript,
            Err(why) => {
                let why = format!("{}: {why}", record.display());
                return outcome(
                    Ending::NotStarted { why },
                    Gathered::default(),
                    record.join("transcript.jsonl"),
                );
            }
        };
        transcript.say("brief", &prompt);
        self.said.push(Said::User(prompt));
        let mut gathered = Gathered::default();
        let ending = self
            .work(&mut gathered, &mut transcript)
            .unwrap_or_else(|ending| ending);
        transcript.say("note", &ending.to_string());
        outcome(ending, gathered, transcript.path().to_path_buf())
    }

    /// Calls the model until it makes no more tool calls.
    fn work(
        &mut self,
        gathered: &mut Gathered,
        transcript: &mut Transcript,
    ) -> Result<Ending, Ending> {
        let endpoint = self
            .agent
            .endpoint()
            .map_err(|why| Ending::NotStarted { why })?;
        let assignment = self.assignment;
        let workspace = Workspace {
            view: &assignment.view,
            out: &assignment.out,
            outputs: &assignment.outputs,
            questions: &assignment.questions,
            file_bound: assignment.bounds.file,
        };
        let tools = if self.inline() {
            Vec::new()
        } else {
            tools::all(&assignment.questions)
        };
        let mut caller = Caller {
            endpoint: &endpoint,
            limit: self.limit,
            watch: self.watch,
            retries: self.agent.host.retries.unwrap_or(call::RETRIES),
            bound: assignment.bounds.message,
        };
        for _ in 0..MOST_ROUNDS {
            let answer = caller.call(&self.said, &tools, transcript)?;
            gathered.usage.add(answer.usage);
            (self.watch.events)(Event::Usage(gathered.usage));
            let text = answer.text.trim().to_string();
            gathered.message = (!text.is_empty()).then_some(text);
            let end = answer.end;
            let calls = answer.calls.clone();
            if answer.text.is_empty() && calls.is_empty() && end == End::Turn {
                return Err(Ending::Broken {
                    why: "the answer is empty".to_string(),
                });
            }
            self.said.push(Said::Assistant {
                text: answer.text,
                calls: answer.calls,
            });
            match end {
                End::Length => {
                    return Err(Ending::TooLong {
                        what: "the answer was cut off at its token limit".to_string(),
                    });
                }
                End::Refusal => {
                    return Err(Ending::Refused {
                        status: None,
                        why: "the model refused".to_string(),
                    });
                }
                End::Turn if calls.is_empty() => return Ok(Ending::Finished { exit: None }),
                End::Turn => {}
            }
            let results = calls
                .iter()
                .map(|one| {
                    let served = tools::serve(&workspace, one);
                    transcript.say(
                        "tool",
                        &format!("{} {} → {}", one.name, one.arguments, served.summary),
                    );
                    self.watch
                        .progress(format!("{} {}", one.name, served.summary));
                    if let Some(attempt) = served.denied {
                        (self.watch.events)(Event::Denied(attempt.clone()));
                        gathered.denied.push(attempt);
                    }
                    served.result
                })
                .collect();
            self.said.push(Said::Results(results));
        }
        Err(Ending::TooLong {
            what: format!("more than {MOST_ROUNDS} rounds of tools"),
        })
    }
}

fn outcome(ending: Ending, gathered: Gathered, transcript: std::path::PathBuf) -> Outcome {
    Outcome {
        ending,
        final_message: gathered.message,
        usage: gathered.usage,
        denied: gathered.denied,
        confinement: Confinement::ToolsOnly,
        left_behind: Vec::new(),
        transcript,
    }
}

#[cfg(test)]
mod tests {
    use super::is_private;

    #[test]
    fn a_key_is_sent_only_where_it_stays_unseen() {
        for base in [
            "https://api.example.com/v1",
            "http://localhost:1",
            "http://127.0.0.1:8080/v1",
            "http://[::1]:80",
        ] {
            assert!(is_private(base), "{base}");
        }
        for base in [
            "http://example.com",
            "http://localhost.example.com",
            "http://10.0.0.1/v1",
            "ftp://x",
            "",
        ] {
            assert!(!is_private(base), "{base}");
        }
    }
}
