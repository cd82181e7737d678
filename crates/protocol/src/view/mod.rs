//! Views: the texts that one role may see for one unit, within a token budget.
//!
//! Pointers are resolved to texts, texts are split into pieces with token counts, the contract's
//! planner decides, and the decision is rendered. Counts in a view are those of the rendered text,
//! not of the plan. If joining pieces costs more than planned, the plan is repeated with that much
//! less space.

pub(crate) mod brief;
mod counts;
mod explain;
mod folder;
mod manifest;
pub(crate) mod pages;
mod panel;
mod pieces;
pub(crate) mod pointers;
mod relevance;
mod render;
pub(crate) mod source_map;
pub(crate) mod usual_length;
mod verify;

use std::collections::BTreeSet;

use quipu_contract::plan::{
    Ask, AskFile, Overflow, Piece, Plan, Share, Shown, Stage, Strategy, plan_view,
};
use quipu_contract::{
    Actor, ActorName, AgentKind, Binding, Budget, Class, Contract, Language, Need, Place,
    ProjectPath, Role, Tokens, UnitId,
};
use quipu_store::{StoreError, Version};
use quipu_text::{Counter, Document};
use serde::Serialize;
use thiserror::Error;

use crate::files::index_file::refresh_index;
use crate::project::open::Project;
use crate::view::usual_length::fit_reserve;
use counts::CountKeeper;
use pieces::{PieceText, plan_pieces};
use pointers::{Resolved, Target, TargetFile, resolve_pointers};

pub use explain::render_explanation;
pub use folder::lay_view;
pub(crate) use folder::materialise_view;
pub use manifest::{FolderError, Manifest};
pub(crate) use pointers::slice_section;
pub use pointers::{Absent, PointerOrder, Repeated, Unreadable, Writer};
pub(crate) use relevance::words;
pub use relevance::{Lexical, Relevance, Topic};
pub(crate) use render::{render_left_out, render_strategy_note};
pub use verify::{Drift, Verdict, verify_view};

#[derive(Debug, Clone)]
pub struct ViewRequest {
    pub role: ActorName,
    pub unit: Option<UnitId>,
    pub agent: Option<ActorName>,
    /// The token budget for reading; replaces the contract's calculation.
    pub budget: Option<Tokens>,
    pub window: Option<Tokens>,
    pub reserve: Option<Tokens>,
    pub counter: Counter,
    pub language: Option<Language>,
    /// Whether to continue without `must` pointers that match nothing yet.
    pub partial: bool,
}

/// The view of a role.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    pub role: String,
    pub unit: Option<String>,
    pub agent: Option<String>,
    pub kind: AgentKind,
    pub counter: &'static str,
    pub language: Language,
    /// The calculation of the window; None if the budget was given explicitly.
    pub window: Option<Budget>,
    pub budget: Tokens,
    pub pointers: Vec<Seen>,
    pub stages: Vec<StageView>,
    pub absent: Vec<Absent>,
    /// Pointers with texts that other pointers already show.
    pub repeated: Vec<Repeated>,
    pub denied: Vec<Denied>,
}

/// A pointer of a view.
#[derive(Debug, Clone, Serialize)]
pub struct Seen {
    pub name: String,
    /// The section that it names, after the `#` in its name.
    #[serde(skip)]
    pub section: Option<String>,
    pub class: Class,
    pub order: PointerOrder,
    pub need: Need,
    pub why: String,
    /// The files that it matches.
    pub files: Vec<ProjectPath>,
    /// Files or sections that no stage shows because they did not fit: `notes/a.md`, `log.md#ch01`.
    pub left_out: Vec<String>,
    /// Files that are only listed, because the pointer's map does not assign them to this unit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<ProjectPath>,
    /// Whether a brief numbers the lines of the text, because other texts cite it as a source.
    #[serde(skip)]
    pub numbered: bool,
    pub place: Place,
}

/// One stage. Most views have one.
#[derive(Debug, Clone, Serialize)]
pub struct StageView {
    /// For each pointer, how it was fitted and its cost.
    pub shares: Vec<Share>,
    pub tokens: Tokens,
    pub files: Vec<ShownFile>,
}

/// A text as shown.
#[derive(Debug, Clone, Serialize)]
pub struct ShownFile {
    /// The pointer it belongs to.
    pub pointer: usize,
    pub path: ProjectPath,
    pub section: Option<String>,
    pub version: Version,
    /// The version of the text that the pointer selects, before any cut.
    #[serde(skip)]
    pub source: Version,
    #[serde(skip)]
    pub source_bytes: usize,
    pub whole: bool,
    pub tokens: Tokens,
    pub text: String,
}

