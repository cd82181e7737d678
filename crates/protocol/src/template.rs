//! Templates: a profile's texts with the project's values filled in.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};
use thiserror::Error;

/// A template never needs more steps than this; a runaway one is stopped.
const FUEL: u64 = 1_000_000;

#[derive(Debug, Error)]
#[error("{file}:{line}: {what}")]
pub struct TemplateError {
    pub file: String,
    pub line: usize,
    pub what: String,
}

/// Renders a template. An unknown variable is an error with file and line.
pub fn render_template<S: serde::Serialize>(file: &str, text: &str, values: &S) -> Result<String, TemplateError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    environment.set_syntax(syntax.expect("the delimiters are the usual ones"));
    environment.set_fuel(Some(FUEL));
    environment.render_named_str(file, text, minijinja::value::Serde(values)).map_err(|error| TemplateError {
        file: file.to_owned(),
        line: error.line().unwrap_or(0),
        what: describe(&error),
    })
}

fn describe(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// The variables as templates see them.
pub(crate) fn template_values(vars: &BTreeMap<String, String>, now: jiff::Timestamp) -> BTreeMap<String, String> {
    let zoned = now.to_zoned(jiff::tz::TimeZone::UTC);
    let mut values = vars.clone();
    values.insert("date".into(), zoned.strftime("%Y-%m-%d").to_string());
    values.insert("now".into(), format!("{:.0}", now));
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variable_names_its_line() {
        let error = render_template("t.md", "a\n{{ nope }}\n", &BTreeMap::<String, String>::new()).unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("t.md", 2));
    }

    #[test]
    fn text_is_not_escaped() {
        let values = BTreeMap::from([("project".to_owned(), "A & <B>".to_owned())]);
        assert_eq!(render_template("t.json", "{{ project }}\n", &values).unwrap(), "A & <B>\n");
    }
}
