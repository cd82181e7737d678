//! Extracts the text that an HTML page shows to its readers.
//!
//! Agents write these pages, so the parser follows browsers in every case that could hide text:
//! comments, quoted attributes, and elements with raw text content. In doubt it treats text as
//! hidden. It evaluates `style` attributes but not style sheets.

/// Marks the end of a passage.
pub(crate) const BREAK: char = '\u{1}';

/// Elements that end a passage.
const PASSAGES: [&str; 11] = [
    "p", "li", "h1", "h2", "h3", "h4", "h5", "h6", "td", "th", "pre",
];
/// Elements that browsers never show, or show only as a fallback.
const UNSHOWN: [&str; 16] = [
    "script", "style", "template", "noscript", "title", "iframe", "noembed", "noframes", "object",
    "audio", "video", "canvas", "datalist", "dialog", "optgroup", "option",
];
/// The subset of `UNSHOWN` that browsers parse as raw text up to the end tag.
const RAW: [&str; 7] = [
    "script", "style", "noscript", "title", "iframe", "noembed", "noframes",
];
/// Elements without content: HTML void elements and SVG shapes.
const EMPTY: [&str; 24] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr", "path", "circle", "rect", "line", "polyline", "polygon", "ellipse", "use",
    "stop", "image",
];
/// CSS declarations that hide an element.
const HIDING: [(&str, &[&str]); 5] = [
    ("display", &["none"]),
    ("visibility", &["hidden", "collapse"]),
    ("content-visibility", &["hidden"]),
    ("opacity", &["0", "0%", "0.0", ".0"]),
    ("font-size", &["0", "0px", "0em", "0rem", "0%", "0pt"]),
];

/// Returns the text that a page shows, with a `BREAK` at the end of each passage. Includes the
/// alternative text of images.
pub(crate) fn shown_text(html: &str) -> String {
    let mut out = String::new();
    // The open elements, starting with the outermost hidden one.
    let mut hidden: Vec<String> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        if hidden.is_empty() {
            out.push_str(&resolved(&rest[..at]));
        }
        rest = &rest[at..];
        let (tag, behind) = read_tag(rest);
        rest = behind;
        match tag {
            Tag::Sign => out.extend(hidden.is_empty().then_some('<')),
            Tag::Nothing => {}
            Tag::End(name) => {
                if hidden.is_empty() && PASSAGES.contains(&name.as_str()) {
                    out.push(BREAK);
                }
                // Browsers have complex rules for closing other elements. Here an end tag that does
                // not match closes nothing.
                hidden.pop_if(|open| *open == name);
            }
            Tag::Start(name, attributes) => {
                if RAW.contains(&name.as_str()) {
                    rest = behind_raw(rest, &name);
                } else if EMPTY.contains(&name.as_str()) {
                    let alternative = attributes
                        .iter()
                        .find(|(key, _)| key == "alt")
                        .filter(|_| name == "img");
                    if let Some((_, text)) =
                        alternative.filter(|_| hidden.is_empty() && !hides(&name, &attributes))
                    {
                        out.push_str(text);
                    }
                } else if !hidden.is_empty() || hides(&name, &attributes) {
                    // `<li>` ends the item before it.
                    hidden.pop_if(|open| {
                        *open == name
                            && matches!(
                                name.as_str(),
                                "p" | "li" | "td" | "th" | "tr" | "dt" | "dd"
                            )
                    });
                    hidden.push(name);
                }
            }
        }
    }
    if hidden.is_empty() {
        out.push_str(&resolved(rest));
    }
    out
}

type Attributes = Vec<(String, String)>;

fn hides(name: &str, attributes: &Attributes) -> bool {
    UNSHOWN.contains(&name)
        || attributes
            .iter()
            .any(|(key, value)| key == "hidden" || key == "style" && is_hiding(value))
}

/// Returns true if a `style` attribute hides its element. An escape counts as hiding, because pages
/// have no other use for one.
fn is_hiding(style: &str) -> bool {
    let mut plain = style.to_ascii_lowercase();
    while let Some(at) = plain.find("/*") {
        let end = plain[at + 2..]
            .find("*/")
            .map_or(plain.len(), |end| at + 2 + end + 2);
        plain.replace_range(at..end, "");
    }
    let hides = |declaration: &str| {
        let (name, value) = declaration.split_once(':').unwrap_or_default();
        let value = value
            .trim()
            .trim_end_matches("important")
            .trim_end()
            .trim_end_matches('!')
            .trim_end();
        HIDING
            .iter()
            .any(|(hiding, values)| *hiding == name.trim() && values.contains(&value))
    };
    plain.contains('\\') || plain.split(';').any(hides)
}

enum Tag {
    Start(String, Attributes),
    End(String),
    /// A comment, a declaration, or a tag that is cut off by the end of the page.
    Nothing,
    /// A literal `<`.
    Sign,
}

