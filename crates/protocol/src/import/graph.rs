//! Imports the knowledge graph of the MCP memory server: one page per entity, with its relations.
//!
//! A line is an entity (`name`, `entityType`, `observations`) or a relation (`from`, `to`,
//! `relationType`). Other fields of a line are kept in the page as JSON. An end of a relation that
//! is not an entity still gets a page, so no line is lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::error::ImportError;
use super::source::{Piece, Taken, plain_part};
use crate::files::source_file::Sources;

#[derive(Debug, Default)]
struct Entity {
    name: String,
    kind: Option<String>,
    observations: Vec<String>,
    /// Relations: type, target, and other fields of the line.
    relations: Vec<(String, String, Map<String, Value>)>,
    /// Unknown fields.
    more: Map<String, Value>,
    /// The source lines of the entity, unchanged.
    lines: Vec<String>,
}

pub(super) fn take(place: &Path, sources: Sources<'_>) -> Result<Taken, ImportError> {
    let not_text = |error: std::string::FromUtf8Error| {
        std::io::Error::new(std::io::ErrorKind::InvalidData, error)
    };
    let text = String::from_utf8(sources.read(place, place)?)
        .map_err(not_text)
        .map_err(ImportError::unreadable(place))?;
    let entities = parse(&text).map_err(|(line, what)| ImportError::Malformed {
        path: place.to_owned(),
        line,
        what,
    })?;
    let source = place
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or("memory.jsonl");
    let pages = pages_of(&entities);
    let mut taken = Taken::default();
    for entity in &entities {
        let bytes = render(entity, &pages).into_bytes();
        let original = (entity.lines.join("\n") + "\n").into_bytes();
        let from = format!("{source}#{}", entity.name);
        taken.pieces.push(Piece {
            from,
            to: pages[&entity.name].clone(),
            original,
            bytes,
        });
    }
    Ok(taken)
}

fn parse(text: &str) -> Result<Vec<Entity>, (usize, String)> {
    let mut entities: Vec<Entity> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let bad = |what: String| (index + 1, what);
        let mut fields = match serde_json::from_str(line) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(bad("this is not an object".into())),
            Err(error) => return Err(bad(format!("this is not JSON: {error}"))),
        };
        let kind = fields.shift_remove("type");
        let mut word = |name: &str| match fields.shift_remove(name) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(bad(format!("`{name}` is missing or not a text"))),
        };
        let owner = match kind.as_ref().and_then(Value::as_str) {
            Some("entity") => word("name")?,
            Some("relation") => word("from")?,
            _ => return Err(bad("`type` is neither \"entity\" nor \"relation\"".into())),
        };
        let relation = match kind.as_ref().and_then(Value::as_str) {
            Some("relation") => Some((word("relationType")?, word("to")?)),
            _ => None,
        };
        let place = *places.entry(owner.clone()).or_insert_with(|| {
            entities.push(Entity {
                name: owner,
                ..Entity::default()
            });
            entities.len() - 1
        });
        let entity = &mut entities[place];
        entity.lines.push(line.to_owned());
        if let Some((verb, to)) = relation {
            entity.relations.push((verb, to, fields));
            continue;
        }
        if let Some(Value::String(kind)) = fields.shift_remove("entityType") {
            entity.kind = Some(kind);
        }
        if let Some(Value::Array(said)) = fields.shift_remove("observations") {
            let texts = said
                .iter()
                .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
            entity.observations.extend(texts);
        }
        entity.more.extend(fields);
    }
    Ok(entities)
}

/// Assigns a unique file name to each entity.
fn pages_of(entities: &[Entity]) -> BTreeMap<String, String> {
    let (mut pages, mut taken) = (BTreeMap::new(), BTreeSet::new());
    // The next number per stem, so that many names with one stem take linear time.
    let mut next: HashMap<String, usize> = HashMap::new();
    for entity in entities {
        let stem = plain_part(&entity.name);
        let named = |number: usize| {
            if number < 2 {
                format!("{stem}.md")
            } else {
                format!("{stem}-{number}.md")
            }
        };
        let number = next.entry(stem.to_lowercase()).or_insert(1);
        while !taken.insert(named(*number).to_lowercase()) {
            *number += 1;
        }
        pages.insert(entity.name.clone(), named(*number));
        *number += 1;
    }
    pages
}

