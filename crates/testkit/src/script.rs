//! Prepared texts for whole flows: a small book and a small review, as agents would write them.

use std::path::{Path, PathBuf};

/// A folder of texts that a scripted agent plays.
#[derive(Debug, Clone)]
pub struct Script {
    pub folder: PathBuf,
}

/// The required parts of the book's reports, by the ends of their paths.
const PARTS: [(&str, &[&str]); 16] = [
    ("outline-draft.md", &["Book"]),
    (
        "outline-reader-feedback.md",
        &[
            "As RS",
            "As RE",
            "As RH",
            "By chapter",
            "The path",
            "What works",
            "Three changes",
        ],
    ),
    (
        "outline-r3-review.md",
        &[
            "Verdict",
            "Findings",
            "Risks",
            "For the person who approves",
        ],
    ),
    ("-research.md", &RESEARCH_PARTS),
    (
        "-r1-code.md",
        &["Verdict", "Findings", "Verified", "Not verifiable"],
    ),
    ("-r2-consistency.md", &["Verdict", "Findings", "Form"]),
    (
        "-r3-content.md",
        &[
            "Verdict",
            "Findings",
            "Style guide, point by point",
            "Sensitivity",
        ],
    ),
    ("-answers.md", &["Must", "Should", "Wishes"]),
    (
        "-r1-check.md",
        &["Verdict", "Earlier objections", "Findings"],
    ),
    (
        "-r3-check.md",
        &["Verdict", "Earlier objections", "Findings"],
    ),
    (
        "-rs.md",
        &[
            "Scores",
            "Where I followed",
            "Where I lost the thread",
            "What it takes for granted",
            "What I would tell a friend",
            "Three wishes",
        ],
    ),
    (
        "-re.md",
        &[
            "Scores",
            "What I can use",
            "What I tried in thought",
            "What would fail in practice",
            "What I skipped",
            "Three wishes",
        ],
    ),
    (
        "-rh.md",
        &[
            "Scores",
            "New to me",
            "Where it stays on the surface",
            "Trade-offs",
            "Beyond the happy path",
            "Three wishes",
        ],
    ),
    (
        "final-audit-report.md",
        &[
            "Verdict",
            "Read-through",
            "Cross-references",
            "Terms",
            "Sensitivity",
            "To do",
        ],
    ),
    ("-qa.md", &["Verdict", "Checks", "Faults"]),
    ("-r2-items.md", &[]),
];
pub const RESEARCH_PARTS: [&str; 6] = [
    "Module overview",
    "Core data structures",
    "Core functions",
    "Execution flow",
    "Design decisions",
    "Material for the writer",
];

/// The metrics that readers score.
const METRICS: [(&str, [&str; 3]); 3] = [
    (
        "-rs.md",
        [
            "Learning curve",
            "Prior knowledge assumed",
            "Wish to read on",
        ],
    ),
    (
        "-re.md",
        ["Practical value", "Actionability", "Worth the time"],
    ),
    (
        "-rh.md",
        ["Technical depth", "Advanced use", "Trade-offs stated"],
    ),
];

/// Adds every required part to a report of the book, before its marker, so that a test contains
/// only its own subject.
fn with_parts(path: &str, text: &str) -> String {
    let path = path.trim_end_matches(".again").trim_end_matches(".round1");
    let Some((_, parts)) = PARTS.iter().find(|(end, _)| path.ends_with(end)) else {
        return text.to_owned();
    };
    let mut added = String::new();
    for part in parts
        .iter()
        .filter(|part| !text.contains(&format!("## {part}")))
    {
        added.push_str(&format!(
            "## {part}\n\nnone, and there is no more to say\n\n"
        ));
        let metrics = METRICS
            .iter()
            .filter(|(end, _)| *part == "Scores" && path.ends_with(end))
            .flat_map(|(_, metrics)| metrics);
        metrics.for_each(|metric| added.push_str(&format!("**{metric}:** 4: fine\n\n")));
    }
    match text.rfind("<!-- ") {
        Some(at) => format!("{}{added}{}", &text[..at], &text[at..]),
        None => format!("{text}\n{added}"),
    }
}

impl Script {
    /// Adds a text to the script; a report of the book gets its missing parts.
    pub fn put(&self, path: &str, text: &str) {
        self.put_bare(path, &with_parts(path, text));
    }

