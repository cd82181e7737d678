//! The languages whose words are stemmed, and which of them a text is in.
//!
//! A text is in the language of most of its function words, and in English if there are none. A word
//! in Cyrillic letters is Russian in any text.

use std::collections::HashMap;
use std::sync::OnceLock;

use rust_stemmers::{Algorithm, Stemmer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    #[default]
    English,
    German,
    French,
    Spanish,
    Russian,
}

/// The number of words that decide a text's language.
const ENOUGH: usize = 60;
/// The length of the longest function word, in bytes.
const LONGEST: usize = 20;

/// Words with only a grammatical function. Sorted for binary search.
#[rustfmt::skip]
const ENGLISH: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "any",
    "are", "as", "at", "be", "because", "been", "before", "being", "below", "between", "both",
    "but", "by", "can", "cannot", "could", "d", "did", "do", "does", "doing", "don", "down",
    "during", "each", "few", "for", "from", "further", "had", "has", "have", "having", "he",
    "her", "here", "hers", "herself", "him", "himself", "his", "how", "i", "if", "in", "into",
    "is", "it", "its", "itself", "just", "let", "ll", "m", "may", "me", "might", "more", "most",
    "must", "my", "myself", "no", "nor", "not", "o", "of", "off", "on", "once", "only", "or",
    "other", "ought", "our", "ours", "ourselves", "out", "over", "own", "re", "s", "same",
    "shall", "she", "should", "so", "some", "such", "t", "than", "that", "the", "their", "theirs",
    "them", "themselves", "then", "there", "these", "they", "this", "those", "through", "to",
    "too", "under", "until", "up", "ve", "very", "was", "we", "were", "what", "when", "where",
    "which", "while", "who", "whom", "why", "will", "with", "would", "you", "your", "yours",
    "yourself", "yourselves",
];
#[rustfmt::skip]
const GERMAN: &[&str] = &[
    "aber", "als", "am", "an", "auch", "auf", "aus", "bei", "bin", "bis", "da", "damit", "dann",
    "das", "dass", "dem", "den", "denn", "der", "des", "die", "dies", "diese", "diesem", "diesen",
    "dieser", "dieses", "doch", "du", "durch", "ein", "eine", "einem", "einen", "einer", "eines",
    "er", "es", "für", "gegen", "hat", "hatte", "hatten", "ich", "ihm", "ihn", "ihr", "ihre",
    "ihrem", "ihren", "ihrer", "im", "in", "ist", "ja", "kann", "kein", "keine", "man", "mein",
    "meine", "mir", "mit", "nach", "nicht", "noch", "nur", "ob", "oder", "ohne", "sehr", "sein",
    "seine", "seinem", "seinen", "seiner", "sich", "sie", "sind", "so", "um", "und", "uns",
    "unser", "unter", "vom", "von", "vor", "wann", "war", "waren", "warum", "was", "weil",
    "welche", "welchem", "welchen", "welcher", "welches", "wem", "wen", "wenn", "wer", "werden",
    "wie", "wir", "wird", "wo", "wurde", "wurden", "während", "zu", "zum", "zur", "zwischen",
    "über",
];
#[rustfmt::skip]
const FRENCH: &[&str] = &[
    "a", "ai", "au", "aux", "avec", "avons", "ce", "ces", "cet", "cette", "combien", "comme",
    "comment", "d", "dans", "de", "des", "donc", "du", "elle", "elles", "en", "est", "et", "eu",
    "furent", "fut", "il", "ils", "j", "je", "l", "la", "le", "les", "leur", "leurs", "lui", "ma",
    "mais", "mes", "mon", "n", "ne", "nos", "notre", "nous", "on", "ont", "ou", "où", "par",
    "pas", "plus", "pour", "pourquoi", "qu", "quand", "que", "quel", "quelle", "quelles", "quels",
    "qui", "quoi", "s", "sa", "sans", "se", "ses", "son", "sont", "sous", "sur", "ta", "tes",
    "ton", "tu", "un", "une", "vos", "votre", "vous", "y", "à", "étaient", "était", "été", "être",
];
#[rustfmt::skip]
const SPANISH: &[&str] = &[
    "a", "al", "algo", "ante", "aunque", "como", "con", "cual", "cuales", "cuando", "cuál",
    "cuáles", "cuándo", "cuánta", "cuántas", "cuánto", "cuántos", "cómo", "de", "del", "desde",
    "donde", "dónde", "e", "el", "ella", "ellas", "ellos", "en", "entre", "era", "eran", "es",
    "esa", "ese", "eso", "esta", "estaba", "estas", "este", "esto", "estos", "está", "están",
    "fue", "fueron", "ha", "había", "habían", "han", "hasta", "hay", "la", "las", "le", "les",
    "lo", "los", "me", "mi", "mis", "muy", "más", "ni", "no", "nos", "o", "otra", "otro", "para",
    "pero", "por", "porque", "que", "quien", "quienes", "quién", "quiénes", "qué", "se", "según",
    "ser", "si", "sin", "sobre", "son", "su", "sus", "también", "te", "tiene", "tu", "un", "una",
    "unas", "uno", "unos", "y", "ya", "yo", "él",
];
#[rustfmt::skip]
const RUSSIAN: &[&str] = &[
    "а", "без", "был", "была", "были", "было", "быть", "в", "вас", "во", "вот", "все", "всех",
    "вы", "где", "да", "для", "до", "его", "ее", "если", "есть", "еще", "же", "за", "и", "из",
    "или", "им", "их", "к", "как", "какая", "какие", "каким", "каких", "какого", "какое", "какой",
    "каком", "какую", "когда", "кого", "которая", "которые", "который", "кто", "ли", "между",
    "меня", "мне", "мы", "на", "над", "не", "него", "нее", "ней", "нет", "ни", "них", "но", "о",
    "об", "он", "она", "они", "оно", "от", "по", "под", "почему", "при", "с", "сколько", "со",
    "так", "также", "там", "то", "того", "тоже", "только", "том", "у", "уже", "чего", "чем",
    "через", "что", "чтобы", "эта", "эти", "это", "этого", "этой", "этом", "этот", "я",
];

