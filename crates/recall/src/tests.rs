//! Tests of recall as a whole: it finds sections, handles damage and concurrent writers, and gives
//! answers that do not depend on the history of the index.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;

fn section(line: u32, heading: &str, text: &str) -> Section {
    Section {
        line,
        heading_path: vec![heading.to_owned()],
        text: text.to_owned(),
    }
}

fn file(path: &str, version: &str, texts: &[&str]) -> FileText {
    let sections = (1..)
        .zip(texts)
        .map(|(line, text)| section(line, "Notes", text))
        .collect();
    FileText {
        path: path.into(),
        version: version.into(),
        tier: Tier::L1,
        sections,
    }
}

/// A dialogue of two speakers, whose turns are understood from their neighbours.
fn dialogue(path: &str, version: &str, texts: &[&str]) -> FileText {
    let mut file = file(path, version, texts);
    for (section, speaker) in file.sections.iter_mut().zip(["Ann", "Ben"].iter().cycle()) {
        section.heading_path = vec![(*speaker).to_owned()];
    }
    file
}

fn words() -> Options<'static> {
    Options {
        use_model: false,
        ..Options::default()
    }
}

/// Publishes files without the encoder, which is slow in a test build.
fn publish(writer: Writer, files: &[FileText]) -> Receipt {
    let mut writer = writer;
    writer.encode_at_most(0);
    for file in files {
        writer.replace(file).unwrap();
    }
    writer.publish().unwrap()
}

fn paths(answer: &Answer) -> Vec<(String, u32)> {
    answer
        .hits
        .iter()
        .map(|hit| (hit.path.clone(), hit.ordinal))
        .collect()
}

fn library(folder: &Path) -> Vec<FileText> {
    let files = vec![
        file(
            "a.md",
            "1",
            &[
                "The lighthouse keeper bought a red boat.",
                "Nothing happened.",
            ],
        ),
        file(
            "b.md",
            "1",
            &["广茂铁路全长364公里。", "他在上海学习建筑。"],
        ),
        file(
            "c.md",
            "1",
            &["Quipu 的 index 可以删除。", "Ships sail in spring."],
        ),
    ];
    publish(Writer::create(folder).unwrap(), &files);
    files
}

#[test]
fn finds_english_chinese_and_mixed() {
    let home = tempfile::tempdir().unwrap();
    library(home.path());
    let index = Index::open(home.path()).unwrap();
    for (question, path, ordinal) in [
        ("Who buys red boats?", "a.md", 0),
        ("铁路有多长？", "b.md", 0),
        ("建筑", "b.md", 1),
        ("删除 index", "c.md", 0),
    ] {
        let answer = index.recall(question, &words()).unwrap();
        assert_eq!(paths(&answer)[0], (path.to_owned(), ordinal), "{question}");
    }
    let hit = &index.recall("lighthouse", &words()).unwrap().hits[0];
    assert_eq!(
        (hit.line, hit.tier, hit.version.as_str()),
        (1, Tier::L1, "1")
    );
    assert!(hit.snippet.contains("lighthouse"));
    assert!(index.recall("zebra", &words()).unwrap().hits.is_empty());
}

#[test]
fn more_may_be_asked_for_than_there_is() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let index = Index::open(folder.path()).unwrap();
    for use_model in [false, true] {
        let ask = |k| {
            index
                .recall(
                    "red boats in spring",
                    &Options {
                        k,
                        use_model,
                        ..Options::default()
                    },
                )
                .unwrap()
        };
        let all = ask(1_000);
        assert!(!all.hits.is_empty());
        for k in [1 << 62, 1 << 63, usize::MAX] {
            assert_eq!(ask(k), all);
        }
    }
}

#[test]
fn hidden_files_change_nothing() {
    let (all, some) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = library(all.path());
    publish(Writer::create(some.path()).unwrap(), &files[..2]);
    let visible = |path: &str, _: Tier| path != "c.md";
    let options = Options {
        visible: Some(&visible),
        ..words()
    };
    for question in ["index spring 铁路", "boat", "nothing happened"] {
        let seen = Index::open(all.path())
            .unwrap()
            .recall(question, &options)
            .unwrap();
        let alone = Index::open(some.path())
            .unwrap()
            .recall(question, &words())
            .unwrap();
        assert_eq!(seen, alone);
    }
}

