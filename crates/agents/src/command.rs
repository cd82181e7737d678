//! The `command` adapter: runs any program that takes a prompt and exits.
//!
//! The exit code is recorded but not trusted. The host's table lists the texts (`lies`) that show a
//! failure despite exit code 0.

use crate::adapter::{Adapter, Limit, Turns, Watch};
use crate::assignment::{Assignment, Bounds};
use crate::host::{Host, Places, Via};
use crate::outcome::{Confinement, Ending, Event, Outcome, Usage};
use crate::program::{Heard, Launch, PrivateHome, Reading, Running, find_program};
use crate::questions;
use crate::sandbox::{Report, Sandbox};
use crate::transcript::Transcript;
use crate::workspace::Workspace;
use std::time::Duration;

/// Longest prompt passed as an argument. The kernel limits one argument to 128 KiB.
const LONGEST_ARGUMENT: usize = 96 * 1024;
/// Interval at which the stop flag and the deadline are checked.
const LOOK: Duration = Duration::from_millis(50);

/// A program that is started for each turn.
pub struct CommandAgent {
    pub name: String,
    pub host: Host,
    pub model: Option<String>,
    pub sandbox: Sandbox,
}

impl Adapter for CommandAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn ready(&self) -> Result<(), String> {
        find_program(&self.host)
    }

    fn open<'a>(&'a self, assignment: &'a Assignment, watch: Watch<'a>) -> Box<dyn Turns + 'a> {
        Box::new(CommandTurns {
            agent: self,
            assignment,
            watch,
            limit: Limit::after(assignment.deadline),
            home: None,
            turn: 0,
        })
    }
}

struct CommandTurns<'a> {
    agent: &'a CommandAgent,
    assignment: &'a Assignment,
    watch: Watch<'a>,
    limit: Limit,
    home: Option<PrivateHome>,
    turn: u32,
}

impl Turns for CommandTurns<'_> {
    fn first(&mut self) -> Outcome {
        self.take_turn(
            &placed_brief(self.assignment, &self.agent.host),
            &self.agent.host.args,
        )
    }

    fn again(&mut self, fault: &str) -> Outcome {
        let returned = self.assignment.returned(fault);
        if self.agent.host.again.is_empty() {
            let whole = format!(
                "{}\n\n{returned}",
                placed_brief(self.assignment, &self.agent.host)
            );
            self.take_turn(&whole, &self.agent.host.args)
        } else {
            self.take_turn(&returned, &self.agent.host.again)
        }
    }
}