/// A deny rule that took effect.
#[derive(Debug, Clone, Serialize)]
pub struct Denied {
    pub path: String,
    pub why: String,
    /// The number of files that it excludes.
    pub files: usize,
    pub place: Place,
}

#[derive(Debug, Error)]
pub enum ViewError {
    #[error("{0}")]
    UnknownActor(String),
    #[error("role `{role}` works on a unit: name one with --unit")]
    NeedsUnit { role: String, place: Place },
    #[error("role `{role}` has separate files for each agent: name one with --agent")]
    NeedsAgent { role: String, place: Place },
    #[error("`{{{name}}}` has no value")]
    NoValue { name: String, place: Place },
    #[error("{}", render_absent(.0))]
    Absent(Vec<Absent>),
    #[error("{overflow}")]
    Overflow {
        overflow: Overflow,
        places: Vec<Place>,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ViewError {
    pub(crate) fn open_variable(role: &Role, variable: &str) -> ViewError {
        let (role, place) = (role.name.clone(), role.place.clone());
        match variable {
            "unit" => ViewError::NeedsUnit { role, place },
            "agent" => ViewError::NeedsAgent { role, place },
            other => ViewError::NoValue {
                name: other.to_owned(),
                place,
            },
        }
    }
}

fn render_absent(absent: &[Absent]) -> String {
    absent
        .iter()
        .map(|a| format!("`{}` {}{}", a.name, a.what, a.render_writers()))
        .collect::<Vec<_>>()
        .join("\n  and   ")
}

impl Absent {
    /// The writers of a missing text. Empty for an existing file that cannot be read.
    fn render_writers(&self) -> String {
        if self.unreadable.is_some() {
            String::new()
        } else {
            render_writers(&self.writers)
        }
    }
}

fn render_writers(writers: &[Writer]) -> String {
    let told = |w: &Writer| match (&w.role, &w.step) {
        (Some(role), Some(step)) => format!("step `{step}` (role `{role}`)"),
        (Some(role), None) => format!("role `{role}`"),
        (None, step) => format!("step `{}`", step.as_deref().unwrap_or_default()),
    };
    match writers {
        [] => "; no role may write it, so a person must".to_owned(),
        many => format!(
            "; written by {}",
            many.iter().map(told).collect::<Vec<_>>().join(" or ")
        ),
    }
}

/// The unit that a role works on. In a panel, each role is its own unit.
fn unit_of(contract: &Contract, role: &ActorName, named: Option<&UnitId>) -> Option<UnitId> {
    let named_like_role = || {
        contract
            .units
            .iter()
            .map(|u| &u.id)
            .find(|id| id.as_str() == role.as_str())
    };
    named.or_else(named_like_role).cloned()
}

/// Resolves the role and the actor of a request, including its unit.
pub(crate) fn resolve_actor<'c>(
    contract: &'c Contract,
    request: &ViewRequest,
) -> Result<(&'c Role, Actor), ViewError> {
    let unit = unit_of(contract, &request.role, request.unit.as_ref());
    let actor = Actor::Agent {
        role: Some(request.role.clone()),
        unit,
        agent: request.agent.clone(),
    };
    let grant = contract.grant(&actor).map_err(ViewError::UnknownActor)?;
    let role = grant
        .role
        .ok_or_else(|| ViewError::UnknownActor(format!("unknown role `{}`", request.role)))?;
    Ok((role, actor))
}

/// A target with all data that the planner needs.
struct Measured<'c> {
    target: Target<'c>,
    pieces: Vec<Vec<PieceText>>,
    ask: Ask,
}