impl Language {
    pub const ALL: [Self; 5] = [
        Self::English,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Russian,
    ];

    /// Returns the language of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut counts = [0u32; Self::ALL.len()];
        let words = text
            .split(|c: char| !c.is_alphabetic())
            .filter(|word| !word.is_empty() && word.len() <= LONGEST);
        let mut lower = String::new();
        for word in words.take(ENOUGH) {
            lower.clear();
            lower.extend(word.chars().flat_map(char::to_lowercase));
            let uses = uses().get(lower.as_str()).copied().unwrap_or_default();
            for (at, count) in counts.iter_mut().enumerate() {
                *count += u32::from(uses >> at & 1);
            }
        }
        // The first of equals, so English wins a tie.
        let mut best = 0;
        for at in 1..counts.len() {
            if counts[at] > counts[best] {
                best = at;
            }
        }
        Self::ALL[best]
    }

    /// Returns the language of a word in a text of this language.
    #[must_use]
    pub fn of_word(self, word: &str) -> Self {
        let is_cyrillic = |c: char| matches!(c as u32, 0x400..=0x52f);
        match (self, word.starts_with(is_cyrillic)) {
            (_, true) => Self::Russian,
            (Self::Russian, false) => Self::English,
            _ => self,
        }
    }

    fn function_words(self) -> &'static [&'static str] {
        match self {
            Self::English => ENGLISH,
            Self::German => GERMAN,
            Self::French => FRENCH,
            Self::Spanish => SPANISH,
            Self::Russian => RUSSIAN,
        }
    }

    /// Returns true if a word in lower case has only a grammatical function.
    #[must_use]
    pub fn is_function_word(self, word: &str) -> bool {
        self.function_words().binary_search(&word).is_ok()
    }

    /// Returns the stemmer of the language.
    pub fn stemmer(self) -> &'static Stemmer {
        static STEMMERS: OnceLock<[Stemmer; Language::ALL.len()]> = OnceLock::new();
        let stemmers = STEMMERS.get_or_init(|| {
            Self::ALL.map(|language| {
                Stemmer::create(match language {
                    Self::English => Algorithm::English,
                    Self::German => Algorithm::German,
                    Self::French => Algorithm::French,
                    Self::Spanish => Algorithm::Spanish,
                    Self::Russian => Algorithm::Russian,
                })
            })
        });
        &stemmers[self as usize]
    }
}

/// Returns all function words, each with a bit for every language that uses it.
fn uses() -> &'static HashMap<&'static str, u8> {
    static USES: OnceLock<HashMap<&'static str, u8>> = OnceLock::new();
    USES.get_or_init(|| {
        let mut uses = HashMap::new();
        for language in Language::ALL {
            for word in language.function_words() {
                *uses.entry(*word).or_default() |= 1u8 << language as u8;
            }
        }
        uses
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_are_sorted() {
        for words in [ENGLISH, GERMAN, FRENCH, SPANISH, RUSSIAN] {
            let sorted = words.windows(2).all(|two| two[0] < two[1]);
            let wrong = words.windows(2).find(|two| two[0] >= two[1]);
            assert!(sorted, "{wrong:?}");
        }
    }

    #[test]
    fn function_words_tell_the_language() {
        for (text, language) in [
            ("Who built the bridge over the river?", Language::English),
            ("Wann wurde die Brücke gebaut?", Language::German),
            ("Quand le pont a-t-il été construit ?", Language::French),
            ("¿Cuándo se construyó el puente?", Language::Spanish),
            ("Когда был построен мост?", Language::Russian),
            ("bridge 1890", Language::English),
            ("桥是什么时候建的", Language::English),
        ] {
            assert_eq!(Language::of(text), language, "{text}");
        }
    }
}
