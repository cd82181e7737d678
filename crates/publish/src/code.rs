//! Syntax highlighting for code blocks: comments, strings, numbers, keywords, types and calls.
//!
//! A small scanner without a parser does the work, so highlighting cannot fail. Unknown tokens stay
//! plain, and every character of the code appears on the page, however it was classified. The token
//! rules of each language are in `languages`.

use crate::languages::{Grammar, Quote, grammar};
use crate::markup::escape_into;

/// The class of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenClass {
    Comment,
    /// A string, a character or a regular expression.
    Text,
    Number,
    Keyword,
    Type,
    Call,
    /// Another word, one punctuation character, or white space.
    Plain,
}

impl TokenClass {
    /// The CSS class; empty for plain text.
    pub fn style(self) -> &'static str {
        match self {
            TokenClass::Comment => "c",
            TokenClass::Text => "s",
            TokenClass::Number => "n",
            TokenClass::Keyword => "k",
            TokenClass::Type => "t",
            TokenClass::Call => "f",
            TokenClass::Plain => "",
        }
    }
}

/// Returns the tokens of code, which together are the whole code. Returns `None` if the language is
/// unknown.
pub fn code_tokens<'c>(
    language: &str,
    code: &'c str,
) -> Option<impl Iterator<Item = (TokenClass, &'c str)>> {
    let grammar = grammar(language)?;
    Some(Scanner {
        grammar,
        rust: grammar.names.contains(&"rust"),
        script: grammar.names.contains(&"javascript"),
        code,
        at: 0,
        before: "",
    })
}

/// Appends code as markup, highlighted if the language is known.
pub(crate) fn colour(out: &mut String, language: &str, code: &str) {
    if matches!(language, "diff" | "patch") {
        return difference(out, code);
    }
    let Some(tokens) = code_tokens(language, code) else {
        return escape_into(out, code);
    };
    for (class, text) in tokens {
        span(out, class.style(), text);
    }
}

fn difference(out: &mut String, code: &str) {
    for line in code.split_inclusive('\n') {
        let (text, end) = line
            .strip_suffix('\n')
            .map_or((line, ""), |text| (text, "\n"));
        let class = match text.as_bytes().first() {
            Some(b'+') => "ins",
            Some(b'-') => "cut",
            Some(b'@') => "k",
            _ => "",
        };
        span(out, class, text);
        out.push_str(end);
    }
}

fn span(out: &mut String, class: &str, text: &str) {
    if class.is_empty() {
        return escape_into(out, text);
    }
    out.push_str("<span class=\"");
    out.push_str(class);
    out.push_str("\">");
    escape_into(out, text);
    out.push_str("</span>");
}

struct Scanner<'c> {
    grammar: &'static Grammar,
    rust: bool,
    script: bool,
    code: &'c str,
    at: usize,
    /// The last token that is neither a comment nor white space.
    before: &'c str,
}

impl<'c> Iterator for Scanner<'c> {
    type Item = (TokenClass, &'c str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.code[self.at..];
        let (class, len) = self.token(rest, rest.chars().next()?);
        self.at += len;
        let text = &rest[..len];
        if class != TokenClass::Comment && !text.trim_start().is_empty() {
            self.before = text;
        }
        Some((class, text))
    }
}

