//! Maintains a marked block in a text file that another tool or person owns.

use super::hosts::CommentStyle;

fn marks(mark: CommentStyle) -> (&'static str, &'static str) {
    match mark {
        CommentStyle::Html => ("<!-- quipu:begin -->", "<!-- quipu:end -->"),
        CommentStyle::Hash => ("# quipu:begin", "# quipu:end"),
    }
}

/// Returns a new file with the block alone.
pub fn put_alone(mark: CommentStyle, content: &str) -> Result<String, String> {
    put("", mark, content).map(|text| text[1..].to_owned())
}

/// Returns the text with the block, at its old place or at the end.
///
/// A blank line precedes the block, and none if the text ends without a newline or is empty: so
/// `take` returns every text as it was.
pub fn put(text: &str, mark: CommentStyle, content: &str) -> Result<String, String> {
    let (begin, end) = marks(mark);
    let block = format!("{begin}\n{}\n{end}\n", content.trim());
    Ok(match find(text, mark)? {
        Some(span) => format!("{}{block}{}", &text[..span.start], &text[span.end..]),
        None => format!("{text}\n{block}"),
    })
}

/// Returns the text without the block and the newline that `put` wrote before it.
pub fn take(text: &str, mark: CommentStyle) -> Result<String, String> {
    let Some(span) = find(text, mark)? else {
        return Ok(text.to_owned());
    };
    let (before, after) = (&text[..span.start], &text[span.end..]);
    let is_parted = after.is_empty() || before.ends_with("\n\n");
    let before = before
        .strip_suffix('\n')
        .filter(|_| is_parted)
        .unwrap_or(before);
    Ok(format!("{before}{after}"))
}

fn find(text: &str, mark: CommentStyle) -> Result<Option<std::ops::Range<usize>>, String> {
    let (begin, end) = marks(mark);
    let Some(start) = text.find(begin) else {
        return Ok(None);
    };
    let Some(length) = text[start..].find(end) else {
        return Err(format!("`{begin}` is not followed by `{end}`"));
    };
    let stop = start + length + end.len();
    Ok(Some(
        start..stop + usize::from(text[stop..].starts_with('\n')),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_and_goes() {
        for text in [
            "",
            "\n",
            "# Mine",
            "# Mine\n",
            "# Mine\r\n",
            "# Mine\n\nlast line\n\n",
        ] {
            let with = put(text, CommentStyle::Html, "one").unwrap();
            assert_eq!(put(&with, CommentStyle::Html, "one").unwrap(), with);
            assert!(
                put(&with, CommentStyle::Html, "two")
                    .unwrap()
                    .contains("\ntwo\n")
            );
            assert_eq!(take(&with, CommentStyle::Html).unwrap(), text);
            let longer = format!("{with}after\n");
            let left = take(&longer, CommentStyle::Html).unwrap();
            assert!(left.ends_with("after\n") && left.starts_with(text.trim_end()));
            assert!(
                text.trim().is_empty() || left.contains("\nafter"),
                "{left:?}"
            );
        }
        assert!(put("# quipu:begin\n", CommentStyle::Hash, "x").is_err());
    }
}
