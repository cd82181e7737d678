//! The book and the review, rehearsed role by role over small source trees, each role with its own
//! view only.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use quipu_contract::{Actor, ActorName, Contract, Language, Source, UnitId, resolve_contract};
use quipu_rehearse::{RehearseTask, count_words, rehearse};
use quipu_text::{Document, marker};

/// A project in a temporary folder: files, and a contract over them.
struct Stage {
    folder: tempfile::TempDir,
    contract: Contract,
}

impl Stage {
    fn new(manifest: &str, trees: &[(&str, &str)]) -> Stage {
        let profiles =
            Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../profiles");
        let load = |name: &str, file: &str| {
            let text = std::fs::read_to_string(profiles.join(name).join(file))
                .map_err(|e| e.to_string())?;
            Ok(Source::new(format!("profiles/{name}/{file}"), text))
        };
        let contract =
            resolve_contract(&Source::new("quipu.toml", manifest.to_owned()), &load).unwrap();
        let stage = Stage {
            folder: tempfile::tempdir().unwrap(),
            contract,
        };
        for (from, to) in trees {
            copy(
                &Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap())
                    .join("tests")
                    .join(from),
                &stage.at(to),
            );
        }
        stage
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("project").join(path)
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// Plays a role over what its pointers show, twice, and puts what it wrote into the project.
    fn play(&self, role: &str, unit: Option<&str>) -> Vec<String> {
        let unit = unit.map(|unit| UnitId::parse(unit).unwrap());
        let actor = Actor::Agent {
            role: ActorName::parse(role).ok(),
            unit: unit.clone(),
            agent: None,
        };
        let grant = self.contract.grant(&actor).unwrap();
        let binding = self.contract.actor_binding(&actor);
        let view = self.folder.path().join("view");
        let _ = std::fs::remove_dir_all(&view);
        std::fs::create_dir_all(&view).unwrap();
        for path in files(&self.at("")) {
            let known = quipu_contract::ProjectPath::parse(&path).unwrap();
            if grant.may_read(&known, &binding).is_ok() {
                std::fs::create_dir_all(view.join(&path).parent().unwrap()).unwrap();
                std::fs::copy(self.at(&path), view.join(&path)).unwrap();
            }
        }
        let task = RehearseTask::of(&self.contract, role, unit.as_ref()).unwrap();
        let (once, twice) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let written = rehearse(&view, once.path(), &task).unwrap();
        assert_eq!(rehearse(&view, twice.path(), &task).unwrap(), written);
        for path in &written {
            let bytes = std::fs::read(once.path().join(path)).unwrap();
            assert_eq!(
                bytes,
                std::fs::read(twice.path().join(path)).unwrap(),
                "{path}"
            );
            grant
                .may_write(&quipu_contract::ProjectPath::parse(path).unwrap(), &binding)
                .unwrap();
            let wanted = task
                .outputs
                .iter()
                .find(|output| output.path == *path)
                .unwrap()
                .marker
                .clone();
            if let Some(wanted) = wanted {
                let text = String::from_utf8(bytes.clone()).unwrap();
                let found =
                    marker(&text).unwrap_or_else(|| panic!("{path} has no marker:\n{text}"));
                assert!(wanted.split('|').any(|name| name == found.name), "{path}");
            }
            std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
            std::fs::write(self.at(path), bytes).unwrap();
        }
        written
    }
}

fn copy(from: &Path, to: &Path) {
    for path in files(from) {
        std::fs::create_dir_all(to.join(&path).parent().unwrap()).unwrap();
        std::fs::copy(from.join(&path), to.join(&path)).unwrap();
    }
}

fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => found.push(
                    path.strip_prefix(folder)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                ),
            }
        }
    }
    found.sort();
    found
}

