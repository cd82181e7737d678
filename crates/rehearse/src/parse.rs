//! Parses Rust, Python, JavaScript and TypeScript with tree-sitter.
//!
//! Tree-sitter continues after an error, so a broken file yields the items that can be recognised.
//! The parser enters only containers (modules, impls, classes) and limits the depth, so hostile
//! nesting costs nothing.

use tree_sitter::{Node, Parser};

use crate::source::{Item, ItemKind, Module, SourceLanguage};

const DEPTH: usize = 8;
/// The maximum number of nodes of a body to search for calls.
const BODY_NODES: usize = 4000;
const MEMBERS: usize = 24;

pub(crate) fn module(path: &str, language: SourceLanguage, text: &str) -> Module {
    let mut module = Module {
        path: path.into(),
        language,
        doc: opening(language, text),
        items: Vec::new(),
        lines: text.lines().count(),
        broken: true,
        cut: false,
        focus: false,
    };
    let grammar = match language {
        SourceLanguage::Rust => tree_sitter_rust::LANGUAGE,
        SourceLanguage::Python => tree_sitter_python::LANGUAGE,
        // The TSX grammar also parses plain JavaScript and TypeScript.
        SourceLanguage::Script => tree_sitter_typescript::LANGUAGE_TSX,
    };
    let mut parser = Parser::new();
    if parser.set_language(&grammar.into()).is_err() {
        return module;
    }
    let Some(tree) = parser.parse(text, None) else {
        return module;
    };
    module.broken = tree.root_node().has_error();
    let mut walk = Walk {
        text,
        language,
        lines: text.lines().collect(),
        items: Vec::new(),
    };
    walk.container(tree.root_node(), None, true, 0);
    module.items = walk.items;
    module
}

struct Walk<'t> {
    text: &'t str,
    language: SourceLanguage,
    lines: Vec<&'t str>,
    items: Vec<Item>,
}

