//! Git support: a merge driver that joins two branches of memory without losing an entry.

use std::path::{Path, PathBuf};

use clap::Args;
use quipu_contract::{Class, Place, Privilege, in_one_line, is_line_break, quotable};
use quipu_protocol::{MergeCall, MergeError, Project, UntrustedRepository, merge_for_git};
use quipu_store::{Clock, render_second};
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::integrate::{self, Planned};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct GitSetup {}

impl Operate for GitSetup {
    const NAME: &'static str = "git setup";
    const ABOUT: &'static str =
        "Set up the merge driver for append and state files (.gitattributes, git config)";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        let root = Project::find_root(&session.folder)?;
        let contract = Project::load_contract(&root)?;
        let mut lines = Vec::new();
        for rule in contract
            .files
            .iter()
            .filter(|r| matches!(r.class, Class::Append | Class::State))
        {
            let line = format!(
                "{} merge=quipu",
                attribute_pattern(rule.path.as_str(), &rule.place)?
            );
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let Some(repository) = UntrustedRepository::find(&root) else {
            return Err(Failure::new(
                exit::NOT_FOUND,
                "this folder is not in a git repository",
                "git init; then quipu git setup",
            ));
        };
        let folder = integrate::open(&root)?;
        let old = integrate::read_text(&folder, ATTRIBUTES)?.unwrap_or_default();
        let new = with_block(&old, &lines)?;
        folder
            .replace(ATTRIBUTES, new.as_bytes())
            .map_err(|error| integrate::unreached("write", ATTRIBUTES, error))?;
        let driver = "quipu git merge %O %A %B %P";
        for (key, value) in [
            ("merge.quipu.name", "Quipu: merge memory by its class"),
            ("merge.quipu.driver", driver),
        ] {
            repository.configure(key, value).map_err(|what| {
                Failure::new(exit::IO, format!("git rejected `{key}`: {what}"), "")
            })?;
        }
        Ok(Answer::new(
            json!({"attributes": lines, "driver": driver}),
            lines.join("\n"),
        )
        .say("wrote .gitattributes; the merge driver is in this clone's git config"))
    }
}

const ATTRIBUTES: &str = ".gitattributes";
/// The section of the merge driver in git's configuration.
pub const DRIVER: &str = "merge.quipu";

/// Plans `.gitattributes` without Quipu's block. A file that is then empty is removed.
pub fn plan_without_attributes(root: &Path) -> Result<Planned, Failure> {
    let before = integrate::read_text(&integrate::open(root)?, ATTRIBUTES)?;
    let after = match &before {
        Some(text) if text.lines().any(|line| line.trim_end() == BEGIN) => {
            Some(without_block(text)?).filter(|text| !text.trim().is_empty())
        }
        other => other.clone(),
    };
    Ok(Planned::new(ATTRIBUTES, before, after))
}

/// Converts a rule's path to a pattern of `.gitattributes`. Git's patterns have no variables in
/// braces and end at the first blank. A character that would need quoting is replaced by `?`, so
/// that no path can become a line or an attribute of its own.
fn attribute_pattern(path: &str, place: &Place) -> Result<String, Failure> {
    let mut pattern = String::new();
    let mut rest = path;
    while let Some((before, (_, after))) = rest
        .split_once('{')
        .and_then(|(before, variable)| Some((before, variable.split_once('}')?)))
    {
        pattern.push_str(&format!("{before}*"));
        rest = after;
    }
    pattern.push_str(rest);
    if let Some(odd) = pattern
        .chars()
        .find(|c| c.is_control() || is_line_break(*c))
    {
        let what = format!(
            "the path `{}` contains {}, which `{ATTRIBUTES}` cannot represent",
            quotable(&pattern),
            odd.escape_default()
        );
        return Err(Failure {
            rule: Some((place.clone(), format!("path = \"{}\"", quotable(path)))),
            ..Failure::new(exit::REFUSED, what, "rename it in quipu.toml")
        });
    }
    let quoted = |c: char| match c {
        c if c.is_whitespace() && c.is_ascii() => "[[:space:]]".to_owned(),
        '"' | '\\' => "?".to_owned(),
        c => c.to_string(),
    };
    Ok(format!(
        "/{}",
        pattern.chars().map(quoted).collect::<String>()
    ))
}

const BEGIN: &str = "# quipu: begin";
const END: &str = "# quipu: end";

/// Returns the text with Quipu's block replaced or added; all other text is kept.
fn with_block(old: &str, lines: &[String]) -> Result<String, Failure> {
    let mut kept = without_block(old)?;
    if !kept.is_empty() && !kept.ends_with('\n') {
        kept.push('\n');
    }
    Ok(format!("{kept}{BEGIN}\n{}\n{END}\n", lines.join("\n")))
}