impl Scanner<'_> {
    /// Returns the class and the length of the token at the start of `rest`.
    fn token(&self, rest: &str, first: char) -> (TokenClass, usize) {
        if let Some(len) = self.comment(rest) {
            return (TokenClass::Comment, len);
        }
        if let Some(len) = self.string(rest) {
            return (TokenClass::Text, len);
        }
        if first.is_ascii_digit() {
            return (TokenClass::Number, number(rest));
        }
        if first.is_alphabetic() || first == '_' {
            let len = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            return (self.class_of(&rest[..len], &rest[len..]), len);
        }
        let len = rest
            .find(|c: char| c.is_alphanumeric() || c == '_' || c.is_ascii_punctuation())
            .filter(|len| *len > 0);
        (TokenClass::Plain, len.unwrap_or(first.len_utf8()))
    }

    fn comment(&self, rest: &str) -> Option<usize> {
        // A `#` inside a word (`a#b`, `$#`) starts no comment.
        let free = self.code[..self.at]
            .chars()
            .next_back()
            .is_none_or(|c| c.is_whitespace() || c == ';');
        let begins = |mark: &&&str| rest.starts_with(**mark) && (free || **mark != "#");
        if self.grammar.line_comments.iter().any(|mark| begins(&mark)) {
            return Some(rest.find('\n').unwrap_or(rest.len()));
        }
        let (open, close) = self.grammar.block_comment?;
        let inner = rest.strip_prefix(open)?;
        Some(
            inner
                .find(close)
                .map_or(rest.len(), |end| open.len() + end + close.len()),
        )
    }

    fn string(&self, rest: &str) -> Option<usize> {
        if self.rust
            && let Some(len) = rust_raw(rest).or_else(|| rust_char(rest))
        {
            return Some(len);
        }
        if self.script
            && let Some(len) = script_regex(self.before, rest)
        {
            return Some(len);
        }
        let quote = self
            .grammar
            .strings
            .iter()
            .find(|quote| rest.starts_with(quote.open))?;
        closed(rest, quote)
    }

    fn class_of(&self, word: &str, after: &str) -> TokenClass {
        let lower;
        let known = if self.grammar.any_case {
            lower = word.to_lowercase();
            lower.as_str()
        } else {
            word
        };
        let capital = word.starts_with(char::is_uppercase);
        // A member may have the name of a keyword, as in `re.match`. Only Rust's `.await` is a
        // keyword after a dot.
        let is_member = self.code[..self.at].ends_with('.')
            && !self.code[..self.at].ends_with("..")
            && word != "await";
        match after.chars().next() {
            _ if !is_member && self.grammar.keywords.contains(&known) => TokenClass::Keyword,
            _ if capital && self.grammar.capital_types => TokenClass::Type,
            Some('(') => TokenClass::Call,
            Some('!') if self.rust => TokenClass::Call,
            _ => TokenClass::Plain,
        }
    }
}

