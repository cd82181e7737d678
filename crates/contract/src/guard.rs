//! Guards on what is written: lost text and credentials. Placeholders for text have a file of their own.
//!
//! Each finding names its line. A person or agent who means it says so with `--force` (shrink and
//! placeholder) or in the contract (credentials). Scanners are tables of words rather than regular
//! expressions: they run on every write and must cost microseconds.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use aho_corasick::packed::{Config, Searcher};
use serde::Serialize;

use crate::pattern::Pattern;

/// A reason to stop a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub line: usize,
    /// What was found, never the secret itself.
    pub what: String,
}

/// The contract's settings for the guards.
#[derive(Debug, Clone)]
pub struct GuardRules {
    /// Replacing a file by less than this share of it needs `--force`.
    pub shrink_below: f64,
    /// Files shorter than this may shrink freely.
    pub shrink_from_bytes: usize,
    /// Paths in which text that looks like a credential is allowed.
    pub credentials_in: Vec<Pattern>,
    /// Literal texts that look like credentials and are none.
    pub credentials: Vec<String>,
}

impl Default for GuardRules {
    fn default() -> Self {
        GuardRules { shrink_below: 0.5, shrink_from_bytes: 400, credentials_in: Vec::new(), credentials: Vec::new() }
    }
}

/// Whether replacing `before` by `after` loses much of it.
pub fn find_shrink(rules: &GuardRules, before: usize, after: usize) -> Option<String> {
    let lost = before >= rules.shrink_from_bytes && (after as f64) < before as f64 * rules.shrink_below;
    lost.then(|| format!("would shrink from {before} to {after} bytes"))
}

/// Whether a text says nothing: it is empty, a word that stands for a text to come, or one in brackets that a template left.
pub fn says_nothing(text: &str) -> bool {
    const TO_COME: [&str; 13] =
        ["todo", "tbd", "tba", "fixme", "wip", "xxx", "placeholder", "待办", "待定", "待补", "待补充", "待填", "待续"];
    let text = text.trim();
    let inner = text.strip_prefix(['[', '<', '［', '【']).and_then(|rest| rest.strip_suffix([']', '>', '］', '】']));
    // What leads somewhere, or is only begun and ended by brackets, was written by someone.
    let bracketed =
        inner.is_some_and(|inner| !inner.contains(['[', ']', '<', '>', '→', '/', ':'])) || text.starts_with('_') && text.ends_with('_');
    let bare = text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    bracketed || bare.is_empty() || TO_COME.contains(&bare.as_str())
}

struct Shape {
    what: &'static str,
    prefix: &'static str,
    /// Characters that may follow the prefix, besides letters and digits.
    also: &'static str,
    least: usize,
}

const SHAPES: [Shape; 22] = [
    Shape { what: "an AWS access key", prefix: "AKIA", also: "", least: 16 },
    Shape { what: "an AWS temporary key", prefix: "ASIA", also: "", least: 16 },
    Shape { what: "an Anthropic API key", prefix: "sk-ant-", also: "-_", least: 20 },
    Shape { what: "an OpenAI API key", prefix: "sk-proj-", also: "-_", least: 20 },
    Shape { what: "an API key", prefix: "sk-", also: "_", least: 24 },
    Shape { what: "a Stripe key", prefix: "sk_live_", also: "", least: 16 },
    Shape { what: "a Stripe key", prefix: "rk_live_", also: "", least: 16 },
    Shape { what: "a GitHub token", prefix: "ghp_", also: "", least: 30 },
    Shape { what: "a GitHub token", prefix: "gho_", also: "", least: 30 },
    Shape { what: "a GitHub token", prefix: "ghs_", also: "", least: 30 },
    Shape { what: "a GitHub token", prefix: "ghu_", also: "", least: 30 },
    Shape { what: "a GitHub token", prefix: "github_pat_", also: "_", least: 22 },
    Shape { what: "a GitLab token", prefix: "glpat-", also: "-_", least: 20 },
    Shape { what: "a Slack token", prefix: "xoxb-", also: "-", least: 20 },
    Shape { what: "a Slack token", prefix: "xoxp-", also: "-", least: 20 },
    Shape { what: "a Google API key", prefix: "AIza", also: "-_", least: 35 },
    Shape { what: "a Google client secret", prefix: "GOCSPX-", also: "-_", least: 24 },
    Shape { what: "an npm token", prefix: "npm_", also: "", least: 36 },
    Shape { what: "a PyPI token", prefix: "pypi-AgEI", also: "-_", least: 40 },
    Shape { what: "a Hugging Face token", prefix: "hf_", also: "", least: 30 },
    Shape { what: "a SendGrid key", prefix: "SG.", also: "-_.", least: 40 },
    Shape { what: "a JSON Web Token", prefix: "eyJ", also: "-_.", least: 60 },
];