/// Returns the text without Quipu's block. A block without its beginning or end does not show which
/// lines belong to Quipu, so it is refused.
fn without_block(old: &str) -> Result<String, Failure> {
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
    match begun {
        Some(nth) => Err(odd_block(nth, BEGIN)),
        None => Ok(kept),
    }
}

fn odd_block(line: usize, mark: &str) -> Failure {
    let what =
        format!("`.gitattributes:{line}`: `{mark}` without its counterpart; nothing was changed");
    Failure::usage(what, "remove that line, then run: quipu git setup")
}

#[derive(Debug, Args)]
pub struct GitMerge {
    /// The common ancestor (%O)
    base: PathBuf,
    /// Our version, which is replaced by the result (%A)
    ours: PathBuf,
    /// Their version (%B)
    theirs: PathBuf,
    /// The path in the project (%P)
    path: String,
}

impl Operate for GitMerge {
    const NAME: &'static str = "git merge";
    const ABOUT: &'static str = "Merge one file; git calls this (exit 1: conflict)";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let now = render_second(Clock::system().now().wall_us);
        let call = MergeCall {
            top: &session.folder,
            base: &self.base,
            ours: &self.ours,
            theirs: &self.theirs,
            path: &self.path,
            now: &now,
        };
        let merged = merge_for_git(&session.actor, call, theirs_is_newer)?;
        let mut answer = Answer::new(
            json!({"path": self.path, "conflicts": merged.conflicts}),
            "",
        );
        for conflict in &merged.conflicts {
            answer = answer.say(format!(
                "{}: both sides changed {}; our version is kept until you resolve it",
                self.path,
                in_one_line(conflict)
            ));
        }
        answer.exit = if merged.conflicts.is_empty() {
            exit::FINE
        } else {
            exit::NO
        };
        Ok(answer)
    }
}

impl From<MergeError> for Failure {
    fn from(error: MergeError) -> Failure {
        let what = error.to_string();
        match error {
            MergeError::Agent => Failure::new(exit::REFUSED, what, "ask a person to merge"),
            MergeError::NotTop(_) | MergeError::NotGits { .. } => Failure::new(
                exit::REFUSED,
                what,
                "let git call the driver: git merge, git pull",
            ),
            MergeError::WrongClass { .. } => Failure::new(
                exit::REFUSED,
                what,
                "merge it in an editor; or: quipu git setup",
            ),
            MergeError::Path(error) => error.into(),
            MergeError::Io { .. } => Failure::new(exit::IO, what, ""),
            MergeError::Project(error) => error.into(),
            MergeError::Store(error) => error.into(),
        }
    }
}

/// Whether the merged branch has a later commit than this one. Git names its head in the
/// environment (`GITHEAD_<hash>`); without that, ours counts as newer.
fn theirs_is_newer(root: &Path) -> bool {
    // The name comes from the environment, so only a hash may become an argument of git.
    let is_hash = |name: &String| name.len() >= 40 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let repository = UntrustedRepository::find(root).and_then(|repository| repository.stand_in());
    let committed = |name: &str| -> Option<i64> {
        let arguments = ["rev-list", "--max-count=1", "--timestamp", name, "--"];
        let printed = repository.as_ref()?.read(root, &arguments)?;
        String::from_utf8_lossy(&printed)
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    };
    let heads = std::env::vars_os()
        .filter_map(|(name, _)| name.to_str()?.strip_prefix("GITHEAD_").map(str::to_owned));
    let theirs = heads
        .filter(is_hash)
        .filter_map(|head| committed(&head))
        .max();
    theirs
        .zip(committed("HEAD"))
        .is_some_and(|(theirs, ours)| theirs > ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_replaced_and_the_rest_stays() {
        let once = with_block("*.png binary", &["/a merge=quipu".to_owned()]).unwrap();
        assert_eq!(
            once,
            "*.png binary\n# quipu: begin\n/a merge=quipu\n# quipu: end\n"
        );
        assert_eq!(
            with_block(&once, &["/a merge=quipu".to_owned()]).unwrap(),
            once
        );
    }

    #[test]
    fn no_path_becomes_a_line_or_an_attribute_of_its_own() {
        let pattern = |path: &str| {
            let place = Place {
                file: "quipu.toml".into(),
                line: 1,
            };
            attribute_pattern(path, &place)
        };
        assert_eq!(
            pattern("my notes/{unit}.md").unwrap(),
            "/my[[:space:]]notes/*.md"
        );
        assert_eq!(pattern("a\\b\".md").unwrap(), "/a?b?.md");
        for odd in ["a\n* filter=x", "a\tb", "a\u{2028}b"] {
            assert!(pattern(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn half_a_block_is_refused() {
        for odd in [
            "# quipu: begin\n*.png binary\n",
            "*.png binary\n# quipu: end\n",
            "# quipu: begin\n# quipu: begin\n# quipu: end\n",
        ] {
            assert!(with_block(odd, &[]).is_err(), "{odd}");
        }
    }
}
