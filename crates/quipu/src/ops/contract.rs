//! The `contract` command: shows the rules of a project and the source of each.

use clap::Args;
use quipu_contract::{Localized, in_one_line, manifest_schema, profile_schema, unknown};
use quipu_protocol::Project;
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct ContractShow {
    /// Only this role, with its pointers
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
}

impl Operate for ContractShow {
    const NAME: &'static str = "contract show";
    const ABOUT: &'static str = "Show the rules of this project and where each comes from";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let root = Project::find_root(&session.folder)?;
        let contract = Project::load_contract(&root)?;
        // Titles, reasons and values are printed on one line each, even if a foreign contract
        // contains line breaks.
        let said = |text: &Localized| in_one_line(text.in_language(contract.language)).into_owned();
        if let Some(name) = &self.role {
            let role = contract.roles.get(name).ok_or_else(|| {
                let what = unknown("role", name, contract.roles.keys().map(String::as_str));
                Failure::new(exit::NOT_FOUND, what, "quipu contract show")
            })?;
            let mut text = format!(
                "{} ({})  {}\n{}\n",
                said(&role.title),
                role.name,
                role.place,
                said(&role.duty)
            );
            for read in &role.reads {
                let section = read
                    .section
                    .as_ref()
                    .map(|s| format!("#{}", in_one_line(s)))
                    .unwrap_or_default();
                text.push_str(&format!(
                    "  📖 {}{section}  {}\n",
                    read.path,
                    said(&read.why)
                ));
            }
            for write in &role.writes {
                let marker = write
                    .marker
                    .as_ref()
                    .map(|m| format!("  <!-- {} -->", in_one_line(m)))
                    .unwrap_or_default();
                text.push_str(&format!("  ✏️ {}{marker}\n", write.path));
            }
            for deny in &role.denies {
                text.push_str(&format!("  🚫 {}  {}\n", deny.path, said(&deny.why)));
            }
            for ask in &role.asks {
                text.push_str(&format!("  💬 {}  quipu ask\n", ask.path));
            }
            return Ok(Answer::new(json!(role), text));
        }
        let mut text = String::from("files\n");
        let width = contract
            .files
            .iter()
            .map(|r| r.path.as_str().chars().count())
            .max()
            .unwrap_or(0);
        for rule in &contract.files {
            text.push_str(&format!(
                "  {:<9} {:<width$}  {}\n",
                rule.class.as_str(),
                rule.path.as_str(),
                rule.place
            ));
        }
        if !contract.roles.is_empty() {
            text.push_str("roles\n");
            let width = contract
                .roles
                .keys()
                .map(|n| n.chars().count())
                .max()
                .unwrap_or(0);
            for role in contract.roles.values() {
                let writes = role
                    .writes
                    .iter()
                    .map(|w| w.path.as_str())
                    .collect::<Vec<_>>()
                    .join(", ");
                text.push_str(&format!(
                    "  {:<width$}  writes {writes}  {}\n",
                    role.name, role.place
                ));
            }
        }
        if !contract.units.is_empty() {
            text.push_str("units\n");
            for unit in &contract.units {
                text.push_str(&format!(
                    "  {:<12} {}  {}\n",
                    unit.id,
                    said(&unit.title),
                    unit.place
                ));
            }
        }
        if !contract.steps.is_empty() {
            text.push_str("steps\n");
            for step in &contract.steps {
                let after = if step.after.is_empty() {
                    String::new()
                } else {
                    format!("after {}", step.after.join(", "))
                };
                text.push_str(&format!("  {:<20} {after}  {}\n", step.name, step.place));
            }
        }
        if !contract.scenes.is_empty() {
            text.push_str("scenes\n");
            let width = contract
                .scenes
                .keys()
                .map(|n| n.chars().count())
                .max()
                .unwrap_or(0);
            for scene in contract.scenes.values() {
                let show = scene
                    .show
                    .iter()
                    .map(|p| p.as_str())
                    .collect::<Vec<_>>()
                    .join(", ");
                text.push_str(&format!(
                    "  {:<width$}  shows {show}  {}\n",
                    scene.name, scene.place
                ));
            }
        }
        if !contract.finish.is_empty() {
            text.push_str("finish\n");
            let width = contract
                .finish
                .iter()
                .map(|i| i.name.chars().count())
                .max()
                .unwrap_or(0);
            for item in &contract.finish {
                text.push_str(&format!(
                    "  {:<width$}  {} {}  {}\n",
                    in_one_line(&item.name),
                    item.form,
                    item.need,
                    item.place
                ));
            }
        }
        if !contract.vars.is_empty() {
            text.push_str("vars\n");
        }
        for (name, var) in &contract.vars {
            text.push_str(&format!(
                "  {} = {}\n",
                in_one_line(name),
                in_one_line(var.value.as_deref().unwrap_or("(none)"))
            ));
        }
        Ok(Answer::new(json!(contract), text))
    }
}

#[derive(Debug, Args)]
pub struct ContractSchema {
    /// The schema of a profile's `profile.toml` instead of `quipu.toml`
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
