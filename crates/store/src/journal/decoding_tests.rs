//! Bounds on how much of the journal is decoded: about the size of the journal, even if one record
//! covers many files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_contract::{Actor, ProjectPath, Source, resolve_contract};

use crate::change::{Change, Expect};
use crate::history::log::At;
use crate::journal::record::DECODED;
use crate::options::Options;
use crate::store::Store;

const CONTRACT: &str = "quipu = 1\n[[files]]\npath = \"pile/**\"\nclass = \"overwrite\"\n[[files]]\npath = \"log.md\"\nclass = \"append\"\n";

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!(
        "quipu-decoding-{name}-{}",
        crate::ident::short_id()
    ));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("quipu.toml"), CONTRACT).unwrap();
    Store::init(&folder).unwrap();
    folder
}

fn open(folder: &Path) -> Store {
    let source = Source::new("quipu.toml", CONTRACT);
    let contract = Arc::new(
        resolve_contract(&source, &|name, _| Err(format!("no profile `{name}`"))).unwrap(),
    );
    Store::open(folder, contract, Options::default()).unwrap()
}

fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

/// The number of bytes of lines that some work decodes.
fn decoded<T>(work: impl FnOnce() -> T) -> usize {
    let before = DECODED.get();
    work();
    DECODED.get() - before
}

fn journal_bytes(folder: &Path) -> usize {
    let text = std::fs::read(folder.join(".quipu/journal/00000001.jsonl")).unwrap();
    text.split(|byte| *byte == b'\n')
        .map(|line| line.len() + 1)
        .filter(|length| *length > 1)
        .sum()
}

fn import(folder: &Path, count: usize) {
    let mut change = Change::by(&Actor::Person);
    for number in 0..count {
        let text = format!("{number}: {}\n", "a line of some length ".repeat(10));
        change = change.write(&path(&format!("pile/{number}.md")), text, Expect::Any);
    }
    open(folder).validate(change).unwrap().publish().unwrap();
}

#[test]
fn a_record_about_many_files_is_decoded_once_for_all_of_them() {
    let folder = folder("import");
    import(&folder, 400);
    let size = journal_bytes(&folder);
    let verified = decoded(|| assert_eq!(open(&folder).verify().unwrap().problems, []));
    assert!(verified <= 4 * size, "verify: {verified} of {size}");
    let fixed = decoded(|| drop(open(&folder).doctor().unwrap()));
    assert!(fixed <= 10 * size, "doctor: {fixed} of {size}");
    // Like `cp -r`: the same bytes with new file stats.
    for entry in std::fs::read_dir(folder.join("pile")).unwrap() {
        let file = entry.unwrap().path();
        let text = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, text).unwrap();
    }
    std::fs::remove_file(folder.join(".quipu/index.db")).unwrap();
    let compared = decoded(|| {
        assert!(
            open(&folder)
                .scan_status()
                .unwrap()
                .adopted
                .iter()
                .all(|a| a.path == "quipu.toml")
        )
    });
    assert!(compared <= 10 * size, "status: {compared} of {size}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_newest_states_are_found_without_the_older_ones() {
    let folder = folder("newest");
    let store = open(&folder);
    for number in 0..300 {
        store
            .validate(Change::by(&Actor::Person).append(&path("log.md"), format!("{number}\n")))
            .unwrap()
            .publish()
            .unwrap();
    }
    store.settle().unwrap();
    let size = journal_bytes(&folder);
    let newest =
        decoded(|| assert_eq!(store.newest_events(&path("log.md"), 20).unwrap().len(), 20));
    assert!(newest <= size / 10, "log: {newest} of {size}");
    let blamed = decoded(|| assert_eq!(store.blame(&path("log.md")).unwrap().len(), 300));
    assert!(blamed <= 2 * size, "blame: {blamed} of {size}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn any_version_is_put_together_from_a_bounded_part_of_the_journal() {
    let folder = folder("bounded");
    let store = open(&folder);
    let text = |number: usize| {
        (0..200)
            .map(|n| format!("line {n}: {}\n", if n == number % 200 { number } else { 0 }))
            .collect::<String>()
    };
    for number in 0..300 {
        let change =
            Change::by(&Actor::Person).write(&path("pile/a.md"), text(number), Expect::Any);
        store.validate(change).unwrap().publish().unwrap();
    }
    store.settle().unwrap();
    let head = store
        .index
        .open()
        .unwrap()
        .head("pile/a.md")
        .unwrap()
        .unwrap();
    let read = decoded(|| {
        assert_eq!(
            store
                .texts
                .plain_content(&path("pile/a.md"), &head)
                .unwrap(),
            text(299).into_bytes()
        )
    });
    assert!(read < 70 * 600 + 2 * text(0).len(), "{read}");
    assert_eq!(
        store.text_at(&path("pile/a.md"), &At::Seq(150)).unwrap().0,
        text(149).into_bytes()
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
