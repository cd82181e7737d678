//! The `finish` command: ends a session, and makes the git commit after it. The checklist is
//! evaluated by the protocol crate.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use quipu_contract::{Actor, Form, Language};
use quipu_protocol::{
    Blocked, Closed, FinishText, Made, Material, Missing, NewDecision, NewTodo, Project, TodoMoves,
    finish,
};
use quipu_protocol::{Setting, is_in_journal_only, is_trusted, parse_finish_text, short_name};
use quipu_store::{OpenSession, Receipt};
use serde_json::{Map, Value, json};

use super::flagged::with_flagged_files;
use super::receipt;
use super::state::parse_value;
use crate::answer::{Answer, Failure, exit};
use crate::calls::Watched;
use crate::heads;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Finish {
    /// Something you completed; repeatable
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    did: Vec<String>,
    /// A next step; repeatable; these steps replace the old ones
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    next: Vec<String>,
    /// The current task
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// The phase of the project
    #[arg(long, value_name = "PHASE")]
    phase: Option<String>,
    /// What is half done, and what is missing
    #[arg(long, value_name = "TEXT")]
    in_progress: Option<String>,
    /// A note that every start shows until it is removed; repeatable
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    notes: Vec<String>,
    /// A fact about people, external systems or dates; every start shows it until it is removed;
    /// repeatable
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    fact: Vec<String>,
    /// Something that is blocked, with the reason: "item: reason"; repeatable
    #[arg(long, value_name = "ITEM: WHY")]
    blocked: Vec<String>,
    /// Something that is no longer blocked; repeatable
    #[arg(long, value_name = "ITEM")]
    unblocked: Vec<String>,
    /// Set a value of the state file: "/pointer=value"; repeatable
    #[arg(long, value_name = "PTR=VALUE")]
    state: Vec<String>,
    /// Record a decision: "title | context | decision | consequences"; repeatable
    #[arg(long, value_name = "T | C | D")]
    decision: Vec<String>,
    /// Complete a todo; repeatable
    #[arg(long, value_name = "ID")]
    done: Vec<String>,
    /// Cancel a todo; repeatable
    #[arg(long, value_name = "ID")]
    cancel: Vec<String>,
    /// Block a todo, with the reason: "ID: reason"; repeatable
    #[arg(long, value_name = "ID: WHY")]
    block: Vec<String>,
    /// Leave a todo in progress for the next session; repeatable
    #[arg(long, value_name = "ID")]
    leave: Vec<String>,
    /// Add a todo; repeatable
    #[arg(long, value_name = "TITLE")]
    add: Vec<String>,
    /// Record that all todos were reviewed
    #[arg(long)]
    reviewed: bool,
    #[command(flatten)]
    arguments: FinishArguments,
    /// Confirm that there is nothing to report for this item of the checklist: decisions, next,
    /// world; repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    none: Vec<String>,
    /// The complete finish as one Markdown text with the headings Done, Decisions, Todos, Next,
    /// Notes, Facts
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    text: Option<String>,
    /// Read that text, or JSON, from a file; `-` reads stdin, which is also the default; flags add
    /// to it
    #[arg(long, value_name = "FINISH.md")]
    file: Option<PathBuf>,
    /// Show what would change and what is missing; save nothing
    #[arg(long)]
    dry_run: bool,
    /// Give up the task: todos in progress become blocked, with the reason
    #[arg(long, requires = "why")]
    abandon: bool,
    /// The reason for giving up
    #[arg(
        long,
        value_name = "WHY",
        requires = "abandon",
        allow_hyphen_values = true
    )]
    why: Option<String>,
    /// Commit the memory files to git afterwards, even if `[git] finish` is not set
    #[arg(long)]
    git: bool,
    /// The session to end; by default your own [env: QUIPU_SESSION]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// End an unfinished session that you took over; repeatable
    #[arg(long, value_name = "ID")]
    takes_over: Vec<String>,
}

