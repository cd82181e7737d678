//! Runs a job with an external agent: a program in its sandbox, a model over HTTP, or a person. The
//! adapters are in `quipu-agents`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_agents::{
    Adapter, Assignment, Attempt, Bounds, Confinement, Names, Outcome, answer_questions,
};
use quipu_contract::Language;
use quipu_protocol::flow::{Agent, AgentReport, Ended, Ending, Task, Usage, Watch};
use quipu_text::render_marker;

/// Maximum number of refused accesses noted in the journal. The sandbox's own record has them all.
const NOTED: usize = 50;

pub struct ExternalAgent {
    agent: Box<dyn Adapter>,
    name: String,
    language: Language,
    /// The program that serves the folders of an attempt over MCP, for a host that asks for it.
    server: Option<PathBuf>,
    /// Whether the warning about missing kernel confinement was printed; once is enough.
    warned: AtomicBool,
}

impl ExternalAgent {
    pub fn new(
        agent: Box<dyn Adapter>,
        language: Language,
        server: Option<PathBuf>,
    ) -> ExternalAgent {
        ExternalAgent {
            name: agent.name().to_owned(),
            agent,
            language,
            server,
            warned: AtomicBool::new(false),
        }
    }

    /// Returns the command line of an MCP server over the folders of a task. It runs inside the
    /// sandbox, as the agent does.
    fn server_line(
        &self,
        view: &Path,
        out: &Path,
        outputs: &[String],
        questions: &[String],
    ) -> Option<Vec<String>> {
        let text = |path: &Path| path.display().to_string();
        let mut line = vec![text(self.server.as_ref()?), "mcp".to_owned()];
        line.extend([
            "--view".to_owned(),
            text(view),
            "--out".to_owned(),
            text(out),
        ]);
        line.extend(
            outputs
                .iter()
                .flat_map(|output| ["--output".to_owned(), output.clone()]),
        );
        line.extend(
            questions
                .iter()
                .flat_map(|name| ["--question".to_owned(), name.clone()]),
        );
        Some(line)
    }

    fn ended(&self, outcome: Outcome, root: &Path, watch: &Watch<'_>) -> Ended {
        let ending = match outcome.ending {
            ending if ending.is_finished() => Ending::Done,
            quipu_agents::Ending::Deadline => Ending::Overdue,
            quipu_agents::Ending::Stopped => Ending::Stopped,
            other => Ending::Failed(other.to_string()),
        };
        let held_by = match &outcome.confinement {
            Confinement::Kernel { abi, .. } => format!("the kernel (Landlock {abi})"),
            Confinement::VerificationOnly { why } => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    (watch.told)(AgentReport::VerificationOnly(why.clone()));
                }
                format!("verification only: {why}")
            }
            Confinement::ToolsOnly => "its tools".to_owned(),
            Confinement::Person => "nothing: a person".to_owned(),
        };
        let used = outcome.usage;
        let known = used.input.is_some() || used.output.is_some();
        let usage = known.then(|| Usage {
            input: used.input.unwrap_or(0),
            output: used.output.unwrap_or(0),
            cost: None,
        });
        let (mut denied, elsewhere): (Vec<_>, Vec<_>) = outcome
            .denied
            .iter()
            .partition::<Vec<&Attempt>, _>(|attempt| Path::new(&attempt.path).starts_with(root));
        denied.extend(elsewhere);
        let denied = denied
            .into_iter()
            .take(NOTED)
            .map(|attempt| render(attempt, root))
            .collect();
        Ended {
            ending,
            message: outcome.final_message,
            usage,
            denied,
            held_by: Some(held_by),
        }
    }
}

