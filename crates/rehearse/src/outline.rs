//! Plans the units of a work from its source code, and maps units to files.
//!
//! Every module except tests belongs to a unit, and every unit has a module if there is any.
//! `survey` supplies the parsed source.

use std::collections::BTreeSet;

use quipu_text::first_sentence;

use crate::sheet::{Sheet, code, quoted, say};
use crate::source::{ItemKind, Module};
use crate::survey::StatusScan;
use crate::task::{RehearseTask, TaskUnit};

/// A unit and the modules that it explains first.
pub(crate) struct Planned<'s> {
    pub unit: TaskUnit,
    pub modules: Vec<&'s Module>,
}

/// The maximum number of invented units, if the project declares none.
const MOST_UNITS: usize = 12;

/// Assigns every module to a unit: to the unit with a matching title, else evenly in tree order.
pub(crate) fn plan<'s>(survey: &'s StatusScan, task: &RehearseTask) -> Vec<Planned<'s>> {
    let mut modules: Vec<&Module> = survey
        .modules
        .iter()
        .filter(|module| !is_test(&module.path))
        .collect();
    if modules.is_empty() {
        modules = survey.modules.iter().collect();
    }
    modules.sort_by_key(|module| {
        (
            !is_entry(&module.path),
            module.path.matches('/').count(),
            module.path.clone(),
        )
    });
    let units = if task.units.is_empty() {
        invented_units(&modules, task)
    } else {
        task.units.clone()
    };
    let mut planned: Vec<Planned<'s>> = units
        .into_iter()
        .map(|unit| Planned {
            unit,
            modules: Vec::new(),
        })
        .collect();
    if planned.is_empty() {
        return planned;
    }
    let mut left = Vec::new();
    let shared = shared_folders(modules.iter().map(|module| module.path.as_str()));
    for module in modules {
        let score = |planned: &Planned<'_>| {
            let title = title_words(&planned.unit.title);
            named_in(&title, &module.path, shared)
        };
        let best = planned.iter().map(score).max().unwrap_or_default();
        match planned
            .iter()
            .position(|unit| best > (0, 0) && score(unit) == best)
        {
            Some(at) => planned[at].modules.push(module),
            None => left.push(module),
        }
    }
    // Assign the rest in order, each to the unit with the fewest lines so far.
    for module in left {
        let lines = |planned: &Planned<'_>| {
            planned
                .modules
                .iter()
                .map(|module| module.lines)
                .sum::<usize>()
        };
        let least = (0..planned.len())
            .min_by_key(|at| lines(&planned[*at]))
            .unwrap_or_default();
        planned[least].modules.push(module);
    }
    for planned in &mut planned {
        let title = title_words(&planned.unit.title);
        planned
            .modules
            .sort_by_key(|module| std::cmp::Reverse(named_in(&title, &module.path, shared)));
    }
    // A unit without a module gets the largest one again.
    let largest = planned
        .iter()
        .flat_map(|planned| planned.modules.iter().copied())
        .max_by_key(|module| module.lines);
    for planned in planned
        .iter_mut()
        .filter(|planned| planned.modules.is_empty())
    {
        planned.modules.extend(largest);
    }
    planned
}

