//! Renders templates: a profile's texts with the project's values filled in.
//!
//! A profile may come from a stranger, so steps and widths are limited.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, ErrorKind, State, UndefinedBehavior, Value, filters};
use thiserror::Error;

/// The maximum number of steps, to stop a runaway template.
const FUEL: u64 = 1_000_000;

/// The maximum width in filters, more than any page or list needs.
const WIDEST: usize = 10_000;

#[derive(Debug, Error)]
#[error("{file}:{line}: {what}")]
pub struct TemplateError {
    pub file: String,
    pub line: usize,
    pub what: String,
}

/// Renders a template. An unknown variable is an error with file and line.
pub fn render_template<S: serde::Serialize>(
    file: &str,
    text: &str,
    values: &S,
) -> Result<String, TemplateError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    environment.set_syntax(syntax.expect("the delimiters are the usual ones"));
    environment.set_fuel(Some(FUEL));
    for (name, filter) in [
        ("indent", Value::from_function(filters::indent)),
        ("batch", Value::from_function(filters::batch)),
        ("slice", Value::from_function(filters::slice)),
        ("format", Value::from_function(filters::format)),
    ] {
        environment.add_filter(
            name,
            move |state: &mut State<'_, '_>, Rest(mut arguments): Rest<Value>, named: Kwargs| {
                arguments.push(named.into());
                stay_narrow(&arguments)?;
                filter.call(state, &arguments)
            },
        );
    }
    let failed = |error: minijinja::Error| TemplateError {
        file: file.to_owned(),
        line: error.line().unwrap_or(0),
        what: describe(&error, text),
    };
    let template = environment
        .template_from_named_str(file, text)
        .map_err(failed)?;
    let values = Value::from(minijinja::value::Serde(values));
    let rendered = template.render(&values).map_err(failed)?;
    // A variable that is only passed on, for example to a filter, causes no error by itself.
    let is_global = |name: &str| environment.globals().any(|(global, _)| global == name);
    let names = template.undeclared_variables(true).into_iter();
    let mut unknown: Vec<(usize, String)> = names
        .filter(|name| {
            is_unknown(&values, name) && !is_global(name.split('.').next().unwrap_or_default())
        })
        .filter_map(|name| Some((find_use(text, &name)?, name)))
        .collect();
    unknown.sort();
    match unknown.into_iter().next() {
        Some((line, name)) => Err(TemplateError {
            file: file.to_owned(),
            line,
            what: format!("undefined value: `{name}` is undefined"),
        }),
        None => Ok(rendered),
    }
}

/// Whether a variable, or a part of one, is unknown. A value that is empty now, such as the unit,
/// may have parts at other times.
fn is_unknown(values: &Value, name: &str) -> bool {
    let mut value = values.clone();
    for part in name.split('.') {
        if value.kind() != ValueKind::Map {
            return false;
        }
        value = value.get_attr(part).unwrap_or_default();
        if value.is_undefined() {
            return true;
        }
    }
    false
}

/// The line on which a template uses a variable. None if it tests whether the variable exists.
fn find_use(text: &str, name: &str) -> Option<usize> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let uses = text.match_indices(name).filter(|(at, _)| {
        !text[..*at].ends_with(|c| word(c) || c == '.')
            && !text[at + name.len()..].starts_with(word)
    });
    let mut first = None;
    for (at, _) in uses {
        let rest = text[at + name.len()..].trim_start();
        let asks = rest.starts_with("is ")
            || rest
                .strip_prefix('|')
                .is_some_and(|filter| filter.trim_start().starts_with("default"));
        if asks {
            return None;
        }
        let opened = text[..at].rfind("{{").max(text[..at].rfind("{%"));
        let closed = text[..at].rfind("}}").max(text[..at].rfind("%}"));
        if opened > closed {
            first = first.or(Some(text[..at].matches('\n').count() + 1));
        }
    }
    first
}

