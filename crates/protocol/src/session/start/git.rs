//! Lists uncommitted changes in git: work that a dead session left in the tree.
//!
//! The repository is not trusted. Without git, or outside a repository, the result is empty.

use std::path::Path;

use crate::project::untrusted_git::UntrustedRepository;

/// Names of files that differ from the last commit, relative to the top of the repository, as git
/// prints them. None if git gives no answer. No filter runs, so a touched file that a filter would
/// normalise is listed.
pub(super) fn uncommitted(root: &Path) -> Option<Vec<String>> {
    let repository = UntrustedRepository::find(root)?.stand_in()?;
    let status = [
        "status",
        "--porcelain",
        "-z",
        "--untracked-files=normal",
        "--ignore-submodules=all",
        "--no-renames",
    ];
    let listed = repository.read(root, &status)?;
    let listed = String::from_utf8_lossy(&listed);
    let name = |entry: &str| {
        entry
            .get(3..)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
    };
    Some(listed.split('\0').filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn run(folder: &Path, line: &str) {
        assert!(
            Command::new("sh")
                .args(["-c", line])
                .current_dir(folder)
                .status()
                .unwrap()
                .success()
        );
    }

    /// A repository with a changed file and a declared filter of this name.
    fn repository(filter: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        run(
            root,
            &format!(
                "git init -q . && echo a > a.txt && printf '*.txt filter={filter}\\n' > .gitattributes && git add ."
            ),
        );
        run(
            root,
            "git -c user.name=x -c user.email=x@x commit -qm x && sleep 1 && echo b > a.txt && echo c > 'c ä.md'",
        );
        folder
    }

    fn changed() -> Option<Vec<String>> {
        Some(vec!["a.txt".to_owned(), "c ä.md".to_owned()])
    }

    #[test]
    fn nothing_of_a_repository_is_run() {
        let folder = repository("bad");
        let root = folder.path();
        for setting in ["filter.bad.clean", "filter.bad.process", "core.fsmonitor"] {
            run(
                root,
                &format!("git config {setting} 'touch {}/ran; cat'", root.display()),
            );
        }
        run(
            root,
            "printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/post-index-change && chmod +x .git/hooks/post-index-change",
        );
        assert_eq!(uncommitted(root), changed());
        assert!(!root.join("ran").exists());
        assert_eq!(uncommitted(tempfile::tempdir().unwrap().path()), None);
    }

    #[test]
    fn no_filter_runs_whatever_its_name_and_however_many_there_are() {
        // An equals sign in the name; a name that is not UTF-8; more names than are read.
        for (filter, many) in [("a=b", 0), ("\\\\377", 0), ("bad", 9000)] {
            let folder = repository(&filter.replace("\\\\", "\\"));
            let root = folder.path();
            let line = format!(
                "printf '[filter \"{}\"]\\n\\tclean = touch {}/ran; cat\\n' >> .git/config",
                filter.replace("\\\\", "\\"),
                root.display()
            );
            run(root, &line);
            run(
                root,
                &format!(
                    "i=0; while [ $i -lt {many} ]; do echo \"[filter \\\"zzzzzzzzzzzzzzzzzz$i\\\"]\nclean=cat\"; i=$((i+1)); done >> .git/config"
                ),
            );
            assert_eq!(uncommitted(root), changed(), "{filter}");
            assert!(!root.join("ran").exists(), "{filter}");
        }
    }

    #[test]
    fn a_bare_repository_among_the_files_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        run(
            root,
            "git init -q --bare . && git config core.bare false && git config core.worktree .",
        );
        run(
            root,
            &format!("git config core.fsmonitor 'touch {}/ran'", root.display()),
        );
        assert_eq!(uncommitted(root), None);
        assert!(!root.join("ran").exists());
    }

    #[test]
    fn work_trees_and_other_formats_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        run(
            root,
            "git init -q --object-format=sha256 main && cd main && mkdir sub && echo a > sub/a && git add . && git -c user.name=x -c user.email=x@x commit -qm x",
        );
        run(
            root,
            "cd main && git worktree add -q ../side && cd ../side && echo new > sub/b && echo rest > sub/c && git add sub/c && rm sub/a",
        );
        let names = |names: &[&str]| {
            Some(
                names
                    .iter()
                    .map(|name| (*name).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            uncommitted(&root.join("side/sub")),
            names(&["sub/a", "sub/c", "sub/b"])
        );
        assert_eq!(uncommitted(&root.join("main")), names(&[]));
        run(
            root,
            "cd main && git config core.fileMode false && chmod +x sub/a && git update-index --split-index",
        );
        assert_eq!(uncommitted(&root.join("main")), names(&[]));
    }
}
