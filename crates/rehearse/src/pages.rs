//! Typesets a chapter as a page, and checks that a page shows the whole chapter.
//!
//! `quipu_publish` does the rendering and compares the texts.

use std::collections::{BTreeMap, HashSet};

use quipu_contract::Language;
use quipu_publish::{Book, Chapter, Places, find_missing_text, own_script, publish};
use quipu_text::render_marker;

use crate::parse::shortened;
use crate::sheet::{Sheet, quoted, say};
use crate::task::RehearseTask;
use crate::view::View;

/// Renders the chapter as `quipu publish` would. The titles of the other chapters come from their
/// units.
fn set(page: &str, path: &str, text: &str, task: &RehearseTask) -> BTreeMap<String, Vec<u8>> {
    let own = task
        .unit
        .as_ref()
        .map(|unit| unit.id.as_str())
        .unwrap_or("chapter");
    let units: Vec<(&str, &str)> = match task.units.iter().any(|unit| unit.id == own) {
        true => task
            .units
            .iter()
            .map(|unit| (unit.id.as_str(), unit.title.as_str()))
            .collect(),
        false => vec![(own, own)],
    };
    let other = |ending: &str| {
        task.outputs
            .iter()
            .map(|output| &output.path)
            .find(|path| path.ends_with(ending) && *path != page)
            .cloned()
    };
    let beside = |name: &str| {
        page.rsplit_once('/')
            .map_or(name.to_owned(), |(folder, _)| format!("{folder}/{name}"))
    };
    let chapters = units.iter().enumerate().map(|(at, (id, title))| Chapter {
        id: (*id).to_owned(),
        number: at + 1,
        title: (*title).to_owned(),
        path: path.replace(own, id),
        text: if *id == own {
            text.to_owned()
        } else {
            String::new()
        },
        page: page.replace(own, id),
    });
    let book = Book {
        title: task.project.clone(),
        author: None,
        language: task.language,
        chapters: chapters.collect(),
        images: BTreeMap::new(),
        places: Places {
            contents: other(".html").unwrap_or_else(|| beside("index.html")),
            stylesheet: other(".css").unwrap_or_else(|| beside("style.css")),
            media: beside("media"),
            ..Places::default()
        },
        drawings: BTreeMap::new(),
        terms: Vec::new(),
        references: Vec::new(),
        source_root: String::new(),
        sources: BTreeMap::new(),
        withheld: BTreeMap::new(),
    };
    publish(&book).files
}

/// Returns the page of a chapter, with the stylesheet for the first unit and the contents page for
/// the last.
pub(crate) fn typeset(path: &str, text: &str, task: &RehearseTask) -> Vec<(String, Vec<u8>)> {
    let Some(page) = task
        .outputs
        .iter()
        .find(|output| output.path.ends_with(".html") && output.marker.is_some())
        .map(|output| output.path.clone())
    else {
        return Vec::new();
    };
    let mut files = set(&page, path, text, task);
    let own = task.unit.as_ref().map(|unit| unit.id.as_str());
    let first = task.units.first().map(|unit| unit.id.as_str());
    let last = task.units.last().map(|unit| unit.id.as_str());
    let wanted = |path: &str| {
        path == page
            || path.ends_with(".css") && (own == first || first.is_none())
            || path.ends_with(".html") && own == last
    };
    let outputs = task
        .outputs
        .iter()
        .map(|output| output.path.as_str())
        .filter(|path| wanted(path));
    outputs
        .filter_map(|path| Some((path.to_owned(), files.remove(path)?)))
        .collect()
}

