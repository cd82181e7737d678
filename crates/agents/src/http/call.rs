//! One model call: send, stream, and retry after transient failures.
//!
//! The exchange runs on a thread of its own, so that the caller obeys stop and deadline while a
//! server is silent. A thread without a receiver ends with its next event, or at the latest when
//! its own timeout expires.

use super::sse::next_event;
use super::talk::{Assembly, Reply, Said, Step, Tool};
use super::{anthropic, openai};
use crate::adapter::{Limit, Watch};
use crate::host::Api;
use crate::outcome::Ending;
use crate::transcript::{Transcript, cut};
use serde_json::{Map, Value};
use std::io::{BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Default number of retries.
pub const RETRIES: u32 = 4;
/// The first pause. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Interval at which the stop flag and the deadline are checked.
const LOOK: Duration = Duration::from_millis(50);
/// Longest body that is read of a server that does not stream. A longer one is cut, and is then no
/// JSON.
const LARGEST_BODY: u64 = 16 << 20;

/// The address and headers of a call.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub api: Api,
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub model: String,
    pub max_output: Option<u64>,
    pub extra: Map<String, Value>,
}

impl Endpoint {
    pub fn with(
        mut self,
        model: String,
        max_output: Option<u64>,
        extra: Map<String, Value>,
    ) -> Self {
        (self.model, self.max_output, self.extra) = (model, max_output, extra);
        self
    }
}

/// Makes calls within the limits of one turn.
pub struct Caller<'a> {
    pub endpoint: &'a Endpoint,
    pub limit: Limit,
    pub watch: Watch<'a>,
    pub retries: u32,
    pub bound: usize,
}

/// Messages from the exchange thread.
enum Came {
    Status {
        status: u16,
        retry_after: Option<Duration>,
        body: String,
    },
    Event(String),
    End,
    Failed(String),
}

/// The result of one try.
enum Try {
    Whole(Reply),
    /// A transient failure, worth a retry.
    Again {
        ending: Ending,
        wait: Option<Duration>,
    },
    Over(Ending),
}

impl Caller<'_> {
    /// Calls the model, and retries after transient failures.
    pub fn call(
        &mut self,
        said: &[Said],
        tools: &[Tool],
        transcript: &mut Transcript,
    ) -> Result<Reply, Ending> {
        let mut body = match self.endpoint.api {
            Api::Openai => openai::body(self.endpoint, said, tools),
            Api::Anthropic => anthropic::body(self.endpoint, said, tools),
        };
        if let Value::Object(fields) = &mut body {
            fields.extend(self.endpoint.extra.clone());
        }
        let body = body.to_string();
        transcript.say(
            "sent",
            &format!(
                "POST {} {} bytes, {} contributions",
                self.endpoint.url,
                body.len(),
                said.len()
            ),
        );
        let mut pause = FIRST_PAUSE;
        let mut left = self.retries;
        loop {
            let (ending, wait) = match self.attempt(&body, transcript) {
                Try::Whole(reply) => return Ok(reply),
                Try::Over(ending) => return Err(ending),
                Try::Again { ending, wait } => (ending, wait.unwrap_or(pause)),
            };
            transcript.say("note", &ending.to_string());
            if left == 0 || wait >= self.limit.left() {
                return Err(ending);
            }
            self.watch
                .retry(format!("{ending}; retrying in {} ms", wait.as_millis()));
            self.rest(wait)?;
            left -= 1;
            pause *= 2;
        }
    }

    fn attempt(&self, body: &str, transcript: &mut Transcript) -> Try {
        let came = exchange(self.endpoint.clone(), body.to_string(), self.limit);
        let mut assembly: Box<dyn Assembly> = match self.endpoint.api {
            Api::Openai => Box::new(openai::Stream::default()),
            Api::Anthropic => Box::new(anthropic::Stream::default()),
        };
        let broken = |why: String| Try::Again {
            ending: Ending::Broken { why },
            wait: None,
        };
        let mut bytes = 0;
        loop {
            if let Err(ending) = self.look() {
                return Try::Over(ending);
            }
            let event = match came.recv_timeout(LOOK.min(self.limit.left())) {
                Ok(Came::Event(event)) => event,
                Ok(Came::Status {
                    status,
                    retry_after,
                    body,
                }) => return judge_status(status, retry_after, &body),
                Ok(Came::Failed(why)) => return broken(format!("{}: {why}", self.endpoint.url)),
                // Some servers send no end event.
                Ok(Came::End) if assembly.is_whole() => break,
                Ok(Came::End) => {
                    return broken("the server stopped in the middle of its answer".to_string());
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    return broken("the connection was lost".to_string());
                }
            };
            transcript.say("got", &event);
            bytes += event.len();
            // An event wraps a few characters in many bytes; the bound applies to characters.
            if bytes > self.bound.saturating_mul(64) {
                return Try::Over(Ending::TooLong {
                    what: "the model's answer".to_string(),
                });
            }
            match assembly.take(&event) {
                Step::More => {}
                Step::Done => break,
                Step::Failed(why) => {
                    return broken(format!("the server failed: {}", cut(&why, 300)));
                }
                Step::Garbage => {
                    let why = format!(
                        "{} does not follow its API: {}",
                        self.endpoint.url,
                        cut(&event, 200)
                    );
                    return Try::Over(Ending::Broken { why });
                }
            }
        }
        let reply = assembly.finish();
        if reply.text.len() > self.bound {
            return Try::Over(Ending::TooLong {
                what: "the model's answer".to_string(),
            });
        }
        Try::Whole(reply)
    }

    fn look(&self) -> Result<(), Ending> {
        if self.watch.stop.is_stopped() {
            return Err(Ending::Stopped);
        }
        if self.limit.is_over() {
            return Err(Ending::Deadline);
        }
        Ok(())
    }

    fn rest(&self, wait: Duration) -> Result<(), Ending> {
        let end = Instant::now() + wait;
        while Instant::now() < end {
            self.look()?;
            std::thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }
}

