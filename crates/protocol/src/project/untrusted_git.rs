//! Runs git in a repository that a stranger may have written.
//!
//! Invariant: no git process started here acts on the repository's configuration, so no program
//! that it names (filters, hooks, monitors, transports, helpers) can run. A substitute git
//! directory in a temporary folder has an empty configuration and points to the objects, references
//! and index of the real one. Only `ADOPTED` settings are copied; none of them names a program.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

/// Settings that control how files are compared. Each is a word, a number or, for
/// `core.excludesfile`, a file of patterns.
const ADOPTED: [&str; 12] = [
    "autocrlf",
    "checkstat",
    "eol",
    "excludesfile",
    "filemode",
    "ignorecase",
    "precomposeunicode",
    "safecrlf",
    "sparsecheckout",
    "sparsecheckoutcone",
    "symlinks",
    "trustctime",
];
/// Extensions without which git misreads the objects or the references, with their allowed values.
const EXTENSIONS: [(&str, &[&str]); 2] = [
    ("objectformat", &["sha1", "sha256"]),
    ("refstorage", &["files", "reftable"]),
];
/// The time limit of a process, and the limit of its output.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    patience: Duration,
    bytes: u64,
}

/// For the queries of every session start.
const SHORT: Bounds = Bounds {
    patience: Duration::from_secs(2),
    bytes: 256 << 10,
};
/// For the history of a large repository, which only `verify` reads.
const HISTORY: Bounds = Bounds {
    patience: Duration::from_secs(20),
    bytes: 64 << 20,
};
/// `HEAD`, `commondir` and a `.git` file are one short line.
const MOST_LINE: u64 = 8 << 10;

/// The repository of a checked-out folder.
#[derive(Debug)]
pub struct UntrustedRepository {
    top: PathBuf,
    common: PathBuf,
    own: PathBuf,
}

/// A repository with a substitute git directory, used to start git processes.
#[derive(Debug)]
pub struct StandIn {
    top: PathBuf,
    objects: PathBuf,
    index: PathBuf,
    settings: Vec<String>,
    folder: TempDir,
}

impl UntrustedRepository {
    /// Finds the repository of a folder: the nearest `.git` in it or above it. A bare repository
    /// among the files is ignored.
    pub fn find(folder: &Path) -> Option<UntrustedRepository> {
        let folder = folder.canonicalize().ok()?;
        let (top, own) = folder
            .ancestors()
            .find_map(|top| Some((top, git_directory(top)?)))?;
        let common = match read_line(&own.join("commondir")) {
            Some(common) => own.join(common).canonicalize().ok()?,
            None => own.clone(),
        };
        Some(UntrustedRepository {
            top: top.to_owned(),
            common,
            own,
        })
    }

    /// The top folder of its work tree.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Sets a value in this clone's configuration. The git process does not apply that
    /// configuration itself.
    pub fn configure(&self, key: &str, value: &str) -> Result<(), String> {
        self.edit_config(&[key, value])
    }

    /// Whether this clone's configuration has a section.
    pub fn has_section(&self, section: &str) -> bool {
        let head = section_head(section);
        fs::read_to_string(self.common.join("config"))
            .is_ok_and(|text| text.lines().any(|line| line.trim() == head))
    }

    /// Removes a section from this clone's configuration.
    pub fn remove_section(&self, section: &str) -> Result<(), String> {
        self.edit_config(&["--remove-section", section])
    }

    fn edit_config(&self, arguments: &[&str]) -> Result<(), String> {
        let file = self.common.join("config");
        // git would write through a link, which may lead out of the repository.
        if fs::symlink_metadata(&file).is_ok_and(|found| !found.is_file()) {
            return Err(format!("`{}` is not a regular file", file.display()));
        }
        let mut git = plain_git();
        git.args(["config", "--file"])
            .arg(file)
            .args(arguments)
            .current_dir(&self.top)
            .env("GIT_DIR", "/dev/null");
        git.stdout(Stdio::null()).stderr(Stdio::piped());
        match run(git, SHORT) {
            Some((0, _)) => Ok(()),
            Some((_, told)) => Err(String::from_utf8_lossy(&told).trim().to_owned()),
            None => Err("git cannot be started, or does not exit".to_owned()),
        }
    }

