//! Turns the command lines of messages into the tool calls that do the same.

use quipu_contract::Language;
use serde_json::{Map, Value, json};

use super::schema::arguments_of;
use super::tool_table::Tool;
use super::tools::{offered, row};

/// Replaces the command line of the finish at the end of a start text by the call of the tool.
pub fn with_finish_call(text: &str) -> String {
    let Some((before, command)) = text.rsplit_once("\nquipu finish") else {
        return text.to_owned();
    };
    match command.split_once("<<'EOF'\n") {
        Some((flags, template)) if !flags.contains('\n') => {
            let (template, after) = template.split_once("\nEOF").unwrap_or((template, ""));
            // The line before is in the language of the project.
            let call = match before.ends_with('：') {
                true => "工具 `finish`，参数 `text` 如下：",
                false => "the tool `finish`, with this `text`:",
            };
            format!("{before}\n{call}\n{template}{after}")
        }
        _ => text.to_owned(),
    }
}

/// Replaces the command lines of the last paragraph of a start text, which says what to do next.
pub fn with_next_calls(text: &str) -> String {
    let next = [
        ("\n## Now\n", Language::En),
        ("\n## 接下来\n", Language::Zh),
    ];
    let titles = next
        .into_iter()
        .filter_map(|(title, language)| Some((text.rfind(title)?, language)));
    match titles.max_by_key(|(at, _)| *at) {
        Some((at, language)) if !text[at..].contains("<<'EOF'") => {
            text[..at].to_owned() + &with_tool_calls(&text[at..], language)
        }
        _ => text.to_owned(),
    }
}

/// Replaces each command line in a remedy by the tool call that does the same, if there is one.
pub fn with_tool_calls(remedy: &str, language: Language) -> String {
    let (mut text, mut rest) = (String::new(), remedy);
    while let Some(at) = rest.find("quipu ") {
        let (before, from) = rest.split_at(at);
        // A person has no tools.
        if before.contains("person") || before.contains("由人") {
            break;
        }
        let (command, after) = from.split_at(command_length(from));
        let is_quoted = before.ends_with('`') && after.starts_with('`');
        match as_tool_call(command, language) {
            Some(call) if is_quoted => {
                text.push_str(&before[..before.len() - 1]);
                text.push_str(&call);
                rest = &after[1..];
            }
            call => {
                text.push_str(before);
                text.push_str(&call.unwrap_or_else(|| command.to_owned()));
                rest = after;
            }
        }
    }
    text.push_str(rest);
    text
}

/// The length of the command line at the beginning of a text, without blanks at its end.
fn command_length(text: &str) -> usize {
    let mut quote = None;
    let mut ends = |(at, c): (usize, char)| {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ';' | ')' | '`' | '\n' | '（' | '）' | '；' | '。' | '，') => {
                return Some(at);
            }
            (None, ' ') if text[at..].starts_with("     ") => return Some(at),
            (None, ',') if text[at..].starts_with(", ") => return Some(at),
            (None, '.') if text[at..].starts_with(". ") => return Some(at),
            _ => {}
        }
        None
    };
    let end = text
        .char_indices()
        .find_map(&mut ends)
        .unwrap_or(text.len());
    text[..end].trim_end().len()
}