// The fields about the task that ends. (A doc comment here would become that of the command.)
#[derive(Debug, Args)]
pub struct FinishArguments {
    /// The task, if it was not started with `task start`
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    problem: Option<String>,
    /// The solution
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    solution: Option<String>,
    /// The known pattern that was used
    #[arg(long, value_name = "NAME")]
    pattern: Option<String>,
    /// The pattern that you recognised or improved; a new name creates a pattern from the plan
    #[arg(long, value_name = "NAME")]
    learnt: Option<String>,
    /// A lesson for similar tasks, or `none`
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    lesson: Option<String>,
    /// What caused the problem, in one line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    cause: Option<String>,
    /// What cures such a problem, in one line; patterns are formed from causes and cures
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    cure: Option<String>,
    /// What to do better next time
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    improvement: Option<String>,
    /// The outcome; by default done
    #[arg(long, value_name = "OUTCOME", value_parser = ["done", "failed"])]
    outcome: Option<String>,
    /// A changed fact of the world; repeatable
    #[arg(long, value_name = "SECTION/KEY=VALUE", allow_hyphen_values = true)]
    world: Vec<String>,
    /// The newer value of another session that a fact of yours replaces; repeatable
    #[arg(long, value_name = "SECTION/KEY=VALUE", allow_hyphen_values = true)]
    replaces: Vec<String>,
}

impl FinishArguments {
    fn material(&self) -> Map<String, Value> {
        let texts = [
            ("problem", &self.problem),
            ("solution", &self.solution),
            ("pattern", &self.pattern),
            ("learnt", &self.learnt),
            ("lesson", &self.lesson),
            ("cause", &self.cause),
            ("cure", &self.cure),
            ("improvement", &self.improvement),
            ("outcome", &self.outcome),
        ];
        let said = texts
            .into_iter()
            .filter_map(|(key, text)| Some((key.to_owned(), json!(text.as_ref()?))));
        let mut material: Map<String, Value> = said.collect();
        for (key, facts) in [("world", &self.world), ("replaces", &self.replaces)] {
            if !facts.is_empty() {
                material.insert(key.into(), json!(facts));
            }
        }
        material
    }
}

impl Operate for Finish {
    const NAME: &'static str = "finish";
    const ABOUT: &'static str =
        "End a session: save what it leaves in one commit, or report what is missing";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let flags = self.flags()?;
        let text = self.text(session, flags.is_empty() && !self.abandon)?;
        let FinishText { mut material, told } = match &text {
            Some((name, text)) => parse_finish_text(&project, &session.actor, name, text)?,
            None => FinishText::default(),
        };
        material.join(flags);
        // A caller that used flags is shown flags to add; over MCP there are no flags.
        let by_flags = text.is_none() && session.door.is_none() && !material.is_empty();
        let asked = quipu_protocol::Finish {
            material,
            abandon: self.why.clone().filter(|_| self.abandon),
            dry_run: self.dry_run,
            session: self.session.clone(),
            caller: session.caller(),
            takes_over: self.takes_over.clone(),
            lease: session.lease.clone(),
            calls: session.watched.get().map(Watched::rounds),
        };
        let zh = project.contract.language == Language::Zh;
        let mut answer = match finish(&project, &session.actor, &asked)? {
            Closed::Missing(missing) => {
                let mut answer =
                    Answer::new(json!({"missing": missing}), to_add(&missing, by_flags));
                answer.exit = exit::REFUSED;
                answer.say(if zh {
                    "没有保存任何内容。请再次执行，并加上："
                } else {
                    "Nothing was saved. Run the command again and add:"
                })
            }
            Closed::Would {
                difference,
                missing,
            } => {
                let text = format!("{difference}{}", to_add(&missing, by_flags));
                let mut answer =
                    Answer::new(json!({"difference": difference, "missing": missing}), text);
                let is_missing = !missing.is_empty();
                if is_missing {
                    answer.exit = exit::NO;
                }
                answer.say(match (zh, is_missing) {
                    (true, false) => "试运行：没有保存任何内容；保存时编号会不同",
                    (true, true) => {
                        "试运行：没有保存任何内容；保存时编号会不同。还缺最后这几行，请加上"
                    }
                    (false, false) => "dry run: nothing was saved; the ids will differ",
                    (false, true) => {
                        "dry run: nothing was saved; the ids will differ. The last lines are \
                         missing: add them"
                    }
                })
            }
            Closed::Done {
                receipt,
                session: ended,
                paths,
                made,
                closed,
                dropped_steps,
            } => {
                let summary = Summary {
                    project: &project,
                    material: &asked.material,
                    receipt: &receipt,
                    made: &made,
                    dropped_steps: &dropped_steps,
                };
                let answer = summary.answer(ended.as_deref(), &paths, &closed);
                let why = asked
                    .material
                    .did
                    .first()
                    .map_or("quipu finish", String::as_str);
                let answer = self.tell_head(&project, &session.actor, answer, &paths, why);
                with_flagged_files(answer, &project, &session.actor)
            }
        };
        if !told.is_empty() {
            answer.json["told"] = json!(told);
            answer.talk.extend(told);
        }
        Ok(answer)
    }
}

