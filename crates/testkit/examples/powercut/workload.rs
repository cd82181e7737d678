//! The recorded workload: real commands, and other programs that make the file system write early.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::disk::run as run_program;
use crate::record::Files;

/// The workload changes the class of this file, which shows the contract that a command was judged
/// by.
pub const PROBE: &str = "probe.md";

/// The temporary file of a simulated editor, before its rename.
pub const EDITOR_FILE: &str = "notes/page.md~";

/// A small generator with a fixed sequence per seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

/// Returns the path of the program that was built beside this one.
pub fn program() -> PathBuf {
    if let Some(program) = std::env::var_os("QUIPU_PROGRAM") {
        return program.into();
    }
    let own = std::env::current_exe().unwrap();
    own.parent().and_then(Path::parent).unwrap().join("quipu")
}

/// The data that a successful command leaves in the recording.
pub struct Done {
    pub command: String,
    /// A file that was edited by hand before the command.
    pub by_hand: Option<String>,
}

/// Runs some commands. Each success is acknowledged; `ack` returns the number of records at that
/// moment.
pub fn run(
    disk: &Path,
    root: &Path,
    seed: u64,
    commands: usize,
    ack: &mut dyn FnMut(Done) -> u64,
) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let mut random = Random::new(seed);
    let quipu = |arguments: &[&str]| {
        run_program(
            Command::new(program())
                .arg("-C")
                .arg(root)
                .args(arguments)
                .env("HOME", disk),
        )
    };
    std::fs::create_dir(root).map_err(text)?;
    quipu(&["init", "--profile", "relay"])?;
    ack(Done {
        command: "init".into(),
        by_hand: None,
    });
    let manifest = manifest_rules(root);
    // Each page with the records that wrote it.
    let mut versions: Vec<(String, u64)> = Vec::new();
    for number in 0..commands {
        let page = format!("notes/page{}.md", random.below(4));
        let mut by_hand = None;
        let arguments = match random.below(18) {
            // Only a file with a record is edited by hand; others belong to their creator.
            12..=14 if root.join(&page).exists() => {
                edit_by_hand(root, &page, number, &mut random).map_err(text)?;
                by_hand = Some(page.clone());
                disturb(disk, root, number, &mut random).map_err(text)?;
                // Detects the edit and records it.
                vec!["status".to_owned()]
            }
            15 | 16 if !versions.is_empty() => {
                let (page, seq) = &versions[random.below(versions.len())];
                vec![
                    "restore".into(),
                    page.clone(),
                    "--at".into(),
                    format!("@{seq}"),
                ]
            }
            kind => commit(root, &manifest, &page, number, kind, &mut random),
        };
        quipu(&arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
        let command = arguments
            .iter()
            .take(2)
            .cloned()
            .collect::<Vec<_>>()
            .join(" ");
        let seq = ack(Done { command, by_hand });
        if arguments.get(1) == Some(&page) && root.join(&page).exists() {
            versions.push((page, seq));
        }
        disturb(disk, root, number, &mut random).map_err(text)?;
    }
    Ok(())
}

/// Builds a command that writes.
fn commit(
    root: &Path,
    manifest: &str,
    page: &str,
    number: usize,
    kind: usize,
    random: &mut Random,
) -> Vec<String> {
    let text = some_text(number, random);
    let title = format!("number {number}");
    let probe = ["append", "overwrite"][random.below(2)];
    let rules = format!(
        "{manifest}\n[[files]]\npath = \"{PROBE}\"\nclass = \"{probe}\"\n\n\
         [[files]]\npath = \"sealed.md\"\nclass = \"sealed\"\n"
    );
    let is_sealed = root.join("sealed.md").exists();
    let arguments: Vec<&str> = match kind {
        0 | 1 => vec!["decide", &title, "--context", "why", "--decision", &text],
        2 | 3 => vec!["todo", "add", &title],
        4 | 5 => vec!["append", page, "--text", &text],
        6 => vec!["write", page, "--force", "--text", &text],
        7 => {
            vec![
                "finish",
                "--did",
                &title,
                "--next",
                "go on",
                "--none",
                "decisions",
                "--phase",
                "development",
            ]
        }
        8 => vec!["write", "quipu.toml", "--force", "--text", &rules],
        9 if root.join(page).exists() => vec!["remove", page],
        10 if is_sealed => {
            vec![
                "amend",
                "sealed.md",
                "--why",
                "a better plan",
                "--force",
                "--text",
                &text,
            ]
        }
        10 if manifest_rules(root).contains("sealed.md") => {
            vec!["write", "sealed.md", "--text", &text]
        }
        _ => vec!["append", PROBE, "--text", &text],
    };
    arguments.into_iter().map(str::to_owned).collect()
}