    /// A folder's path below the top in git's notation: with a trailing slash, or empty.
    pub fn prefix(&self, folder: &Path) -> Option<String> {
        let folder = folder.canonicalize().ok()?;
        let below = folder
            .strip_prefix(&self.top)
            .ok()?
            .to_string_lossy()
            .into_owned();
        Some(if below.is_empty() { below } else { below + "/" })
    }

    /// Creates the substitute directory. None if the repository cannot be read without its
    /// configuration.
    pub fn stand_in(&self) -> Option<StandIn> {
        let mut settings = self.adopted()?;
        let folder = tempfile::Builder::new()
            .prefix("quipu-git-")
            .tempdir()
            .ok()?;
        let extensions = EXTENSIONS.iter().filter_map(|(name, known)| {
            let value = settings.remove(&format!("extensions.{name}"))?;
            Some(
                known
                    .contains(&value.as_str())
                    .then(|| format!("\t{name} = {value}\n")),
            )
        });
        let extensions: String = extensions.collect::<Option<_>>()?;
        self.fill(folder.path(), &extensions).ok()?;
        let settings = settings
            .into_iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        Some(StandIn {
            top: self.top.clone(),
            objects: self.common.join("objects"),
            index: self.own.join("index"),
            settings,
            folder,
        })
    }

    fn fill(&self, folder: &Path, extensions: &str) -> io::Result<()> {
        let head = read_line(&self.own.join("HEAD")).ok_or(io::ErrorKind::NotFound)?;
        fs::write(folder.join("HEAD"), head + "\n")?;
        let version = u8::from(!extensions.is_empty());
        fs::write(
            folder.join("config"),
            format!("[core]\n\trepositoryformatversion = {version}\n[extensions]\n{extensions}"),
        )?;
        fs::create_dir(folder.join("info"))?;
        for name in [
            "refs",
            "packed-refs",
            "reftable",
            "shallow",
            "info/exclude",
            "info/attributes",
        ] {
            link(&self.common, folder, name)?;
        }
        for name in ["logs", "info/sparse-checkout"] {
            link(&self.own, folder, name)?;
        }
        for entry in fs::read_dir(&self.own)?.flatten() {
            // An index may be split: the other part is in the git directory.
            if let Some(name) = entry
                .file_name()
                .to_str()
                .filter(|name| name.starts_with("sharedindex."))
            {
                link(&self.own, folder, name)?;
            }
        }
        if !folder.join("refs").exists() {
            fs::create_dir(folder.join("refs"))?;
        }
        Ok(())
    }

    /// Reads the copied settings from the user's and the repository's configuration. Listing them
    /// runs no program.
    fn adopted(&self) -> Option<BTreeMap<String, String>> {
        let extensions: Vec<&str> = EXTENSIONS.iter().map(|(name, _)| *name).collect();
        let wanted = format!(
            r"^(core\.({})|extensions\.({}))$",
            ADOPTED.join("|"),
            extensions.join("|")
        );
        let mut git = plain_git();
        git.env("GIT_DIR", &self.own)
            .env("GIT_WORK_TREE", &self.top)
            .current_dir(&self.top);
        git.args(["config", "-z", "--get-regexp", &wanted]);
        git.stdout(Stdio::piped()).stderr(Stdio::null());
        let (code, bytes) = run(git, SHORT)?;
        // Exit code 1: there are none.
        if code > 1 {
            return None;
        }
        let text = String::from_utf8(bytes).ok()?;
        let entry = |entry: &str| {
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            (key.to_owned(), value.to_owned())
        };
        Some(
            text.split('\0')
                .filter(|text| !text.is_empty())
                .map(entry)
                .collect(),
        )
    }
}

impl StandIn {
    /// A git process in a folder of the work tree.
    pub fn command(&self, folder: &Path) -> Command {
        let mut git = plain_git();
        git.env("GIT_DIR", self.folder.path())
            .env("GIT_WORK_TREE", &self.top);
        git.env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env("GIT_INDEX_FILE", &self.index);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1");
        git.args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.untrackedCache=false",
            "-c",
            "core.hooksPath=/dev/null",
        ]);
        for setting in &self.settings {
            git.args(["-c", setting]);
        }
        git.current_dir(folder);
        git
    }

    /// The output of a git process, if it succeeds in time and all of its output was read.
    pub fn read(&self, folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
        self.read_within(folder, arguments, SHORT)
    }

    /// Like `read`, for a `git log` over many commits.
    pub fn read_history(&self, folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
        self.read_within(folder, arguments, HISTORY)
    }

    fn read_within(&self, folder: &Path, arguments: &[&str], bounds: Bounds) -> Option<Vec<u8>> {
        let mut git = self.command(folder);
        git.args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        run(git, bounds)
            .filter(|(code, _)| *code == 0)
            .map(|(_, bytes)| bytes)
    }
}

