//! Whole memory files, as agents write them: Chinese with marks, CRLF with a byte-order mark,
//! tables.

#![allow(clippy::unwrap_used)]

use quipu_text::{Document, Level, LinkKind, Strike, Syntax, Task, marker};

const CHARACTERS: &str = include_str!("fixtures/characters.zh.md");
const DECISIONS: &str = include_str!("fixtures/decisions.md");
const WORLD: &str = include_str!("fixtures/world_state.md");

fn outline<'d>(doc: &'d Document<'_>) -> Vec<(u8, &'d str, &'d str, usize)> {
    let one = |section: &'d quipu_text::Section| {
        (
            section.level,
            &section.title[..],
            &section.slug[..],
            section.line,
        )
    };
    doc.sections().iter().map(one).collect()
}

#[test]
fn chinese_file_outline_and_anchors() {
    let doc = Document::parse(CHARACTERS);
    assert_eq!(
        outline(&doc),
        [
            (0, "", "", 6),
            (1, "人物", "人物", 8),
            (2, "林舟", "林舟", 10),
            (2, "老周", "老周", 31),
            (3, "习惯", "习惯", 35),
            (2, "林舟", "林舟-1", 40),
        ]
    );
    let line = |anchor: &str| doc.find(anchor).map(|section| section.line);
    assert_eq!(line("林舟-arc"), Ok(10));
    assert_eq!(line("林舟"), Ok(10));
    assert_eq!(line("林舟-1"), Ok(40));
    assert_eq!(line("#老周"), Ok(31));
    assert_eq!(line("KEEPER"), Ok(31));
    assert_eq!(line("人物/老周/习惯"), Ok(35));
    assert_eq!(line("人物/习惯"), Ok(35));
    assert_eq!(line("%E8%80%81%E5%91%A8"), Ok(31));
    assert_eq!(line("老周/林舟").unwrap_err().nearest, ["林舟", "老周"]);
    assert_eq!(line("林周").unwrap_err().nearest, ["林舟", "老周"]);
    let habits = doc.find("习惯").unwrap();
    assert_eq!(doc.heading_path(habits), ["人物", "老周", "习惯"]);
    assert_eq!(doc.anchor_of(doc.find("老周").unwrap()), "keeper");
    let front = doc.front_matter().unwrap();
    assert_eq!(front.value.as_ref().unwrap()["tags"][0], "角色");
}

#[test]
fn chinese_file_links_tags_and_entries() {
    let doc = Document::parse(CHARACTERS);
    let links: Vec<_> = doc
        .links()
        .iter()
        .map(|link| (link.kind, &CHARACTERS[link.target.clone()], link.line))
        .collect();
    assert_eq!(
        links,
        [
            (LinkKind::Arrow, "manuscripts/ch02.md#那一夜", 13),
            (LinkKind::Arrow, "characters.zh.md#老周", 17),
            (LinkKind::BareArrow, "chronicle.md#借据", 18),
            (LinkKind::Arrow, "manuscripts/ch05.md#承诺", 22),
            (LinkKind::Press, "characters.zh.md#林舟", 23),
            (LinkKind::Wiki, "manuscripts/ch05", 29),
        ]
    );
    let lin = &doc.sections()[2];
    let levels: Vec<_> = doc
        .level_tags_in(&lin.range)
        .iter()
        .map(|tag| tag.level)
        .collect();
    assert_eq!(levels, [Level::Arc, Level::Chapter, Level::Scene]);
    let strikes: Vec<_> = doc
        .items_in(&lin.body)
        .iter()
        .map(|item| item.strike)
        .collect();
    assert_eq!(
        strikes,
        [
            Strike::None,
            Strike::None,
            Strike::None,
            Strike::None,
            Strike::Lead
        ]
    );
    let row = &doc.rows_in(&lin.body)[0];
    assert_eq!(doc.cell(row, "状态").unwrap().text, "愧疚");
    assert_eq!(row.line, 28);
    let keys: Vec<_> = doc
        .keyed_in(&lin.body)
        .iter()
        .map(|line| (line.key.as_str(), doc.slice(&line.value)))
        .collect();
    assert_eq!(
        keys[..3],
        [
            (
                "核心驱动力",
                "弟弟在风暴中失踪，她当晚没有点灯 → 从此一盏灯也不肯熄"
            ),
            ("背景因果", "[→ manuscripts/ch02.md#那一夜]"),
            ("关系", ""),
        ]
    );
    assert_eq!(marker(CHARACTERS).unwrap().name, "CHARACTERS_COMPLETE");
}

#[test]
fn chinese_first_sentences() {
    let doc = Document::parse(CHARACTERS);
    let sentence = |nth: usize| doc.first_sentence(&doc.sections()[nth]).unwrap();
    assert_eq!(sentence(0), "本文件只记生成性事实：原因与驱动力。");
    assert_eq!(sentence(3), "“灯是给活人看的。”他说。");
    assert_eq!(sentence(4), "作息：日落即起，日出才睡");
    assert_eq!(sentence(5), "重名的一节：第二卷里她改了名字。");
}

