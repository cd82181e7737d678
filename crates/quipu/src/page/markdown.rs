//! Parses Markdown into a tree of elements and texts, which the page builds through the DOM API.
//!
//! Agents write the files, so their content must never become markup. Raw HTML is shown as text,
//! URLs are `http`, `https` or files of the project, and images are replaced by their descriptions.
//! A node is a text or `[element, attributes, children…]`.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use quipu_claims::resolve_link;
use quipu_publish::code_tokens;
use quipu_text::{Document, LinkKind, is_external, parse_target};
use serde_json::{Value, json};

use super::picture::is_picture;

/// Maximum nesting depth, so that endless nested quotes cannot exhaust the stack.
const DEEPEST: usize = 24;

/// Parses a text into a tree. `is_file` decides which paths exist.
pub fn parse_tree(text: &str, path: &str, is_file: &dyn Fn(&str) -> bool) -> Vec<Value> {
    let document = Document::parse(text);
    let anchors = document
        .sections()
        .iter()
        .map(|s| (s.heading.start, document.anchor_of(s).to_owned()))
        .collect::<Vec<_>>();
    let marks = document.links().iter().filter(|l| {
        matches!(
            l.kind,
            LinkKind::Arrow | LinkKind::BareArrow | LinkKind::Press | LinkKind::Wiki
        )
    });
    let marks = marks
        .map(|l| {
            (
                l.range.clone(),
                address(path, &l.path, l.anchor.as_deref(), l.kind, is_file),
            )
        })
        .collect();
    let mut planter = Planter {
        text,
        path,
        is_file,
        anchors,
        marks,
        marked: 0,
        stack: vec![Branch::default()],
        in_code: false,
        language: String::new(),
    };
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        planter.take(event, range);
    }
    while planter.stack.len() > 1 {
        planter.close();
    }
    planter
        .stack
        .pop()
        .map(|branch| branch.children)
        .unwrap_or_default()
}

/// Returns the target of a project link, as attributes.
fn address(
    page: &str,
    written: &str,
    anchor: Option<&str>,
    kind: LinkKind,
    is_file: &dyn Fn(&str) -> bool,
) -> Value {
    let (to, _) = resolve_link(page, written, kind, is_file);
    json!({"file": to, "anchor": anchor, "broken": !is_file(&to), "presses": kind == LinkKind::Press})
}

/// The language of a code block: ` ```rust,ignore ` names Rust.
fn first_word(info: &str) -> String {
    let end = info.find([',', ' ', '{']).unwrap_or(info.len());
    info[..end].to_ascii_lowercase()
}

#[derive(Default)]
struct Branch {
    element: &'static str,
    attributes: Value,
    children: Vec<Value>,
    /// Nested too deeply: its children are added to its parent.
    flat: bool,
}

struct Planter<'t> {
    text: &'t str,
    path: &'t str,
    is_file: &'t dyn Fn(&str) -> bool,
    anchors: Vec<(usize, String)>,
    /// Links outside Markdown's syntax, with their targets.
    marks: Vec<(Range<usize>, Value)>,
    /// The offset up to which text was emitted. The first text inside a mark emits the mark, once.
    marked: usize,
    stack: Vec<Branch>,
    in_code: bool,
    /// The language of the code block, if tokens of it are known.
    language: String,
}

