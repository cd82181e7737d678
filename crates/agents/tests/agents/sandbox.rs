//! Every way out of the sandbox that we could think of, each stopped by the kernel and in the
//! record.

use crate::desk::{Desk, STAGE, lives, toml_string, without, without_namespaces};
use nix::libc;
use quipu_agents::{Confinement, Ending, Outcome, collect};
use std::time::{Duration, Instant};

/// Runs the acts and checks that none of them succeeded.
fn refused(desk: &mut Desk, acts: &[String]) -> Outcome {
    let acts: Vec<&str> = acts.iter().map(String::as_str).collect();
    let outcome = desk.script(&acts).run();
    assert_eq!(
        outcome.ending,
        Ending::Finished { exit: Some(0) },
        "{}",
        desk.said("err")
    );
    assert!(
        matches!(
            outcome.confinement,
            Confinement::Kernel { observed: true, .. }
        ),
        "{:?}",
        outcome.confinement
    );
    let said = desk.said("out");
    assert_eq!(said.matches("refused").count(), acts.len(), "{said}");
    assert!(!said.contains("DONE"), "{said}");
    desk.assert_untouched();
    outcome
}

/// Whether the record tells of an act on a path, given or reached through a link.
fn recorded(outcome: &Outcome, act: &str, path: &str) -> bool {
    let listed = |found: &str| found == path;
    let told = outcome.denied.iter().any(|one| {
        one.act == act
            && one.by == "kernel"
            && (listed(&one.path) || one.leads_to.as_deref().is_some_and(listed))
    });
    let report =
        std::fs::read_to_string(outcome.transcript.parent().unwrap().join("sandbox-1.jsonl"))
            .unwrap();
    told && report.contains(path)
}

#[test]
fn denied_files_other_drafts_and_the_journal_cannot_be_read() {
    let mut desk = Desk::new();
    let paths = [
        "denied.md",
        "drafts/ch02-draft.md",
        ".quipu/journal/000001.jsonl",
    ]
    .map(|path| desk.path(path));
    let acts: Vec<String> = paths.iter().map(|path| format!("read:{path}")).collect();
    let outcome = refused(&mut desk, &acts);
    for path in &paths {
        assert!(
            recorded(&outcome, "read", path),
            "{path}: {:?}",
            outcome.denied
        );
    }
}

#[test]
fn folders_of_the_project_cannot_be_listed() {
    let mut desk = Desk::new();
    let paths = ["", "drafts", ".quipu", ".quipu/attempts/r1/record"]
        .map(|path| desk.path(path).trim_end_matches('/').to_string());
    std::fs::create_dir_all(&desk.assignment.record).unwrap();
    let acts: Vec<String> = paths.iter().map(|path| format!("list:{path}")).collect();
    let outcome = refused(&mut desk, &acts);
    for path in &paths {
        assert!(
            recorded(&outcome, "list", path),
            "{path}: {:?}",
            outcome.denied
        );
    }
}

#[test]
fn a_sealed_file_cannot_be_changed_in_any_way() {
    let mut desk = Desk::new();
    let sealed = desk.path("outline-final.md");
    let fresh = desk.path("drafts/ch03-draft.md");
    let acts = ["overwrite", "truncate", "remove", "steal", "hardlink"]
        .map(|act| format!("{act}:{sealed}"));
    let acts: Vec<String> = acts
        .into_iter()
        .chain([format!("create:{fresh}")])
        .collect();
    let outcome = refused(&mut desk, &acts);
    for (act, path) in [
        ("write", &sealed),
        ("remove", &sealed),
        ("rename", &sealed),
        ("link", &sealed),
        ("write", &fresh),
    ] {
        assert!(recorded(&outcome, act, path), "{act}: {:?}", outcome.denied);
    }
    assert!(!desk.project.join("drafts/ch03-draft.md").exists());
    let overwritten = outcome
        .denied
        .iter()
        .find(|one| one.act == "write" && one.path == sealed)
        .unwrap();
    assert_eq!(
        overwritten.times, 2,
        "overwriting and truncating both open for writing"
    );
}

