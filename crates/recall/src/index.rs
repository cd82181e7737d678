//! Opens the index for reading and answers questions.
//!
//! A reader loads the manifest and then the segments it names. If a writer deletes a segment in
//! between, the manifest has changed and is read again. Open files stay readable. Text that is not
//! indexed yet is searched as an overlay, by the same rules.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use super::bytes::Source;
use super::dialogue::reads_like_dialogue;
use super::direction::Direction;
use super::encoder::Encoder;
use super::manifest::{Catalogue, Covered, Extent, Manifest, Named};
use super::meaning::Lengths;
use super::question::Question;
use super::rank::{self, Ranked};
use super::scope::{Layer, Layout, Scope};
use super::segment::{Builder, Segment, TermSet};
use super::snippet::snippet;
use super::terms::{Reader, differ_in_script};
use super::vectors::{self, Vectors};
use super::{Answer, Candidate, Damage, Error, Explained, FileText, Hit, Options, Tier, weights};

pub(super) const MANIFEST: &str = "manifest";
/// The maximum number of sections of an index that a long-running process caches in memory, about
/// 30 MB.
const KEPT_SECTIONS: usize = 60_000;
/// The maximum number of attempts while writers keep replacing files.
const ATTEMPTS: usize = 20;

pub(super) fn segment_path(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id:08}.seg"))
}

pub(super) fn vectors_path(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id:08}.vec"))
}

/// Opens the vectors of a segment, if there are any for this model.
pub(super) fn open_vectors(folder: &Path, id: u64, stamp: u64) -> Option<Vectors> {
    Vectors::open(Source::open(&vectors_path(folder, id)).ok()?, stamp)
}

/// Loads a consistent snapshot of the manifest and its segments.
pub(super) fn load(folder: &Path) -> Result<(Catalogue, Vec<Segment>), Error> {
    let damaged = |damage| Error::Damaged {
        folder: folder.to_owned(),
        damage,
    };
    let mut damage = Damage::Short;
    let mut before = None;
    for _ in 0..ATTEMPTS {
        let mut file = match File::open(folder.join(MANIFEST)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::Missing(folder.to_owned()));
            }
            opened => opened?,
        };
        let len = file.metadata()?.len();
        let catalogue = Catalogue::read(&mut file, len).map_err(damaged)?;
        // The manifest did not change, so this is damage and not a race.
        if before == Some(catalogue.mark()) {
            break;
        }
        before = Some(catalogue.mark());
        match catalogue
            .segments
            .iter()
            .map(|named| open(folder, named))
            .collect()
        {
            Ok(segments) => return Ok((catalogue, segments)),
            Err(found) => damage = found,
        }
    }
    Err(damaged(damage))
}

fn open(folder: &Path, named: &Named) -> Result<Segment, Damage> {
    let source = Source::open(&segment_path(folder, named.id)).map_err(|_| Damage::Short)?;
    let segment = Segment::open(source)?;
    if segment.stamp() == named.stamp {
        Ok(segment)
    } else {
        Err(Damage::Checksum)
    }
}

/// New and deleted files that are not in the index yet, ready to be searched with it.
#[derive(Debug, Default)]
pub struct Overlay {
    catalogue: Catalogue,
    segments: Vec<Segment>,
    vectors: Vec<Option<Vectors>>,
    gone: HashSet<String>,
}

impl Overlay {
    /// Reads new file versions. They hide the indexed versions, and `gone` hides deleted files.
    pub fn new(fresh: &[FileText], gone: &[String]) -> Result<Self, Damage> {
        let mut overlay = Self {
            gone: gone.iter().cloned().collect(),
            ..Self::default()
        };
        if fresh.is_empty() {
            return Ok(overlay);
        }
        let mut manifest = Manifest::default();
        let (mut builder, mut reader) = (Builder::default(), Reader::new());
        for file in fresh {
            let first = builder.sections();
            let is_turn = reads_like_dialogue(&file.sections);
            let add = |section| u64::from(builder.add(&file.path, section, is_turn, &mut reader));
            let terms = file.sections.iter().map(add).sum();
            let extents = vec![Extent {
                segment: 0,
                first,
                count: builder.sections() - first,
            }];
            let (version, tier) = (file.version.clone(), file.tier);
            manifest.set(
                &file.path,
                Covered {
                    version,
                    tier,
                    terms,
                    extents,
                },
            );
        }
        let segment = Segment::open(Source::Memory(builder.finish().into()))?;
        manifest.segments.push(Named {
            id: 0,
            stamp: segment.stamp(),
        });
        let rendered = manifest.render();
        overlay.catalogue = Catalogue::read(&mut &rendered[..], rendered.len() as u64)?;
        overlay.segments.push(segment);
        overlay.vectors.push(None);
        Ok(overlay)
    }