pub fn make_view(
    project: &Project,
    request: &ViewRequest,
    relevance: &dyn Relevance,
) -> Result<View, ViewError> {
    let contract = &project.contract;
    let (role, actor) = resolve_actor(contract, request)?;
    let binding = contract.actor_binding(&actor);
    let language = request.language.unwrap_or(contract.language);
    refresh_index(project)?;
    let all = project.store.list()?;
    let Resolved {
        targets,
        absent,
        repeated,
    } = resolve_pointers(project, role, &binding, &all)?;
    let lacking: Vec<Absent> = absent
        .iter()
        .filter(|a| a.need == Need::Must && !a.own)
        .cloned()
        .collect();
    if !lacking.is_empty() && !request.partial {
        return Err(ViewError::Absent(lacking));
    }
    let mut window = contract.budgets.of(role.kind);
    window.window = request.window.unwrap_or(window.window);
    fit_reserve(contract, role, &binding, &mut window);
    let (window, budget) = budget(window, request);
    let topic = topic(contract, role, &actor, &targets, language);
    let keeper = CountKeeper::new(
        request.counter,
        project.store.root(),
        project.store.is_read_only(),
    );
    let measured: Vec<Measured<'_>> = targets
        .into_iter()
        .map(|t| measure(t, &keeper, relevance, &topic, language))
        .collect();
    let stages = fit(&measured, budget, &keeper, language)?;
    let pointers = measured
        .iter()
        .enumerate()
        .map(|(index, m)| seen(index, m, &stages, language))
        .collect();
    let stages = match panel::part_of(contract, role) {
        Some(part) => panel::extract(contract, part, stages, &keeper),
        None => stages,
    };
    Ok(View {
        role: role.name.clone(),
        unit: actor.unit().map(ToString::to_string),
        agent: actor.agent().map(ToString::to_string),
        kind: role.kind,
        counter: request.counter.name(),
        language,
        window,
        budget,
        pointers,
        stages,
        absent,
        repeated,
        denied: denied(role, &binding, &all, contract, &actor, language),
    })
}

fn budget(mut window: Budget, request: &ViewRequest) -> (Option<Budget>, Tokens) {
    window.reserve = request.reserve.unwrap_or(window.reserve);
    match request.budget {
        Some(budget) => (None, budget),
        None => (Some(window), window.room()),
    }
}

/// A shorter topic is extended with the description of the role.
const TELLING_CHARS: usize = 24;

fn topic(
    contract: &Contract,
    role: &Role,
    actor: &Actor,
    targets: &[Target<'_>],
    language: Language,
) -> Topic {
    let mut text = String::new();
    if let Some(unit) = actor.unit() {
        text.push_str(&format!("{unit}\n"));
        if let Some(declared) = contract.unit(unit) {
            text.push_str(&format!("{}\n", declared.title.in_language(language)));
            declared
                .needs
                .iter()
                .for_each(|need| text.push_str(&format!("{need}\n")));
        }
    }
    for target in targets.iter().filter(|t| t.order == PointerOrder::Task) {
        for file in &target.files {
            if file.section.is_some() {
                text.push_str(&file.text);
            } else {
                let document = Document::parse(&file.text);
                document
                    .sections()
                    .iter()
                    .for_each(|s| text.push_str(&format!("{}\n", s.title)));
            }
        }
    }
    if text.chars().count() < TELLING_CHARS {
        for said in [&role.title, &role.duty].into_iter().chain(&role.metrics) {
            text.push_str(&format!("{}\n", said.in_language(language)));
        }
    }
    Topic(text)
}

fn measure<'c>(
    target: Target<'c>,
    keeper: &CountKeeper,
    relevance: &dyn Relevance,
    topic: &Topic,
    language: Language,
) -> Measured<'c> {
    let pieces: Vec<Vec<PieceText>> = target
        .files
        .iter()
        .map(|f| plan_pieces(&f.path, &f.text))
        .collect();
    let mut age = u32::try_from(pieces.iter().map(Vec::len).sum::<usize>()).unwrap_or(u32::MAX);
    let files = target.files.iter().zip(&pieces).map(|(file, pieces)| {
        let counts = keeper.count(&file.text, pieces);
        let texts: Vec<&str> = pieces.iter().map(|p| &file.text[p.range.clone()]).collect();
        let scores = if pieces.len() > 1 || target.files.len() > 1 {
            relevance.scores(topic, &file.path, &texts)
        } else {
            vec![0]
        };
        let entries = pieces.iter().filter(|p| !p.frame).count();
        let note = render::render_longest_notes(&shown_name(file), entries, language);
        let measured = pieces.iter().enumerate().map(|(i, piece)| {
            age = age.saturating_sub(1);
            let score = scores.get(i).copied().unwrap_or(0);
            Piece {
                tokens: counts.pieces[i],
                overview: counts.overviews[i],
                frame: piece.frame,
                age,
                score,
            }
        });
        AskFile {
            whole: counts.whole,
            note: keeper.counter.count(&note),
            pieces: measured.collect(),
        }
    });
    let ask = Ask {
        name: target.name.clone(),
        class: target.class,
        need: target.pointer.need,
        shrink: target.pointer.shrink,
        files: files.collect(),
    };
    Measured {
        target,
        pieces,
        ask,
    }
}

fn shown_name(file: &TargetFile) -> String {
    pointers::shown_name(&file.path, file.section.as_deref())
}