/// Returns the length of a number, including fraction, exponent and suffix.
fn number(rest: &str) -> usize {
    let mut len = 0;
    let mut before = ' ';
    for c in rest.chars() {
        let next_is_digit = rest[len + c.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        let inside = c.is_alphanumeric()
            || c == '_'
            || (c == '.' && next_is_digit)
            || (matches!(c, '+' | '-') && matches!(before, 'e' | 'E') && next_is_digit);
        if !inside {
            break;
        }
        len += c.len_utf8();
        before = c;
    }
    len
}

/// Returns the length of the string at the start of `rest`. Returns `None` if a single-line string
/// is not closed on its line.
fn closed(rest: &str, quote: &Quote) -> Option<usize> {
    let mut at = quote.open.len();
    while at < rest.len() {
        let tail = &rest[at..];
        if tail.starts_with(quote.close) {
            return Some(at + quote.close.len());
        }
        let c = tail.chars().next()?;
        if c == '\n' && !quote.many_lines {
            return None;
        }
        at += c.len_utf8();
        if c == '\\' && quote.escapes {
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    quote.many_lines.then_some(rest.len())
}

/// Returns the length of a raw string: `r"…"`, `r#"…"#`, `br"…"` or `cr"…"`.
fn rust_raw(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"]
        .into_iter()
        .find(|prefix| rest.starts_with(prefix))?;
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inner = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", &after[..hashes]);
    let body = prefix.len() + hashes + 1;
    Some(
        inner
            .find(&close)
            .map_or(rest.len(), |end| body + end + close.len()),
    )
}

/// Returns the length of `'x'` or `'\n'`, but not of the lifetime `'a`.
fn rust_char(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    let mut chars = inner.char_indices();
    let (_, first) = chars.next()?;
    if first == '\\' {
        // The escaped character may be the quote itself.
        let (escaped, c) = chars.next()?;
        let body = escaped + c.len_utf8();
        let end = body + inner[body..].find('\'')?;
        return (end <= 12).then_some(end + 2);
    }
    let (at, close) = chars.next()?;
    (close == '\'').then_some(at + 2)
}

/// Returns the length of a JavaScript regular expression without its flags. A `/` after a value is
/// a division, and one after `<` closes a JSX element.
fn script_regex(before: &str, rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('/')?;
    let starts = match before.chars().next_back() {
        None => true,
        Some(c) if c.is_ascii_punctuation() && c != '_' => "=(,:;!&|?+{}[".contains(c),
        Some(_) => matches!(before, "return" | "typeof" | "case"),
    };
    let (mut escaped, mut in_class) = (false, false);
    for (at, c) in inner.char_indices().take_while(|_| starts) {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return Some(at + 2),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coloured(language: &str, code: &str) -> String {
        let mut out = String::new();
        colour(&mut out, language, code);
        out.replace("<span class=", "<").replace("</span>", ">")
    }

    #[test]
    fn tokens_are_told_apart() {
        assert_eq!(
            coloured("rust", "let x: &'a str = \"a\\\"b\"; // c < d"),
            "<\"k\">let> x: &amp;'a <\"k\">str> = <\"s\">&quot;a\\&quot;b&quot;>; <\"c\">// c &lt; d>"
        );
        assert_eq!(
            coloured("rust", "r#\"a\"b\"# 'x' '\\n' 0x1f_u8 1.5e-3 Vec::new()"),
            "<\"s\">r#&quot;a&quot;b&quot;#> <\"s\">'x'> <\"s\">'\\n'> <\"n\">0x1f_u8> <\"n\">1.5e-3> <\"t\">Vec>::<\"f\">new>()"
        );
        assert_eq!(
            coloured("py", "def f(a): # é\n  '''x\ny'''"),
            "<\"k\">def> <\"f\">f>(a): <\"c\"># é>\n  <\"s\">'''x\ny'''>"
        );
        assert_eq!(
            coloured("py", "RE.match(a) in b"),
            "<\"t\">RE>.<\"f\">match>(a) <\"k\">in> b"
        );
        assert_eq!(
            coloured("rust", "a.await..self"),
            "a.<\"k\">await>..<\"k\">self>"
        );
        assert_eq!(
            coloured("js", "a = /[/{]\\//g; b / c / d"),
            "a = <\"s\">/[/{]\\//>g; b / c / d"
        );
        assert_eq!(
            coloured("sh", "echo $# 'a b'"),
            "<\"k\">echo> $# <\"s\">'a b'>"
        );
        assert_eq!(
            coloured("sql", "SELECT a FROM b -- c"),
            "<\"k\">SELECT> a <\"k\">FROM> b <\"c\">-- c>"
        );
        assert_eq!(
            coloured("diff", "+a\n-b\n c"),
            "<\"ins\">+a>\n<\"cut\">-b>\n c"
        );
    }

    /// The output holds all of the input, and none of it as markup.
    #[test]
    fn no_character_is_lost() {
        let nasty = [
            "'",
            "'\\",
            "'\\中'",
            "'\\中",
            "'中\\'",
            "b'\\é'",
            "\"\\中\"",
            "1.中",
            "1e+é",
            "r#中\"",
            "r#\"",
            "/*",
            "\"\\",
            "<script>",
            "'''",
            "中文'字'",
            "\u{0}x",
            "b'\\x",
            "#",
            "1e",
            "1.",
            "é\"é",
            "=/中[",
            "(/\\",
            "(/中/",
        ];
        for language in [
            "rust", "py", "js", "html", "sh", "json", "sql", "", "klingon",
        ] {
            for code in nasty {
                let mut out = String::new();
                colour(&mut out, language, code);
                let mut plain = String::new();
                let mut inside = false;
                for c in out.chars() {
                    match c {
                        '<' => inside = true,
                        '>' => inside = false,
                        c if !inside => plain.push(c),
                        _ => {}
                    }
                }
                let mut whole = String::new();
                escape_into(&mut whole, code);
                assert_eq!(plain, whole, "{language} {code}");
            }
        }
    }
}
