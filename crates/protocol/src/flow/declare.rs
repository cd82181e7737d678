//! Units from a plan: validates a plan, and declares its units in `quipu.toml` when a person
//! approves the gate.
//!
//! An agent can only propose units. Only the approval of a gate writes them.

use quipu_contract::{Contract, Declare, Language, ProjectPath, UnitId};
use quipu_store::{Expect, Op, StoreError};
use quipu_text::Document;
use serde::Serialize;

use super::check::Collected;
use super::job::{PlannedJob, fill_path};
use crate::project::open::Project;
use crate::session::error::in_language;
use crate::view::source_map::{is_named, mapped_paths};

const MANIFEST: &str = "quipu.toml";

/// A unit in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedUnit {
    pub id: UnitId,
    pub title: String,
    pub needs: Vec<UnitId>,
}

/// The units of a plan, and the faults of the plan.
#[derive(Debug, Default)]
pub struct UnitPlan {
    /// The file with the plan.
    pub path: String,
    pub units: Vec<PlannedUnit>,
    pub faults: Vec<String>,
}

impl UnitPlan {
    /// Units that the contract does not declare yet, or declares with other needs.
    pub fn fresh<'p>(&'p self, contract: &'p Contract) -> impl Iterator<Item = &'p PlannedUnit> {
        self.units.iter().filter(|unit| {
            contract
                .unit(&unit.id)
                .is_none_or(|declared| declared.needs != unit.needs)
        })
    }
}

/// Loads the plan that a gate approves: the gate's own file if it exists, else the draft.
pub fn load_unit_plan(
    project: &Project,
    gate: &PlannedJob<'_>,
) -> Result<Option<UnitPlan>, StoreError> {
    let Some(declare) = &gate.step.declare else {
        return Ok(None);
    };
    let paths = gate
        .outputs
        .first()
        .map(|o| o.path.clone())
        .into_iter()
        .chain(fill_path(&declare.from, &gate.binding));
    for path in paths {
        if let Some((bytes, _)) = project.store.read(&path)? {
            return Ok(Some(read_plan(
                &project.contract,
                declare,
                path.as_str(),
                &String::from_utf8_lossy(&bytes),
            )));
        }
    }
    Ok(None)
}

/// Parses an id that has the form of some profile's units.
fn is_unit(contract: &Contract, text: &str) -> Option<UnitId> {
    let id = UnitId::parse(text).ok()?;
    let mut kinds = contract
        .profiles
        .iter()
        .filter_map(|profile| profile.unit.as_ref())
        .filter(|kind| kind.id != "*");
    (kinds.any(|kind| kind.accepts(&id)) || contract.unit(&id).is_some()).then_some(id)
}

/// Returns the id that a heading means but does not spell as the contract does: `ch1`, `CH 01`.
fn meant_unit(contract: &Contract, title: &str) -> Option<UnitId> {
    let kinds = contract.profiles.iter();
    kinds
        .filter_map(|profile| profile.unit.as_ref())
        .find_map(|kind| {
            let (prefix, rest) = kind.id.split_once('#')?;
            let title = title.to_lowercase();
            let number = title
                .strip_prefix(prefix)?
                .trim_start_matches([' ', '-', '_', '.']);
            let end = number
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(number.len());
            let (digits, after) = number.split_at(end);
            let is_heading = !digits.is_empty() && !after.starts_with(char::is_alphanumeric);
            let width = 1 + rest.matches('#').count();
            let id = format!("{prefix}{:0>width$}", digits.trim_start_matches('0'));
            is_unit(contract, &id).filter(|_| is_heading)
        })
}

