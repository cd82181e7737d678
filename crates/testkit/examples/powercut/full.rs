//! A full disk with blocks smaller than a page: committed text can be read, and no command dies of
//! a signal.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::disk::{FileSystem, Mount, run};
use crate::workload::program;

/// KiB left on the disk when the commands run.
const LEFT: [u64; 7] = [0, 9, 12, 20, 30, 60, 120];
/// Commands, and whether they must succeed.
const COMMANDS: [(&[&str], bool); 3] = [
    (&["read", "PROJECT.md"], true),
    (&["status"], true),
    (&["append", "notes.md", "--text", "x"], false),
];

/// The outer error names a missing permission of this machine, the inner one a failure.
pub fn check(folder: &Path) -> Result<Result<(), String>, String> {
    let text = |error: std::io::Error| error.to_string();
    let image = folder.join("small");
    File::create(&image)
        .and_then(|file| file.set_len(24 << 20))
        .map_err(text)?;
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F", "-b", "1024"])
        .arg(&image))?;
    let mount = Mount::new(FileSystem::Ext4, &image, &folder.join("full"))?;
    let root = mount.at.join("book");
    std::fs::create_dir(&root).map_err(text)?;
    Ok(check_commands(&mount.at.join("fill"), &root, folder))
}

fn check_commands(fill: &Path, root: &Path, home: &Path) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let quipu = || {
        let mut command = Command::new(program());
        command.arg("-C").arg(root).env("HOME", home);
        command
    };
    run(quipu().args(["init", "--profile", "relay"]))?;
    for left in LEFT {
        // The file index is derived from the journal. It is rebuilt, and needs space.
        for name in ["index.db", "index.db-wal", "index.db-shm"] {
            let _ = std::fs::remove_file(root.join(".quipu").join(name));
        }
        fill_but(fill, left).map_err(text)?;
        for (arguments, must_succeed) in COMMANDS {
            let output = quipu().args(arguments).output().map_err(text)?;
            if output.status.code().is_none() || must_succeed && !output.status.success() {
                let printed = String::from_utf8_lossy(&output.stderr);
                let what = output.status;
                return Err(format!(
                    "{left} KiB left on a full disk, {arguments:?}: {what} {printed}"
                ));
            }
        }
    }
    std::fs::remove_file(fill).map_err(text)?;
    run(quipu().args(["append", "notes.md", "--text", "there is room again"]))?;
    run(quipu().arg("verify"))
}

/// Fills the disk except for some KiB.
fn fill_but(path: &Path, left: u64) -> std::io::Result<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    while file.write_all(&[0; 1024]).is_ok() {}
    let length = file.metadata()?.len();
    file.set_len(length.saturating_sub(left * 1024))?;
    file.sync_all()
}
