//! Parses a finish written as one Markdown text, in the forms that agents use.
//!
//! Headings of any level, bold labels and `Name:` lines open a section; bullets, numbers and
//! paragraphs are its items. No text is dropped: text outside any known section is kept as a note,
//! and the result lists it. A heading that is nearly a known one, and a line that cannot be
//! executed, are refused with the line to write instead.

mod blocks;
mod decision;
mod names;
mod none;
mod template;
mod todo;

use quipu_contract::{Actor, Form, Language, in_one_line, says_nothing};
use serde_json::{Value, json};

use super::check::can_be_none;
use super::{CLOSERS, Material};
use crate::project::ids::{find_name, short_name};
use crate::project::open::Project;
use crate::session::error::WorkError;
use crate::session::state::{Blocked, phases};
use crate::session::todos::{Todo, TodoBlock, load_todos};
use blocks::{Block, Item, parse_blocks};
use decision::parse_decision;
use names::{Section, near_miss};
use none::says_none;
pub use template::finish_template;
use todo::{Verb, read_todo};

/// The parsed text.
#[derive(Debug, Clone, Default)]
pub struct FinishText {
    pub material: Material,
    /// Messages for the author about lines that were interpreted differently than written.
    pub told: Vec<String>,
}

struct Fault {
    line: usize,
    what: String,
    fix: String,
}

struct Reader<'r> {
    language: Language,
    project: &'r Project,
    todos: Vec<Todo>,
    material: Material,
    told: Vec<String>,
    faults: Vec<Fault>,
}

fn say<'t>(language: Language, en: &'t str, zh: &'t str) -> &'t str {
    if language == Language::Zh { zh } else { en }
}

/// Parses Markdown, or JSON if the text begins with a brace. `name` is used in messages: a file, or
/// `stdin`.
pub fn parse_finish_text(
    project: &Project,
    actor: &Actor,
    name: &str,
    text: &str,
) -> Result<FinishText, WorkError> {
    if name.ends_with(".json") || text.trim_start().starts_with('{') {
        return Ok(FinishText {
            material: super::parse_material(name, text)?,
            told: Vec::new(),
        });
    }
    let language = project.contract.language;
    let keys = own_keys(project);
    let text = &without_examples(project, text);
    let blocks = parse_blocks(text, &keys);
    if !text.trim().is_empty() && !blocks.iter().any(|b| b.section.is_some()) {
        let what = say(
            language,
            "no known heading in",
            "收尾内容中没有可识别的标题：",
        );
        return Err(WorkError::usage(
            format!("{what} {name}"),
            finish_template(project, actor).trim_end(),
        ));
    }
    // An unreadable list is reported by its closer, with the line.
    let todos = load_todos(project, actor)
        .map(|list| list.todos)
        .unwrap_or_default();
    let mut reader = Reader {
        language,
        project,
        todos,
        material: Material::default(),
        told: Vec::new(),
        faults: Vec::new(),
    };
    for block in &blocks {
        reader.block(block);
    }
    match reader.faults.is_empty() {
        true => Ok(FinishText {
            material: reader.material,
            told: reader.told,
        }),
        false => Err(reader.refusal(name)),
    }
}

