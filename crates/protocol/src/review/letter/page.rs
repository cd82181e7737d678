//! The letter as a page: the result, the checklist, the manuscript with its comments in the margin,
//! and the template for the reply. The page needs no other file and runs no script.

use std::fmt::Write as _;
use std::ops::Range;

use quipu_publish::escaped;

use super::{Letter, markdown};
use crate::review::comment::Severity;
use crate::review::passage::Passages;
use crate::review::rounds::Comment;

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --critical: #c62828; --important: #b26a00; --minor: #3367a8; --done: #5a7d5a; }
body { font: 1rem/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 76rem; padding: 1.5rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
.verdict { font-size: 1.15rem; } .muted { opacity: .7; font-size: .9rem; }
ul.todo { list-style: none; padding: 0; } ul.todo li { margin: .6rem 0; }
.tag { border-radius: .3rem; padding: 0 .4rem; font-size: .8rem; color: #fff; }
.critical .tag, .tag.critical { background: var(--critical); } .important .tag, .tag.important { background: var(--important); }
.minor .tag, .tag.minor { background: var(--minor); } .done .tag, .tag.done { background: var(--done); }
.row { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 1.5rem; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; font-family: Georgia, serif; }
.l { display: block; min-height: 1.55em; padding-left: 3rem; text-indent: -3rem; }
.n { display: inline-block; width: 3rem; text-indent: 0; color: #8889; font: .75rem ui-monospace, monospace; user-select: none; text-decoration: none; }
mark { background: transparent; border-bottom: .15rem solid; color: inherit; }
mark.critical { border-color: var(--critical); } mark.important { border-color: var(--important); } mark.minor { border-color: var(--minor); }
.note { border-left: .25rem solid; padding: .1rem .7rem; margin: 0 0 .7rem; font-size: .9rem; }
.note.critical { border-color: var(--critical); } .note.important { border-color: var(--important); }
.note.minor { border-color: var(--minor); } .note.done { border-color: var(--done); opacity: .75; }
pre { white-space: pre-wrap; border: 1px solid var(--line); padding: 1rem; }
@media (max-width: 50rem) { .row { display: block; } .note { margin-left: 3rem; } }
@media print { .row { break-inside: avoid; } }
";

pub fn render(letter: &Letter<'_>) -> String {
    let language = letter.say("en", "zh");
    let title = format!(
        "{}: {} {}",
        letter.title,
        letter.say("review, round", "评审，轮次"),
        letter.panel.round
    );
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
        escaped(&title)
    );
    result(letter, &mut html);
    checklist(letter, &mut html);
    manuscript(letter, &mut html);
    let points = letter.points();
    if !points.is_empty() {
        let template = markdown::template(letter, &points);
        let (heading, body) = template.trim().split_once('\n').unwrap_or_default();
        let _ = writeln!(
            html,
            "<h2>{}</h2>\n<pre>{}</pre>",
            escaped(heading.trim_start_matches('#').trim()),
            escaped(body.trim())
        );
    }
    html + "</body>\n</html>\n"
}

fn result(letter: &Letter<'_>, html: &mut String) {
    let _ = writeln!(
        html,
        "<p class=\"verdict\"><strong>{}</strong></p>",
        escaped(letter.verdict())
    );
    let open = letter.panel.open();
    let tags: Vec<String> = Severity::ALL
        .iter()
        .map(|severity| {
            format!(
                "<span class=\"tag {}\">{} {}</span>",
                severity.as_str(),
                open.get(*severity),
                letter.severity(*severity)
            )
        })
        .collect();
    let closed = letter.resolved().count();
    let overall = letter.panel.sum.as_ref().map(|sum| {
        format!(
            " · {} {:.1} / 5",
            letter.say("overall", "总分"),
            sum.overall
        )
    });
    let _ = writeln!(
        html,
        "<p>{} <span class=\"tag done\">{closed} {}</span>{}</p>",
        tags.join(" "),
        letter.say("resolved", "已解决"),
        overall.unwrap_or_default()
    );
    if let Some(report) = letter.summed {
        let _ = writeln!(html, "<p>{}</p>", escaped(&report.summary));
        if !report.findings.is_empty() {
            html.push_str("<ul>\n");
            for finding in &report.findings {
                let _ = writeln!(html, "<li>{}</li>", escaped(finding));
            }
            html.push_str("</ul>\n");
        }
        if !report.recommendations.is_empty() {
            let begin = letter.say("Begin with this:", "先做这些：");
            let _ = writeln!(html, "<p>{begin}</p>\n<ol>");
            for advice in &report.recommendations {
                let _ = writeln!(html, "<li>{}</li>", escaped(advice));
            }
            html.push_str("</ol>\n");
        }
    }
}

fn checklist(letter: &Letter<'_>, html: &mut String) {
    let _ = writeln!(html, "<h2>{}</h2>", letter.say("What to do", "修改清单"));
    let points = letter.points();
    if points.is_empty() {
        let none = letter.say("Nothing is open.", "没有未解决的意见。");
        let _ = writeln!(html, "<p>{none}</p>");
        return;
    }
    html.push_str("<ul class=\"todo\">\n");
    for point in points {
        let said = point.text.as_deref().unwrap_or(&point.comments[0].text);
        let places: Vec<String> = point
            .comments
            .iter()
            .map(|c| {
                format!(
                    "<a href=\"#c-{0}\">{0}</a> {1}",
                    escaped(&c.id),
                    escaped(&letter.place(c))
                )
            })
            .collect();
        let _ = writeln!(
            html,
            "<li class=\"{}\"><label><input type=\"checkbox\"> <span class=\"tag\">{}</span> \
             {}. {}</label> <span class=\"muted\">{}</span></li>",
            point.severity.as_str(),
            letter.severity(point.severity),
            point.number,
            escaped(said),
            places.join(", ")
        );
    }
    html.push_str("</ul>\n");
}

/// The manuscript in blocks of lines, each with the comments that begin in it.
fn manuscript(letter: &Letter<'_>, html: &mut String) {
    let _ = writeln!(
        html,
        "<h2>{}</h2>",
        letter.say("The manuscript with its comments", "稿件与页边意见")
    );
    let marks = marks(letter);
    let here = |c: &&Comment| c.path.is_none() && c.passage.is_some();
    let comments: Vec<&Comment> = letter.panel.comments.iter().filter(here).collect();
    let mut start = 0;
    let mut number = 1;
    for block in blocks(letter.text) {
        let count = block.split_inclusive('\n').count();
        let mut notes: Vec<&&Comment> = comments
            .iter()
            .filter(|c| (number..number + count).contains(&c.line))
            .collect();
        notes.sort_by_key(|c| (!c.is_open(), c.line));
        html.push_str("<div class=\"row\">\n<div class=\"text\">");
        for line in block.split_inclusive('\n') {
            let _ = write!(
                html,
                "<span class=\"l\"><a class=\"n\" id=\"L{number}\" \
                 href=\"#L{number}\">{number}</a>{}</span>",
                marked(line.trim_end_matches('\n'), start, &marks)
            );
            start += line.len();
            number += 1;
        }
        html.push_str("</div>\n<div>\n");
        for comment in notes {
            note(letter, comment, html);
        }
        html.push_str("</div>\n</div>\n");
    }
    let elsewhere: Vec<&Comment> = letter.panel.comments.iter().filter(|c| !here(c)).collect();
    if !elsewhere.is_empty() {
        let _ = writeln!(
            html,
            "<h3>{}</h3>",
            letter.say(
                "On other files, or on words that are gone",
                "针对其他文件，或原文已不在"
            )
        );
        for comment in elsewhere {
            note(letter, comment, html);
        }
    }
}

/// Splits a text after each empty line.
fn blocks(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut from, mut at, mut blank) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        let empty = line.trim().is_empty();
        if blank && !empty {
            found.push(&text[from..at]);
            from = at;
        }
        at += line.len();
        blank = empty;
    }
    if from < text.len() {
        found.push(&text[from..]);
    }
    found
}