/// Text that looks like an API key, a private key or a token.
pub fn find_credentials(rules: &GuardRules, text: &str) -> Option<Finding> {
    let mut looked_at = 0;
    let lowered = lowered(text.as_bytes());
    // One pass over the text finds the few lines that are worth a closer look.
    while let Some(hit) = find_hint(&lowered[looked_at..]).map(|hit| looked_at + hit) {
        let start = text[..hit].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[hit..].find('\n').map_or(text.len(), |newline| hit + newline);
        looked_at = end;
        let Some((what, literal)) = credential_in(&text[start..end]) else { continue };
        if rules.credentials.iter().any(|allowed| allowed == literal) {
            continue;
        }
        let line = text[..start].bytes().filter(|b| *b == b'\n').count() + 1;
        return Some(Finding { line, what: format!("looks like {what}") });
    }
    None
}

/// What a line with a credential must hold, in whatever case.
const HINTS: [&str; SHAPES.len() + SECRET_NAMES.len() + 1] = {
    let mut words = [""; SHAPES.len() + SECRET_NAMES.len() + 1];
    let mut index = 0;
    while index < SHAPES.len() {
        words[index] = SHAPES[index].prefix;
        index += 1;
    }
    while index < SHAPES.len() + SECRET_NAMES.len() {
        words[index] = SECRET_NAMES[index - SHAPES.len()];
        index += 1;
    }
    words[index] = "PRIVATE KEY";
    words
};

/// What finds hints in text that was lowered.
enum HintSearch {
    /// Many bytes at a time, on processors that can.
    Packed(Searcher),
    Automaton(AhoCorasick),
}

static HINT_SEARCH: LazyLock<HintSearch> = LazyLock::new(|| {
    let words = HINTS.map(str::to_ascii_lowercase);
    match Config::new().builder().extend(&words).build() {
        Some(packed) => HintSearch::Packed(packed),
        None => HintSearch::Automaton(AhoCorasick::new(&words).expect("a few short words")),
    }
});

/// The letters of ASCII lowered, eight bytes at a time: this crate is compiled to be small, and byte by byte this alone would take longer than
/// the search.
fn lowered(text: &[u8]) -> Vec<u8> {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    let mut lowered = text.to_vec();
    let (eights, rest) = lowered.as_chunks_mut::<8>();
    for eight in eights {
        let bytes = u64::from_ne_bytes(*eight);
        // The highest bit of each byte tells whether it is at least `A`, and whether it is more than `Z`.
        let low = bytes & (0x7f * EACH);
        let from_a = low + (0x80 - u64::from(b'A')) * EACH;
        let beyond_z = low + (0x7f - u64::from(b'Z')) * EACH;
        let upper = (from_a ^ beyond_z) & !bytes & (0x80 * EACH);
        *eight = (bytes | upper >> 2).to_ne_bytes();
    }
    rest.make_ascii_lowercase();
    lowered
}

/// The first place in lowered text where a hint stands.
fn find_hint(lowered: &[u8]) -> Option<usize> {
    let hit = match &*HINT_SEARCH {
        HintSearch::Packed(search) => search.find(lowered),
        HintSearch::Automaton(search) => search.find(lowered),
    };
    hit.map(|hit| hit.start())
}

fn credential_in(line: &str) -> Option<(&'static str, &str)> {
    if line.contains("-----BEGIN ") && line.contains("PRIVATE KEY") {
        return Some(("a private key", line.trim()));
    }
    for shape in &SHAPES {
        for (at, _) in line.match_indices(shape.prefix) {
            // Chinese has no spaces: a key may follow a word directly.
            if line[..at].bytes().next_back().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
                continue;
            }
            let tail = &line[at + shape.prefix.len()..];
            let length = tail.find(|c: char| !(c.is_ascii_alphanumeric() || shape.also.contains(c))).unwrap_or(tail.len());
            let body = &tail[..length];
            // A placeholder such as `sk-xxxxxxxx…` repeats itself; a key does not.
            if length >= shape.least && variety(body) >= 8 && (shape.prefix != "eyJ" || body.matches('.').count() == 2) {
                return Some((shape.what, &line[at..at + shape.prefix.len() + length]));
            }
        }
    }
    assigned_secret(line)
}

const SECRET_NAMES: [&str; 11] =
    ["api_key", "apikey", "api-key", "secret", "password", "access_token", "auth_token", "密码", "密钥", "口令", "令牌"];

/// What may stand around a name or a value: quotes, emphasis, blanks.
const AROUND: [char; 12] = [' ', '"', '\'', '`', '*', '\u{3000}', '“', '”', '‘', '’', '「', '」'];
/// What says that a value follows.
const ASSIGNS: [char; 6] = ['=', ':', '：', '＝', '是', '为'];

