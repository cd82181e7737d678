//! Filing: the facts of a report go where its headings say. A heading of level 2 names the memory file, one of level 3 its
//! section; the items below it are added at the end of that section.
//!
//! What stands in memory is not touched, and an item that its section holds already is not added twice, so filing again is
//! harmless.

use quipu_text::{Document, marker};

/// The facts for one file.
#[derive(Debug, PartialEq, Eq)]
pub struct Filed {
    pub path: String,
    /// The title of each section with the items for it.
    pub sections: Vec<(String, Vec<String>)>,
}

/// What a report files where. Headings that name no file are remarks.
pub fn parse_filed(report: &str) -> Vec<Filed> {
    let report = marker(report).map_or(report, |m| &report[..m.start]);
    let document = Document::parse(report);
    let mut found: Vec<Filed> = Vec::new();
    for outer in document.sections().iter().filter(|s| s.level == 2) {
        let path = outer.title.trim_matches(['`', '*', ' ']);
        if !path.ends_with(".md") {
            continue;
        }
        let inner = document.sections().iter().filter(|s| s.parent == Some(outer.id));
        let sections = inner.map(|s| (s.title.clone(), items(document.slice(&(s.body.start..s.range.end)))));
        let sections: Vec<_> = sections.filter(|(_, items)| !items.is_empty()).collect();
        if !sections.is_empty() {
            found.push(Filed { path: path.to_owned(), sections });
        }
    }
    found
}

/// List items with the lines that belong to them; anything else below a heading is an item of its own.
fn items(body: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let mut apart = true;
    for line in body.lines() {
        if line.trim().is_empty() {
            apart = true;
            continue;
        }
        let begins = ["- ", "* ", "+ "].iter().any(|sign| line.starts_with(sign));
        match items.last_mut() {
            Some(item) if !begins && (!apart || line.starts_with(' ')) => {
                item.push('\n');
                item.push_str(line.trim_end());
            }
            _ => items.push(line.trim_end().to_owned()),
        }
        apart = false;
    }
    items
}

/// A memory file with the facts in it; none if it holds them all.
pub fn file_into(memory: &str, filed: &Filed) -> Option<String> {
    let mut text = memory.to_owned();
    for (title, items) in &filed.sections {
        let document = Document::parse(&text);
        let own = document.sections().iter().find(|s| s.level > 1 && folded(&s.title) == folded(title));
        let known: Vec<String> = own.map(|s| self::items(document.slice(&s.body))).unwrap_or_default();
        let new: Vec<&str> = items.iter().filter(|item| !known.contains(item)).map(String::as_str).collect();
        if new.is_empty() {
            continue;
        }
        let added = new.join("\n");
        text = match own {
            Some(section) => {
                let body = document.slice(&section.body).trim_end();
                let (before, after) = text.split_at(section.body.start + body.len());
                let list = known.last().is_some_and(|last| last.starts_with(['-', '*', '+']));
                let gap = match () {
                    () if body.is_empty() && before.ends_with('\n') => "",
                    () if body.is_empty() || list => "\n",
                    () => "\n\n",
                };
                let end = if body.is_empty() || after.is_empty() { "\n" } else { "" };
                format!("{before}{gap}{added}{end}{after}")
            }
            None => format!("{}\n\n## {title}\n\n{added}\n", text.trim_end()),
        };
    }
    (text != memory).then_some(text)
}

fn folded(title: &str) -> String {
    title.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "# Facts of ch02\n\nWhat follows was read in the chapter.\n\n## characters.md\n\n### Mara\n\n- [arc] drive: guilt, because the lamp failed\n  that night [→ manuscripts/ch02.md#a]\n- handed: left\n\n### 奥托\n\n- [chapter] 怕水，因为弟弟淹死了\n\n## About no one\n\n### Someone\n\n- is left out\n\n<!-- FACTS_COMPLETE -->\n";

    #[test]
    fn headings_say_where_facts_go() {
        let filed = parse_filed(REPORT);
        assert_eq!(filed.len(), 1);
        assert_eq!(filed[0].sections[0].1.len(), 2);
        let memory = "# Characters\n\n## mara\n- handed: left\n\n## Tom\n\nDead.\n";
        let text = file_into(memory, &filed[0]).unwrap();
        assert_eq!(
            text,
            "# Characters\n\n## mara\n- handed: left\n- [arc] drive: guilt, because the lamp failed\n  that night [→ manuscripts/ch02.md#a]\n\n## Tom\n\nDead.\n\n## 奥托\n\n- [chapter] 怕水，因为弟弟淹死了\n"
        );
        assert_eq!(file_into(&text, &filed[0]), None, "what is there is not filed twice");
    }

    #[test]
    fn a_bare_section_and_one_of_prose_are_filled_too() {
        let filed = |title: &str| Filed { path: "a.md".into(), sections: vec![(title.into(), vec!["- x".into()])] };
        assert_eq!(file_into("# A\n\n## One\n## Two\n", &filed("One")).unwrap(), "# A\n\n## One\n- x\n## Two\n");
        assert_eq!(file_into("## One\n\n## Two\n", &filed("One")).unwrap(), "## One\n- x\n\n## Two\n");
        assert_eq!(file_into("## One\n\nProse.\n\n## Two\n", &filed("One")).unwrap(), "## One\n\nProse.\n\n- x\n\n## Two\n");
        assert_eq!(file_into("## One", &filed("One")).unwrap(), "## One\n- x\n");
    }
}
