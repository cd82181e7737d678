//! Describes the top-level folders of a repository and their content.
//!
//! Names are untrusted, and counting is bounded.

use std::collections::BTreeMap;
use std::path::Path;

use quipu_contract::Language;

use super::plain_name;

/// At most this many folders are described.
const MOST_FOLDERS: usize = 12;
/// Limits for counting the entries of one folder.
const MOST_ENTRIES: usize = 2_000;
const DEEPEST: usize = 6;

/// Folders with generated content.
const MADE: [&str; 16] = [
    "node_modules",
    "target",
    "dist",
    "build",
    "out",
    "vendor",
    "venv",
    "env",
    "__pycache__",
    "coverage",
    "tmp",
    "logs",
    "obj",
    "bin",
    "site-packages",
    "bower_components",
];

/// Folder names with a known meaning, in English and Chinese.
const KNOWN: [(&[&str], &str, &str); 13] = [
    (&["src", "source", "lib"], "source code", "源码"),
    (&["app", "apps"], "application", "应用"),
    (
        &["pkg", "packages", "crates", "modules", "libs"],
        "packages",
        "各个包",
    ),
    (&["cmd"], "programs", "可执行程序"),
    (&["internal"], "internal packages", "内部包"),
    (&["test", "tests", "spec", "__tests__"], "tests", "测试"),
    (&["doc", "docs"], "documents", "文档"),
    (&["examples", "example", "samples"], "examples", "示例"),
    (&["scripts", "tools"], "scripts", "脚本"),
    (
        &["bench", "benches", "benchmarks"],
        "benchmarks",
        "性能测试",
    ),
    (&["public", "static", "assets"], "static files", "静态文件"),
    (&["migrations"], "database migrations", "数据库迁移"),
    (
        &["config", "configs", "deploy", "infra"],
        "configuration",
        "配置与部署",
    ),
];

pub(super) fn describe_folders(root: &Path, language: Language) -> Vec<String> {
    let mut names: Vec<String> = subfolders(root)
        .filter(|name| !name.starts_with('.') && !MADE.contains(&name.as_str()))
        .collect();
    names.retain(|name| plain_name(name).is_some());
    names.sort();
    let more = names.len().saturating_sub(MOST_FOLDERS);
    let mut lines: Vec<String> = names
        .iter()
        .take(MOST_FOLDERS)
        .filter_map(|name| describe(root, name, language))
        .collect();
    if more > 0 {
        lines.push(if language == Language::Zh {
            format!("- 另有 {more} 个文件夹")
        } else {
            format!("- and {more} more folders")
        });
    }
    lines
}

fn subfolders(root: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .take(MOST_ENTRIES);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
}

/// Describes one folder. None if it contains no file.
fn describe(root: &Path, name: &str, language: Language) -> Option<String> {
    let mut endings = BTreeMap::new();
    let mut left = MOST_ENTRIES;
    count_endings(&root.join(name), DEEPEST, &mut left, &mut endings);
    let files: usize = endings.values().sum();
    let (ending, of_it) = endings
        .iter()
        .max_by_key(|(ending, count)| (**count, std::cmp::Reverse((*ending).clone())))?;
    let known = KNOWN
        .iter()
        .find(|(names, ..)| names.contains(&name.to_lowercase().as_str()));
    let at_least = if left == 0 { "+" } else { "" };
    // `12 .py files`, `12 files, mostly .py`, or only the number.
    let (all, most) = (
        *of_it == files && !ending.is_empty(),
        of_it * 2 > files && !ending.is_empty(),
    );
    let kind = match (all, language) {
        (false, _) => String::new(),
        (true, Language::En) => format!(".{ending} "),
        (true, Language::Zh) => format!(" .{ending} "),
    };
    Some(match language {
        Language::En => {
            let what = known
                .map(|(_, en, _)| format!("{en}, "))
                .unwrap_or_default();
            let noun = if files == 1 { "file" } else { "files" };
            let mostly = if most && !all {
                format!(", mostly .{ending}")
            } else {
                String::new()
            };
            format!("- {name}/: {what}{files}{at_least} {kind}{noun}{mostly}")
        }
        Language::Zh => {
            let what = known.map(|(.., zh)| format!("{zh}，")).unwrap_or_default();
            let mostly = if most && !all {
                format!("，多为 .{ending}")
            } else {
                String::new()
            };
            format!("- {name}/：{what}{files}{at_least} 个{kind}文件{mostly}")
        }
    })
}

fn count_endings(
    folder: &Path,
    deeper: usize,
    left: &mut usize,
    endings: &mut BTreeMap<String, usize>,
) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() && deeper > 0 && !name.starts_with('.') && !MADE.contains(&name.as_str()) {
            count_endings(&entry.path(), deeper - 1, left, endings);
        } else if kind.is_file() && !name.starts_with('.') {
            let ending = Path::new(&name)
                .extension()
                .and_then(|ending| plain_name(ending.to_str()?))
                .unwrap_or_default();
            *endings.entry(ending.to_owned()).or_default() += 1;
        }
    }
}
