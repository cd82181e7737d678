//! Git: a merge driver that joins two branches of memory without losing an entry.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use quipu_contract::{Class, Privilege};
use quipu_protocol::{MergeCall, MergeError, Project, merge_for_git};
use quipu_store::{Clock, render_second};
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct GitSetup {}

impl Operate for GitSetup {
    const NAME: &'static str = "git setup";
    const ABOUT: &'static str = "Set up the merge driver for append and state files (.gitattributes, git config)";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        let root = Project::find_root(&session.folder)?;
        let contract = Project::load_contract(&root)?;
        let mut lines = Vec::new();
        for rule in contract.files.iter().filter(|r| matches!(r.class, Class::Append | Class::State)) {
            // Git's patterns know no names in braces.
            let mut pattern = rule.path.as_str().to_owned();
            for hole in rule.path.holes() {
                pattern = pattern.replace(&format!("{{{hole}}}"), "*");
            }
            let line = format!("/{} merge=quipu", pattern.replace(' ', "[[:space:]]"));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let inside = Command::new("git").args(["rev-parse", "--git-dir"]).current_dir(&root).output();
        if !inside.map_err(|e| Failure::new(exit::IO, format!("cannot start git: {e}"), ""))?.status.success() {
            return Err(Failure::new(exit::NOT_FOUND, "this folder is in no git repository", "git init; then quipu git setup"));
        }
        let attributes = root.join(".gitattributes");
        let io = |e: std::io::Error| Failure::new(exit::IO, format!("cannot set git up: {e}"), "");
        let old = match std::fs::read_to_string(&attributes) {
            Ok(old) => old,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(Failure::new(exit::IO, format!("cannot read `.gitattributes`: {error}"), "make it UTF-8, or put it away"));
            }
        };
        std::fs::write(&attributes, with_block(&old, &lines)?).map_err(io)?;
        let driver = "quipu git merge %O %A %B %P";
        for (key, value) in [("merge.quipu.name", "Quipu: join memory by its class"), ("merge.quipu.driver", driver)] {
            let done = Command::new("git").args(["config", key, value]).current_dir(&root).status().map_err(io)?;
            if !done.success() {
                return Err(Failure::new(exit::IO, format!("git did not take `{key}`"), ""));
            }
        }
        Ok(Answer::new(json!({"attributes": lines, "driver": driver}), lines.join("\n"))
            .say("written to .gitattributes; the driver is in this clone's git config"))
    }
}

const BEGIN: &str = "# quipu: begin";
const END: &str = "# quipu: end";

/// The text with Quipu's block replaced or added; everything else stays. A block without its beginning or end says not what is
/// Quipu's, so nothing is changed.
fn with_block(old: &str, lines: &[String]) -> Result<String, Failure> {
    let mut kept = String::new();
    let mut begun = None;
    for (nth, line) in (1..).zip(old.split_inclusive('\n')) {
        match (line.trim_end(), begun) {
            (BEGIN, None) => begun = Some(nth),
            (END, Some(_)) => begun = None,
            (BEGIN, Some(_)) => return Err(odd_block(nth, BEGIN)),
            (END, None) => return Err(odd_block(nth, END)),
            (_, None) => kept.push_str(line),
            (_, Some(_)) => {}
        }
    }
    if let Some(nth) = begun {
        return Err(odd_block(nth, BEGIN));
    }
    if !kept.is_empty() && !kept.ends_with('\n') {
        kept.push('\n');
    }
    Ok(format!("{kept}{BEGIN}\n{}\n{END}\n", lines.join("\n")))
}

fn odd_block(line: usize, mark: &str) -> Failure {
    let what = format!("`.gitattributes:{line}`: `{mark}` without its other half; nothing is changed");
    Failure::usage(what, "remove that line, then quipu git setup")
}

#[derive(Debug, Args)]
pub struct GitMerge {
    /// The common beginning (%O)
    base: PathBuf,
    /// Ours, which becomes the result (%A)
    ours: PathBuf,
    /// Theirs (%B)
    theirs: PathBuf,
    /// The path in the project (%P)
    path: String,
}

impl Operate for GitMerge {
    const NAME: &'static str = "git merge";
    const ABOUT: &'static str = "Merge one file; git calls this (exit 1: conflict)";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let now = render_second(Clock::system().now().wall_us);
        let call =
            MergeCall { top: &session.folder, base: &self.base, ours: &self.ours, theirs: &self.theirs, path: &self.path, now: &now };
        let merged = merge_for_git(&session.actor, call, theirs_is_newer)?;
        let mut answer = Answer::new(json!({"path": self.path, "conflicts": merged.conflicts}), "");
        for conflict in &merged.conflicts {
            answer = answer.say(format!("{}: both sides changed {conflict}; ours is kept until you decide", self.path));
        }
        answer.exit = if merged.conflicts.is_empty() { exit::FINE } else { exit::NO };
        Ok(answer)
    }
}

impl From<MergeError> for Failure {
    fn from(error: MergeError) -> Failure {
        let what = error.to_string();
        match error {
            MergeError::Agent => Failure::new(exit::REFUSED, what, "leave the merge to a person"),
            MergeError::NotTop(_) | MergeError::NotGits { .. } => {
                Failure::new(exit::REFUSED, what, "let git call the driver: git merge, git pull")
            }
            MergeError::WrongClass { .. } => Failure::new(exit::REFUSED, what, "merge it by hand; or: quipu git setup"),
            MergeError::Path(error) => error.into(),
            MergeError::Io { .. } => Failure::new(exit::IO, what, ""),
            MergeError::Project(error) => error.into(),
            MergeError::Store(error) => error.into(),
        }
    }
}

/// Whether the merged branch has a later commit than this one. Git names its head in the environment (`GITHEAD_<hash>`); without
/// that, ours counts as newer.
fn theirs_is_newer(root: &Path) -> bool {
    // The name comes from the environment: only a hash may become an argument of git.
    let is_hash = |name: &String| name.len() >= 40 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let committed = |name: &str| -> Option<i64> {
        let arguments = ["rev-list", "--max-count=1", "--timestamp", name, "--"];
        let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
        String::from_utf8_lossy(&output.stdout).split_whitespace().next()?.parse().ok()
    };
    let heads = std::env::vars_os().filter_map(|(name, _)| name.to_str()?.strip_prefix("GITHEAD_").map(str::to_owned));
    let theirs = heads.filter(is_hash).filter_map(|head| committed(&head)).max();
    theirs.zip(committed("HEAD")).is_some_and(|(theirs, ours)| theirs > ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_replaced_and_the_rest_stays() {
        let once = with_block("*.png binary", &["/a merge=quipu".to_owned()]).unwrap();
        assert_eq!(once, "*.png binary\n# quipu: begin\n/a merge=quipu\n# quipu: end\n");
        assert_eq!(with_block(&once, &["/a merge=quipu".to_owned()]).unwrap(), once);
    }

    #[test]
    fn half_a_block_is_refused() {
        for odd in ["# quipu: begin\n*.png binary\n", "*.png binary\n# quipu: end\n", "# quipu: begin\n# quipu: begin\n# quipu: end\n"] {
            assert!(with_block(odd, &[]).is_err(), "{odd}");
        }
    }
}
