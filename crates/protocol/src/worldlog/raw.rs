//! Texts of a Markdown file as they were written, byte for byte.
//!
//! A value is data, not prose: `__init__`, `Vec<T>` and `*args` keep every character. Rendered
//! texts (`Item::text`, `Section::title`) lose them and are used only to recognise headings.

use quipu_text::{Document, Item, Section, Strike};

/// The top-level list items of a section.
pub(super) fn raw_items(document: &Document<'_>, section: &Section) -> Vec<String> {
    document
        .items_in(&section.body)
        .iter()
        .filter(|item| item.depth == 0)
        .map(|item| raw_item(document, item))
        .collect()
}

/// A list item without its marker and nested items; wrapped lines are joined by a space.
pub(super) fn raw_item(document: &Document<'_>, item: &Item) -> String {
    let whole = document.slice(&item.range);
    let start = item.range.start + marker_length(whole);
    // Markup before the first letter may precede `content`; an item of code alone has none.
    let end = if item.content.is_empty() {
        start
    } else {
        item.content.end.max(start)
    };
    let text = document.text();
    let line_end = text[end..item.range.end.max(end)]
        .find('\n')
        .map_or(item.range.end.max(end), |at| end + at);
    one_line(&text[start..line_end])
}

/// A plan item: without its checkbox, and without the signs of a struck text.
pub(super) fn raw_todo(document: &Document<'_>, item: &Item) -> String {
    let text = raw_item(document, item);
    let text = match &item.task_mark {
        Some(mark) => text
            .strip_prefix(document.slice(mark))
            .unwrap_or(&text)
            .trim_start(),
        None => &text,
    };
    let is_struck = matches!(item.strike, Strike::Whole | Strike::Lead);
    match text
        .strip_prefix("~~")
        .filter(|_| is_struck)
        .and_then(|rest| rest.rsplit_once("~~"))
    {
        Some((struck, remark)) => format!("{struck}{remark}"),
        None => text.to_owned(),
    }
}

/// The bytes of a list marker and the spaces after it.
fn marker_length(item: &str) -> usize {
    let rest = item.trim_start_matches(|c: char| c.is_ascii_digit());
    let after = rest
        .strip_prefix(['-', '*', '+', '.', ')'])
        .unwrap_or(rest)
        .trim_start_matches([' ', '\t']);
    item.len() - after.len()
}

/// A heading without its `#` signs.
pub(super) fn raw_title(document: &Document<'_>, section: &Section) -> String {
    let heading = document.slice(&section.heading);
    let line = heading
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with('#'))
        .or_else(|| heading.lines().map(str::trim).find(|l| !l.is_empty()))
        .unwrap_or_default();
    let title = line.trim_start_matches('#').trim();
    let open = title.trim_end_matches('#');
    if open.len() < title.len() && open.ends_with(char::is_whitespace) {
        open.trim_end().to_owned()
    } else {
        title.to_owned()
    }
}

/// A text in one line. Spaces inside a line are kept.
pub(super) fn one_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Escapes lines that would end the section of a text: `# x` becomes `\# x`, `---` becomes `\---`.
/// Code blocks are left alone. [`unguarded`] restores the text.
pub(super) fn guarded(text: &str) -> String {
    outside_code(text, |line| {
        let content = line.trim_start();
        let at = line.len() - content.len();
        if ends_section(content.trim_start_matches('\\')) {
            format!("{}\\{content}", &line[..at])
        } else {
            line.to_owned()
        }
    })
}

pub(super) fn unguarded(text: &str) -> String {
    outside_code(text, |line| {
        let content = line.trim_start();
        let at = line.len() - content.len();
        match content.strip_prefix('\\') {
            Some(rest) if ends_section(rest.trim_start_matches('\\')) => {
                format!("{}{rest}", &line[..at])
            }
            _ => line.to_owned(),
        }
    })
}

/// Whether a line is a heading of the levels that separate the parts of a record, or underlines one.
fn ends_section(line: &str) -> bool {
    let underline = line.trim_end();
    let is_underline = !underline.is_empty()
        && ['-', '=']
            .iter()
            .any(|sign| underline.chars().all(|c| c == *sign));
    is_underline || line.starts_with("# ") || line.starts_with("## ")
}

fn outside_code(text: &str, change: impl Fn(&str) -> String) -> String {
    let mut fence: Option<&str> = None;
    let lines = text.lines().map(|line| {
        let content = line.trim_start();
        match fence {
            Some(open) => {
                if content.starts_with(open) && content.trim_end().chars().all(|c| open.contains(c))
                {
                    fence = None;
                }
                line.to_owned()
            }
            None => {
                fence = ["```", "~~~"]
                    .into_iter()
                    .find(|open| content.starts_with(open));
                change(line)
            }
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CODE: [&str; 9] = [
        "__init__",
        "a<b>c",
        "Vec<T>",
        "[x](y)",
        "*args",
        "**kwargs** and `x`",
        "<T>",
        "2**8 + 3**9  =  x",
        "[x] is no box",
    ];

    #[test]
    fn items_and_headings_keep_every_character() {
        for code in CODE {
            let text = format!("### {code}\n\n- {code}\n- 数 {code} 尾\n");
            let document = Document::parse(&text);
            let section = &document.sections()[0];
            assert_eq!(raw_title(&document, section), code);
            assert_eq!(
                raw_items(&document, section),
                [code.to_owned(), format!("数 {code} 尾")]
            );
        }
        let text =
            "## P\n\n- [ ] fix __init__\n- [x] ~~drop *args~~ (a<b>c)\n1. [x](y)\n   wraps\n";
        let document = Document::parse(text);
        let todos: Vec<String> = document
            .items_in(&document.sections()[0].body)
            .iter()
            .map(|item| raw_todo(&document, item))
            .collect();
        assert_eq!(
            todos,
            ["fix __init__", "drop *args (a<b>c)", "[x](y) wraps"]
        );
    }

    proptest! {
        #[test]
        fn a_guarded_text_is_restored_and_has_no_headings(
            lines in prop::collection::vec("(\\\\)?(# |## |---|===|x|```|  # y)?[a# ]{0,3}", 0..6),
        ) {
            let text = lines.join("\n");
            let text = text.trim_end_matches('\n');
            prop_assert_eq!(unguarded(&guarded(text)), text);
        }
    }
}
