//! What the agent is asked to do: the contract's data for one role and unit, resolved.

use quipu_contract::{Actor, ActorName, Contract, FileRule, Language, Pattern, Rehearsal, UnitId};

/// The length of a text where the contract names none.
const DEFAULT_WORDS: usize = 3000;

/// One assignment.
#[derive(Debug, Clone)]
pub struct RehearseTask {
    /// The role's name, for what the agent says of itself.
    pub role: String,
    /// What the role is called in the project's language.
    pub title: String,
    pub kind: Rehearsal,
    pub unit: Option<TaskUnit>,
    /// Every unit of the project, in order.
    pub units: Vec<TaskUnit>,
    /// How ids of units look: `ch##`.
    pub shape: Option<String>,
    /// The files of the view that are the matter at hand.
    pub subject: Option<Pattern>,
    pub outputs: Vec<Output>,
    pub language: Language,
    /// How long a text is to be.
    pub words: usize,
    /// The title of the whole work.
    pub project: String,
    /// What the role scores.
    pub metrics: Vec<String>,
    /// The rules over files: which are memory, which manuscripts.
    pub files: Vec<FileRule>,
}

/// A unit as a task knows it.
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
    /// The task is done without it.
    pub optional: bool,
}

impl RehearseTask {
    /// The task of a role for a unit, as the contract has it; none if the contract has no such
    /// role.
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
            words: binding
                .get("words")
                .and_then(|words| words.trim().parse().ok())
                .unwrap_or(DEFAULT_WORDS),
            project: binding.get("project").cloned().unwrap_or_default(),
            metrics: declared
                .metrics
                .iter()
                .map(|metric| metric.in_language(language).to_owned())
                .collect(),
            files: contract.files.clone(),
            units,
        })
    }
}
