//! A program that runs: its lines as they come, its input, its end.
//!
//! Ending goes through the helper, which ends the whole family; if the helper does not answer it is
//! killed, and the kernel ends what it observed.

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

/// A line longer than this is told in pieces.
const LONGEST_LINE: usize = 1 << 20;
/// How long the helper may take to end everything.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often the folders are measured. Measuring a large one is not allowed to keep a processor
/// busy: the pause is at least twenty times as long as measuring took.
const SIZE_LOOK: Duration = Duration::from_secs(1);

/// What was heard of a program.
pub enum Heard {
    Out(String),
    Err(String),
    /// Nothing, for the time that was waited.
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

    /// The next line of either stream.
    pub fn hear(&self, wait: Duration) -> Heard {
        match self.heard.recv_timeout(wait) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => Heard::Quiet,
            Err(RecvTimeoutError::Disconnected) => Heard::Closed,
        }
    }

    /// Writes to the program's input from a thread of its own, then closes it: a program that reads
    /// nothing must not hold its caller up.
    pub fn feed(&mut self, text: String) {
        if let Some(mut stdin) = self.stdin.take() {
            thread::spawn(move || {
                // A program that closes its input early is free to.
                let _ = stdin.write_all(text.as_bytes());
            });
        }
    }

    /// The program's input, for a conversation.
    pub fn take_input(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Which folder has grown beyond its bound, in words; measured now and then.
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

    /// Ends the program and everything it started; does nothing more if it has ended.
    pub fn end(&mut self) {
        self.stdin = None;
        if self.has_ended() {
            return;
        }
        let Some(pid) = Pid::from_raw(self.child.id() as i32) else {
            return;
        };
        if cfg!(target_os = "linux") {
            // Only the helper: it ends the others, and those that left the group too.
            let _ = kill_process(pid, Signal::TERM);
        } else {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        if !self.wait_until(Instant::now() + PATIENCE) {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = self.child.wait();
        }
    }

    /// Waits for the end of a program whose streams are closed, ends it if it lingers, and reads
    /// the report.
    pub fn finish(&mut self) -> (Option<i32>, Report) {
        self.wait_until(Instant::now() + PATIENCE);
        self.end();
        let code = self.child.wait().ok().and_then(|status| status.code());
        (code, load_report(&self.report))
    }

    /// The report so far, for a program that goes on running.
    pub fn report(&self) -> Report {
        load_report(&self.report)
    }

    fn wait_until(&mut self, end: Instant) -> bool {
        let mut pause = Duration::from_millis(1);
        while !self.has_ended() {
            if Instant::now() >= end {
                return false;
            }
            // Lines still come; a full channel must not keep the program from ending.
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

/// Why a folder is over its bound, if it is. A folder that an agent made unreadable counts as over
/// it: whatever it holds cannot be measured.
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

/// Reads a stream into lines on a thread of its own, until it closes or nobody listens.
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
            // The last line of a stream may lack its end; if nobody listens any more, it is not
            // missed.
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
