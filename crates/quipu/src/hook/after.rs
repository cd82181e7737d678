//! The check after a tool call: reports files that now break their class to the model at once.
//!
//! It does not parse commands. It runs the status scan, which adopts and flags the same edits as
//! `quipu status`, and reports each flagged file for as long as it is flagged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quipu_contract::{Class, Language, MANIFEST, in_one_line};
use quipu_protocol::{Project, ReadScope};
use quipu_store::{FileStatus, Options};

use super::call::Call;
use super::manner::Manner;
use crate::answer::{Answer, Failure};
use crate::session::{Session, language_at};
use crate::shell_word::shell_word;

/// At most this many files are listed; `quipu status` lists the rest.
const MOST_NAMED: usize = 8;

pub fn post_tool(call: &Call, manner: Manner, cwd: &Path, session: &Session) -> Answer {
    // Quipu's own tools were judged when they ran.
    if call.is_own_tool() {
        return manner.nothing();
    }
    let roots: BTreeSet<PathBuf> = [cwd, &session.folder]
        .into_iter()
        .filter_map(|folder| Project::find_root(folder).ok())
        .collect();
    // A project that cannot be scanned is reported as well: its contract or its journal is damaged.
    let report = |root: &PathBuf| {
        report_on(root, session)
            .unwrap_or_else(|f| f.in_language(language_at(root)).render() + "\n")
    };
    let text: String = roots.iter().map(report).collect();
    if text.is_empty() {
        manner.nothing()
    } else {
        manner.answer(call.event.as_deref(), text.trim_end().to_owned())
    }
}

/// The report on one project; empty if no file breaks its class. Does not contact a shared store.
fn report_on(root: &Path, session: &Session) -> Result<String, Failure> {
    let options = Options {
        offline: true,
        ..Options::default()
    };
    let project = Project::open(root, options)?;
    let mut scan = project.store.scan_status()?;
    let texts = Texts(project.contract.language);
    let is_contract = |path: &str| path == MANIFEST && !project.began_anew;
    let mut text = String::new();
    if project.began_anew {
        text.push_str(texts.no_journal());
    } else if scan.adopted.iter().any(|edit| is_contract(&edit.path)) {
        text.push_str(texts.contract_changed());
    }
    let all = scan.flagged().count();
    ReadScope::of(&project, &session.actor).narrow(&mut scan);
    let flagged: Vec<&FileStatus> = scan.flagged().collect();
    if !flagged.is_empty() {
        text.push_str(texts.heading());
    }
    for file in flagged.iter().take(MOST_NAMED) {
        text.push_str(&format!(
            "- {}\n  {}\n",
            texts.fault(file),
            texts.undo(file)
        ));
    }
    if flagged.len() > MOST_NAMED {
        text.push_str(&texts.more(flagged.len() - MOST_NAMED));
    }
    if all > flagged.len() {
        text.push_str(&texts.unread(all - flagged.len()));
    }
    Ok(text)
}

/// The sentences of the report, in the language of the project.
struct Texts(Language);

impl Texts {
    fn choose<T>(&self, en: T, zh: T) -> T {
        match self.0 {
            Language::En => en,
            Language::Zh => zh,
        }
    }

    fn heading(&self) -> &'static str {
        self.choose(
            "quipu: this call left files that break the contract. Undo these changes before you \
             continue:\n",
            "quipu：这次调用之后有文件违反契约。请先撤销这些改动，再继续：\n",
        )
    }

    fn contract_changed(&self) -> &'static str {
        self.choose(
            "quipu: `quipu.toml`, the contract, was changed outside Quipu. Only a person may \
             change it: if this call changed it, report that to the user now.\n  undo (a \
             person): quipu restore quipu.toml --at ~1\n",
            "quipu：契约 `quipu.toml` 在 Quipu 之外被改动。只有人可以改契约：如果是这次调用改的，请立即告知用户。\n  撤销（由人执行）：quipu restore quipu.toml --at ~1\n",
        )
    }

    fn no_journal(&self) -> &'static str {
        self.choose(
            "quipu: `.quipu/`, the journal of this project, was missing; a new journal starts \
             with the files on disk. If this call deleted it, report that to the user now: only \
             a copy of `.quipu/` can restore the history.\n",
            "quipu：本项目的日志 `.quipu/` \
             已丢失；新日志从磁盘上的现有文件开始。如果是这次调用删除的，请立即告知用户：只有用 \
             `.quipu/` 的副本才能恢复历史。\n",
        )
    }

    fn fault(&self, file: &FileStatus) -> String {
        let (what, line) = file
            .flag
            .as_ref()
            .map_or(("", None), |flag| (flag.what.as_str(), flag.line));
        let path = in_one_line(&file.path);
        match self.0 {
            Language::En => {
                let line = line.map(|l| format!(", line {l}")).unwrap_or_default();
                format!("`{path}` {}{line}", in_one_line(what))
            }
            Language::Zh => {
                let line = line.map(|l| format!("，第 {l} 行")).unwrap_or_default();
                format!(
                    "`{path}`（{}{line}）：{}",
                    file.class.as_str(),
                    rule_zh(file.class)
                )
            }
        }
    }

    /// The command that undoes the edit, or advice if no single command does.
    fn undo(&self, file: &FileStatus) -> String {
        let remedy = file.remedy();
        let restore = format!("quipu restore {}", file.path);
        if remedy.starts_with("quipu ") && remedy.contains(&restore) {
            let undo = self.choose("undo: ", "撤销：");
            format!("{undo}quipu restore {}", shell_word(&file.path))
        } else {
            format!("{}{remedy}", self.choose("help: ", "办法："))
        }
    }

    fn more(&self, count: usize) -> String {
        self.choose(
            format!("- and {count} more: quipu status\n"),
            format!("- 另有 {count} 个文件：quipu status\n"),
        )
    }

    fn unread(&self, count: usize) -> String {
        self.choose(
            format!(
                "quipu: {count} files that your role may not read break the contract; ask a \
                person to run: quipu status\n"
            ),
            format!("quipu：有 {count} 个你无权读取的文件违反契约；请人执行：quipu status\n"),
        )
    }
}

/// The rule of a class that an external edit can break.
fn rule_zh(class: Class) -> &'static str {
    match class {
        Class::Sealed => "已封存，不得改动或删除",
        Class::Append => "只能在末尾追加，已有内容不得改动或删除",
        Class::Record => "记录只写一次，不得改动或删除",
        Class::State => "状态文件，不得丢失条目，也不得写坏",
        Class::Derived => "由 Quipu 生成，不得手改",
        Class::Overwrite | Class::Free => "在 Quipu 之外的改动违反契约",
    }
}
