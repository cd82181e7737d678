//! `finish`: ending a session, and the git commit after it.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use quipu_protocol::{Blocked, Closed, Material, Missing, NewDecision, NewTodo, TodoMoves, finish, parse_material};
use quipu_protocol::{Setting, is_trusted};
use serde_json::{Map, Value, json};

use super::receipt;
use super::state::parse_value;
use crate::answer::{Answer, Failure, exit};
use crate::heads;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Finish {
    /// Something that was completed; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    did: Vec<String>,
    /// A next step; all of them together replace the list
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    next: Vec<String>,
    /// The task that is now current
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// The phase the project is in now
    #[arg(long, value_name = "PHASE")]
    phase: Option<String>,
    /// What is half done, and how far
    #[arg(long, value_name = "TEXT")]
    in_progress: Option<String>,
    /// What you would tell a colleague in the doorway
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    notes: Option<String>,
    /// Something that cannot go on: "item: reason"
    #[arg(long, value_name = "ITEM: WHY")]
    blocked: Vec<String>,
    /// Something that can go on again
    #[arg(long, value_name = "ITEM")]
    unblocked: Vec<String>,
    /// A value of the state
    #[arg(long, value_name = "PTR=VALUE")]
    state: Vec<String>,
    /// "title | context | decision | consequences"
    #[arg(long, value_name = "T | C | D")]
    decision: Vec<String>,
    /// Complete this todo
    #[arg(long, value_name = "ID")]
    done: Vec<String>,
    /// Cancel this todo
    #[arg(long, value_name = "ID")]
    cancel: Vec<String>,
    /// Block this todo: "ID: reason"
    #[arg(long, value_name = "ID: WHY")]
    block: Vec<String>,
    /// Leave this todo in progress, for the next session
    #[arg(long, value_name = "ID")]
    leave: Vec<String>,
    /// Add a todo
    #[arg(long, value_name = "TITLE")]
    add: Vec<String>,
    /// Every todo was looked at
    #[arg(long)]
    reviewed: bool,
    #[command(flatten)]
    told: Told,
    /// An item of the checklist for which there is nothing, such as decisions or world
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    none: Vec<String>,
    /// All of this as JSON; `-`: stdin. Flags are added to it
    #[arg(long, value_name = "FINISH.json")]
    file: Option<PathBuf>,
    /// Show what would change and what is missing, write nothing
    #[arg(long)]
    dry_run: bool,
    /// Give the task up: what is in progress becomes blocked, with the reason
    #[arg(long, requires = "why")]
    abandon: bool,
    /// The reason for giving up
    #[arg(long, value_name = "WHY", requires = "abandon", allow_hyphen_values = true)]
    why: Option<String>,
    /// Make a git commit of the memory files afterwards, whatever the contract says
    #[arg(long)]
    git: bool,
    /// End this session; without it the caller's own [env: QUIPU_SESSION]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// End this unfinished session of another as well: its work was taken over
    #[arg(long, value_name = "ID")]
    takes_over: Vec<String>,
}

// What is said about the task that ends. (A doc comment here would become that of the command.)
#[derive(Debug, Args)]
pub struct Told {
    /// What was asked, for a task that was not begun with `task start`
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    problem: Option<String>,
    /// What solved it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    solution: Option<String>,
    /// How many rounds it took; without it those that were noted
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// The known pattern that was used
    #[arg(long, value_name = "NAME")]
    pattern: Option<String>,
    /// The pattern that was recognised or improved; one that is unknown is made of the plan
    #[arg(long, value_name = "NAME")]
    learnt: Option<String>,
    /// What can be used again; `none` is an answer
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    lesson: Option<String>,
    /// What to do better next time
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    improvement: Option<String>,
    /// How it ended, if not done
    #[arg(long, value_name = "OUTCOME", value_parser = ["done", "failed"])]
    outcome: Option<String>,
    /// A fact of the world that changed; may be given several times
    #[arg(long, value_name = "SECTION/KEY=VALUE", allow_hyphen_values = true)]
    world: Vec<String>,
}