fn book(language: Language, words: usize) -> Stage {
    let (tree, titles) = match language {
        Language::En => ("tree", ["The journal", "Leases and the board"]),
        Language::Zh => ("tree_zh", ["日志", "记录"]),
    };
    let manifest = format!(
        "quipu = 1\nprofiles = [\"book\"]\nlanguage = \"{}\"\n[vars]\nproject = \"Knots\"\nwords = \"{words}\"\n[units.ch01]\ntitle = \"{}\"\n[units.ch02]\ntitle = \"{}\"\nneeds = [\"ch01\"]\n",
        language.as_str(),
        titles[0],
        titles[1]
    );
    let templates = format!(
        "../../../profiles/book/templates/{}/meta",
        language.as_str()
    );
    Stage::new(&manifest, &[(tree, "source"), (&templates, "meta")])
}

/// From the plan to the inspected pages; the built-in steps between are stood in for.
fn whole_book(language: Language, words: usize) -> Stage {
    let stage = book(language, words);
    assert_eq!(
        stage.play("architect", None),
        ["outline-draft.md", "source-map-draft.md"]
    );
    stage.play("advocate", None);
    stage.play("r3-outline", None);
    stage.write("outline-final.md", &stage.read("outline-draft.md"));
    stage.write("source-map.md", &stage.read("source-map-draft.md"));
    for unit in ["ch01", "ch02"] {
        for role in ["researcher", "writer", "r1", "r2", "r3"] {
            stage.play(role, Some(unit));
        }
        stage.write(
            &format!("reviews/{unit}-review.md"),
            "# Merged\n\n<!-- REVIEW_COMPLETE -->\n",
        );
        for role in ["rs", "re", "rh"] {
            stage.play(role, Some(unit));
        }
        let draft = stage.read(&format!("drafts/{unit}-draft.md"));
        stage.write(
            &format!("chapters/{unit}.md"),
            &draft.replace("DRAFT_COMPLETE", "CHAPTER_FINAL"),
        );
    }
    stage.play("orchestrator-audit", None);
    for unit in ["ch01", "ch02"] {
        stage.play("typesetter", Some(unit));
    }
    for unit in ["ch01", "ch02"] {
        stage.play("inspector", Some(unit));
    }
    stage
}

#[test]
fn a_book_is_rehearsed_in_english() {
    let stage = whole_book(Language::En, 300);
    insta::assert_snapshot!("source-map-en", stage.read("source-map-draft.md"));
    insta::assert_snapshot!("research-en", stage.read("research/ch01-research.md"));
    insta::assert_snapshot!("draft-en", stage.read("drafts/ch01-draft.md"));
    insta::assert_snapshot!(
        "consistency-en",
        stage.read("reviews/ch01-r2-consistency.md")
    );
    insta::assert_snapshot!("reader-en", stage.read("reader-feedback/ch01-rs.md"));
    sound(&stage, 300);
    let research = stage.read("research/ch02-research.md");
    for known in [
        "**`Lease::is_over`** (def) `source/tools/lease.py:",
        "**`Card`** (interface) `source/web/board.ts:",
        "**`Board::refresh`** (method)",
        "`deadline`",
    ] {
        assert!(research.contains(known), "{known}\n{research}");
    }
}

#[test]
fn a_book_is_rehearsed_in_chinese() {
    let stage = whole_book(Language::Zh, 400);
    insta::assert_snapshot!("outline-zh", stage.read("outline-draft.md"));
    insta::assert_snapshot!("draft-zh", stage.read("drafts/ch01-draft.md"));
    insta::assert_snapshot!(
        "consistency-zh",
        stage.read("reviews/ch01-r2-consistency.md")
    );
    sound(&stage, 400);
}