/// The marked bytes of the manuscript, in order and without overlaps.
fn marks(letter: &Letter<'_>) -> Vec<(Range<usize>, Severity)> {
    let passages = Passages::of(letter.text);
    let mut marks: Vec<(Range<usize>, Severity)> = letter
        .panel
        .comments
        .iter()
        .filter(|c| c.is_open())
        .filter_map(|c| Some((passages.bytes(&c.in_manuscript()?.plain), c.severity)))
        .collect();
    marks.sort_by_key(|(range, _)| range.start);
    let mut joined: Vec<(Range<usize>, Severity)> = Vec::new();
    for (range, severity) in marks {
        match joined.last_mut() {
            Some((last, gravest)) if range.start < last.end => {
                last.end = last.end.max(range.end);
                *gravest = severity.min(*gravest);
            }
            _ => joined.push((range, severity)),
        }
    }
    joined
}

/// A line that begins at a byte of the text, with its marked words.
fn marked(line: &str, start: usize, marks: &[(Range<usize>, Severity)]) -> String {
    let mut html = String::new();
    let mut at = 0;
    let words = line.trim_end_matches('\n').len();
    for (range, severity) in marks {
        let from = range.start.saturating_sub(start).max(at).min(words);
        let to = range.end.saturating_sub(start).min(words);
        if range.start >= start + words || to <= from {
            continue;
        }
        html.push_str(&escaped(&line[at..from]));
        let _ = write!(
            html,
            "<mark class=\"{}\">{}</mark>",
            severity.as_str(),
            escaped(&line[from..to])
        );
        at = to;
    }
    html + &escaped(&line[at..])
}

fn note(letter: &Letter<'_>, comment: &Comment, html: &mut String) {
    let class = if comment.is_open() {
        comment.severity.as_str()
    } else {
        "done"
    };
    let answer = comment.answer.as_ref().map(|answer| {
        format!(
            "<br><em>{} {}, {}:</em> {}",
            letter.say("round", "轮次"),
            answer.round,
            letter.status(comment.status),
            escaped(&letter.answer(comment).unwrap_or_default())
        )
    });
    let _ = writeln!(
        html,
        "<div class=\"note {class}\" id=\"c-{}\"><span class=\"tag\">{}</span> <strong>{}</strong> \
         {} “{}”: {}{} <span class=\"muted\">{}</span></div>",
        escaped(&comment.id),
        letter.severity(comment.severity),
        escaped(&comment.id),
        escaped(&letter.place(comment)),
        escaped(comment.shown_quote()),
        escaped(&comment.text),
        answer.unwrap_or_default(),
        escaped(letter.agent(comment))
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_every_byte() {
        let text = "# A\n\nOne\ntwo.\n\n\nThree.";
        assert_eq!(blocks(text), ["# A\n\n", "One\ntwo.\n\n\n", "Three."]);
        assert!(blocks("").is_empty());
    }

    #[test]
    fn marks_cut_a_line_and_nothing_is_lost() {
        let marks = [(4..9, Severity::Critical), (12..20, Severity::Minor)];
        assert_eq!(
            marked("One <two> three\n", 0, &marks),
            "One <mark class=\"critical\">&lt;two&gt;</mark> th<mark \
             class=\"minor\">ree</mark>\n"
        );
        assert_eq!(
            marked("four\n", 16, &marks),
            "<mark class=\"minor\">four</mark>\n"
        );
        assert_eq!(marked("五\n", 40, &marks), "五\n");
    }
}
