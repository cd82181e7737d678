//! Formats lines, sizes and snippets as the reference does.

/// Formats lines with their numbers, padded to the width of the largest allowed number.
pub fn numbered(first: usize, lines: &[&str]) -> String {
    lines
        .iter()
        .enumerate()
        .map(|(index, line)| format!("{:>6}\t{line}", first + index))
        .collect::<Vec<_>>()
        .join("\n")
}

/// `4K`, `1.5K`, `12B`.
pub fn size(bytes: u64) -> String {
    if bytes == 0 {
        return "0B".into();
    }
    let power = ((63 - bytes.leading_zeros()) / 10).min(3);
    let unit = ["B", "K", "M", "G"][power as usize];
    let scale = 1_u64 << (10 * power);
    match bytes % scale {
        0 => format!("{}{unit}", bytes / scale),
        _ => format!("{:.1}{unit}", bytes as f64 / scale as f64),
    }
}

/// Returns the offsets of a text, including overlapping matches.
pub fn places(text: &str, of: &str) -> Vec<usize> {
    let ends = std::iter::once(text.len());
    text.char_indices()
        .map(|(at, _)| at)
        .chain(ends)
        .filter(|at| text[*at..].starts_with(of))
        .collect()
}

pub fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Returns the changed line with two lines around it.
pub fn snippet(text: &str, line: usize) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let first = line.saturating_sub(3);
    numbered(first + 1, &lines[first..lines.len().min(line + 2)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_as_the_reference_does() {
        for (bytes, told) in [
            (0, "0B"),
            (1, "1B"),
            (1023, "1023B"),
            (1024, "1K"),
            (1536, "1.5K"),
            (4096, "4K"),
            (5 << 30, "5G"),
        ] {
            assert_eq!(size(bytes), told);
        }
    }
}
