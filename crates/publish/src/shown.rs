//! Whether a page shows a text: by letters and digits alone, for markup, spaces and signs may differ and words may not.

/// The beginning of a passage is shown so long.
const SHOWN: usize = 80;

/// What a page lacks of another, by the beginnings of the passages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MissingText {
    pub absent: Vec<String>,
    /// They are on the page, but not where their order has them.
    pub misplaced: Vec<String>,
}

/// Compares the passages of one page with the text of another.
pub fn find_missing_text(expected: &str, page: &str) -> MissingText {
    let (mut missing, mut at) = (MissingText::default(), 0);
    let shown = letters(within(page, "body").unwrap_or(page));
    for passage in passages(within(expected, "article").unwrap_or(expected)) {
        let wanted = letters(&passage);
        match shown[at..].find(&wanted) {
            Some(found) => at += found + wanted.len(),
            None if shown.contains(&wanted) => missing.misplaced.push(begin(&passage)),
            None => missing.absent.push(begin(&passage)),
        }
    }
    missing
}

fn begin(passage: &str) -> String {
    let text = plain(passage);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() > SHOWN { text.chars().take(SHOWN).chain(['…']).collect() } else { text }
}

/// What stands in the first element of a kind.
fn within<'h>(html: &'h str, tag: &str) -> Option<&'h str> {
    let (_, rest) = html.split_once(&format!("<{tag}"))?.1.split_once('>')?;
    Some(rest.rsplit_once(&format!("</{tag}>")).map_or(rest, |(inner, _)| inner))
}

/// The paragraphs, items, headings, cells and blocks of code.
fn passages(html: &str) -> Vec<String> {
    let ends = ["</p>", "</li>", "</h1>", "</h2>", "</h3>", "</h4>", "</h5>", "</h6>", "</td>", "</th>", "</pre>"];
    let mut text = html.to_owned();
    for end in ends {
        text = text.replace(end, "\u{1}");
    }
    text.split('\u{1}').filter(|passage| !letters(passage).is_empty()).map(str::to_owned).collect()
}

fn letters(html: &str) -> String {
    plain(html).chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Markup as its readers see it: without tags, but for the text that stands for an image, and with entities resolved.
fn plain(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (end, sign) = if rest.starts_with('<') { (rest.find('>'), '<') } else { (rest.find(';').filter(|end| *end < 12), '&') };
        let Some(end) = end else {
            out.push(sign);
            rest = &rest[1..];
            continue;
        };
        let inner = &rest[1..end];
        if sign == '&' {
            out.push(entity(inner));
        } else if let Some((_, alternative)) = inner.split_once(" alt=\"") {
            out.push_str(alternative.split('"').next().unwrap_or_default());
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> char {
    let coded = name.strip_prefix('#').and_then(|code| match code.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => code.parse().ok(),
    });
    match (coded.and_then(char::from_u32), name) {
        (Some(letter), _) => letter,
        (None, "lt") => '<',
        (None, "gt") => '>',
        (None, "amp") => '&',
        (None, "quot") => '"',
        // Signs and spaces: no letters, whatever they are.
        (None, _) => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: &str = "<body><nav>Contents</nav><article><h1>Leases</h1><p>A lease <em>ends</em>.</p><p>租约会到期。</p><pre><code>if a &lt; b {}</code></pre></article></body>";

    #[test]
    fn markup_may_differ_and_words_may_not() {
        let page = "<html><head><title>Leases</title></head><body><main><ul><li>Leases</li></ul><article class=\"x\"><header><h1 id=\"l\">Leases</h1></header>\n<div><p>A&nbsp;lease <i>ends</i> .</p></div><p>租约会<b>到期</b>&#12290;</p><pre><code><span>if</span> a &#60; b {}</code></pre></article></main></body></html>";
        assert_eq!(find_missing_text(EXPECTED, page), MissingText::default());
        let lacking = find_missing_text(EXPECTED, &page.replace("到期", "结束").replace("lease <i>", "lock <i>"));
        assert_eq!(lacking.absent, ["A lease ends.", "租约会到期。"]);
        assert_eq!(find_missing_text(EXPECTED, "<html></html>").absent.len(), 4);
        let turned = "<article><h1>Leases</h1><p>租约会到期。</p><p>A lease ends.</p><pre>if a &lt; b {}</pre></article>";
        assert_eq!(find_missing_text(EXPECTED, turned), MissingText { absent: Vec::new(), misplaced: vec!["租约会到期。".into()] });
    }

    #[test]
    fn an_image_may_stand_for_its_text() {
        let expected = "<article><p>A knot in a rope</p></article>";
        assert_eq!(find_missing_text(expected, "<article><img src=\"k.png\" alt=\"A knot in a rope\"></article>"), MissingText::default());
    }
}
