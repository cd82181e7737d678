//! Computes the folders that a program needs to run: system libraries, its own files, its
//! interpreter.
//!
//! Landlock grants whole trees and cannot exclude a part. A tree that contains the project is
//! therefore granted child by child, leaving out the children that lead to the project.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Trees and files that programs read on an ordinary Linux machine. Missing ones are skipped.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/sys/fs/cgroup",
    "/sys/devices/system",
    "/sys/kernel/mm/transparent_hugepage",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/profile",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/run/systemd/resolve",
];

/// Granted by the process that becomes the agent, because only it knows whether `/proc` is private.
/// A grant for a parent tree never includes it.
pub const PROC: &str = "/proc";

/// Files that programs read in a `/proc` shared with other processes: facts about the machine.
#[cfg(target_os = "linux")]
pub const PROC_OF_ALL: &[&str] = &[
    "/proc/cpuinfo",
    "/proc/devices",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys",
    "/proc/uptime",
    "/proc/version",
    "/proc/vmstat",
];

/// Devices that discard or produce bytes and store none.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];

/// The default search path, after the program's own folder.
const SEARCH: &[&str] = &[
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
];

/// The paths that a program may read and execute, and the devices it may write.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    pub run: Vec<PathBuf>,
    pub devices: Vec<PathBuf>,
}

/// Computes the grants for some programs, with further paths from the host's table or the user.
pub fn plan_grants(programs: &[PathBuf], extra: &[PathBuf], keep_out: &[PathBuf]) -> Grants {
    let mut wanted: BTreeSet<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    wanted.extend(extra.iter().cloned());
    let mut keep_out: Vec<PathBuf> = keep_out
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    for program in programs {
        wanted.extend(of_program(program, &keep_out));
    }
    keep_out.push(PathBuf::from(PROC));
    let mut run = BTreeSet::new();
    for path in wanted {
        // A Landlock rule applies to the resolved path, so the resolved path is compared with the
        // project.
        if let Ok(real) = path.canonicalize() {
            grant_around(&real, &keep_out, &mut run);
        }
    }
    let devices = DEVICES
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.exists())
        .collect();
    Grants {
        run: run.into_iter().collect(),
        devices,
    }
}

/// Grants a path. If it contains an excluded folder, grants its other children instead.
fn grant_around(path: &Path, keep_out: &[PathBuf], into: &mut BTreeSet<PathBuf>) {
    if path.starts_with(PROC)
        || keep_out
            .iter()
            .any(|kept| path.starts_with(kept) && path.is_dir())
    {
        return;
    }
    if !keep_out.iter().any(|kept| kept.starts_with(path)) {
        into.insert(path.to_path_buf());
        return;
    }
    let Ok(children) = std::fs::read_dir(path) else {
        return;
    };
    for child in children.flatten() {
        // A link's target is granted at its own location.
        if child.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            grant_around(&child.path(), keep_out, into);
        }
    }
}

/// Returns the paths a program needs for itself: its file, its package folder, its interpreter.
/// Files of the project never count as interpreters, because the first line of a script must not
/// grant access to them.
fn of_program(program: &Path, keep_out: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = Some(program.to_path_buf());
    // A script's interpreter may itself be a script; three levels are enough.
    for _ in 0..3 {
        let Some(path) = next.take() else { break };
        let Ok(real) = path.canonicalize() else { break };
        found.push(real.clone());
        found.extend(package_of(&real));
        let is_kept_out = |path: &PathBuf| {
            path.canonicalize()
                .is_ok_and(|real| keep_out.iter().any(|kept| real.starts_with(kept)))
        };
        next = interpreter_of(&real, &path).filter(|path| !is_kept_out(path));
    }
    found
}

/// Returns the package folder that contains a program: the outermost `node_modules`, a Python
/// environment.
fn package_of(program: &Path) -> Option<PathBuf> {
    let outermost = program.ancestors().filter(|folder| {
        folder
            .file_name()
            .is_some_and(|name| name == "node_modules")
    });
    if let Some(folder) = outermost.last() {
        return Some(folder.to_path_buf());
    }
    program
        .ancestors()
        .skip(1)
        .find(|folder| folder.join("pyvenv.cfg").is_file())
        .map(Path::to_path_buf)
}

/// Returns the interpreter in a script's first line. `env NAME` is searched beside the script, then
/// in the search path. Only lines that the kernel would execute count, and only the forms `env
/// NAME` and `env -S NAME …`, because the value of an option can be any file.
pub fn interpreter_of(real: &Path, called_as: &Path) -> Option<PathBuf> {
    let mut head = [0u8; 256];
    let read = std::fs::File::open(real).ok()?.read(&mut head).ok()?;
    let line = head[..read]
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if !first.ends_with("/env") {
        return Some(PathBuf::from(first)).filter(|path| is_executable(path));
    }
    let name = match words.next()? {
        "-S" | "--split-string" => words.next()?,
        name => name,
    };
    if name.starts_with('-') || name.contains(['=', '/']) {
        return None;
    }
    let beside = [called_as.parent(), real.parent()]
        .into_iter()
        .flatten()
        .map(|folder| folder.join(name));
    let searched = std::env::var_os("PATH").unwrap_or_default();
    let searched: Vec<PathBuf> = std::env::split_paths(&searched)
        .map(|folder| folder.join(name))
        .collect();
    beside.chain(searched).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns the `PATH` for a program: its own folder, its interpreter's, then the system's.
pub fn search_path(program: &Path) -> String {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut add = |folder: Option<&Path>| {
        if let Some(folder) = folder.filter(|folder| !folders.iter().any(|known| known == folder)) {
            folders.push(folder.to_path_buf());
        }
    };
    add(program.parent());
    if let Some(interpreter) = program
        .canonicalize()
        .ok()
        .and_then(|real| interpreter_of(&real, program))
    {
        add(interpreter.parent());
    }
    for folder in SEARCH {
        add(Some(Path::new(folder)));
    }
    folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect::<Vec<_>>()
        .join(":")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Creates a script with this first line, and a file beside it that is not executable.
    fn script(first: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (program, secret) = (folder.path().join("agent"), folder.path().join("secret"));
        std::fs::write(&secret, "secret").unwrap();
        let line = first.replace("SECRET", &secret.display().to_string());
        std::fs::write(&program, format!("#!{line}\necho\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        (folder, program)
    }

    #[test]
    fn the_first_line_of_a_script_grants_nothing_but_an_interpreter() {
        for first in [
            "/usr/bin/env -S -u SECRET sh",
            "/usr/bin/env -u SECRET sh",
            "/usr/bin/env SECRET",
            "/usr/bin/env -S SECRET",
            "SECRET",
        ] {
            let (_folder, program) = script(first);
            assert_eq!(interpreter_of(&program, &program), None, "{first}");
        }
        for first in ["/bin/sh -e", "/usr/bin/env sh", "/usr/bin/env -S sh -e"] {
            let (_folder, program) = script(first);
            assert!(
                interpreter_of(&program, &program).is_some_and(|found| found.ends_with("sh")),
                "{first}"
            );
        }
    }

    #[test]
    fn an_interpreter_among_the_files_to_keep_out_is_not_granted() {
        let (folder, program) = script("/bin/sh");
        let interpreter = folder.path().join("mine");
        std::fs::write(&interpreter, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&interpreter, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(&program, format!("#!{}\n", interpreter.display())).unwrap();
        let real = interpreter.canonicalize().unwrap();
        let kept_out = folder.path().canonicalize().unwrap();
        assert!(of_program(&program, &[]).contains(&real));
        assert!(!of_program(&program, &[kept_out]).contains(&real));
    }
}