/// The result of a finish, as text and as data.
struct Summary<'s> {
    project: &'s Project,
    material: &'s Material,
    receipt: &'s Receipt,
    made: &'s [Made],
    dropped_steps: &'s [String],
}

impl Summary<'_> {
    fn answer(&self, ended: Option<&str>, paths: &[String], closed: &[OpenSession]) -> Answer {
        let zh = self.project.contract.language == Language::Zh;
        let json = json!({
            "session": ended, "paths": paths, "made": self.made, "closed": closed,
            "dropped_steps": self.dropped_steps,
        });
        let mut answer = receipt::with(
            self.project.contract.language,
            self.receipt,
            json,
            self.text(zh),
        );
        if let Some(id) = ended {
            answer = answer.say(if zh {
                format!("会话 {id} 已结束")
            } else {
                format!("session {id} ended")
            });
        }
        if is_in_journal_only(&self.project.contract, self.material) {
            answer = answer.say(match zh {
                true => "本项目没有存放这些条目的文件：已记入日志，下一次 `quipu start` 会显示",
                false => {
                    "this project has no file for these entries: they are in the journal, \
                    and the next `quipu start` shows them"
                }
            });
        }
        for old in closed {
            let (id, since) = (&old.id, old.since.get(..19).unwrap_or(&old.since));
            answer = answer.say(match zh {
                true => format!("同时结束了更早的会话 {id}（{}，始于 {since}）", old.who),
                false => format!(
                    "also closed session {id} of {}, started at {since} and never finished",
                    old.who
                ),
            });
        }
        answer
    }

    /// Formats `Saved: 2 done, 1 decision, …`, then the new ids.
    fn text(&self, zh: bool) -> String {
        if self.receipt.versions.is_empty()
            && is_in_journal_only(&self.project.contract, self.material)
        {
            return if zh {
                "已保存在日志里\n".into()
            } else {
                "Saved in the journal\n".into()
            };
        }
        if self.receipt.unchanged || self.receipt.versions.is_empty() {
            return if zh {
                "没有需要保存的内容\n".into()
            } else {
                "Nothing to save\n".into()
            };
        }
        let (said, todos) = (self.material, &self.material.todos);
        let of_form = |form: Form| self.made.iter().filter(|m| m.form == form).count();
        let counted = [
            (said.did.len(), "done", "项完成"),
            (of_form(Form::Decisions), "decisions", "条决策"),
            (todos.done.len(), "todos closed", "个待办完成"),
            (todos.cancel.len(), "todos cancelled", "个待办取消"),
            (todos.block.len(), "todos blocked", "个待办阻塞"),
            (of_form(Form::Todos), "todos added", "个新待办"),
            (said.next.len(), "next steps", "个下一步"),
            (said.notes.len(), "notes", "条备注"),
            (said.facts.len(), "facts", "条事实"),
            (
                said.remove_notes.len() + said.remove_facts.len(),
                "entries removed",
                "条删除",
            ),
        ];
        let mut parts: Vec<String> = counted
            .iter()
            .filter(|(n, ..)| *n > 0)
            .map(|(n, en, name_zh)| counted_text(*n, en, name_zh, zh))
            .collect();
        if parts.is_empty() {
            parts = self
                .receipt
                .versions
                .keys()
                .map(ToString::to_string)
                .collect();
        }
        let mut text = format!(
            "{}{}\n",
            if zh { "已保存：" } else { "Saved: " },
            parts.join(if zh { "、" } else { ", " })
        );
        for made in self.made {
            let short = short_name(self.made.iter().map(|m| m.id.as_str()), &made.id);
            text.push_str(&format!(
                "  {short}  {}\n",
                quipu_contract::in_one_line(&made.title)
            ));
        }
        for step in self.dropped_steps {
            let label = if zh {
                "不再是下一步："
            } else {
                "no longer a next step: "
            };
            text.push_str(&format!("  {label}{}\n", quipu_contract::in_one_line(step)));
        }
        text
    }
}

