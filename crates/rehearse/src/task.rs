//! The agent's task: the contract's data for one role and unit, resolved.
//!
//! The other modules read only this struct and never the contract's roles.

use quipu_contract::{
    Actor, ActorName, Binding, Contract, FileRule, Language, Pattern, ProjectPath, Rehearsal, Role,
    UnitId,
};

/// The target length if the contract names none.
const DEFAULT_WORDS: usize = 3000;

#[derive(Debug, Clone)]
pub struct RehearseTask {
    /// The role's name, for texts in which the agent refers to itself.
    pub role: String,
    /// The role's title in the project's language.
    pub title: String,
    pub kind: Rehearsal,
    pub unit: Option<TaskUnit>,
    /// Every unit of the project, in order.
    pub units: Vec<TaskUnit>,
    /// The format of unit IDs: `ch##`.
    pub shape: Option<String>,
    /// The files of the view to work on.
    pub subject: Option<Pattern>,
    pub outputs: Vec<Output>,
    pub language: Language,
    /// The target length of a text, in words.
    pub words: usize,
    /// The title of the whole work.
    pub project: String,
    /// The metrics that the role scores.
    pub metrics: Vec<String>,
    /// The file rules, which identify memory and manuscripts.
    pub files: Vec<FileRule>,
    /// The earlier comments that the brief asks about, each as its list item.
    pub earlier: Vec<String>,
}

/// A unit, as seen by a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskUnit {
    pub id: String,
    pub title: String,
    pub needs: Vec<String>,
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub path: String,
    /// Alternatives joined by `|`, as in the contract.
    pub marker: Option<String>,
    pub format: String,
    /// The task is complete without it.
    pub optional: bool,
}

impl RehearseTask {
    /// Resolves the task of a role for a unit. Returns `None` if the contract has no such role.
    pub fn of(contract: &Contract, role: &str, unit: Option<&UnitId>) -> Option<RehearseTask> {
        let language = contract.language;
        let declared = contract.roles.get(role)?;
        let actor = Actor::Agent {
            role: ActorName::parse(role).ok(),
            unit: unit.cloned(),
            agent: None,
        };
        let binding = contract.actor_binding(&actor);
        let units: Vec<TaskUnit> = contract
            .units
            .iter()
            .map(|unit| TaskUnit {
                id: unit.id.to_string(),
                title: unit.title.in_language(language).to_owned(),
                needs: unit.needs.iter().map(ToString::to_string).collect(),
            })
            .collect();
        let known = |id: &UnitId| units.iter().find(|known| known.id == id.as_str()).cloned();
        let bare = |id: &UnitId| TaskUnit {
            id: id.to_string(),
            title: id.to_string(),
            needs: Vec::new(),
        };
        let outputs = declared.writes.iter().filter_map(|write| {
            let path = write.path.fill(&binding);
            Some(Output {
                path: path.as_literal()?.to_owned(),
                marker: write.marker.clone(),
                format: write.format.in_language(language).to_owned(),
                optional: write.optional,
            })
        });
        let rehearse = declared.rehearse.as_ref();
        Some(RehearseTask {
            role: role.to_owned(),
            title: declared.title.in_language(language).to_owned(),
            kind: rehearse.map_or_else(Rehearsal::default, |rehearse| rehearse.kind),
            unit: unit.map(|id| known(id).unwrap_or_else(|| bare(id))),
            subject: rehearse
                .and_then(|rehearse| rehearse.from.as_ref())
                .map(|from| from.fill(&binding)),
            shape: contract
                .profiles
                .iter()
                .find(|profile| profile.name == declared.profile)
                .and_then(|profile| profile.unit.as_ref())
                .map(|kind| kind.id.clone()),
            outputs: outputs.collect(),
            language,
            words: required_words(contract, declared, &binding).unwrap_or(DEFAULT_WORDS),
            project: binding.get("project").cloned().unwrap_or_default(),
            metrics: declared
                .metrics
                .iter()
                .map(|metric| metric.in_language(language).to_owned())
                .collect(),
            files: contract.files.clone(),
            earlier: Vec::new(),
            units,
        })
    }
}
/// The length that the contract requires of a role's first output with a length, else the variable
/// `words`.
fn required_words(contract: &Contract, role: &Role, binding: &Binding) -> Option<usize> {
    let shaped = role.writes.iter().find_map(|write| {
        let path = write.path.fill(binding);
        let path = ProjectPath::parse(path.as_literal()?).ok()?;
        contract.rule(&path)?.shape.as_ref()?.words.clone()
    });
    let words = shaped.unwrap_or_else(|| "words".to_owned());
    let number = words.parse().ok();
    number.or_else(|| binding.get(&words)?.trim().parse().ok())
}
