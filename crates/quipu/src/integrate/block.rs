//! Maintains a marked block in a text file that another tool or person owns.

use super::hosts::CommentStyle;

fn marks(mark: CommentStyle) -> (&'static str, &'static str) {
    match mark {
        CommentStyle::Html => ("<!-- quipu:begin -->", "<!-- quipu:end -->"),
        CommentStyle::Hash => ("# quipu:begin", "# quipu:end"),
    }
}

/// Returns the text with the block, at its old place or at the end.
pub fn put(text: &str, mark: CommentStyle, content: &str) -> Result<String, String> {
    let (begin, end) = marks(mark);
    let block = format!("{begin}\n{}\n{end}\n", content.trim());
    Ok(match find(text, mark)? {
        Some(span) => format!("{}{block}{}", &text[..span.start], &text[span.end..]),
        None if text.is_empty() => block,
        None if text.ends_with('\n') => format!("{text}\n{block}"),
        None => format!("{text}\n\n{block}"),
    })
}

/// Returns the text without the block and the blank line before it.
pub fn take(text: &str, mark: CommentStyle) -> Result<String, String> {
    let Some(span) = find(text, mark)? else {
        return Ok(text.to_owned());
    };
    let before = &text[..span.start];
    let before = before
        .strip_suffix("\n\n")
        .map_or(before, |_| &before[..before.len() - 1]);
    Ok(format!("{before}{}", &text[span.end..]))
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
        for text in ["", "# Mine\n", "# Mine\n\nlast line\n\n"] {
            let with = put(text, CommentStyle::Html, "one").unwrap();
            assert_eq!(put(&with, CommentStyle::Html, "one").unwrap(), with);
            assert!(
                put(&with, CommentStyle::Html, "two")
                    .unwrap()
                    .contains("\ntwo\n")
            );
            assert_eq!(take(&with, CommentStyle::Html).unwrap(), text);
        }
        assert!(put("# quipu:begin\n", CommentStyle::Hash, "x").is_err());
    }
}