    /// Encodes up to `limit` of the overlay's sections.
    pub fn encode(&mut self, mut limit: usize) -> Result<(), Damage> {
        for (segment, vectors) in self.segments.iter().zip(&mut self.vectors) {
            let mut known = HashMap::new();
            let (blocks, _) =
                vectors::complete(segment, vectors.as_ref(), &mut known, &|_| true, &mut limit)?;
            let bytes = vectors::render(segment.stamp(), &blocks);
            *vectors = Vectors::open(Source::Memory(bytes.into()), segment.stamp());
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.segments.is_empty()
    }

    fn hides(&self, path: &str) -> bool {
        self.gone.contains(path) || self.catalogue.file(path).is_some()
    }
}

/// An open index. It is a snapshot; open it again to see later updates.
#[derive(Debug, Default)]
pub struct Index {
    folder: PathBuf,
    catalogue: Catalogue,
    segments: Vec<Segment>,
    /// Opened by the first question that needs them.
    vectors: OnceLock<Vec<Option<Vectors>>>,
    /// The layout of all files, for questions without a filter.
    layout: OnceLock<Layout>,
    /// Cached context lengths for such questions.
    lengths: Lengths,
    /// Cached word stems.
    reader: Mutex<Reader>,
    /// True after the first question, when more are likely to follow.
    asked: AtomicBool,
}

impl Index {
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let (catalogue, segments) = load(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            catalogue,
            segments,
            ..Self::default()
        })
    }

    /// Returns an index without files, to search only an overlay.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns the indexed version of a file. Compare it with the file's version to detect an
    /// outdated answer.
    #[must_use]
    pub fn version(&self, path: &str) -> Option<&str> {
        self.catalogue.file(path).map(|file| file.version)
    }

    /// Returns all indexed files with version and tier, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str, Tier)> {
        self.catalogue
            .entries()
            .map(|file| (file.path, file.version, file.tier))
    }

    /// Returns a fingerprint of the index contents.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.catalogue.mark()
    }

    /// Returns the size of the index on disk, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.segments.iter().map(Segment::size).sum()
    }

    /// Returns the number of sections in all segments, including dead ones.
    #[must_use]
    pub fn sections(&self) -> usize {
        self.segments
            .iter()
            .map(|segment| segment.sections() as usize)
            .sum()
    }

    #[must_use]
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Returns the sections that best answer `question`.
    pub fn recall(&self, question: &str, options: &Options) -> Result<Answer, Error> {
        self.recall_with(&Overlay::default(), question, options)
    }

    /// Like `recall`, with an overlay of newer text.
    pub fn recall_with(
        &self,
        overlay: &Overlay,
        question: &str,
        options: &Options,
    ) -> Result<Answer, Error> {
        self.answer(overlay, question, options)
            .map_err(|damage| self.damaged(damage))
    }

    fn answer(
        &self,
        overlay: &Overlay,
        question: &str,
        options: &Options,
    ) -> Result<Answer, Damage> {
        let again = self.asked.swap(true, Ordering::Relaxed);
        if again {
            self.settle_in()?;
        }
        let scope = self.scope(overlay, options)?;
        // If another question is running, use a separate reader.
        let mut own = None;
        let mut shared = self.reader.try_lock().ok();
        let reader = match shared.as_deref_mut() {
            Some(reader) => reader,
            None => own.insert(Reader::new()),
        };
        let asked = Question::read(question, options.as_of, &scope, reader)?;
        let first = asked.first_scores(&scope, options.k);
        let direction = self.direction(overlay, question, options, again);
        let ranked = rank::rank(&scope, &asked, first, reader, direction.as_ref(), options.k)?;
        let weights = match direction {
            Some(_) => &weights::MEANING,
            None => &weights::WORDS,
        };
        let said: TermSet = asked.said.iter().copied().collect();
        let mut hits = Vec::new();
        let mut best = if asked.asks_several {
            let among = options.k.max(rank::SPREAD);
            rank::spread(&scope, ranked.best(&scope, weights, among))
        } else {
            ranked.best(&scope, weights, options.k)
        };
        best.truncate(options.k);
        for (score, slot) in best {
            let (_, segment, number) = scope.place(slot);
            let row = segment.row(number)?;
            let (heading_path, text) = segment.record(&row)?;
            let file = scope.file(slot).ok_or(Damage::Short)?;
            hits.push(Hit {
                path: file.path.to_owned(),
                line: row.line,
                heading_path,
                tier: file.tier,
                score,
                weak: ranked.is_weak(slot, asked.how_much, differ_in_script(question, &text)),
                snippet: snippet(&text, &said, reader),
                version: file.version.to_owned(),
                ordinal: scope.position(slot).1,
            });
        }
        let sections = scope.sections() as usize;
        let encoded = direction.map_or(0, |direction| direction.covers(&scope));
        Ok(Answer {
            hits,
            files: scope.files(),
            sections,
            encoded,
        })
    }

    /// Returns all feature values of the ranked sections, for fitting the weights.
    pub fn explain(&self, question: &str, options: &Options) -> Result<Explained, Error> {
        let overlay = Overlay::default();
        let explained = || {
            let scope = self.scope(&overlay, options)?;
            let mut reader = Reader::new();
            let asked = Question::read(question, options.as_of, &scope, &mut reader)?;
            let first = asked.first_scores(&scope, options.k);
            let direction = self.direction(&overlay, question, options, false);
            let Ranked { candidates, turns } = rank::rank(
                &scope,
                &asked,
                first,
                &mut reader,
                direction.as_ref(),
                options.k,
            )?;
            let mut out = Vec::new();
            for ((slot, features), is_turn) in candidates.into_iter().zip(turns) {
                let file = scope.file(slot).ok_or(Damage::Short)?;
                let (_, segment, number) = scope.place(slot);
                out.push(Candidate {
                    path: file.path.to_owned(),
                    line: segment.row(number)?.line,
                    features: features.to_vec(),
                    is_turn,
                });
            }
            Ok(Explained {
                known: asked.how_much.known,
                weight: asked.how_much.weight,
                candidates: out,
            })
        };
        explained().map_err(|damage| self.damaged(damage))
    }

    /// Caches data that every question reads, if the project is small enough.
    fn settle_in(&self) -> Result<(), Damage> {
        if self.sections() <= KEPT_SECTIONS {
            self.segments.iter().try_for_each(Segment::keep)?;
        }
        Ok(())
    }

    fn scope<'i>(&'i self, overlay: &'i Overlay, options: &Options) -> Result<Scope<'i>, Damage> {
        let layers: Vec<Layer<'i>> = vec![
            (&self.catalogue, &self.segments[..]),
            (&overlay.catalogue, &overlay.segments[..]),
        ];
        let hidden = |layer: usize, path: &str| layer == 0 && overlay.hides(path);
        if options.visible.is_some() || !overlay.is_empty() {
            let layout = Layout::new(&layers, &hidden, options.visible)?;
            return Ok(Scope::new(layers, Cow::Owned(layout)));
        }
        let layout = match self.layout.get() {
            Some(layout) => layout,
            None => {
                let made = Layout::new(&layers, &hidden, None)?;
                self.layout.get_or_init(|| made)
            }
        };
        Ok(Scope::new(layers, Cow::Borrowed(layout)))
    }

    /// Returns the query vector, if the encoder is enabled and any section is encoded.
    fn direction<'i>(
        &'i self,
        overlay: &'i Overlay,
        question: &str,
        options: &Options,
        keep: bool,
    ) -> Option<Direction<'i>> {
        if !options.use_model {
            return None;
        }
        let own = self.vectors.get_or_init(|| {
            let named = self.catalogue.segments.iter();
            named
                .map(|named| open_vectors(&self.folder, named.id, named.stamp))
                .collect()
        });
        let all: Vec<_> = own
            .iter()
            .chain(&overlay.vectors)
            .map(Option::as_ref)
            .collect();
        if all.iter().all(Option::is_none) {
            return None;
        }
        let lengths =
            (keep && options.visible.is_none() && overlay.is_empty()).then_some(&self.lengths);
        Some(Direction::new(
            Encoder::built_in()?,
            question,
            all,
            keep,
            lengths,
        ))
    }

    fn damaged(&self, damage: Damage) -> Error {
        Error::Damaged {
            folder: self.folder.clone(),
            damage,
        }
    }
}
