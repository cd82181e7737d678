//! JSON-RPC with a host over its standard streams. While a request waits for its answer, the host's
//! own requests are served.

use super::serve::Desk;
use crate::adapter::{Limit, Stop};
use crate::program::{Heard, Running};
use crate::sandbox::Report;
use crate::transcript::{Transcript, cut};
use serde_json::{Value, json};
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Interval at which the stop flag and the deadline are checked.
const LOOK: Duration = Duration::from_millis(50);
/// Number of invalid lines after which the client gives up. Some hosts print a banner first; a
/// broken host prints garbage without end.
const MOST_GARBAGE: u32 = 200;

/// Maximum bytes queued for a host that does not read, so that the host cannot exhaust this
/// process's memory.
const MOST_WAITING: usize = 64 << 20;

/// The reason why a request ended without an answer.
pub enum Fault {
    Stopped,
    Deadline,
    NotStarted(String),
    Refused(String),
    TooLong(String),
    Broken(String),
}

/// The connection to one host.
pub struct Wire {
    running: Running,
    sender: Sender<String>,
    /// Bytes sent that the host has not read yet.
    waiting: Arc<AtomicUsize>,
    limit: Limit,
    stop: Stop,
    lies: Vec<String>,
    last: u64,
    garbage: u32,
    last_error: String,
}

impl Wire {
    pub fn new(
        mut running: Running,
        limit: Limit,
        stop: Stop,
        lies: Vec<String>,
    ) -> Result<Self, String> {
        let input = running.take_input().ok_or("no standard input")?;
        let waiting = Arc::new(AtomicUsize::new(0));
        let sender = write_on_a_thread(input, Arc::clone(&waiting));
        Ok(Wire {
            running,
            sender,
            waiting,
            limit,
            stop,
            lies,
            last: 0,
            garbage: 0,
            last_error: String::new(),
        })
    }

    /// Sends a request and serves the host until the answer arrives.
    pub fn request(
        &mut self,
        method: &str,
        params: Value,
        desk: &mut Desk,
        transcript: &mut Transcript,
    ) -> Result<Value, Fault> {
        self.last += 1;
        let id = self.last;
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }),
            Some(transcript),
        );
        loop {
            let message = self.next(transcript)?;
            let asked = message.get("method").and_then(Value::as_str);
            match (asked, message.get("id")) {
                (Some(method), Some(ask)) => {
                    if self.waiting.load(Ordering::Relaxed) > MOST_WAITING {
                        return Err(Fault::Broken(
                            "the host sends requests but does not read the answers".to_string(),
                        ));
                    }
                    let params = message.get("params").cloned().unwrap_or_default();
                    let answer = match desk.serve(method, &params) {
                        Ok(result) => json!({ "jsonrpc": "2.0", "id": ask, "result": result }),
                        Err((code, why)) => {
                            json!({ "jsonrpc": "2.0", "id": ask, "error": { "code": code, "message": why } })
                        }
                    };
                    self.send(&answer, Some(transcript));
                }
                (Some(method), None) => {
                    desk.note(method, message.get("params").unwrap_or(&Value::Null))
                }
                (None, Some(answered)) if answered.as_u64() == Some(id) => {
                    return answer_of(method, message);
                }
                // An answer to a request that was never sent.
                (None, _) => self.count_garbage()?,
            }
        }
    }

    /// Sends a message that has no answer.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(
            &json!({ "jsonrpc": "2.0", "method": method, "params": params }),
            None,
        );
    }

    pub fn report(&self) -> Report {
        self.running.report()
    }

    /// Ends the host and reads the whole report.
    pub fn close(mut self) -> Report {
        self.running.end();
        self.running.finish().1
    }

    fn send(&mut self, message: &Value, transcript: Option<&mut Transcript>) {
        let line = message.to_string();
        if let Some(transcript) = transcript {
            transcript.say("sent", &line);
        }
        self.waiting.fetch_add(line.len(), Ordering::Relaxed);
        // `next` detects a host that has exited by its closed streams.
        let _ = self.sender.send(line);
    }

    fn next(&mut self, transcript: &mut Transcript) -> Result<Value, Fault> {
        loop {
            if self.stop.is_stopped() {
                return Err(Fault::Stopped);
            }
            if self.limit.is_over() {
                return Err(Fault::Deadline);
            }
            if let Some(what) = self.running.overflows() {
                return Err(Fault::TooLong(what));
            }
            match self.running.hear(LOOK.min(self.limit.left())) {
                Heard::Out(line) => {
                    transcript.say("got", &line);
                    match serde_json::from_str::<Value>(&line) {
                        Ok(message) if message.is_object() => return Ok(message),
                        _ if line.trim().is_empty() => {}
                        _ => self.count_garbage()?,
                    }
                }
                Heard::Err(line) => {
                    transcript.say("err", &line);
                    if self.lies.iter().any(|lie| line.contains(lie.as_str())) {
                        return Err(Fault::Refused(cut(&line, 300).to_string()));
                    }
                    if !line.trim().is_empty() {
                        self.last_error = cut(line.trim(), 300).to_string();
                    }
                }
                Heard::Quiet => {}
                Heard::Closed => return Err(self.gone()),
            }
        }
    }

    fn count_garbage(&mut self) -> Result<(), Fault> {
        self.garbage += 1;
        if self.garbage > MOST_GARBAGE {
            return Err(Fault::Broken(
                "the host does not support the Agent Client Protocol".to_string(),
            ));
        }
        Ok(())
    }

    fn gone(&mut self) -> Fault {
        let (exit, report) = self.running.finish();
        if let Some(why) = report.failed {
            return Fault::NotStarted(why);
        }
        if let Some(what) = report.over_bound {
            return Fault::TooLong(what);
        }
        let code = report
            .exit
            .or(exit)
            .map(|code| format!(" with exit code {code}"))
            .unwrap_or_default();
        let said = if self.last_error.is_empty() {
            String::new()
        } else {
            format!(": {}", self.last_error)
        };
        Fault::Broken(format!("the host exited before it answered{code}{said}"))
    }
}

/// Returns the result of an answer, or its error as a fault. Authentication errors have a code of
/// their own.
fn answer_of(method: &str, mut message: Value) -> Result<Value, Fault> {
    const AUTH_REQUIRED: i64 = -32000;
    if let Some(error) = message.get("error") {
        let text = error
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or("no reason given");
        let details = error
            .get("data")
            .filter(|data| !data.is_null())
            .map(|data| format!(" ({data})"))
            .unwrap_or_default();
        let why = format!("{method}: {}", cut(&format!("{text}{details}"), 600));
        let auth = error.get("code").and_then(Value::as_i64) == Some(AUTH_REQUIRED);
        return Err(if auth {
            Fault::Refused(why)
        } else {
            Fault::Broken(why)
        });
    }
    Ok(message
        .get_mut("result")
        .map(Value::take)
        .unwrap_or_default())
}

/// Writes messages on a thread of its own, so that a host that does not read cannot block its
/// client.
fn write_on_a_thread(mut input: ChildStdin, waiting: Arc<AtomicUsize>) -> Sender<String> {
    use std::io::Write;
    let (sender, messages) = channel::<String>();
    std::thread::spawn(move || {
        for message in messages {
            if input
                .write_all(format!("{message}\n").as_bytes())
                .and_then(|()| input.flush())
                .is_err()
            {
                return;
            }
            waiting.fetch_sub(message.len(), Ordering::Relaxed);
        }
    });
    sender
}
