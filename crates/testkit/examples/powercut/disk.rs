//! Disks as sparse blocks in memory, the file systems on them, and mounts that always end.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const SECTOR: usize = 512;
const BLOCK: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystem {
    pub const ALL: [FileSystem; 3] = [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs];

    pub fn parse(name: &str) -> Result<FileSystem, String> {
        Self::ALL
            .into_iter()
            .find(|system| system.name() == name)
            .ok_or_else(|| format!("unknown file system `{name}`"))
    }

    fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
        }
    }

    /// The smallest disk that the file system can be created on.
    pub fn bytes(self) -> u64 {
        match self {
            FileSystem::Ext4 => 64 << 20,
            FileSystem::Xfs => 300 << 20,
            FileSystem::Btrfs => 128 << 20,
        }
    }

    /// Mount options with a commit interval of one second, so that a recording need not wait for
    /// long.
    fn mount_options(self) -> &'static str {
        match self {
            FileSystem::Ext4 | FileSystem::Btrfs => "loop,commit=1",
            // The previous disk may still be unmounting.
            FileSystem::Xfs => "loop,nouuid",
        }
    }

    pub fn make(self, image: &Path) -> Result<(), String> {
        File::create(image)
            .and_then(|file| file.set_len(self.bytes()))
            .map_err(|error| error.to_string())?;
        let force = if self == FileSystem::Ext4 { "-F" } else { "-f" };
        run(Command::new(format!("mkfs.{}", self.name()))
            .args(["-q", force])
            .arg(image))
    }

    /// Returns the missing requirement of this machine for this file system.
    pub fn missing(self) -> Option<String> {
        for place in ["/dev/loop-control", "/dev/fuse"] {
            if File::options().read(true).write(true).open(place).is_err() {
                return Some(format!("no permission to use {place}"));
            }
        }
        let programs = [
            format!("mkfs.{}", self.name()),
            "qemu-storage-daemon".to_owned(),
        ];
        let is_absent = |program: &&String| {
            Command::new(program)
                .arg("-V")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_err()
        };
        programs
            .iter()
            .find(is_absent)
            .map(|program| format!("`{program}` is not installed"))
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Runs a program to its end; returns its output on failure.
pub fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// A mounted disk. It is unmounted, and its loop device freed, when this is dropped.
pub struct Mount {
    pub at: PathBuf,
}

impl Mount {
    pub fn new(system: FileSystem, image: &Path, at: &Path) -> Result<Mount, String> {
        std::fs::create_dir_all(at).map_err(|error| error.to_string())?;
        run(Command::new("mount")
            .args(["-t", system.name(), "-o", system.mount_options()])
            .arg(image)
            .arg(at))?;
        Ok(Mount { at: at.to_owned() })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if run(Command::new("umount").arg(&self.at)).is_err() {
            let _ = run(Command::new("umount").arg("--lazy").arg(&self.at));
        }
    }
}

/// A snapshot of a disk. Missing blocks are zero.
#[derive(Clone)]
pub struct Disk {
    bytes: u64,
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

impl Disk {
    pub fn read(image: &Path) -> std::io::Result<Disk> {
        let mut file = File::open(image)?;
        let mut disk = Disk {
            bytes: file.metadata()?.len(),
            blocks: BTreeMap::new(),
        };
        let mut block = [0; BLOCK];
        for number in 0..disk.bytes / BLOCK as u64 {
            file.read_exact(&mut block)?;
            if block != [0; BLOCK] {
                disk.blocks.insert(number, Box::new(block));
            }
        }
        Ok(disk)
    }

    pub fn write_sector(&mut self, sector: u64, bytes: &[u8]) {
        let offset = sector * SECTOR as u64;
        let block = self
            .blocks
            .entry(offset / BLOCK as u64)
            .or_insert_with(|| Box::new([0; BLOCK]));
        let within = usize::try_from(offset % BLOCK as u64).unwrap();
        block[within..within + SECTOR].copy_from_slice(bytes);
    }

    pub fn save(&self, image: &Path) -> std::io::Result<()> {
        let file = File::create(image)?;
        file.set_len(self.bytes)?;
        for (number, block) in &self.blocks {
            file.write_all_at(&block[..], number * BLOCK as u64)?;
        }
        Ok(())
    }
}