/// Converts a command line that a refusal recommends to the tool call that does the same. None if
/// no tool does.
fn as_tool_call(command: &str, language: Language) -> Option<String> {
    let mut words = split_words(command.strip_prefix("quipu ")?)?;
    words.retain(|word| word != "--json");
    if let Some(at) = words.iter().position(|word| word == "--file") {
        words.drain(at..words.len().min(at + 2));
    }
    let rows = offered().flat_map(|tool| tool.rows.iter().map(move |row| (tool, row)));
    let (tool, (action, row_name)) = rows
        .filter(|(_, (_, name))| {
            let name: Vec<&str> = name.split(' ').collect();
            words.len() >= name.len() && name.iter().zip(&words).all(|(part, word)| part == word)
        })
        .max_by_key(|(_, (_, name))| name.len())?;
    let count = row_name.split(' ').count();
    let mut given = Map::new();
    if tool.rows.len() > 1 {
        given.insert("action".into(), json!(action));
    }
    let (operation, words) = (row(row_name)?, &words[count..]);
    given.extend(
        match (
            arguments_of(operation, words, tool.left_out, false),
            words.split_last(),
        ) {
            (Some(given), _) => given,
            // An ellipsis at the end stands for arguments that the reader knows.
            (None, Some((last, words))) if last == "…" => {
                arguments_of(operation, words, tool.left_out, true)?
            }
            (None, _) => return None,
        },
    );
    // Other arguments may stand in place of these.
    let is_said = tool.eased.is_some() && !given.is_empty();
    for name in tool.must.iter().filter(|_| !is_said) {
        given.entry(*name).or_insert(json!("…"));
    }
    Some(call_of(tool, &given, language))
}

pub fn call_of(tool: &Tool, given: &Map<String, Value>, language: Language) -> String {
    let (name, given) = (tool.name, Value::Object(given.clone()));
    match language {
        Language::En => format!("call `{name}` with {given}"),
        Language::Zh => format!("调用 `{name}`，参数 {given}"),
    }
}

/// Splits a command line into words. None if a quote is left open or a shell would do more.
fn split_words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | ';' | '<' | '>' | '&') => return None,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_become_tool_calls() {
        for (remedy, wanted) in [
            ("quipu status", "call `status` with {}"),
            (
                "quipu append a.md --text \"…\"     (a correction supersedes)",
                r#"call `append` with {"path":"a.md","text":"…"}     (a correction supersedes)"#,
            ),
            (
                "quipu read a.json --json     (prints its version; then: quipu write a.json --expect VERSION --file FILE)",
                r#"call `read` with {"path":"a.json"}     (prints its version; then: call `write` with {"path":"a.json","expect":"VERSION","text":"…"})"#,
            ),
            (
                "quipu restore a.md b.md     (or accept the edit: quipu amend a.md --why \"…\")",
                r#"call `repair` with {"action":"restore","path":"a.md","more":["b.md"]}     (or accept the edit: quipu amend a.md --why "…")"#,
            ),
            (
                "quipu task note \"…\". To give up: quipu finish --abandon --why \"…\". All: quipu start",
                r#"quipu task note "…". To give up: call `finish` with {"abandon":true,"why":"…"}. All: call `start` with {}"#,
            ),
            (
                "quipu contract show --role main",
                r#"call `inspect` with {"action":"contract","role":"main"}"#,
            ),
            (
                "quipu report --delegation ID …",
                r#"call `report` with {"delegation":"ID"}"#,
            ),
            (
                "move it away, then run: quipu doctor",
                r#"move it away, then run: call `repair` with {"action":"doctor"}"#,
            ),
            (
                "run `quipu status` first",
                "run call `status` with {} first",
            ),
            (
                "ask a person to run: quipu approve x",
                "ask a person to run: quipu approve x",
            ),
        ] {
            assert_eq!(with_tool_calls(remedy, Language::En), wanted);
        }
        assert_eq!(
            with_tool_calls("quipu status；请由人执行：quipu restore a.md", Language::Zh),
            "调用 `status`，参数 {}；请由人执行：quipu restore a.md"
        );
    }

    #[test]
    fn a_start_ends_with_the_call_of_a_finish() {
        let text =
            "Fill in this command and run it:\nquipu finish --agent a <<'EOF'\n## Done\n- x\nEOF\n";
        assert_eq!(
            with_finish_call(text),
            "Fill in this command and run it:\nthe tool `finish`, with this `text`:\n## Done\n- x\n"
        );
        assert_eq!(
            with_finish_call("请执行：\nquipu finish <<'EOF'\n## 完成\n- 无\nEOF\n"),
            "请执行：\n工具 `finish`，参数 `text` 如下：\n## 完成\n- 无\n"
        );
        assert_eq!(
            with_finish_call("nothing\nquipu finish --did x"),
            "nothing\nquipu finish --did x"
        );
    }
}