/// Parses the units of a plan: one section each, with the id alone as its heading.
fn read_plan(contract: &Contract, declare: &Declare, path: &str, text: &str) -> UnitPlan {
    let document = Document::parse(text);
    let mut plan = UnitPlan {
        path: path.to_owned(),
        ..UnitPlan::default()
    };
    let mut lines = Vec::new();
    for section in document.sections().iter().filter(|s| s.level > 0) {
        let title = section.title.trim();
        let Some(id) = is_unit(contract, title) else {
            let first = title
                .split([' ', ':', '：', '.', '·', '—', '–'])
                .next()
                .unwrap_or_default();
            if let Some(id) = is_unit(contract, first).filter(|_| first != title) {
                let line = section.line;
                plan.faults.push(in_language(
                    contract.language,
                    format!(
                        "`{path}` line {line}: the heading `{title}` must consist of the id \
                         alone: `## {id}`"
                    ),
                    format!("`{path}` 第 {line} 行：标题 `{title}` 只能写编号：`## {id}`"),
                ));
            } else if let Some(id) = meant_unit(contract, title) {
                let line = section.line;
                plan.faults.push(in_language(
                    contract.language,
                    format!(
                        "`{path}` line {line}: `{title}` is not the id of a unit: write `## {id}`"
                    ),
                    format!("`{path}` 第 {line} 行：`{title}` 不是单元的编号：请写 `## {id}`"),
                ));
            }
            continue;
        };
        let body = document.slice(&(section.body.start..section.range.end));
        let title = find_line(body, &declare.title).filter(|title| !title.is_empty());
        if title.is_none() {
            // There is one name per language.
            let nth = Language::ALL
                .iter()
                .position(|language| *language == contract.language)
                .unwrap_or_default();
            let name = declare
                .title
                .get(nth)
                .or(declare.title.first())
                .map_or("", String::as_str);
            let line = section.line;
            plan.faults.push(in_language(
                contract.language,
                format!("`{path}` line {line}: section `{id}` has no line `- **{name}:** …`"),
                format!("`{path}` 第 {line} 行：`{id}` 一节缺少一行 `- **{name}：** …`"),
            ));
        }
        let ids = |needs: String| -> Vec<UnitId> {
            let words = needs.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
            words.filter_map(|word| is_unit(contract, word)).collect()
        };
        // If a plan does not mention needs, the declared needs stay.
        let declared = || {
            contract
                .unit(&id)
                .map(|unit| unit.needs.clone())
                .unwrap_or_default()
        };
        let needs = find_line(body, &declare.needs).map_or_else(declared, ids);
        lines.push(section.line);
        plan.units.push(PlannedUnit {
            title: title.unwrap_or_else(|| id.to_string()),
            id,
            needs,
        });
    }
    find_order_faults(contract, &mut plan, &lines);
    let wanted = declare.count.as_ref().and_then(|name| {
        Some((
            name,
            contract
                .vars
                .get(name)?
                .value
                .as_ref()?
                .trim()
                .parse::<usize>()
                .ok()?,
        ))
    });
    if let Some((name, wanted)) = wanted.filter(|(_, wanted)| *wanted != plan.units.len()) {
        let units = plan.units.len();
        plan.faults.push(in_language(
            contract.language,
            format!("`{path}` has {units} units; {wanted} are required (`{name}` in {MANIFEST})"),
            format!("`{path}` 有 {units} 个单元；要求 {wanted} 个（{MANIFEST} 中的 `{name}`）"),
        ));
    }
    plan
}

/// Checks that ids are unique and in order, that no unit needs a later one, and that all declared
/// units are present.
fn find_order_faults(contract: &Contract, plan: &mut UnitPlan, lines: &[usize]) {
    let (path, mut faults) = (&plan.path, Vec::new());
    if plan.units.is_empty() {
        let kind = contract.profiles.iter().find_map(|p| p.unit.as_ref());
        let shape = kind.map_or_else(|| "ID".to_owned(), |kind| kind.id.replacen("##", "01", 1));
        faults.push(in_language(
            contract.language,
            format!(
                "`{path}` has no section for a unit: write one heading with the id alone for \
                 each, `## {shape}`"
            ),
            format!("`{path}` 没有任何单元的小节：每个单元写一个只有编号的标题，`## {shape}`"),
        ));
    }
    for (at, unit) in plan.units.iter().enumerate() {
        let (id, line) = (&unit.id, lines[at]);
        if let Some(before) = plan.units[..at].iter().position(|other| other.id == *id) {
            let first = lines[before];
            faults.push(in_language(
                contract.language,
                format!("`{path}` has two sections `{id}`, in lines {first} and {line}"),
                format!("`{path}` 有两节 `{id}`，在第 {first} 行与第 {line} 行"),
            ));
        } else if let Some(before) = plan.units[..at]
            .last()
            .filter(|before| before.id.natural_cmp(id).is_gt())
        {
            let before = &before.id;
            faults.push(in_language(
                contract.language,
                format!(
                    "`{path}` line {line}: `{id}` comes after `{before}`, but ids must be in order"
                ),
                format!("`{path}` 第 {line} 行：`{id}` 排在 `{before}` 之后，编号须依次排列"),
            ));
        }
        for need in &unit.needs {
            if !plan.units[..at].iter().any(|other| other.id == *need) {
                let is_later = plan.units.iter().any(|other| other.id == *need);
                let (en, zh) = match is_later {
                    true => ("does not come before it", "不在它之前"),
                    false => ("is not in it", "不在其中"),
                };
                faults.push(in_language(
                    contract.language,
                    format!("`{path}` line {line}: `{id}` needs `{need}`, which {en}"),
                    format!("`{path}` 第 {line} 行：`{id}` 的前置 `{need}` {zh}"),
                ));
            }
        }
    }
    for unit in contract.units.iter().filter(|unit| unit.profile.is_none()) {
        match plan.units.iter().find(|planned| planned.id == unit.id) {
            None => faults.push(format!(
                "`{path}` has no section `## {}`, which {MANIFEST} declares",
                unit.id
            )),
            Some(planned) if !unit.needs.is_empty() && planned.needs != unit.needs => {
                faults.push(format!(
                    "`{path}` says that {} needs {}, but {MANIFEST} says {}",
                    unit.id,
                    join(&planned.needs),
                    join(&unit.needs)
                ))
            }
            Some(_) => {}
        }
    }
    plan.faults.extend(faults);
}