#[test]
fn crlf_file_with_byte_order_mark_and_setext_heading() {
    let doc = Document::parse(DECISIONS);
    assert_eq!(
        outline(&doc),
        [
            (1, "Decisions", "decisions", 1),
            (
                2,
                "D-001: Keep files as the truth",
                "d-001-keep-files-as-the-truth",
                5
            ),
            (2, "D-002: Journal first", "d-002-journal-first", 14),
        ]
    );
    let second = doc.find("d-002-journal-first").unwrap();
    assert_eq!(
        doc.slice(&second.heading),
        "D-002: Journal first\r\n--------------------\r\n"
    );
    assert_eq!(
        doc.first_sentence(&doc.sections()[0]).unwrap(),
        "Newest last."
    );
    assert_eq!(
        doc.first_sentence(&doc.sections()[1]).unwrap(),
        "Dr. Reyes asked for version 1.5 of the format."
    );
    assert_eq!(
        doc.first_sentence(second).unwrap(),
        "One sync is the commit point."
    );
    let links: Vec<_> = doc
        .links()
        .iter()
        .map(|link| {
            (
                link.kind,
                link.path.as_str(),
                link.anchor.as_deref(),
                link.line,
                link.column,
            )
        })
        .collect();
    assert_eq!(
        links,
        [
            (LinkKind::Inline, "", Some("d-002-journal-first"), 8, 29),
            (
                LinkKind::Reference,
                "../docs/store.md",
                Some("commit"),
                20,
                35
            ),
        ]
    );
    let why = doc
        .keyed_lines()
        .iter()
        .find(|line| line.key == "Why")
        .unwrap();
    assert_eq!(
        doc.slice(&why.value),
        "people read files,\r\n  and so do agents"
    );
    let steps: Vec<_> = doc
        .items_in(&second.body)
        .iter()
        .map(|item| (item.text.as_str(), item.depth, item.task, item.strike))
        .collect();
    assert_eq!(
        steps,
        [
            ("Write the record", 0, None, Strike::None),
            ("sync", 1, Some(Task::Done), Strike::None),
            ("rename", 1, Some(Task::Open), Strike::None),
            ("Write the files first", 0, None, Strike::Whole),
        ]
    );
}

#[test]
fn a_decision_is_added_without_touching_a_byte() {
    let doc = Document::parse(DECISIONS);
    let edited = doc
        .insert_section(
            quipu_text::Place::End,
            2,
            "D-003: Leases",
            "Held by runs.\n\n- **Date:** 2026-03-01\n",
        )
        .unwrap();
    assert_eq!(
        edited.strip_prefix(DECISIONS).unwrap(),
        "\r\n## D-003: Leases\r\n\r\nHeld by runs.\r\n\r\n- **Date:** 2026-03-01\r\n"
    );
}

#[test]
fn toml_front_matter_tables_and_repeated_headings() {
    let doc = Document::parse(WORLD);
    let front = doc.front_matter().unwrap();
    assert_eq!(front.syntax, Syntax::Toml);
    assert_eq!(front.value.as_ref().unwrap()["revised"], "2026-11-02");
    let line = |anchor: &str| doc.find(anchor).map(|section| section.line);
    assert_eq!(line("glossary"), Ok(13));
    assert_eq!(line("glossary-1"), Ok(24));
    assert_eq!(line("six-terms"), Ok(24));
    assert_eq!(line("chapter 6/glossary"), Ok(24));
    assert_eq!(line("Chapter-6/Glossary"), Ok(24));
    assert_eq!(
        line("glosary").unwrap_err().nearest,
        ["glossary", "glossary-1"]
    );
    let fifth = doc.find("chapter-5/glossary").unwrap();
    let rows: Vec<Vec<_>> = doc
        .rows_in(&fifth.body)
        .iter()
        .map(|row| {
            doc.record(row)
                .map(|(name, cell)| (name, cell.text.as_str()))
                .collect()
        })
        .collect();
    assert_eq!(
        rows,
        [
            [
                ("Term", "lease"),
                ("Meaning", "a write set, held for a run"),
                ("First", "ch03")
            ],
            [
                ("Term", "a|b"),
                ("Meaning", "either; never both"),
                ("First", "")
            ],
        ]
    );
    let lease = &doc.rows_in(&fifth.body)[0];
    assert_eq!(
        doc.slice(&doc.cell(lease, "Term").unwrap().range),
        "**lease**"
    );
    // The anchor before a heading belongs to its section, so that editing the section before keeps
    // it.
    let edited = doc
        .replace_body(doc.find("chapter-6").unwrap(), "Calm.")
        .unwrap();
    assert!(edited.contains("## Chapter 6\n\nCalm.\n\n<a name=\"six-terms\"></a>\n\n### Glossary"));
    let open = doc.find("open questions").unwrap();
    let tasks: Vec<_> = doc
        .items_in(&open.body)
        .iter()
        .map(|item| item.task)
        .collect();
    assert_eq!(
        tasks,
        [Some(Task::Open), Some(Task::Done), Some(Task::Open)]
    );
    let links: Vec<_> = doc
        .links_in(&open.body)
        .iter()
        .map(|link| link.anchor.as_deref())
        .collect();
    assert_eq!(
        links,
        [Some("The")],
        "a bare arrow ends at a blank; brackets hold more"
    );
}

#[test]
fn files_without_headings_or_text() {
    let plain = Document::parse("just text\n");
    assert_eq!(outline(&plain), [(0, "", "", 1)]);
    assert_eq!(plain.slice(&plain.sections()[0].body), "just text\n");
    let empty = Document::parse("");
    assert_eq!(empty.sections().len(), 1);
    let headed = Document::parse("\n\n# A\n");
    assert_eq!(outline(&headed), [(1, "A", "a", 3)]);
    let broken = Document::parse("---\na: [1\n---\n# A\n");
    assert!(broken.front_matter().unwrap().value.is_err());
    assert_eq!(outline(&broken), [(1, "A", "a", 4)]);
}
