use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::pattern::{Kind, Part, parse};
use super::{CATALOGUE, LIBRARIES, has_chinese, message, message_or_same, remedy};

fn files(folder: &Path, found: &mut Vec<PathBuf>, wanted: &dyn Fn(&Path) -> bool) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found, wanted);
        } else if wanted(&path) {
            found.push(path);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text with `{}` for each gap.
fn without_names(text: &str) -> String {
    let shown = |part: &Part| match part {
        Part::Fixed(text) => text.clone(),
        Part::Gap { .. } => "{}".to_owned(),
    };
    parse(text).iter().map(shown).collect()
}

/// The source of the program, with each string literal on one line.
fn sources() -> String {
    let mut paths = Vec::new();
    let is_source = |path: &Path| path.extension().is_some_and(|ending| ending == "rs");
    files(&root().join("crates"), &mut paths, &is_source);
    let text = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        // A literal goes on after a backslash at the end of a line.
        let mut lines = text.split("\\\n");
        let first = lines.next().unwrap_or_default().to_owned();
        let joined = lines.fold(first, |text, line| text + line.trim_start());
        joined.replace("\\\"", "\"").replace("\\n", "\n")
    };
    paths.iter().map(text).collect()
}

/// A text is composed of literals that meet at a gap, at a name or at a mark.
#[test]
fn the_english_texts_are_those_of_the_program() {
    let is_mark = |c: char| "`:;,()\"“”{}\n".contains(c);
    let sources = sources();
    let known: HashSet<&str> = sources.split(is_mark).map(str::trim).collect();
    let is_known = |part: &str| {
        // A gap may stand for words that the source has with the rest.
        part.len() < 4 || known.contains(part) || sources.contains(part)
    };
    let missing: Vec<String> = CATALOGUE
        .into_iter()
        .flat_map(super::pairs)
        .map(|(english, _)| without_names(&english))
        .filter(|english| !english.split(is_mark).map(str::trim).all(is_known))
        .collect();
    assert_eq!(missing, Vec::<String>::new(), "no source has these");
}

#[test]
fn both_texts_have_the_same_gaps_and_no_text_comes_twice() {
    let names = |text: &str| -> BTreeSet<String> {
        let name = |part: Part| match part {
            Part::Gap { name, .. } => Some(name),
            Part::Fixed(_) => None,
        };
        parse(text).into_iter().filter_map(name).collect()
    };
    let mut seen = BTreeSet::new();
    let files = CATALOGUE.into_iter().chain([LIBRARIES]);
    for (english, chinese) in files.flat_map(super::pairs) {
        let is_frame = parse(&english).iter().all(|part| part.fixed() < 12);
        assert!(is_frame || has_chinese(&chinese), "{english}\n{chinese}");
        assert!(names(&chinese).is_subset(&names(&english)), "{chinese}");
        let gaps = parse(&english)
            .into_iter()
            .filter(|part| matches!(part, Part::Gap { .. }));
        assert_eq!(gaps.count(), names(&english).len(), "{english}");
        let plain = parse(&chinese)
            .into_iter()
            .all(|part| !matches!(part, Part::Gap { kind, .. } if kind != Kind::Kept));
        assert!(plain, "{chinese}");
        assert!(seen.insert(without_names(&english)), "{english}");
    }
    assert!(seen.len() > 300, "{}", seen.len());
}

/// Words in a row outside code, quotations and commands: a sentence in English.
fn english_words(text: &str) -> Option<String> {
    let quoted = regex::Regex::new(
        r#"(?x) `[^`]*` | "[^"]*" | “[^”]*” | '[^']*' | \{.*\} | \[[^\]]*\] | <[^>]*>
        | quipu(\ [^（；，。]*)? | git\ [^（；，。]*"#,
    )
    .unwrap();
    let rest = quoted.replace_all(text, "·");
    let words = regex::Regex::new(r"[a-z]+( [a-z]+){2,}").unwrap();
    words.find(&rest).map(|found| found.as_str().to_owned())
}

#[test]
fn every_refusal_of_a_scenario_has_a_chinese_text() {
    let mut transcripts = Vec::new();
    let is_transcript = |path: &Path| path.file_name().is_some_and(|name| name == "transcript");
    files(
        &root().join("tests/scenarios"),
        &mut transcripts,
        &is_transcript,
    );
    let (mut errors, mut remedies) = (BTreeSet::new(), BTreeSet::new());
    for transcript in transcripts {
        let text = std::fs::read_to_string(transcript).unwrap();
        for line in text.lines() {
            if let Some(what) = line.strip_prefix("! error: ") {
                errors.insert(what.to_owned());
            }
            let help = line.strip_prefix("!   help  ");
            if let Some(help) = help.filter(|help| !help.starts_with(' ')) {
                remedies.insert(help.to_owned());
            }
        }
    }
    assert!(errors.len() > 300 && remedies.len() > 200);
    // The faults of a contract follow in lines of their own.
    errors.remove("the contract would be invalid");
    let untold = |what: &String| message(what).is_none() && !has_chinese(what);
    let mut left: Vec<String> = errors.iter().filter(|what| untold(what)).cloned().collect();
    // The rest is in the language of the project, or in the user's own words.
    let own = [
        " contradicts ",
        " may not read ",
        "the plan cannot be approved",
        "there are: 1 ",
        "its keys: ",
    ];
    let is_quoted = |text: &&String| own.iter().any(|own| text.contains(own));
    let said = errors.iter().filter(|what| !is_quoted(what));
    let said = said.filter_map(|what| message(what));
    let helps = remedies.iter().filter(|help| !is_quoted(help));
    let said = said.chain(helps.map(|help| remedy(help)));
    left.extend(said.filter(|said| english_words(said).is_some()));
    assert!(left.is_empty(), "{} left:\n{}", left.len(), left.join("\n"));
}

#[test]
fn values_are_kept_and_texts_within_texts_are_translated() {
    assert_eq!(
        message("unknown role `writter`: did you mean `writer`?").as_deref(),
        Some("没有名为 `writter` 的角色：是不是 `writer`？")
    );
    assert_eq!(message("a text without an entry"), None);
    assert_eq!(
        remedy("quipu read a.md --json     (prints the current version; then write with --expect)"),
        "quipu read a.md --json     （显示当前版本；再带 --expect 写入）"
    );
    assert_eq!(
        message_or_same("`a.md` is empty\n`b.md` was not written\nhis own words"),
        "`a.md` 是空的\n没有写 `b.md`\nhis own words"
    );
    assert_eq!(remedy("quipu log a.md"), "quipu log a.md");
    assert_eq!(
        remedy("ask a person to run: quipu doctor"),
        "请由人执行：quipu doctor"
    );
}