impl Agent for ExternalAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn perform(&self, task: &Task, watch: Watch<'_>) -> Ended {
        let root = real(&task.root);
        let (view, out) = (real(&task.view), real(&task.out));
        let outputs: Vec<String> = task
            .outputs
            .iter()
            .filter(|output| !output.optional)
            .map(|output| output.path.to_string())
            .collect();
        let assignment = Assignment {
            mcp: self.server_line(&view, &out, &outputs, &task.questions),
            questions: task.questions.clone(),
            brief: task.brief.clone(),
            inline: Some(task.inline.clone()),
            view,
            out,
            outputs,
            last_lines: task
                .outputs
                .iter()
                .filter(|output| !output.optional && !output.markers.is_empty())
                .map(|output| {
                    (
                        output.path.to_string(),
                        output
                            .markers
                            .iter()
                            .map(|name| render_marker(name))
                            .collect(),
                    )
                })
                .collect(),
            names: Names {
                role: task.role.clone(),
                unit: task.job.unit.as_ref().map(ToString::to_string),
                agent: Some(self.name.clone()),
                attempt: task.attempt.clone(),
            },
            deadline: task.deadline,
            record: real(&task.record),
            keep_out: super::kept_out(&root),
            language: match self.language {
                Language::En => quipu_agents::Language::English,
                Language::Zh => quipu_agents::Language::Chinese,
            },
            bounds: Bounds::default(),
        };
        let told = watch.told;
        let events = |event: quipu_agents::Event| match event {
            quipu_agents::Event::Progress(line) => told(AgentReport::Progress(line)),
            quipu_agents::Event::Retry(why) => told(AgentReport::Retry(why)),
            quipu_agents::Event::Denied(attempt) if Path::new(&attempt.path).starts_with(&root) => {
                told(AgentReport::Denied(render(&attempt, &root)));
            }
            // Libraries probe many files of the machine, so denials go to the record only.
            quipu_agents::Event::Denied(_) | quipu_agents::Event::Usage(_) => {}
        };
        let stop = quipu_agents::Stop::from(std::sync::Arc::clone(&task.stop.0));
        let answering = Answering::default();
        std::thread::scope(|scope| {
            if !assignment.questions.is_empty() {
                let (out, over) = (&assignment.out, &answering.is_over);
                let answer = watch.answer;
                scope.spawn(move || {
                    answer_questions(out, answer, &|| over.load(Ordering::Relaxed));
                });
            }
            // Also ends the thread if the adapter panics, else the scope would wait for it forever.
            let _over = answering.until_dropped();
            self.work(&assignment, &root, watch, &events, &stop)
        })
    }
}

/// The thread that answers an agent's questions while the agent works.
#[derive(Default)]
struct Answering {
    is_over: AtomicBool,
}

impl Answering {
    fn until_dropped(&self) -> impl Drop + '_ {
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        Over(&self.is_over)
    }
}

impl ExternalAgent {
    fn work(
        &self,
        assignment: &Assignment,
        root: &Path,
        watch: Watch<'_>,
        events: &(dyn Fn(quipu_agents::Event) + Sync),
        stop: &quipu_agents::Stop,
    ) -> Ended {
        let mut turns = self
            .agent
            .open(assignment, quipu_agents::Watch { events, stop });
        let mut ended = self.ended(turns.first(), root, &watch);
        while let Some(fault) = (watch.look)(&ended) {
            ended = self.ended(turns.again(&fault), root, &watch);
        }
        ended
    }
}

/// Resolves links in a path, because sandbox rules apply to real paths.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Formats an access: `read drafts/ch02-draft.md by cat, refused by the kernel`.
fn render(attempt: &Attempt, root: &Path) -> String {
    let shown = |path: &str| {
        Path::new(path)
            .strip_prefix(root)
            .map_or_else(|_| path.to_owned(), |inside| inside.display().to_string())
    };
    let shown = |path: &str| match shown(path) {
        inside if inside.is_empty() => ".".to_owned(),
        inside => inside,
    };
    let leads = attempt
        .leads_to
        .as_ref()
        .map(|to| format!(" (which leads to {})", shown(to)))
        .unwrap_or_default();
    let times = if attempt.times > 1 {
        format!(" {} times", attempt.times)
    } else {
        String::new()
    };
    format!(
        "{} {}{leads} by {}{times}, refused by the {}",
        attempt.act,
        shown(&attempt.path),
        attempt.program,
        attempt.by
    )
}
