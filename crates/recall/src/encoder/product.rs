//! Integer matrix products: many rows of activations with an 8-bit matrix.
//!
//! Rows are rounded to 14 bits. For many rows, sixteen columns at a time are widened and multiplied
//! with four rows at a time, so that both stay in the L1 cache and results are written in whole
//! cache lines. For a few rows, the columns are widened in registers, directly from the model.

use super::super::wide::{Width, Work, most, wide};
use super::{floats, take, take_numbers};

/// The largest quantised activation. With weights of at most 127 and sums of at most 1,280
/// products, nothing overflows 32 bits.
const FINEST: f32 = 8191.0;
/// Adding this to a small float leaves the nearest integer in the low bits.
const ROUND: f32 = 12_582_912.0;
/// Columns per tile. Every matrix has a multiple of them.
pub const TILE: usize = 16;
/// Rows that are multiplied with a column together.
const ROWS: usize = 4;
/// Up to this many rows count as a single question. Widening columns in advance would then cost
/// more than it saves.
const FEW: usize = 24;
/// The maximum number of parts of a column: the widest window of a convolution.
const MOST_PARTS: usize = 5;

/// Quantised rows, with the quantisation step of each.
pub struct Whole {
    depth: usize,
    codes: Vec<i16>,
    steps: Vec<f32>,
}

impl Whole {
    #[inline(always)]
    pub fn round<'r>(depth: usize, rows: impl ExactSizeIterator<Item = &'r [f32]>) -> Self {
        let mut codes = vec![0i16; depth * rows.len()];
        let mut steps = Vec::with_capacity(rows.len());
        for (row, codes) in rows.zip(codes.chunks_exact_mut(depth)) {
            let most = most(row, 1e-20);
            let scale = FINEST / most;
            for (value, code) in row.iter().zip(codes) {
                *code = (value * scale + ROUND).to_bits() as i16;
            }
            steps.push(most / FINEST);
        }
        Self {
            depth,
            codes,
            steps,
        }
    }

    #[inline(always)]
    fn row(&self, at: usize) -> &[i16] {
        &self.codes[at * self.depth..(at + 1) * self.depth]
    }
}

/// An 8-bit matrix in column order, with a scale for each column. It borrows the model's bytes.
pub struct Matrix<'b> {
    pub rows: usize,
    pub columns: usize,
    scales: Vec<f32>,
    codes: &'b [u8],
}

impl<'b> Matrix<'b> {
    pub fn parse(bytes: &mut &'b [u8]) -> Option<Self> {
        let [rows, columns] = take_numbers(bytes)?.map(|number| number as usize);
        let scales = floats(take(bytes, 4 * columns)?);
        let codes = take(bytes, rows.checked_mul(columns)?)?;
        Some(Self {
            rows,
            columns,
            scales,
            codes,
        })
    }

    /// Multiplies each row of `input` with each part of the columns of the same length and adds the
    /// products to `out`. `starts` gives, for each part and row, the offset in `out`; [`NOWHERE`]
    /// skips it. Parts are added in order and products are integers, so the code path does not
    /// affect the result.
    ///
    /// This function is compiled once per processor type, not inlined into its callers, because it
    /// takes the compiler longer than everything else.
    pub fn add_products(&self, input: &Whole, starts: &[usize], out: &mut [f32]) {
        wide(Products {
            matrix: self,
            input,
            sink: Sink { starts, out },
        });
    }

    #[inline(always)]
    fn column(&self, at: usize, part: usize, depth: usize) -> &[u8] {
        &self.codes[at * self.rows + part * depth..][..depth]
    }

    /// Handles a single question: multiplies its rows with the columns in memory order and
    /// prefetches the next columns, because the weights of all layers exceed the L1 and L2 caches.
    #[inline(always)]
    fn few_rows<W: Width>(&self, width: W, input: &Whole, parts: usize, sink: &mut Sink<'_>) {
        let count = input.steps.len();
        // Rows per step, so that all groups have about the same size.
        let group = count.div_ceil(count.div_ceil(W::ROWS).max(1));
        let mut tiles = [[[0.0f32; TILE]; FEW]; MOST_PARTS];
        for first in (0..self.columns).step_by(TILE) {
            for from in (0..TILE).step_by(4) {
                let next = self
                    .codes
                    .get((first + from + 4) * self.rows..)
                    .unwrap_or_default();
                for (part, tiles) in tiles[..parts].iter_mut().enumerate() {
                    let four = [
                        self.column(first + from, part, input.depth),
                        self.column(first + from + 1, part, input.depth),
                        self.column(first + from + 2, part, input.depth),
                        self.column(first + from + 3, part, input.depth),
                    ];
                    // Each part prefetches its share of the next four columns.
                    let mut ahead = next
                        .get(part * 4 * input.depth..(part + 1) * 4 * input.depth)
                        .unwrap_or_default();
                    let mut at = 0;
                    while at < count {
                        let tiles = &mut tiles[at..];
                        match group.min(count - at) {
                            4 => {
                                let rows = [
                                    input.row(at),
                                    input.row(at + 1),
                                    input.row(at + 2),
                                    input.row(at + 3),
                                ];
                                put(tiles, from, width.few_products(rows, four, ahead));
                            }
                            3 => put(
                                tiles,
                                from,
                                width.few_products(
                                    [input.row(at), input.row(at + 1), input.row(at + 2)],
                                    four,
                                    ahead,
                                ),
                            ),
                            2 => put(
                                tiles,
                                from,
                                width.few_products([input.row(at), input.row(at + 1)], four, ahead),
                            ),
                            _ => put(
                                tiles,
                                from,
                                width.few_products([input.row(at)], four, ahead),
                            ),
                        }
                        ahead = &[];
                        at += group;
                    }
                }
            }
            for (part, tiles) in tiles[..parts].iter_mut().enumerate() {
                for (at, tile) in tiles[..count].iter_mut().enumerate() {
                    scale(tile, input.steps[at], &self.scales[first..first + TILE]);
                    sink.add(part * count + at, first, tile);
                }
            }
        }
    }

