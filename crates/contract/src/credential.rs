//! Detects text that looks like a credential: a key of a known service, a private key, a URL with a
//! password, or a random-looking value after a name such as `api_key`, `token` or `密码`.
//!
//! One pass finds the few lines with a hint; only those are examined closely.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use aho_corasick::packed::{Config, Searcher};

use crate::guard::{Finding, GuardRules};

struct Shape {
    what: &'static str,
    prefix: &'static str,
    /// Characters allowed after the prefix, besides letters and digits.
    also: &'static str,
    least: usize,
}

const SHAPES: [Shape; 37] = [
    Shape {
        what: "an AWS access key",
        prefix: "AKIA",
        also: "",
        least: 16,
    },
    Shape {
        what: "an AWS temporary key",
        prefix: "ASIA",
        also: "",
        least: 16,
    },
    Shape {
        what: "an Anthropic API key",
        prefix: "sk-ant-",
        also: "-_",
        least: 20,
    },
    Shape {
        what: "an OpenAI API key",
        prefix: "sk-proj-",
        also: "-_",
        least: 20,
    },
    Shape {
        what: "an OpenRouter API key",
        prefix: "sk-or-v1-",
        also: "",
        least: 32,
    },
    Shape {
        what: "an API key",
        prefix: "sk-",
        also: "_",
        least: 24,
    },
    Shape {
        what: "a Groq API key",
        prefix: "gsk_",
        also: "",
        least: 40,
    },
    Shape {
        what: "an xAI API key",
        prefix: "xai-",
        also: "",
        least: 40,
    },
    Shape {
        what: "a Perplexity API key",
        prefix: "pplx-",
        also: "",
        least: 40,
    },
    Shape {
        what: "a Vault token",
        prefix: "hvs.",
        also: "-_",
        least: 24,
    },
    Shape {
        what: "a DigitalOcean token",
        prefix: "dop_v1_",
        also: "",
        least: 40,
    },
    Shape {
        what: "a Shopify token",
        prefix: "shpat_",
        also: "",
        least: 24,
    },
    Shape {
        what: "a Grafana token",
        prefix: "glsa_",
        also: "_",
        least: 24,
    },
    Shape {
        what: "a Linear API key",
        prefix: "lin_api_",
        also: "",
        least: 24,
    },
    Shape {
        what: "a Replicate token",
        prefix: "r8_",
        also: "",
        least: 30,
    },
    Shape {
        what: "a Google access token",
        prefix: "ya29.",
        also: "-_",
        least: 40,
    },
    Shape {
        what: "an Atlassian token",
        prefix: "ATATT3",
        also: "-_=",
        least: 60,
    },
    Shape {
        what: "an Alibaba Cloud key",
        prefix: "LTAI",
        also: "",
        least: 16,
    },
    Shape {
        what: "a Docker token",
        prefix: "dckr_pat_",
        also: "-_",
        least: 20,
    },
    Shape {
        what: "an age secret key",
        prefix: "AGE-SECRET-KEY-1",
        also: "",
        least: 40,
    },
    Shape {
        what: "a Stripe key",
        prefix: "sk_live_",
        also: "",
        least: 16,
    },
    Shape {
        what: "a Stripe key",
        prefix: "rk_live_",
        also: "",
        least: 16,
    },
    Shape {
        what: "a GitHub token",
        prefix: "ghp_",
        also: "",
        least: 30,
    },
    Shape {
        what: "a GitHub token",
        prefix: "gho_",
        also: "",
        least: 30,
    },
    Shape {
        what: "a GitHub token",
        prefix: "ghs_",
        also: "",
        least: 30,
    },
    Shape {
        what: "a GitHub token",
        prefix: "ghu_",
        also: "",
        least: 30,
    },
    Shape {
        what: "a GitHub token",
        prefix: "github_pat_",
        also: "_",
        least: 22,
    },
    Shape {
        what: "a GitLab token",
        prefix: "glpat-",
        also: "-_",
        least: 20,
    },
    Shape {
        what: "a Slack token",
        prefix: "xoxb-",
        also: "-",
        least: 20,
    },
    Shape {
        what: "a Slack token",
        prefix: "xoxp-",
        also: "-",
        least: 20,
    },
    Shape {
        what: "a Google API key",
        prefix: "AIza",
        also: "-_",
        least: 35,
    },
    Shape {
        what: "a Google client secret",
        prefix: "GOCSPX-",
        also: "-_",
        least: 24,
    },
    Shape {
        what: "an npm token",
        prefix: "npm_",
        also: "",
        least: 36,
    },
    Shape {
        what: "a PyPI token",
        prefix: "pypi-AgEI",
        also: "-_",
        least: 40,
    },
    Shape {
        what: "a Hugging Face token",
        prefix: "hf_",
        also: "",
        least: 30,
    },
    Shape {
        what: "a SendGrid key",
        prefix: "SG.",
        also: "-_.",
        least: 40,
    },
    Shape {
        what: "a JSON Web Token",
        prefix: "eyJ",
        also: "-_.",
        least: 60,
    },
];