#[test]
fn the_view_cannot_be_written() {
    let mut desk = Desk::new();
    let shown = desk
        .assignment
        .view
        .join("outline.md")
        .display()
        .to_string();
    let outcome = refused(&mut desk, &[format!("overwrite:{shown}")]);
    assert!(recorded(&outcome, "write", &shown));
    assert!(
        std::fs::read_to_string(shown)
            .unwrap()
            .contains("the beginning")
    );
}

#[test]
fn links_proc_threads_and_children_are_no_way_round() {
    let mut desk = Desk::new();
    let denied = desk.path("denied.md");
    let acts = [
        "through-symlink",
        "through-proc",
        "through-child",
        "through-thread",
    ]
    .map(|act| format!("{act}:{denied}"));
    let outcome = refused(&mut desk, &acts);
    let link = desk.assignment.out.join("link").display().to_string();
    for path in [&link, &format!("/proc/self/root{denied}"), &denied] {
        assert!(
            outcome.denied.iter().any(|one| &one.path == path),
            "{path}: {:?}",
            outcome.denied
        );
    }
    let through_link = outcome.denied.iter().find(|one| one.path == link).unwrap();
    assert_eq!(through_link.leads_to.as_deref(), Some(denied.as_str()));
    assert!(
        outcome
            .denied
            .iter()
            .any(|one| one.program == "cat" && one.path == denied),
        "{:?}",
        outcome.denied
    );
}

#[test]
fn inherited_descriptors_are_closed() {
    let run = || {
        let mut desk = Desk::new();
        let secret = std::fs::File::open(desk.path("denied.md")).unwrap();
        rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
        let outcome = desk.script(&["descriptors"]).run();
        assert!(outcome.ending.is_finished());
        let said = desk.said("out");
        assert!(said.contains("descriptors: counted"), "{said}");
        assert!(!said.contains("denied.md"), "{said}");
    };
    run();
    without_namespaces(run);
}

#[test]
fn a_daemon_that_left_session_and_group_is_ended_with_the_agent() {
    let mut desk = Desk::new();
    let outcome = desk
        .script(&["daemon:pid", "await:pid", "say:leaving"])
        .run();
    assert!(
        outcome.ending.is_finished(),
        "{:?} {}",
        outcome.ending,
        desk.said("err")
    );
    assert!(
        !lives(&desk.assignment.out.join("pid")),
        "the daemon outlived its agent"
    );
    assert!(
        outcome
            .left_behind
            .iter()
            .any(|program| STAGE.ends_with(program.as_str())),
        "{:?}",
        outcome.left_behind
    );
    assert_eq!(desk.output("outlived"), None);
}

#[test]
fn the_deadline_ends_the_whole_family() {
    let mut desk = Desk::new();
    desk.assignment.deadline = Duration::from_millis(1500);
    let began = Instant::now();
    let outcome = desk
        .script(&["daemon:pid", "await:pid", "say:here", "hang"])
        .run();
    assert_eq!(outcome.ending, Ending::Deadline);
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "300 seconds were slept"
    );
    let pid = desk.assignment.out.join("pid");
    assert!(
        !pid.exists() || !lives(&pid),
        "the daemon outlived the deadline"
    );
}

/// Starts a helper from a shell, waits for the agent's daemon, kills the shell hard, and waits for
/// the daemon's end. With `exec` the shell becomes the helper; otherwise it is the helper's caller.
fn kill_above_the_family(exec: &str) {
    let desk = Desk::new();
    let record = &desk.assignment.record;
    std::fs::create_dir_all(record).unwrap();
    let out = desk.assignment.out.display().to_string();
    let orders = record.join("orders.json");
    let caller = if exec.is_empty() { "$$" } else { "$PPID" };
    let script = format!(
        "sed -i s/PARENT/{caller}/ {0}; {exec} {STAGE} sandbox-exec {0}; true",
        orders.display()
    );
    let policy = serde_json::json!({
        "program": STAGE, "args": ["agent", "daemon:pid", "hang"], "folder": out, "run": ["/usr", "/lib", "/lib64", STAGE],
        "read": [], "write": [out], "devices": ["/dev/null"], "offline": false, "file_bound": 1_000_000,
        "memory_bound": 1_000_000_000, "task_bound": 100,
        "report": record.join("report.jsonl"), "parent": "PARENT",
    });
    std::fs::write(&orders, policy.to_string().replace("\"PARENT\"", "PARENT")).unwrap();
    let mut shell = std::process::Command::new("/bin/sh")
        .args(["-c", &script])
        .env("QUIPU_SANDBOX_SET_QUIPU_OUT", &out)
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let pid = desk.assignment.out.join("pid");
    while !pid.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(lives(&pid));
    shell.kill().unwrap();
    shell.wait().unwrap();
    while lives(&pid) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!lives(&pid), "the agent's daemon outlived everybody");
}

