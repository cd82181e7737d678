//! Complete works by the built-in agent: a book from outline to pages, in both languages, with
//! kills; a review with its verdict.
//!
//! Ten kills in the ordinary test; `QUIPU_KILLS=50` for more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub struct Desk {
    _folder: TempDir,
    pub root: PathBuf,
}

impl Desk {
    pub fn lay(arguments: &[&str]) -> Desk {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory).unwrap()
        } else {
            tempfile::tempdir().unwrap()
        };
        let root = folder.path().join("project");
        std::fs::create_dir(&root).unwrap();
        let desk = Desk {
            _folder: folder,
            root,
        };
        desk.fine(arguments);
        desk
    }

    /// Creates a book of three chapters about a few files of Quipu's own source.
    pub fn book() -> Desk {
        let desk = Desk::lay(&[
            "init",
            "--profile",
            "book",
            "--var",
            "project=Quipu from Inside",
            "--var",
            "words=500",
        ]);
        for (name, path) in [
            ("path.rs", "contract/src/path.rs"),
            ("pattern.rs", "contract/src/pattern.rs"),
            ("journal.rs", "store/src/journal/segments.rs"),
            ("lease.rs", "store/src/lease/leases.rs"),
            ("lease_session.rs", "store/src/lease/session.rs"),
        ] {
            let text = std::fs::read_to_string(
                Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap())
                    .join("..")
                    .join(path),
            )
            .unwrap();
            desk.put(&format!("source/{name}"), &text);
        }
        desk.add(&["Paths and patterns", "The journal", "Leases"]);
        desk
    }

    /// Creates a book of this many chapters about the same files. Each chapter of the second half
    /// needs one of the first.
    pub fn book_of(chapters: usize) -> Desk {
        let desk = Desk::book();
        let manifest = desk.text("quipu.toml");
        let head = &manifest[..manifest.find("\n[units.").unwrap()];
        let titles = [
            "Paths and patterns",
            "The journal",
            "Leases",
            "Segments",
            "Fences",
            "Markers",
        ];
        let units = (0..chapters).map(|at| {
            let needs = if at >= chapters / 2 && chapters > 3 {
                format!("needs = [\"ch{:02}\"]\n", at - chapters / 2 + 1)
            } else {
                String::new()
            };
            format!(
                "\n[units.ch{:02}]\ntitle = \"{} {}\"\n{needs}",
                at + 1,
                titles[at % titles.len()],
                at / titles.len() + 1
            )
        });
        desk.put(
            "quipu.toml",
            &(head.to_owned() + &units.collect::<String>()),
        );
        desk
    }

    /// Like `book_of`, with the source under the contract, so that it travels with the memory.
    pub fn sourced_book_of(chapters: usize) -> Desk {
        let desk = Desk::book_of(chapters);
        let rule = "\n[[files]]\npath = \"source/**\"\nclass = \"sealed\"\n";
        desk.put("quipu.toml", &(desk.text("quipu.toml") + rule));
        desk.fine(&["status"]);
        desk
    }

    fn add(&self, titles: &[&str]) {
        let old = std::fs::read_to_string(self.root.join("quipu.toml")).unwrap();
        let units = titles.iter().enumerate().map(|(at, title)| {
            let needs = if at == 2 { "needs = [\"ch02\"]\n" } else { "" };
            format!("\n[units.ch{:02}]\ntitle = \"{title}\"\n{needs}", at + 1)
        });
        self.put("quipu.toml", &(old + &units.collect::<String>()));
    }

    pub fn put(&self, path: &str, text: &str) {
        let place = self.root.join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    }

    pub fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    pub fn quipu(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        command
            .args(arguments)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Trust records of a test must not go into the home of the user who runs it.
        command.env("XDG_STATE_HOME", self.root.with_file_name("state"));
        for name in ["QUIPU_ROLE", "QUIPU_UNIT", "QUIPU_AGENT", "QUIPU_LEASE"] {
            command.env_remove(name);
        }
        command
    }

    pub fn call(&self, arguments: &[&str]) -> (i32, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.quipu(arguments).output().unwrap();
        let said = [stdout, stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat();
        (status.code().unwrap_or(-1), said)
    }

    pub fn fine(&self, arguments: &[&str]) -> String {
        let (code, said) = self.call(arguments);
        assert_eq!(code, 0, "{arguments:?}\n{said}");
        said
    }

    /// Returns every file of the project except the store's, with its bytes.
    pub fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        tree_of(&self.root)
    }
}

