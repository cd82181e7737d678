//! Renders the finish template: the headings to fill in, with known values already filled in.
//!
//! `mod.rs` parses the filled template.

use quipu_contract::{Actor, Form, Language};

use super::super::check::may_write;
use super::capital;
use super::names::Section;
use crate::project::ids::short_name;
use crate::project::open::Project;
use crate::session::todos::{hanging, load_todos};

/// Renders the command with the headings that this actor fills in. Unchanged lines with `…` are
/// ignored when the text is parsed.
pub fn finish_template(project: &Project, actor: &Actor) -> String {
    let language = project.contract.language;
    let zh = language == Language::Zh;
    let mut text = String::from("quipu finish <<'EOF'\n");
    let mut put = |section: Section, lines: &str| {
        let (en, name_zh) = section.names();
        text.push_str(&format!(
            "## {}\n{lines}\n",
            capital(if zh { name_zh } else { en })
        ));
    };
    let may = |form: Form| may_write(project, actor, form);
    if may(Form::State) {
        put(Section::Done, "- …");
    }
    if may(Form::Decisions) {
        let example = if zh {
            "- 无 <!-- 或：- 标题。理由：…… 否决：…… 决定者：…… -->"
        } else {
            "- none <!-- or: - title. Why: … Rejected: … By: … -->"
        };
        put(Section::Decisions, example);
    }
    if may(Form::Todos) {
        put(Section::Todos, &todo_lines(project, actor, zh));
    }
    if may(Form::State) {
        let next = if zh {
            "- … <!-- 仍然有效的旧步骤要再写一遍 -->"
        } else {
            "- … <!-- repeat old steps that still hold -->"
        };
        put(Section::Next, next);
        put(Section::Notes, if zh { "- 无" } else { "- none" });
        put(Section::Facts, if zh { "- 无" } else { "- none" });
    }
    if may(Form::Session) {
        put(Section::Key("solution"), "- …");
        put(Section::Key("lesson"), if zh { "- 无" } else { "- none" });
    }
    if may(Form::World) {
        put(Section::Key("world"), if zh { "- 无" } else { "- none" });
    }
    text + "EOF\n"
}

/// The actor's todos in progress, each with the possible answers.
fn todo_lines(project: &Project, actor: &Actor, zh: bool) -> String {
    let list = load_todos(project, actor).unwrap_or_default();
    let ids = || list.todos.iter().map(|t| t.id.as_str());
    let line = |todo: &&crate::session::todos::Todo| {
        let (id, title) = (short_name(ids(), &todo.id), todo.title.replace("--", "—"));
        if zh {
            format!("- 保留 {id} <!-- {title}；或：完成 ID；阻塞 ID：原因 -->")
        } else {
            format!("- leave {id} <!-- {title}; or: done; block ID: reason -->")
        }
    };
    let mut lines: Vec<String> = hanging(&list, actor).iter().map(line).collect();
    if lines.is_empty() {
        lines.push(
            if zh {
                "- 无 <!-- 或：- 标题 (high, due 2026-12-31, @名字)：说明 -->"
            } else {
                "- none <!-- or: - title (high, due 2026-12-31, @name): description -->"
            }
            .into(),
        );
    }
    lines.join("\n")
}
