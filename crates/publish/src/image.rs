//! Collects the images of a book, checks their types and assigns their published names.
//!
//! A file is published only if its bytes match its extension. `svg` sanitises SVG files, and the
//! caller reads the files.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use quipu_text::{Document, LinkKind};

use crate::diagram::drawing_name;
use crate::links::candidates;
use crate::svg;
use crate::{Book, Chapter, Remark};

const SVG: &str = "image/svg+xml";

/// Image types that every EPUB reader supports: extension, media type and magic numbers.
const KINDS: [(&str, &str, &[&[u8]]); 6] = [
    ("png", "image/png", &[b"\x89PNG\r\n\x1a\n"]),
    ("jpg", "image/jpeg", &[b"\xff\xd8\xff"]),
    ("jpeg", "image/jpeg", &[b"\xff\xd8\xff"]),
    ("gif", "image/gif", &[b"GIF87a", b"GIF89a"]),
    ("webp", "image/webp", &[b"RIFF"]),
    // SVG has no magic number. The parser checks it.
    ("svg", SVG, &[b""]),
];

/// Returns the project paths to try for the images of a chapter.
pub fn images_of(chapter: &Chapter) -> Vec<String> {
    let document = Document::parse(&chapter.text);
    let images = document
        .links()
        .iter()
        .filter(|link| link.kind == LinkKind::Image);
    let paths: BTreeSet<String> = images
        .flat_map(|link| candidates(&chapter.path, &link.path))
        .filter(|path| media_type(path).is_some())
        .collect();
    paths.into_iter().collect()
}

fn media_type(path: &str) -> Option<&'static str> {
    let ending = path.rsplit_once('.')?.1.to_ascii_lowercase();
    KINDS
        .iter()
        .find(|(name, ..)| *name == ending)
        .map(|(_, kind, _)| *kind)
}

/// Returns true if the bytes match the file's extension. A text file named `.png` would break the
/// EPUB.
fn is_what_it_says(path: &str, bytes: &[u8]) -> bool {
    let Some(kind) = media_type(path) else {
        return false;
    };
    KINDS.iter().any(|(_, name, starts)| {
        *name == kind && starts.iter().any(|start| bytes.starts_with(start))
    })
}

pub(crate) struct Image<'b> {
    /// The file name in the image folder.
    pub name: String,
    pub kind: &'static str,
    pub bytes: Cow<'b, [u8]>,
}

/// All images of a book by project path, and the images of diagrams by the diagram's source.
pub(crate) struct Media<'b> {
    folder: String,
    pub images: BTreeMap<&'b str, Image<'b>>,
    /// Remarks about content removed from SVG files.
    pub remarks: Vec<Remark>,
}

impl<'b> Media<'b> {
    pub fn collect(book: &'b Book) -> Media<'b> {
        let mut taken = BTreeSet::new();
        let (mut images, mut remarks) = (BTreeMap::new(), Vec::new());
        for (path, bytes) in &book.images {
            let Some(kind) = media_type(path).filter(|_| is_what_it_says(path, bytes)) else {
                continue;
            };
            let bytes = match kind {
                SVG => {
                    let drawing = match svg::redraw(bytes) {
                        Ok(drawing) => drawing,
                        Err(svg::Undrawn::NoSvg) => continue,
                        Err(svg::Undrawn::Excessive(why)) => {
                            remarks.push(Remark {
                                path: path.clone(),
                                line: 1,
                                what: format!("this drawing is not published: {why}"),
                            });
                            continue;
                        }
                    };
                    if !drawing.left_out.is_empty() {
                        let what = drawing.left_out.into_iter().collect::<Vec<_>>().join(", ");
                        remarks.push(Remark {
                            path: path.clone(),
                            line: 1,
                            what: format!("left out of this drawing: {what}"),
                        });
                    }
                    Cow::Owned(drawing.bytes)
                }
                _ => Cow::Borrowed(bytes.as_slice()),
            };
            let plain: String = path
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() || c == '.' {
                        c
                    } else {
                        '-'
                    }
                })
                .collect();
            let mut name = plain.to_ascii_lowercase();
            let mut count = 1;
            while !taken.insert(name.clone()) {
                count += 1;
                name = format!("{count}-{plain}");
            }
            images.insert(path.as_str(), Image { name, kind, bytes });
        }
        for (diagram, drawn) in &book.drawings {
            if let Ok(bytes) = drawn
                && is_what_it_says("drawing.png", bytes)
            {
                images.insert(
                    diagram.as_str(),
                    Image {
                        name: drawing_name(diagram),
                        kind: "image/png",
                        bytes: Cow::Borrowed(bytes),
                    },
                );
            }
        }
        Media {
            folder: book.places.media.clone(),
            images,
            remarks,
        }
    }

    /// Returns the image that a path in a chapter refers to.
    pub fn find(&self, chapter: &Chapter, path: &str) -> Option<&Image<'b>> {
        candidates(&chapter.path, path)
            .into_iter()
            .find_map(|path| self.images.get(path.as_str()))
    }

    /// Returns the image of a diagram.
    pub fn drawing(&self, diagram: &str) -> Option<&Image<'b>> {
        self.images.get(diagram)
    }

    pub fn place(&self, image: &Image<'_>) -> String {
        format!("{}/{}", self.folder, image.name)
    }

    pub fn files(&self) -> impl Iterator<Item = (String, &[u8])> {
        self.images
            .values()
            .map(|image| (self.place(image), image.bytes.as_ref()))
    }
}