impl Told {
    fn material(&self) -> Map<String, Value> {
        let texts = [
            ("problem", &self.problem),
            ("solution", &self.solution),
            ("pattern", &self.pattern),
            ("learnt", &self.learnt),
            ("lesson", &self.lesson),
            ("improvement", &self.improvement),
            ("outcome", &self.outcome),
        ];
        let said = texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text.as_ref()?))));
        let mut material: Map<String, Value> = said.collect();
        if let Some(rounds) = self.rounds {
            material.insert("rounds".into(), json!(rounds));
        }
        if !self.world.is_empty() {
            material.insert("world".into(), json!(self.world));
        }
        material
    }
}

impl Operate for Finish {
    const NAME: &'static str = "finish";
    const ABOUT: &'static str = "End a session: save what it leaves in one commit, or report what is missing";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let asked = quipu_protocol::Finish {
            material: self.material(session)?,
            abandon: self.why.clone().filter(|_| self.abandon),
            dry_run: self.dry_run,
            session: self.session.clone(),
            caller: session.caller(),
            takes_over: self.takes_over.clone(),
            lease: session.lease.clone(),
        };
        match finish(&project, &session.actor, &asked)? {
            Closed::Missing(missing) => {
                let mut answer = Answer::new(json!({"missing": missing}), listed(&missing));
                answer.exit = exit::REFUSED;
                Ok(answer.say("nothing was written: this is missing (say all of it in one finish, what you said just now included)"))
            }
            Closed::Would { difference, missing } => {
                let text = format!("{difference}{}", listed(&missing));
                let mut answer = Answer::new(json!({"difference": difference, "missing": missing}), text);
                if !missing.is_empty() {
                    answer.exit = exit::REFUSED;
                }
                Ok(answer.say("nothing was written: a dry run"))
            }
            Closed::Done { receipt, session: ended, closed, paths } => {
                let told = receipt::answer(&receipt);
                let mut answer = receipt::with(&receipt, json!({"session": ended, "closed": closed, "paths": paths}), told.text);
                if let Some(id) = &ended {
                    answer = answer.say(format!("session {id} ended"));
                }
                for old in &closed {
                    let since = old.since.get(..19).unwrap_or(&old.since);
                    answer = answer.say(format!("also closed session {} of {}, begun at {since} and never finished", old.id, old.who));
                }
                // The session is over whether or not its head can be told.
                let head = project.store.journal_head().ok().flatten();
                if let Some(head) = &head {
                    answer.json["head"] = json!(head.to_string());
                    let signed = heads::note_signed(project.store.root(), head).unwrap_or(false);
                    answer = answer.say(format!("head {head}{}", if signed { " (signed)" } else { "" }));
                }
                let setting = Setting::git(&project.contract).filter(|_| !self.git);
                if setting.as_ref().is_some_and(|setting| !is_trusted(project.store.root(), setting)) {
                    answer.json["git"] = json!("not trusted");
                    answer = answer.say("git made no commit: nobody has trusted `[git] finish` of this project; quipu trust");
                } else if self.git || setting.is_some() {
                    let why = asked.material.did.first().map_or("quipu finish", String::as_str);
                    let trailers = head.as_ref().map(|head| heads::trailers(project.store.root(), head));
                    match commit_to_git(project.store.root(), &paths, why, trailers.as_deref()) {
                        Ok(told) => answer = answer.say(told),
                        // The memory is safe whatever git says; only git's part is missing.
                        Err(what) => {
                            answer.json["git"] = json!(what);
                            answer = answer.say(format!("git made no commit: {what}; the memory itself is safe"));
                        }
                    }
                }
                Ok(answer)
            }
        }
    }
}

