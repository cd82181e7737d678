//! The forward pass of the encoder: three convolutions over word pieces, a sum, four dense layers
//! and a rotation.
//!
//! All weights are used directly from the binary, in 4 and 8 bits, so nothing is loaded. Many texts
//! are encoded at once. The output of the layers up to the first convolution depends only on the
//! piece, not on its context, so it is computed once per piece and cached.

use std::collections::HashMap;

use super::super::wide::{Width, Work, dot, sum, wide};
use super::product::{Matrix, NOWHERE, Whole};
use super::{floats, take, take_numbers};

const WIDTH: usize = 512;
const BRANCH: usize = 256;
/// The width of each convolution's window, and the number of its pieces to the left.
const WINDOWS: [(usize, usize); 3] = [(2, 0), (3, 1), (5, 2)];
const BRANCHES: usize = WINDOWS.len() * BRANCH;
const FEATURES: usize = WIDTH + BRANCHES;
/// Cached values per piece: its projection, and its contribution to each position of each window.
const KEPT: usize = BRANCHES + (2 + 3 + 5) * BRANCH;
const EPSILON: f32 = 1e-12;
/// The maximum number of cached pieces, about 27 MB. A thousand pieces make up most text of a
/// language.
const MOST_KEPT: usize = 2048;

pub struct Network<'b> {
    scales: &'b [u8],
    offsets: &'b [u8],
    table: &'b [u8],
    matrices: Vec<Matrix<'b>>,
    vectors: Vec<Vec<f32>>,
}

/// A cache of the first layers' output by piece. It does not affect the results.
#[derive(Default)]
pub struct Met {
    places: HashMap<u32, usize>,
    rows: Vec<f32>,
}

impl Met {
    #[inline(always)]
    fn row(&self, piece: u32) -> &[f32] {
        &self.rows[self.places[&piece] * KEPT..][..KEPT]
    }
}

/// The shapes of the model's matrices, in order.
#[rustfmt::skip]
const SHAPES: [(usize, usize); 15] = [
    (WIDTH, BRANCHES), (2 * BRANCH, BRANCH), (3 * BRANCH, BRANCH), (5 * BRANCH, BRANCH), (2 *
    BRANCH, BRANCH), (3 * BRANCH, BRANCH), (5 * BRANCH, BRANCH), (FEATURES, WIDTH), (WIDTH,
    320), (WIDTH, 320), (320, 320), (320, WIDTH), (320, WIDTH), (WIDTH, WIDTH), (WIDTH,
    super::DIMENSIONS),
];
/// The lengths of the model's vectors, in order.
#[rustfmt::skip]
const LENGTHS: [usize; 12] = [
    BRANCHES, BRANCHES, BRANCHES, BRANCH, BRANCH, BRANCH, BRANCH, BRANCH, BRANCH,
    FEATURES, FEATURES, WIDTH,
];

impl<'b> Network<'b> {
    pub fn parse(bytes: &mut &'b [u8], pieces: usize, matrices: usize) -> Option<Self> {
        let scales = take(bytes, 2 * pieces)?;
        let offsets = take(bytes, 2 * pieces)?;
        let table = take(bytes, pieces * WIDTH / 2)?;
        let matrices = (0..matrices)
            .map(|_| Matrix::parse(bytes))
            .collect::<Option<Vec<_>>>()?;
        let mut vectors = Vec::new();
        for _ in LENGTHS {
            let [length] = take_numbers(bytes)?;
            vectors.push(floats(take(bytes, 4 * length as usize)?));
        }
        let shapes = matrices.iter().map(|matrix| (matrix.rows, matrix.columns));
        let right = shapes.eq(SHAPES) && vectors.iter().map(Vec::len).eq(LENGTHS);
        right.then_some(Self {
            scales,
            offsets,
            table,
            matrices,
            vectors,
        })
    }

    /// Returns the vectors of some texts, given as pieces. They are concatenated and not
    /// normalised.
    pub fn run(&self, texts: &[Vec<u32>], met: &mut Met) -> Vec<f32> {
        let mut fresh: Vec<u32> = texts.iter().flatten().copied().collect();
        fresh.sort_unstable();
        fresh.dedup();
        if met.places.len() + fresh.len() > MOST_KEPT {
            *met = Met::default();
        }
        fresh.retain(|piece| !met.places.contains_key(piece));
        if !fresh.is_empty() {
            wide(Meet {
                network: self,
                fresh: &fresh,
                met,
            });
        }
        wide(Encode {
            network: self,
            texts,
            met,
        })
    }