    /// Adds a text to the script unchanged.
    pub fn put_bare(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn remove(&self, path: &str) {
        let _ = std::fs::remove_file(self.folder.join(path));
    }

    /// Writes every text of a book of this many chapters.
    pub fn book(folder: &Path, chapters: usize) -> Script {
        let script = Script {
            folder: folder.to_owned(),
        };
        let sections = |what: &str| {
            (1..=chapters)
                .map(|n| format!("\n## ch{n:02}\n\n{what} of chapter {n}.\n"))
                .collect::<String>()
        };
        let titled = (1..=chapters)
            .map(|n| {
                format!("\n## ch{n:02}\n\n- **Title:** Chapter {n}\n\nThe goal of chapter {n}.\n")
            })
            .collect::<String>();
        script.put(
            "outline-draft.md",
            &format!("# Outline\n{titled}\n<!-- ARCHITECTURE_COMPLETE -->\n"),
        );
        let files = "| path | lines | why |\n|---|---|---|\n| `source/lib.rs` | 1-2 | it is all |\n\nThe files";
        script.put(
            "source-map-draft.md",
            &format!(
                "# Source map\n{}\n<!-- ARCHITECTURE_COMPLETE -->\n",
                sections(files)
            ),
        );
        script.put(
            "outline-reader-feedback.md",
            "# Feedback\n\nGood.\n\n<!-- READER_FEEDBACK_COMPLETE -->\n",
        );
        script.put(
            "outline-r3-review.md",
            "# R3\n\n- 💡 More examples.\n\n<!-- R3_CONTENT_REVIEW_COMPLETE -->\n",
        );
        script.put(
            "meta/style-guide.md",
            "# Style\n\n## Voice\n\n- Short sentences.\n",
        );
        for number in 1..=chapters {
            let unit = format!("ch{number:02}");
            script.put(
                &format!("research/{unit}-research.md"),
                &format!("# Research {unit}\n\nFacts.\n\n<!-- RESEARCH_COMPLETE -->\n"),
            );
            script.put(&format!("drafts/{unit}-draft.md"), &draft(&unit, "first"));
            script.put(
                &format!("reviews/{unit}-r1-code.md"),
                "# R1\n\n## Verdict\n\npass\n\n## Findings\n\n- 💡 Name the file.\n\n<!-- R1_CODE_REVIEW_COMPLETE -->\n",
            );
            script.put(
                &format!("reviews/{unit}-r2-consistency.md"),
                "# R2\n\n## Verdict\n\nfine\n\n## Findings\n\n- ⚠️ A term drifts.\n\n## Form\n\n1, 3, 0, 0\n\n<!-- R2_CONSISTENCY_REVIEW_COMPLETE -->\n",
            );
            script.put(
                &format!("reviews/{unit}-r3-content.md"),
                "# R3\n\n## Findings\n\n- ⚠️ Long opening.\n\n<!-- R3_CONTENT_REVIEW_COMPLETE -->\n",
            );
            for (reader, score) in [("rs", 3), ("re", 4), ("rh", 5)] {
                let text = format!(
                    "# {reader}\n\n- **Depth:** {score}: fine\n\nIt worked.\n\n<!-- READER_FEEDBACK_COMPLETE -->\n"
                );
                script.put(&format!("reader-feedback/{unit}-{reader}.md"), &text);
            }
            script.put(
                &format!("drafts/{unit}-revised.md"),
                &draft(&unit, "revised"),
            );
            script.put(
                &format!("reviews/{unit}-answers.md"),
                "# Answers\n\n- The term: done.\n\n<!-- ANSWERS_COMPLETE -->\n",
            );
            script.put(
                &format!("reviews/{unit}-r1-check.md"),
                "# R1\n\n## Verdict\n\npass\n\n<!-- R1_CODE_REVIEW_COMPLETE -->\n",
            );
            script.put(
                &format!("reviews/{unit}-r3-check.md"),
                "# R3\n\n## Verdict\n\npass\n\n<!-- R3_CONTENT_REVIEW_COMPLETE -->\n",
            );
            script.put(
                &format!("reviews/{unit}-r2-items.md"),
                &new_items(&unit, "what it is", "picture"),
            );
            script.put(
                &format!("publish/{unit}.html"),
                &page(&draft(&unit, "revised")),
            );
            script.put(
                &format!("qa/{unit}-qa.md"),
                "# QA\n\nAll checks made.\n\n<!-- QA_PASSED -->\n",
            );
        }
        script.put(
            "final-audit-report.md",
            "# Audit\n\n## Verdict\n\npassed\n\n<!-- QA_PASSED -->\n",
        );
        script
    }

    /// Writes every report of a review.
    pub fn review(
        folder: &Path,
        agents: &[(&str, &str, &[&str])],
        score: impl Fn(&str) -> u8,
    ) -> Script {
        let script = Script {
            folder: folder.to_owned(),
        };
        for (id, title, metrics) in agents {
            script.put(
                &format!("agent_outputs/{id}.md"),
                &report(id, title, metrics, score(id)),
            );
        }
        script
    }
}

/// Returns a draft of about 120 words in the right form.
pub fn draft(unit: &str, which: &str) -> String {
    let line =
        format!("This is the {which} draft of {unit}, and it says one thing after the other.");
    // Each chapter counts in its own words, so that no two texts are the same.
    let part = |name: &str| {
        let counted = (1..=4).map(|n| {
            format!(" {unit}{name}{n} stands before {unit}{name}{}.", n + 1)
                .to_lowercase()
                .replace("what you know now", "end")
        });
        format!("\n## {name}\n\n{line}{}\n", counted.collect::<String>())
    };
    format!(
        "# Chapter {unit}\n{}{}{}\n<!-- DRAFT_COMPLETE -->\n",
        part("Why"),
        part("How"),
        part("What you know now")
    )
}

/// Returns the minimal page of a chapter.
pub fn page(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("<!--"));
    let body = lines
        .map(|line| format!("<p>{}</p>\n", line.trim_start_matches(['#', ' '])))
        .collect::<String>();
    format!(
        "<!DOCTYPE html>\n<title>A page</title>\n<body>\n{body}</body>\n<!-- HTML_COMPLETE -->\n"
    )
}

