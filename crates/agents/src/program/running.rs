//! A running program: its output lines, its input, its end.
//!
//! The helper ends the whole process family on SIGTERM. If the helper does not react it is killed,
//! and the kernel ends the processes that it observed.

use crate::assignment::Bounds;
use crate::beneath::{MOST_WALKED, Walked, walk};
use crate::sandbox::{Report, load_report};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// A longer line is delivered in pieces.
const LONGEST_LINE: usize = 1 << 20;
/// Time limit for the helper to end everything.
const PATIENCE: Duration = Duration::from_secs(3);
/// Shortest interval between two measurements of the folders. The pause is at least twenty times as
/// long as the measurement took, so that a large folder does not keep a core busy.
const SIZE_LOOK: Duration = Duration::from_secs(1);

/// One event of a program.
pub enum Heard {
    Out(String),
    Err(String),
    /// No output within the waiting time.
    Quiet,
    /// Both streams are closed.
    Closed,
}

/// One started program.
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    heard: Receiver<Heard>,
    report: PathBuf,
    out: PathBuf,
    home: PathBuf,
    bounds: Bounds,
    measure_at: Instant,
}

impl Running {
    /// `home` is the folder that holds the private home and the temporary files.
    pub fn new(
        mut child: Child,
        report: PathBuf,
        out: &Path,
        home: &Path,
        bounds: Bounds,
    ) -> Result<Self, String> {
        let (sender, heard) = sync_channel(256);
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let stderr = child.stderr.take().ok_or("no standard error")?;
        listen(stdout, sender.clone(), Heard::Out);
        listen(stderr, sender, Heard::Err);
        let measure_at = Instant::now() + SIZE_LOOK;
        Ok(Running {
            child,
            stdin,
            heard,
            report,
            out: out.to_path_buf(),
            home: home.to_path_buf(),
            bounds,
            measure_at,
        })
    }

    /// Returns the next line of either stream.
    pub fn hear(&self, wait: Duration) -> Heard {
        match self.heard.recv_timeout(wait) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => Heard::Quiet,
            Err(RecvTimeoutError::Disconnected) => Heard::Closed,
        }
    }

    /// Writes to the program's input on a thread of its own, then closes it, so that a program that
    /// reads nothing cannot block its caller.
    pub fn feed(&mut self, text: String) {
        if let Some(mut stdin) = self.stdin.take() {
            thread::spawn(move || {
                // A program may close its input early.
                let _ = stdin.write_all(text.as_bytes());
            });
        }
    }

    /// Takes the program's input, for a conversation.
    pub fn take_input(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Returns which folder exceeds its bound, as text. Measures at intervals only.
    pub fn overflows(&mut self) -> Option<String> {
        let began = Instant::now();
        if began < self.measure_at {
            return None;
        }
        let folders = [
            ("the out folder", &self.out, self.bounds.out),
            ("the private home", &self.home, self.bounds.home),
        ];
        let over = folders.into_iter().find_map(|(name, folder, bound)| {
            let why = measure(folder, bound)?;
            Some(format!("{why} in {name}"))
        });
        self.measure_at = Instant::now() + SIZE_LOOK.max(began.elapsed() * 20);
        over
    }

    /// Whether the program has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Ends the program and everything it started. Does nothing if it has already ended.
    pub fn end(&mut self) {
        self.stdin = None;
        if self.has_ended() {
            return;
        }
        let Some(pid) = Pid::from_raw(self.child.id() as i32) else {
            return;
        };
        if cfg!(target_os = "linux") {
            // Signals only the helper, which ends all other processes, including those that left
            // the group.
            let _ = kill_process(pid, Signal::TERM);
        } else {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        if !self.wait_until(Instant::now() + PATIENCE) {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = self.child.wait();
        }
    }

    /// Waits for a program with closed streams to exit, ends it if it does not, and reads the
    /// report.
    pub fn finish(&mut self) -> (Option<i32>, Report) {
        self.wait_until(Instant::now() + PATIENCE);
        self.end();
        let code = self.child.wait().ok().and_then(|status| status.code());
        (code, load_report(&self.report))
    }

    /// Reads the report so far, for a program that is still running.
    pub fn report(&self) -> Report {
        load_report(&self.report)
    }

    fn wait_until(&mut self, end: Instant) -> bool {
        let mut pause = Duration::from_millis(1);
        while !self.has_ended() {
            if Instant::now() >= end {
                return false;
            }
            // Drains the channel: if it were full, the program could block on its output and never
            // exit.
            while self.heard.try_recv().is_ok() {}
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        true
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns why a folder exceeds its bound. A folder that the agent made unreadable counts as
/// exceeding it, because it cannot be measured.
fn measure(root: &Path, bound: u64) -> Option<String> {
    let mut bytes = 0u64;
    let walked = walk(root, &mut |relative, _| {
        let size = std::fs::symlink_metadata(root.join(relative))
            .map(|meta| meta.len())
            .unwrap_or(0);
        bytes = bytes.saturating_add(size);
    });
    match walked {
        _ if bytes > bound => Some(format!("more than {bound} bytes")),
        Walked::Whole => None,
        Walked::TooMany => Some(format!("more than {MOST_WALKED} files")),
        Walked::Unreadable(folder) => Some(format!("the unreadable folder `{}`", folder.display())),
    }
}

/// Reads a stream into lines on a thread of its own, until it closes or the receiver is dropped.
fn listen(
    mut stream: impl Read + Send + 'static,
    sender: SyncSender<Heard>,
    kind: fn(String) -> Heard,
) {
    thread::spawn(move || {
        let mut pending: Vec<u8> = Vec::new();
        let mut part = vec![0u8; 64 * 1024];
        loop {
            let read = match stream.read(&mut part) {
                Ok(0) => break,
                Ok(read) => read,
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            for piece in part[..read].split_inclusive(|byte| *byte == b'\n') {
                pending.extend_from_slice(piece);
                if (piece.ends_with(b"\n") || pending.len() >= LONGEST_LINE)
                    && sender.send(kind(line(&mut pending))).is_err()
                {
                    return;
                }
            }
        }
        if !pending.is_empty() {
            // The last line may lack its newline. The receiver may have been dropped already.
            let _ = sender.send(kind(line(&mut pending)));
        }
    });
}

fn line(bytes: &mut Vec<u8>) -> String {
    let text = String::from_utf8_lossy(bytes)
        .trim_end_matches(['\n', '\r'])
        .to_string();
    bytes.clear();
    text
}