impl Planter<'_> {
    fn open(&mut self, element: &'static str, attributes: Value) {
        let flat = self.stack.len() >= DEEPEST;
        self.stack.push(Branch {
            element,
            attributes,
            children: Vec::new(),
            flat,
        });
    }

    fn close(&mut self) {
        let Some(branch) = self.stack.pop() else {
            return;
        };
        let Some(parent) = self.stack.last_mut() else {
            return;
        };
        if branch.flat || branch.element.is_empty() {
            parent.children.extend(branch.children);
            return;
        }
        let mut node = vec![json!(branch.element), branch.attributes];
        node.extend(branch.children);
        parent.children.push(Value::Array(node));
    }

    fn push(&mut self, node: Value) {
        if let Some(branch) = self.stack.last_mut() {
            branch.children.push(node);
        }
    }

    fn say(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(Value::String(last)) = self
            .stack
            .last_mut()
            .and_then(|branch| branch.children.last_mut())
        {
            last.push_str(text);
            return;
        }
        self.push(json!(text));
    }

    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, &range),
            Event::End(end) => self.end(end),
            Event::Text(text) => self.words(&text, range),
            Event::Code(text) => self.quoted(&text),
            // Raw HTML is shown literally. A comment that is a marker is shown too.
            Event::Html(html) => self.say(&html),
            Event::InlineHtml(html) => self.push(json!(["code", {"class": "raw"}, html.as_ref()])),
            Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push(json!(["code", {}, text.as_ref()]))
            }
            Event::SoftBreak => self.say("\n"),
            Event::HardBreak => self.push(json!(["br", {}])),
            Event::Rule => self.push(json!(["hr", {}])),
            Event::TaskListMarker(done) => self.say(if done { "☑ " } else { "☐ " }),
            Event::FootnoteReference(name) => self.push(json!(["sup", {}, format!("[{name}]")])),
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Paragraph => self.open("p", json!({})),
            Tag::Heading { level, .. } => {
                let id = self
                    .anchors
                    .iter()
                    .find(|(start, _)| *start == range.start)
                    .map(|(_, anchor)| anchor.clone());
                let element = match level {
                    HeadingLevel::H1 => "h1",
                    HeadingLevel::H2 => "h2",
                    HeadingLevel::H3 => "h3",
                    HeadingLevel::H4 => "h4",
                    HeadingLevel::H5 => "h5",
                    HeadingLevel::H6 => "h6",
                };
                self.open(element, json!({"anchor": id}));
            }
            Tag::BlockQuote(_) => self.open("blockquote", json!({})),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.in_code = true;
                self.language = first_word(&language);
                self.open("pre", json!({"language": language}));
            }
            Tag::List(Some(first)) => self.open("ol", json!({"start": first})),
            Tag::List(None) => self.open("ul", json!({})),
            Tag::Item => self.open("li", json!({})),
            Tag::Table(_) => self.open("table", json!({})),
            Tag::TableHead => self.open("thead", json!({})),
            Tag::TableRow => self.open("tr", json!({})),
            Tag::TableCell => self.open("td", json!({})),
            Tag::Emphasis => self.open("em", json!({})),
            Tag::Strong => self.open("strong", json!({})),
            Tag::Strikethrough => self.open("s", json!({})),
            Tag::Link { dest_url, .. } => {
                let attributes = self.leads_to(&dest_url, LinkKind::Inline);
                self.open(if attributes.is_null() { "" } else { "a" }, attributes);
            }
            // A picture from elsewhere would cause a request, so only its description is shown.
            Tag::Image { dest_url, .. } => {
                let to = self.leads_to(&dest_url, LinkKind::Inline);
                let own = to["broken"] == false && to["file"].as_str().is_some_and(is_picture);
                let file = own.then(|| to["file"].clone());
                self.open(
                    "span",
                    json!({"class": "picture", "title": dest_url.as_ref(), "file": file}),
                );
            }
            Tag::FootnoteDefinition(name) => {
                self.open("blockquote", json!({}));
                self.push(json!(["sup", {}, format!("[{name}]")]));
            }
            Tag::MetadataBlock(_) => {
                self.in_code = true;
                self.language = "yaml".to_owned();
                self.open("pre", json!({"language": "yaml"}));
            }
            Tag::HtmlBlock => self.open("code", json!({"class": "raw"})),
            _ => self.open("", json!({})),
        }
    }

    fn end(&mut self, end: TagEnd) {
        if matches!(end, TagEnd::CodeBlock | TagEnd::MetadataBlock(_)) {
            self.in_code = false;
        }
        self.close();
    }

    /// Returns the attributes of a link, or null if a reader must not follow it.
    fn leads_to(&self, written: &str, kind: LinkKind) -> Value {
        if is_external(written) {
            let scheme = written.trim().to_ascii_lowercase();
            let sound = (scheme.starts_with("http://") || scheme.starts_with("https://"))
                && !written.chars().any(char::is_control);
            return if sound {
                json!({"href": written.trim()})
            } else {
                Value::Null
            };
        }
        let (path, anchor) = parse_target(written);
        address(self.path, &path, anchor.as_deref(), kind, self.is_file)
    }

    /// Emits code inside a line. The place of a line, as `path:12`, leads there.
    fn quoted(&mut self, text: &str) {
        let code = json!(["code", {}, text]);
        let in_link = self.stack.iter().any(|branch| branch.element == "a");
        let place = text.rsplit_once(':').filter(|_| !in_link);
        let place = place.and_then(|(path, lines)| {
            let first = lines.split('-').next()?.parse::<usize>().ok()?;
            (self.is_file)(path).then(|| json!({"file": path, "line": first}))
        });
        match place {
            Some(place) => self.push(json!(["a", place, code])),
            None => self.push(code),
        }
    }

    /// Emits code, with the class of each token if the language is known.
    fn code(&mut self, text: &str) {
        let language = self.language.clone();
        let Some(tokens) = code_tokens(&language, text) else {
            return self.say(text);
        };
        for (class, token) in tokens {
            match class.style() {
                "" => self.say(token),
                class => self.push(json!(["token", {"class": class}, token])),
            }
        }
    }

    /// Emits text, with the links in it that Markdown does not parse.
    fn words(&mut self, text: &str, range: Range<usize>) {
        // Escapes and entities make a text differ from its source; such a piece contains no mark.
        if self.in_code {
            return self.code(text);
        }
        if self.text.get(range.clone()) != Some(text) {
            self.say(text);
            return;
        }
        let mut at = range.start.max(self.marked.min(range.end));
        while at < range.end {
            let next = self
                .marks
                .iter()
                .find(|(mark, _)| mark.end > at && mark.start < range.end)
                .cloned();
            match next {
                Some((mark, to)) if mark.start <= at => {
                    let label = self.text[mark.clone()]
                        .trim_start_matches('[')
                        .trim_end_matches(']')
                        .to_owned();
                    self.push(json!(["a", to, label]));
                    self.marked = mark.end;
                    at = mark.end;
                }
                Some((mark, _)) => {
                    self.say(&self.text[at..mark.start]);
                    at = mark.start;
                }
                None => {
                    self.say(&self.text[at..range.end]);
                    at = range.end;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> String {
        json!(parse_tree(text, "notes/a.md", &|path| path == "notes/b.md"
            || path == "c.md"))
        .to_string()
    }

    #[test]
    fn nothing_in_a_file_is_markup() {
        let told =
            tree("a <script>alert(1)</script> <img src=x onerror=alert(1)>\n\n<iframe src=x>\n");
        for word in ["[\"script\"", "[\"img\"", "[\"iframe\"", "onerror\":"] {
            assert!(!told.contains(word), "{told}");
        }
        assert!(told.contains("<script>"), "it is shown as text: {told}");
    }

    #[test]
    fn only_plain_addresses_and_files_are_links() {
        for bad in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "file:///etc/passwd",
            "//evil.example/x",
            "mailto:a@b",
        ] {
            let told = tree(&format!("[x](<{bad}>)"));
            assert!(!told.contains("[\"a\""), "{bad}: {told}");
        }
        assert!(
            tree("[x](https://example.org/a)")
                .contains(r#"["a",{"href":"https://example.org/a"},"x"]"#)
        );
        assert!(
            tree("[x](java\tscript:alert(1))").contains("broken\":true")
                || !tree("[x](java\tscript:alert(1))").contains("[\"a\"")
        );
    }

    #[test]
    fn links_of_the_project_are_live() {
        let told = tree("- see [→ c.md#one] and [b](b.md), [⊣ c.md#two], [[c]] and [→ gone.md]\n");
        assert!(told.contains(r#"["a",{"file":"c.md","anchor":"one","broken":false,"presses":false},"→ c.md#one"]"#), "{told}");
        assert!(told.contains(r#""file":"notes/b.md""#), "{told}");
        assert!(told.contains(r#""presses":true"#), "{told}");
        assert!(
            told.contains(r#"{"file":"gone.md","anchor":null,"broken":true"#),
            "{told}"
        );
        assert!(told.contains("see ") && told.contains(" and "), "{told}");
    }

    #[test]
    fn the_place_of_a_line_leads_there() {
        let link = r#"["a",{"file":"c.md","line":12},["code",{},"c.md:12-14"]]"#;
        assert!(tree("see `c.md:12-14`").contains(link));
        for other in ["gone.md:12", "c.md:x", "c.md", "a:1"] {
            assert!(
                !tree(&format!("see `{other}`")).contains("[\"a\""),
                "{other}"
            );
        }
    }

    #[test]
    fn code_has_the_classes_of_its_tokens() {
        let told = tree("```rust,ignore\nlet a = 1;\n```\n\n```other\nlet\n```\n");
        assert!(told.contains(r#"["token",{"class":"k"},"let"]"#), "{told}");
        assert!(told.contains(r#"{"language":"other"},"let\n"]"#), "{told}");
    }

    #[test]
    fn only_pictures_of_the_project_are_shown() {
        let shows = |text: &str| {
            parse_tree(text, "notes/a.md", &|path| path.starts_with("notes/p."))[0].to_string()
        };
        assert!(shows("![x](p.png)").contains(r#""file":"notes/p.png""#));
        for bad in ["https://example.org/p.png", "gone.png", "p.html"] {
            assert!(
                shows(&format!("![x]({bad})")).contains(r#""file":null"#),
                "{bad}"
            );
        }
    }

    #[test]
    fn headings_have_the_anchors_that_links_name() {
        assert!(tree("# One two\n\n## 左撇子\n").contains(
            r#"["h1",{"anchor":"one-two"},"One two"],["h2",{"anchor":"左撇子"},"左撇子"]"#
        ));
    }

    #[test]
    fn an_endless_quote_is_no_endless_tree() {
        let told = parse_tree(&(">".repeat(5_000) + " deep"), "a.md", &|_| false);
        fn depth(node: &Value) -> usize {
            1 + node
                .as_array()
                .into_iter()
                .flatten()
                .map(depth)
                .max()
                .unwrap_or(0)
        }
        assert!(told.iter().map(depth).max().unwrap_or(0) < 200);
    }
}
