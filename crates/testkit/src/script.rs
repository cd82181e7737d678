//! Prepared texts for whole flows: a small book and a small review, as agents would write them.

use std::path::{Path, PathBuf};

/// A folder of texts that a scripted performer plays.
#[derive(Debug, Clone)]
pub struct Script {
    pub folder: PathBuf,
}

impl Script {
    pub fn put(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn remove(&self, path: &str) {
        let _ = std::fs::remove_file(self.folder.join(path));
    }

    /// Every text of a book of so many chapters.
    pub fn book(folder: &Path, chapters: usize) -> Script {
        let script = Script { folder: folder.to_owned() };
        let sections = |what: &str| (1..=chapters).map(|n| format!("\n## ch{n:02}\n\n{what} of chapter {n}.\n")).collect::<String>();
        let titled =
            (1..=chapters).map(|n| format!("\n## ch{n:02}\n\n- **Title:** Chapter {n}\n\nThe goal of chapter {n}.\n")).collect::<String>();
        script.put("outline-draft.md", &format!("# Outline\n{titled}\n<!-- ARCHITECTURE_COMPLETE -->\n"));
        let files = "| path | lines | why |\n|---|---|---|\n| `source/lib.rs` | 1-2 | it is all |\n\nThe files";
        script.put("source-map-draft.md", &format!("# Source map\n{}\n<!-- ARCHITECTURE_COMPLETE -->\n", sections(files)));
        script.put("outline-reader-feedback.md", "# Feedback\n\nGood.\n\n<!-- READER_FEEDBACK_COMPLETE -->\n");
        script.put("outline-r3-review.md", "# R3\n\n- 💡 More examples.\n\n<!-- R3_CONTENT_REVIEW_COMPLETE -->\n");
        for number in 1..=chapters {
            let unit = format!("ch{number:02}");
            script.put(&format!("research/{unit}-research.md"), &format!("# Research {unit}\n\nFacts.\n\n<!-- RESEARCH_COMPLETE -->\n"));
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
                let text = format!("# {reader}\n\n- **Depth:** {score}: fine\n\nIt worked.\n\n<!-- READER_FEEDBACK_COMPLETE -->\n");
                script.put(&format!("reader-feedback/{unit}-{reader}.md"), &text);
            }
            script.put(&format!("drafts/{unit}-revised.md"), &draft(&unit, "revised"));
            script.put(&format!("reviews/{unit}-answers.md"), "# Answers\n\n- The term: done.\n\n<!-- ANSWERS_COMPLETE -->\n");
            script.put(&format!("reviews/{unit}-r1-check.md"), "# R1\n\n## Verdict\n\npass\n\n<!-- R1_CODE_REVIEW_COMPLETE -->\n");
            script.put(&format!("reviews/{unit}-r3-check.md"), "# R3\n\n## Verdict\n\npass\n\n<!-- R3_CONTENT_REVIEW_COMPLETE -->\n");
            script.put(&format!("reviews/{unit}-r2-items.md"), &new_items(&unit, "what it is", "picture"));
            script.put(&format!("publish/{unit}.html"), &format!("<!DOCTYPE html>\n<title>{unit}</title>\n<!-- HTML_COMPLETE -->\n"));
            script.put(&format!("qa/{unit}-qa.md"), "# QA\n\nAll checks made.\n\n<!-- QA_PASSED -->\n");
        }
        script.put("final-audit-report.md", "# Audit\n\n## Verdict\n\npassed\n\n<!-- QA_PASSED -->\n");
        script
    }

    /// Every report of a review.
    pub fn review(folder: &Path, agents: &[(&str, &str, &[&str])], score: impl Fn(&str) -> u8) -> Script {
        let script = Script { folder: folder.to_owned() };
        for (id, title, metrics) in agents {
            script.put(&format!("agent_outputs/{id}.md"), &report(id, title, metrics, score(id)));
        }
        script
    }
}

/// A draft of about 120 words with the right form.
pub fn draft(unit: &str, which: &str) -> String {
    let line = format!("This is the {which} draft of {unit}, and it says one thing after the other. ");
    let part = |name: &str| format!("\n## {name}\n\n{}\n", line.repeat(2).trim_end());
    format!("# Chapter {unit}\n{}{}{}\n<!-- DRAFT_COMPLETE -->\n", part("Why"), part("How"), part("What you know now"))
}

/// What R2 wants to be remembered of a chapter.
pub fn new_items(unit: &str, definition: &str, metaphor: &str) -> String {
    format!(
        "# R2\n\n## New items\n\n### Summary\n\n**Core content:** {unit} tells one thing.\n\n\
         ### Glossary\n\n| term | definition | chapter | supersedes |\n|---|---|---|---|\n| term-{unit} | {definition} in {unit} | {unit} | |\n\n\
         ### Metaphors\n\n| concept | metaphor | chapter | limits | supersedes |\n|---|---|---|---|---|\n| concept-{unit} | {metaphor} of {unit} | {unit} | none | |\n\n\
         ### Cross-references\n\nnone\n\n<!-- R2_CONSISTENCY_REVIEW_COMPLETE -->\n"
    )
}

/// A report in the form that the panel asks for.
pub fn report(id: &str, title: &str, metrics: &[&str], score: u8) -> String {
    let scores = metrics.iter().map(|m| format!("- **{m}:** {score}\n")).collect::<String>();
    let verdict = if id == "qc" { "\n## 9. Verdict\n- **Verdict:** needs revision\n- **Reason:** So it is.\n" } else { "" };
    format!(
        "# {title} Analysis\n\n## 1. Overall Assessment\n- **Score:** {score}\n- **Confidence:** 4\n- **Summary:** {id} has read it.\n\n## 2. Key Findings\n- One.\n\n\
         ## 3. Recommendations\n- Do as {id} says.\n\n## 4. Critical Issues\n- None\n\n## 5. Detailed Scores\n{scores}{verdict}\n<!-- ANALYSIS_COMPLETE -->\n"
    )
}