/// `api_key = "…"`, `password: …`, `密码：…` with a long random-looking value.
fn assigned_secret(line: &str) -> Option<(&'static str, &str)> {
    let lower = line.to_ascii_lowercase();
    for name in SECRET_NAMES {
        let mut from = 0;
        while let Some(at) = lower[from..].find(name) {
            from += at + name.len();
            let rest = line[from..].trim_start_matches(AROUND);
            if !rest.starts_with(ASSIGNS) {
                continue;
            }
            let value = rest.trim_start_matches(ASSIGNS).trim_start_matches(AROUND).trim_start_matches(['=', ':']);
            let start = line.len() - value.len();
            let value = &value[..key_run(value)];
            let digits = value.bytes().filter(u8::is_ascii_digit).count();
            let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
            if value.len() >= 20 && variety(value) >= 12 && digits >= 3 && letters >= 3 {
                return Some(("a secret", value));
            }
            // What ends as this value does says no more than it: each place of a line is looked at once.
            from = start + value.len();
        }
    }
    None
}

/// How far a text is made of what secrets are made of.
fn key_run(text: &str) -> usize {
    text.bytes().take_while(|b| is_key_byte(*b)).count()
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_+/=.".contains(&byte)
}

/// Whether a text may go on with a credential that the line before it has begun: its first word could be the end of one, or its
/// first line holds what could be one. Most texts cannot, and nobody need look at what they are added to.
pub fn may_continue_credential(text: &[u8]) -> bool {
    let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
    let is_end = |run: &[u8]| {
        let mixed = run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic);
        run.len() >= 4 && (mixed || run.iter().skip(1).any(u8::is_ascii_uppercase) || run.len() >= 12)
    };
    let first = line.split(|b| !is_key_byte(*b)).find(|run| !run.is_empty());
    first.is_some_and(is_end) || has_secret(line)
}

/// Whether a line has a run of letters and digits as long as a secret behind a name must be. Such a run has one byte in every so many: the
/// others need not be looked at.
fn has_secret(line: &[u8]) -> bool {
    const LENGTH: usize = 20;
    let mut at = LENGTH - 1;
    while let Some(byte) = line.get(at) {
        if !is_key_byte(*byte) {
            at += LENGTH;
            continue;
        }
        let start = line[..at].iter().rposition(|b| !is_key_byte(*b)).map_or(0, |before| before + 1);
        let end = line[at..].iter().position(|b| !is_key_byte(*b)).map_or(line.len(), |behind| at + behind);
        let run = &line[start..end];
        if run.len() >= LENGTH && run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic) {
            return true;
        }
        at = end + LENGTH;
    }
    false
}