/// Returns a text from a few bytes to several blocks.
fn some_text(number: usize, random: &mut Random) -> String {
    let size = [1, 30, 300, 600, 5000][random.below(5)];
    let break_lines = if size > 300 { "m\ni" } else { "m i" };
    format!("{number} {}\n", "lorem ipsum ".repeat(size)).replace("m i", break_lines)
}

/// Changes a file as editors and people do, without a sync: in place, by rename, by appending, or
/// by deleting it.
fn edit_by_hand(
    root: &Path,
    page: &str,
    number: usize,
    random: &mut Random,
) -> std::io::Result<()> {
    let (path, text) = (
        root.join(page),
        format!("by hand: {}", some_text(number, random)),
    );
    match random.below(4) {
        0 => std::fs::write(&path, text),
        1 => {
            let new = root.join(EDITOR_FILE);
            std::fs::write(&new, text)?;
            std::fs::rename(new, path)
        }
        2 => std::fs::remove_file(path),
        _ => File::options()
            .append(true)
            .open(path)?
            .write_all(text.as_bytes()),
    }
}

fn manifest_rules(root: &Path) -> String {
    std::fs::read_to_string(root.join("quipu.toml")).unwrap_or_default()
}

/// Simulates other programs: one syncs its own file, one syncs a memory file or a folder, one syncs
/// everything, one lets time pass.
fn disturb(disk: &Path, root: &Path, number: usize, random: &mut Random) -> std::io::Result<()> {
    match random.below(8) {
        0..=2 => {
            let mut file = File::create(disk.join(format!("other{number}")))?;
            file.write_all(b"something else\n")?;
            file.sync_all()
        }
        3 => File::open(root.join("decisions.md"))?.sync_all(),
        4 => File::open(root)?.sync_all(),
        5 => {
            // Longer than the file system's commit interval.
            std::thread::sleep(std::time::Duration::from_millis(1100));
            Ok(())
        }
        6 if number.is_multiple_of(3) => {
            run_program(Command::new("sync").arg("-f").arg(root)).map_err(std::io::Error::other)
        }
        _ => Ok(()),
    }
}

/// Returns every file of the project except Quipu's own.
pub fn files(root: &Path) -> Files {
    let mut files = Files::new();
    visit(root, &mut |path, is_folder| {
        if !is_folder {
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            files.insert(name, std::fs::read(path).unwrap());
        }
    });
    files
}

/// Returns the folders that must survive because `init` created them. Folders of a record are
/// recreated with its files.
pub fn folders() -> BTreeSet<PathBuf> {
    BTreeSet::from([PathBuf::from("delegations")])
}

fn visit(folder: &Path, seen: &mut dyn FnMut(&Path, bool)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.file_name().is_some_and(|name| name == ".quipu") {
            continue;
        }
        let is_folder = path.is_dir();
        seen(&path, is_folder);
        if is_folder {
            visit(&path, seen);
        }
    }
}

/// Returns the class that a contract gives the probe.
pub fn probe_class(manifest: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(manifest);
    let rule = text.split_once(&format!("path = \"{PROBE}\""))?.1;
    Some(if rule.lines().nth(1)?.contains("append") {
        "append"
    } else {
        "overwrite"
    })
}
