//! The contract as a table of files and roles, and whether one role may read or change one path.

use quipu_contract::{
    Act, Actor, ActorName, Class, Contract, FileRule, Pattern, Place, Readable, Role, UnitId,
};
use quipu_store::Op;
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::reply::{both, reply};
use crate::answer::Failure;
use crate::session::Session;

pub async fn contract(State(page): Shared) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let contract = &project.contract;
        let roles = contract.roles.values();
        let roles: Vec<Value> = roles
            .map(|role| json!({"name": role.name, "title": both(&role.title), "duty": both(&role.duty), "place": role.place.to_string()}))
            .collect();
        let binding = contract.binding();
        let files: Vec<Value> = contract
            .files
            .iter()
            .map(|rule| {
                let path = rule.path.fill(&binding);
                let cells: Vec<Value> = contract.roles.values().map(|role| cell(contract, role, rule, &path)).collect();
                json!({
                    "path": path.as_str(), "class": rule.class.as_str(), "about": both(&rule.about),
                    "place": rule.place.to_string(), "people_only": rule.people_only, "roles": cells,
                })
            })
            .collect();
        let units: Vec<&UnitId> = contract.units.iter().map(|unit| &unit.id).collect();
        Ok::<Value, Failure>(json!({"roles": roles, "files": files, "units": units}))
    })
    .await
}

/// The pointers of a role that name some path of a rule.
fn cell(contract: &Contract, role: &Role, rule: &FileRule, path: &Pattern) -> Value {
    let binding = contract.binding();
    let named = |pointer: &Pattern| pointer.fill(&binding).overlaps(path);
    let pointer = |path: &Pattern, place: &Place, why: [&str; 2]| json!({"path": path.as_str(), "place": place.to_string(), "why": why});
    let reads = role.reads.iter().filter(|p| named(&p.path));
    let reads = reads.map(|p| {
        let mut json = pointer(&p.path, &p.place, both(&p.why));
        json["section"] = json!(p.section);
        json
    });
    let denies = role.denies.iter().filter(|p| named(&p.path));
    let denies = denies.map(|p| pointer(&p.path, &p.place, both(&p.why)));
    let writes = role
        .writes
        .iter()
        .filter(|p| rule.is_open_to(role) && named(&p.path));
    let writes = writes.map(|p| pointer(&p.path, &p.place, ["", ""]));
    let asks = role.asks.iter().filter(|p| named(&p.path));
    let asks = asks.map(|p| pointer(&p.path, &p.place, ["", ""]));
    json!({
        "read": reads.collect::<Vec<_>>(),
        "write": writes.collect::<Vec<_>>(),
        "deny": denies.collect::<Vec<_>>(),
        "ask": asks.collect::<Vec<_>>(),
    })
}

#[derive(Debug, Deserialize)]
pub struct Asked {
    path: String,
    /// None asks for people.
    role: Option<String>,
    unit: Option<String>,
}

pub async fn may(State(page): Shared, Query(asked): Query<Asked>) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let contract = &project.contract;
        let path = Session::path(&asked.path)?;
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let usage = |what: String| Failure::usage(what, "quipu contract show     (lists roles and units)");
        let role = given(&asked.role).map(|role| ActorName::parse(&role).map_err(|e| usage(e.to_string())));
        let unit = given(&asked.unit).map(|unit| UnitId::parse(&unit).map_err(|e| usage(e.to_string())));
        let actor = match role.transpose()? {
            None => Actor::Person,
            role => Actor::Agent { role, unit: unit.transpose()?, agent: None },
        };
        let grant = contract.grant(&actor).map_err(usage)?;
        let binding = contract.actor_binding(&actor);
        let read = match grant.may_read(&path, &binding) {
            Ok(Readable::Whole) => json!({"allowed": true}),
            Ok(Readable::Sections(sections)) => json!({"allowed": true, "sections": sections}),
            Err(denial) => json!({
                "allowed": false, "what": denial.what, "place": denial.place.to_string(),
                "ask": grant.may_ask(&path, &binding).map(|ask| ask.place.to_string()),
            }),
        };
        let class = contract.class(&path);
        // A refusal that holds for any text holds for this one.
        let op = Op::Append { path: path.clone(), bytes: Vec::new(), apart: true };
        let write = match project.store.permit(&actor, &op) {
            Err(refused) => {
                let failure = Failure::from(refused);
                json!({"allowed": false, "what": failure.what, "place": failure.rule.as_ref().map(|(place, _)| place.to_string()), "acts": []})
            }
            Ok(()) => {
                let acts = acts(class, &actor);
                json!({"allowed": !acts.is_empty(), "what": "", "place": null, "acts": acts})
            }
        };
        let rule = contract.rule(&path);
        Ok(json!({
            "path": path, "class": class.as_str(), "exists": project.store.stat_text(&path)?.is_some(),
            "rule": rule.map(|rule| json!({"path": rule.path.as_str(), "place": rule.place.to_string(), "about": both(&rule.about)})),
            "read": read, "write": write,
        }))
    })
    .await
}

/// How the class lets an actor change a file: the commands.
fn acts(class: Class, actor: &Actor) -> Vec<&'static str> {
    let known = [
        ("create", Act::Create, false),
        ("append", Act::Append, true),
        ("write", Act::Replace { expected: true }, true),
        ("amend", Act::Amend, true),
        ("remove", Act::Remove, true),
    ];
    let allowed = known
        .into_iter()
        .filter(|(_, act, exists)| class.allows(*act, actor, *exists).is_ok());
    allowed.map(|(name, ..)| name).collect()
}