    #[inline(always)]
    fn unpack(&self, piece: u32, out: &mut [f32]) {
        let at = piece as usize;
        let half =
            |bytes: &[u8]| half_float(u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]));
        let (scale, offset) = (half(self.scales), half(self.offsets));
        let codes = &self.table[at * WIDTH / 2..(at + 1) * WIDTH / 2];
        for (pair, code) in out.chunks_exact_mut(2).zip(codes) {
            pair[0] = f32::from(code & 15) * scale + offset;
            pair[1] = f32::from(code >> 4) * scale + offset;
        }
    }
}

/// Computes the first layers for pieces that are not cached.
struct Meet<'m> {
    network: &'m Network<'m>,
    fresh: &'m [u32],
    met: &'m mut Met,
}

impl Work for Meet<'_> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, _: W) {
        let Self {
            network,
            fresh,
            met,
        } = self;
        let [project, first @ ..] = &network.matrices[..] else {
            unreachable!("the shapes were checked")
        };
        let [bias, gain, shift, ..] = &network.vectors[..] else {
            unreachable!("the lengths were checked")
        };
        let mut pieces = vec![0.0; fresh.len() * WIDTH];
        for (piece, row) in fresh.iter().zip(pieces.chunks_exact_mut(WIDTH)) {
            network.unpack(*piece, row);
        }
        let mut projected = project.apply(&pieces);
        for row in projected.chunks_exact_mut(BRANCHES) {
            add(row, bias);
            layer_norm(row, gain, shift);
        }
        let before = met.rows.len();
        met.rows.resize(before + fresh.len() * KEPT, 0.0);
        let kept = &mut met.rows[before..];
        for (kept, row) in kept
            .chunks_exact_mut(KEPT)
            .zip(projected.chunks_exact(BRANCHES))
        {
            kept[..BRANCHES].copy_from_slice(row);
        }
        let mut start = BRANCHES;
        for (branch, (width, _)) in WINDOWS.iter().enumerate() {
            let from = branch * BRANCH;
            let whole = Whole::round(
                BRANCH,
                projected
                    .chunks_exact(BRANCHES)
                    .map(|row| &row[from..from + BRANCH]),
            );
            let starts: Vec<usize> = (0..*width)
                .flat_map(|step| {
                    (0..fresh.len()).map(move |row| row * KEPT + start + step * BRANCH)
                })
                .collect();
            first[branch].add_products(&whole, &starts, kept);
            start += width * BRANCH;
        }
        let place = before / KEPT;
        met.places.extend(
            fresh
                .iter()
                .zip(place..)
                .map(|(piece, place)| (*piece, place)),
        );
    }
}

/// Computes the remaining layers for all texts together.
struct Encode<'e> {
    network: &'e Network<'e>,
    texts: &'e [Vec<u32>],
    met: &'e Met,
}

