//! Views and briefs on a sample book of realistic size, and for every role of every profile.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use quipu_contract::{Actor, ActorName, Language, Need, Tokens, UnitId};
use quipu_protocol::{
    BriefOptions, Layout, Lexical, Library, Manifest, Project, View, ViewError, ViewRequest,
    lay_out, lay_view, make_brief, make_view, render_explanation,
};
use quipu_store::{Options, Version};
use quipu_testkit::{SampleBook, Tongue};
use quipu_text::Counter;
use tempfile::TempDir;

fn request(role: &str, unit: Option<&str>) -> ViewRequest {
    ViewRequest {
        role: ActorName::parse(role).unwrap(),
        unit: unit.map(|u| UnitId::parse(u).unwrap()),
        agent: None,
        budget: None,
        window: None,
        reserve: None,
        counter: Counter::O200k,
        language: None,
        partial: false,
    }
}

fn within(budget: u64) -> ViewRequest {
    ViewRequest {
        budget: Some(Tokens(budget)),
        ..request("writer", Some("ch10"))
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let target = root.join(path);
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    std::fs::write(target, text).unwrap();
}

fn open(root: &Path) -> Project {
    Project::open(root, Options::default()).unwrap()
}

fn layout(root: &Path, profile: &str, language: Language) {
    let vars = BTreeMap::from([("project".to_owned(), "Knots".to_owned())]);
    lay_out(
        root,
        &Layout {
            profiles: vec![profile.into()],
            language,
            vars,
            ..Layout::default()
        },
        Options::default(),
    )
    .unwrap();
}

fn sample_book(tongue: Tongue) -> (TempDir, Project) {
    let folder = tempfile::tempdir().unwrap();
    let book = SampleBook { tongue };
    for (path, text) in book.files() {
        write(folder.path(), &path, &text);
    }
    layout(
        folder.path(),
        "book",
        if tongue == Tongue::English {
            Language::En
        } else {
            Language::Zh
        },
    );
    let manifest =
        std::fs::read_to_string(folder.path().join("quipu.toml")).unwrap() + &book.units();
    std::fs::write(folder.path().join("quipu.toml"), manifest).unwrap();
    let project = open(folder.path());
    (folder, project)
}

fn whole(project: &Project) -> u64 {
    let view = make_view(project, &request("writer", Some("ch10")), &Lexical).unwrap();
    view.stages[0].tokens.0
}

/// What holds for every view, whatever its budget.
fn check(view: &View) {
    for stage in &view.stages {
        assert!(stage.tokens <= view.budget);
        let counted: Tokens = stage
            .files
            .iter()
            .map(|f| Counter::O200k.count(&f.text))
            .sum();
        assert_eq!(counted, stage.tokens, "what is shown is what was counted");
        for file in stage.files.iter().filter(|f| !f.whole) {
            assert!(
                file.text.contains("quipu read '")
                    || file.text.contains("[part ")
                    || file.text.contains("部分"),
                "the cut of {} shows",
                file.path
            );
        }
    }
    for (index, seen) in view
        .pointers
        .iter()
        .enumerate()
        .filter(|(_, p)| p.need == Need::Must)
    {
        assert!(
            view.stages
                .iter()
                .any(|s| s.files.iter().any(|f| f.pointer == index)),
            "must {} is missing",
            seen.name
        );
    }
}

#[test]
fn the_arithmetic_of_a_realistic_book() {
    let (_folder, project) = sample_book(Tongue::English);
    let view = make_view(&project, &request("writer", Some("ch10")), &Lexical).unwrap();
    check(&view);
    insta::assert_snapshot!("explain_whole", render_explanation(&view));
    let half = make_view(&project, &within(whole(&project) / 2), &Lexical).unwrap();
    check(&half);
    insta::assert_snapshot!("explain_half", render_explanation(&half));
    let staged = make_view(&project, &within(6_000), &Lexical).unwrap();
    check(&staged);
    assert_eq!(staged.stages.len(), 2);
    let ViewError::Overflow { overflow, .. } =
        make_view(&project, &within(whole(&project) / 10), &Lexical).unwrap_err()
    else {
        panic!("a tenth cannot hold the style guide and the outline");
    };
    assert_eq!(overflow.stuck[0].name, "meta/style-guide.md");
    check(&make_view(&project, &within(overflow.least.0 + 20), &Lexical).unwrap());
}

#[test]
fn the_same_in_chinese() {
    let (_folder, project) = sample_book(Tongue::Chinese);
    let half = make_view(&project, &within(whole(&project) / 2), &Lexical).unwrap();
    check(&half);
    insta::assert_snapshot!("explain_half_zh", render_explanation(&half));
}

#[test]
fn every_budget_holds_every_must_or_names_one() {
    let (_folder, project) = sample_book(Tongue::English);
    let mut refused = 0;
    for budget in (0..22_000).step_by(1_000) {
        match make_view(&project, &within(budget), &Lexical) {
            Ok(view) => check(&view),
            Err(ViewError::Overflow { overflow, .. }) => {
                assert!(!overflow.stuck.is_empty());
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(refused, 5, "refused below five thousand, and nowhere above");
}

#[test]
fn counts_are_kept_by_content_and_can_be_deleted() {
    let (folder, project) = sample_book(Tongue::English);
    let first = render_explanation(&make_view(&project, &within(9_000), &Lexical).unwrap());
    let kept = folder.path().join(".quipu/tokens/o200k");
    assert!(std::fs::read_dir(&kept).unwrap().count() > 3);
    assert_eq!(
        render_explanation(&make_view(&project, &within(9_000), &Lexical).unwrap()),
        first
    );
    std::fs::remove_dir_all(&kept).unwrap();
    assert_eq!(
        render_explanation(&make_view(&project, &within(9_000), &Lexical).unwrap()),
        first
    );
    let guessed = make_view(
        &project,
        &ViewRequest {
            counter: Counter::Estimate,
            ..within(22_000)
        },
        &Lexical,
    )
    .unwrap();
    assert_eq!(guessed.counter, "estimate");
}

/// A text for whatever a pointer names.
fn invent(name: &str) -> (String, String) {
    let (path, section) = name.split_once('#').unwrap_or((name, "part"));
    let path = path.replace("**", "sample.md").replace('*', "1");
    (
        path,
        format!(
            "# Sample\n\nA line of preface.\n\n## {section}\n\nThe first sentence. The second.\n\n## other\n\nAnother sentence.\n"
        ),
    )
}

/// Puts everything there that some role reads.
fn furnish(root: &Path, requests: &[ViewRequest]) -> Project {
    let mut before = Vec::new();
    loop {
        let project = open(root);
        let mut missing = Vec::new();
        for request in requests {
            let view = make_view(
                &project,
                &ViewRequest {
                    partial: true,
                    ..request.clone()
                },
                &Lexical,
            )
            .unwrap();
            missing.extend(view.absent.into_iter().map(|a| a.name));
        }
        if missing.is_empty() {
            return project;
        }
        assert_ne!(missing, before, "it is there, and yet missing");
        before.clone_from(&missing);
        for name in missing {
            let (path, text) = invent(&name);
            let text = if root.join(&path).exists() {
                std::fs::read_to_string(root.join(&path)).unwrap() + &text
            } else {
                text
            };
            write(root, &path, &text);
        }
    }
}

#[test]
fn every_role_of_every_profile_has_its_brief() {
    for (profile, unit, full) in [
        ("book", Some("ch02"), "writer"),
        ("novel", Some("ch02"), "writer"),
        ("relay", Some("fix-login"), "child"),
        ("worldlog", Some("t1"), "agent"),
        ("review", None, "r5"),
    ] {
        for language in Language::ALL {
            let folder = tempfile::tempdir().unwrap();
            // Sealed files cannot be put there later.
            let sealed: &[&str] = match profile {
                "book" => &["outline-final.md", "source-map.md"],
                "novel" => &["outline.md"],
                _ => &[],
            };
            for path in sealed {
                let whole = if *path == "outline-final.md" {
                    invent(&format!("{path}#Book")).1
                } else {
                    String::new()
                };
                write(
                    folder.path(),
                    path,
                    &(invent(&format!("{path}#ch02")).1 + &whole),
                );
            }
            layout(folder.path(), profile, language);
            let roles: Vec<String> = open(folder.path()).contract.roles.keys().cloned().collect();
            let agent = ActorName::parse("otto").ok();
            let requests: Vec<ViewRequest> = roles
                .iter()
                .map(|r| ViewRequest {
                    agent: agent.clone(),
                    ..request(r, unit)
                })
                .collect();
            let project = furnish(folder.path(), &requests);
            let mut index = String::new();
            for request in &requests {
                let options = BriefOptions {
                    inline: false,
                    stage: 1,
                    again: false,
                };
                let brief = make_brief(&project, request, options, &Lexical).unwrap();
                let role = &project.contract.roles[request.role.as_str()];
                let text = &brief.text;
                assert!(
                    text.contains(role.title.in_language(language)),
                    "{profile}/{}",
                    role.name
                );
                assert!(
                    !text.contains("{{") && !text.contains("{%") && !text.contains("{unit}"),
                    "{profile}/{}: {text}",
                    role.name
                );
                for standard in &role.standards {
                    assert!(
                        text.contains(standard.in_language(language)),
                        "{profile}/{}",
                        role.name
                    );
                }
                for marker in role
                    .writes
                    .iter()
                    .filter_map(|w| w.marker.as_ref())
                    .flat_map(|m| m.split('|'))
                {
                    assert!(
                        text.contains(&format!("<!-- {marker} -->")),
                        "{profile}/{} lacks {marker}",
                        role.name
                    );
                }
                let pointers: Vec<&str> = brief
                    .view
                    .pointers
                    .iter()
                    .map(|p| p.name.as_str())
                    .collect();
                index.push_str(&format!(
                    "{} {} tokens {}\n  reads {}\n",
                    role.name,
                    brief.tokens,
                    Version::of(text.as_bytes()),
                    pointers.join(", ")
                ));
                let inline = make_brief(
                    &project,
                    request,
                    BriefOptions {
                        inline: true,
                        stage: 1,
                        again: false,
                    },
                    &Lexical,
                )
                .unwrap();
                for file in &inline.view.stages[0].files {
                    // Where lines are numbered, each stands behind its number.
                    let is_there = file.text.lines().all(|line| inline.text.contains(line));
                    assert!(is_there, "{profile}/{}: {} is inline", role.name, file.path);
                }
                // Contents come before the task, so that briefs of one role share their beginning.
                let share = text
                    .bytes()
                    .zip(inline.text.bytes())
                    .take_while(|(a, b)| a == b)
                    .count();
                assert!(share > text.len() / 4, "{profile}/{}", role.name);
                if role.name == full {
                    insta::assert_snapshot!(format!("brief_{profile}_{}", language.as_str()), text);
                }
            }
            insta::assert_snapshot!(format!("briefs_{profile}_{}", language.as_str()), index);
        }
    }
    assert_eq!(
        Library::built_in().len(),
        5,
        "a new profile belongs in this test"
    );
}

const SMALL: &str = r#"quipu = 1
profiles = ["./p"]

[vars]
project = "Small"
shelf = "all"

[units.u1]
title = "Leases"
vars = { shelf = "north" }

[units.u2]
"#;

const SMALL_PROFILE: &str = r#"
[unit]
name = "unit"
id = "u#"

[[files]]
path = "log.md"
class = "append"

[[files]]
path = "notes/*.md"
class = "overwrite"

[roles.clerk]
title = "Clerk"
duty = "keeping order"

[[roles.clerk.read]]
path = "log.md"
section = "{unit}"

[[roles.clerk.read]]
path = "shelves/{shelf}.md"
need = "if-room"

[[roles.clerk.read]]
path = "notes/a.md"
why = "the first of two"

[[roles.clerk.read]]
path = "notes/*.md"
need = "if-room"

[[roles.clerk.read]]
path = "own/{unit}.md"

[[roles.clerk.write]]
path = "own/{unit}.md"

[[roles.clerk.read]]
path = "mixed/*.md"
need = "if-room"

[[roles.clerk.deny]]
path = "mixed/private.md"
why = "a wildcard yields to this"

[[roles.clerk.deny]]
path = "secret/**"
why = "not for clerks"

[roles.scribe]
title = "Scribe"
duty = "writing the log"

[[roles.scribe.write]]
path = "log.md"

[[steps]]
name = "note"
role = "scribe"
"#;

fn small() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("quipu.toml", SMALL),
        ("p/profile.toml", SMALL_PROFILE),
        (
            "log.md",
            "# Log\n\n## u1: leases\nA lease ends by itself.\n\n## u3\nNothing.\n",
        ),
        ("shelves/north.md", "North.\n"),
        ("shelves/all.md", "All.\n"),
        ("notes/a.md", "A.\n"),
        ("notes/b.md", "B.\n"),
        ("mixed/open.md", "Open.\n"),
        ("mixed/private.md", "Private.\n"),
        ("secret/x.md", "X.\n"),
        ("secret/y.md", "Y.\n"),
    ] {
        write(folder.path(), path, text);
    }
    folder
}

fn names(view: &View) -> Vec<(String, Vec<String>)> {
    let files = |p: &quipu_protocol::Seen| p.files.iter().map(ToString::to_string).collect();
    view.pointers
        .iter()
        .map(|p| (p.name.clone(), files(p)))
        .collect()
}

#[test]
fn pointers_are_resolved_with_variables_wildcards_and_sections() {
    let folder = small();
    let view = make_view(
        &open(folder.path()),
        &request("clerk", Some("u1")),
        &Lexical,
    )
    .unwrap();
    let owned = |name: &str, files: &[&str]| {
        (
            name.to_owned(),
            files.iter().map(|f| (*f).to_owned()).collect(),
        )
    };
    assert_eq!(
        names(&view),
        [
            owned("mixed/*.md", &["mixed/open.md"]),
            owned("notes/a.md", &["notes/a.md"]),
            owned("notes/*.md", &["notes/b.md"]),
            owned("log.md#u1", &["log.md"]),
            owned("shelves/north.md", &["shelves/north.md"]),
        ],
        "the unit's own shelf; of two pointers to one path the first wins; what is bound to the unit comes last"
    );
    assert_eq!(
        view.stages[0].files[3].text,
        "## u1: leases\nA lease ends by itself.\n"
    );
    assert_eq!(
        view.absent
            .iter()
            .map(|a| (a.name.as_str(), a.own))
            .collect::<Vec<_>>(),
        [("own/u1.md", true)]
    );
    assert_eq!(
        (view.denied[1].path.as_str(), view.denied[1].files),
        ("secret/**", 2)
    );
}

#[test]
fn a_must_that_is_not_there_tells_who_writes_it() {
    let folder = small();
    let project = open(folder.path());
    let error = make_view(&project, &request("clerk", Some("u2")), &Lexical).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`log.md#u2` has no section `u2`; written by step `note` (role `scribe`)"
    );
    let view = make_view(
        &project,
        &ViewRequest {
            partial: true,
            ..request("clerk", Some("u2"))
        },
        &Lexical,
    )
    .unwrap();
    assert_eq!(
        view.pointers.last().unwrap().name,
        "shelves/all.md",
        "a unit without its own value has that of the project"
    );
    let unitless = make_view(&project, &request("clerk", None), &Lexical).unwrap_err();
    assert!(
        matches!(unitless, ViewError::NeedsUnit { .. }),
        "{unitless}"
    );
}

#[test]
fn a_brief_without_a_frame_has_a_plain_one_and_a_faulty_frame_is_named() {
    let folder = small();
    let options = BriefOptions {
        inline: true,
        stage: 1,
        again: false,
    };
    let brief = make_brief(
        &open(folder.path()),
        &request("clerk", Some("u1")),
        options,
        &Lexical,
    )
    .unwrap();
    insta::assert_snapshot!("brief_plain", brief.text);
    write(
        folder.path(),
        "p/briefs/en.md",
        "You are {{ role.title }}.\n\n{{ nope }}\n",
    );
    let error = make_brief(
        &open(folder.path()),
        &request("clerk", Some("u1")),
        options,
        &Lexical,
    )
    .unwrap_err();
    assert!(
        error.to_string().starts_with("p/briefs/en.md:3: "),
        "{error}"
    );
}

/// A project of one role with these pointers, in TOML, and these files.
fn reader(pointers: &str, files: &[(&str, &str)]) -> (TempDir, Project) {
    let folder = tempfile::tempdir().unwrap();
    let role = "quipu = 1\nprofiles = [\"./p\"]\n\n[roles.reader]\ntitle = \"Reader\"\nduty = \"reading\"\n";
    write(folder.path(), "quipu.toml", &format!("{role}{pointers}"));
    write(folder.path(), "p/profile.toml", "");
    files
        .iter()
        .for_each(|(path, text)| write(folder.path(), path, text));
    let project = open(folder.path());
    (folder, project)
}

fn pointer(keys: &str) -> String {
    format!("\n[[roles.reader.read]]\n{keys}\n")
}

fn brief(project: &Project, request: &ViewRequest) -> String {
    make_brief(
        project,
        request,
        BriefOptions {
            inline: false,
            stage: 1,
            again: false,
        },
        &Lexical,
    )
    .unwrap()
    .text
}

#[test]
fn files_of_a_wildcard_that_had_no_room_are_named() {
    let text = |n: usize| {
        format!(
            "# Note {n}\n\n{}\n",
            format!("Word {n} of a note. ").repeat(40)
        )
    };
    let files: Vec<(String, String)> = (1..=30)
        .map(|n| (format!("notes/n{n:02}.md"), text(n)))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    for (need, budget, count) in [
        ("must", 1_500, 6),
        ("must", 700, 30),
        ("if-room", 700, 30),
        ("if-room", 20, 6),
    ] {
        let keys = format!("path = \"notes/*.md\"\nneed = \"{need}\"\nshrink = \"relevant\"");
        let (folder, project) = reader(&pointer(&keys), &files[..count]);
        let request = ViewRequest {
            budget: Some(Tokens(budget)),
            ..request("reader", None)
        };
        let view = make_view(&project, &request, &Lexical).unwrap();
        let shown: Vec<&str> = view.stages[0]
            .files
            .iter()
            .map(|f| f.path.as_str())
            .collect();
        let hidden: Vec<&str> = files[..count]
            .iter()
            .map(|(path, _)| *path)
            .filter(|path| !shown.contains(path))
            .collect();
        assert!(
            !hidden.is_empty(),
            "{budget} is too much for a test of cuts"
        );
        assert_eq!(view.pointers[0].left_out, hidden);
        let told = brief(&project, &request);
        let explained = render_explanation(&view);
        for (number, path) in hidden.iter().enumerate() {
            assert_eq!(
                told.contains(&format!("quipu read '{path}'")),
                number < 20,
                "{path} in {told}"
            );
            assert!(
                explained.contains(&format!("\n  {path}\n")),
                "{path} in {explained}"
            );
        }
        let more = hidden.len().saturating_sub(20);
        assert_eq!(
            told.contains(&format!("{more} more files not in this view")),
            more > 0,
            "{told}"
        );
        assert!(
            !told.contains("quipu read 'notes/*.md'"),
            "no one can read a wildcard: {told}"
        );
        let out = folder.path().join("out");
        lay_view(&project, &Actor::Person, &view, &out).unwrap();
        let manifest: Manifest =
            serde_json::from_str(&std::fs::read_to_string(out.join(".quipu-view.json")).unwrap())
                .unwrap();
        assert_eq!(manifest.trimmed, hidden);
    }
}

#[test]
fn a_brief_calls_a_file_with_a_number_sign_by_its_name() {
    let text = "# Tips\n\n## ch01\n\nOne.\n";
    for (keys, named) in [
        ("path = \"notes/C#-tips.md\"", "notes/C#-tips.md"),
        ("path = \"notes/*.md\"", "notes/C#-tips.md"),
    ] {
        let (_folder, project) = reader(&pointer(keys), &[("notes/C#-tips.md", text)]);
        let told = brief(&project, &request("reader", None));
        assert!(
            told.contains(named) && !told.contains("tips.md#") && !told.contains("#-tips.md#-tips"),
            "{told}"
        );
    }
    let (_folder, project) = reader(
        &pointer("path = \"notes/C#-tips.md\"\nsection = \"ch01\""),
        &[("notes/C#-tips.md", text)],
    );
    let told = brief(&project, &request("reader", None));
    assert!(told.contains("notes/C#-tips.md#ch01"), "{told}");
}

#[test]
fn a_must_is_never_covered_by_less_than_it_names() {
    let outline = "# Outline\n\n## ch01\n\nOne.\n\n## ch02\n\nTwo.\n";
    let files = [("outline.md", outline), ("notes/a.md", "A.\n")];
    let (whole, section) = (
        "path = \"outline.md\"",
        "path = \"outline.md\"\nsection = \"ch01\"",
    );
    let optional = |keys: &str| format!("{keys}\nneed = \"if-room\"");
    let seen = |pointers: &[String]| {
        let (_folder, project) = reader(
            &pointers.iter().map(|p| pointer(p)).collect::<String>(),
            &files,
        );
        let view = make_view(&project, &request("reader", None), &Lexical).unwrap();
        let shown: Vec<(String, Need)> = view
            .pointers
            .iter()
            .map(|p| (p.name.clone(), p.need))
            .collect();
        (
            shown,
            view.repeated
                .iter()
                .map(|r| r.name.clone())
                .collect::<Vec<_>>(),
            render_explanation(&view),
        )
    };
    let (shown, repeated, explained) = seen(&[section.to_owned(), whole.to_owned()]);
    assert_eq!(
        shown,
        [("outline.md".to_owned(), Need::Must)],
        "the whole takes the section in"
    );
    assert_eq!(repeated, ["outline.md#ch01"]);
    assert!(
        explained.contains("outline.md#ch01 (must): outline.md"),
        "{explained}"
    );
    let (shown, repeated, _) = seen(&[optional(whole), section.to_owned()]);
    assert_eq!(
        shown,
        [
            ("outline.md".to_owned(), Need::IfRoom),
            ("outline.md#ch01".to_owned(), Need::Must)
        ],
        "neither stands for the other: one may be cut, the other shows less"
    );
    assert!(repeated.is_empty(), "{repeated:?}");
    let (shown, ..) = seen(&[
        optional("path = \"notes/*.md\""),
        "path = \"notes/a.md\"".to_owned(),
    ]);
    assert_eq!(shown, [("notes/a.md".to_owned(), Need::Must)]);
}

#[test]
fn counts_belong_to_a_text_and_to_how_it_is_cut() {
    let log: String = (1..=10)
        .map(|n| {
            format!(
                "## day {n}\n\nIt rained. {}\n\n",
                "More was said of it. ".repeat(30)
            )
        })
        .collect();
    let files = [("log.md", log.as_str()), ("log.log", log.as_str())];
    let keys = |path: &str| pointer(&format!("path = \"{path}\"\nshrink = \"recent(2)\""));
    let request = ViewRequest {
        budget: Some(Tokens(700)),
        ..request("reader", None)
    };
    let view =
        |project: &Project| render_explanation(&make_view(project, &request, &Lexical).unwrap());
    let fresh = view(&reader(&keys("log.md"), &files).1);
    let (folder, project) = reader(&keys("log.log"), &files);
    view(&project);
    let manifest = std::fs::read_to_string(folder.path().join("quipu.toml")).unwrap();
    write(
        folder.path(),
        "quipu.toml",
        &manifest.replace("log.log", "log.md"),
    );
    assert_eq!(
        view(&open(folder.path())),
        fresh,
        "what was looked at before decides nothing"
    );
}

#[test]
fn a_frame_that_is_no_text_is_not_replaced_by_another() {
    let (folder, project) = reader(&pointer("path = \"a.md\""), &[("a.md", "A.\n")]);
    for (file, bytes) in [
        ("p/briefs/en.md", &b"You are {{ role.title }}.\xff\n"[..]),
        ("p/briefs/en/reader.md", b"Caf\xe9\n"),
    ] {
        write(folder.path(), file, "");
        std::fs::write(folder.path().join(file), bytes).unwrap();
        let error = make_brief(
            &project,
            &request("reader", None),
            BriefOptions {
                inline: false,
                stage: 1,
                again: false,
            },
            &Lexical,
        )
        .unwrap_err();
        assert_eq!(error.to_string(), format!("`{file}` is not UTF-8"));
        std::fs::remove_file(folder.path().join(file)).unwrap();
    }
    assert!(
        brief(&project, &request("reader", None)).contains("Reader"),
        "without one, there is the plain one"
    );
}

#[test]
fn a_link_is_told_as_one_and_stops_only_what_must_have_it() {
    let keys = |need: &str| {
        pointer("path = \"a.md\"") + &pointer(&format!("path = \"link.md\"\nneed = \"{need}\""))
    };
    let linked = |need: &str| {
        let (folder, _) = reader(&keys(need), &[("a.md", "A.\n")]);
        std::os::unix::fs::symlink("a.md", folder.path().join("link.md")).unwrap();
        let project = open(folder.path());
        (folder, project)
    };
    let view = make_view(&linked("if-room").1, &request("reader", None), &Lexical).unwrap();
    assert_eq!(view.stages[0].files.len(), 1);
    assert_eq!(
        (view.absent[0].name.as_str(), view.absent[0].what.as_str()),
        ("link.md", "is a link or a folder, not a file")
    );
    let error = make_view(&linked("must").1, &request("reader", None), &Lexical).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`link.md` is a link or a folder, not a file"
    );
}