impl Finish {
    fn material(&self, session: &Session) -> Result<Material, Failure> {
        let mut material = match &self.file {
            None => Material::default(),
            Some(file) if file.as_os_str() == "-" => {
                let text = String::from_utf8(session.load_stdin()?).map_err(|_| Failure::usage("stdin is not text", ""))?;
                parse_material("stdin", &text)?
            }
            Some(file) => {
                let name = file.display().to_string();
                let text = String::from_utf8(session.load_file(file)?).map_err(|_| Failure::usage(format!("`{name}` is not text"), ""))?;
                parse_material(&name, &text)?
            }
        };
        let mut state = Map::new();
        for pair in &self.state {
            let (pointer, value) =
                pair.split_once('=').ok_or_else(|| Failure::usage(format!("`--state {pair}` has no value"), "--state /notes=…"))?;
            state.insert(pointer.to_owned(), parse_value(value));
        }
        let blocked = |text: &String| {
            let (item, reason) = split_reason(text);
            Blocked { item, reason, since: None }
        };
        material.join(Material {
            did: self.did.clone(),
            next: self.next.clone(),
            task: self.task.clone(),
            phase: self.phase.clone(),
            in_progress: self.in_progress.clone(),
            notes: self.notes.clone(),
            blocked: self.blocked.iter().map(blocked).collect(),
            unblocked: self.unblocked.clone(),
            state,
            decisions: self.decision.iter().map(|d| parse_decision(d)).collect::<Result<_, _>>()?,
            todos: TodoMoves {
                done: self.done.clone(),
                cancel: self.cancel.clone(),
                leave: self.leave.clone(),
                block: self.block.iter().map(|b| split_reason(b).into()).collect(),
                add: self.add.iter().map(|title| NewTodo { title: title.clone(), ..NewTodo::default() }).collect(),
                reviewed: self.reviewed,
            },
            none: self.none.clone(),
            rest: self.told.material(),
        });
        Ok(material)
    }
}

/// `item: reason`, with either colon.
fn split_reason(text: &str) -> (String, String) {
    let (item, reason) = text.split_once([':', '：']).unwrap_or((text, ""));
    (item.trim().to_owned(), reason.trim().to_owned())
}

fn parse_decision(text: &str) -> Result<NewDecision, Failure> {
    let mut parts = text.split('|').map(|p| p.trim().to_owned());
    let (title, context, decision) = (parts.next(), parts.next(), parts.next());
    let (Some(title), Some(context), Some(decision)) = (title, context, decision) else {
        let mend = "--decision \"title | what forced a choice | what was chosen | consequences\"";
        return Err(Failure::usage(format!("`{text}` is no decision"), mend));
    };
    Ok(NewDecision { title, context: Some(context), decision: Some(decision), consequences: parts.next(), ..NewDecision::default() })
}

/// What is missing, item by item, with the command that supplies it.
pub(crate) fn listed(missing: &[Missing]) -> String {
    let line = |m: &Missing| {
        let detail = m.detail.as_ref().map(|d| format!(": {d}")).unwrap_or_default();
        format!("[ ] {}{detail}\n    rule  {}  {}\n    do    {}\n", m.text, m.rule, m.name, m.supply)
    };
    missing.iter().map(line).collect()
}

/// Commits exactly these files; what else is staged stays staged.
fn commit_to_git(root: &Path, paths: &[String], why: &str, trailers: Option<&str>) -> Result<String, String> {
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).arg("--").args(paths).current_dir(root).output();
        let done = done.map_err(|e| format!("cannot start git: {e}"))?;
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&done.stderr).lines().next().unwrap_or("git failed").to_owned()),
        }
    };
    if git(&["status", "--porcelain"])?.trim().is_empty() {
        return Ok("git has all of it already".into());
    }
    git(&["add"])?;
    let message = format!("memory: {why}");
    // The head of the journal goes into a paragraph of its own, where git looks for trailers.
    let noted = trailers.map_or_else(Vec::new, |trailers| vec!["-m", trailers]);
    git(&[&["commit", "--quiet", "--only", "-m", &message][..], &noted].concat())?;
    Ok(format!("git commit: {message}"))
}