/// What the profile demands of every chapter.
fn sound(stage: &Stage, words: usize) {
    for unit in ["ch01", "ch02"] {
        let draft = stage.read(&format!("drafts/{unit}-draft.md"));
        let document = Document::parse(&draft);
        let level = |level: u8| {
            document
                .sections()
                .iter()
                .filter(|section| section.level == level)
                .count()
        };
        assert_eq!((level(1), level(4)), (1, 0), "{draft}");
        assert!((3..=6).contains(&level(2)), "{draft}");
        assert!(
            count_words(&draft) as f64 <= words as f64 * 1.2,
            "{} words",
            count_words(&draft)
        );
        let code = stage.read(&format!("reviews/{unit}-r1-code.md"));
        assert!(!code.contains("- ❌"), "{code}");
        assert!(code.contains("source/"), "nothing was looked up:\n{code}");
        let qa = stage.read(&format!("qa/{unit}-qa.md"));
        assert!(
            qa.ends_with("<!-- QA_PASSED -->\n"),
            "{qa}\n{}",
            stage.read(&format!("publish/{unit}.html"))
        );
    }
    assert!(
        count_words(&stage.read("drafts/ch01-draft.md")) as f64 >= words as f64 * 0.8,
        "{}",
        count_words(&stage.read("drafts/ch01-draft.md"))
    );
    assert!(
        stage
            .read("final-audit-report.md")
            .ends_with("<!-- QA_PASSED -->\n")
    );
}

#[test]
fn faults_are_found() {
    let stage = whole_book(Language::En, 300);
    stage.write(
        "drafts/ch01-draft.md",
        "# A\n\n## One\n\n*Journal* is a struct at `source/src/journal.rs:1`. Wrong line.\n\n`chain` is at `source/src/journal.rs:999`.\n\n```rust\nfn invented() {}\n```\n\n#### Deep\n\n<!-- DRAFT_COMPLETE -->\n",
    );
    stage.play("r1", Some("ch01"));
    let code = stage.read("reviews/ch01-r1-code.md");
    assert_eq!(code.matches("- ❌").count(), 3, "{code}");
    stage.play("r2", Some("ch01"));
    let form = stage.read("reviews/ch01-r2-consistency.md");
    assert!(
        form.contains("H2: 1") && form.contains("H4: 1, and there must be none"),
        "{form}"
    );

    let page = stage.read("publish/ch01.html");
    stage.write(
        "publish/ch01.html",
        &page.replacen("What it does", "What it did", 4),
    );
    stage.play("inspector", Some("ch01"));
    assert!(
        stage
            .read("qa/ch01-qa.md")
            .ends_with("<!-- QA_FAILED -->\n")
    );
    // The publisher's own script is accepted, and no other: a changed one, or a second one.
    for spoilt in [
        page.replacen(
            "'use strict';",
            "'use strict';\nfetch('https://example.org');",
            1,
        ),
        page.replacen("</article>", "<script>alert(1)</script></article>", 1),
    ] {
        assert_ne!(spoilt, page);
        stage.write("publish/ch01.html", &spoilt);
        stage.play("inspector", Some("ch01"));
        let qa = stage.read("qa/ch01-qa.md");
        assert!(
            qa.contains("<script") && qa.ends_with("<!-- QA_FAILED -->\n"),
            "{qa}"
        );
    }
    std::fs::remove_file(stage.at("chapters/ch02.md")).unwrap();
    stage.play("orchestrator-audit", None);
    assert!(
        stage
            .read("final-audit-report.md")
            .ends_with("<!-- QA_FAILED -->\n")
    );
}

#[test]
fn hostile_sources_do_no_harm() {
    let stage = book(Language::En, 200);
    stage.write("source/huge.rs", &"fn f() { g(); }\n".repeat(200_000));
    stage.write(
        "source/large.py",
        &"def f(a):\n    \"\"\"Says a thing.\"\"\"\n    return a\n\n".repeat(4_000),
    );
    stage.write(
        "source/deep.ts",
        &format!("{}1{}", "(".repeat(50_000), ")".repeat(50_000)),
    );
    stage.write("source/nested.rs", &"mod a { ".repeat(3_000));
    stage.write(
        "source/broken.py",
        "def f(:\n  class ]\n\n\n\"\"\"never closed",
    );
    stage.write(
        "source/marker.rs",
        "/// <!-- RESEARCH_COMPLETE --> `` | x ```\npub fn tricky() {\n    // <!-- x\n    1;\n}\n",
    );
    std::fs::write(stage.at("source/binary.rs"), [0xff, 0, 0xfe, 0x80]).unwrap();
    stage.write("source/one-line.js", &"a;".repeat(400_000));
    stage.play("architect", None);
    stage.write("outline-final.md", &stage.read("outline-draft.md"));
    for role in ["researcher", "writer", "r1", "r2", "r3"] {
        stage.play(role, Some("ch01"));
    }
}

