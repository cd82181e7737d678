//! Recovery beside external edits: text lost in a power cut comes back, external edits stay.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use quipu_contract::Actor;
use quipu_store::{Change, Expect, Kind, Op, Options, Step, StepVerdict, Store, Watch};
use quipu_testkit::Playground;

const OLD: &str = "an older draft\n";
const NEW: &str = "first\n\nsecond\n\nthird\n";
const DRAFT: &str = "drafts/ch01.md";

fn person() -> Change {
    Change::by(&Actor::Person)
}

fn at(text: &str) -> quipu_contract::ProjectPath {
    Playground::path(text)
}

fn write(store: &Store, path: &str, text: &str) {
    store
        .validate(person().write(&at(path), text, Expect::Any))
        .unwrap()
        .publish()
        .unwrap();
}

fn append(store: &Store, path: &str, text: &str) {
    store
        .validate(person().append(&at(path), text))
        .unwrap()
        .publish()
        .unwrap();
}

fn in_boot(play: &Playground, name: &str) -> Store {
    play.open_with(Options {
        boot: Some(name.into()),
        ..Options::default()
    })
}

/// Returns when a new write gets a later file time than the earlier ones.
fn later(play: &Playground) {
    let mark = |name: &str| {
        let path = play.file(&format!(".quipu/{name}"));
        std::fs::write(&path, name).unwrap();
        let time = modified(&path);
        std::fs::remove_file(path).unwrap();
        time
    };
    let before = mark("mark");
    while mark("mark") <= before {}
}

fn modified(path: &Path) -> SystemTime {
    std::fs::metadata(path).unwrap().modified().unwrap()
}

/// Creates two versions of a draft, and a copy of the older one with its time.
fn drafted() -> Playground {
    let play = Playground::local();
    let store = in_boot(&play, "one");
    write(&store, DRAFT, OLD);
    std::fs::copy(play.file(DRAFT), play.file("backup")).unwrap();
    File::options()
        .write(true)
        .open(play.file("backup"))
        .unwrap()
        .set_modified(modified(&play.file(DRAFT)))
        .unwrap();
    later(&play);
    write(&store, DRAFT, NEW);
    later(&play);
    drop(store);
    play
}

/// An external edit of the draft, the resulting text, and whether the first command after a reboot
/// can distinguish it from a loss.
type Edit = (&'static str, fn(&Playground), Option<&'static str>, bool);

const EDITS: [Edit; 5] = [
    (
        "cut off",
        |play| play.edit(DRAFT, "first\n\nsecond\n"),
        Some("first\n\nsecond\n"),
        true,
    ),
    ("emptied", |play| play.edit(DRAFT, ""), Some(""), false),
    (
        "deleted",
        |play| std::fs::remove_file(play.file(DRAFT)).unwrap(),
        None,
        false,
    ),
    (
        "written back",
        |play| play.edit(DRAFT, OLD),
        Some(OLD),
        true,
    ),
    (
        "moved back",
        |play| std::fs::rename(play.file("backup"), play.file(DRAFT)).unwrap(),
        Some(OLD),
        false,
    ),
];

/// Checks that an apparent loss is redone, without a record of it.
fn assert_redone(play: &Playground, store: &Store, what: &str) {
    store.scan_status().unwrap();
    assert_eq!(play.text(DRAFT).as_deref(), Some(NEW), "{what}");
    assert_eq!(
        store.events(&at(DRAFT)).unwrap()[0].kind,
        Kind::Commit,
        "{what}"
    );
    assert_eq!(store.verify().unwrap().problems, [], "{what}");
}

fn assert_adopted(play: &Playground, store: &Store, left: Option<&str>, what: &str) {
    assert_eq!(play.text(DRAFT).as_deref(), left, "{what}");
    store.scan_status().unwrap();
    assert_eq!(play.text(DRAFT).as_deref(), left, "{what}");
    assert_eq!(
        store.read(&at(DRAFT)).unwrap().map(|(bytes, _)| bytes),
        left.map(|text| text.as_bytes().to_vec()),
        "{what}"
    );
    let newest = store.events(&at(DRAFT)).unwrap()[0].kind;
    assert_eq!(newest, Kind::Adopt, "{what}");
    assert_eq!(store.verify().unwrap().problems, [], "{what}");
}

#[test]
fn doctor_undoes_no_edit() {
    for (name, edit, left, is_clear) in EDITS {
        for looked_before in [true, false] {
            for (lost, boot) in [
                ("", "one"),
                ("", "two"),
                ("watermarks", "one"),
                ("watermarks", "two"),
            ] {
                let what =
                    format!("{name}, looked before: {looked_before}, lost: {lost:?}, boot {boot}");
                let play = drafted();
                if !lost.is_empty() {
                    std::fs::remove_file(play.file(&format!(".quipu/{lost}"))).unwrap();
                }
                if looked_before {
                    in_boot(&play, boot).scan_status().unwrap();
                    later(&play);
                }
                edit(&play);
                let store = in_boot(&play, boot);
                store.doctor().unwrap();
                if is_clear || looked_before || boot == "one" {
                    assert_adopted(&play, &store, left, &what);
                } else {
                    assert_redone(&play, &store, &what);
                }
            }
        }
    }
}