#[test]
fn the_family_ends_when_its_caller_is_killed() {
    kill_above_the_family("");
    without_namespaces(|| kill_above_the_family(""));
}

#[test]
fn the_family_ends_when_its_helper_is_killed() {
    kill_above_the_family("exec");
    without_namespaces(|| kill_above_the_family("exec"));
}

#[test]
fn processes_outside_get_no_signal_and_show_no_environment() {
    let me = std::process::id();
    let acts = [format!("signal:{me}"), format!("read:/proc/{me}/environ")];
    refused(&mut Desk::new(), &acts);
    let outcome = without_namespaces(|| refused(&mut Desk::new(), &acts));
    assert!(
        outcome
            .denied
            .iter()
            .any(|one| one.path == "/proc/*/environ"),
        "{:?}",
        outcome.denied
    );
}

/// Whether the run had processes of its own, by its record.
fn had_own_processes(desk: &Desk) -> bool {
    std::fs::read_to_string(desk.assignment.record.join("sandbox-1.jsonl"))
        .unwrap()
        .contains("own-processes")
}

#[test]
fn a_run_sees_its_own_processes_and_no_others() {
    let mut bystander = std::process::Command::new(STAGE)
        .args(["agent", "hang", "token-7d1f"])
        .spawn()
        .unwrap();
    let look = || {
        let mut desk = Desk::new();
        let outcome = desk
            .script(&[&format!("processes:{}", bystander.id())])
            .run();
        assert!(
            outcome.ending.is_finished(),
            "{:?} {}",
            outcome.ending,
            desk.said("err")
        );
        let said = desk.said("out");
        assert!(
            !said.contains("token-7d1f"),
            "the command line of another program was read"
        );
        assert!(
            !said.contains(&format!(
                "cwd {}",
                std::env::current_dir().unwrap().display()
            )),
            "where another program works was read"
        );
        assert!(said.contains("own status: true, memory: true"), "{said}");
        had_own_processes(&desk)
    };
    let own = look();
    assert!(!without_namespaces(look));
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    // A machine that permits a namespace to this user uses one.
    let permitted = std::process::Command::new("unshare")
        .args(["-Upf", "--map-current-user", "--mount-proc", "true"])
        .status();
    assert!(
        own || !permitted.is_ok_and(|status| status.success()),
        "a namespace is permitted and was not used"
    );
}

#[test]
fn the_keys_that_the_kernel_holds_for_the_user_are_out_of_reach() {
    const ASK: &str = r#"for (@ARGV) { print syscall($_, 0, -3, 0, 0, 0) == -1 && $!{ENOSYS} ? "absent " : "there "; }"#;
    let mut desk = Desk::new();
    let calls = [libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key]
        .map(|number| number.to_string());
    let args = ["-MErrno", "-e", ASK, &calls[0], &calls[1], &calls[2]]
        .map(toml_string)
        .join(", ");
    desk.host(&format!(
        "via = \"command\"\nprogram = \"perl\"\nargs = [{args}]"
    ));
    let outcome = desk.run();
    assert!(
        outcome.ending.is_finished(),
        "{:?} {}",
        outcome.ending,
        desk.said("err")
    );
    assert_eq!(desk.said("out").trim(), "absent absent absent");
}

