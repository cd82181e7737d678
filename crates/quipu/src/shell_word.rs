//! Quotes a path for the shell commands that messages recommend.

/// A path as one word of a shell command.
pub fn shell_word(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%,:=".contains(c);
    if path.chars().all(is_plain) && !path.starts_with('-') {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        assert_eq!(shell_word("a/b-c.md"), "a/b-c.md");
        assert_eq!(shell_word("笔记.md"), "笔记.md");
        assert_eq!(shell_word("it's here.md"), "'it'\\''s here.md'");
        assert_eq!(shell_word("$(x).md"), "'$(x).md'");
    }
}