impl CommandTurns<'_> {
    fn take_turn(&mut self, prompt: &str, args: &[String]) -> Outcome {
        self.turn += 1;
        let record = &self.assignment.record;
        let mut transcript = match Transcript::open(record, self.assignment.bounds.transcript) {
            Ok(transcript) => transcript,
            Err(why) => {
                return not_started(
                    record.join("transcript.jsonl"),
                    format!("{}: {why}", record.display()),
                );
            }
        };
        transcript.say("brief", prompt);
        match self.start(prompt, args) {
            Ok(mut running) => self.attend(&mut running, &mut transcript),
            Err(why) => {
                transcript.say("note", &format!("could not start: {why}"));
                not_started(transcript.path().to_path_buf(), why)
            }
        }
    }

    fn start(&mut self, prompt: &str, args: &[String]) -> Result<Running, String> {
        let home = match self.home.take() {
            Some(home) => home,
            None => prepare_home(&self.agent.host, &self.assignment.bounds)?,
        };
        let home = self.home.insert(home);
        let host = &self.agent.host;
        let places = plan_places(
            self.assignment,
            home,
            self.agent.model.as_deref(),
            prompt,
            host,
        )?;
        let mut args = places.fill_all(args);
        if self.agent.model.is_some() {
            args.extend(places.fill_all(&host.model_args));
        }
        if self.assignment.mcp.is_some() {
            args.extend(places.fill_all(&host.mcp.args));
        }
        args.extend(each_file(self.assignment, host));
        let launch = Launch {
            sandbox: &self.agent.sandbox,
            host,
            assignment: self.assignment,
            home,
            places: &places,
            turn: self.turn,
        };
        let mut running = launch.start(args)?;
        running.feed(
            host.stdin
                .as_ref()
                .map(|template| places.fill(template))
                .unwrap_or_default(),
        );
        Ok(running)
    }

    /// Reads the program's output until it exits or is ended.
    fn attend(&self, running: &mut Running, transcript: &mut Transcript) -> Outcome {
        let host = &self.agent.host;
        let mut reading = Reading::new(&host.answer, &host.lies, self.assignment.bounds.message);
        let cut_short = loop {
            if self.watch.stop.is_stopped() {
                break Some(Ending::Stopped);
            }
            if self.limit.is_over() {
                break Some(Ending::Deadline);
            }
            if let Some(what) = running.overflows() {
                break Some(Ending::TooLong { what });
            }
            match running.hear(LOOK.min(self.limit.left())) {
                Heard::Out(line) => {
                    transcript.say("out", &line);
                    let told = reading.out(&line);
                    told.progress
                        .into_iter()
                        .for_each(|line| self.watch.progress(line));
                    told.usage
                        .into_iter()
                        .for_each(|usage| (self.watch.events)(Event::Usage(usage)));
                }
                Heard::Err(line) => {
                    transcript.say("err", &line);
                    reading.err(&line);
                }
                Heard::Quiet => {}
                Heard::Closed => break None,
            }
        };
        if cut_short.is_some() {
            running.end();
        }
        let (exit, report) = running.finish();
        let ending = cut_short.unwrap_or_else(|| judge_end(&reading, &report, exit));
        transcript.say("note", &ending.to_string());
        let outcome = conclude(ending, reading.message(), reading.usage, report, transcript);
        for attempt in &outcome.denied {
            (self.watch.events)(Event::Denied(attempt.clone()));
        }
        outcome
    }
}

/// Classifies the end of a program that exited by itself.
fn judge_end(reading: &Reading, report: &Report, exit: Option<i32>) -> Ending {
    if let Some(why) = &report.failed {
        return Ending::NotStarted { why: why.clone() };
    }
    if let Some(what) = &report.over_bound {
        return Ending::TooLong { what: what.clone() };
    }
    if let Some(why) = &reading.fault {
        return Ending::Refused {
            status: None,
            why: why.clone(),
        };
    }
    if reading.too_long {
        return Ending::TooLong {
            what: "the final message".to_string(),
        };
    }
    match (&report.signal, report.exit.or(exit), &reading.complaint) {
        (Some(signal), ..) => Ending::Broken {
            why: format!("ended by {signal}"),
        },
        (None, Some(code), Some(complaint)) if code != 0 => Ending::Broken {
            why: format!("exit code {code}: {complaint}"),
        },
        (None, exit, _) => Ending::Finished { exit },
    }
}

/// Builds the outcome of a turn from the program's output and the helper's report.
pub(crate) fn conclude(
    ending: Ending,
    final_message: Option<String>,
    usage: Usage,
    report: Report,
    transcript: &Transcript,
) -> Outcome {
    let unknown = || Confinement::VerificationOnly {
        why: "the sandbox did not report its state".to_string(),
    };
    Outcome {
        ending,
        final_message,
        usage,
        denied: report.denied,
        confinement: report.confinement.unwrap_or_else(unknown),
        left_behind: report.left_behind,
        transcript: transcript.path().to_path_buf(),
    }
}

/// Builds the outcome of a program that did not start.
pub(crate) fn not_started(transcript: std::path::PathBuf, why: String) -> Outcome {
    Outcome {
        ending: Ending::NotStarted { why },
        final_message: None,
        usage: Usage::default(),
        denied: Vec::new(),
        confinement: Confinement::VerificationOnly {
            why: "nothing was run".to_string(),
        },
        left_behind: Vec::new(),
        transcript,
    }
}

/// Creates a private home with the caller's files that the host needs.
pub(crate) fn prepare_home(host: &Host, general: &Bounds) -> Result<PrivateHome, String> {
    let home = PrivateHome::make().map_err(|why| format!("a private home: {why}"))?;
    if let Some(from) = std::env::home_dir() {
        home.bring(&from, &host.credentials, host.bounds(general).home)
            .map_err(|why| format!("credentials {why}"))?;
    }
    Ok(home)
}