fn render(entity: &Entity, pages: &BTreeMap<String, String>) -> String {
    let mut text = format!("---\ntitle: {}\n", json!(entity.name));
    if let Some(kind) = &entity.kind {
        text.push_str(&format!("type: {}\n", json!(kind)));
    }
    if !entity.more.is_empty() {
        text.push_str(&format!("more: {}\n", json!(entity.more)));
    }
    text.push_str(&format!(
        "---\n\n# {}\n",
        entity.name.split_whitespace().collect::<Vec<_>>().join(" ")
    ));
    if !entity.observations.is_empty() {
        text.push('\n');
    }
    for said in &entity.observations {
        text.push_str(&format!("- {}\n", said.replace('\n', "\n  ")));
    }
    if !entity.relations.is_empty() {
        text.push_str("\n## Relations\n\n");
    }
    for (verb, to, more) in &entity.relations {
        let to = match pages.get(to) {
            Some(page) => format!(
                "[{}]({})",
                to.replace(['[', ']'], ""),
                super::wikilink::address(page)
            ),
            None => to.clone(),
        };
        let more = if more.is_empty() {
            String::new()
        } else {
            format!(" `{}`", json!(more))
        };
        text.push_str(&format!("- {verb} {to}{more}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_on_a_page() {
        let text = concat!(
            r#"{"type":"entity","name":"Otto K","entityType":"person","observations":["keeps the light","fears\nthe fog"],"since":1}"#,
            "\n\n",
            r#"{"type":"relation","from":"Otto K","to":"Mara","relationType":"knows","weight":2}"#,
            "\n",
            r#"{"type":"entity","name":"Mara","entityType":"person","observations":[]}"#,
            "\n",
            r#"{"type":"relation","from":"nobody","to":"otto k","relationType":"hears of"}"#,
            "\n",
        );
        let entities = parse(text).unwrap();
        let pages = pages_of(&entities);
        let told = entities
            .iter()
            .map(|e| format!("{}:\n{}", pages[&e.name], render(e, &pages)))
            .collect::<String>();
        insta::assert_snapshot!(told, @r#"
        Otto K.md:
        ---
        title: "Otto K"
        type: "person"
        more: {"since":1}
        ---

        # Otto K

        - keeps the light
        - fears
          the fog

        ## Relations

        - knows [Mara](Mara.md) `{"weight":2}`
        Mara.md:
        ---
        title: "Mara"
        type: "person"
        ---

        # Mara
        nobody.md:
        ---
        title: "nobody"
        ---

        # nobody

        ## Relations

        - hears of otto k
        "#);
    }

    /// The names differ only after the part that a page name keeps. A quadratic version took
    /// minutes.
    #[test]
    fn many_names_of_one_stem_are_numbered_in_linear_time() {
        let line = |number: usize| {
            format!(
                "{{\"type\":\"entity\",\"name\":\"{}{number}\"}}\n",
                "x".repeat(120)
            )
        };
        let text: String = (0..20_000).map(line).collect();
        let began = std::time::Instant::now();
        let pages: BTreeSet<String> = pages_of(&parse(&text).unwrap()).into_values().collect();
        assert_eq!(pages.len(), 20_000);
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn a_faulty_line_is_named() {
        assert_eq!(parse("{}\n").unwrap_err().0, 1);
        assert_eq!(parse("\n{\n").unwrap_err().0, 2);
        assert!(
            parse("{\"type\":\"entity\"}")
                .unwrap_err()
                .1
                .contains("`name`")
        );
    }
}
