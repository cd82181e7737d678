//! Past sessions: lists them by name, and searches their text.

use clap::Args;
use quipu_contract::{Pattern as Glob, ProjectPath};
use quipu_protocol::worldlog::{PastSession, load_sessions};
use serde_json::json;

use crate::answer::{Answer, Failure, exit, in_language};
use crate::session::Session;
use crate::table::Operate;

// Selects sessions. (No doc comment: it would become the help of the commands that take these.)
#[derive(Debug, Args)]
pub struct Which {
    /// Only files with a matching name, such as '*undefined_var*'
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,
    /// Only sessions of this agent
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
    /// Only sessions of this task type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The maximum number of sessions, newest first
    #[arg(short = 'k', value_name = "N", default_value_t = 20)]
    most: usize,
}

impl Which {
    /// Returns the selected sessions, newest first.
    fn pick(&self, sessions: Vec<PastSession>) -> Result<Vec<PastSession>, Failure> {
        let parse = |glob: &str| {
            Glob::parse(glob).map_err(|what| Failure::usage(what, "--name '*undefined_var*'"))
        };
        let glob = self.name.as_deref().map(parse).transpose()?;
        let same = |wanted: &Option<String>, found: &str| {
            wanted
                .as_ref()
                .is_none_or(|wanted| wanted.to_lowercase() == found.to_lowercase())
        };
        let named = |path: &str| {
            let file = path.rsplit('/').next().unwrap_or(path);
            let stem = file.strip_suffix(".md").unwrap_or(file);
            glob.as_ref().is_none_or(|glob| {
                [path, file, stem]
                    .iter()
                    .any(|name| glob.matches(name).is_some())
            })
        };
        let wanted = |(path, past): &PastSession| {
            named(path)
                && same(&self.of, past.agent.as_deref().unwrap_or_default())
                && same(&self.kind, &past.kind)
        };
        Ok(sessions.into_iter().rev().filter(wanted).collect())
    }
}

#[derive(Debug, Args)]
pub struct SessionsList {
    #[command(flatten)]
    which: Which,
}

impl Operate for SessionsList {
    const NAME: &'static str = "sessions list";
    const ABOUT: &'static str = "List past sessions, newest first";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let mut found = self.which.pick(load_sessions(&project, &session.actor)?)?;
        let all = found.len();
        let language = project.contract.language;
        found.truncate(self.which.most);
        let mut text = String::new();
        for (path, past) in &found {
            let rounds = past
                .rounds
                .map(|n| {
                    let en = format!("{n} round{}", if n == 1 { "" } else { "s" });
                    in_language(language, en, format!("{n} 轮"))
                })
                .unwrap_or_default();
            let pattern = past
                .pattern
                .as_ref()
                .map(|p| format!("{} {p}", in_language(language, "pattern", "模式")))
                .unwrap_or_default();
            let told = [past.agent.clone().unwrap_or_default(), rounds, pattern];
            let told = told
                .iter()
                .filter(|t| !t.is_empty())
                .cloned()
                .collect::<Vec<_>>()
                .join(in_language(language, ", ", "，"));
            text.push_str(format!("{path}  {told}").trim_end());
            text.push('\n');
        }
        let listed: Vec<_> = found
            .iter()
            .map(|(path, past)| json!({"path": path, "session": past}))
            .collect();
        let mut answer = Answer::new(json!({"sessions": listed, "all": all}), text);
        if all > found.len() {
            let shown = found.len();
            answer = answer.say(in_language(
                language,
                format!("{shown} of {all}; -k shows more"),
                format!("{all} 次会话中的 {shown} 次；-k 显示更多"),
            ));
        }
        Ok(answer)
    }
}

#[derive(Debug, Args)]
pub struct SessionsSearch {
    /// Words that must all occur in the session
    text: String,
    #[command(flatten)]
    which: Which,
}

impl Operate for SessionsSearch {
    const NAME: &'static str = "sessions search";
    const ABOUT: &'static str = "Search past sessions and show the lines that match";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let words: Vec<String> = self
            .text
            .split_whitespace()
            .map(str::to_lowercase)
            .collect();
        let mut hits = Vec::new();
        let mut text = String::new();
        for (path, _) in self.which.pick(load_sessions(&project, &session.actor)?)? {
            if hits.len() == self.which.most {
                break;
            }
            let Some((bytes, _)) = project.store.read(&ProjectPath::parse(&path)?)? else {
                continue;
            };
            let content = String::from_utf8_lossy(&bytes).into_owned();
            let lower = format!("{path}\n{content}").to_lowercase();
            if !words.iter().all(|word| lower.contains(word)) {
                continue;
            }
            let holds = |line: &&(usize, &str)| {
                words
                    .iter()
                    .any(|word| line.1.to_lowercase().contains(word))
            };
            let lines: Vec<(usize, &str)> = content
                .lines()
                .enumerate()
                .map(|(at, line)| (at + 1, line))
                .collect();
            // The line with most of the words is the most informative.
            let count = |line: &str| {
                words
                    .iter()
                    .filter(|word| line.to_lowercase().contains(*word))
                    .count()
            };
            let best = lines
                .iter()
                .filter(holds)
                .max_by_key(|(at, line)| (count(line), std::cmp::Reverse(*at)))
                .copied()
                .unwrap_or((1, ""));
            text.push_str(&format!("{path}:{}  {}\n", best.0, best.1.trim()));
            hits.push(json!({"path": path, "line": best.0, "text": best.1.trim()}));
        }
        let mut answer = Answer::new(json!({"hits": hits}), text);
        if hits.is_empty() {
            answer.exit = exit::NO;
        }
        Ok(answer)
    }
}