/// Classifies a status other than 200. Only transient failures are retried.
fn judge_status(status: u16, retry_after: Option<Duration>, body: &str) -> Try {
    let said = serde_json::from_str::<Value>(body).ok();
    let said = said.as_ref().and_then(|body| {
        body.pointer("/error/message")
            .or_else(|| body.get("message"))?
            .as_str()
    });
    let why = match said {
        Some(said) => cut(said, 300).to_string(),
        None if body.trim().is_empty() => "no reason given".to_string(),
        None => cut(body.trim(), 300).to_string(),
    };
    let ending = Ending::Refused {
        status: Some(status),
        why,
    };
    match status {
        408 | 425 | 429 | 500 | 502 | 503 | 504 | 529 => Try::Again {
            ending,
            wait: retry_after,
        },
        _ => Try::Over(ending),
    }
}

/// Sends the request on a thread and returns a channel of its messages.
fn exchange(endpoint: Endpoint, body: String, limit: Limit) -> Receiver<Came> {
    let (sender, receiver) = sync_channel(64);
    std::thread::spawn(move || {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A redirect would send the key to another host.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(limit.left() + Duration::from_secs(1)))
            .build();
        let mut request = config
            .new_agent()
            .post(&endpoint.url)
            .header("content-type", "application/json");
        for (name, value) in &endpoint.headers {
            request = request.header(*name, value);
        }
        let response = match request
            .header("accept", "text/event-stream")
            .send(body.as_bytes())
        {
            Ok(response) => response,
            Err(why) => {
                // The receiver may have been dropped, here and below.
                let _ = sender.send(Came::Failed(why.to_string()));
                return;
            }
        };
        let status = response.status().as_u16();
        let seconds = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
        let retry_after = seconds
            .filter(|value| (0.0..1e6).contains(value))
            .map(Duration::from_secs_f64);
        let is_json = response
            .headers()
            .get("content-type")
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.trim_start().starts_with("application/json"));
        let reader = response.into_body().into_reader();
        if status != 200 {
            let mut body = Vec::new();
            // If the body cannot be read, the status is still reported.
            let _ = reader.take(64 * 1024).read_to_end(&mut body);
            let body = String::from_utf8_lossy(&body).into_owned();
            let _ = sender.send(Came::Status {
                status,
                retry_after,
                body,
            });
            return;
        }
        if is_json {
            // Some servers do not stream: the body is the whole answer.
            let came = match std::io::read_to_string(reader.take(LARGEST_BODY)) {
                Ok(body) => Came::Event(body),
                Err(why) => Came::Failed(why.to_string()),
            };
            // The receiver may have been dropped.
            let _ = sender.send(came).and_then(|()| sender.send(Came::End));
            return;
        }
        let mut stream = BufReader::new(reader);
        loop {
            let came = match next_event(&mut stream) {
                Ok(Some(event)) => Came::Event(event),
                Ok(None) => Came::End,
                Err(why) => Came::Failed(why.to_string()),
            };
            let last = !matches!(came, Came::Event(_));
            if sender.send(came).is_err() || last {
                return;
            }
        }
    });
    receiver
}
