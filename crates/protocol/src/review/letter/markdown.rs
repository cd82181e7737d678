//! The letter as Markdown.

use std::fmt::Write as _;

use super::{Letter, Point, TEMPLATE_OPENING};
use crate::review::comment::Severity;
use crate::review::rounds::Comment;
use crate::review::state::AgentStatus;

pub fn render(letter: &Letter<'_>) -> String {
    let mut text = heading(letter);
    let points = letter.points();
    todo(letter, &points, &mut text);
    conflicts(letter, &mut text);
    resolved(letter, &mut text);
    if !points.is_empty() {
        text.push_str(&template(letter, &points));
    }
    panel(letter, &mut text);
    text
}

/// Text of agents and authors on one line, without raw HTML.
fn line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('<', "\\<")
}

fn heading(letter: &Letter<'_>) -> String {
    let round = letter.panel.round;
    let mut text = format!(
        "# {}: {}\n\n",
        line(&letter.title),
        match letter.say("en", "zh") {
            "en" => format!("review, round {round}"),
            _ => format!("第 {round} 轮评审"),
        }
    );
    let _ = writeln!(
        text,
        "**{}:** {}  ",
        letter.say("Verdict", "结论"),
        letter.verdict()
    );
    if let Some(sum) = &letter.panel.sum {
        let _ = writeln!(
            text,
            "**{}:** {:.1} / 5  ",
            letter.say("Overall", "总分"),
            sum.overall
        );
    }
    let open = letter.panel.open();
    let counts: Vec<String> = Severity::ALL
        .iter()
        .map(|severity| format!("{} {}", open.get(*severity), letter.severity(*severity)))
        .collect();
    let closed = letter.resolved().count();
    let _ = writeln!(
        text,
        "**{}:** {}; {closed} {}",
        letter.say("Comments", "意见"),
        counts.join(", "),
        letter.say("resolved", "已解决")
    );
    if let Some(report) = letter.weighed
        && let Some(departure) = &report.departure
    {
        let _ = writeln!(
            text,
            "\n{} {}",
            letter.say(
                "The verdict departs from the rule of the review:",
                "结论与评审规则不同："
            ),
            line(departure)
        );
    }
    if let Some(report) = letter.summed {
        let _ = writeln!(text, "\n{}\n", line(&report.summary));
        for finding in &report.findings {
            let _ = writeln!(text, "- {}", line(finding));
        }
        if !report.recommendations.is_empty() {
            let _ = writeln!(text, "\n{}\n", letter.say("Begin with this:", "先做这些："));
        }
        for (at, advice) in report.recommendations.iter().enumerate() {
            let _ = writeln!(text, "{}. {}", at + 1, line(advice));
        }
    }
    text
}

fn todo(letter: &Letter<'_>, points: &[Point<'_>], text: &mut String) {
    let _ = writeln!(text, "\n## {}", letter.say("What to do", "修改清单"));
    if points.is_empty() {
        let _ = writeln!(
            text,
            "\n{}",
            letter.say("Nothing is open.", "没有未解决的意见。")
        );
    }
    for severity in Severity::ALL {
        let of = || points.iter().filter(|p| p.severity == severity);
        if of().next().is_none() {
            continue;
        }
        let _ = writeln!(text, "\n### {}\n", capital(letter.severity(severity)));
        for point in of() {
            match (&point.text, point.comments.as_slice()) {
                (None, [comment]) => {
                    let _ = writeln!(
                        text,
                        "- [ ] **{}.** {}",
                        point.number,
                        entry(letter, comment)
                    );
                }
                (said, comments) => {
                    let said = said.as_deref().unwrap_or_default();
                    let _ = writeln!(text, "- [ ] **{}.** {}", point.number, line(said));
                    for comment in comments {
                        let _ = writeln!(text, "  - {}", entry(letter, comment));
                    }
                }
            }
        }
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

/// A comment with its place, its newest answer, its author and its id.
fn entry(letter: &Letter<'_>, comment: &Comment) -> String {
    let answer = comment.answer.as_ref().map(|answer| {
        format!(
            " *{} {} ({}): {}*",
            letter.say("Round", "轮次"),
            answer.round,
            letter.status(comment.status),
            line(&letter.answer(comment).unwrap_or_default())
        )
    });
    format!(
        "{} “{}”: {}{} ({}, {})",
        letter.place(comment),
        line(comment.shown_quote()),
        line(&comment.text),
        answer.unwrap_or_default(),
        line(letter.agent(comment)),
        comment.id
    )
}

fn conflicts(letter: &Letter<'_>, text: &mut String) {
    let conflicts = letter.panel.sum.iter().flat_map(|sum| &sum.conflicts);
    let ruled: Vec<String> = conflicts
        .filter_map(|c| {
            let ruling = line(c.ruling.as_deref()?);
            Some(format!("- {}: {ruling}\n", c.comments.join(" | ")))
        })
        .collect();
    if !ruled.is_empty() {
        let _ = write!(
            text,
            "\n## {}\n\n{}",
            letter.say("Where reviewers disagree", "审稿人意见不一之处"),
            ruled.concat()
        );
    }
}

fn resolved(letter: &Letter<'_>, text: &mut String) {
    if letter.resolved().next().is_none() {
        return;
    }
    let _ = writeln!(text, "\n## {}\n", letter.say("Resolved", "已解决"));
    let joined = letter.panel.comments.iter();
    let joined = joined.filter(|c| !c.is_open() && c.joined_to.is_some());
    for comment in letter.resolved().chain(joined) {
        let _ = writeln!(text, "- {}", entry(letter, comment));
    }
}

/// The template for the authors' reply.
pub fn template(letter: &Letter<'_>, points: &[Point<'_>]) -> String {
    let mut text = format!(
        "\n## {}\n\n{}\n",
        letter.say("Your reply", "您的答复"),
        letter.say(TEMPLATE_OPENING[0], TEMPLATE_OPENING[1])
    );
    for point in points {
        let ids: Vec<&str> = point.comments.iter().map(|c| c.id.as_str()).collect();
        let first = point.comments[0];
        let said = point.text.as_deref().unwrap_or(&first.text);
        let _ = write!(
            text,
            "\n### {}. {}, {} “{}”\n\n> {}\n\n- **{}:** \n- **{}:** \n",
            point.number,
            ids.join(", "),
            letter.place(first),
            line(first.shown_quote()),
            line(said),
            letter.say("Answer", "答复"),
            letter.say("Changed (line of the revision)", "改动（修改稿行号）")
        );
    }
    text
}

fn panel(letter: &Letter<'_>, text: &mut String) {
    let _ = writeln!(
        text,
        "\n## {}\n\n| | {} | {} | {} |\n|---|---|---|---|",
        letter.say("The panel", "评审组"),
        letter.say("score", "分数"),
        letter.say("confidence", "信心"),
        letter.say("summary", "总评")
    );
    for member in &letter.panel.members {
        let summary = match (&member.report, member.status) {
            (Some(report), _) => line(&report.summary),
            (None, AgentStatus::Failed) => {
                letter.say("failed, not counted", "失败，不计入").to_owned()
            }
            // An agent that does not apply has no place in a letter.
            (None, AgentStatus::NotApplicable) => continue,
            (None, _) => letter.say("not reported yet", "尚未报告").to_owned(),
        };
        let number = |n: Option<u8>| n.map(|n| n.to_string()).unwrap_or_default();
        let report = member.report.as_ref();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            line(&member.title),
            number(report.map(|r| r.score)),
            number(report.map(|r| r.confidence)),
            summary.replace('|', "\\|")
        );
    }
}
