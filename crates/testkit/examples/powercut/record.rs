//! Records a workload on a disk: logs every write and flush, with the moment of each
//! acknowledgement.
//!
//! `qemu-storage-daemon` sits between a loop device and the image and logs in the format of the
//! kernel's dm-log-writes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::crash::Crash;
use crate::disk::{Disk, FileSystem, Mount, SECTOR};
use crate::workload::{self, Done};

pub struct Entry {
    pub sector: u64,
    pub bytes: Vec<u8>,
    /// A flush: everything before it is durable once it completes.
    pub is_flush: bool,
    /// The end offset of the entry in the log.
    pub end: u64,
}

/// All writes to a disk.
pub struct Log {
    pub system: FileSystem,
    pub base: Disk,
    pub entries: Vec<Entry>,
}

impl Log {
    pub fn counts(&self) -> (usize, usize) {
        let flushes = self.entries.iter().filter(|entry| entry.is_flush).count();
        (self.entries.len() - flushes, flushes)
    }
}

/// A command that returned. If the power fails after this place in the log, its effect must
/// survive.
pub struct Ack {
    pub command: String,
    /// A file that was edited by hand between the previous command and this one.
    pub by_hand: Option<String>,
    pub log_bytes: u64,
    pub seq: u64,
}

pub type Files = BTreeMap<String, Vec<u8>>;

pub struct Recording {
    pub log: Log,
    pub acks: Vec<Ack>,
    /// The journal's lines, in order; the first is record 1.
    pub lines: Vec<String>,
    /// All files after each record, read after its command had returned.
    pub states: BTreeMap<u64, Files>,
    /// The folders that `init` created.
    pub folders: BTreeSet<PathBuf>,
}

impl Recording {
    /// Counts the commands that were acknowledged before the power failed.
    pub fn acked(&self, crash: &Crash) -> usize {
        self.acks
            .partition_point(|ack| ack.log_bytes <= crash.log_bytes)
    }
}

/// The logging daemon, killed on drop, and the file that it exports.
struct Logger(Child, PathBuf);

impl Logger {
    fn start(image: &Path, log: &Path, export: &Path) -> Result<Logger, String> {
        let bytes = std::fs::metadata(image)
            .map_err(|error| error.to_string())?
            .len();
        std::fs::write(log, b"")
            .and_then(|()| std::fs::write(export, b""))
            .map_err(|error| error.to_string())?;
        let file = |node: &str, path: &Path| {
            format!("driver=file,node-name={node},filename={}", path.display())
        };
        let export_option = format!(
            "type=fuse,id=export,node-name=logged,mountpoint={},writable=on",
            export.display()
        );
        let child = Command::new("qemu-storage-daemon")
            .args([
                "--blockdev",
                &file("image", image),
                "--blockdev",
                "driver=raw,node-name=raw,file=image",
            ])
            .args(["--blockdev", &file("log", log)])
            .args([
                "--blockdev",
                "driver=blklogwrites,node-name=logged,file=raw,log=log,log-sector-size=512",
            ])
            .args(["--export", &export_option])
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("qemu-storage-daemon: {error}"))?;
        let mut logger = Logger(child, export.to_owned());
        // The exported file has the size of the disk once it is ready.
        for _ in 0..1000 {
            if std::fs::metadata(export).is_ok_and(|found| found.len() == bytes) {
                return Ok(logger);
            }
            if let Ok(Some(status)) = logger.0.try_wait() {
                return Err(format!("qemu-storage-daemon ended: {status}"));
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Err("qemu-storage-daemon exported nothing".into())
    }
}

impl Drop for Logger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = crate::disk::run(Command::new("umount").arg("--lazy").arg(&self.1));
    }
}

/// The reason why nothing was recorded.
pub enum Unrecorded {
    /// This machine does not permit it.
    NotPermitted(String),
    /// A command failed without any crash.
    Failed(String),
}