#[test]
fn growth_keeps_what_was_there() {
    let home = tempfile::tempdir().unwrap();
    library(home.path());
    let grown = file(
        "a.md",
        "2",
        &[
            "The lighthouse keeper bought a red boat.",
            "Nothing happened.",
            "Then a whale came.",
        ],
    );
    let receipt = publish(
        Writer::open(home.path()).unwrap(),
        std::slice::from_ref(&grown),
    );
    assert_eq!((receipt.kept, receipt.indexed), (2, 1));
    let index = Index::open(home.path()).unwrap();
    assert_eq!(index.version("a.md"), Some("2"));
    let whale = index.recall("whale", &words()).unwrap();
    assert_eq!(paths(&whale)[0], ("a.md".to_owned(), 2));
    let shorter = file("a.md", "3", &["Nothing happened."]);
    publish(Writer::open(home.path()).unwrap(), &[shorter]);
    let index = Index::open(home.path()).unwrap();
    assert!(
        index
            .recall("whale lighthouse", &words())
            .unwrap()
            .hits
            .is_empty()
    );
}

#[test]
fn fresh_text_is_searched_before_it_is_indexed() {
    let home = tempfile::tempdir().unwrap();
    library(home.path());
    let fresh = file("a.md", "2", &["The keeper sold the boat.", "A whale came."]);
    let overlay = Overlay::new(std::slice::from_ref(&fresh), &["c.md".to_owned()]).unwrap();
    let before = Index::open(home.path()).unwrap();
    let mut writer = Writer::open(home.path()).unwrap();
    writer.remove("c.md");
    publish(writer, &[fresh]);
    let after = Index::open(home.path()).unwrap();
    for question in ["lighthouse", "whale", "boat", "spring index 铁路"] {
        let laid_over = before.recall_with(&overlay, question, &words()).unwrap();
        assert_eq!(
            laid_over,
            after.recall(question, &words()).unwrap(),
            "{question}"
        );
    }
}

#[test]
fn a_missing_index_says_so() {
    let home = tempfile::tempdir().unwrap();
    let error = Index::open(&home.path().join("none")).unwrap_err();
    assert!(matches!(error, Error::Missing(_)) && error.needs_rebuild());
}

#[test]
fn every_damaged_byte_is_noticed_or_harmless() {
    let home = tempfile::tempdir().unwrap();
    let files = library(home.path());
    let questions = ["red boat 铁路", "index spring"];
    let ask = || -> Result<Vec<Answer>, Error> {
        let index = Index::open(home.path())?;
        questions
            .iter()
            .map(|question| index.recall(question, &words()))
            .collect()
    };
    let right = ask().unwrap();
    for name in ["manifest", "00000000.seg"] {
        let path = home.path().join(name);
        let bytes = fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(7) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            fs::write(&path, &bad).unwrap();
            match ask() {
                Ok(answers) => assert_eq!(answers, right, "{name} byte {at}"),
                Err(error) => assert!(error.needs_rebuild(), "{name} byte {at}: {error}"),
            }
        }
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(ask().unwrap_err().needs_rebuild());
        fs::remove_file(&path).unwrap();
        assert!(ask().unwrap_err().needs_rebuild());
        publish(Writer::create(home.path()).unwrap(), &files);
        assert_eq!(ask().unwrap(), right, "rebuilt after {name}");
        if name == "manifest" {
            // The rebuilt segment has a new name. Start over, so that it has the name that the loop
            // expects.
            fs::remove_dir_all(home.path()).unwrap();
            publish(Writer::create(home.path()).unwrap(), &files);
        }
    }
}

#[test]
fn readers_see_whole_updates_while_a_writer_works() {
    let home = tempfile::tempdir().unwrap();
    let texts = |round: usize| {
        [
            format!("whale number {round}"),
            format!("boat number {round}"),
        ]
    };
    let write = |round: usize| {
        let [a, b] = texts(round);
        let files = [
            file("a.md", &round.to_string(), &[&a]),
            file("b.md", &round.to_string(), &[&b]),
        ];
        let writer = match round {
            0 => Writer::create(home.path()),
            _ => Writer::open(home.path()),
        };
        publish(writer.unwrap(), &files);
    };
    write(0);
    std::thread::scope(|threads| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                threads.spawn(|| {
                    let mut last = 0;
                    while last < 40 {
                        let index = Index::open(home.path()).unwrap();
                        let versions: Vec<_> = index
                            .files()
                            .map(|(_, version, _)| version.to_owned())
                            .collect();
                        assert_eq!(versions[0], versions[1], "half an update");
                        let answer = index.recall("whale boat", &words()).unwrap();
                        assert_eq!(answer.hits.len(), 2);
                        let now = versions[0].parse().unwrap();
                        assert!(now >= last);
                        last = now;
                    }
                })
            })
            .collect();
        (1..=40).for_each(write);
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn the_encoder_finds_other_words() {
    let home = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(home.path()).unwrap();
    writer
        .replace(&file(
            "a.md",
            "1",
            &["The feline is asleep.", "Shares fell."],
        ))
        .unwrap();
    let receipt = writer.publish().unwrap();
    assert_eq!(receipt.unencoded, 0);
    let index = Index::open(home.path()).unwrap();
    let answer = index.recall("猫在睡觉", &Options::default()).unwrap();
    assert_eq!((answer.encoded, paths(&answer)[0].1), (2, 0));
    assert!(index.recall("猫在睡觉", &words()).unwrap().hits.is_empty());
}