fn counted_text(number: usize, en: &str, name_zh: &str, zh: bool) -> String {
    match (zh, number) {
        (true, _) => format!("{number} {name_zh}"),
        (false, 1) if en != "done" => {
            let (first, rest) = en
                .split_once(' ')
                .map_or((en, String::new()), |(first, rest)| {
                    (first, format!(" {rest}"))
                });
            match first {
                "next" => "1 next step".to_owned(),
                "entries" => "1 entry removed".to_owned(),
                _ => format!("1 {}{rest}", first.trim_end_matches('s')),
            }
        }
        (false, _) => format!("{number} {en}"),
    }
}

impl Finish {
    /// Adds the head of the journal after the finish, and the git commit that carries it.
    fn tell_head(
        &self,
        project: &Project,
        actor: &Actor,
        mut answer: Answer,
        paths: &[String],
        why: &str,
    ) -> Answer {
        // The session is over even if its head cannot be read.
        let head = project.store.journal_head().ok().flatten();
        if let Some(head) = &head {
            answer.json["head"] = json!(head.to_string());
            let signed = heads::note_signed(project.store.root(), head).unwrap_or(false);
            answer = answer.say(match (project.contract.language, signed) {
                (Language::En, false) => format!("head {head}"),
                (Language::En, true) => format!("head {head} (signed)"),
                (Language::Zh, false) => format!("日志末端 {head}"),
                (Language::Zh, true) => format!("日志末端 {head}（已签名）"),
            });
        }
        let setting = Setting::git(&project.contract).filter(|_| !self.git);
        if setting
            .as_ref()
            .is_some_and(|setting| !is_trusted(project.store.root(), setting))
        {
            answer.json["git"] = json!("not trusted");
            return answer.say(
                "not committed to git: `[git] finish` of this project is not \
                trusted; to agree: quipu trust",
            );
        }
        // Git runs hooks and filters of the repository. A person who calls the command agrees to
        // that; an agent needs a person's trust.
        let agreed = || {
            Setting::git(&project.contract)
                .is_some_and(|setting| is_trusted(project.store.root(), &setting))
        };
        if self.git && *actor != Actor::Person && !agreed() {
            answer.json["git"] = json!("not trusted");
            return answer.say(
                "not committed to git: an agent's `--git` needs `[git] finish = true` in \
                    quipu.toml, and a person must run: quipu trust",
            );
        }
        if !self.git && setting.is_none() {
            return answer;
        }
        let trailers = head
            .as_ref()
            .map(|head| heads::trailers(project.store.root(), head));
        match commit_to_git(project.store.root(), paths, why, trailers.as_deref()) {
            Ok(told) => answer.say(told),
            // The memory is saved even if git fails; only the git commit is missing.
            Err(what) => {
                answer.json["git"] = json!(what);
                answer.say(format!(
                    "not committed to git: {what}; the memory itself is saved"
                ))
            }
        }
    }

    /// Returns the text of the finish with the name of its source, if any. `alone`: no flags
    /// supplied content.
    fn text(&self, session: &Session, alone: bool) -> Result<Option<(String, String)>, Failure> {
        let read = |name: &str, bytes: Vec<u8>| {
            let not_text = |_| {
                Failure::usage(
                    format!("`{name}` is not UTF-8 text"),
                    "quipu finish <<'EOF' … EOF, with UTF-8 text",
                )
            };
            Ok(Some((
                name.to_owned(),
                String::from_utf8(bytes).map_err(not_text)?,
            )))
        };
        match (&self.text, &self.file) {
            (Some(text), _) => Ok(Some(("text".to_owned(), text.clone()))),
            (None, Some(file)) if file.as_os_str() != "-" => {
                read(&file.display().to_string(), session.load_file(file)?)
            }
            (None, Some(_)) => read("stdin", session.load_stdin()?),
            // Over MCP and on the page, stdin does not belong to the caller.
            (None, None) if session.door.is_some() || std::io::stdin().is_terminal() => Ok(None),
            (None, None) if alone => read("stdin", session.load_stdin()?)
                .map(|found| found.filter(|(_, text)| !text.trim().is_empty())),
            (None, None) => {
                let found = read("stdin", stdin_beside_flags(session)?)?;
                Ok(found.filter(|(_, text)| !text.trim().is_empty()))
            }
        }
    }

