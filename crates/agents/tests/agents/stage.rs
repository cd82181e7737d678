//! The scripted agent of the tests, and their sandbox helper: it does what its arguments say, one
//! after the other.

#![allow(clippy::unwrap_used)]

#[path = "stage_acp.rs"]
mod acp;

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

fn main() -> ExitCode {
    if let Some(code) = quipu_agents::sandbox_main(std::env::args_os().skip(1)) {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((kind, acts)) if kind == "agent" => acts.iter().for_each(|act| perform(act)),
        Some((kind, script)) if kind == "acp" => acp::speak(script),
        Some((kind, _)) if kind == "mcp" => acp::serve_a_tool(),
        _ => panic!("agent ACT… or acp SCRIPT"),
    }
    ExitCode::SUCCESS
}

fn out() -> PathBuf {
    PathBuf::from(std::env::var("QUIPU_OUT").unwrap())
}

fn perform(act: &str) {
    let (verb, rest) = act.split_once(':').unwrap_or((act, ""));
    match verb {
        "say" => println!("{rest}"),
        "complain" => eprintln!("{rest}"),
        "write" => {
            let (path, text) = rest.split_once('=').unwrap();
            let path = out().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        // Finishes its work only when it is told what was wrong with it.
        "remedy" => {
            let (word, path) = rest.split_once('@').unwrap();
            let prompt = std::env::args().next_back().unwrap();
            if prompt.contains(word) {
                std::fs::write(out().join(path), "text\n<!-- DONE -->\n").unwrap();
            } else {
                std::fs::write(out().join(path), "text\n").unwrap();
            }
        }
        "copy" => {
            let (from, to) = rest.split_once('=').unwrap();
            let view = PathBuf::from(std::env::var("QUIPU_VIEW").unwrap());
            let text = std::fs::read_to_string(view.join(from)).unwrap();
            std::fs::write(out().join(to), text).unwrap();
        }
        "stdin" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).unwrap();
            println!("{text}");
        }
        "environment" => std::env::vars().for_each(|(name, value)| println!("{name}={value}")),
        "read" => tell("read", rest, std::fs::read(rest).map(drop)),
        "list" => tell("list", rest, std::fs::read_dir(rest).map(drop)),
        "overwrite" => tell("overwrite", rest, std::fs::write(rest, "changed")),
        "truncate" => tell("truncate", rest, rustix_truncate(rest)),
        "remove" => tell("remove", rest, std::fs::remove_file(rest)),
        "steal" => tell("steal", rest, std::fs::rename(rest, out().join("stolen"))),
        "hardlink" => tell(
            "hardlink",
            rest,
            std::fs::hard_link(rest, out().join("hard")),
        ),
        "create" => tell("create", rest, std::fs::File::create_new(rest).map(drop)),
        "through-symlink" => {
            let link = out().join("link");
            std::os::unix::fs::symlink(rest, &link).unwrap();
            tell("through-symlink", rest, std::fs::read(link).map(drop));
        }
        "through-proc" => tell(
            "through-proc",
            rest,
            std::fs::read(format!("/proc/self/root{rest}")).map(drop),
        ),
        "through-child" => {
            let said = Command::new("/bin/cat").arg(rest).output().unwrap();
            let result = if said.status.success() {
                Ok(())
            } else {
                Err(std::io::Error::other("the child was denied"))
            };
            tell("through-child", rest, result);
        }
        "through-thread" => {
            let path = rest.to_string();
            std::thread::spawn(move || {
                tell("through-thread", &path, std::fs::read(&path).map(drop))
            })
            .join()
            .unwrap();
        }
        "descriptors" => descriptors(),
        "processes" => processes(rest),
        // Memory that is really used: each page is written to.
        "eat" => vec![1u8; rest.parse().unwrap()].leak().fill(2),
        "crowd" => {
            let crowd: Vec<_> = (0..rest.parse().unwrap())
                .map(|_| Command::new("/bin/sleep").arg("300").spawn())
                .collect();
            println!("{} started", crowd.iter().filter(|one| one.is_ok()).count());
        }
        "signal" => {
            let pid = rustix::process::Pid::from_raw(rest.parse().unwrap()).unwrap();
            let sent = rustix::process::kill_process(pid, rustix::process::Signal::USR1);
            tell("signal", rest, sent.map_err(Into::into));
        }
        "connect" => tell(
            "connect",
            rest,
            std::net::TcpStream::connect(rest).map(drop),
        ),
        "datagram" => tell(
            "datagram",
            rest,
            std::net::UdpSocket::bind("127.0.0.1:0").map(drop),
        ),
        // A child that leaves session and group, whose parent ends at once.
        "daemon" => {
            Command::new("/proc/self/exe")
                .args(["agent", &format!("daemon-start:{rest}")])
                .status()
                .unwrap();
        }
        "daemon-start" => {
            rustix::process::setsid().unwrap();
            #[allow(clippy::zombie_processes, reason = "leaving it behind is the point")]
            let left = Command::new("/proc/self/exe")
                .args(["agent", &format!("daemon-work:{rest}")])
                .spawn()
                .unwrap();
            drop(left);
        }
        // Lives as long as it holds its lock. The file gets its name when it is locked.
        "daemon-work" => {
            let starting = out().join("starting");
            let held = std::fs::File::create(&starting).unwrap();
            held.lock().unwrap();
            std::fs::rename(starting, out().join(rest)).unwrap();
            std::thread::sleep(Duration::from_secs(300));
            std::fs::write(out().join("outlived"), "").unwrap();
        }
        "await" => {
            while !Path::new(&out().join(rest)).exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        "hang" => std::thread::sleep(Duration::from_secs(300)),
        "garbage" => {
            let noise: Vec<u8> = (0..65536u32)
                .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
                .collect();
            for _ in 0..rest.parse().unwrap() {
                std::io::stdout().write_all(&noise).unwrap();
            }
        }
        "fill" => {
            let (path, bytes) = rest.split_once('=').unwrap();
            let mut file = std::fs::File::create(out().join(path)).unwrap();
            let part = vec![b'x'; 1 << 16];
            let mut left: usize = bytes.parse().unwrap();
            while left > 0 {
                let now = left.min(part.len());
                file.write_all(&part[..now]).unwrap();
                left -= now;
            }
        }
        "exit" => std::process::exit(rest.parse().unwrap()),
        // The rest is the prompt.
        "end" => std::process::exit(0),
        other => panic!("no act `{other}`"),
    }
}

