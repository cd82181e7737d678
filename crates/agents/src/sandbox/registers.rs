//! Reads the system call of a stopped process from its registers.

use nix::unistd::Pid;

/// The number, arguments and, after the call, the result.
pub struct Registers {
    pub number: i64,
    pub args: [u64; 6],
    pub result: i64,
}

#[cfg(target_arch = "x86_64")]
pub fn read(pid: Pid) -> nix::Result<Registers> {
    let regs = nix::sys::ptrace::getregs(pid)?;
    Ok(Registers {
        number: regs.orig_rax as i64,
        args: [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9],
        result: regs.rax as i64,
    })
}

#[cfg(target_arch = "aarch64")]
pub fn read(pid: Pid) -> nix::Result<Registers> {
    let regs = nix::sys::ptrace::getregs(pid)?.regs;
    Ok(Registers {
        number: regs[8] as i64,
        args: [regs[0], regs[1], regs[2], regs[3], regs[4], regs[5]],
        result: regs[0] as i64,
    })
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn read(_: Pid) -> nix::Result<Registers> {
    Err(nix::errno::Errno::ENOSYS)
}

/// Whether this architecture is supported here.
pub const KNOWN: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