/// Returns the placeholder values of a host for one turn. A prompt too long for an argument goes
/// into a file.
pub(crate) fn plan_places(
    assignment: &Assignment,
    home: &PrivateHome,
    model: Option<&str>,
    prompt: &str,
    host: &Host,
) -> Result<Places, String> {
    let mut places = Places::default();
    places.put("view", assignment.view.display().to_string());
    places.put("out", assignment.out.display().to_string());
    places.put("home", home.home().display().to_string());
    places.put("tmp", home.tmp().display().to_string());
    places.put("role", assignment.names.role.clone());
    places.put("unit", assignment.names.unit.clone().unwrap_or_default());
    places.put("model", model.or(host.model.as_deref()).unwrap_or_default());
    places.put("whole_brief", prompt);
    // The first prompt is the brief. A later prompt appends the fault; the fault is then appended
    // to the inline brief too.
    let fault = prompt
        .strip_prefix(placed_brief(assignment, host).as_str())
        .unwrap_or_default();
    places.put(
        "inline",
        format!(
            "{}{fault}",
            assignment.inline.as_ref().unwrap_or(&assignment.brief)
        ),
    );
    let argument = if prompt.len() <= LONGEST_ARGUMENT {
        prompt.to_string()
    } else {
        let file = home
            .write("brief.md", prompt)
            .map_err(|why| format!("the brief's file: {why}"))?;
        match assignment.language {
            crate::Language::English => {
                format!(
                    "Your task is in the file `{}`. Read the whole file and carry out the task.",
                    file.display()
                )
            }
            crate::Language::Chinese => format!(
                "你的任务写在文件 `{}` 里。请读完全文并完成任务。",
                file.display()
            ),
        }
    };
    places.put("brief", argument);
    let mut files: Vec<_> = host.files.iter().collect();
    if let Some([command, args @ ..]) = assignment.mcp.as_deref() {
        places.put("mcp_command", serde_json::json!(command).to_string());
        places.put("mcp_args", serde_json::json!(args).to_string());
        places.put("mcp_all", serde_json::json!(assignment.mcp).to_string());
        places.put(
            "mcp_line",
            assignment
                .mcp
                .iter()
                .flatten()
                .map(|word| quoted(word))
                .collect::<Vec<_>>()
                .join(" "),
        );
        // Over ACP, the server is passed when the session is opened.
        if host.via == Via::Command {
            files.extend(&host.mcp.files);
        }
    }
    for (path, text) in files {
        home.write(path, &places.fill(text))
            .map_err(|why| format!("the host's file {path}: {why}"))?;
    }
    Ok(places)
}

/// Quotes a word of a command line for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    if word.contains(|c: char| c.is_whitespace() || "'\"\\$`".contains(c)) {
        format!("'{}'", word.replace('\'', "'\\''"))
    } else {
        word.to_string()
    }
}

/// The brief of a program. It names the tools only if the program is connected to their server.
fn placed_brief(assignment: &Assignment, host: &Host) -> String {
    if assignment.mcp.is_none() || host.mcp.is_empty() {
        assignment.placed_brief("")
    } else {
        assignment.placed_brief(&questions::told(assignment))
    }
}

fn each_file(assignment: &Assignment, host: &Host) -> Vec<String> {
    let workspace = Workspace {
        view: &assignment.view,
        out: &assignment.out,
        outputs: &assignment.outputs,
        questions: &assignment.questions,
        file_bound: assignment.bounds.file,
    };
    let mut args = Vec::new();
    let mut add = |templates: &[String], path: String| {
        let mut places = Places::default();
        places.put("file", path);
        args.extend(places.fill_all(templates));
    };
    if !host.each_read.is_empty() {
        for file in workspace.list() {
            add(
                &host.each_read,
                assignment.view.join(file).display().to_string(),
            );
        }
    }
    for output in &assignment.outputs {
        add(
            &host.each_output,
            assignment.out.join(output).display().to_string(),
        );
    }
    args
}
