//! What git has not committed: the work that a dead session left in the tree.
//!
//! The repository is not trusted: git is told to run no hook, no monitor, no filter and no transport of its configuration, and is
//! ended if it takes too long. Without git, or outside a repository, there is nothing to tell.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A start does not wait longer for git.
const PATIENCE: Duration = Duration::from_secs(2);
/// No more of what git says is read.
const MOST_BYTES: u64 = 256 << 10;

/// Names of files that differ from the last commit, as git spells them from the top of the repository; none where git does not tell.
pub(super) fn uncommitted(root: &Path) -> Option<Vec<String>> {
    // Filters of the configuration run programs on files that look changed: each is replaced by none.
    let filters = git(root, &[], &["config", "--name-only", "-z", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$"]);
    let without: Vec<String> = filters.unwrap_or_default().split('\0').filter(|key| !key.is_empty()).map(|key| format!("{key}=")).collect();
    let status = ["status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=all", "--no-renames"];
    let listed = git(root, &without, &status)?;
    let name = |entry: &str| entry.get(3..).filter(|name| !name.is_empty()).map(str::to_owned);
    Some(listed.split('\0').filter_map(name).collect())
}

fn git(root: &Path, settings: &[String], arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false"]);
    for setting in settings {
        git.args(["-c", setting]);
    }
    git.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    git.args(arguments).current_dir(root).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = git.spawn().ok()?;
    let said = child.stdout.take()?;
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = said.take(MOST_BYTES).read_to_end(&mut bytes);
        let _ = send.send(bytes);
    });
    let bytes = receive.recv_timeout(PATIENCE).ok();
    if bytes.as_ref().is_none_or(|bytes| bytes.len() as u64 == MOST_BYTES) {
        let _ = child.kill();
    }
    let is_fine = child.wait().is_ok_and(|status| status.success());
    bytes.filter(|_| is_fine).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(folder: &Path, line: &str) {
        assert!(Command::new("sh").args(["-c", line]).current_dir(folder).status().unwrap().success());
    }

    #[test]
    fn nothing_of_a_repository_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(uncommitted(root), None);
        run(root, "git init -q . && echo a > a.txt && echo '*.txt filter=bad' > .gitattributes && git add . ");
        run(root, "git -c user.name=x -c user.email=x@x commit -qm x && sleep 1 && echo b > a.txt && echo c > 'c ä.md'");
        for setting in ["filter.bad.clean", "filter.bad.process", "core.fsmonitor"] {
            run(root, &format!("git config {setting} 'touch {}/ran; cat'", root.display()));
        }
        run(root, "printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/post-index-change && chmod +x .git/hooks/post-index-change");
        assert_eq!(uncommitted(root), Some(vec!["a.txt".to_owned(), "c ä.md".to_owned()]));
        assert!(!root.join("ran").exists());
    }
}
