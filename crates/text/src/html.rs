//! HTML anchors: `<a id="x">` and `<a name="x">`.
//!
//! The input is a tag that the Markdown parser recognised as HTML. Anything except anchors is
//! refused, so that a block of other HTML never passes its IDs on to a heading.

/// Returns the IDs of `<a id="x">` or `<a name="x">` tags, or `None` if `html` contains anything
/// else.
pub(crate) fn anchor_ids(html: &str) -> Option<Vec<String>> {
    let mut ids = Vec::new();
    let mut rest = html.trim();
    while !rest.is_empty() {
        let tag = rest.strip_prefix('<')?;
        let (tag, after) = tag.split_once('>')?;
        rest = after.trim_start();
        if tag.eq_ignore_ascii_case("/a") {
            continue;
        }
        let name = tag.split([' ', '\t', '\r', '\n', '/']).next()?;
        if !name.eq_ignore_ascii_case("a") {
            return None;
        }
        ids.extend(attribute(tag, "id"));
        ids.extend(attribute(tag, "name"));
    }
    Some(ids)
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, attributes) = tag.split_once(char::is_whitespace)?;
    let mut rest = attributes.trim_start();
    while let Some((key, after)) = rest.split_once('=') {
        let after = after.trim_start();
        let (value, next) = match after.chars().next()? {
            quote @ ('"' | '\'') => after[1..].split_once(quote)?,
            _ => after
                .split_once(|c: char| c.is_whitespace() || c == '/')
                .unwrap_or((after, "")),
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return (!value.is_empty()).then(|| value.to_owned());
        }
        rest = next.trim_start();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_read_from_a_tags_only() {
        assert_eq!(anchor_ids("<a id=\"x\"></a>"), Some(vec!["x".into()]));
        assert_eq!(
            anchor_ids("<A class=k name='y z' />"),
            Some(vec!["y z".into()])
        );
        assert_eq!(anchor_ids("<a id=bare>"), Some(vec!["bare".into()]));
        assert_eq!(anchor_ids("</a>"), Some(vec![]));
        assert_eq!(anchor_ids("<div id=\"x\">"), None);
        assert_eq!(anchor_ids("<!-- x -->"), None);
    }
}