    #[inline(always)]
    fn many_rows<W: Width>(
        &self,
        width: W,
        input: &Whole,
        first: usize,
        part: usize,
        wide: &mut [i16],
        sink: &mut Sink<'_>,
    ) {
        let depth = input.depth;
        for (at, wide) in wide.chunks_exact_mut(depth).enumerate() {
            let start = (first + at) * self.rows + part * depth;
            for (wide, code) in wide.iter_mut().zip(&self.codes[start..start + depth]) {
                *wide = i16::from(*code as i8);
            }
        }
        let column = |at: usize| &wide[at * depth..(at + 1) * depth];
        let row = |at: usize| &input.codes[at * depth..(at + 1) * depth];
        let scales = &self.scales[first..first + TILE];
        let count = input.steps.len();
        let many = count / ROWS * ROWS;
        for at in (0..many).step_by(ROWS) {
            let mut tiles = [[0.0f32; TILE]; ROWS];
            for pair in (0..TILE).step_by(2) {
                let sums = width.products(
                    [row(at), row(at + 1), row(at + 2), row(at + 3)],
                    [column(pair), column(pair + 1)],
                );
                for (place, tile) in tiles.iter_mut().enumerate() {
                    tile[pair] = sums[0][place] as f32;
                    tile[pair + 1] = sums[1][place] as f32;
                }
            }
            for (place, tile) in tiles.iter_mut().enumerate() {
                scale(tile, input.steps[at + place], scales);
                sink.add(part * count + at + place, first, tile);
            }
        }
        for at in many..count {
            let mut tile = [0.0f32; TILE];
            for four in (0..TILE).step_by(4) {
                let columns = [
                    column(four),
                    column(four + 1),
                    column(four + 2),
                    column(four + 3),
                ];
                let [sums] = width.products(columns, [row(at)]);
                tile[four..four + 4].copy_from_slice(&sums.map(|sum| sum as f32));
            }
            scale(&mut tile, input.steps[at], scales);
            sink.add(part * count + at, first, &tile);
        }
    }

    /// Adds `input × self` to `out`. Both are in row order.
    #[inline(always)]
    pub fn multiply(&self, input: &[f32], out: &mut [f32]) {
        let whole = Whole::round(self.rows, input.chunks_exact(self.rows));
        let starts: Vec<usize> = (0..whole.steps.len())
            .map(|row| row * self.columns)
            .collect();
        self.add_products(&whole, &starts, out);
    }

    #[inline(always)]
    pub fn apply(&self, input: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; input.len() / self.rows * self.columns];
        self.multiply(input, &mut out);
        out
    }
}

/// The offset of a product that is dropped.
pub const NOWHERE: usize = usize::MAX;

/// The destination of products.
struct Sink<'s> {
    starts: &'s [usize],
    out: &'s mut [f32],
}

impl Sink<'_> {
    #[inline(always)]
    fn add(&mut self, which: usize, first: usize, tile: &[f32; TILE]) {
        let start = self.starts[which];
        if start != NOWHERE {
            let out = &mut self.out[start + first..][..TILE];
            out.iter_mut()
                .zip(tile)
                .for_each(|(out, value)| *out += value);
        }
    }
}

struct Products<'t, 'b> {
    matrix: &'t Matrix<'b>,
    input: &'t Whole,
    sink: Sink<'t>,
}

impl Work for Products<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, width: W) {
        let Self {
            matrix,
            input,
            mut sink,
        } = self;
        let depth = input.depth;
        let parts = matrix.rows / depth;
        if input.steps.len() <= FEW {
            return matrix.few_rows(width, input, parts, &mut sink);
        }
        let mut wide = vec![0i16; TILE * depth];
        for part in 0..parts {
            for first in (0..matrix.columns).step_by(TILE) {
                matrix.many_rows(width, input, first, part, &mut wide, &mut sink);
            }
        }
    }
}

/// Stores four sums in the tile of each row.
#[inline(always)]
fn put<const R: usize>(tiles: &mut [[f32; TILE]], from: usize, sums: [[i32; 4]; R]) {
    for (tile, sums) in tiles.iter_mut().zip(sums) {
        for at in 0..4 {
            tile[from + at] = sums[at] as f32;
        }
    }
}

#[inline(always)]
fn scale(tile: &mut [f32; TILE], step: f32, scales: &[f32]) {
    tile.iter_mut()
        .zip(scales)
        .for_each(|(value, scale)| *value = *value * step * scale);
}