#[test]
fn a_look_after_a_reboot_undoes_no_edit_that_it_can_tell_from_a_loss() {
    for (name, edit, left, is_clear) in EDITS {
        let play = drafted();
        edit(&play);
        let store = in_boot(&play, "two");
        if is_clear {
            assert_adopted(&play, &store, left, name)
        } else {
            assert_redone(&play, &store, name)
        }
    }
    // A renamed file comes back under its old name, and stays under its new one.
    let play = drafted();
    std::fs::rename(play.file(DRAFT), play.file("drafts/ch02.md")).unwrap();
    assert_redone(&play, &in_boot(&play, "two"), "renamed");
    assert_eq!(play.text("drafts/ch02.md").as_deref(), Some(NEW));
    let play = drafted();
    std::fs::remove_dir_all(play.file("drafts")).unwrap();
    assert_redone(&play, &in_boot(&play, "two"), "folder removed");
    // A file that was restored after its removal stays.
    let play = drafted();
    let store = in_boot(&play, "one");
    store
        .validate(person().op(Op::Remove {
            path: at(DRAFT),
            expect: Expect::Any,
        }))
        .unwrap()
        .publish()
        .unwrap();
    drop(store);
    later(&play);
    std::fs::rename(play.file("backup"), play.file(DRAFT)).unwrap();
    assert_adopted(&play, &in_boot(&play, "two"), Some(OLD), "put back");
}

#[test]
fn with_heads_and_live_lost_nothing_is_lost_of_either() {
    for (name, edit, left, _) in EDITS {
        let play = drafted();
        for lost in ["index.db", "index.db-wal", "index.db-shm", "watermarks"] {
            let _ = std::fs::remove_file(play.file(&format!(".quipu/{lost}")));
        }
        edit(&play);
        let store = in_boot(&play, "two");
        store.scan_status().unwrap();
        let found = play.text(DRAFT);
        let kept = store
            .log(99)
            .unwrap()
            .into_iter()
            .filter(|e| e.kind == Kind::ConflictCopy);
        let kept: Vec<_> = kept
            .filter_map(|e| store.conflict_copies_of(e.seq, &at(DRAFT)).unwrap())
            .collect();
        let holds =
            |text: &str| found.as_deref() == Some(text) || kept.contains(&text.as_bytes().to_vec());
        let journalled = |text: &str| {
            store
                .events(&at(DRAFT))
                .unwrap()
                .iter()
                .any(|e| e.len == text.len() as u64)
        };
        assert!(
            left.is_none_or(|left| left.is_empty() || holds(left) || journalled(left)),
            "{name}: {found:?} {kept:?}"
        );
        assert!(holds(NEW) || journalled(NEW), "{name}");
        assert_eq!(store.verify().unwrap().problems, [], "{name}");
    }
}

/// A state of the disk before the newest write, with the file times of that moment.
#[test]
fn what_a_power_cut_took_comes_back() {
    type Cut = fn(&Playground, SystemTime);
    let keep_time = |play: &Playground, text: &[u8]| {
        let path = play.file(DRAFT);
        let time = modified(&path);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(0).unwrap();
        std::io::Write::write_all(&mut &file, text).unwrap();
        file.set_modified(time).unwrap();
    };
    let cuts: [(&str, Cut); 2] = [
        ("the file's name", |play, folder| {
            std::fs::remove_file(play.file(DRAFT)).unwrap();
            File::open(play.file("drafts"))
                .unwrap()
                .set_modified(folder)
                .unwrap();
        }),
        ("the folder's name", |play, root| {
            std::fs::remove_dir_all(play.file("drafts")).unwrap();
            File::open(play.root()).unwrap().set_modified(root).unwrap();
        }),
    ];
    for (name, cut) in cuts {
        for heads in [true, false] {
            let play = Playground::local();
            let store = in_boot(&play, "one");
            append(&store, "drafts/other.md", "x\n");
            let before = modified(&play.file("drafts")).min(modified(play.root()));
            later(&play);
            write(&store, DRAFT, NEW);
            drop(store);
            cut(&play, before);
            if !heads {
                std::fs::remove_file(play.file(".quipu/index.db")).unwrap();
            }
            in_boot(&play, "two").scan_status().unwrap();
            assert_eq!(
                play.text(DRAFT).as_deref(),
                Some(NEW),
                "{name}, heads: {heads}"
            );
        }
    }
    for text in [&b""[..], b"first\n\nse", b"first\n\0\0\0\0", b"\0\0\0\0\0"] {
        let play = drafted();
        keep_time(&play, text);
        let store = in_boot(&play, "two");
        store.scan_status().unwrap();
        assert_eq!(play.text(DRAFT).as_deref(), Some(NEW), "{text:?}");
        assert!(
            store
                .log(99)
                .unwrap()
                .iter()
                .all(|e| e.kind != Kind::ConflictCopy),
            "{text:?}"
        );
    }
}

