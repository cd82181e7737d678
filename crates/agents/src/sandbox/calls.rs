//! The observed system calls, and the positions of their path arguments.

use nix::libc;

/// One call: its number, the argument with the path, the argument with the folder it is relative
/// to, and its operation.
pub struct Call {
    pub number: i64,
    pub path: usize,
    pub folder: Option<usize>,
    pub want: Want,
}

/// The operation of a call on a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Read or write, by the flags in this argument.
    Open(usize),
    /// Read or write, by the flags at this argument's address.
    OpenHow(usize),
    Write,
    Make,
    Remove,
    Rename,
    Link,
    Run,
}

const fn at(number: i64, path: usize, want: Want) -> Call {
    Call {
        number,
        path,
        folder: Some(path - 1),
        want,
    }
}

const fn plain(number: i64, path: usize, want: Want) -> Call {
    Call {
        number,
        path,
        folder: None,
        want,
    }
}

/// The calls that every architecture has.
const COMMON: &[Call] = &[
    at(libc::SYS_openat, 1, Want::Open(2)),
    at(libc::SYS_openat2, 1, Want::OpenHow(2)),
    at(libc::SYS_unlinkat, 1, Want::Remove),
    at(libc::SYS_renameat2, 1, Want::Rename),
    at(libc::SYS_linkat, 1, Want::Link),
    at(libc::SYS_symlinkat, 2, Want::Link),
    at(libc::SYS_mkdirat, 1, Want::Make),
    at(libc::SYS_mknodat, 1, Want::Make),
    at(libc::SYS_execveat, 1, Want::Run),
    plain(libc::SYS_truncate, 0, Want::Write),
    plain(libc::SYS_execve, 0, Want::Run),
];

#[cfg(target_arch = "x86_64")]
const OLDER: &[Call] = &[
    plain(libc::SYS_open, 0, Want::Open(1)),
    plain(libc::SYS_creat, 0, Want::Write),
    plain(libc::SYS_unlink, 0, Want::Remove),
    plain(libc::SYS_rmdir, 0, Want::Remove),
    plain(libc::SYS_rename, 0, Want::Rename),
    at(libc::SYS_renameat, 1, Want::Rename),
    plain(libc::SYS_link, 0, Want::Link),
    plain(libc::SYS_symlink, 1, Want::Link),
    plain(libc::SYS_mkdir, 0, Want::Make),
    plain(libc::SYS_mknod, 0, Want::Make),
];
#[cfg(target_arch = "aarch64")]
const OLDER: &[Call] = &[at(libc::SYS_renameat, 1, Want::Rename)];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OLDER: &[Call] = &[];

pub fn all() -> impl Iterator<Item = &'static Call> {
    COMMON.iter().chain(OLDER)
}

pub fn resolve_call(number: i64) -> Option<&'static Call> {
    all().find(|call| call.number == number)
}

/// Returns the name of an operation; `flags` are those of an open.
pub fn act(want: Want, flags: u64) -> &'static str {
    let writes = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
    match want {
        Want::Open(_) | Want::OpenHow(_) if flags & writes as u64 != 0 => "write",
        Want::Open(_) | Want::OpenHow(_) if flags & libc::O_DIRECTORY as u64 != 0 => "list",
        Want::Open(_) | Want::OpenHow(_) => "read",
        Want::Write => "write",
        Want::Make => "make",
        Want::Remove => "remove",
        Want::Rename => "rename",
        Want::Link => "link",
        Want::Run => "run",
    }
}
