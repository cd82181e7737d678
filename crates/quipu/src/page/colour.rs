//! Classes of tokens, for code in texts and for source files.

use quipu_publish::code_tokens;
use serde_json::{Value, json};

/// Returns the tokens of each line of a source file, as text or as `[class, text]`. None if the
/// language is unknown.
pub fn colour_lines(path: &str, text: &str) -> Option<Vec<Vec<Value>>> {
    let name = path.rsplit('/').next()?;
    let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
    let mut lines = vec![Vec::new()];
    for (class, token) in code_tokens(&ending, text)? {
        for (nth, part) in token.split('\n').enumerate() {
            if nth > 0 {
                lines.push(Vec::new());
            }
            let Some(line) = lines.last_mut().filter(|_| !part.is_empty()) else {
                continue;
            };
            match (class.style(), line.last_mut()) {
                ("", Some(Value::String(last))) => last.push_str(part),
                ("", _) => line.push(json!(part)),
                (class, _) => line.push(json!([class, part])),
            }
        }
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_many_lines_has_its_class_on_each() {
        let lines = colour_lines("a/b.rs", "let a;\n/* b\nc */ d\n").unwrap();
        assert_eq!(
            json!(lines).to_string(),
            r#"[[["k","let"]," a;"],[["c","/* b"]],[["c","c */"]," d"],[]]"#
        );
        assert!(colour_lines("a.txt", "let").is_none());
    }
}