/// An external program that saves the draft just before it is replaced or removed, and a program
/// that is killed right after.
struct KilledAfter {
    draft: std::path::PathBuf,
    dead: AtomicBool,
}

impl Watch for KilledAfter {
    fn before(&self, step: Step, _: usize) -> StepVerdict {
        match step {
            Step::Exchange | Step::Remove => std::fs::write(&self.draft, "by hand\n").unwrap(),
            Step::TakenOut => self.dead.store(true, Ordering::SeqCst),
            _ => {}
        }
        if self.dead.load(Ordering::SeqCst) {
            StepVerdict::Stop
        } else {
            StepVerdict::Go
        }
    }
}

#[test]
fn an_edit_that_a_killed_program_took_out_of_its_place_is_rescued() {
    type Make = fn() -> Change;
    let changes: [(&str, Make); 2] = [
        ("replaced", || {
            person().write(&at(DRAFT), "newest\n", Expect::Any)
        }),
        ("removed", || {
            person().op(Op::Remove {
                path: at(DRAFT),
                expect: Expect::Any,
            })
        }),
    ];
    for (name, change) in changes {
        for doctor in [false, true] {
            let what = format!("{name}, doctor: {doctor}");
            let play = drafted();
            let watch = KilledAfter {
                draft: play.file(DRAFT),
                dead: AtomicBool::new(false),
            };
            let killed = in_boot_watched(&play, watch);
            killed.validate(change()).unwrap().publish().unwrap_err();
            drop(killed);
            // This process, which left it, is still running.
            let left = std::fs::read_dir(play.file(".quipu/tmp"))
                .unwrap()
                .next()
                .unwrap()
                .unwrap();
            let name = left.file_name().into_string().unwrap();
            let (_, rest) = name.split_once('-').unwrap();
            std::fs::rename(
                left.path(),
                play.file(&format!(".quipu/tmp/4194304999-{rest}")),
            )
            .unwrap();
            let store = in_boot(&play, "one");
            let problems = store.verify().unwrap().problems;
            assert!(
                problems.iter().any(|p| p.place.contains(".quipu/tmp/")),
                "{what}: {problems:?}"
            );
            if doctor {
                let fixed = store.doctor().unwrap();
                assert!(
                    fixed
                        .iter()
                        .any(|m| m.what.contains("an edit of `drafts/ch01.md`")),
                    "{what}: {fixed:?}"
                );
            }
            let kept = store.scan_status().unwrap().kept;
            assert_eq!(kept.len(), 1, "{what}");
            assert_eq!(
                store
                    .conflict_copies_of(kept[0].seq, &at(&kept[0].path))
                    .unwrap()
                    .unwrap(),
                b"by hand\n",
                "{what}"
            );
            assert_eq!(kept[0].path, DRAFT);
            assert_eq!(
                std::fs::read_dir(play.file(".quipu/tmp")).unwrap().count(),
                0,
                "{what}"
            );
            assert_eq!(store.verify().unwrap().problems, [], "{what}");
            assert!(store.scan_status().unwrap().kept.is_empty());
        }
    }
}

fn in_boot_watched(play: &Playground, watch: impl Watch + 'static) -> Store {
    play.open_with(Options {
        boot: Some("one".into()),
        watch: Some(Arc::new(watch)),
        ..Options::default()
    })
}

#[test]
fn own_bytes_that_were_left_are_removed() {
    let play = drafted();
    for (name, text) in [
        ("4194304999-0~drafts%2Fch01.md", "first\n\nsec"),
        ("4194304999-1~drafts%2Fch01.md", OLD),
        ("4194304999-2", NEW),
    ] {
        std::fs::write(play.file(&format!(".quipu/tmp/{name}")), text).unwrap();
    }
    let store = in_boot(&play, "one");
    assert_eq!(store.verify().unwrap().problems, []);
    assert!(store.scan_status().unwrap().kept.is_empty());
    assert_eq!(
        std::fs::read_dir(play.file(".quipu/tmp")).unwrap().count(),
        0
    );
    // A file of an unknown process is kept as well.
    std::fs::write(play.file(".quipu/tmp/4194304999-3"), "by hand\n").unwrap();
    let kept = store.scan_status().unwrap().kept;
    assert_eq!(
        store
            .conflict_copies_of(kept[0].seq, &at(&kept[0].path))
            .unwrap()
            .unwrap(),
        b"by hand\n"
    );
}