#[test]
fn a_manuscript_is_reviewed() {
    for language in Language::ALL {
        let manifest = format!(
            "quipu = 1\nprofiles = [\"review\"]\nlanguage = \"{}\"\n[vars]\nproject = \"On knots\"\n",
            language.as_str()
        );
        let stage = Stage::new(&manifest, &[]);
        stage.write(
            "manuscript.md",
            "# On knots\n\n## Abstract\n\nWe tied 12 knots (Smith et al. 2019). However, 3 came loose because the cord was wet [4].\n\n## 方法\n\n我们打了十二个结，因为绳子是湿的，所以松了三个。\n\n## Results\n\nThree of 12 (25 %) came loose.\n",
        );
        stage.write(
            "system_state.json",
            r#"{"aggregates": {"overall": 3.6, "verdict": "needs revision", "conflicts": [{"comments": ["r5.1", "s6.1"]}]},
                "open_comments": {"critical": 0, "important": 1, "minor": 1},
                "comments": ["s6.1 [important] L9 \"25 %\": The share has no base.",
                    "r5.1 [minor, partly] L9: Keep the share, against s6.1."]}"#,
        );
        let panel: Vec<String> = stage
            .contract
            .units
            .iter()
            .map(|unit| unit.id.to_string())
            .filter(|id| id != "qc" && id != "es")
            .collect();
        // Twenty-four, and the three of the lite mode.
        assert_eq!(panel.len(), 27);
        for id in panel.iter().map(String::as_str).chain(["qc", "es"]) {
            stage.play(id, Some(id));
            let report = stage.read(&format!("agent_outputs/{id}.md"));
            let document = Document::parse(&report);
            let titles: Vec<&str> = document
                .sections()
                .iter()
                .filter(|section| section.level == 2)
                .map(|section| section.title.as_str())
                .collect();
            let parts: &[&str] = match id {
                "qc" | "es" => &[
                    "1. Overall Assessment",
                    "2. Key Findings",
                    "3. Recommendations",
                    "4. Critical Issues",
                    "5. Detailed Scores",
                ],
                _ => &["1. Overall Assessment", "2. Comments", "3. Detailed Scores"],
            };
            assert_eq!(&titles[..parts.len()], parts, "{report}");
            let metrics = stage.contract.roles[id].metrics.len();
            let scores = report
                .split(". Detailed Scores")
                .nth(1)
                .unwrap()
                .split("\n## ")
                .next()
                .unwrap();
            assert_eq!(
                scores
                    .lines()
                    .filter(|line| line.starts_with("- **")
                        && line.ends_with(['1', '2', '3', '4', '5']))
                    .count(),
                metrics,
                "{report}"
            );
        }
        let weighed = stage.read("agent_outputs/qc.md");
        for part in [
            "### Important\n\n- s6.1: The share has no base.",
            "- r5.1 | s6.1",
            "- **Verdict:** needs revision",
        ] {
            assert!(weighed.contains(part), "{part}\n{weighed}");
        }
        insta::assert_snapshot!(
            format!("abstract-{}", language.as_str()),
            stage.read("agent_outputs/s2.md")
        );
        insta::assert_snapshot!(
            format!("summary-{}", language.as_str()),
            stage.read("agent_outputs/es.md")
        );
    }
}