/// Invents units with IDs in the profile's format, named after the parts of the source.
fn invented_units(modules: &[&Module], task: &RehearseTask) -> Vec<TaskUnit> {
    let mut parts: Vec<String> = Vec::new();
    for module in modules {
        let part = part_of(&module.path);
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.truncate(MOST_UNITS);
    let shape = task
        .shape
        .as_deref()
        .filter(|shape| shape.contains('#'))
        .unwrap_or("part##");
    let unit = |(at, title): (usize, String)| {
        let digits = shape.matches('#').count();
        let (before, after) = (
            shape.split('#').next().unwrap_or_default(),
            shape.rsplit('#').next().unwrap_or_default(),
        );
        TaskUnit {
            id: format!("{before}{:0digits$}{after}", at + 1),
            title,
            needs: Vec::new(),
        }
    };
    parts.into_iter().enumerate().map(unit).collect()
}

/// Returns the name of a module for readers: its own, or that of its folder.
fn part_of(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let stem = parts
        .last()
        .and_then(|name| name.split('.').next())
        .unwrap_or_default();
    let plain = ["lib", "main", "mod", "index", "__init__", "src"];
    let folder = parts
        .iter()
        .rev()
        .skip(1)
        .find(|part| !plain.contains(part));
    if plain.contains(&stem) {
        folder.map_or(stem, |folder| *folder).to_owned()
    } else {
        stem.to_owned()
    }
}

fn is_entry(path: &str) -> bool {
    [
        "main.",
        "lib.",
        "index.",
        "__main__.",
        "__init__.",
        "mod.",
        "app.",
    ]
    .iter()
    .any(|name| {
        path.rsplit('/')
            .next()
            .is_some_and(|file| file.starts_with(name))
    })
}

fn is_test(path: &str) -> bool {
    path.split(['/', '.', '_'])
        .any(|part| matches!(part, "test" | "tests" | "spec"))
}

/// Returns how many folders at the beginning of the paths are the same. Such a folder does not
/// tell the files apart.
pub(crate) fn shared_folders<'p>(mut paths: impl Iterator<Item = &'p str>) -> usize {
    let folders = |path: &'p str| {
        let mut parts: Vec<&str> = path.split('/').collect();
        parts.pop();
        parts
    };
    let first = paths.next().map(folders).unwrap_or_default();
    paths.fold(first.len(), |shared, path| {
        let same = |(a, b): &(&&str, &str)| *a == b;
        first[..shared]
            .iter()
            .zip(folders(path))
            .take_while(same)
            .count()
    })
}

/// Returns how many words of a title are in the name of a file, and how many in its folders, without
/// the folders that all files share.
pub(crate) fn named_in(title: &BTreeSet<String>, path: &str, shared: usize) -> (usize, usize) {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folders: Vec<&str> = folders.split('/').skip(shared).collect();
    let count = |text: &str| title_words(text).intersection(title).count();
    (count(name), count(&folders.join("/")))
}

pub(crate) fn title_words(text: &str) -> BTreeSet<String> {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .map(str::to_lowercase);
    // `leases` must match `lease.rs`.
    words
        .filter(|word| word.chars().count() > 2)
        .map(|word| singular(&word).to_owned())
        .collect()
}

/// Reduces `classes` and `class`, `leases` and `lease` to the same stem.
fn singular(word: &str) -> &str {
    Some(word.trim_end_matches(['e', 's']))
        .filter(|stem| stem.len() > 2)
        .unwrap_or(word)
}