/// Finds text that looks like an API key, a private key or a token.
pub fn find_credentials(rules: &GuardRules, text: &str) -> Option<Finding> {
    let lowered = lowered(text.as_bytes());
    // One pass finds the few candidates. A name inside a value that was already examined is
    // skipped.
    let (mut from, mut end, mut valued) = (0, 0, 0);
    while let Some((hint, at)) = find_hint(&lowered[from..]).map(|(hint, at)| (hint, from + at)) {
        from = at + 1;
        if at >= end {
            end = memchr::memchr(b'\n', &text.as_bytes()[at..])
                .map_or(text.len(), |newline| at + newline);
        }
        let found = match hint {
            Hint::Shape => shaped(text, at, end),
            Hint::Name(name) => private_key(text, at, end, name).or_else(|| {
                let start =
                    (at >= valued).then(|| value_behind(&text[..end], at + name.len(), name))??;
                valued = start + value_run(&text[start..end]);
                if is_digest(text, at, at + name.len(), start) {
                    return None;
                }
                // A trailing dot ends the sentence.
                let value = text[start..valued].trim_end_matches('.');
                shaped(text, start, end)
                    .or_else(|| looks_random(value).then_some(("a secret", value)))
            }),
            Hint::Address => secret_in_address(&text[at..end]),
        };
        if let Some((what, _)) =
            found.filter(|(_, literal)| !rules.credentials.iter().any(|allowed| allowed == literal))
        {
            let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1;
            return Some(Finding {
                line,
                what: format!("looks like {what}"),
            });
        }
    }
    None
}

/// The kind of credential that a hint announces.
#[derive(Clone, Copy)]
enum Hint {
    Shape,
    Name(&'static str),
    Address,
}

/// Every line with a credential contains one of these words, in any letter case.
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
    words[index] = SCHEME_END;
    words
};