/// The line that opens a section in a configuration that git wrote: `[merge "quipu"]`.
fn section_head(section: &str) -> String {
    match section.split_once('.') {
        Some((first, rest)) => format!("[{first} \"{rest}\"]"),
        None => format!("[{section}]"),
    }
}

/// Git without a pager, prompt, lock or network, and without environment variables that name a
/// repository or a program.
fn plain_git() -> Command {
    let mut git = Command::new("git");
    for (name, _) in std::env::vars_os() {
        let is_of_git = name
            .to_str()
            .is_some_and(|name| name.starts_with("GIT_") && name != "GIT_EXEC_PATH");
        if is_of_git {
            git.env_remove(name);
        }
    }
    git.env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0");
    git.arg("--no-pager").stdin(Stdio::null());
    git
}

/// Returns the exit status and the output, or the errors if only they are piped. None if git cannot
/// be started, takes too long or prints too much.
fn run(mut git: Command, bounds: Bounds) -> Option<(i32, Vec<u8>)> {
    let mut child = git.spawn().ok()?;
    let said: Box<dyn Read + Send> = match (child.stdout.take(), child.stderr.take()) {
        (Some(output), _) => Box::new(output),
        (None, errors) => Box::new(errors?),
    };
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = said.take(bounds.bytes).read_to_end(&mut bytes);
        let _ = send.send(bytes);
    });
    let bytes = receive
        .recv_timeout(bounds.patience)
        .ok()
        .filter(|bytes| (bytes.len() as u64) < bounds.bytes);
    if bytes.is_none() {
        let _ = child.kill();
    }
    let code = child.wait().ok()?.code()?;
    bytes.map(|bytes| (code, bytes))
}

/// The git directory of a checkout: its `.git`, or the directory that this file names.
fn git_directory(top: &Path) -> Option<PathBuf> {
    let there = top.join(".git");
    let own = match read_line(&there) {
        Some(line) => top
            .join(line.strip_prefix("gitdir: ")?)
            .canonicalize()
            .ok()?,
        None => there,
    };
    own.join("HEAD").is_file().then_some(own)
}

/// The first line of a regular file, without its line break.
fn read_line(path: &Path) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    fs::File::open(path)
        .ok()?
        .take(MOST_LINE)
        .read_to_string(&mut text)
        .ok()?;
    Some(text.lines().next().unwrap_or_default().to_owned())
}

fn link(from: &Path, to: &Path, name: &str) -> io::Result<()> {
    let there = from.join(name);
    // A named pipe would make git wait forever.
    let is_usable = fs::metadata(&there).is_ok_and(|found| found.is_file() || found.is_dir());
    if is_usable {
        symlink(there, to.join(name))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_repository_configures_counts_except_how_files_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let run = |line: &str| {
            assert!(
                Command::new("sh")
                    .args(["-c", line])
                    .current_dir(root)
                    .status()
                    .unwrap()
                    .success()
            )
        };
        run("git init -q . && git config core.fileMode false && mkdir sub");
        for key in [
            "core.sshCommand",
            "core.pager",
            "gpg.program",
            "diff.external",
            "remote.origin.promisor",
            "core.attributesFile",
        ] {
            run(&format!("git config {key} bad-value"));
        }
        let repository = UntrustedRepository::find(&root.join("sub")).unwrap();
        assert_eq!(
            repository.prefix(&root.join("sub")).as_deref(),
            Some("sub/")
        );
        let listed = repository
            .stand_in()
            .unwrap()
            .read(root, &["config", "--list"])
            .unwrap();
        let listed = String::from_utf8(listed).unwrap();
        assert!(
            listed.contains("core.filemode=false") && !listed.contains("bad-value"),
            "{listed}"
        );
        repository.configure("merge.quipu.name", "a b").unwrap();
        run("test \"$(git config merge.quipu.name)\" = 'a b'");
        run("mv .git/config elsewhere && ln -s ../elsewhere .git/config");
        let before = fs::read(root.join("elsewhere")).unwrap();
        assert!(repository.configure("merge.quipu.name", "c").is_err());
        assert_eq!(fs::read(root.join("elsewhere")).unwrap(), before);
    }
}