/// Writes the plan, for people and for the agents that follow it.
pub(crate) fn outline(survey: &StatusScan, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let planned = plan(survey, task);
    let mut sheet = Sheet::titled(&task.project);
    sheet.h2(say(l, "Book", "全书"));
    let (modules, types, functions) = (
        survey.modules.len(),
        survey
            .modules
            .iter()
            .map(|module| module.of_kind(ItemKind::Type).count())
            .sum::<usize>(),
        survey
            .modules
            .iter()
            .map(|module| module.of_kind(ItemKind::Function).count())
            .sum::<usize>(),
    );
    sheet.line(&match l {
        quipu_contract::Language::En => format!("The source has {modules} modules, {types} types and {functions} functions. This plan was made by rehearsal: from names, sizes and comments, without judgement."),
        quipu_contract::Language::Zh => format!("源码共有 {modules} 个模块、{types} 个类型、{functions} 个函数。本大纲由预演生成：只依据名称、篇幅与注释，不含判断。"),
    });
    for (at, planned) in planned.iter().enumerate() {
        sheet.h2(&planned.unit.id);
        let covers: Vec<String> = covered(planned).into_iter().take(5).collect();
        let gist = planned.modules.iter().find_map(|module| module.gist());
        let goal = gist.map_or_else(|| covers.join(say(l, ", ", "、")), quoted);
        let needs = if planned.unit.needs.is_empty() {
            say(l, "none", "无").to_owned()
        } else {
            planned.unit.needs.join(", ")
        };
        let next = planned_title(planned.unit.id.as_str(), at, task);
        for (name, value) in [
            (say(l, "Title:", "标题："), quoted(&planned.unit.title)),
            (say(l, "Goal:", "目标："), goal),
            (say(l, "Needs:", "前置："), needs),
            (say(l, "Covers:", "内容："), covers.join(say(l, "; ", "；"))),
            (say(l, "Leaves out:", "不讲："), next),
            (
                say(l, "For:", "面向："),
                say(l, "whoever reads the source", "阅读源码的人").to_owned(),
            ),
        ] {
            let gap = say(l, " ", "");
            sheet.line(&format!("- **{name}**{gap}{value}"));
        }
    }
    sheet.h2(say(l, "Dependencies", "依赖"));
    let depends: Vec<String> = planned
        .iter()
        .map(|planned| {
            format!(
                "`{} = [{}]`",
                planned.unit.id,
                planned
                    .unit
                    .needs
                    .iter()
                    .map(|need| format!("\"{need}\""))
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        })
        .collect();
    sheet.items(&depends, say(l, "none", "无"));
    sheet
}

/// Returns the title of a neighbouring unit, which the plan names as out of scope.
fn planned_title(id: &str, at: usize, task: &RehearseTask) -> String {
    let l = task.language;
    let other = task
        .units
        .get(at + 1)
        .or_else(|| task.units.first())
        .filter(|other| other.id != id);
    other.map_or_else(
        || say(l, "nothing that the source holds", "源码中没有别的内容").to_owned(),
        |other| format!("{} ({})", quoted(&other.title), other.id),
    )
}

fn covered(planned: &Planned<'_>) -> Vec<String> {
    let mut points = Vec::new();
    for module in &planned.modules {
        let types = module
            .of_kind(ItemKind::Type)
            .filter(|item| item.public || !item.doc.is_empty());
        let functions = module
            .of_kind(ItemKind::Function)
            .filter(|item| item.public && item.owner.is_none());
        points.extend(
            types
                .chain(functions)
                .map(|item| match first_sentence(&item.doc) {
                    "" => code(&item.name),
                    gist => format!("{}: {}", code(&item.name), quoted(gist)),
                }),
        );
    }
    points
}

/// Writes the map from units to source files.
pub(crate) fn map(survey: &StatusScan, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let mut sheet = Sheet::titled(say(l, "Source map", "源码映射"));
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for planned in plan(survey, task) {
        sheet.h2(&planned.unit.id);
        let rows: Vec<Vec<String>> = planned
            .modules
            .iter()
            .map(|module| {
                let why = module.gist().map_or_else(
                    || format!("{} {}", module.items.len(), say(l, "items", "项")),
                    quoted,
                );
                let first = if seen.insert(&module.path) {
                    say(l, " *first*", "（首讲）")
                } else {
                    ""
                };
                vec![
                    code(&module.path),
                    format!("1-{}", module.lines.max(1)),
                    format!("{why}{first}"),
                ]
            })
            .collect();
        sheet.table(
            &[
                say(l, "path", "路径"),
                say(l, "lines", "行"),
                say(l, "why", "理由"),
            ],
            &rows,
        );
    }
    sheet.h2(say(l, "Unmapped", "未收录"));
    let reason = say(
        l,
        "no language that a rehearsal parses",
        "预演不解析这种语言",
    );
    let tests = survey
        .modules
        .iter()
        .filter(|module| !seen.contains(module.path.as_str()));
    let tests = tests.map(|module| format!("{}: {}", code(&module.path), say(l, "a test", "测试")));
    let others = survey
        .others
        .iter()
        .map(|(path, _)| format!("{}: {reason}", code(path)));
    sheet.items(
        &tests.chain(others).collect::<Vec<_>>(),
        say(l, "none", "无"),
    );
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_find_files() {
        for (title, path, found) in [
            ("Classes", "src/class.rs", (1, 0)),
            ("The journal", "a/journal.rs", (1, 0)),
            ("Leases & more", "x/lease.py", (1, 0)),
            ("The store", "source/store/mod.rs", (0, 1)),
            ("Classes", "src/journal.rs", (0, 0)),
        ] {
            assert_eq!(
                named_in(&title_words(title), path, 0),
                found,
                "{title} {path}"
            );
        }
    }

    #[test]
    fn a_folder_of_all_files_tells_none_apart() {
        let paths = ["source/slugs/slug.py", "source/slugs/unique.py"];
        assert_eq!(shared_folders(paths.into_iter()), 2);
        assert_eq!(
            shared_folders(["source/a/b.py", "source/c.py"].into_iter()),
            1
        );
        let title = title_words("Slug");
        assert_eq!(named_in(&title, paths[0], 2), (1, 0));
        assert_eq!(named_in(&title, paths[1], 2), (0, 0));
    }
}