/// Searches for hints in lowercased text.
enum HintSearch {
    /// SIMD search, on processors that support it.
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

/// Lowercases ASCII letters eight bytes at a time. This crate is compiled for size, and a byte loop
/// alone would take longer than the search.
fn lowered(text: &[u8]) -> Vec<u8> {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    let mut lowered = text.to_vec();
    let (eights, rest) = lowered.as_chunks_mut::<8>();
    for eight in eights {
        let bytes = u64::from_ne_bytes(*eight);
        // The highest bit of each byte records whether it is at least `A`, and whether it is
        // greater than `Z`.
        let low = bytes & (0x7f * EACH);
        let from_a = low + (0x80 - u64::from(b'A')) * EACH;
        let beyond_z = low + (0x7f - u64::from(b'Z')) * EACH;
        let upper = (from_a ^ beyond_z) & !bytes & (0x80 * EACH);
        *eight = (bytes | upper >> 2).to_ne_bytes();
    }
    rest.make_ascii_lowercase();
    lowered
}

/// Finds the first hint in lowercased text.
fn find_hint(lowered: &[u8]) -> Option<(Hint, usize)> {
    let hit = match &*HINT_SEARCH {
        HintSearch::Packed(search) => search.find(lowered),
        HintSearch::Automaton(search) => search.find(lowered),
    }?;
    let hint = match hit.pattern().as_usize() {
        shape if shape < SHAPES.len() => Hint::Shape,
        name => SECRET_NAMES
            .get(name - SHAPES.len())
            .map_or(Hint::Address, |name| Hint::Name(name)),
    };
    Some((hint, hit.start()))
}

/// Returns a key of a known service that starts at this offset.
fn shaped(text: &str, at: usize, end: usize) -> Option<(&'static str, &str)> {
    // Chinese has no spaces, so a key may follow a word directly. A long prefix that ends with a
    // punctuation character counts after any other punctuation, too.
    let before = text[..at].bytes().next_back();
    let continues = before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let is_word = before.is_some_and(|b| b.is_ascii_alphabetic());
    SHAPES.iter().find_map(|shape| {
        let is_plain = shape.prefix.len() >= 4 && shape.prefix.ends_with(['_', '-']);
        if if is_plain { is_word } else { continues } {
            return None;
        }
        let tail = text[at..end].strip_prefix(shape.prefix)?;
        let length = tail
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || shape.also.as_bytes().contains(b))
            .count();
        let body = &tail[..length];
        // A placeholder such as `sk-xxxxxxxx…` repeats itself; a key does not. Amazon's
        // documentation key contains a word that marks it as an example.
        let is_key = length >= shape.least
            && variety(body) >= 8
            && !(shape.prefix == "AKIA" && body.ends_with("EXAMPLE"))
            && (shape.prefix != "eyJ" || body.matches('.').count() == 2);
        is_key.then(|| (shape.what, &text[at..at + shape.prefix.len() + length]))
    })
}

/// Returns the line that begins a private key, if the name in it is that of one.
fn private_key<'t>(
    text: &'t str,
    at: usize,
    end: usize,
    name: &str,
) -> Option<(&'static str, &'t str)> {
    if name != PRIVATE_KEY || !text[at..].starts_with("PRIVATE KEY") {
        return None;
    }
    let near = text.floor_char_boundary(at.saturating_sub(LONGEST_BETWEEN));
    let begin = text[near..at].rfind("-----BEGIN ")?;
    let start = text[..near + begin]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    Some(("a private key", text[start..end].trim()))
}

const SECRET_NAMES: [&str; 25] = [
    "api_key",
    "apikey",
    "api-key",
    "api key",
    "access_key",
    "access key",
    "private_key",
    PRIVATE_KEY,
    "secret",
    "password",
    "passwd",
    "_pass",
    "passphrase",
    "pwd",
    "token",
    "credential",
    "authorization",
    BEARER,
    "密码",
    "密钥",
    "秘钥",
    "口令",
    "令牌",
    "凭证",
    "凭据",
];
/// The name in the line that begins a private key.
const PRIVATE_KEY: &str = "private key";
/// The only name that its value follows without an assignment character.
const BEARER: &str = "bearer";

/// Characters allowed around a name or a value: quotes, emphasis, blanks.
const AROUND: [char; 15] = [
    ' ', '\t', '"', '\'', '`', '*', '(', '（', '\u{3000}', '“', '”', '‘', '’', '「', '」',
];
/// Characters that announce a value. The bar separates table cells.
const ASSIGNS: [char; 8] = ['=', ':', '：', '＝', '是', '为', '|', '→'];
/// Longest text between a name and the assignment character: `AWS_SECRET_ACCESS_KEY=`, `the
/// password of the test server is`.
const LONGEST_BETWEEN: usize = 40;