fn join(ids: &[UnitId]) -> String {
    if ids.is_empty() {
        "nothing".into()
    } else {
        ids.iter()
            .map(UnitId::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// The value after one of the names in a list of `- **Name:** …`.
fn find_line(body: &str, names: &[String]) -> Option<String> {
    body.lines().find_map(|line| {
        let line = line.trim().trim_start_matches(['-', '*', '+', ' ']);
        let rest = names.iter().find_map(|name| {
            line.get(..name.len())
                .filter(|head| head.eq_ignore_ascii_case(name))
                .map(|_| &line[name.len()..])
        })?;
        let rest = rest.trim_start_matches('*').trim_start();
        let rest = rest.strip_prefix([':', '：'])?;
        Some(plain(rest.trim_matches(['*', ' ', '"', '“', '”'])))
    })
}

/// Removes Markdown escapes.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' || !letters.peek().is_some_and(char::is_ascii_punctuation) {
            plain.push(letter);
        }
    }
    plain
}

/// Finds the faults of a plan that a job wrote, and of the source map beside it.
pub fn find_plan_faults(
    project: &Project,
    job: &PlannedJob<'_>,
    collected: &Collected,
) -> Result<Vec<String>, StoreError> {
    let mut faults = Vec::new();
    let written = |path: &str| {
        let path = fill_path(path, &job.binding)?;
        collected
            .files
            .iter()
            .find(|(o, _)| o.path == path)
            .map(|(_, bytes)| (path, String::from_utf8_lossy(bytes).into_owned()))
    };
    for declare in project
        .contract
        .steps
        .iter()
        .filter_map(|step| step.declare.as_ref())
    {
        let Some((path, text)) = written(&declare.from) else {
            continue;
        };
        let plan = read_plan(&project.contract, declare, path.as_str(), &text);
        faults.extend(plan.faults.iter().cloned());
        if let Some((path, text)) = declare.map.as_ref().and_then(|map| written(map)) {
            let files = project.store.list()?;
            faults.extend(find_map_faults(&plan.units, path.as_str(), &text, &files));
        }
    }
    Ok(faults)
}

/// Checks that each unit has a section in the map, with existing paths.
fn find_map_faults(
    units: &[PlannedUnit],
    path: &str,
    text: &str,
    files: &[ProjectPath],
) -> Vec<String> {
    let document = Document::parse(text);
    let mut faults = Vec::new();
    for (nth, unit) in units.iter().enumerate() {
        if units[..nth].iter().any(|before| before.id == unit.id) {
            continue;
        }
        let Some(section) = document
            .sections()
            .iter()
            .find(|s| s.level > 0 && s.title.trim() == unit.id.as_str())
        else {
            faults.push(format!("`{path}` has no section `## {}`", unit.id));
            continue;
        };
        let named = mapped_paths(document.slice(&(section.body.start..section.range.end)));
        if named.is_empty() {
            faults.push(format!(
                "`{path}` names no file for {}: a table `| path | lines | why |`",
                unit.id
            ));
        }
        let absent = named
            .iter()
            .filter(|named| !files.iter().any(|file| is_named(named, file)));
        faults.extend(absent.map(|named| {
            format!(
                "`{path}` names `{named}` for {}, which does not exist",
                unit.id
            )
        }));
    }
    faults
}

/// Builds the change of `quipu.toml` that declares the units of a plan and their needs.
pub fn declare_units(project: &Project, plan: &UnitPlan) -> Result<Option<Op>, StoreError> {
    let path = ProjectPath::parse(MANIFEST).expect("it is a plain name");
    let Some((bytes, version)) = project.store.read(&path)? else {
        return Ok(None);
    };
    let old = String::from_utf8_lossy(&bytes).into_owned();
    let mut text = old.clone();
    for unit in plan.fresh(&project.contract) {
        let needs = unit
            .needs
            .iter()
            .map(|need| format!("\"{need}\""))
            .collect::<Vec<_>>()
            .join(", ");
        let needs = if needs.is_empty() {
            String::new()
        } else {
            format!("needs = [{needs}]\n")
        };
        let header = format!("[units.{}]\n", unit.id);
        // The unit may already be declared without its needs.
        match text.find(&header).map(|at| at + header.len()) {
            Some(at) => text.insert_str(at, &needs),
            None => {
                let title = toml::Value::String(unit.title.clone());
                text = format!("{}\n\n{header}title = {title}\n{needs}", text.trim_end());
            }
        }
    }
    Ok((text != old).then(|| Op::Write {
        path,
        bytes: text.into_bytes(),
        expect: Expect::Version(version),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_names() {
        let names = ["Title".to_owned(), "标题".to_owned()];
        assert_eq!(
            find_line("- **Title:** A \\_b\\_\n", &names).as_deref(),
            Some("A _b_")
        );
        assert_eq!(
            find_line("* **标题：** 日志\n", &names).as_deref(),
            Some("日志")
        );
        assert_eq!(
            find_line("Title: plain\n", &names).as_deref(),
            Some("plain")
        );
        assert_eq!(find_line("- Titles are\n", &names), None);
    }
}