/// Updates in pieces: files grow, shrink, reorder their sections and are deleted, and a few
/// sections at a time are encoded. Once all are encoded, the answers match those of a rebuilt index
/// exactly, including every score.
#[test]
fn a_rebuilt_index_answers_the_same_with_the_encoder() {
    const TEXTS: [&str; 9] = [
        "The feline is asleep on the warm stones.",
        "Shares fell on Monday. Nobody knew why.",
        "铁路从广州通到茂名。它有三百多公里长。",
        "Who fed the cat?",
        "Grandmother did, before the train left. She took the early one, as she always had, and sat by the window. \
         The conductor knew her. He had known her husband, who had built the bridge that they were crossing now.",
        "租约会自己结束。",
        "In May 2023 the bridge was repaired.",
        "A lease ends by itself unless it is renewed.",
        "猫在石头上睡觉。",
    ];
    let pick = |numbers: &[usize]| {
        numbers
            .iter()
            .map(|number| TEXTS[*number])
            .collect::<Vec<_>>()
    };
    let (grown, anew) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let rounds: [&[(&str, &[usize])]; 4] = [
        &[
            ("a.md", &[0, 1]),
            ("b.md", &[2, 3, 4]),
            ("gone.md", &[5, 6]),
        ],
        &[("a.md", &[0, 1, 7]), ("c.md", &[8])],
        &[("b.md", &[4, 2]), ("a.md", &[7, 0])],
        &[("c.md", &[8, 5, 6]), ("a.md", &[7, 0, 3, 1])],
    ];
    publish(Writer::create(grown.path()).unwrap(), &[]);
    let mut truth = std::collections::BTreeMap::new();
    for (round, files) in rounds.iter().enumerate() {
        let mut writer = Writer::open(grown.path()).unwrap();
        writer.encode_at_most(2);
        for (path, numbers) in *files {
            let file = file(path, &round.to_string(), &pick(numbers));
            writer.replace(&file).unwrap();
            truth.insert(*path, file);
        }
        writer.publish().unwrap();
    }
    let mut writer = Writer::open(grown.path()).unwrap();
    writer.remove("gone.md");
    truth.remove("gone.md");
    assert_eq!(writer.publish().unwrap().unencoded, 0);
    let mut writer = Writer::create(anew.path()).unwrap();
    truth
        .values()
        .rev()
        .for_each(|file| writer.replace(file).unwrap());
    writer.publish().unwrap();
    let (grown, anew) = (
        Index::open(grown.path()).unwrap(),
        Index::open(anew.path()).unwrap(),
    );
    for question in [
        "Where does the cat sleep?",
        "猫",
        "when was the bridge mended?",
        "who built it",
        "租约 lease",
        "xyzzy",
    ] {
        let answer = grown.recall(question, &Options::default()).unwrap();
        assert_eq!((answer.sections, answer.encoded), (9, 9), "{question}");
        assert_eq!(
            answer,
            anew.recall(question, &Options::default()).unwrap(),
            "{question}"
        );
    }
}

