//! The two languages of all texts, and texts that exist in both.

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The language of the project's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// A text for people: one string for both languages, or one for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Localized {
    Once(String),
    Each { en: String, zh: String },
}

impl Localized {
    pub fn in_language(&self, language: Language) -> &str {
        match (self, language) {
            (Localized::Once(text), _) => text,
            (Localized::Each { en, .. }, Language::En) => en,
            (Localized::Each { zh, .. }, Language::Zh) => zh,
        }
    }
}

impl Default for Localized {
    fn default() -> Self {
        Localized::Once(String::new())
    }
}

/// The form in a file: a string, or a table of `en` and `zh`.
impl<'de> Deserialize<'de> for Localized {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Localized, D::Error> {
        struct Texts;
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Each {
            en: String,
            zh: String,
        }
        impl<'de> Visitor<'de> for Texts {
            type Value = Localized;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a text, or one for each language: { en = \"…\", zh = \"…\" }")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Localized, E> {
                Ok(Localized::Once(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Localized, A::Error> {
                Each::deserialize(MapAccessDeserializer::new(map))
                    .map(|Each { en, zh }| Localized::Each { en, zh })
            }
        }
        deserializer.deserialize_any(Texts)
    }
}