#[test]
fn limits_and_priorities_of_other_processes_are_out_of_reach() {
    // 7 is RLIMIT_NOFILE; 2 as the first argument of setpriority is PRIO_USER.
    const ASK: &str = r#"
        my ($prlimit, $setpriority, $read) = map { $_ + 0 } @ARGV; my $limit = pack("QQ", 4, 4); my $old = "\0" x 16;
        my $other = fork(); if ($other == 0) { sleep 60; exit 0; }
        sub told { print $_[0] == -1 && $!{EPERM} ? "refused " : $_[0] == -1 ? "failed:$! " : "DONE "; }
        told(syscall($prlimit, $other, 7, $limit, 0)); told(syscall($prlimit, $other, 7, 0, $old));
        told(syscall($setpriority, 0, $other, 19)); told(syscall($setpriority, 2, 0, 19)); told(syscall($read, $other, 0, 0, 0, 0, 0));
        told(syscall($prlimit, 0, 7, 0, $old)); told(syscall($setpriority, 0, 0, 1));
        kill 9, $other; waitpid($other, 0);"#;
    let ask = || {
        let mut desk = Desk::new();
        let calls = [
            libc::SYS_prlimit64,
            libc::SYS_setpriority,
            libc::SYS_process_vm_readv,
        ]
        .map(|number| number.to_string());
        let args = ["-MErrno", "-e", ASK, &calls[0], &calls[1], &calls[2]]
            .map(toml_string)
            .join(", ");
        desk.host(&format!(
            "via = \"command\"\nprogram = \"perl\"\nargs = [{args}]"
        ));
        let outcome = desk.run();
        assert!(
            outcome.ending.is_finished(),
            "{:?} {}",
            outcome.ending,
            desk.said("err")
        );
        assert_eq!(
            desk.said("out").trim(),
            "refused refused refused refused refused DONE DONE"
        );
    };
    ask();
    without_namespaces(ask);
}

/// A chain of processes, each of which starts the next and ends. The first tries to leave its
/// observer.
const CHAIN: &str = r#"
    use POSIX ();
    open(my $held, ">", "$ENV{QUIPU_OUT}/chain"); flock($held, 2);
    my ($clone, $clone3) = @ARGV;
    my $left = syscall($clone, 0x00800011, 0, 0, 0, 0);
    print $left == -1 ? "refused
" : "DONE
" if $left != 0;
    if ($left == -1) { $left = fork(); }
    if ($left != 0) { print syscall($clone3, 0, 0) == -1 && $!{ENOSYS} ? "absent
" : "there
"; exit 0; }
    for (1 .. 20000) { my $next = syscall($clone, 0x00800011, 0, 0, 0, 0); $next = fork() if $next == -1; POSIX::_exit(0) if $next != 0; }
"#;

#[test]
fn a_chain_of_processes_ends_with_its_agent() {
    let end = || {
        let mut desk = Desk::new();
        let calls = [libc::SYS_clone, libc::SYS_clone3].map(|number| number.to_string());
        let args = ["-MErrno", "-e", CHAIN, &calls[0], &calls[1]]
            .map(toml_string)
            .join(", ");
        desk.host(&format!(
            "via = \"command\"\nprogram = \"perl\"\nargs = [{args}]"
        ));
        let outcome = desk.run();
        assert!(
            outcome.ending.is_finished(),
            "{:?} {}",
            outcome.ending,
            desk.said("err")
        );
        assert!(
            !lives(&desk.assignment.out.join("chain")),
            "the chain outlived its agent"
        );
        assert_eq!(desk.said("out"), "refused\nabsent\n");
    };
    for _ in 0..5 {
        end();
        without_namespaces(end);
    }
}

#[test]
fn a_daemon_is_ended_where_nothing_may_be_observed() {
    without(&[libc::SYS_unshare, libc::SYS_ptrace], libc::EPERM, || {
        let mut desk = Desk::new();
        let outcome = desk
            .script(&["daemon:pid", "await:pid", "say:leaving"])
            .run();
        assert!(
            outcome.ending.is_finished(),
            "{:?} {}",
            outcome.ending,
            desk.said("err")
        );
        assert!(
            matches!(
                outcome.confinement,
                Confinement::Kernel {
                    observed: false,
                    ..
                }
            ),
            "{:?}",
            outcome.confinement
        );
        assert!(
            !lives(&desk.assignment.out.join("pid")),
            "the daemon outlived its agent"
        );
        assert_eq!(outcome.left_behind.len(), 1, "{:?}", outcome.left_behind);
    });
}

#[test]
fn memory_and_processes_are_bounded() {
    let run = |field: &str, act: &str, words: &str| {
        let mut desk = Desk::new();
        let act = toml_string(act);
        desk.host(&format!(
            "via = \"command\"\nprogram = {STAGE:?}\n{field}\nargs = [\"agent\", {act}, \"hang\"]"
        ));
        let ending = desk.run().ending;
        assert!(
            matches!(&ending, Ending::TooLong { what } if what == words),
            "{ending:?}"
        );
    };
    let all = || {
        run(
            "memory_mib = 100",
            "eat:200000000",
            "more than 104857600 bytes of memory",
        );
        run(
            "processes = 20",
            "crowd:40",
            "more than 20 processes and threads",
        );
    };
    all();
    without_namespaces(all);
    without(&[libc::SYS_unshare, libc::SYS_ptrace], libc::EPERM, all);
}

#[test]
fn an_offline_host_has_no_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut desk = Desk::new();
    let fields = |offline: bool| {
        format!(
            "via = \"command\"\nprogram = {STAGE:?}\noffline = {offline}\nargs = [\"agent\", \"connect:{address}\", \"datagram\"]"
        )
    };
    desk.host(&fields(false)).run();
    assert_eq!(
        desk.said("out").matches("DONE").count(),
        2,
        "{}",
        desk.said("out")
    );
    desk.host(&fields(true)).run();
    assert_eq!(
        desk.said("out").matches("refused").count(),
        2,
        "{}",
        desk.said("out")
    );
}