/// Returns the start of the value for a name that ends at `from`: `api_key = "…"`, `Authorization:
/// Bearer …`, `| token | … |`, `密码：…`.
fn value_behind(line: &str, from: usize, name: &str) -> Option<usize> {
    const SCHEMES: [&str; 4] = ["Basic ", "Bearer ", "Token ", "ApiKey "];
    let rest = &line[from..];
    let is_between = |c: char| c.is_alphanumeric() || AROUND.contains(&c) || "_-)）]/".contains(c);
    let near = &rest[..rest.floor_char_boundary(LONGEST_BETWEEN + 4)];
    let sign = near
        .find(|c: char| ASSIGNS.contains(&c) || !is_between(c))
        .unwrap_or(near.len());
    let between = &near[..sign.min(near.floor_char_boundary(LONGEST_BETWEEN))];
    let value = if name == BEARER && rest.starts_with(' ') {
        rest
    } else if let Some((_, value)) = between.split_once(" is ") {
        &rest[between.len() - value.len()..]
    } else if sign <= LONGEST_BETWEEN && rest[sign..].starts_with(ASSIGNS) {
        &rest[sign..]
    } else {
        return None;
    };
    let value =
        value.trim_start_matches(|c: char| ASSIGNS.contains(&c) || AROUND.contains(&c) || c == '>');
    let value = SCHEMES
        .iter()
        .find_map(|scheme| value.strip_prefix(scheme))
        .unwrap_or(value)
        .trim_start_matches(AROUND);
    Some(line.len() - value.len())
}

/// Whether a value looks random. Words, names of models and files, dates and version numbers do
/// not.
fn looks_random(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    if value.starts_with('$') || value.contains("://") {
        return false;
    }
    let pieces = || {
        value.split(|c: char| !c.is_ascii_alphanumeric() && !PASSWORD_SIGNS.contains(&(c as u8)))
    };
    let has_piece = |least: usize| {
        pieces().any(|piece| piece.len() >= least && piece.bytes().any(|b| b.is_ascii_digit()))
    };
    let (variety, turns) = (variety(value), turns(value));
    let is_short = value.len() >= SHORTEST
        && variety >= 8
        && digits >= 2
        && letters >= 3
        && turns >= 5
        && has_piece(10);
    let is_long =
        value.len() >= 20 && variety >= 12 && digits >= 3 && letters >= 3 && has_piece(12);
    let is_mixed = value.len() >= 32 && variety >= 12 && digits >= 1 && turns >= 5;
    is_short || is_long || is_mixed
}

/// Minimum length of a random-looking value.
const SHORTEST: usize = 12;

/// Counts the changes between lowercase letters, capitals and digits, except capitals that begin
/// words.
fn turns(text: &str) -> usize {
    let kind = |b: &u8| match b {
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        b'0'..=b'9' => 3,
        b if PASSWORD_SIGNS.contains(b) => 4,
        _ => 0,
    };
    let kinds: Vec<u8> = text.as_bytes().iter().map(kind).collect();
    let is_turn = |at: usize| {
        let (one, next) = (kinds[at], kinds[at + 1]);
        let begins_word = (one, next) == (1, 2) && kinds.get(at + 2) == Some(&1);
        one != 0 && next != 0 && one != next && (one, next) != (2, 1) && !begins_word
    };
    (0..kinds.len().saturating_sub(1))
        .filter(|at| is_turn(*at))
        .count()
}

/// Returns the password of a URL such as `postgres://user:…@host/db`, unless it is an example. The
/// text begins after the scheme.
fn secret_in_address(text: &str) -> Option<(&'static str, &str)> {
    let rest = text.strip_prefix(SCHEME_END)?;
    let end = rest
        .find(|c: char| c.is_whitespace() || "/\"'`<>()|,，。）」”".contains(c))
        .unwrap_or(rest.len());
    let (user, _) = rest[..end].rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    let is_mixed = password.bytes().any(|b| b.is_ascii_digit())
        && password.bytes().any(|b| b.is_ascii_alphabetic());
    let is_name = password.contains(['$', '{', '[', '*', '%'])
        && !password.bytes().any(|b| b.is_ascii_digit());
    let is_secret = password.len() >= 8 && is_mixed && variety(password) >= 6
        || password.len() >= 16 && variety(password) >= 10;
    (is_secret && !is_name).then_some(("an address with a password", password))
}