/// Sections of an article that only follow the answer do not rank before it, whatever the file.
#[test]
fn neighbours_do_not_count_outside_a_dialogue() {
    const TEXTS: [&str; 7] = [
        "The harbour was dug in 1820 by two hundred men.",
        "Trade with the islands began a year later.",
        "The lighthouse of Aldan burned whale oil until the great fire.",
        "Its keeper lived alone and wrote a diary in verse.",
        "The market square holds a fair on the first day of autumn.",
        "A railway reached the town after the war.",
        "Today most people work in the shipyard.",
    ];
    let home = tempfile::tempdir().unwrap();
    let article = file("article.md", "1", &TEXTS);
    publish(Writer::create(home.path()).unwrap(), &[article]);
    let index = Index::open(home.path()).unwrap();
    let question = "What did the lighthouse of Aldan burn until the fire?";
    let answer = index.recall(question, &words()).unwrap();
    assert_eq!(answer.hits[0].ordinal, 2);
    // No other section shares a word, so no other is a hit with a reason.
    let explained = index.explain(question, &words()).unwrap();
    for candidate in explained.candidates.iter().filter(|other| other.line != 3) {
        assert!(!candidate.is_turn);
        assert_eq!(
            candidate.features[1..5],
            [0.0; 4],
            "line {}",
            candidate.line
        );
    }
}

/// A question that nothing answers has weak hits only, in both languages.
#[test]
fn hits_for_a_question_that_nothing_answers_are_weak() {
    let home = tempfile::tempdir().unwrap();
    library(home.path());
    let index = Index::open(home.path()).unwrap();
    for question in [
        "xyzzy qwrtp",
        "Who painted the ceiling of the town hall?",
        "火星有几个卫星？",
    ] {
        assert!(
            index.recall(question, &words()).unwrap().is_weak(),
            "{question}"
        );
    }
    for question in [
        "What did the lighthouse keeper buy?",
        "广茂铁路全长多少公里？",
    ] {
        let answer = index.recall(question, &words()).unwrap();
        assert!(!answer.hits[0].weak, "{question}");
    }
    assert!(has_words("茶") && has_words("7") && !has_words(" ?！…"));
}

#[test]
fn a_time_is_in_relation_to_the_question_or_the_section() {
    let home = tempfile::tempdir().unwrap();
    let dated = |line, date, text| Section {
        line,
        heading_path: vec![String::from(date)],
        text: String::from(text),
    };
    let mut file = file("diary.md", "1", &[]);
    file.sections = vec![
        dated(1, "2024-02-14", "The harbour office was painted."),
        dated(3, "2024-03-13", "The harbour office was painted."),
        dated(
            5,
            "2024-05-09",
            "The harbour office was painted 22 days ago.",
        ),
        dated(7, "2024-06-01", "The harbour office was painted."),
    ];
    publish(Writer::create(home.path()).unwrap(), &[file]);
    let index = Index::open(home.path()).unwrap();
    let first = |question, as_of| {
        let options = Options {
            as_of: date_of(as_of),
            ..words()
        };
        index.recall(question, &options).unwrap().hits[0].line
    };
    assert_eq!(
        first("Was the harbour office painted last month?", "2024-03-20"),
        1
    );
    assert_eq!(
        first("Was the harbour office painted last week?", "2024-03-20"),
        3
    );
    assert_eq!(
        first(
            "Was the harbour office painted on 17 April 2024?",
            "2024-03-20"
        ),
        5
    );
    assert_eq!(
        first("Was the harbour office painted today?", "2024-06-01"),
        7
    );
}

#[test]
fn answers_to_a_question_for_several_things_are_from_several_files() {
    let home = tempfile::tempdir().unwrap();
    let many = ["She read the book of birds."; 6];
    let files = [
        file("a.md", "1", &many),
        file("b.md", "1", &["She read the book of birds."]),
    ];
    publish(Writer::create(home.path()).unwrap(), &files);
    let index = Index::open(home.path()).unwrap();
    let options = Options { k: 3, ..words() };
    let found = |question| paths(&index.recall(question, &options).unwrap());
    let is_of_b = |(path, _): &(String, u32)| path == "b.md";
    assert!(!found("Did she read the book of birds?").iter().any(is_of_b));
    assert!(
        found("Which books of birds did she read?")
            .iter()
            .any(is_of_b)
    );
}

#[test]
fn words_of_other_languages_are_found_in_all_forms() {
    let home = tempfile::tempdir().unwrap();
    let texts = [
        "Die Brücken wurden von einem Ingenieur aus der Stadt gebaut.",
        "Die Schiffe liegen in dem Hafen.",
        "Мосты построил инженер из города.",
        "Корабли стоят в гавани.",
        "Brücke 7",
    ];
    publish(
        Writer::create(home.path()).unwrap(),
        &[file("a.md", "1", &texts)],
    );
    let index = Index::open(home.path()).unwrap();
    let found = |question| {
        let answer = index.recall(question, &words()).unwrap();
        let lines = answer.hits.into_iter().map(|hit| hit.ordinal);
        lines.collect::<Vec<_>>()
    };
    assert_eq!(found("Wer hat die Brücke gebaut?")[0], 0);
    assert!(found("Wer hat die Brücke gebaut?").contains(&4));
    assert_eq!(found("Wo liegt das Schiff?")[0], 1);
    assert_eq!(found("Кто построил мост?")[0], 2);
    assert_eq!(found("Где стоит корабль?")[0], 3);
    assert_eq!(found("Hafen")[0], 1);
}

