//! A program that accesses files outside its folders, through `quipu run` in a real project. The
//! kernel refuses, the record lists it, and `quipu replay` shows it.

use crate::rehearsal::Desk;

/// Reads a file denied to its role, another chapter's draft and the journal; writes a sealed file
/// and an undeclared one; then does its work normally.
fn reach(root: &str) -> String {
    let parts = quipu_testkit::RESEARCH_PARTS
        .map(|part| format!("## {part}\\n\\nNothing but what the view holds.\\n\\n"))
        .concat();
    let report = format!("# Research\\n\\n{parts}<!-- RESEARCH_COMPLETE -->\\n");
    format!(
        "command:sh -c 'cat \"{root}/reviews/ch01-review.md\"; cat \"{root}/drafts/ch02-draft.md\"; cat \"{root}\"/.quipu/journal/*; \
         ls \"{root}/.quipu/journal\"; echo mine >> \"{root}/outline-final.md\"; echo more > \"$QUIPU_OUT/stray.md\"; mkdir -p \"$QUIPU_OUT/research\"; \
         printf \"{report}\" > \"$QUIPU_OUT/research/ch01-research.md\"'"
    )
}

#[test]
fn what_an_agent_reaches_for_is_refused_and_told() {
    let desk = Desk::book();
    desk.fine(&["run", "--by", "rehearse"]);
    desk.fine(&["approve", "approve-outline"]);
    desk.fine(&["run", "--by", "rehearse", "--until", "merge-reviews"]);
    let root = std::fs::canonicalize(&desk.root).unwrap();
    let outline = desk.text("outline-final.md");
    let said = desk.fine(&[
        "run",
        "--by",
        &reach(root.to_str().unwrap()),
        "--step",
        "research",
        "--unit",
        "ch01",
        "--again",
    ]);
    assert!(
        desk.text("research/ch01-research.md")
            .contains("Nothing but what the view holds."),
        "{said}"
    );
    let told = desk.fine(&["replay", "research/ch01"]);
    assert!(told.contains("dropped stray.md"), "{told}");
    assert_eq!(desk.text("outline-final.md"), outline);
    assert!(told.contains("held by the kernel (Landlock"), "{told}");
    for refused in [
        "read reviews/ch01-review.md by cat",
        "read drafts/ch02-draft.md by cat",
        ".quipu/journal",
        "write outline-final.md by ",
    ] {
        assert!(
            told.lines()
                .any(|line| line.contains("denied") && line.contains(refused)),
            "{refused}\n{told}"
        );
        assert!(
            said.lines()
                .any(|line| line.starts_with("denied") && line.contains(refused)),
            "{refused}\n{said}"
        );
    }
    assert!(!desk.text("research/ch01-research.md").contains("review"));
    desk.fine(&["verify"]);
}

/// Without Landlock, Quipu reports that confinement is missing. Undeclared outputs are still
/// dropped, and the next scan finds external edits by the agent.
#[cfg(target_os = "linux")]
#[test]
fn without_the_kernel_s_help_it_is_said_and_what_was_written_is_verified() {
    let desk = Desk::book();
    desk.fine(&["run", "--by", "rehearse"]);
    desk.fine(&["approve", "approve-outline"]);
    desk.fine(&["run", "--by", "rehearse", "--step", "style"]);
    let root = std::fs::canonicalize(&desk.root).unwrap();
    let agent = reach(root.to_str().unwrap());
    let run = [
        "run", "--by", &agent, "--step", "research", "--unit", "ch01",
    ];
    let (code, said) = without_landlock(|| desk.call(&run));
    assert_eq!(code, 0, "{said}");
    let warning = "verification only for research/ch01: this kernel has no Landlock; its output is checked, but its reads are not restricted";
    assert_eq!(said.matches(warning).count(), 1, "{said}");
    assert!(
        said.contains("dropped, because the step does not ask for them: stray.md"),
        "{said}"
    );
    assert!(!desk.root.join("stray.md").exists());
    let told = desk.fine(&["replay", "research/ch01"]);
    assert!(
        told.contains("held by verification only: this kernel has no Landlock")
            && told.contains("dropped stray.md"),
        "{told}"
    );
    // The agent could write the sealed outline. That is flagged and reverted.
    assert!(desk.text("outline-final.md").ends_with("mine\n"));
    let (code, status) = desk.call(&["status"]);
    assert!(code == 1 && status.contains("outline-final.md"), "{status}");
    desk.fine(&["restore", "outline-final.md"]);
    assert!(!desk.text("outline-final.md").contains("mine\n"));
    desk.fine(&["verify"]);
}

/// Runs `work` in a thread with a seccomp filter that hides Landlock; child processes inherit it.
#[cfg(target_os = "linux")]
fn without_landlock<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    // The three system calls have the same numbers on every architecture; 38 is ENOSYS.
    let calls = [444, 445, 446].map(|number| (number, Vec::new()));
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(
        calls.into(),
        SeccompAction::Allow,
        SeccompAction::Errno(38),
        arch,
    )
    .unwrap();
    let filter: BpfProgram = filter.try_into().unwrap();
    std::thread::scope(|scope| {
        let limited = scope.spawn(|| {
            seccompiler::apply_filter(&filter).unwrap();
            work()
        });
        limited.join().unwrap()
    })
}

#[test]
fn an_agent_of_the_manifest_is_known_and_a_program_that_is_not_there_fails() {
    let desk = Desk::book();
    let manifest = desk.text("quipu.toml");
    desk.put(
        "quipu.toml",
        &format!("{manifest}\n[agents.mine]\nvia = \"command\"\nprogram = \"no-such-program-here\"\nargs = [\"{{{{brief}}}}\"]\n"),
    );
    desk.fine(&["trust", "--yes"]);
    let (code, said) = desk.call(&["run", "--by", "mine", "--until", "outline"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("agent `mine` cannot start"), "{said}");
    assert!(!said.contains("failed "), "no attempt was counted: {said}");
    let (code, said) = desk.call(&["run", "--by", "nobody"]);
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("unknown agent `nobody`"), "{said}");
}
