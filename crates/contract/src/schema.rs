//! The JSON Schemas of the contract files, for completion in editors.
//!
//! The test below generates them from the types in `manifest.rs`. The binary embeds the generated
//! files.

use serde_json::Value;

/// The JSON Schema of `quipu.toml`.
pub fn manifest_schema() -> Value {
    parsed(include_str!("../schema/quipu.toml.json"))
}

/// The JSON Schema of `profile.toml`.
pub fn profile_schema() -> Value {
    parsed(include_str!("../schema/profile.toml.json"))
}

fn parsed(schema: &str) -> Value {
    serde_json::from_str(schema).expect("a test compares it with what the types say")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Manifest, ProfileFile};

    /// `QUIPU_RECORD=1 cargo test -p quipu-contract schema` rewrites the schema files.
    #[test]
    fn the_schemas_are_those_of_the_types() {
        for (name, printed, types) in [
            (
                "quipu.toml.json",
                manifest_schema(),
                schemars::schema_for!(Manifest).to_value(),
            ),
            (
                "profile.toml.json",
                profile_schema(),
                schemars::schema_for!(ProfileFile).to_value(),
            ),
        ] {
            if std::env::var_os("QUIPU_RECORD").is_some() {
                let path = format!(
                    "{}/schema/{name}",
                    std::env::var("CARGO_MANIFEST_DIR").unwrap()
                );
                std::fs::write(path, format!("{types:#}\n")).unwrap();
            } else {
                assert_eq!(
                    format!("{printed:#}"),
                    format!("{types:#}"),
                    "{name} is old: QUIPU_RECORD=1 cargo test -p quipu-contract schema"
                );
            }
        }
    }
}