/// Values derived from products of neighbours equal those from sums of vectors, except for the
/// 8-bit quantisation.
#[test]
fn surroundings_are_sums_of_neighbours() {
    const TEXTS: [&str; 12] = [
        "The feline is asleep.",
        "Shares fell.",
        "铁路从广州通到茂名。",
        "Who fed the cat?",
        "Grandmother did.",
        "租约会自己结束。",
        "The bridge was repaired.",
        "A lease ends by itself.",
        "猫在石头上睡觉。",
        "Rain came in the night.",
        "He sold the boat.",
        "茶凉了。",
    ];
    let home = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(home.path()).unwrap();
    writer.replace(&dialogue("a.md", "1", &TEXTS)).unwrap();
    writer.publish().unwrap();
    let question = "Where does the cat sleep?";
    let encoder = encoder::Encoder::built_in().unwrap();
    let asked = encoder.encode(question);
    let texts: Vec<Vec<f32>> = TEXTS.iter().map(|text| encoder.encode(text)).collect();
    let surroundings: Vec<Vec<f32>> = (0..TEXTS.len())
        .map(|at| {
            let mut sum = texts[at].clone();
            for (away, share) in pool::NEIGHBOURS {
                if let Some(there) = at
                    .checked_add_signed(away as isize)
                    .and_then(|there| texts.get(there))
                {
                    wide::add_share(&mut sum, there, 1.2 * share);
                }
            }
            wide::normalise(&mut sum);
            sum
        })
        .collect();
    let explained = Index::open(home.path())
        .unwrap()
        .explain(question, &Options::default())
        .unwrap()
        .candidates;
    assert_eq!(explained.len(), TEXTS.len());
    let mut leaders: Vec<(f32, usize)> = explained
        .iter()
        .map(|Candidate { line, features, .. }| {
            (
                features[1] + 2.0 * features[12] + features[13],
                *line as usize - 1,
            )
        })
        .collect();
    leaders.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    leaders.truncate(5);
    for Candidate { line, features, .. } in &explained {
        let at = *line as usize - 1;
        let close = |name: &str, value: f32| {
            let number = rank::FEATURES
                .iter()
                .position(|feature| *feature == name)
                .unwrap();
            assert!(
                (features[number] - value).abs() < 0.01,
                "{name} of {at}: {} for {value}",
                features[number]
            );
        };
        close("meaning", wide::dot(&asked, &texts[at]));
        close("whole", wide::dot(&asked, &texts[at]));
        close("context", wide::dot(&asked, &surroundings[at]));
        let (mut sum, mut total) = (0.0, 0.0);
        for (score, other) in leaders.iter().filter(|(_, other)| other.abs_diff(at) > 4) {
            let weight = (2.0 * (score - leaders[0].0)).exp();
            sum += weight * wide::dot(&surroundings[at], &surroundings[*other]);
            total += weight;
        }
        close("alike", if total > 0.0 { sum / total } else { 0.0 });
    }
}

#[test]
fn damaged_vectors_are_noticed_or_harmless() {
    let home = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(home.path()).unwrap();
    writer
        .replace(&file(
            "a.md",
            "1",
            &["The feline is asleep.", "Shares fell. They rose again."],
        ))
        .unwrap();
    writer.publish().unwrap();
    let ask = || Index::open(home.path())?.recall("猫在睡觉", &Options::default());
    let right = ask().unwrap();
    let path = home.path().join("00000000.vec");
    let bytes = fs::read(&path).unwrap();
    for at in (0..bytes.len()).step_by(5) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        fs::write(&path, &bad).unwrap();
        match ask() {
            // A corrupt vector file counts as absent, and the answer says so. Sign bits are only
            // used in huge projects.
            Ok(answer) => assert!(answer == right || answer.encoded == 0, "byte {at}"),
            Err(error) => assert!(error.needs_rebuild(), "byte {at}: {error}"),
        }
    }
}