    /// Collects the content of the flags.
    fn flags(&self) -> Result<Material, Failure> {
        let mut state = Map::new();
        for pair in &self.state {
            let (pointer, value) = pair.split_once('=').ok_or_else(|| {
                Failure::usage(format!("`--state {pair}` has no value"), "--state /notes=…")
            })?;
            state.insert(pointer.to_owned(), parse_value(value));
        }
        let blocked = |text: &String| {
            let (item, reason) = split_reason(text);
            Blocked {
                item,
                reason,
                since: None,
            }
        };
        Ok(Material {
            did: self.did.clone(),
            next: self.next.clone(),
            task: self.task.clone(),
            phase: self.phase.clone(),
            in_progress: self.in_progress.clone(),
            notes: self.notes.clone(),
            facts: self.fact.clone(),
            blocked: self.blocked.iter().map(blocked).collect(),
            unblocked: self.unblocked.clone(),
            state,
            decisions: self
                .decision
                .iter()
                .map(|d| parse_decision(d))
                .collect::<Result<_, _>>()?,
            todos: TodoMoves {
                done: self.done.clone(),
                cancel: self.cancel.clone(),
                leave: self.leave.clone(),
                block: self.block.iter().map(|b| split_reason(b).into()).collect(),
                add: self
                    .add
                    .iter()
                    .map(|title| NewTodo {
                        title: title.clone(),
                        ..NewTodo::default()
                    })
                    .collect(),
                reviewed: self.reviewed,
                ..TodoMoves::default()
            },
            none: self.none.clone(),
            rest: self.arguments.material(),
            ..Material::default()
        })
    }
}

/// Splits `item: reason`, with either colon.
fn split_reason(text: &str) -> (String, String) {
    let (item, reason) = text.split_once([':', '：']).unwrap_or((text, ""));
    (item.trim().to_owned(), reason.trim().to_owned())
}

fn parse_decision(text: &str) -> Result<NewDecision, Failure> {
    let mut parts = text.split('|').map(|p| p.trim().to_owned());
    let (title, context, decision) = (parts.next(), parts.next(), parts.next());
    let (Some(title), Some(context), Some(decision)) = (title, context, decision) else {
        let remedy = "--decision \"title | context | decision | consequences\"";
        return Err(Failure::usage(
            format!("`{text}` is not a decision"),
            remedy,
        ));
    };
    Ok(NewDecision {
        title,
        context: Some(context),
        decision: Some(decision),
        consequences: parts.next(),
        ..NewDecision::default()
    })
}

/// How long to wait for text on stdin beside flags, because a host may leave stdin open and never
/// write to it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads stdin beside flags: all of it if any bytes arrive, nothing otherwise.
fn stdin_beside_flags(session: &Session) -> Result<Vec<u8>, Failure> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let caller = session.clone();
    std::thread::spawn(move || sender.send(caller.load_stdin()));
    receiver
        .recv_timeout(PATIENCE)
        .unwrap_or_else(|_| Ok(Vec::new()))
}

/// Lists the missing items: the lines or flags that supply them, or the command if only the caller
/// knows the content.
pub(crate) fn to_add(missing: &[Missing], by_flags: bool) -> String {
    let mut text = String::new();
    for m in missing {
        let detail = m
            .detail
            .as_ref()
            .map(|d| format!(": {d}"))
            .unwrap_or_default();
        match (&m.lines[..], &m.flags[..]) {
            ([], _) => text.push_str(&format!("[ ] {}{detail}\n    do    {}\n", m.text, m.supply)),
            ([heading, entries @ ..], _) if !by_flags => {
                text.push_str(&format!(
                    "{heading} <!-- {} -->\n{}\n",
                    m.text,
                    entries.join("\n")
                ));
            }
            (_, flags) => {
                text.push_str(&format!("  {}     ({}{detail})\n", flags.join(" "), m.text))
            }
        }
    }
    text
}

/// Commits exactly these files; other staged files stay staged.
fn commit_to_git(
    root: &Path,
    paths: &[String],
    why: &str,
    trailers: Option<&str>,
) -> Result<String, String> {
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(arguments)
            .arg("--")
            .args(paths)
            .current_dir(root)
            .output();
        let done = done.map_err(|e| format!("cannot start git: {e}"))?;
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&done.stderr)
                .lines()
                .next()
                .unwrap_or("git failed")
                .to_owned()),
        }
    };
    if git(&["status", "--porcelain"])?.trim().is_empty() {
        return Ok("everything is already committed to git".into());
    }
    git(&["add"])?;
    let message = format!("memory: {why}");
    // The head of the journal is a separate paragraph, so that git parses it as trailers.
    let noted = trailers.map_or_else(Vec::new, |trailers| vec!["-m", trailers]);
    git(&[&["commit", "--quiet", "--only", "-m", &message][..], &noted].concat())?;
    Ok(format!("git commit: {message}"))
}
