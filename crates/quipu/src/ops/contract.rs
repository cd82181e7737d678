//! The `contract` command: shows the rules of a project and the source of each.

use clap::Args;
use quipu_contract::{
    Actor, Closed, Contract, Language, Localized, ProjectPath, Role, in_one_line, manifest_schema,
    profile_schema, unknown,
};
use quipu_protocol::Project;
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct ContractShow {
    /// Show only this role, with its pointers
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
}

impl Operate for ContractShow {
    const NAME: &'static str = "contract show";
    const ABOUT: &'static str = "Show the rules of this project and where each comes from";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let root = Project::find_root(&session.folder)?;
        let contract = Project::load_contract(&root)?;
        let Some(name) = &self.role else {
            let text = render_contract(&contract, &session.actor);
            return Ok(Answer::new(json!(contract), text));
        };
        let role = contract.roles.get(name).ok_or_else(|| {
            let what = unknown("role", name, contract.roles.keys().map(String::as_str));
            Failure::new(exit::NOT_FOUND, what, "quipu contract show")
        })?;
        Ok(Answer::new(
            json!(role),
            render_role(role, contract.language),
        ))
    }
}

/// Titles, reasons and values are printed on one line each, even if a foreign contract contains
/// line breaks.
fn one_line(text: &Localized, language: Language) -> String {
    in_one_line(text.in_language(language)).into_owned()
}

fn render_role(role: &Role, language: Language) -> String {
    let mut text = format!(
        "{} ({})  {}\n{}\n",
        one_line(&role.title, language),
        role.name,
        role.place,
        one_line(&role.duty, language)
    );
    for read in &role.reads {
        let section = read.section.as_ref();
        let section = section.map(|s| format!("#{}", in_one_line(s)));
        text.push_str(&format!(
            "  📖 {}{}  {}\n",
            read.path,
            section.unwrap_or_default(),
            one_line(&read.why, language)
        ));
    }
    for write in &role.writes {
        let marker = write.marker.as_ref();
        let marker = marker.map(|m| format!("  <!-- {} -->", in_one_line(m)));
        let marker = marker.unwrap_or_default();
        text.push_str(&format!("  ✏️ {}{marker}\n", write.path));
    }
    for deny in &role.denies {
        let why = one_line(&deny.why, language);
        text.push_str(&format!("  🚫 {}  {why}\n", deny.path));
    }
    for ask in &role.asks {
        text.push_str(&format!("  💬 {}  quipu ask\n", ask.path));
    }
    text
}

/// Says why an actor may not change a file, if it may not.
pub(super) fn closed_to(
    contract: &Contract,
    actor: &Actor,
    path: &ProjectPath,
) -> Option<&'static str> {
    let closed = contract.closed_to(actor, path)?;
    Some(match (closed, contract.language) {
        (Closed::ToAgents, Language::En) => "only people may change it",
        (Closed::ToAgents, Language::Zh) => "只有人可以修改",
        (Closed::ToRole, Language::En) => "your role may not change it",
        (Closed::ToRole, Language::Zh) => "你的角色不可修改",
    })
}

fn render_contract(contract: &Contract, actor: &Actor) -> String {
    let mut text = String::from("files\n");
    let width = widest(contract.files.iter().map(|rule| rule.path.as_str()));
    let binding = contract.actor_binding(actor);
    for rule in &contract.files {
        let path = rule.path.fill(&binding);
        let path = path
            .as_literal()
            .and_then(|path| ProjectPath::parse(path).ok());
        let closed = path.and_then(|path| closed_to(contract, actor, &path));
        text.push_str(&format!(
            "  {:<9} {:<width$}  {}{}\n",
            rule.class.as_str(),
            rule.path.as_str(),
            rule.place,
            closed.map(|why| format!("  {why}")).unwrap_or_default()
        ));
    }
    section(&mut text, "roles", contract.roles.values(), |role| {
        let width = widest(contract.roles.keys().map(String::as_str));
        let writes: Vec<&str> = role.writes.iter().map(|w| w.path.as_str()).collect();
        let writes = writes.join(", ");
        format!("{:<width$}  writes {writes}  {}", role.name, role.place)
    });
    section(&mut text, "units", &contract.units, |unit| {
        let title = one_line(&unit.title, contract.language);
        format!("{:<12} {title}  {}", unit.id, unit.place)
    });
    section(&mut text, "steps", &contract.steps, |step| {
        let after = match step.after.is_empty() {
            true => String::new(),
            false => format!("after {}", step.after.join(", ")),
        };
        format!("{:<20} {after}  {}", step.name, step.place)
    });
    section(&mut text, "scenes", contract.scenes.values(), |scene| {
        let width = widest(contract.scenes.keys().map(String::as_str));
        let show: Vec<&str> = scene.show.iter().map(|p| p.as_str()).collect();
        let show = show.join(", ");
        format!("{:<width$}  shows {show}  {}", scene.name, scene.place)
    });
    section(&mut text, "finish", &contract.finish, |item| {
        let width = widest(contract.finish.iter().map(|i| i.name.as_str()));
        let name = in_one_line(&item.name);
        format!(
            "{name:<width$}  {} {}  {}",
            item.form, item.need, item.place
        )
    });
    section(&mut text, "vars", &contract.vars, |(name, var)| {
        let value = in_one_line(var.value.as_deref().unwrap_or("(none)"));
        format!("{} = {value}", in_one_line(name))
    });
    text
}

/// Adds a heading with a line for each item. An empty section has no heading.
fn section<T>(
    text: &mut String,
    heading: &str,
    items: impl IntoIterator<Item = T>,
    line: impl Fn(T) -> String,
) {
    let lines: Vec<String> = items.into_iter().map(line).collect();
    if !lines.is_empty() {
        text.push_str(&format!("{heading}\n"));
    }
    for line in lines {
        text.push_str(&format!("  {line}\n"));
    }
}

fn widest<'t>(names: impl Iterator<Item = &'t str>) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or(0)
}

#[derive(Debug, Args)]
pub struct ContractSchema {
    /// Print the schema of a profile's `profile.toml` instead of `quipu.toml`
    #[arg(long)]
    profile: bool,
}

impl Operate for ContractSchema {
    const NAME: &'static str = "contract schema";
    const ABOUT: &'static str = "Print the JSON Schema of quipu.toml";

    fn operate(self, _: &Session) -> Result<Answer, Failure> {
        let schema = if self.profile {
            profile_schema()
        } else {
            manifest_schema()
        };
        let text = format!("{schema:#}\n");
        Ok(Answer::new(schema, text))
    }
}
