//! Checks that a page shows the whole text of a chapter.
//!
//! The comparison uses letters and digits only, because an agent may change markup, spaces and
//! punctuation, but not words. `html` extracts the text.

use crate::diagram::DIAGRAM;
use crate::html::{BREAK, shown_text};

/// Length of the passage excerpts in the report, in characters.
const SHOWN: usize = 80;

/// The passages of the expected page that the other page lacks, by their beginnings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MissingText {
    pub absent: Vec<String>,
    /// Passages that are on the page, but not in the expected order.
    pub misplaced: Vec<String>,
}

/// Compares the passages of a page that `publish` made with the text of another page.
pub fn find_missing_text(expected: &str, page: &str) -> MissingText {
    let (mut missing, mut at) = (MissingText::default(), 0);
    let shown = letters(&shown_text(page));
    let expected = shown_text(&without_diagrams(article_of(expected)));
    for passage in expected.split(BREAK) {
        let wanted = letters(passage);
        match shown[at..].find(&wanted) {
            _ if wanted.is_empty() => {}
            Some(found) => at += found + wanted.len(),
            None if shown.contains(&wanted) => missing.misplaced.push(begin(passage)),
            None => missing.absent.push(begin(passage)),
        }
    }
    missing
}

/// Returns the chapter from a page that `publish` made.
fn article_of(published: &str) -> &str {
    let behind = published
        .split_once("<article")
        .and_then(|(_, behind)| behind.split_once('>'))
        .map_or(published, |(_, inner)| inner);
    behind
        .rsplit_once("</article>")
        .map_or(behind, |(inner, _)| inner)
}

/// Removes diagrams: the page may show an image without the diagram's source.
fn without_diagrams(published: &str) -> String {
    let mut parts = published.split(DIAGRAM);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| {
        kept + part
            .split_once("</figure>")
            .map_or("", |(_, behind)| behind)
    })
}

fn begin(passage: &str) -> String {
    let text = passage.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() > SHOWN {
        text.chars().take(SHOWN).chain(['…']).collect()
    } else {
        text
    }
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: &str = "<body><nav>Contents</nav><article><h1>Leases</h1><p>A lease <em>ends</em>.</p><p>租约会到期。</p><pre><code>if a &lt; b {}</code></pre></article></body>";

    #[test]
    fn markup_may_differ_and_words_may_not() {
        let page = "<html><head><title>Leases</title></head><body><main><ul><li>Leases</li></ul><article class=\"x\"><header><h1 id=\"l\">Leases</h1></header>\n<div><p>A&nbsp;lease <i>ends</i> .</p></div><p>租约会<b>到期</b>&#12290;</p><pre><code><span>if</span> a &#60; b {}</code></pre></article></main></body></html>";
        assert_eq!(find_missing_text(EXPECTED, page), MissingText::default());
        let lacking = find_missing_text(
            EXPECTED,
            &page
                .replace("到期", "结束")
                .replace("lease <i>", "lock <i>"),
        );
        assert_eq!(lacking.absent, ["A lease ends.", "租约会到期。"]);
        assert_eq!(find_missing_text(EXPECTED, "<html></html>").absent.len(), 4);
        let turned = "<article><h1>Leases</h1><p>租约会到期。</p><p>A lease ends.</p><pre>if a &lt; b {}</pre></article>";
        assert_eq!(
            find_missing_text(EXPECTED, turned),
            MissingText {
                absent: Vec::new(),
                misplaced: vec!["租约会到期。".into()]
            }
        );
    }

    #[test]
    fn an_image_may_stand_for_its_text() {
        let expected = "<article><p>A knot in a rope</p></article>";
        assert_eq!(
            find_missing_text(
                expected,
                "<article><img src=\"k.png\" alt=\"A knot in a rope\"></article>"
            ),
            MissingText::default()
        );
    }

    #[test]
    fn a_diagram_may_be_a_picture() {
        let expected = format!(
            "<article><p>One.</p>{DIAGRAM}<pre><code>a --&gt; b</code></pre></figure><p>Two.</p></article><p>Next chapter</p>"
        );
        assert_eq!(
            find_missing_text(&expected, "<p>One.</p><img src=\"d.png\"><p>Two.</p>"),
            MissingText::default()
        );
        assert_eq!(find_missing_text(&expected, "<p>One.</p>").absent, ["Two."]);
    }

    #[test]
    fn what_a_page_hides_is_missing() {
        for page in [
            "<!-- > {} -->",
            "<p hidden>{}</p>",
            "<template>{}</template>",
            "<script>/* {} */</script>",
            "<p style='display:none'>{}",
        ] {
            assert_eq!(
                find_missing_text(
                    "<article><p>A knot</p></article>",
                    &page.replace("{}", "A knot")
                )
                .absent,
                ["A knot"],
                "{page}"
            );
        }
    }
}
