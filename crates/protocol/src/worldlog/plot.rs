//! Draws the metrics: as block characters for a terminal, as SVG for a page.
//!
//! `metrics.rs` computes the values.

use quipu_contract::Language;

use super::metrics::{Metrics, Point};

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The maximum number of columns. With more sessions, a column shows the last of several.
const COLUMNS: usize = 60;

struct Line {
    en: &'static str,
    zh: &'static str,
    colour: &'static str,
    dash: &'static str,
    of: fn(&Point) -> Option<f64>,
}

const LINES: [Line; 3] = [
    Line {
        en: "pattern reuse",
        zh: "模式复用率",
        colour: "#1b6ca8",
        dash: "",
        of: |p| Some(p.reuse),
    },
    Line {
        en: "knowledge growth",
        zh: "知识增长率",
        colour: "#b8570a",
        dash: "6 3",
        of: |p| Some(p.growth),
    },
    Line {
        en: "execution gain",
        zh: "执行优化率",
        colour: "#2f7d32",
        dash: "2 3",
        of: |p| p.gain,
    },
];

impl Line {
    fn name(&self, language: Language) -> &'static str {
        if language == Language::Zh {
            self.zh
        } else {
            self.en
        }
    }
}

/// One line of blocks per metric, from 0 to 1; values below 0 are shown as 0.
pub fn render_blocks(metrics: &Metrics, language: Language) -> String {
    let mut text = String::new();
    let width = LINES
        .iter()
        .map(|line| columns(line.name(language)))
        .max()
        .unwrap_or(0);
    for line in &LINES {
        let values: Vec<Option<f64>> = metrics.points.iter().map(line.of).collect();
        let drawn: String = sampled(&values)
            .into_iter()
            .map(|value| value.map_or('·', block))
            .collect();
        let last = values
            .last()
            .copied()
            .flatten()
            .map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
        let name = line.name(language);
        text.push_str(&format!(
            "{name}{}  {drawn}  {last}\n",
            " ".repeat(width - columns(name))
        ));
    }
    text
}

/// The terminal columns of a text; a Chinese character takes two.
fn columns(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

fn block(value: f64) -> char {
    let step = (value.clamp(0.0, 1.0) * 7.0).round() as usize;
    BLOCKS[step.min(7)]
}

fn sampled(values: &[Option<f64>]) -> Vec<Option<f64>> {
    if values.len() <= COLUMNS {
        return values.to_vec();
    }
    (1..=COLUMNS)
        .map(|column| values[column * values.len() / COLUMNS - 1])
        .collect()
}

/// Draws the three metrics over the sessions.
pub fn render_svg(metrics: &Metrics, language: Language) -> String {
    let (width, height, left, top, bottom) = (720.0, 360.0, 48.0, 24.0, 64.0);
    let lowest = metrics
        .points
        .iter()
        .filter_map(|p| p.gain)
        .fold(0.0, f64::min)
        .max(-1.0);
    let x = |index: usize| {
        left + (width - left - 16.0) * index as f64 / (metrics.points.len().max(2) - 1) as f64
    };
    let y = |value: f64| {
        top + (height - top - bottom) * (1.0 - (value.clamp(lowest, 1.0) - lowest) / (1.0 - lowest))
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for tick in [lowest, 0.0, 0.25, 0.5, 0.75, 1.0] {
        let at = y(tick);
        svg.push_str(&format!(
            "<path d=\"M{left} {at:.1}H{:.1}\" stroke=\"#dddddd\"/>\n",
            width - 16.0
        ));
        svg.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555555\">{tick:.2}</text>\n",
            left - 6.0,
            at + 4.0
        ));
    }
    for (nth, line) in LINES.iter().enumerate() {
        let mut path = String::new();
        for (index, value) in metrics.points.iter().map(line.of).enumerate() {
            if let Some(value) = value {
                path.push_str(&format!(
                    "{}{:.1} {:.1}",
                    if path.is_empty() { "M" } else { "L" },
                    x(index),
                    y(value)
                ));
            }
        }
        if !path.is_empty() {
            let (colour, dash) = (line.colour, line.dash);
            svg.push_str(&format!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>\n"
            ));
        }
        let at = left + 200.0 * nth as f64;
        svg.push_str(&format!(
            "<path d=\"M{at:.1} {0:.1}h24\" stroke=\"{1}\" stroke-width=\"2\" stroke-dasharray=\"{2}\"/>\n\
             <text x=\"{3:.1}\" y=\"{4:.1}\" fill=\"#222222\">{5}</text>\n",
            height - 18.0,
            line.colour,
            line.dash,
            at + 30.0,
            height - 14.0,
            line.name(language)
        ));
    }
    if let (Some(first), Some(last)) = (metrics.points.first(), metrics.points.last()) {
        let at = height - bottom + 18.0;
        svg.push_str(&format!(
            "<text x=\"{left}\" y=\"{at:.1}\" fill=\"#555555\">{}</text>\n",
            escaped(&first.date)
        ));
        svg.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{at:.1}\" text-anchor=\"end\" fill=\"#555555\">{}</text>\n",
            width - 16.0,
            escaped(&last.date)
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worldlog::{Session, measure};

    #[test]
    fn more_sessions_than_columns_share_them() {
        let sessions: Vec<Session> = (0..200)
            .map(|n| Session {
                name: format!("{n:03}"),
                pattern: Some("a".into()),
                ..Session::default()
            })
            .collect();
        let metrics = measure(&sessions, &[]);
        let drawn = render_blocks(&metrics, Language::En);
        assert!(
            drawn.lines().all(|line| line
                .chars()
                .filter(|c| BLOCKS.contains(c) || *c == '·')
                .count()
                == COLUMNS),
            "{drawn}"
        );
        let svg = render_svg(&metrics, Language::Zh);
        assert!(
            svg.starts_with("<svg")
                && svg.trim_end().ends_with("</svg>")
                && svg.contains("模式复用率")
        );
        assert!(!render_svg(&measure(&[], &[]), Language::En).contains("NaN"));
    }
}
