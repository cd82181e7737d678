//! A Markdown text as lines of prose and fenced blocks, with their line numbers.

/// A fenced block of code.
#[derive(Debug, PartialEq, Eq)]
pub struct Block<'t> {
    /// The line of its first line of code.
    pub line: usize,
    /// What stands behind the opening fence.
    pub info: &'t str,
    pub code: Vec<&'t str>,
    /// The last line before it that is not blank.
    pub above: &'t str,
}

impl Block<'_> {
    /// The language that it says it is in.
    pub fn language(&self) -> &str {
        self.info.split([' ', ',', '{', ':']).next().unwrap_or_default()
    }
}

/// A text taken apart.
#[derive(Debug, Default)]
pub struct Taken<'t> {
    /// Lines outside blocks and comments, with their numbers.
    pub prose: Vec<(usize, &'t str)>,
    pub blocks: Vec<Block<'t>>,
}

/// The fence that a line opens: three or more of one sign.
fn fence(line: &str) -> Option<&str> {
    let trimmed = line.trim_start_matches(['>', ' ', '\t']).trim_start_matches("- ").trim_start();
    let sign = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = trimmed.len() - trimmed.trim_start_matches(sign).len();
    // Three backticks within a line are code in prose.
    (length >= 3 && (sign == '~' || !trimmed[length..].contains('`'))).then(|| &trimmed[..length])
}

pub fn take_apart(text: &str) -> Taken<'_> {
    let mut taken = Taken::default();
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let (mut above, mut comment) = ("", false);
    while let Some((number, line)) = lines.next() {
        if let Some(opened) = fence(line).filter(|_| !comment) {
            let info = line.split_once(opened).map_or("", |(_, info)| info).trim();
            let mut code = Vec::new();
            for (_, inner) in lines.by_ref() {
                let end = inner.trim_start_matches(['>', ' ', '\t']).trim_end();
                if end.starts_with(opened) && end.chars().all(|c| opened.starts_with(c)) {
                    break;
                }
                code.push(inner);
            }
            taken.blocks.push(Block { line: number + 1, info, code, above: std::mem::take(&mut above) });
            continue;
        }
        comment = comment || line.trim_start().starts_with("<!--");
        if !comment {
            taken.prose.push((number, line));
            above = if line.trim().is_empty() { above } else { line.trim() };
        }
        comment = comment && !line.contains("-->");
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_lines_and_what_stands_above() {
        let taken = take_apart(
            "One\n\n`a.rs:3`\n\n```rust\nlet a = 1;\n\nlet b;\n```\nTwo ``` x ```\n- ~~~~\n  ```\n  ~~~~\n<!-- a\n```\n-->\nEnd\n",
        );
        let prose: Vec<_> = taken.prose.iter().filter(|(_, line)| !line.is_empty()).copied().collect();
        assert_eq!(prose, [(1, "One"), (3, "`a.rs:3`"), (10, "Two ``` x ```"), (17, "End")]);
        assert_eq!(taken.blocks[0], Block { line: 6, info: "rust", code: vec!["let a = 1;", "", "let b;"], above: "`a.rs:3`" });
        assert_eq!((taken.blocks[1].code.as_slice(), taken.blocks[1].above), (["  ```"].as_slice(), "Two ``` x ```"));
    }
}
