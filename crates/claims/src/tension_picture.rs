//! Draws tension: bars for a terminal, and an SVG in which one line shows every threshold.
//!
//! `tension` computes the values.

use crate::graph_picture::escaped;
use crate::tension::Pressed;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws a row for each section and a bar for each chapter. A full bar means that the threshold is
/// reached.
pub fn render_bars(tension: &[Pressed], last: u64) -> String {
    let wide = |text: &str| {
        text.chars()
            .map(|c| if c.is_ascii() { 1 } else { 2 })
            .sum::<usize>()
    };
    let room = tension
        .iter()
        .map(|pressed| wide(&pressed.title))
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for pressed in tension {
        let bars: String = (1..=last)
            .map(|chapter| {
                let share = pressed.at(chapter) * 8 / pressed.threshold;
                if pressed.at(chapter) == 0 {
                    '·'
                } else {
                    BARS[usize::try_from(share).unwrap_or(7).clamp(1, 8) - 1]
                }
            })
            .collect();
        let now = pressed.at(last);
        let breaks = pressed
            .breaks()
            .filter(|chapter| *chapter <= last)
            .map(|chapter| format!("  gives way in ch{chapter:02}"))
            .unwrap_or_default();
        let pad = " ".repeat(room - wide(&pressed.title));
        text.push_str(&format!(
            "{}{pad}  {bars}  {now}/{} {}{breaks}\n",
            pressed.title,
            pressed.threshold,
            pressed.level.name()
        ));
    }
    text
}

const COLOURS: [&str; 6] = [
    "#b3412f", "#2f5d85", "#5a7d3a", "#8a5a9e", "#b07d22", "#3f7f7c",
];
const WIDTH: u64 = 860;
const HEIGHT: u64 = 420;
const LEFT: u64 = 64;
const TOP: u64 = 52;
const PLOT: (u64, u64) = (560, 300);

/// Draws the pressure as a share of each threshold, over the chapters, as a step chart.
pub fn render_tension_svg(tension: &[Pressed], last: u64) -> String {
    let last = last.max(2);
    let shown = &tension[..tension.len().min(COLOURS.len())];
    let most = shown
        .iter()
        .map(|pressed| pressed.at(last) * 100 / pressed.threshold)
        .max()
        .unwrap_or(100)
        .max(120)
        .div_ceil(20)
        * 20;
    let x = |chapter: u64| LEFT + (chapter.max(1) - 1) * PLOT.0 / (last - 1);
    let y = |share: u64| TOP + PLOT.1 - share.min(most) * PLOT.1 / most;
    let (right, bottom) = (LEFT + PLOT.0, TOP + PLOT.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#1d2733\">\n\
         <title>Tension over {last} chapters</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fbfaf7\"/>\n\
         <text x=\"{LEFT}\" y=\"26\" font-size=\"15\" font-weight=\"bold\">Tension</text>\n\
         <text x=\"{}\" y=\"26\" fill=\"#5b6b7b\">what presses on each fact, as a share of what it takes to overturn it</text>\n",
        LEFT + 70
    );
    let over = y(100);
    svg.push_str(&format!(
        "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\" fill=\"#f6e3de\"/>\n",
        PLOT.0,
        over - TOP
    ));
    let step = if most > 240 { 100 } else { 50 };
    for share in (0..=most).step_by(step) {
        let at = y(share);
        svg.push_str(&format!("<path d=\"M{LEFT} {at}H{right}\" stroke=\"#dcd8cf\"/><text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#5b6b7b\">{share}%</text>\n", LEFT - 8, at + 4));
    }
    svg.push_str(&format!("<path d=\"M{LEFT} {over}H{right}\" stroke=\"#b3412f\" stroke-dasharray=\"6 4\"/><text x=\"{}\" y=\"{}\" fill=\"#b3412f\">gives way</text>\n", LEFT + 6, over - 6));
    let every = last.div_ceil(16);
    for chapter in (1..=last).step_by(usize::try_from(every).unwrap_or(1)) {
        let at = x(chapter);
        svg.push_str(&format!("<path d=\"M{at} {bottom}v5\" stroke=\"#8a97a3\"/><text x=\"{at}\" y=\"{}\" text-anchor=\"middle\" fill=\"#5b6b7b\">ch{chapter:02}</text>\n", bottom + 20));
    }
    svg.push_str(&format!(
        "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#8a97a3\"/>\n"
    ));
    let mut labels: Vec<(u64, usize)> = Vec::new();
    for (nth, pressed) in shown.iter().enumerate() {
        let share = |chapter: u64| pressed.at(chapter) * 100 / pressed.threshold;
        let mut path = format!("M{} {}", x(1), y(share(1)));
        for chapter in 2..=last {
            path.push_str(&format!("H{}V{}", x(chapter), y(share(chapter))));
        }
        let colour = COLOURS[nth];
        svg.push_str(&format!("<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" stroke-linejoin=\"round\"/>\n"));
        for press in pressed.presses.iter().filter(|press| press.chapter <= last) {
            let radius = 3 + press.weight.min(6) / 2;
            svg.push_str(&format!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"{radius}\" fill=\"{colour}\" stroke=\"#fbfaf7\"><title>{}: {}</title></circle>\n",
                x(press.chapter),
                y(share(press.chapter)),
                escaped(&press.at.to_string()),
                escaped(&press.text)
            ));
        }
        labels.push((y(share(last)), nth));
    }
    // Keep labels at least a line apart and inside the picture.
    labels.sort_unstable();
    let mut free = TOP;
    for (at, nth) in labels {
        let line = at.max(free).min(bottom);
        free = line + 34;
        let pressed = &shown[nth];
        svg.push_str(&format!(
            "<path d=\"M{right} {at}L{} {line}\" stroke=\"{c}\" stroke-opacity=\"0.5\" fill=\"none\"/><text x=\"{}\" y=\"{}\" fill=\"{c}\" font-weight=\"bold\">{}</text>\
             <text x=\"{}\" y=\"{}\" fill=\"#5b6b7b\">{}, {} of {}</text>\n",
            right + 14,
            right + 20,
            line + 4,
            escaped(&pressed.title),
            right + 20,
            line + 19,
            pressed.level.name(),
            pressed.at(last),
            pressed.threshold,
            c = COLOURS[nth]
        ));
    }
    svg + "</svg>\n"
}
