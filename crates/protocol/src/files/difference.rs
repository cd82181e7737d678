//! Renders differences between two texts for people.

/// Returns a unified diff, or an empty string if the texts are equal.
pub fn render_difference(old_name: &str, old: &str, new_name: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    similar::TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(old_name, new_name)
        .to_string()
}
