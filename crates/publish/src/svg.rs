//! Sanitises SVG images.
//!
//! An SVG file can run scripts and load other files when a reader opens it. This module parses the
//! file and writes a new one from allowlists: shapes, text, gradients and filters, with references
//! inside the file and embedded bitmaps. It drops everything else and reports the names.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use roxmltree::{Document, Node, ParsingOptions};

use crate::markup::escape_into;

const SVG: &str = "http://www.w3.org/2000/svg";
const XLINK: &str = "http://www.w3.org/1999/xlink";

/// Deeper elements are dropped. Drawing programs nest a few dozen levels.
const MOST_LEVELS: usize = 200;
/// More nodes than any drawing for a page has.
const MOST_NODES: u32 = 500_000;

/// Larger files are refused.
const MOST_BYTES: usize = 32 << 20;
/// The limit on attributes of one element: the parser compares them with each other.
const MOST_ATTRIBUTES: usize = 5_000;

/// The limit on namespaces: the parser copies those of an element to its children and compares each
/// with each. Drawing programs declare a dozen.
const MOST_NAMESPACES: usize = 500;

/// The reason why a file was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undrawn {
    NoSvg,
    /// Parsing or publishing it would cost far more than its size suggests.
    Excessive(&'static str),
}

/// A sanitised SVG file, and the names of the dropped elements and attributes.
pub(crate) struct Drawing {
    pub bytes: Vec<u8>,
    pub left_out: BTreeSet<String>,
}

/// Parses a file and writes the sanitised version.
pub(crate) fn redraw(bytes: &[u8]) -> Result<Drawing, Undrawn> {
    let text = std::str::from_utf8(bytes).map_err(|_| Undrawn::NoSvg)?;
    if let Some(excess) = excess_of(text) {
        return Err(Undrawn::Excessive(excess));
    }
    let options = ParsingOptions {
        allow_dtd: true,
        nodes_limit: MOST_NODES,
        ..ParsingOptions::default()
    };
    let document =
        Document::parse_with_options(text.trim_start_matches('\u{feff}').trim_start(), options)
            .map_err(|_| Undrawn::NoSvg)?;
    let root = document.root_element();
    if root.tag_name().name() != "svg" || !is_svg(root) {
        return Err(Undrawn::NoSvg);
    }
    let mut writer = Writer {
        out: String::with_capacity(text.len()),
        left_out: BTreeSet::new(),
    };
    writer.element(root, 0);
    writer.out.push('\n');
    Ok(Drawing {
        bytes: writer.out.into_bytes(),
        left_out: writer.left_out,
    })
}

/// Checks the file before it is parsed, because the parser expands every use of an entity.
fn excess_of(text: &str) -> Option<&'static str> {
    if text.len() > MOST_BYTES {
        return Some("it is larger than 32 MB");
    }
    if text.matches("xmlns").count() > MOST_NAMESPACES {
        return Some("it declares too many namespaces");
    }
    let mut longest = 0;
    // No attribute contains a `<`, so each piece holds the attributes of at most one element.
    for piece in text.split('<') {
        if piece.bytes().filter(|byte| *byte == b'=').count() > MOST_ATTRIBUTES {
            return Some("an element has too many attributes");
        }
        if piece.starts_with("!ENTITY") {
            let value = piece
                .find(['"', '\''])
                .and_then(|at| piece[at + 1..].split_once(&piece[at..=at]))
                .map(|(value, _)| value);
            match value.filter(|value| !value.contains('&')) {
                Some(value) => longest = longest.max(value.len()),
                None => return Some("its entities contain elements or other entities"),
            }
        }
    }
    let uses = text.bytes().filter(|byte| *byte == b'&').count();
    (uses.saturating_mul(longest) > 4 * text.len() + (1 << 20))
        .then_some("its entities make it many times larger")
}

/// Accepts elements without a namespace, because old files declare none.
fn is_svg(node: Node<'_, '_>) -> bool {
    matches!(node.tag_name().namespace(), Some(SVG) | None)
}

struct Writer {
    out: String,
    left_out: BTreeSet<String>,
}