fn rustix_truncate(path: &str) -> std::io::Result<()> {
    let file = std::fs::OpenOptions::new().write(true).open(path)?;
    rustix::fs::ftruncate(file.as_fd(), 0)?;
    Ok(())
}

fn tell(act: &str, what: &str, result: std::io::Result<()>) {
    match result {
        Ok(()) => println!("{act} {what}: DONE"),
        Err(why) => println!("{act} {what}: refused ({why})"),
    }
}

/// Says what can be read from descriptors beyond the three.
fn descriptors() {
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let number = entry.file_name().into_string().unwrap();
        let leads = std::fs::read_link(entry.path()).unwrap_or_default();
        if number.parse::<i32>().unwrap() > 2 && !leads.starts_with("/proc") {
            println!("descriptor {number} leads to {}", leads.display());
        }
    }
    println!("descriptors: counted");
}

/// Says what can be read of any process: its command line, its variables, its memory map, its
/// descriptors.
fn processes(guess: &str) {
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.parse::<u32>().is_ok() {
            look_at(&name);
        }
    }
    // Numbers can be guessed even if the list is denied.
    look_at(guess);
    let own =
        std::fs::read("/proc/self/status").is_ok() && std::fs::read_dir("/proc/self/task").is_ok();
    println!(
        "own status: {own}, memory: {}",
        std::fs::read("/proc/meminfo").is_ok()
    );
}

fn look_at(pid: &str) {
    for file in ["cmdline", "environ", "maps", "stat"] {
        if let Ok(bytes) = std::fs::read(format!("/proc/{pid}/{file}")) {
            println!(
                "{file} {}",
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            );
        }
    }
    for link in ["cwd", "root", "exe"] {
        if let Ok(leads) = std::fs::read_link(format!("/proc/{pid}/{link}")) {
            println!("{link} {}", leads.display());
        }
    }
}
