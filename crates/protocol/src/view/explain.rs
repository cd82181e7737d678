//! Explains a view: how the token window is used, pointer by pointer.
//!
//! It only formats a finished view.

use quipu_contract::{Need, Tokens};

use super::{Seen, StageView, View};

/// Renders the table of `view --explain`.
pub fn render_explanation(view: &View) -> String {
    let unit = view
        .unit
        .as_ref()
        .map(|u| format!(" for {u}"))
        .unwrap_or_default();
    let mut text = format!("{}{unit}: tokens by {}\n", view.role, view.counter);
    for (index, stage) in view.stages.iter().enumerate() {
        if view.stages.len() > 1 {
            text.push_str(&format!("\nstage {} of {}\n", index + 1, view.stages.len()));
        }
        text.push('\n');
        text.push_str(&render_stage(view, stage));
    }
    // The row of a pointer to a single text already shows it.
    if view.pointers.iter().any(has_unnamed) {
        text.push_str("\nleft out, no room\n");
        for name in view
            .pointers
            .iter()
            .filter(|seen| has_unnamed(seen))
            .flat_map(|seen| &seen.left_out)
        {
            text.push_str(&format!("  {name}\n"));
        }
    }
    let listed: Vec<_> = view.pointers.iter().flat_map(|seen| &seen.listed).collect();
    if !listed.is_empty() {
        text.push_str("\nlisted only\n");
        listed
            .iter()
            .for_each(|path| text.push_str(&format!("  {path}\n")));
    }
    if !view.repeated.is_empty() {
        text.push_str("\nshown by another pointer\n");
        for repeated in &view.repeated {
            text.push_str(&format!(
                "  {} ({}): {}  {}\n",
                repeated.name,
                need(repeated.need),
                repeated.shown.join(", "),
                repeated.place
            ));
        }
    }
    if !view.absent.is_empty() {
        text.push_str("\nmissing\n");
        for absent in &view.absent {
            text.push_str(&format!(
                "  {} ({}) {}{}\n",
                absent.name,
                need(absent.need),
                absent.what,
                absent.render_writers()
            ));
        }
    }
    if !view.denied.is_empty() {
        text.push_str("\ndenied\n");
        for denied in &view.denied {
            text.push_str(&format!(
                "  {} ({} files): {}  {}\n",
                denied.path, denied.files, denied.why, denied.place
            ));
        }
    }
    text
}

fn has_unnamed(seen: &Seen) -> bool {
    seen.left_out.iter().any(|name| *name != seen.name)
}

fn render_stage(view: &View, stage: &StageView) -> String {
    let mut rows: Vec<[String; 6]> =
        vec![["pointer", "class", "need", "whole", "shown", "how"].map(str::to_owned)];
    for (seen, share) in view.pointers.iter().zip(&stage.shares) {
        let files = if seen.files.len() > 1 {
            format!(" ({} files)", seen.files.len())
        } else {
            String::new()
        };
        let how = format!("{}  · {}", share.strategy, seen.why);
        rows.push([
            format!("{}{files}", seen.name),
            seen.class.as_str().to_owned(),
            need(seen.need).to_owned(),
            grouped(share.whole),
            grouped(share.shown),
            how,
        ]);
    }
    let whole: Tokens = stage.shares.iter().map(|s| s.whole).sum();
    let sum = |name: &str, whole: String, shown: Tokens| {
        [
            name.to_owned(),
            String::new(),
            String::new(),
            whole,
            grouped(shown),
            String::new(),
        ]
    };
    let lines_at = rows.len();
    rows.push(sum("reads", grouped(whole), stage.tokens));
    let mut second_line_at = None;
    match view.window {
        Some(window) => {
            rows.push(sum("system prompt", String::new(), window.system));
            rows.push(sum("output reserve", String::new(), window.reserve));
            second_line_at = Some(rows.len());
            let total = stage.tokens + window.system + window.reserve;
            rows.push(sum("total", String::new(), total));
            rows.push(sum("window", String::new(), window.window));
            rows.push(sum(
                "left over",
                String::new(),
                window.window.saturating_sub(total),
            ));
        }
        None => {
            rows.push(sum("budget", String::new(), view.budget));
            rows.push(sum(
                "left over",
                String::new(),
                view.budget.saturating_sub(stage.tokens),
            ));
        }
    }
    let mut widths = [0; 6];
    for row in &rows {
        widths
            .iter_mut()
            .zip(row)
            .for_each(|(width, cell)| *width = (*width).max(columns(cell)));
    }
    let line = format!("{}\n", "─".repeat(widths[..5].iter().sum::<usize>() + 8));
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        if index == lines_at || Some(index) == second_line_at {
            text.push_str(&line);
        }
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let pad = " ".repeat(widths[column].saturating_sub(columns(cell)));
            // Numbers are right-aligned, words left-aligned.
            if column == 3 || column == 4 {
                format!("{pad}{cell}")
            } else {
                format!("{cell}{pad}")
            }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn need(need: Need) -> &'static str {
    match need {
        Need::Must => "must",
        Need::IfRoom => "if-room",
    }
}

/// Formats as `12,345`.
fn grouped(tokens: Tokens) -> String {
    let digits = tokens.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The terminal columns of a text; wide characters take two.
fn columns(text: &str) -> usize {
    text.chars().map(|c| if matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{ffe0}'..='\u{ffe6}' | '\u{20000}'..='\u{3fffd}') { 2 } else { 1 }).sum()
}
