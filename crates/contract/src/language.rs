//! The two languages everything is written in, and texts that exist in both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The language a project's own files are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    #[default]
    En,
    Zh,
}

impl Language {
    pub const ALL: [Language; 2] = [Language::En, Language::Zh];

    pub fn as_str(self) -> &'static str {
        match self {
            Language::En => "en",
            Language::Zh => "zh",
        }
    }

    pub fn parse(text: &str) -> Option<Language> {
        Language::ALL.into_iter().find(|l| l.as_str() == text)
    }
}

/// A text a person reads: one string for both languages, or one for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Said {
    Once(String),
    Each { en: String, zh: String },
}

impl Said {
    pub fn in_language(&self, language: Language) -> &str {
        match (self, language) {
            (Said::Once(text), _) => text,
            (Said::Each { en, .. }, Language::En) => en,
            (Said::Each { zh, .. }, Language::Zh) => zh,
        }
    }
}

impl Default for Said {
    fn default() -> Self {
        Said::Once(String::new())
    }
}
