//! A program that reaches beyond its folders, through `quipu run` in a real project: the kernel refuses, the record says so,
//! and `quipu replay` shows it.

use crate::rehearsed::Desk;

/// Reads a file that its role is denied, another chapter's draft and the journal, writes a sealed file and one that nobody
/// asked for; then does its work as if nothing had been.
fn reach(root: &str) -> String {
    let report = "# Research\\n\\nNothing but what the view holds.\\n\\n<!-- RESEARCH_COMPLETE -->\\n";
    format!(
        "command:sh -c 'cat \"{root}/reviews/ch01-review.md\"; cat \"{root}/drafts/ch02-draft.md\"; cat \"{root}\"/.quipu/journal/*; \
         ls \"{root}/.quipu/journal\"; echo mine >> \"{root}/outline-final.md\"; echo more > \"$QUIPU_OUT/stray.md\"; mkdir -p \"$QUIPU_OUT/research\"; \
         printf \"{report}\" > \"$QUIPU_OUT/research/ch01-research.md\"'"
    )
}

#[test]
fn what_an_agent_reaches_for_is_refused_and_told() {
    let desk = Desk::book();
    desk.fine(&["run", "--agent", "rehearse"]);
    desk.fine(&["approve", "approve-outline"]);
    desk.fine(&["run", "--agent", "rehearse", "--until", "merge-reviews"]);
    let root = std::fs::canonicalize(&desk.root).unwrap();
    let outline = desk.text("outline-final.md");
    let said = desk.fine(&["run", "--agent", &reach(root.to_str().unwrap()), "--step", "research", "--unit", "ch01", "--again"]);
    assert!(desk.text("research/ch01-research.md").contains("Nothing but what the view holds."), "{said}");
    let told = desk.fine(&["replay", "research/ch01"]);
    assert!(told.contains("dropped stray.md"), "{told}");
    if told.contains("verification only") {
        // The kernel has no Landlock: it says so, and what was written behind its back is found.
        assert!(said.contains("verification only"), "{said}");
        return;
    }
    assert_eq!(desk.text("outline-final.md"), outline);
    assert!(told.contains("held by the kernel (Landlock"), "{told}");
    for refused in
        ["read reviews/ch01-review.md by cat", "read drafts/ch02-draft.md by cat", ".quipu/journal", "write outline-final.md by "]
    {
        assert!(told.lines().any(|line| line.contains("denied") && line.contains(refused)), "{refused}\n{told}");
        assert!(said.lines().any(|line| line.starts_with("denied") && line.contains(refused)), "{refused}\n{said}");
    }
    assert!(!desk.text("research/ch01-research.md").contains("review"));
    desk.fine(&["verify"]);
}

#[test]
fn an_agent_of_the_manifest_is_known_and_a_program_that_is_not_there_fails() {
    let desk = Desk::book();
    let manifest = desk.text("quipu.toml");
    desk.put(
        "quipu.toml",
        &format!("{manifest}\n[agents.mine]\nvia = \"command\"\nprogram = \"no-such-program-here\"\nargs = [\"{{{{brief}}}}\"]\n"),
    );
    let (code, said) = desk.call(&["run", "--agent", "mine", "--until", "outline"]);
    assert_eq!(code, 6, "{said}");
    assert!(said.contains("could not start"), "{said}");
    let (code, said) = desk.call(&["run", "--agent", "nobody"]);
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("there is no agent `nobody`"), "{said}");
}