pub fn record(
    system: FileSystem,
    seed: u64,
    commands: usize,
    folder: &Path,
) -> Result<Recording, Unrecorded> {
    system
        .make(&folder.join("image"))
        .map_err(Unrecorded::NotPermitted)?;
    let (mut acks, mut states) = (Vec::new(), BTreeMap::new());
    let mut lines = Vec::new();
    let mut worked = Ok(());
    let log = log_writes(system, folder, &mut |disk, log| {
        let root = disk.join("book");
        worked = workload::run(
            disk,
            &root,
            seed,
            commands,
            &mut |Done { command, by_hand }| {
                let log_bytes = std::fs::metadata(log).unwrap().len();
                let seq = journal_lines(&root).len() as u64;
                acks.push(Ack {
                    command,
                    by_hand,
                    log_bytes,
                    seq,
                });
                states.insert(seq, workload::files(&root));
                seq
            },
        );
        lines = journal_lines(&root);
    });
    let log = log.map_err(Unrecorded::NotPermitted)?;
    worked.map_err(Unrecorded::Failed)?;
    let is_unrecorded = |pair: &[Ack]| pair[1].by_hand.is_some() && pair[0].seq == pair[1].seq;
    if acks.windows(2).any(is_unrecorded) {
        return Err(Unrecorded::Failed(
            "`quipu status` did not record an edit by hand".into(),
        ));
    }
    if !states.keys().copied().eq(1..=lines.len() as u64) {
        return Err(Unrecorded::Failed(
            "a command of the workload made more than one record".into(),
        ));
    }
    Ok(Recording {
        log,
        acks,
        lines,
        states,
        folders: workload::folders(),
    })
}

/// Mounts the disk `image` in a folder and logs all writes of some work to it.
pub fn log_writes(
    system: FileSystem,
    folder: &Path,
    work: &mut dyn FnMut(&Path, &Path),
) -> Result<Log, String> {
    let text = |error: std::io::Error| error.to_string();
    let (image, log, export) = (
        folder.join("image"),
        folder.join("log"),
        folder.join("export"),
    );
    let base = Disk::read(&image).map_err(text)?;
    let logger = Logger::start(&image, &log, &export)?;
    let mount = Mount::new(system, &export, &folder.join("recorded"))?;
    work(&mount.at, &log);
    drop(mount);
    drop(logger);
    let entries = parse(&std::fs::read(&log).map_err(text)?);
    Ok(Log {
        system,
        base,
        entries,
    })
}

/// Returns the paths at which two sets of files differ.
pub fn difference(one: &Files, other: &Files) -> Vec<String> {
    let paths: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    paths
        .into_iter()
        .filter(|path| one.get(*path) != other.get(*path))
        .cloned()
        .collect()
}

pub fn journal_lines(root: &Path) -> Vec<String> {
    let text = std::fs::read(root.join(".quipu/journal/00000001.jsonl")).unwrap_or_default();
    // Fill between the records may turn into zeros after a power cut.
    let lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| line.first() == Some(&b'{'));
    lines
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;

/// Parses a log: a superblock, then each entry as one descriptor sector and its data.
fn parse(log: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut at = SECTOR;
    while let Some(header) = log.get(at..at + SECTOR) {
        let number =
            |index: usize| u64::from_le_bytes(header[index * 8..index * 8 + 8].try_into().unwrap());
        let (sector, sectors, flags) = (number(0), number(1), number(2));
        at += SECTOR;
        let length = usize::try_from(sectors).unwrap() * SECTOR;
        let bytes = if flags & DISCARD != 0 {
            vec![0; length]
        } else {
            let Some(bytes) = log.get(at..at + length) else {
                break;
            };
            at += length;
            bytes.to_vec()
        };
        if flags & FUA != 0 {
            entries.push(Entry {
                sector,
                bytes,
                is_flush: false,
                end: at as u64,
            });
            entries.push(Entry {
                sector: 0,
                bytes: Vec::new(),
                is_flush: true,
                end: at as u64,
            });
        } else {
            entries.push(Entry {
                sector,
                bytes,
                is_flush: flags & FLUSH != 0,
                end: at as u64,
            });
        }
    }
    entries
}
