//! MCP prompts: the brief of each role, with the contents of the files it reads.

use quipu_contract::{Actor, ActorName, UnitId};
use quipu_protocol::Project;
use serde_json::{Map, Value, json};

use super::schema::parse_call;
use super::wire::Fault;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::TABLE;

/// The protocol's limit on completion values.
const MOST_VALUES: usize = 100;

/// Lists a prompt for each role of the contract. A caller in a role sees only its own.
pub fn list(session: &Session) -> Result<Value, Failure> {
    let contract = Project::load_contract(&Project::find_root(&session.folder)?)?;
    let own = session.actor.role().map(ActorName::as_str);
    let roles = contract
        .roles
        .values()
        .filter(|role| own.is_none_or(|own| own == role.name));
    let prompts: Vec<Value> = roles
        .map(|role| {
            let title = role.title.in_language(contract.language);
            json!({
                "name": format!("brief-{}", role.name),
                "title": title,
                "description": role.duty.in_language(contract.language),
                "arguments": [{"name": "unit", "description": "For this unit", "required": false}],
            })
        })
        .collect();
    Ok(json!({"prompts": prompts}))
}

pub fn get(session: &Session, params: &Map<String, Value>) -> Result<Value, Fault> {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Some(role) = name.strip_prefix("brief-") else {
        return Err(Fault::new(
            Fault::PARAMS,
            format!("unknown prompt `{name}`: prompts/list names all prompts"),
        ));
    };
    let unit = params
        .get("arguments")
        .and_then(|a| a.get("unit"))
        .and_then(Value::as_str)
        .filter(|u| !u.is_empty());
    let told = brief(session, role, unit)
        .map_err(|failure| failure.in_language(session.language()))
        .map_err(|failure| Fault::new(Fault::PARAMS, failure.render()))?;
    Ok(json!({"messages": [{"role": "user", "content": {"type": "text", "text": told.text}}]}))
}

/// Completes unit ids, the only argument of the prompts.
pub fn complete(session: &Session, params: &Map<String, Value>) -> Result<Value, Failure> {
    let word = |of: &str, key: &str| {
        params
            .get(of)
            .and_then(|v| v.get(key))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (about, typed) = (word("argument", "name"), word("argument", "value"));
    let is_ours = word("ref", "type") == "ref/prompt" && about == "unit";
    let contract = Project::load_contract(&Project::find_root(&session.folder)?)?;
    let units = contract
        .units
        .iter()
        .map(|unit| unit.id.as_str())
        .filter(|id| is_ours && id.starts_with(&typed));
    let own = session.actor.unit().map(UnitId::as_str);
    let all: Vec<&str> = units
        .filter(|id| own.is_none_or(|own| own == *id))
        .collect();
    let values: Vec<&str> = all.iter().copied().take(MOST_VALUES).collect();
    Ok(
        json!({"completion": {"values": values, "total": all.len(), "hasMore": all.len() > values.len()}}),
    )
}

fn brief(session: &Session, role: &str, unit: Option<&str>) -> Result<Answer, Failure> {
    let operation = TABLE
        .iter()
        .find(|o| o.name == "brief")
        .ok_or_else(|| Failure::usage("this project has no briefs", ""))?;
    let bad = |what: String| Failure::usage(what, "");
    let given = Map::from_iter([
        ("role".to_owned(), json!(role)),
        ("inline".to_owned(), json!(true)),
    ]);
    let (_, matches) = parse_call(operation, &given, &[]).map_err(|slip| bad(slip.what))?;
    let mut session = session.clone();
    if let (Some(text), Actor::Agent { unit, .. }) = (unit, &mut session.actor) {
        let asked = UnitId::parse(text).map_err(|e| bad(e.to_string()))?;
        if unit.as_ref().is_some_and(|own| *own != asked) {
            return Err(bad(format!("this connection is not for unit `{text}`")));
        }
        *unit = Some(asked);
    }
    (operation.call)(&matches, &session)
}