/// Part of every URL, before any user name.
const SCHEME_END: &str = "://";

/// Whether the text around a name marks the value as public: the hash of a secret, the address or
/// the id of a token.
fn is_digest(text: &str, at: usize, behind: usize, value: usize) -> bool {
    const PUBLIC: [&str; 12] = [
        "hash",
        "sha1",
        "sha2",
        "sha5",
        "md5",
        "digest",
        "checksum",
        "fingerprint",
        "address",
        " id",
        "哈希",
        "摘要",
    ];
    let near = text.floor_char_boundary(at.saturating_sub(24));
    let before = text[near..at].rsplit('\n').next().unwrap_or_default();
    let around = [before, &text[behind..value]].map(str::to_ascii_lowercase);
    around
        .iter()
        .any(|around| PUBLIC.iter().any(|word| around.contains(word)))
}

/// Punctuation found in passwords but not in keys. Characters that separate a text from its
/// password are excluded.
const PASSWORD_SIGNS: &[u8] = b"!#$%^&~";

/// Returns the length of a value.
fn value_run(text: &str) -> usize {
    text.bytes()
        .take_while(|b| is_key_byte(*b) || PASSWORD_SIGNS.contains(b))
        .count()
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_+/=.".contains(&byte)
}

/// Whether a text may continue a credential that the preceding line began: its first word could be
/// the end of one, or its first line contains a candidate. For all other texts, the caller need not
/// read the file they are appended to.
pub fn may_continue_credential(text: &[u8]) -> bool {
    let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
    let is_end = |run: &[u8]| {
        let mixed = run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic);
        run.len() >= 4
            && (mixed || run.iter().skip(1).any(u8::is_ascii_uppercase) || run.len() >= 12)
    };
    let first = line.split(|b| !is_key_byte(*b)).find(|run| !run.is_empty());
    first.is_some_and(is_end) || memchr::memchr(b'@', line).is_some() || has_secret(line)
}

/// Whether a line has a run of letters and digits of at least `SHORTEST`. Such a run covers one
/// byte in every `SHORTEST`, so the others need not be read.
fn has_secret(line: &[u8]) -> bool {
    const LENGTH: usize = SHORTEST;
    let mut at = LENGTH - 1;
    while let Some(byte) = line.get(at) {
        if !is_key_byte(*byte) {
            at += LENGTH;
            continue;
        }
        let start = line[..at]
            .iter()
            .rposition(|b| !is_key_byte(*b))
            .map_or(0, |before| before + 1);
        let end = line[at..]
            .iter()
            .position(|b| !is_key_byte(*b))
            .map_or(line.len(), |behind| at + behind);
        let run = &line[start..end];
        if run.len() >= LENGTH
            && run.iter().any(u8::is_ascii_digit)
            && run.iter().any(u8::is_ascii_alphabetic)
        {
            return true;
        }
        at = end + LENGTH;
    }
    false
}