/// A long-running process caches data and finds the nearest sections without comparing all
/// completely. Neither changes the answers.
#[test]
fn an_index_that_was_asked_before_answers_as_one_just_opened() {
    let home = tempfile::tempdir().unwrap();
    let subjects = [
        "The cat",
        "A lease",
        "Grandmother",
        "铁路",
        "The bridge over the river",
        "Nobody",
        "猫",
        "The early train",
    ];
    let deeds = [
        "sleeps on warm stones",
        "ends by itself",
        "从广州通到茂名",
        "was repaired in May 2023",
        "fell on Monday",
        "在石头上睡觉",
    ];
    let mut files = Vec::new();
    for (number, subject) in subjects.iter().enumerate() {
        let texts: Vec<String> = (0..16)
            .map(|at| {
                let deed =
                    |step: usize| deeds[(number * step + at * (step + 1) + at / 7) % deeds.len()];
                let one = format!("{subject} {}.", deed(1));
                // Every third section has several parts.
                if at % 3 == 0 {
                    format!(
                        "{} Then, in the year {at}, it {}. {subject} {}",
                        one.repeat(4),
                        deed(2),
                        deed(3).repeat(6)
                    )
                } else {
                    one
                }
            })
            .collect();
        files.push(file(
            &format!("{number}.md"),
            "1",
            &texts.iter().map(String::as_str).collect::<Vec<_>>(),
        ));
    }
    let mut writer = Writer::create(home.path()).unwrap();
    files.iter().for_each(|file| writer.replace(file).unwrap());
    assert_eq!(writer.publish().unwrap().unencoded, 0);
    // Searches over all files use the sign bits. Searches without one file compare all vectors.
    let running = Index::open(home.path()).unwrap();
    let visible = |path: &str, _: Tier| path != "3.md";
    for question in [
        "Where does the cat sleep?",
        "猫",
        "when was the bridge mended?",
        "Grandmother's train",
        "租约 lease",
        "xyzzy",
    ] {
        for use_model in [true, false] {
            for visible in [None, Some(&visible as Visible)] {
                let options = Options {
                    k: 20,
                    visible,
                    use_model,
                    as_of: None,
                };
                let fresh = Index::open(home.path())
                    .unwrap()
                    .recall(question, &options)
                    .unwrap();
                assert_eq!(
                    running.recall(question, &options).unwrap(),
                    fresh,
                    "{question}"
                );
                assert_eq!(
                    running.recall(question, &options).unwrap(),
                    fresh,
                    "{question}, again"
                );
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, Vec<u8>),
    Drop(u8),
    Publish,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u8..5, prop::collection::vec(0u8..8, 0..5)).prop_map(|(name, texts)| Step::Put(name, texts)),
        1 => (0u8..5).prop_map(Step::Drop),
        2 => Just(Step::Publish),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// After any updates, the answers are those of a rebuilt index.
    #[test]
    fn a_rebuilt_index_answers_the_same(steps in steps()) {
        const TEXTS: [&str; 8] = [
            "red boat", "boat on the sea", "the sea is red? yes", "铁路 sea", "海上的船", "red red sea",
            "in May 2023 the boat sank", "who saw the boat?",
        ];
        let (grown, anew) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        publish(Writer::create(grown.path()).unwrap(), &[]);
        let mut truth = std::collections::BTreeMap::new();
        let mut writer = Writer::open(grown.path()).unwrap();
        for (round, step) in steps.iter().enumerate() {
            match step {
                Step::Put(name, texts) => {
                    let texts: Vec<_> = texts.iter().map(|text| TEXTS[*text as usize]).collect();
                    let file = file(&format!("{name}.md"), &round.to_string(), &texts);
                    writer.replace(&file).unwrap();
                    truth.insert(*name, file);
                }
                Step::Drop(name) => prop_assert_eq!(
                    writer.remove(&format!("{name}.md")), truth.remove(name).is_some()
                ),
                Step::Publish => {
                    publish(writer, &[]);
                    writer = Writer::open(grown.path()).unwrap();
                }
            }
        }
        publish(writer, &[]);
        let files: Vec<_> = truth.into_values().rev().collect();
        publish(Writer::create(anew.path()).unwrap(), &files);
        let (grown, anew) = (Index::open(grown.path()).unwrap(), Index::open(anew.path()).unwrap());
        for question in ["red boat", "when did the boat sink?", "海 sea", "who", "May 2023", "red boat"] {
            prop_assert_eq!(
                grown.recall(question, &words()).unwrap(), anew.recall(question, &words()).unwrap()
            );
        }
    }
}