impl<'t> Walk<'t> {
    fn slice(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn field(&self, node: Node<'_>, name: &str) -> Option<&'t str> {
        node.child_by_field_name(name)
            .map(|found| self.slice(found))
            .filter(|text| !text.is_empty())
    }

    fn container(&mut self, node: Node<'_>, owner: Option<&str>, public: bool, depth: usize) {
        if depth > DEPTH {
            return;
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match self.language {
                SourceLanguage::Rust => self.rust(child, owner, public, depth),
                SourceLanguage::Python => self.python(child, owner, depth),
                SourceLanguage::Script => self.script(child, child, owner, false, depth),
            }
        }
    }

    fn body(&mut self, node: Node<'_>, owner: Option<&str>, public: bool, depth: usize) {
        if let Some(body) = node.child_by_field_name("body") {
            self.container(body, owner, public, depth + 1);
        }
    }

    fn rust(&mut self, node: Node<'_>, owner: Option<&str>, public: bool, depth: usize) {
        let doc = |walk: &Self| walk.lines_above(node, "///", &["#[", "#!["]);
        match node.kind() {
            "function_item" | "function_signature_item" => {
                let seen = owner.is_some() && public || has_child(node, "visibility_modifier");
                self.item(
                    node,
                    node,
                    (ItemKind::Function, "fn"),
                    owner,
                    seen,
                    doc(self),
                );
            }
            "struct_item" | "enum_item" | "union_item" | "trait_item" | "type_item" => {
                let word = match node.kind() {
                    "struct_item" => "struct",
                    "enum_item" => "enum",
                    "union_item" => "union",
                    "trait_item" => "trait",
                    _ => "type",
                };
                self.item(
                    node,
                    node,
                    (ItemKind::Type, word),
                    owner,
                    has_child(node, "visibility_modifier"),
                    doc(self),
                );
                if node.kind() == "trait_item" {
                    let name = self.field(node, "name").map(str::to_owned);
                    self.body(node, name.as_deref(), true, depth);
                }
            }
            "impl_item" => {
                let name = self
                    .field(node, "type")
                    .map(|name| name.split('<').next().unwrap_or(name).to_owned());
                // Methods of a trait implementation are as visible as the trait.
                let of_trait = node.child_by_field_name("trait").is_some();
                self.body(node, name.as_deref(), of_trait, depth);
            }
            "mod_item" if !self.is_test(node) => {
                let name = self.field(node, "name").map(str::to_owned);
                self.body(node, name.as_deref(), false, depth);
            }
            _ => {}
        }
    }

    /// Returns true if a Rust module is compiled only for tests.
    fn is_test(&self, node: Node<'_>) -> bool {
        node.prev_sibling().is_some_and(|before| {
            before.kind() == "attribute_item" && self.slice(before).contains("cfg(test)")
        })
    }

    fn python(&mut self, node: Node<'_>, owner: Option<&str>, depth: usize) {
        let definition = match node.kind() {
            "decorated_definition" => node.child_by_field_name("definition").unwrap_or(node),
            _ => node,
        };
        let name = self
            .field(definition, "name")
            .unwrap_or_default()
            .to_owned();
        let public = !name.starts_with('_') || name.starts_with("__") && name.ends_with("__");
        match definition.kind() {
            "function_definition" => {
                let doc = self.docstring(definition);
                self.item(
                    definition,
                    definition,
                    (ItemKind::Function, "def"),
                    owner,
                    public,
                    doc,
                );
            }
            "class_definition" => {
                let doc = self.docstring(definition);
                self.item(
                    definition,
                    definition,
                    (ItemKind::Type, "class"),
                    owner,
                    public,
                    doc,
                );
                self.body(definition, Some(&name), true, depth);
            }
            _ => {}
        }
    }

    fn docstring(&self, node: Node<'_>) -> String {
        let first = node
            .child_by_field_name("body")
            .and_then(|body| body.named_child(0))
            .filter(|first| first.kind() == "expression_statement");
        let string = first
            .and_then(|first| first.named_child(0))
            .filter(|string| string.kind() == "string");
        string
            .map(|string| joined(unquoted(self.slice(string)).lines()))
            .unwrap_or_default()
    }

    /// `outer` is the node below the doc comment: the export statement, if there is one.
    fn script(
        &mut self,
        node: Node<'_>,
        outer: Node<'_>,
        owner: Option<&str>,
        public: bool,
        depth: usize,
    ) {
        let doc = |walk: &Self| walk.block_above(outer);
        match node.kind() {
            "export_statement" => {
                if let Some(inner) = node
                    .child_by_field_name("declaration")
                    .or_else(|| node.child_by_field_name("value"))
                {
                    self.script(inner, node, owner, true, depth);
                }
            }
            "function_declaration" | "generator_function_declaration" => {
                self.item(
                    node,
                    node,
                    (ItemKind::Function, "function"),
                    owner,
                    public,
                    doc(self),
                );
            }
            "method_definition" | "method_signature" | "abstract_method_signature" => {
                let hidden =
                    self.slice(node).starts_with("private") || self.slice(node).starts_with('#');
                self.item(
                    node,
                    node,
                    (ItemKind::Function, "method"),
                    owner,
                    !hidden,
                    doc(self),
                );
            }
            "class_declaration" | "abstract_class_declaration" | "class" => {
                self.item(
                    node,
                    node,
                    (ItemKind::Type, "class"),
                    owner,
                    public,
                    doc(self),
                );
                let name = self.field(node, "name").map(str::to_owned);
                self.body(node, name.as_deref(), public, depth);
            }
            "interface_declaration" => self.item(
                node,
                node,
                (ItemKind::Type, "interface"),
                owner,
                public,
                doc(self),
            ),
            "type_alias_declaration" => self.item(
                node,
                node,
                (ItemKind::Type, "type"),
                owner,
                public,
                doc(self),
            ),
            "enum_declaration" => self.item(
                node,
                node,
                (ItemKind::Type, "enum"),
                owner,
                public,
                doc(self),
            ),
            "lexical_declaration" | "variable_declaration" => {
                let mut cursor = node.walk();
                for declared in node.named_children(&mut cursor) {
                    let value = declared.child_by_field_name("value");
                    if let Some(value) = value.filter(|value| {
                        matches!(
                            value.kind(),
                            "arrow_function" | "function_expression" | "function"
                        )
                    }) {
                        self.item(
                            declared,
                            value,
                            (ItemKind::Function, "function"),
                            owner,
                            public,
                            doc(self),
                        );
                    }
                }
            }
            "expression_statement" => {
                if let Some(inner) = node
                    .named_child(0)
                    .filter(|inner| inner.kind() == "internal_module")
                {
                    let name = self.field(inner, "name").map(str::to_owned);
                    self.body(inner, name.as_deref(), public, depth);
                }
            }
            _ => {}
        }
    }

    /// Adds an item. `made_of` is the node with its body.
    fn item(
        &mut self,
        node: Node<'_>,
        made_of: Node<'_>,
        what: (ItemKind, &'static str),
        owner: Option<&str>,
        public: bool,
        doc: String,
    ) {
        let (kind, word) = what;
        let Some(name) = self.field(node, "name").filter(|name| name.len() <= 80) else {
            return;
        };
        let body = made_of.child_by_field_name("body");
        let head =
            &self.text[node.start_byte()..body.map_or(node.end_byte(), |body| body.start_byte())];
        let signature = joined(head.lines());
        let signature = signature
            .trim_end()
            .trim_end_matches("=>")
            .trim_end_matches(['{', ':', '=', ';', ' '])
            .to_owned();
        let (line, end) = (node.start_position().row + 1, node.end_position().row + 1);
        self.items.push(Item {
            kind,
            word,
            name: name.to_owned(),
            owner: owner.map(str::to_owned),
            public,
            doc,
            signature: shortened(&signature, 300),
            members: body
                .filter(|_| kind == ItemKind::Type)
                .map(|body| self.members(body))
                .unwrap_or_default(),
            calls: body
                .filter(|_| kind == ItemKind::Function)
                .map(|body| self.calls(body))
                .unwrap_or_default(),
            line,
            end,
            code: self
                .lines
                .get(line - 1..end.min(self.lines.len()))
                .unwrap_or_default()
                .join("\n"),
        });
    }

    fn members(&self, body: Node<'_>) -> Vec<String> {
        let mut cursor = body.walk();
        let known = [
            "field_declaration",
            "enum_variant",
            "property_signature",
            "public_field_definition",
            "enum_assignment",
            "property_identifier",
        ];
        let members = body
            .named_children(&mut cursor)
            .filter(|child| known.contains(&child.kind()));
        members
            .take(MEMBERS)
            .map(|child| shortened(&joined(self.slice(child).lines()), 100))
            .collect()
    }

    fn calls(&self, body: Node<'_>) -> Vec<String> {
        let mut calls: Vec<String> = Vec::new();
        let mut cursor = body.walk();
        let mut left = BODY_NODES;
        'walk: while left > 0 {
            left -= 1;
            let node = cursor.node();
            if matches!(node.kind(), "call_expression" | "call") {
                let called = self.field(node, "function").unwrap_or_default();
                let name = called.rsplit(['.', ':']).next().unwrap_or_default().trim();
                let plain =
                    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
                if plain && !calls.iter().any(|known| known == name) {
                    calls.push(name.to_owned());
                }
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() || cursor.node() == body {
                    break 'walk;
                }
            }
        }
        calls
    }

    /// Returns the comment lines right above a node. Skips lines that start with a prefix in
    /// `between`, such as attributes.
    fn lines_above(&self, node: Node<'_>, mark: &str, between: &[&str]) -> String {
        let mut found = Vec::new();
        for line in self.lines[..node.start_position().row.min(self.lines.len())]
            .iter()
            .rev()
        {
            let line = line.trim();
            match line.strip_prefix(mark) {
                Some(doc) => found.push(doc),
                None if found.is_empty() && between.iter().any(|mark| line.starts_with(mark)) => {}
                None => break,
            }
        }
        found.reverse();
        joined(found.into_iter())
    }

    /// Returns the `/** … */` comment right above a node.
    fn block_above(&self, node: Node<'_>) -> String {
        let comment = node.prev_sibling().filter(|before| {
            before.kind() == "comment" && before.end_position().row + 1 >= node.start_position().row
        });
        let text = comment
            .map(|comment| self.slice(comment))
            .filter(|text| text.starts_with("/**"));
        text.map(block_text).unwrap_or_default()
    }
}

fn has_child(node: Node<'_>, kind: &str) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor).any(|child| child.kind() == kind)
}

/// Returns the comment at the start of a file.
fn opening(language: SourceLanguage, text: &str) -> String {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    match language {
        SourceLanguage::Rust => joined(
            text.lines()
                .map_while(|line| line.trim().strip_prefix("//!")),
        ),
        SourceLanguage::Python => {
            let text = text
                .lines()
                .skip_while(|line| line.starts_with('#'))
                .collect::<Vec<_>>()
                .join("\n");
            let text = text.trim_start();
            let mark = ["\"\"\"", "'''"]
                .into_iter()
                .find(|mark| text.starts_with(mark));
            let inner = mark.and_then(|mark| text[3..].split_once(mark));
            inner
                .map(|(doc, _)| joined(doc.lines()))
                .unwrap_or_default()
        }
        SourceLanguage::Script => match text
            .strip_prefix("/**")
            .and_then(|rest| rest.split_once("*/"))
        {
            // A comment right above a declaration belongs to that declaration.
            Some((doc, after))
                if after.starts_with("\n\n") || after.trim_start().starts_with("import") =>
            {
                block_text(&format!("/**{doc}*/"))
            }
            _ => joined(
                text.lines()
                    .map_while(|line| line.trim().strip_prefix("//")),
            ),
        },
    }
}

fn block_text(comment: &str) -> String {
    let inner = comment.trim_start_matches("/**").trim_end_matches("*/");
    joined(
        inner
            .lines()
            .map(|line| line.trim().trim_start_matches('*')),
    )
}

fn unquoted(string: &str) -> &str {
    let string = string.trim_start_matches(['r', 'R', 'u', 'U', 'b', 'B', 'f', 'F']);
    string.trim_matches(['"', '\''])
}

/// Joins lines with single spaces.
pub(crate) fn joined<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    lines
        .flat_map(str::split_whitespace)
        .collect::<Vec<_>>()
        .join(" ")
}

pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
