//! The form of DOIs, in the text and in bibliographies.

use std::sync::LazyLock;

use regex::Regex;

use crate::bibliography::entries;
use crate::{Finder, Gravity, Input, finding};

/// The text that follows `doi:` or `doi.org/` in a text.
static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?i)(?-u:\b)doi(?:\.org/|\s?[:：]\s?)([^\s<>"'`)\]}，。；、]+)"#)
        .expect("a valid pattern")
});
static FORM: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^10\.\d{4,9}(?:\.\d+)*/\S+$").expect("a valid pattern"));

pub(crate) fn check(input: &Input<'_>, found: &mut Finder<'_>) {
    let mut count = 0;
    for written in WRITTEN.captures_iter(input.manuscript) {
        let Some(doi) = written.get(1) else { continue };
        let name = bare(doi.as_str().trim_end_matches(['.', ',', ';']));
        // "doi: to be assigned"
        if !name.contains(|c: char| c.is_ascii_digit()) {
            continue;
        }
        count += 1;
        if !FORM.is_match(name) {
            let text = fault(found, name);
            found.source(
                written.get(0).map_or(0..0, |m| m.range()),
                Gravity::Minor,
                text,
            );
        }
    }
    for bibliography in input.bibliographies {
        for (doi, at) in entries(bibliography)
            .into_iter()
            .flatten()
            .filter_map(|e| e.doi)
        {
            let name = bare(doi.trim());
            if !name.contains(|c: char| c.is_ascii_digit()) {
                continue;
            }
            count += 1;
            // Signs are escaped in some bibliographies.
            if !FORM.is_match(&name.replace('\\', "")) {
                let text = fault(found, name);
                let path = Some(bibliography.path);
                let wrong = finding(path, bibliography.text, at, Gravity::Minor, text);
                found.checked.findings.push(wrong);
            }
        }
    }
    if count > 0 {
        found.covered(
            format!("DOIs whose form was looked at: {count}"),
            format!("核对格式的 DOI：{count}"),
        );
    }
}

/// A DOI without the address of its resolver.
fn bare(doi: &str) -> &str {
    let lower = doi.to_ascii_lowercase();
    let resolver = [
        "https://doi.org/",
        "http://doi.org/",
        "https://dx.doi.org/",
        "http://dx.doi.org/",
        "doi:",
        "doi.org/",
    ];
    let prefix = resolver
        .into_iter()
        .find(|prefix| lower.starts_with(prefix));
    doi[prefix.map_or(0, str::len)..].trim_start()
}

fn fault(found: &Finder<'_>, doi: &str) -> String {
    found.say(
        format!(
            "`{doi}` is not a DOI: it must be `10.`, the number of a registrant, `/` and a name."
        ),
        format!("`{doi}` 不是 DOI：应为 `10.`、注册号、`/` 与名称。"),
    )
}