/// Returns the new entries of a chapter that R2 proposes for memory.
pub fn new_items(unit: &str, definition: &str, metaphor: &str) -> String {
    format!(
        "# R2\n\n## New items\n\n### Summary\n\n**Core content:** {unit} tells one thing. It opens with why, goes on with how, and ends with what \
         its readers know by then. Nothing is said twice, nothing is left to guess, and whoever comes back later finds each thing in its place. \
         **Key terms:** term-{unit}. **Key metaphors:** one. **Relations:** none. **Readers now know:** the one thing.\n\n\
         ### Glossary\n\n| term | definition | chapter | supersedes |\n|---|---|---|---|\n| term-{unit} | {definition} in {unit} | {unit} | |\n\n\
         ### Metaphors\n\n| concept | metaphor | chapter | limits | supersedes |\n|---|---|---|---|---|\n| concept-{unit} | {metaphor} of {unit} | {unit} | none | |\n\n\
         ### Cross-references\n\nnone\n\n<!-- R2_CONSISTENCY_REVIEW_COMPLETE -->\n"
    )
}

/// Returns a report in the form that the panel requires, without comments.
pub fn report(id: &str, title: &str, metrics: &[&str], score: u8) -> String {
    let scores = metrics
        .iter()
        .map(|m| format!("- **{m}:** {score}\n"))
        .collect::<String>();
    let summary = match id {
        "es" => "needs revision: es has read it.".to_owned(),
        _ => format!("{id} has read it."),
    };
    let body = match id {
        "qc" | "es" => format!(
            "## 2. Key Findings\n- One.\n\n## 3. Recommendations\n- Do as {id} says.\n\n## 4. \
             Critical Issues\n- None\n\n## 5. Detailed Scores\n{scores}"
        ),
        _ => format!("## 2. Comments\n- None\n\n## 3. Detailed Scores\n{scores}"),
    };
    let verdict = match id {
        "qc" => {
            "\n## 8. Verdict\n- **Verdict:** needs revision\n- **Reason:** So it is.\n- \
             **Departure:** One page is not enough.\n"
        }
        _ => "",
    };
    format!(
        "# {title} Analysis\n\n## 1. Overall Assessment\n- **Score:** {score}\n- **Confidence:** \
         4\n- **Summary:** {summary}\n\n{body}{verdict}\n<!-- ANALYSIS_COMPLETE -->\n"
    )
}