/// Plans, renders and counts until the result fits.
fn fit(
    measured: &[Measured<'_>],
    budget: Tokens,
    keeper: &CountKeeper,
    language: Language,
) -> Result<Vec<StageView>, ViewError> {
    let asks: Vec<Ask> = measured.iter().map(|m| m.ask.clone()).collect();
    let mut room = budget;
    loop {
        let plan = plan_view(&asks, room).map_err(|mut overflow| {
            overflow.budget = budget;
            let places = overflow
                .stuck
                .iter()
                .map(|s| measured[s.index].target.pointer.place.clone())
                .collect();
            ViewError::Overflow { overflow, places }
        })?;
        let stages = render_stages(measured, plan, keeper, language);
        let most = stages.iter().map(|s| s.tokens).max().unwrap_or_default();
        if most <= budget {
            return Ok(stages);
        }
        // Each round has less space, so the loop ends, at the latest with an overflow.
        room = room.saturating_sub(most.saturating_sub(budget));
    }
}

fn render_stages(
    measured: &[Measured<'_>],
    plan: Plan,
    keeper: &CountKeeper,
    language: Language,
) -> Vec<StageView> {
    let count = plan.stages.len();
    let stages = plan.stages.into_iter().enumerate();
    stages
        .map(|(number, Stage { mut shares, .. })| {
            let mut files = Vec::new();
            for (pointer, (measured, share)) in measured.iter().zip(&mut shares).enumerate() {
                let part =
                    matches!(share.strategy, Strategy::Stage { .. }).then_some((number + 1, count));
                share.shown = Tokens::ZERO;
                for (f, file) in measured.target.files.iter().enumerate() {
                    let (pieces, shown) = (&measured.pieces[f], &share.files[f]);
                    let is_numbered = measured.target.numbered && file.section.is_none();
                    let source = render::Source {
                        name: &shown_name(file),
                        text: &file.text,
                        pieces,
                        is_numbered,
                    };
                    let Some(text) = render::render_shown(&source, shown, part, language) else {
                        continue;
                    };
                    let whole = shown.iter().all(|shown| *shown == Shown::Whole);
                    let tokens = if whole && !is_numbered {
                        measured.ask.files[f].whole
                    } else {
                        keeper.counter.count(&text)
                    };
                    share.shown += tokens;
                    let source = Version::of(file.text.as_bytes());
                    let (path, section, version) = (
                        file.path.clone(),
                        file.section.clone(),
                        file.version.clone(),
                    );
                    let source_bytes = file.text.len();
                    files.push(ShownFile {
                        pointer,
                        path,
                        section,
                        version,
                        source,
                        source_bytes,
                        whole,
                        tokens,
                        text,
                    });
                }
            }
            StageView {
                tokens: shares.iter().map(|s| s.shown).sum(),
                shares,
                files,
            }
        })
        .collect()
}

fn seen(index: usize, measured: &Measured<'_>, stages: &[StageView], language: Language) -> Seen {
    let target = &measured.target;
    let shown: BTreeSet<&ProjectPath> = stages
        .iter()
        .flat_map(|s| &s.files)
        .filter(|file| file.pointer == index)
        .map(|file| &file.path)
        .collect();
    Seen {
        name: target.name.clone(),
        section: target.section.clone(),
        class: target.class,
        order: target.order,
        need: target.pointer.need,
        why: target.pointer.why.in_language(language).to_owned(),
        files: target.files.iter().map(|f| f.path.clone()).collect(),
        listed: target.listed.clone(),
        numbered: target.pointer.map.is_some(),
        left_out: target
            .files
            .iter()
            .filter(|f| !shown.contains(&f.path))
            .map(shown_name)
            .collect(),
        place: target.pointer.place.clone(),
    }
}

fn denied(
    role: &Role,
    binding: &Binding,
    all: &[ProjectPath],
    contract: &Contract,
    actor: &Actor,
    language: Language,
) -> Vec<Denied> {
    let Ok(grant) = contract.grant(actor) else {
        return Vec::new();
    };
    let rules = role.denies.iter().map(|deny| {
        let pattern = deny.path.fill(binding);
        let kept_out = |path: &&ProjectPath| {
            pattern.matches(path.as_str()).is_some() && grant.may_read(path, binding).is_err()
        };
        Denied {
            path: pattern.as_str().to_owned(),
            why: deny.why.in_language(language).to_owned(),
            files: all.iter().filter(kept_out).count(),
            place: deny.place.clone(),
        }
    });
    rules.collect()
}