/// Returns every file of a folder with its bytes, except Quipu's own.
pub fn tree_of(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if name == ".quipu" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// A deterministic pseudo-random number.
pub fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[test]
fn a_rehearsed_book_killed_at_random_moments_ends_with_the_same_tree() {
    let undisturbed = Desk::book();
    undisturbed.fine(&["run", "--by", "rehearse"]);
    undisturbed.fine(&["approve", "approve-outline"]);
    let begun = Instant::now();
    let said = undisturbed.fine(&["run", "--by", "rehearse"]);
    let whole = begun.elapsed();
    assert!(said.contains("flow: 59 done, 3 skipped"), "{said}");
    let tree = undisturbed.tree();
    for path in [
        "publish/index.html",
        "publish/style.css",
        "publish/ch01.html",
        "publish/ch03.html",
        "publish/book.epub",
        "final-audit-report.md",
        "qa/ch02-qa.md",
    ] {
        assert!(tree.contains_key(path), "{path}");
    }
    assert!(
        undisturbed
            .text("qa/ch02-qa.md")
            .trim_end()
            .ends_with("<!-- QA_PASSED -->")
    );

    let kills: u64 = std::env::var("QUIPU_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(10);
    let mut seed = 0x2545_f491_4f6c_dd1d;
    // About three kills per book: in all phases, and often in the same one.
    let longest = (u64::try_from(whole.as_millis()).unwrap() * 2 / 3).max(50);
    let mut real = 0;
    while real < kills {
        let killed = Desk::book();
        killed.fine(&["run", "--by", "rehearse"]);
        killed.fine(&["approve", "approve-outline"]);
        loop {
            let mut child = killed
                .quipu(&["run", "--by", "rehearse"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(next(&mut seed) % longest));
            if child.try_wait().unwrap().is_some() {
                break; // the book is complete
            }
            real += 1;
            child.kill().unwrap();
            child.wait().unwrap();
            if real >= kills {
                break;
            }
        }
        killed.fine(&["run", "--by", "rehearse"]);
        let left = killed.tree();
        assert_eq!(
            left.keys().collect::<Vec<_>>(),
            tree.keys().collect::<Vec<_>>()
        );
        for (path, bytes) in &tree {
            assert_eq!(
                String::from_utf8_lossy(&left[path]),
                String::from_utf8_lossy(bytes),
                "{path}"
            );
        }
        killed.fine(&["verify"]);
    }
}

#[test]
fn a_chinese_book_is_rehearsed_to_its_pages() {
    let desk = Desk::lay(&[
        "init",
        "--profile",
        "book",
        "--lang",
        "zh",
        "--var",
        "project=结绳",
        "--var",
        "words=400",
    ]);
    let tree =
        Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../rehearse/tests/tree_zh");
    let mut folders = vec![tree.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                desk.put(
                    &format!("source/{}", path.strip_prefix(&tree).unwrap().display()),
                    &text,
                );
            }
        }
    }
    desk.add(&["日志"]);
    desk.fine(&["run", "--by", "rehearse"]);
    desk.fine(&["approve", "approve-outline"]);
    let said = desk.fine(&["run", "--by", "rehearse"]);
    assert!(
        desk.text("publish/ch01.html").contains("lang=\"zh"),
        "{said}"
    );
    assert!(desk.text("publish/index.html").contains("日志"));
    assert!(desk.root.join("publish/book.epub").exists());
}

#[test]
fn a_public_domain_text_is_reviewed_to_a_verdict() {
    let text = include_str!("thoreau.md");
    for mode in ["full", "lite"] {
        let desk = Desk::lay(&[
            "init",
            "--profile",
            "review",
            "--var",
            "project=Walking",
            "--var",
            &format!("mode={mode}"),
        ]);
        desk.put("manuscript.md", text);
        let said = desk.fine(&["run", "--by", "rehearse"]);
        let status = desk.fine(&["review", "status"]);
        assert!(
            status.to_lowercase().contains("verdict"),
            "{mode}\n{said}\n{status}"
        );
        let state: serde_json::Value =
            serde_json::from_str(&desk.text("system_state.json")).unwrap();
        assert!(
            state["aggregates"]["verdict"].is_string() || state["verdict"].is_string(),
            "{state:#}"
        );
        desk.fine(&["verify"]);
    }
}

/// Rehearses every profile with a flow to its end, with a person's approval at each gate, so that
/// every declared step runs.
#[test]
fn a_novel_is_rehearsed_to_its_end_and_remembers() {
    for (language, words) in [
        (
            "en",
            [
                "Mara",
                "# The watch\n\n## The stair\n\nMara climbs because the lamp must burn.\n",
            ],
        ),
        (
            "zh",
            ["玛拉", "# 守夜\n\n## 楼梯\n\n玛拉上楼，因为灯必须亮着。\n"],
        ),
    ] {
        let [name, chapter] = words;
        let desk = Desk::lay(&[
            "init",
            "--profile",
            "novel",
            "--lang",
            language,
            "--var",
            "project=Lamp",
            "--var",
            "chapter_words=20",
        ]);
        desk.add(&["The watch", "The log"]);
        desk.put(
            "outline.md",
            "# Outline\n\n## ch01\n\nThe watch.\n\n## ch02\n\nThe log.\n",
        );
        desk.put(
            "characters.md",
            &format!("# Characters\n\n## {name}\n\n- handed: left\n"),
        );
        let run = ["run", "--by", "rehearse"];
        desk.fine(&run);
        for unit in ["ch01", "ch02"] {
            // The rehearsal drafts only a list. The author writes the chapter, with something new
            // in each.
            let chapter = if unit == "ch01" {
                chapter.to_owned()
            } else {
                chapter.replace("lamp", "bell").replace('灯', "钟")
            };
            desk.put(
                &format!("drafts/{unit}-edited.md"),
                &format!("{chapter}\n<!-- EDIT_COMPLETE -->\n"),
            );
            let said = desk.fine(&["status"]);
            assert!(said.contains("quipu approve final --unit"), "{said}");
            desk.fine(&["approve", "final", "--unit", unit]);
            desk.fine(&run);
            desk.fine(&["approve", "accept", "--unit", unit]);
            let said = desk.fine(&run);
            assert!(
                said.lines().any(|line| {
                    line.contains(&format!("remember/{unit}: "))
                        && line.contains("characters.md (+")
                }),
                "{said}"
            );
            let fact = desk.text("characters.md");
            assert!(
                fact.starts_with(&format!("# Characters\n\n## {name}\n\n- handed: left\n- ")),
                "{fact}"
            );
            assert!(
                fact.contains(&format!("[→ manuscripts/{unit}.md#")),
                "{fact}"
            );
        }
        let said = desk.fine(&["status"]);
        let (done, accepted) = match language {
            "zh" => ("流程：16 完成", "接受 0 项工作"),
            _ => ("flow: 16 done", "0 jobs accepted"),
        };
        assert!(said.contains(done), "{said}");
        let said = desk.fine(&run);
        assert!(
            said.contains(accepted),
            "what memory has grown by makes nothing stale\n{said}"
        );
        desk.fine(&["verify"]);
    }
}

/// A minimal PDF with a line of text.
fn paper(line: &str) -> String {
    let text = format!("BT /F1 12 Tf 72 720 Td ({line}) Tj ET");
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>".to_owned(),
        format!("<</Length {}>>\nstream\n{text}\nendstream", text.len()),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_owned(),
    ];
    let mut pdf = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(pdf.len());
        pdf.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let start = pdf.len();
    let rows = places
        .iter()
        .map(|place| format!("{place:010} 00000 n \n"))
        .collect::<String>();
    pdf.push_str(&format!("xref\n0 6\n0000000000 65535 f \n{rows}trailer<</Size 6/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n"));
    pdf
}

#[test]
fn a_manuscript_may_be_a_pdf() {
    let desk = Desk::lay(&["init", "--profile", "review", "--var", "project=Knots"]);
    desk.put("paper.pdf", &paper("Knots are words that stay."));
    let (code, said) = desk.call(&["write", "manuscript.md", "--file", "paper.pdf"]);
    if Command::new("pdftotext").arg("-v").output().is_ok() {
        assert_eq!(code, 0, "{said}");
        assert_eq!(desk.text("manuscript.md"), "Knots are words that stay.\n");
    } else {
        assert!(code == 7 && said.contains("pdftotext"), "{said}");
    }
}