/// How many different characters a text has.
fn variety(text: &str) -> usize {
    let mut seen = [false; 256];
    text.bytes().filter(|b| !std::mem::replace(&mut seen[usize::from(*b)], true)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_wherever_it_stands() {
        let is_secret = |run: &[u8]| run.len() >= 20 && run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic);
        let byte_by_byte = |line: &[u8]| line.split(|b| !is_key_byte(*b)).any(is_secret);
        let runs =
            ["", "a", "word", "x1x1x1x1x1x1x1x1x1x", "x1x1x1x1x1x1x1x1x1x1", "aaaaaaaaaaaaaaaaaaaaaaaaa", "a1b2c3d4e5f6g7h8i9j0k1l2m3"];
        let mut found = 0;
        for first in runs {
            for second in runs {
                for third in runs {
                    for gap in [" ", "  ", ".....................", "。"] {
                        let line = [first, second, third].join(gap);
                        assert_eq!(has_secret(line.as_bytes()), byte_by_byte(line.as_bytes()), "{line}");
                        found += usize::from(has_secret(line.as_bytes()));
                    }
                }
            }
        }
        assert!(found > 100 && found < 1000, "{found}");
    }

    #[test]
    fn a_stand_in_says_nothing() {
        for text in ["", "  ", "TODO", "- tbd.", "…", "...", "?", "[next step]", "<what>", "_say it_", "待定", "待补充。"] {
            assert!(says_nothing(text), "{text}");
        }
        for text in ["TODO: write the test", "write it", "待办清单要整理", "无", "[x] done", "0", "[→ a.md#x]", "<https://a.b>"] {
            assert!(!says_nothing(text), "{text}");
        }
    }

    #[test]
    fn credentials_are_found_with_their_line() {
        let rules = GuardRules::default();
        let key = ["sk-ant-", "api03-9Zk2LmQ8xWv5Rt7YpB3nHc"].concat();
        for text in [
            format!("ok\nkey: {key}"),
            "ok\n-----BEGIN RSA PRIVATE KEY-----".to_owned(),
            ["ok\nAKI", "AQ7XN2PLW3M5RT8VB"].concat(),
            ["ok\nexport GH=gh", "p_a8Kd02mZx91LqPw73RtYvB5nHc6JsE4u"].concat(),
            ["ok\napi_key = \"q8Zk2LmQ8x", "Wv5Rt7YpB3nHc\""].concat(),
            // Chinese has no spaces, and colons of its own.
            format!("好\n密钥{key}"),
            ["好\n令牌是gh", "p_a8Kd02mZx91LqPw73RtYvB5nHc6JsE4u"].concat(),
            ["好\npassword：q8Zk2LmQ8x", "Wv5Rt7YpB3nHc"].concat(),
            ["好\n- **密码**：“q8Zk2LmQ8x", "Wv5Rt7YpB3nHc”"].concat(),
            ["好\n数据库口令为 q8Zk2LmQ8x", "Wv5Rt7YpB3nHc"].concat(),
            // Not the first of its name in the line.
            ["ok\nask for the password of prod; password: q8Zk2LmQ8x", "Wv5Rt7YpB3nHc"].concat(),
            ["ok\npassword: none, password = q8Zk2LmQ8x", "Wv5Rt7YpB3nHc"].concat(),
        ] {
            assert_eq!(find_credentials(&rules, &text).map(|f| f.line), Some(2), "{text}");
        }
    }

    #[test]
    fn examples_and_prose_are_no_credentials() {
        let rules = GuardRules::default();
        for text in [
            "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "the task-oriented-approach-that-we-took-last-year",
            "password: see the vault",
            "secret: the butler did it",
            "api_key = os.environ[\"KEY\"]",
            "blake3:6b86b273ff34fce19d6b804eff5a3f57",
            "密码：见保险柜",
            "密码是她的生日，没有写下来。",
            "password=password=password=password=password=",
        ] {
            assert_eq!(find_credentials(&rules, text), None, "{text}");
        }
    }

    #[test]
    fn every_byte_is_lowered_as_ascii_is() {
        let every: Vec<u8> = (0..=255).flat_map(|byte| [byte, b'A', 0xff]).collect();
        for start in 0..9 {
            assert_eq!(lowered(&every[start..]), every[start..].to_ascii_lowercase());
        }
    }

    #[test]
    fn every_hint_is_found_wherever_it_stands() {
        let find = |text: &str| find_hint(&text.as_bytes().to_ascii_lowercase());
        for word in HINTS {
            let whole = HINTS.iter().all(|other| *other == word || !word.starts_with(other));
            for (case, text) in [word.to_owned(), word.to_uppercase(), word.to_lowercase()].into_iter().enumerate() {
                for before in 0..25 {
                    let text = format!("{}{text}", "xs".repeat(before));
                    assert_eq!(find(&text), Some(before * 2), "{text} {case}");
                    assert_eq!(find(&format!("{text} 一 and more behind it")), Some(before * 2), "{text} {case}");
                    let cut = text.floor_char_boundary(text.len() - 1);
                    assert!(!whole || find(&text[..cut]).is_none(), "{text}");
                }
            }
        }
        assert_eq!(find("一 passwor and secre, sk, ap"), None);
        assert_eq!(find(""), None);
    }

    #[test]
    fn few_texts_may_continue_a_credential() {
        for text in ["k2LmQ8xWv5Rt7YpB3nHc\n", "word: q8Zk2LmQ8xWv5Rt7YpB3nHc", "VATE KEY-----", " q8Zk2LmQ8xWv5Rt7YpB3nHc", "abcdefghijkl"]
        {
            assert!(may_continue_credential(text.as_bytes()), "{text}");
        }
        for text in [
            "\n## ADR-001: q8Zk2LmQ8xWv5Rt7YpB3nHc",
            "- ice melts at 273.15 K\n",
            "When it rains, it pours.\n",
            "2026-11-16 x\n",
            "0001 xxxxxxxxxxxxxxxxxxxxxxxx",
            "一行\n",
            "| a | b |",
            "",
        ] {
            assert!(!may_continue_credential(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_contract_can_allow_a_literal() {
        let key = ["gh", "p_a8Kd02mZx91LqPw73RtYvB5nHc6JsE4u"].concat();
        let rules = GuardRules { credentials: vec![key.clone()], ..GuardRules::default() };
        assert_eq!(find_credentials(&rules, &key), None);
    }

    #[test]
    fn only_large_losses_of_large_files_count() {
        let rules = GuardRules::default();
        assert!(find_shrink(&rules, 1000, 400).is_some());
        assert!(find_shrink(&rules, 1000, 600).is_none());
        assert!(find_shrink(&rules, 300, 0).is_none());
    }
}