#[test]
fn a_project_inside_a_granted_tree_stays_closed() {
    let mut desk = Desk::new();
    // The tree above the project is granted, as if it lay in a folder of the system.
    let above = desk.project.parent().unwrap().display().to_string();
    std::fs::write(desk.project.parent().unwrap().join("beside.txt"), "free").unwrap();
    let (denied, beside) = (desk.path("denied.md"), format!("{above}/beside.txt"));
    desk.host(&format!(
        "via = \"command\"\nprogram = {STAGE:?}\nreads = [{above:?}]\nargs = [\"agent\", \"read:{denied}\", \"read:{beside}\"]"
    ));
    let outcome = desk.run();
    let said = desk.said("out");
    assert!(said.contains(&format!("read {denied}: refused")), "{said}");
    assert!(said.contains(&format!("read {beside}: DONE")), "{said}");
    assert!(recorded(&outcome, "read", &denied));
}

#[test]
fn a_program_that_probes_everything_fills_no_record() {
    let mut desk = Desk::new();
    for number in 0..600 {
        std::fs::write(desk.project.join(format!("n{number}")), "").unwrap();
    }
    let acts: Vec<String> = (0..600)
        .map(|number| format!("read:{}", desk.path(&format!("n{number}"))))
        .collect();
    let outcome = refused(&mut desk, &acts);
    let last = outcome.denied.last().unwrap();
    assert_eq!(
        (last.act.as_str(), outcome.denied.len()),
        ("more", 501),
        "{last:?}"
    );
    assert!(last.times >= 100, "{last:?}");
}

#[test]
fn a_kernel_without_landlock_is_told_and_what_was_written_is_verified() {
    let mut desk = Desk::new();
    let denied = desk.path("denied.md");
    desk.script(&[
        &format!("read:{denied}"),
        "write:drafts/ch01.md=text",
        "write:stray.md=more",
    ]);
    // The three calls have the same numbers on every architecture.
    let outcome = without(&[444, 445, 446], libc::ENOSYS, || desk.run());
    assert!(outcome.ending.is_finished(), "{:?}", outcome.ending);
    assert_eq!(
        outcome.confinement,
        Confinement::VerificationOnly {
            why: "this kernel has no Landlock".to_string()
        }
    );
    // Nothing but the look at the out folder is left: it takes what was asked for.
    assert!(desk.said("out").contains("DONE"), "{}", desk.said("out"));
    let collected = collect(&desk.assignment);
    assert_eq!(
        collected.files,
        [("drafts/ch01.md".to_string(), b"text\n".to_vec())]
    );
    assert_eq!(collected.strays, ["stray.md"]);
}