/// Refuses huge widths, which would use up all memory before the fuel limit applies.
fn stay_narrow(arguments: &[Value]) -> Result<(), minijinja::Error> {
    let too_wide = || {
        minijinja::Error::new(
            ErrorKind::InvalidOperation,
            format!("a width above {WIDEST} is not allowed"),
        )
    };
    for argument in arguments.iter().skip(1) {
        let named = argument
            .is_kwargs()
            .then(|| argument.try_iter().ok())
            .flatten()
            .into_iter()
            .flatten();
        let numbers = named
            .filter_map(|key| argument.get_item(&key).ok())
            .chain([argument.clone()]);
        if numbers
            .into_iter()
            .filter(Value::is_number)
            .any(|n| n.as_usize().is_none_or(|n| n > WIDEST))
        {
            return Err(too_wide());
        }
    }
    // A format contains its widths, or takes them from its arguments.
    if let Some(format) = arguments
        .first()
        .and_then(Value::as_str)
        .filter(|format| format.contains('%'))
    {
        let mut digits = format.split(|c: char| !c.is_ascii_digit());
        if digits.any(|width| {
            !width.is_empty() && width.parse::<usize>().map_or(true, |width| width > WIDEST)
        }) {
            return Err(too_wide());
        }
    }
    Ok(())
}

fn describe(error: &minijinja::Error, text: &str) -> String {
    let said = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    // If the engine's message names nothing, add the expression at fault.
    let at = error
        .range()
        .and_then(|range| text.get(range))
        .map(str::trim)
        .filter(|at| !at.is_empty() && !said.contains('`'));
    match at {
        Some(at) => format!("{said}: `{}`", at.lines().next().unwrap_or_default()),
        None => said,
    }
}

/// The variables available to templates.
pub(crate) fn template_values(
    vars: &BTreeMap<String, String>,
    now: jiff::Timestamp,
) -> BTreeMap<String, String> {
    let zoned = now.to_zoned(jiff::tz::TimeZone::UTC);
    let mut values = vars.clone();
    values.insert("date".into(), zoned.strftime("%Y-%m-%d").to_string());
    values.insert("now".into(), format!("{:.0}", now));
    for name in crate::project::repository::VALUES {
        values.entry(name.to_owned()).or_default();
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variable_names_its_line() {
        let error = render_template(
            "t.md",
            "a\n{{ nope }}\n",
            &BTreeMap::<String, String>::new(),
        )
        .unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("t.md", 2));
    }

    #[test]
    fn every_unknown_variable_is_named() {
        let values = BTreeMap::from([("list", BTreeMap::from([("a", "A")]))]);
        let render = |text: &str| render_template("t.md", text, &values);
        for (text, line, name) in [
            ("a\n{{ nope }}", 2, "nope"),
            ("{{ list.nope.more }}", 1, "nope"),
            ("nope\n\n{{ list|join(nope) }}", 3, "nope"),
            ("{% for x in nope %}{{ x }}{% endfor %}", 1, "nope"),
            ("\n{{ list|join(list.nope) }}", 2, "list.nope"),
        ] {
            let error = render(text).unwrap_err();
            assert!(
                error.line == line && error.what.contains(name),
                "{text}: {error}"
            );
        }
        for fine in [
            "{% if nope is defined %}{{ nope }}{% endif %}",
            "{{ nope|default('x') }}",
            "{% for i in range(2) %}nope{% endfor %}",
            "{{ list.a }}",
        ] {
            render(fine).unwrap();
        }
    }

    #[test]
    fn no_width_takes_all_memory() {
        let render = |text: &str| render_template("t.md", text, &BTreeMap::<String, String>::new());
        for wide in [
            "{{ 'x'|indent(99999999999) }}",
            "{{ 'x'|indent(width=99999999999) }}",
            "{{ '%99999999999d'|format(1) }}",
            "{{ '%*d'|format(99999999999, 1) }}",
            "{{ [1]|batch(99999999999, 0)|list }}",
            "{{ [1]|slice(99999999999)|list }}",
        ] {
            let error = render(wide).unwrap_err();
            assert!(
                error.what.contains("a width above 10000"),
                "{wide}: {error}"
            );
        }
        assert_eq!(
            render("{{ 'a\nb'|indent(2) }} {{ '%03d'|format(7) }}").unwrap(),
            "a\n  b 007"
        );
    }

    #[test]
    fn text_is_not_escaped() {
        let values = BTreeMap::from([("project".to_owned(), "A & <B>".to_owned())]);
        assert_eq!(
            render_template("t.json", "{{ project }}\n", &values).unwrap(),
            "A & <B>\n"
        );
    }
}