impl Writer {
    fn element(&mut self, node: Node<'_, '_>, level: usize) {
        let name = node.tag_name().name();
        if level > MOST_LEVELS
            || !is_svg(node)
            || !(ELEMENTS.contains(&name) || PASSED_THROUGH.contains(&name))
        {
            self.left_out.insert(format!("<{name}>"));
            return;
        }
        if PASSED_THROUGH.contains(&name) {
            return self.children(node, level);
        }
        if name == "style" {
            return self.style(node);
        }
        let _ = write!(self.out, "<{name}");
        if level == 0 {
            let _ = write!(self.out, " xmlns=\"{SVG}\" xmlns:xlink=\"{XLINK}\"");
        }
        for attribute in node.attributes() {
            let kept = match (attribute.namespace(), attribute.name()) {
                (None | Some(XLINK), "href") => {
                    is_own_reference(name, attribute.value()).then_some("xlink:href")
                }
                (None, "style") => is_harmless_style(attribute.value()).then_some("style"),
                (None, known) => ATTRIBUTES
                    .contains(&known)
                    .then_some(known)
                    .filter(|_| refers_inside(attribute.value())),
                (Some("http://www.w3.org/XML/1998/namespace"), "space") => Some("xml:space"),
                (Some("http://www.w3.org/XML/1998/namespace"), "lang") => Some("xml:lang"),
                _ => None,
            };
            match kept {
                Some(kept) => {
                    let _ = write!(self.out, " {kept}=\"");
                    escape_into(&mut self.out, attribute.value());
                    self.out.push('"');
                }
                // Drawing programs store their own metadata in these attributes. Readers do not
                // miss it.
                None if attribute.namespace().is_some_and(|space| space != XLINK)
                    || attribute.name().starts_with("data-") => {}
                None => drop(self.left_out.insert(attribute.name().to_owned())),
            }
        }
        self.out.push('>');
        self.children(node, level);
        let _ = write!(self.out, "</{name}>");
    }

    fn children(&mut self, node: Node<'_, '_>, level: usize) {
        for child in node.children() {
            if child.is_element() {
                self.element(child, level + 1);
            } else if let Some(text) = child.text().filter(|_| child.is_text()) {
                escape_into(&mut self.out, text);
            }
        }
    }

    fn style(&mut self, node: Node<'_, '_>) {
        let text: String = node.children().filter_map(|child| child.text()).collect();
        if is_harmless_style(&text) {
            self.out.push_str("<style>");
            escape_into(&mut self.out, &text);
            self.out.push_str("</style>");
        } else {
            self.left_out.insert("<style>".to_owned());
        }
    }
}

/// Returns true for a reference into the file itself, or an embedded bitmap.
fn is_own_reference(element: &str, value: &str) -> bool {
    let value = value.trim();
    let is_bitmap = || {
        let kinds = [
            "data:image/png;base64,",
            "data:image/jpeg;base64,",
            "data:image/gif;base64,",
            "data:image/webp;base64,",
        ];
        let data = kinds.iter().find_map(|kind| value.strip_prefix(kind));
        data.is_some_and(|data| {
            data.chars()
                .all(|c| c.is_ascii_alphanumeric() || "+/= \n\r\t".contains(c))
        })
    };
    value.starts_with('#') || element == "image" && is_bitmap()
}

/// Returns true if every `url(…)` of a value refers to the file itself.
fn refers_inside(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let inside = |after: &str| {
        after
            .trim_start_matches([' ', '\t', '\n', '\r', '"', '\''])
            .starts_with('#')
    };
    lower.split("url").skip(1).all(|after| !after.trim_start().starts_with('(') || inside(after.trim_start().trim_start_matches('(')))
        // An escape could spell `url`.
        && !lower.contains('\\')
        && !lower.contains("image-set(")
        && !lower.contains("src(")
        && !lower.contains("javascript:")
}

/// Returns true for styles that only draw: no rule that loads or imports, and no escapes or
/// comments that could hide one.
fn is_harmless_style(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let acts = ["@", "\\", "/*", "<", "expression", "behavior", "binding"];
    refers_inside(text) && !acts.iter().any(|sign| lower.contains(sign))
}

/// Elements that only group others. Their content is kept without them.
const PASSED_THROUGH: [&str; 2] = ["a", "switch"];