/// Counts the distinct characters of a text.
fn variety(text: &str) -> usize {
    let mut seen = [false; 256];
    text.bytes()
        .filter(|b| !std::mem::replace(&mut seen[usize::from(*b)], true))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_wherever_it_stands() {
        let is_secret = |run: &[u8]| {
            run.len() >= SHORTEST
                && run.iter().any(u8::is_ascii_digit)
                && run.iter().any(u8::is_ascii_alphabetic)
        };
        let byte_by_byte = |line: &[u8]| line.split(|b| !is_key_byte(*b)).any(is_secret);
        let runs = [
            "",
            "a",
            "word",
            "x1x1x1x1x1x",
            "x1x1x1x1x1x1",
            "aaaaaaaaaaaaaaaaaaaaaaaaa",
            "a1b2c3d4e5f6g7h8i9j0k1l2m3",
        ];
        let mut found = 0;
        for first in runs {
            for second in runs {
                for third in runs {
                    for gap in [" ", "  ", ".....................", "。"] {
                        let line = [first, second, third].join(gap);
                        assert_eq!(
                            has_secret(line.as_bytes()),
                            byte_by_byte(line.as_bytes()),
                            "{line}"
                        );
                        found += usize::from(has_secret(line.as_bytes()));
                    }
                }
            }
        }
        assert!(found > 100 && found < 1000, "{found}");
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
            ["ok\nname-gh", "p_a8Kd02mZx91LqPw73RtYvB5nHc6JsE4u.txt"].concat(),
            format!("ok\nx =0{key}"),
            ["ok\napi_key = \"q8Zk2LmQ8x", "Wv5Rt7YpB3nHc\""].concat(),
            // Chinese has no spaces, and its own colons.
            format!("好\n密钥{key}"),
            ["好\n令牌是gh", "p_a8Kd02mZx91LqPw73RtYvB5nHc6JsE4u"].concat(),
            ["好\npassword：q8Zk2LmQ8x", "Wv5Rt7YpB3nHc"].concat(),
            ["好\n- **密码**：“q8Zk2LmQ8x", "Wv5Rt7YpB3nHc”"].concat(),
            ["好\n数据库口令为 q8Zk2LmQ8x", "Wv5Rt7YpB3nHc"].concat(),
            // The second occurrence of the name in the line.
            [
                "ok\nask for the password of prod; password: q8Zk2LmQ8x",
                "Wv5Rt7YpB3nHc",
            ]
            .concat(),
            ["ok\npassword: none, password = q8Zk2LmQ8x", "Wv5Rt7YpB3nHc"].concat(),
            // The name continues after the word, or the value is shorter, or in a table.
            [
                "ok\nAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfi",
                "CYEXAMPLEKEY",
            ]
            .concat(),
            ["ok\nSECRET_KEY=\"q8Zk2LmQ8x", "Wv5Rt7YpB3nHc\""].concat(),
            ["ok\ntoken = \"q8Zk2LmQ8x", "Wv5Rt7YpB3nHc\""].concat(),
            ["ok\n- **API key**: q8Zk2LmQ8x", "Wv5Rt7YpB3nHc"].concat(),
            ["ok\n| api_key | q8Zk2LmQ8x", "Wv5Rt7YpB3nHc |"].concat(),
            [
                "ok\ncurl -H 'Authorization: Bearer q8Zk2LmQ8x",
                "Wv5Rt7YpB3nHc'",
            ]
            .concat(),
            ["ok\nAuthorization: Basic q8Zk2LmQ8x", "Wv5Rt7YpB3nHc=="].concat(),
            [
                "ok\nthe password of the test server is hunter2Xk9",
                "qLmZ8vR.",
            ]
            .concat(),
            ["ok\npassword: hunter2Xk9", "qLmZ8vR"].concat(),
            ["ok\nsecret: 550e8400-e29b-", "41d4-a716-446655440000"].concat(),
            ["好\n密码：q8Zk2LmQ", "8xWv5Rt7"].concat(),
            ["好\n测试服务器的密码（临时）是q8Zk2LmQ", "8xWv5Rt7"].concat(),
            ["ok\npassword: Xk29fj&", "Qz1Lm4"].concat(),
            ["ok\npassword: Tr0ub4dor&", "3xyz"].concat(),
            ["ok\nSMTP_PASS=Xk29fjQz", "1Lm4"].concat(),
            [
                "ok\nos.environ['API_TOKEN'] = 'FQs1DxBA9RelOx",
                "OPbbNcRV7vZgGEFW5j'",
            ]
            .concat(),
            [
                "ok\nsk-or-v1-3f9c1b7a5e8d2046",
                "b1c3d5e7f9a0b2c4d6e8f0a1b3c5d7e9",
            ]
            .concat(),
            [
                "ok\nDATABASE_URL=postgres://app:q8Zk2LmQ",
                "8xWv@db.local:5432/app",
            ]
            .concat(),
            ["好\n数据库 redis://:q8Zk2LmQ", "8xWv@缓存/0。"].concat(),
        ] {
            assert_eq!(
                find_credentials(&rules, &text).map(|f| f.line),
                Some(2),
                "{text}"
            );
        }
    }

    /// The scan is linear, even if one line holds many hints.
    #[test]
    fn a_long_line_of_hints_takes_no_longer_than_others() {
        let rules = GuardRules::default();
        for hint in [
            "token ",
            "password=",
            "PRIVATE KEY ",
            "api_key: x ",
            "http://a:b@",
            "sk-",
            "密码",
            "bearer bearer",
            "secret is ",
        ] {
            let line = hint.repeat((1 << 18) / hint.len());
            assert_eq!(find_credentials(&rules, &line), None, "{hint}");
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
            "tokens: gpt-4o-mini-2024-07-18 has 128000",
            "token: ThisIsALongCamelCaseIdentifierName2",
            "密钥：见 docs/keys/2026-11-17-internationalization.md",
            "secret: chapter-12/the-butler-2-and-the-cook-13.md",
            "api_key: ${OPENAI_API_KEY_FOR_2026}, password = getpass.getpass()",
            "The token budget of a chapter is 12000, or 8192 for claude-3-5-sonnet-20241022.",
            "postgres://user:password@localhost:5432/db",
            "token id: 550e8400-e29b-41d4-a716-446655440000",
            "password hash: 5f4dcc3b5aa765d61d8327deb882cf99",
            "密码哈希：5f4dcc3b5aa765d61d8327deb882cf99",
            "sha256 of token: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "Token address: 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
            "for example AKIAIOSFODNN7EXAMPLE",
            "token endpoint: https://example.org/oauth2?client=abc123&grant=x9y8z7",
            "password: Sunflower2024!",
            "https://user:${PASSWORD}@example.org and https://example.org/@me:2026a",
            "the password is on the note under the keyboard of room 12b",
            "密码是 2026 年改的，见第 12 章",
        ] {
            assert_eq!(find_credentials(&rules, text), None, "{text}");
        }
    }

    #[test]
    fn every_byte_is_lowered_as_ascii_is() {
        let every: Vec<u8> = (0..=255).flat_map(|byte| [byte, b'A', 0xff]).collect();
        for start in 0..9 {
            assert_eq!(
                lowered(&every[start..]),
                every[start..].to_ascii_lowercase()
            );
        }
    }

    #[test]
    fn every_hint_is_found_wherever_it_stands() {
        let find = |text: &str| find_hint(&text.as_bytes().to_ascii_lowercase()).map(|(_, at)| at);
        for word in HINTS {
            let whole = HINTS.iter().all(|other| {
                *other == word || !word.to_lowercase().contains(&other.to_lowercase())
            });
            for (case, text) in [word.to_owned(), word.to_uppercase(), word.to_lowercase()]
                .into_iter()
                .enumerate()
            {
                for before in 0..25 {
                    let text = format!("{}{text}", "xs".repeat(before));
                    assert_eq!(find(&text), Some(before * 2), "{text} {case}");
                    assert_eq!(
                        find(&format!("{text} 一 and more behind it")),
                        Some(before * 2),
                        "{text} {case}"
                    );
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
        for text in [
            "k2LmQ8xWv5Rt7YpB3nHc\n",
            "word: q8Zk2LmQ8xWv5Rt7YpB3nHc",
            "VATE KEY-----",
            " q8Zk2LmQ8xWv5Rt7YpB3nHc",
            "abcdefghijkl",
            "er:p4ss@host",
        ] {
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
        let rules = GuardRules {
            credentials: vec![key.clone(), "q8Zk2LmQ8xWv5Rt7YpB3nHc".into()],
            ..GuardRules::default()
        };
        for text in [
            key.clone(),
            format!("the token is {key}."),
            format!("密钥：{key}"),
            "api_key: q8Zk2LmQ8xWv5Rt7YpB3nHc.".into(),
        ] {
            assert_eq!(find_credentials(&rules, &text), None, "{text}");
        }
        assert!(
            find_credentials(
                &rules,
                &format!("api_key: q8Zk2LmQ8xWv5Rt7YpB3nHd and {key}")
            )
            .is_some()
        );
    }
}
