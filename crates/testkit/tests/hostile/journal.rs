//! Fuzzes a modified journal: no text is shown that was never committed.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use proptest::prelude::*;
use quipu_contract::{Actor, Contract};
use quipu_store::{Change, Expect, Options, Store};
use quipu_testkit::{CONTRACT, Playground, contract, mutated_bytes, temp_folder};

const FILES: [&str; 3] = ["meta/glossary.md", "drafts/ch01.md", "drafts/ch02.md"];

/// A segment after a few commits, and every text that they committed.
struct Sample {
    segment: Vec<u8>,
    texts: BTreeSet<Vec<u8>>,
}

fn sample() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let play = Playground::local();
        let store = play.open();
        let mut texts = BTreeSet::new();
        for number in 0..4 {
            let change = Change::by(&Actor::Person)
                .append(&Playground::path(FILES[0]), format!("term {number}: 词\n"))
                .write(
                    &Playground::path(FILES[1]),
                    format!("# Draft {number}\n\n{}", "line\n".repeat(40)),
                    Expect::Any,
                )
                .write(
                    &Playground::path(FILES[2]),
                    format!("第 {number} 章\n"),
                    Expect::Any,
                );
            store.validate(change).unwrap().publish().unwrap();
            texts.extend(play.files().into_values());
        }
        drop(store);
        let segment = std::fs::read(play.file(".quipu/journal/00000001.jsonl")).unwrap();
        let written = segment.iter().rposition(|byte| *byte != b'\n').unwrap() + 2;
        Sample {
            segment: segment[..written].to_vec(),
            texts,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_mutated_journal_shows_only_what_was_committed(segment in mutated_bytes(vec![sample().segment.clone()])) {
        let folder = temp_folder();
        std::fs::write(folder.path().join("quipu.toml"), CONTRACT).unwrap();
        Store::init(folder.path()).unwrap();
        std::fs::write(folder.path().join(".quipu/journal/00000001.jsonl"), &segment).unwrap();
        let rules: std::sync::Arc<Contract> = contract(CONTRACT);
        let Ok(store) = Store::open(folder.path(), rules, Options::default()) else { return Ok(()) };
        for path in FILES {
            if let Ok(Some((text, _))) = store.read(&Playground::path(path)) {
                prop_assert!(sample().texts.contains(&text), "{path}: {}", String::from_utf8_lossy(&text));
            }
        }
        let _ = (store.verify(), store.doctor(), store.scan_status());
    }
}