const ELEMENTS: &[&str] = &[
    "svg",
    "g",
    "defs",
    "symbol",
    "use",
    "title",
    "desc",
    "path",
    "rect",
    "circle",
    "ellipse",
    "line",
    "polyline",
    "polygon",
    "text",
    "tspan",
    "textPath",
    "image",
    "style",
    "linearGradient",
    "radialGradient",
    "stop",
    "pattern",
    "clipPath",
    "mask",
    "marker",
    "filter",
    "feBlend",
    "feColorMatrix",
    "feComponentTransfer",
    "feComposite",
    "feConvolveMatrix",
    "feDiffuseLighting",
    "feDisplacementMap",
    "feDistantLight",
    "feDropShadow",
    "feFlood",
    "feFuncA",
    "feFuncB",
    "feFuncG",
    "feFuncR",
    "feGaussianBlur",
    "feMerge",
    "feMergeNode",
    "feMorphology",
    "feOffset",
    "fePointLight",
    "feSpecularLighting",
    "feSpotLight",
    "feTile",
    "feTurbulence",
];

const ATTRIBUTES: &[&str] = &[
    "id",
    "class",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "dx",
    "dy",
    "cx",
    "cy",
    "r",
    "rx",
    "ry",
    "fx",
    "fy",
    "fr",
    "d",
    "points",
    "width",
    "height",
    "viewBox",
    "version",
    "preserveAspectRatio",
    "transform",
    "rotate",
    "pathLength",
    "textLength",
    "lengthAdjust",
    "startOffset",
    "method",
    "spacing",
    "side",
    "offset",
    "gradientUnits",
    "gradientTransform",
    "spreadMethod",
    "patternUnits",
    "patternContentUnits",
    "patternTransform",
    "clipPathUnits",
    "maskUnits",
    "maskContentUnits",
    "markerUnits",
    "markerWidth",
    "markerHeight",
    "refX",
    "refY",
    "orient",
    "filterUnits",
    "primitiveUnits",
    "in",
    "in2",
    "result",
    "mode",
    "type",
    "values",
    "tableValues",
    "slope",
    "intercept",
    "amplitude",
    "exponent",
    "operator",
    "k1",
    "k2",
    "k3",
    "k4",
    "order",
    "kernelMatrix",
    "divisor",
    "bias",
    "targetX",
    "targetY",
    "edgeMode",
    "preserveAlpha",
    "surfaceScale",
    "diffuseConstant",
    "specularConstant",
    "specularExponent",
    "kernelUnitLength",
    "scale",
    "xChannelSelector",
    "yChannelSelector",
    "azimuth",
    "elevation",
    "stdDeviation",
    "radius",
    "z",
    "pointsAtX",
    "pointsAtY",
    "pointsAtZ",
    "limitingConeAngle",
    "baseFrequency",
    "numOctaves",
    "seed",
    "stitchTiles",
    "role",
    "aria-label",
    "aria-labelledby",
    "aria-hidden",
    "lang",
    "fill",
    "fill-opacity",
    "fill-rule",
    "stroke",
    "stroke-width",
    "stroke-opacity",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-miterlimit",
    "stroke-dasharray",
    "stroke-dashoffset",
    "opacity",
    "color",
    "color-interpolation",
    "color-interpolation-filters",
    "stop-color",
    "stop-opacity",
    "flood-color",
    "flood-opacity",
    "lighting-color",
    "clip-path",
    "clip-rule",
    "mask",
    "mask-type",
    "filter",
    "marker-start",
    "marker-mid",
    "marker-end",
    "display",
    "visibility",
    "overflow",
    "vector-effect",
    "paint-order",
    "shape-rendering",
    "text-rendering",
    "image-rendering",
    "mix-blend-mode",
    "isolation",
    "font-family",
    "font-size",
    "font-size-adjust",
    "font-stretch",
    "font-style",
    "font-variant",
    "font-weight",
    "letter-spacing",
    "word-spacing",
    "text-anchor",
    "text-decoration",
    "dominant-baseline",
    "alignment-baseline",
    "baseline-shift",
    "writing-mode",
    "direction",
    "unicode-bidi",
    "glyph-orientation-vertical",
    "transform-origin",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn redrawn(inside: &str) -> (String, Vec<String>) {
        let file = format!(
            "<?xml version=\"1.0\"?>\n<svg xmlns=\"{SVG}\" xmlns:xlink=\"{XLINK}\" viewBox=\"0 0 9 9\"><rect width=\"1\"/>{inside}</svg>"
        );
        let drawing = redraw(file.as_bytes()).unwrap_or_else(|_| panic!("not parsed: {inside}"));
        (
            String::from_utf8(drawing.bytes).unwrap(),
            drawing.left_out.into_iter().collect(),
        )
    }

    #[test]
    fn nothing_that_acts_or_loads_is_published() {
        let vectors = [
            "<script>alert(1)</script>",
            "<script href=\"https://evil.example/x.js\"/>",
            "<script xlink:href=\"data:text/javascript,alert(1)\"/>",
            "<h:script xmlns:h=\"http://www.w3.org/1999/xhtml\">alert(1)</h:script>",
            "<s:script xmlns:s=\"http://www.w3.org/2000/svg\">alert(1)</s:script>",
            "<g onload=\"alert(1)\"/>",
            "<rect onclick=\"alert(1)\" ONCLICK=\"alert(1)\"/>",
            "<a href=\"javascript:alert(1)\"><text>x</text></a>",
            "<a xlink:href=\"java&#10;script:alert(1)\"><text>x</text></a>",
            "<foreignObject><iframe xmlns=\"http://www.w3.org/1999/xhtml\" src=\"https://evil.example\"/></foreignObject>",
            "<image href=\"https://evil.example/x.png\"/>",
            "<image xlink:href=\"//evil.example/x.png\"/>",
            "<image href=\"file:///etc/passwd\"/>",
            "<image href=\"data:image/svg+xml;base64,PHN2Zz4=\"/>",
            "<image href=\"data:text/html,&lt;script&gt;alert(1)&lt;/script&gt;\"/>",
            "<use href=\"https://evil.example/x.svg#a\"/>",
            "<use xlink:href=\"data:image/svg+xml;base64,PHN2Zz4=#a\"/>",
            "<feImage href=\"https://evil.example/x.png\"/>",
            "<rect fill=\"url(https://evil.example/x.svg#a)\"/>",
            "<rect fill=\"URL( 'https://evil.example/x.svg#a' )\"/>",
            "<rect fill=\"u\\72l(https://evil.example/x.svg#a)\"/>",
            "<rect style=\"fill:url(//evil.example/x)\"/>",
            "<rect style=\"background:u\\72l(//evil.example/x)\"/>",
            "<rect style=\"background:image-set('https://evil.example/x' 1x)\"/>",
            "<style>@import 'https://evil.example/x.css';</style>",
            "<style><![CDATA[@import url(https://evil.example/x.css);]]></style>",
            "<style>@font-face{font-family:x;src:url(https://evil.example/x.woff)}</style>",
            "<style>rect{fill:url(https://evil.example/x)}</style>",
            "<style>rect{fill:ur/**/l(https://evil.example/x)}</style>",
            "<set attributeName=\"href\" to=\"javascript:alert(1)\"/>",
            "<animate attributeName=\"xlink:href\" values=\"javascript:alert(1)\"/>",
            "<animate attributeName=\"onload\" to=\"alert(1)\"/>",
            "<handler xmlns=\"http://www.w3.org/2001/xml-events\">alert(1)</handler>",
            "<metadata><x onload=\"alert(1)\"/></metadata>",
            "<iframe src=\"https://evil.example\"/>",
            "<video src=\"https://evil.example/x.mp4\"/>",
            "<?xml-stylesheet href=\"https://evil.example/x.css\"?>",
            "<!-- --><script>alert(1)</script>",
        ];
        for vector in vectors {
            let (text, left_out) = redrawn(vector);
            let lower = text.to_lowercase();
            for sign in [
                "script", "alert", "evil", "onload", "onclick", "data:", "file:", "import", "<?",
                "<!", "foreign", "iframe", "animate",
            ] {
                assert!(!lower.contains(sign), "{vector} -> {text}");
            }
            assert!(
                text.contains("<rect width=\"1\"></rect>"),
                "{vector} -> {text}"
            );
            // Comments, processing instructions and links around a text are dropped without a
            // remark.
            assert_eq!(
                left_out.is_empty(),
                vector.starts_with("<?") || vector.starts_with("<a "),
                "{vector}: {left_out:?}"
            );
        }
    }

    #[test]
    fn a_document_type_is_read_and_not_published() {
        let file = format!(
            "\u{feff}<?xml version=\"1.0\"?>\n<!DOCTYPE svg [<!ENTITY a \"told>\"><!ENTITY e SYSTEM \"file:///etc/passwd\">]>\n\
             <svg xmlns=\"{SVG}\"><text>&a;</text></svg>"
        );
        let text = redraw(file.as_bytes())
            .map(|drawing| String::from_utf8(drawing.bytes).unwrap())
            .unwrap_or_default();
        assert!(
            text.contains("<text>told&gt;</text>") && !text.contains("<!"),
            "{text}"
        );
        let script = file.replace("told>", "&lt;script>alert(1)&lt;/script>");
        assert!(redraw(script.as_bytes()).is_err());
        let bomb: String = (1..12)
            .map(|n| format!("<!ENTITY a{n} \"{}\">", format!("&a{};", n - 1).repeat(10)))
            .collect();
        let bomb = format!(
            "<!DOCTYPE svg [<!ENTITY a0 \"x\">{bomb}]><svg xmlns=\"{SVG}\"><text>&a11;</text></svg>"
        );
        assert!(redraw(bomb.as_bytes()).is_err());
    }

    #[test]
    fn a_drawing_is_not_many_times_its_file() {
        let excess = |file: String| redraw(file.as_bytes()).err();
        let uses = |entity: String| {
            format!(
                "<!DOCTYPE svg [<!ENTITY a {entity}>]><svg xmlns=\"{SVG}\">{}</svg>",
                "<text>&a;</text>".repeat(2000)
            )
        };
        assert_eq!(excess(uses("\"short\"".into())), None);
        assert_eq!(
            excess(uses(format!("'{}'", "A".repeat(20_000)))),
            Some(Undrawn::Excessive("its entities make it many times larger"))
        );
        let elements = Some(Undrawn::Excessive(
            "its entities contain elements or other entities",
        ));
        assert_eq!(excess(uses("\"<g></g>\"".into())), elements);
        assert_eq!(excess(uses("\"b\"><!ENTITY c \"&a;&a;\"".into())), elements);
        let attributes = |count: usize| {
            (0..count)
                .map(|n| format!(" a{n}=\"\""))
                .collect::<String>()
        };
        assert_eq!(
            excess(format!(
                "<svg xmlns=\"{SVG}\"><g{}/></svg>",
                attributes(100)
            )),
            None
        );
        let many = format!("<svg xmlns=\"{SVG}\"><g{}/></svg>", attributes(40_000));
        assert_eq!(
            excess(many),
            Some(Undrawn::Excessive("an element has too many attributes"))
        );
        let namespaces = |count: usize| {
            (0..count)
                .map(|n| format!(" xmlns:a{n}=\"u\""))
                .collect::<String>()
        };
        assert_eq!(
            excess(format!("<svg xmlns=\"{SVG}\"{}/>", namespaces(100))),
            None
        );
        let many = format!(
            "<svg xmlns=\"{SVG}\"{}>{}</svg>",
            namespaces(4_000),
            "<g xmlns:b=\"v\"/>".repeat(400)
        );
        assert_eq!(
            excess(many),
            Some(Undrawn::Excessive("it declares too many namespaces"))
        );
        assert_eq!(
            excess(" ".repeat(MOST_BYTES + 1)),
            Some(Undrawn::Excessive("it is larger than 32 MB"))
        );
    }

    #[test]
    fn a_drawing_stays_a_drawing() {
        let inside = "<defs><linearGradient id=\"a\"><stop offset=\"0\" stop-color=\"red\"></stop></linearGradient></defs>\
            <style>.b{fill:url(#a);stroke:#333}</style><g transform=\"scale(2)\" style=\"fill: url('#a')\"><path class=\"b\" d=\"M0 0\"></path>\
            <text x=\"1\">写 &lt; é</text><use xlink:href=\"#a\"></use><image xlink:href=\"data:image/png;base64,iVBORw0=\"></image></g>";
        let (text, left_out) = redrawn(inside);
        assert!(text.contains(inside), "{text}");
        assert_eq!(left_out, Vec::<String>::new());
        let (text, left_out) = redrawn("<switch><foreignObject/><text>shown</text></switch>");
        assert!(text.contains("<text>shown</text>"), "{text}");
        assert_eq!(left_out, ["<foreignObject>"]);
        assert!(
            redraw(b"<html/>").is_err()
                && redraw(b"<svg").is_err()
                && redraw(b"\xff\xfe<").is_err()
        );
    }
}