/// Parses the markup at a `<`. Returns the tag and the rest of the text.
fn read_tag(html: &str) -> (Tag, &str) {
    if let Some(comment) = html.strip_prefix("<!--") {
        let at_once = [">", "->"].iter().find_map(|end| comment.strip_prefix(end));
        let later = || {
            comment.match_indices("--").find_map(|(at, _)| {
                [">", "!>"]
                    .iter()
                    .find_map(|end| comment[at + 2..].strip_prefix(end))
            })
        };
        return (Tag::Nothing, at_once.or_else(later).unwrap_or_default());
    }
    let (is_end, name) = match html.strip_prefix("</") {
        Some(name) => (true, name),
        None => (false, &html[1..]),
    };
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let is_declaration = is_end || name.starts_with(['!', '?']);
        return match is_declaration {
            true => (
                Tag::Nothing,
                html.split_once('>').map_or("", |(_, behind)| behind),
            ),
            false => (Tag::Sign, name),
        };
    }
    let end = name
        .find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>'))
        .unwrap_or(name.len());
    let (name, rest) = name.split_at(end);
    let Some((attributes, behind)) = read_attributes(rest) else {
        return (Tag::Nothing, "");
    };
    let name = name.to_ascii_lowercase();
    (
        if is_end {
            Tag::End(name)
        } else {
            Tag::Start(name, attributes)
        },
        behind,
    )
}

/// Parses the attributes of a tag and keeps those that affect visibility. Also returns the text
/// after `>`. Returns `None` if the page ends first.
fn read_attributes(mut rest: &str) -> Option<(Attributes, &str)> {
    let mut found: Attributes = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if let Some(behind) = rest.strip_prefix('>') {
            return Some((found, behind));
        }
        let first = rest.chars().next()?.len_utf8();
        let end = first
            + rest[first..]
                .find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>' | '='))?;
        let name = rest[..end].to_ascii_lowercase();
        rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_whitespace());
        let mut value = "";
        if let Some(behind) = rest.strip_prefix('=') {
            rest = behind.trim_start_matches(|c: char| c.is_ascii_whitespace());
            (value, rest) = match rest.chars().next()? {
                quote @ ('"' | '\'') => rest[1..].split_once(quote)?,
                _ => rest.split_at(rest.find(|c: char| c.is_ascii_whitespace() || c == '>')?),
            };
        }
        // If an attribute occurs twice, the first one counts.
        if ["alt", "hidden", "style"].contains(&name.as_str())
            && !found.iter().any(|(known, _)| *known == name)
        {
            found.push((name, resolved(value)));
        }
    }
}

/// Returns the text after the end tag of a raw text element.
fn behind_raw<'h>(html: &'h str, name: &str) -> &'h str {
    let is_end = |at: &usize| {
        let behind = &html.as_bytes()[at + 2..];
        let is_named = behind
            .get(..name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()));
        is_named
            && behind
                .get(name.len())
                .is_some_and(|c| c.is_ascii_whitespace() || matches!(c, b'/' | b'>'))
    };
    let mut ends = html.match_indices("</").map(|(at, _)| at).filter(is_end);
    let Some(first) = ends.next() else { return "" };
    // Browsers end a script later if a comment in it contains another script tag.
    let at = if html[..first].contains("<!--") {
        ends.last().unwrap_or(first)
    } else {
        first
    };
    html[at..].split_once('>').map_or("", |(_, behind)| behind)
}

/// Decodes character references.
fn resolved(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match rest.bytes().take(12).position(|c| c == b';') {
            Some(end) => {
                out.push(entity(&rest[1..end]));
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> char {
    let coded = name
        .strip_prefix('#')
        .and_then(|code| match code.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => code.parse().ok(),
        });
    match (coded.and_then(char::from_u32), name) {
        (Some(letter), _) => letter,
        (None, "lt") => '<',
        (None, "gt") => '>',
        (None, "amp") => '&',
        (None, "quot") => '"',
        (None, "colon") => ':',
        // Other named references are punctuation and spaces. None of them is a letter, so a space
        // will do.
        (None, _) => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_nobody_sees_is_not_shown() {
        for html in [
            "<!-- > word -->",
            "<!-- <p>word</p> --!>",
            "<script>/* word */</script>",
            "<SCRIPT >if (a < b) word</SCRIPT >",
            "<script><!--<script></script>word--></script>",
            "<style>word</style>",
            "<template><p>word</p></template>",
            "<noscript>word</noscript>",
            "<p hidden>word</p>",
            "<p title='>' HIDDEN=\"\">word</p>",
            "<div hidden><div></div>word</div>",
            "<div hidden></p>word</div>",
            "<p><div hidden></p>word</div>",
            "<div hidden><div/></div>word</div>",
            "<div style=\"color: red; Display : NONE !important\">word</div>",
            "<div style=\"display&#58;none\">word</div>",
            "<div style=\"dis/**/play:none\">word</div>",
            "<div style=\"d\\69splay:none\">word</div>",
            "<div style='visibility:hidden'><p>word</p></div>",
            "<p data-x=\"word\"></p><img hidden alt=\"word\"><p title=\"a>word\"></p>",
            "<p word",
            "<?word>",
        ] {
            assert!(
                !shown_text(html).contains("word"),
                "{html}: {}",
                shown_text(html)
            );
        }
    }

    #[test]
    fn text_around_it_is_shown() {
        for html in [
            "<!-- --> word",
            "<!--> word",
            "<script>a</script>word",
            "<ul hidden><li>a<li>b</li></ul>word",
            "<svg style=\"display:none\"><symbol><path d=\"\"/></symbol></svg>word",
            "<p hidden>a</p><p>word</p>",
            "<div hidden><img alt=\"x\"><br>a</div>word",
            "<div style=\"display:block\">word</div>",
            "<details><summary>a</summary>word</details>",
            "a < b word",
            "<img alt='word'>",
            "w&#111;rd",
        ] {
            assert!(
                shown_text(html).contains("word"),
                "{html}: {}",
                shown_text(html)
            );
        }
    }
}