/// Checks that a page contains every word of its chapter and no text that is only for authors.
pub(crate) fn inspect(view: &View, page: &str, html: &str, task: &RehearseTask) -> (Sheet, bool) {
    let l = task.language;
    let mut faults: Vec<String> = Vec::new();
    let mut checks: Vec<Vec<String>> = Vec::new();
    let mut check = |name: &str, found: Vec<String>| {
        let state = if found.is_empty() {
            say(l, "ok", "无误").to_owned()
        } else {
            format!("{} {}", found.len(), say(l, "faults", "处缺陷"))
        };
        checks.push(vec![name.to_owned(), state]);
        faults.extend(found);
    };
    let fault = |what: &str, should: &str| {
        format!(
            "❌ [typesetter] {page} | {} | {}",
            shortened(&quoted(what), 100),
            should
        )
    };

    let chapter = view.texts.iter().find(|(path, _)| path.ends_with(".md"));
    let missing = match chapter {
        Some((path, seen)) => {
            let expected = set(page, path, &seen.text, task);
            let expected = expected
                .get(page)
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                .unwrap_or_default();
            find_missing_text(&expected, html)
                .absent
                .into_iter()
                .map(|line| {
                    fault(
                        &line,
                        say(
                            l,
                            "the page lacks these words of the chapter",
                            "页面缺少定稿的这些文字",
                        ),
                    )
                })
                .take(20)
                .collect()
        }
        None => vec![fault(
            say(l, "no chapter in view", "视图中没有定稿"),
            say(l, "the page cannot be compared", "无法对照"),
        )],
    };
    check(say(l, "Text", "文字"), missing);

    let count = |needle: &str| html.matches(needle).count();
    let mut structure = Vec::new();
    if count("<h1") != 1 {
        structure.push(fault(
            &format!("<h1>: {}", count("<h1")),
            say(l, "one H1", "一个一级标题"),
        ));
    }
    let mut ids = HashSet::new();
    for id in html
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        if !ids.insert(id) {
            structure.push(fault(id, say(l, "an id stands once", "id 不重复")));
        }
    }
    check(say(l, "Structure", "结构"), structure);

    let mut links: Vec<String> = html
        .split("href=\"#")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|id| !ids.contains(decoded(id).as_str()))
        .map(|id| fault(id, say(l, "the link has a target", "链接有去处")))
        .collect();
    let name = page.rsplit('/').next().unwrap_or(page);
    for (path, index) in view
        .texts
        .iter()
        .filter(|(path, _)| path.ends_with(".html") && path.as_str() != page)
    {
        if !index.text.contains(&format!("href=\"{name}")) {
            links.push(fault(
                path,
                say(l, "the contents lead to this page", "目录通到本页"),
            ));
        }
    }
    check(say(l, "Links", "链接"), links);

    let mut look = Vec::new();
    for (needle, should) in [
        (
            "<link rel=\"stylesheet\"",
            say(l, "one stylesheet is linked", "已链接样式表"),
        ),
        ("<html lang=", say(l, "the language is told", "写明语言")),
        (
            "name=\"viewport\"",
            say(l, "narrow screens are thought of", "适合窄屏"),
        ),
    ] {
        if !html.contains(needle) {
            look.push(fault(needle, should));
        }
    }
    if html.contains(" style=\"") {
        look.push(fault(
            "style=",
            say(l, "no style of its own", "页内不写样式"),
        ));
    }
    check(say(l, "Look and access", "外观与无障碍"), look);

    let marker = task
        .outputs
        .first()
        .map(|_| render_marker(quipu_publish::PAGE_MARKER))
        .unwrap_or_default();
    let body = html.trim_end().strip_suffix(&marker).unwrap_or(html);
    // The publisher's own script, and only that: a second copy or another script is a fault.
    let body = body.replacen(&own_script(l), "", 1);
    let mut left: Vec<String> = ["<script", "<!-- ", "](", "**"]
        .iter()
        .filter(|sign| without_code(&body).contains(**sign))
        .map(|sign| fault(sign, say(l, "nothing of the workshop is left", "没有残留")))
        .collect();
    if !html.trim_end().ends_with(&marker) {
        left.push(fault(
            say(l, "the end", "结尾"),
            &format!(
                "{} {}",
                say(l, "the page ends with", "页面以此结尾："),
                marker
                    .trim_start_matches("<!--")
                    .trim_end_matches("-->")
                    .trim()
            ),
        ));
    }
    check(say(l, "Leftovers", "残留"), left);

    let well = faults.is_empty();
    let mut sheet = Sheet::titled(&task.title);
    sheet.h2(say(l, "Verdict", "结论"));
    sheet.line(&match l {
        Language::En => format!(
            "*{}*. For the typesetter: {}; for the writer: 0.",
            if well { "passed" } else { "failed" },
            faults.len()
        ),
        Language::Zh => format!(
            "{}。交排版员 {} 处，交作者 0 处。",
            if well { "通过" } else { "不通过" },
            faults.len()
        ),
    });
    sheet.h2(say(l, "Checks", "检查"));
    sheet.table(
        &[say(l, "check", "检查项"), say(l, "result", "结果")],
        &checks,
    );
    sheet.h2(say(l, "Faults", "缺陷"));
    sheet.items(&faults, say(l, "none", "无"));
    (sheet, well)
}

/// Removes code elements, because any character may occur in code.
fn without_code(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once("<code") {
        out.push_str(before);
        rest = after.split_once("</code>").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

fn decoded(id: &str) -> String {
    quipu_text::parse_target(&format!("#{id}"))
        .1
        .unwrap_or_default()
}