/// Blanks out unfilled example lines that `start` printed. Line numbers are preserved.
fn without_examples(project: &Project, text: &str) -> String {
    let language = project.contract.language;
    let steps = project
        .contract
        .scenes
        .values()
        .flat_map(|scene| &scene.next);
    let examples: Vec<&str> = steps
        .flat_map(|step| step.text.in_language(language).lines())
        .map(str::trim)
        .filter(|line| line.starts_with("- "))
        .collect();
    text.lines()
        .map(|line| {
            if examples.contains(&line.trim()) {
                ""
            } else {
                line
            }
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// The keys of closers that have files in this project.
fn own_keys(project: &Project) -> Vec<&'static str> {
    let has = |forms: &[Form]| project.contract.of_form(forms[0]).next().is_some();
    CLOSERS
        .iter()
        .filter(|closer| has(closer.forms))
        .flat_map(|closer| closer.keys)
        .copied()
        .collect()
}

impl Reader<'_> {
    fn fault(&mut self, line: usize, en: &str, zh: &str, fix: impl Into<String>) {
        self.faults.push(Fault {
            line,
            what: say(self.language, en, zh).to_owned(),
            fix: fix.into(),
        });
    }

    fn tell(&mut self, line: usize, en: &str, zh: &str) {
        self.told.push(match self.language {
            Language::En => format!("line {line}: {en}"),
            Language::Zh => format!("第 {line} 行：{zh}"),
        });
    }

    /// Reports all faults at once, each with the line to write instead.
    fn refusal(&self, name: &str) -> WorkError {
        let mut faults = self.faults.iter().map(|fault| match self.language {
            Language::En => format!("`{name}`, line {}: {}", fault.line, fault.what),
            Language::Zh => format!("`{name}` 第 {} 行：{}", fault.line, fault.what),
        });
        let first = faults.next().unwrap_or_default();
        let what = faults.fold(first, |what, fault| format!("{what}\n       {fault}"));
        let fixes = self.faults.iter().map(|fault| match self.language {
            Language::En => format!("line {}: {}", fault.line, fault.fix),
            Language::Zh => format!("第 {} 行：{}", fault.line, fault.fix),
        });
        let fixes = fixes.collect::<Vec<_>>().join("\n        ");
        let lead = say(
            self.language,
            "Nothing was saved. Write instead, and run the command again:",
            "没有保存任何内容。请改写后重新执行：",
        );
        WorkError::usage(what, format!("{lead}\n        {fixes}"))
    }

    fn unknown_todo(&mut self, item: &Item, verb: Verb, named: &str) {
        let ids = || self.todos.iter().map(|t| t.id.as_str());
        let open: Vec<String> = self
            .todos
            .iter()
            .filter(|t| t.status.is_open())
            .map(|t| format!("{} ({})", short_name(ids(), &t.id), t.title))
            .collect();
        let open = if open.is_empty() {
            say(self.language, "none", "无").to_owned()
        } else {
            open.join("; ")
        };
        let word = verb.word(self.language);
        let near = ids().find(|id| strsim::damerau_levenshtein(short_name(ids(), id), named) <= 2);
        let near = near.or_else(|| {
            self.todos
                .iter()
                .find(|t| t.status.is_open())
                .map(|t| t.id.as_str())
        });
        let fix = match near {
            Some(id) => format!("- {word} {}", short_name(ids(), id)),
            None => say(self.language, "delete the line", "删去这一行").to_owned(),
        };
        if find_name(ids(), named).is_some() {
            let text = in_one_line(item.text.trim());
            let (en, zh) = (
                format!("`{text}` is not an action on a todo"),
                format!("`{text}` 不是待办的处理方式"),
            );
            return self.fault(item.line, &en, &zh, fix);
        }
        let named = in_one_line(named);
        self.fault(
            item.line,
            &format!("unknown todo `{named}`; open: {open}"),
            &format!("没有待办 `{named}`；未完成的有：{open}"),
            fix,
        );
    }

    fn block(&mut self, block: &Block) {
        let Some(section) = block.section else {
            return self.unknown(block);
        };
        let items: Vec<&Item> = block
            .items
            .iter()
            .filter(|i| !i.is_subheading() && !says_nothing(&i.text))
            .collect();
        let said: Vec<&Item> = items
            .iter()
            .filter(|i| !says_none(&i.text))
            .copied()
            .collect();
        if said.is_empty() {
            if !items.is_empty() {
                self.nothing(section);
            }
            return;
        }
        // Prose of a record keeps its lines.
        if let Section::Key(key @ ("problem" | "solution")) = section {
            let text = match said.as_slice() {
                [one] if one.body.is_empty() => one.raw_whole(),
                _ => block.raw.trim().to_owned(),
            };
            let old = self.material.rest.get(key).and_then(Value::as_str);
            let text = old.map_or_else(|| text.clone(), |old| format!("{old}\n\n{text}"));
            self.material.rest.insert(key.into(), json!(text));
            return;
        }
        for item in &said {
            self.item(section, item);
        }
    }

    /// Handles a section that says it is empty.
    fn nothing(&mut self, section: Section) {
        let name = match section {
            Section::Decisions => "decisions",
            Section::Next => "next",
            Section::Key("world") => "world",
            Section::Key("lesson") => {
                return drop(self.material.rest.insert("lesson".into(), "none".into()));
            }
            Section::InProgress => return self.material.in_progress = Some(String::new()),
            Section::Task => return self.material.task = Some(String::new()),
            _ => return,
        };
        if self
            .project
            .contract
            .finish
            .iter()
            .any(|item| item.name == name && can_be_none(&item.need))
        {
            self.material.none.push(name.to_owned());
        }
    }

    fn item(&mut self, section: Section, item: &Item) {
        match section {
            Section::Done => {
                let text = grouped(item);
                self.material.did.push(text);
            }
            Section::Next => {
                let text = grouped(item);
                self.material.next.push(text);
            }
            Section::Decisions => match parse_decision(item) {
                Some(decision) => self.material.decisions.push(decision),
                None => self.fault(
                    item.line,
                    "a decision needs a title",
                    "决策需要一个标题",
                    "- title. Why: …",
                ),
            },
            Section::Todos | Section::Later => read_todo(self, item, section == Section::Later),
            Section::Notes | Section::Facts => self.keep(section, item),
            Section::Blocked => self.blocked(item),
            Section::Unblocked => self.material.unblocked.push(item.whole()),
            Section::Phase => self.phase(item),
            Section::Task => self.material.task = Some(item.whole()),
            Section::InProgress => {
                let whole = item.whole();
                let old = self
                    .material
                    .in_progress
                    .take()
                    .filter(|old| !old.is_empty());
                self.material.in_progress =
                    Some(old.map_or(whole.clone(), |old| format!("{old}; {whole}")));
            }
            Section::State => self.state(item),
            Section::Reviewed => self.material.todos.reviewed = true,
            Section::TakesOver => {
                let ids = item
                    .text
                    .split([',', '，', '、', ' '])
                    .map(|id| id.trim_matches(['`', '.']))
                    .filter(|id| !id.is_empty());
                self.material.takes_over.extend(ids.map(str::to_owned));
            }
            Section::Abandoned => self.material.abandon = Some(item.whole()),
            Section::Key(key) => self.key(key, item),
        }
    }

    /// Handles a note or a fact, or its removal: `remove 2`, `remove: part of its text`.
    fn keep(&mut self, section: Section, item: &Item) {
        let text = grouped(item);
        let removed = removal(&item.text);
        let (added, gone) = match section {
            Section::Facts => (&mut self.material.facts, &mut self.material.remove_facts),
            _ => (&mut self.material.notes, &mut self.material.remove_notes),
        };
        match removed {
            Some(which) => gone.push(which),
            None => added.push(text),
        }
    }

    fn blocked(&mut self, item: &Item) {
        let whole = item.whole();
        if let Some(rest) = ["unblock ", "unblocked ", "unblock:", "解除"]
            .iter()
            .find_map(|word| whole.strip_prefix(word))
        {
            return self
                .material
                .unblocked
                .push(rest.trim_start_matches([':', '：', ' ']).to_owned());
        }
        let dash = || whole.split_once(" — ").or_else(|| whole.split_once(" - "));
        let (what, reason) = whole
            .split_once([':', '：'])
            .or_else(dash)
            .unwrap_or((&whole, ""));
        let (what, reason) = (what.trim().to_owned(), reason.trim().to_owned());
        match find_name(
            self.todos.iter().map(|t| t.id.as_str()),
            what.trim_matches('`'),
        )
        .map(str::to_owned)
        {
            Some(id) if !reason.is_empty() => {
                self.material.todos.block.push(TodoBlock { id, reason })
            }
            Some(id) => {
                let fix = format!(
                    "- {id}: {}",
                    say(self.language, "what it is waiting for", "在等什么")
                );
                self.fault(item.line, "a block needs a reason", "阻塞需要写明原因", fix);
            }
            None => self.material.blocked.push(Blocked {
                item: what,
                reason,
                since: None,
            }),
        }
    }

    fn phase(&mut self, item: &Item) {
        let known = phases(&self.project.contract);
        let said = item.text.trim().trim_matches(['`', '.', '。']);
        // An unchanged line of the template.
        if said.starts_with('…') {
            return;
        }
        match known.iter().find(|phase| phase.eq_ignore_ascii_case(said)) {
            Some(phase) => self.material.phase = Some(phase.clone()),
            None if known.is_empty() => self.material.phase = Some(said.to_owned()),
            None => {
                let (name, list) = (in_one_line(said).into_owned(), known.join(", "));
                let label = say(self.language, "Phase: ", "阶段：");
                let near = known
                    .iter()
                    .find(|phase| strsim::damerau_levenshtein(phase, said) <= 2);
                let fix = format!("{label}{}", near.map_or("…", String::as_str));
                self.fault(
                    item.line,
                    &format!("unknown phase `{name}`; the phases are {list}"),
                    &format!("没有阶段 `{name}`；可用的有 {list}"),
                    fix,
                );
            }
        }
    }

    /// Parses `/pointer = value`. Any other text about the state is kept as a note.
    fn state(&mut self, item: &Item) {
        let pair = item
            .text
            .trim_matches('`')
            .split_once('=')
            .filter(|(pointer, _)| pointer.trim().starts_with('/'));
        match pair {
            Some((pointer, value)) => {
                let value = value.trim();
                let value: Value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
                self.material.state.insert(pointer.trim().to_owned(), value);
            }
            None => {
                self.tell(item.line, "kept as a note", "已作为备注保留");
                let text = grouped(item);
                self.material.notes.push(text);
            }
        }
    }

    fn key(&mut self, key: &'static str, item: &Item) {
        let whole = item.raw_whole();
        match key {
            "rounds" => self.tell(
                item.line,
                "not stored: rounds are counted from calls",
                "未保存：轮数由系统按调用统计",
            ),
            "world" | "replaces" => {
                if let Value::Array(list) =
                    self.material.rest.entry(key).or_insert_with(|| json!([]))
                {
                    list.push(json!(whole));
                }
            }
            _ => {
                let old = self
                    .material
                    .rest
                    .get(key)
                    .and_then(Value::as_str)
                    .map(|old| format!("{old}; {whole}"));
                self.material
                    .rest
                    .insert(key.into(), json!(old.unwrap_or(whole)));
            }
        }
    }

    /// Handles text below an unknown heading.
    fn unknown(&mut self, block: &Block) {
        let items: Vec<&Item> = block.items.iter().filter(|i| !i.is_subheading()).collect();
        // An item of the project's own checklist.
        let own = self
            .project
            .contract
            .finish
            .iter()
            .find(|i| can_be_none(&i.need) && i.name.eq_ignore_ascii_case(&block.title));
        if let Some(own) =
            own.filter(|_| !items.is_empty() && items.iter().all(|i| says_none(&i.text)))
        {
            return self.material.none.push(own.name.clone());
        }
        if let Some(near) = near_miss(&block.title) {
            let (title, line) = (in_one_line(&block.title).into_owned(), block.line);
            return self.fault(
                line,
                &format!("unknown heading `{title}`"),
                &format!("没有这样的标题：“{title}”"),
                format!("## {}", capital(near)),
            );
        }
        if items.is_empty() {
            if !block.title.is_empty() {
                let title = in_one_line(&block.title).into_owned();
                self.tell(
                    block.line,
                    &format!("`{title}` is not stored: it has no text below it"),
                    &format!("“{title}”未保存：其下没有内容"),
                );
            }
            return;
        }
        let said: Vec<String> = items
            .iter()
            .filter(|i| !says_none(&i.text) && !says_nothing(&i.text))
            .map(|i| grouped(i))
            .collect();
        if let (false, Some(first)) = (said.is_empty(), items.first()) {
            let title = if block.title.is_empty() {
                String::new()
            } else {
                format!("{}{}", block.title, say(self.language, ": ", "："))
            };
            self.tell(first.line, "kept as a note", "已作为备注保留");
            self.material
                .notes
                .push(format!("{title}{}", said.join("; ")));
        }
    }
}

/// Capitalises a name for use as a heading.
fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// The item, prefixed with its subheading.
fn grouped(item: &Item) -> String {
    match &item.group {
        Some(group) => format!("{group}: {}", item.whole()),
        None => item.whole(),
    }
}

/// Parses `remove 2`, `remove: text` or `~~text~~` into the entry to remove.
fn removal(text: &str) -> Option<String> {
    if let Some(inner) = text
        .strip_prefix("~~")
        .and_then(|rest| rest.strip_suffix("~~"))
    {
        return Some(inner.trim().to_owned());
    }
    for word in ["remove", "delete", "drop", "删除", "移除", "去掉"] {
        let Some(head) = text
            .get(..word.len())
            .filter(|head| head.eq_ignore_ascii_case(word))
        else {
            continue;
        };
        let rest = text[head.len()..].trim_start();
        let named = rest.strip_prefix([':', '：']).map(str::trim);
        let number = rest
            .trim_start_matches(['#', '第'])
            .trim_end_matches(['.', '条', '。'])
            .trim();
        let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
        return match (is_number, named) {
            (true, _) => Some(number.to_owned()),
            (false, Some(named)) if !named.is_empty() => Some(named.trim_matches('"').to_owned()),
            // `Remove the old parser` is an ordinary note.
            (false, _) => None,
        };
    }
    None
}