impl Work for Encode<'_> {
    type Out = Vec<f32>;

    #[inline(always)]
    fn work<W: Width>(self, _: W) -> Vec<f32> {
        let Self {
            network,
            texts,
            met,
        } = self;
        let [_, first @ .., into, d0, p1, d1, d2, p3, d3, rotation] = &network.matrices[..] else {
            unreachable!("the shapes were checked")
        };
        let [_, _, _, biases @ .., all_gain, all_shift, into_bias] = &network.vectors[..] else {
            unreachable!("the lengths were checked")
        };
        let places: usize = texts.iter().map(Vec::len).sum();
        let mut features = vec![0.0; places * FEATURES];
        let mut once = vec![0.0; places * BRANCHES];
        let mut at = 0;
        for text in texts {
            let rows: Vec<&[f32]> = text.iter().map(|piece| met.row(*piece)).collect();
            for place in 0..text.len() {
                let out = &mut once[(at + place) * BRANCHES..][..BRANCHES];
                let mut start = BRANCHES;
                for (branch, (width, left)) in WINDOWS.iter().enumerate() {
                    let out = &mut out[branch * BRANCH..][..BRANCH];
                    out.copy_from_slice(&biases[branch]);
                    for step in 0..*width {
                        if let Some(row) = (place + step)
                            .checked_sub(*left)
                            .and_then(|there| rows.get(there))
                        {
                            add(out, &row[start + step * BRANCH..][..BRANCH]);
                        }
                    }
                    start += width * BRANCH;
                    rectify(out, &rows[place][branch * BRANCH..][..BRANCH]);
                }
                network.unpack(
                    text[place],
                    &mut features[(at + place) * FEATURES..][..WIDTH],
                );
            }
            at += text.len();
        }
        // The begin and end of the text at each position, to clip windows to their text.
        let mut ends = Vec::with_capacity(places);
        let mut end = 0;
        for text in texts {
            let begin = end;
            end += text.len();
            ends.extend((begin..end).map(|_| (begin, end)));
        }
        for (branch, (width, left)) in WINDOWS.iter().enumerate() {
            let from = branch * BRANCH;
            let whole = Whole::round(
                BRANCH,
                once.chunks_exact(BRANCHES)
                    .map(|row| &row[from..from + BRANCH]),
            );
            let start = |step: usize, row: usize| {
                let (begin, end) = ends[row];
                let there = (row + left)
                    .checked_sub(step)
                    .filter(|there| (begin..end).contains(there));
                there.map_or(NOWHERE, |there| there * FEATURES + WIDTH + from)
            };
            let starts: Vec<usize> = (0..*width)
                .flat_map(|step| (0..places).map(move |row| start(step, row)))
                .collect();
            first[3 + branch].add_products(&whole, &starts, &mut features);
            for (row, once) in features
                .chunks_exact_mut(FEATURES)
                .zip(once.chunks_exact(BRANCHES))
            {
                let row = &mut row[WIDTH + from..][..BRANCH];
                add(row, &biases[3 + branch]);
                rectify(row, &once[from..from + BRANCH]);
            }
        }
        // The sum over pieces and the projection commute, so project one row per text.
        let mut sums = vec![0.0; texts.len() * FEATURES];
        let mut rows = features.chunks_exact_mut(FEATURES);
        for (text, sum) in texts.iter().zip(sums.chunks_exact_mut(FEATURES)) {
            for row in rows.by_ref().take(text.len()) {
                layer_norm(row, all_gain, all_shift);
                add(sum, row);
            }
        }
        let mut mean = into.apply(&sums);
        for (text, mean) in texts.iter().zip(mean.chunks_exact_mut(WIDTH)) {
            let pieces = text.len() as f32;
            let root = pieces.sqrt();
            mean.iter_mut()
                .zip(into_bias)
                .for_each(|(value, bias)| *value = (*value + pieces * bias) / root);
        }
        let y0 = positive(d0.apply(&mean));
        let mut y1 = p1.apply(&mean);
        d1.multiply(&y0, &mut y1);
        let y1 = positive(y1);
        let y2 = positive(d2.apply(&y1));
        let mut last = p3.apply(&y1);
        d3.multiply(&y2, &mut last);
        last.iter_mut().for_each(|value| *value = value.tanh());
        rotation.apply(&last)
    }
}

/// Applies ReLU and adds the input (a residual connection).
#[inline(always)]
fn rectify(row: &mut [f32], input: &[f32]) {
    row.iter_mut()
        .zip(input)
        .for_each(|(value, input)| *value = value.max(0.0) + input);
}

#[inline(always)]
fn positive(mut values: Vec<f32>) -> Vec<f32> {
    values.iter_mut().for_each(|value| *value = value.max(0.0));
    values
}

#[inline(always)]
fn add(row: &mut [f32], other: &[f32]) {
    row.iter_mut()
        .zip(other)
        .for_each(|(value, other)| *value += other);
}

#[inline(always)]
fn layer_norm(row: &mut [f32], gain: &[f32], shift: &[f32]) {
    let count = row.len() as f32;
    let mean = sum(row) / count;
    row.iter_mut().for_each(|value| *value -= mean);
    let scale = 1.0 / (dot(row, row) / count + EPSILON).sqrt();
    for ((value, gain), shift) in row.iter_mut().zip(gain).zip(shift) {
        *value = *value * scale * gain + shift;
    }
}

/// Converts a 16-bit float. The model contains no infinities.
fn half_float(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    if exponent == 0 {
        sign * fraction * 2.0f32.powi(-24)
    } else {
        sign * (1.0 + fraction / 1024.0) * 2.0f32.powi(exponent - 15)
    }
}
