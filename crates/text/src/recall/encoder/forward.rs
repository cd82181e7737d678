//! The encoder's arithmetic: three convolutions over pieces, a sum, four dense layers, a rotation.
//!
//! All weights stay as they lie in the binary, in 4 and 8 bits, so there is nothing to load. A product
//! rounds its input to 14 bits and runs in whole numbers, which needs no special instructions and no
//! unsafe code to be fast.

use pulp::{Simd, WithSimd};

use super::{floats, take, take_numbers};

const WIDTH: usize = 512;
const BRANCH: usize = 256;
/// Width of each convolution's window and how many pieces of it lie to the left.
const WINDOWS: [(usize, usize); 3] = [(2, 0), (3, 1), (5, 2)];
const FEATURES: usize = WIDTH + WINDOWS.len() * BRANCH;
const EPSILON: f32 = 1e-12;

/// Activations are rounded to whole numbers of at most this size. With weights of at most 127 and
/// sums of at most 1,280 products, nothing overflows 32 bits.
const FINEST: f32 = 8191.0;

/// A matrix in 8 bits, column after column, each with its own scale. It is used where it lies.
struct Matrix<'b> {
    rows: usize,
    columns: usize,
    scales: Vec<f32>,
    codes: &'b [u8],
}

impl<'b> Matrix<'b> {
    fn parse(bytes: &mut &'b [u8]) -> Option<Self> {
        let [rows, columns] = take_numbers(bytes)?.map(|number| number as usize);
        let scales = floats(take(bytes, 4 * columns)?);
        let codes = take(bytes, rows.checked_mul(columns)?)?;
        Some(Self { rows, columns, scales, codes })
    }

    /// `input × self`, added to `out`; both are row after row.
    fn multiply(&self, input: &[f32], out: &mut [f32]) {
        let mut whole = vec![0i16; input.len()];
        let mut steps = Vec::with_capacity(input.len() / self.rows);
        for (row, whole) in input.chunks_exact(self.rows).zip(whole.chunks_exact_mut(self.rows)) {
            let most = row.iter().fold(1e-20f32, |most, value| most.max(value.abs()));
            let scale = FINEST / most;
            for (value, whole) in row.iter().zip(whole) {
                *whole = (value * scale).round_ties_even() as i16;
            }
            steps.push(most / FINEST);
        }
        pulp::Arch::new().dispatch(Product { matrix: self, whole: &whole, steps: &steps, out });
    }

    fn apply(&self, input: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; input.len() / self.rows * self.columns];
        self.multiply(input, &mut out);
        out
    }
}

/// The inner loops of a product, compiled once for every kind of processor and chosen at run time.
struct Product<'p> {
    matrix: &'p Matrix<'p>,
    whole: &'p [i16],
    steps: &'p [f32],
    out: &'p mut [f32],
}

impl WithSimd for Product<'_> {
    type Output = ();

    // Everything within must be inlined: only then is it compiled for the processor at hand.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { matrix, whole, steps, out } = self;
        let (rows, columns) = (matrix.rows, matrix.columns);
        let mut column = vec![0i16; rows];
        for at in 0..columns {
            let codes = &matrix.codes[at * rows..(at + 1) * rows];
            for (wide, code) in column.iter_mut().zip(codes) {
                *wide = i16::from(*code as i8);
            }
            for (place, step) in steps.iter().enumerate() {
                let mut sum = 0i32;
                for (a, b) in whole[place * rows..(place + 1) * rows].iter().zip(&column) {
                    sum += i32::from(*a) * i32::from(*b);
                }
                out[place * columns + at] += sum as f32 * step * matrix.scales[at];
            }
        }
    }
}

pub struct Network<'b> {
    scales: &'b [u8],
    offsets: &'b [u8],
    table: &'b [u8],
    matrices: Vec<Matrix<'b>>,
    vectors: Vec<Vec<f32>>,
}

/// Sizes of the matrices in the model, in their order.
#[rustfmt::skip]
const SHAPES: [(usize, usize); 15] = [
    (WIDTH, 3 * BRANCH), (2 * BRANCH, BRANCH), (3 * BRANCH, BRANCH), (5 * BRANCH, BRANCH), (2 *
    BRANCH, BRANCH), (3 * BRANCH, BRANCH), (5 * BRANCH, BRANCH), (FEATURES, WIDTH), (WIDTH,
    320), (WIDTH, 320), (320, 320), (320, WIDTH), (320, WIDTH), (WIDTH, WIDTH), (WIDTH,
    super::DIMENSIONS),
];
/// Lengths of the vectors in the model, in their order.
#[rustfmt::skip]
const LENGTHS: [usize; 12] = [
    3 * BRANCH, 3 * BRANCH, 3 * BRANCH, BRANCH, BRANCH, BRANCH, BRANCH, BRANCH, BRANCH,
    FEATURES, FEATURES, WIDTH,
];

impl<'b> Network<'b> {
    pub fn parse(bytes: &mut &'b [u8], pieces: usize, matrices: usize) -> Option<Self> {
        let scales = take(bytes, 2 * pieces)?;
        let offsets = take(bytes, 2 * pieces)?;
        let table = take(bytes, pieces * WIDTH / 2)?;
        let matrices = (0..matrices).map(|_| Matrix::parse(bytes)).collect::<Option<Vec<_>>>()?;
        let mut vectors = Vec::new();
        for _ in LENGTHS {
            let [length] = take_numbers(bytes)?;
            vectors.push(floats(take(bytes, 4 * length as usize)?));
        }
        let shapes = matrices.iter().map(|matrix| (matrix.rows, matrix.columns));
        let right = shapes.eq(SHAPES) && vectors.iter().map(Vec::len).eq(LENGTHS);
        right.then_some(Self { scales, offsets, table, matrices, vectors })
    }

    fn unpack(&self, piece: u32, out: &mut [f32]) {
        let at = piece as usize;
        let half = |bytes: &[u8]| half_float(u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]));
        let (scale, offset) = (half(self.scales), half(self.offsets));
        let codes = &self.table[at * WIDTH / 2..(at + 1) * WIDTH / 2];
        for (pair, code) in out.chunks_exact_mut(2).zip(codes) {
            pair[0] = f32::from(code & 15) * scale + offset;
            pair[1] = f32::from(code >> 4) * scale + offset;
        }
    }

    /// The vector of some pieces, not yet of length one.
    pub fn run(&self, ids: &[u32]) -> Vec<f32> {
        let count = ids.len();
        let [project, first @ .., into, d0, p1, d1, d2, p3, d3, rotation] = &self.matrices[..] else {
            unreachable!("the shapes were checked")
        };
        let [bias, gain, shift, biases @ .., all_gain, all_shift, into_bias] = &self.vectors[..] else {
            unreachable!("the lengths were checked")
        };
        let mut pieces = vec![0.0; count * WIDTH];
        for (id, row) in ids.iter().zip(pieces.chunks_exact_mut(WIDTH)) {
            self.unpack(*id, row);
        }
        let mut projected = project.apply(&pieces);
        for row in projected.chunks_exact_mut(3 * BRANCH) {
            add(row, bias);
            layer_norm(row, gain, shift);
        }
        let mut features = vec![0.0; count * FEATURES];
        for (row, piece) in features.chunks_exact_mut(FEATURES).zip(pieces.chunks_exact(WIDTH)) {
            row[..WIDTH].copy_from_slice(piece);
        }
        for (branch, window) in WINDOWS.iter().enumerate() {
            let from = branch * BRANCH;
            let input: Vec<f32> = projected.chunks_exact(3 * BRANCH).flat_map(|row| row[from..from + BRANCH].iter().copied()).collect();
            let once = convolve(&input, *window, &first[branch], &biases[branch]);
            let twice = convolve(&once, *window, &first[3 + branch], &biases[3 + branch]);
            let rows = features.chunks_exact_mut(FEATURES).zip(twice.chunks_exact(BRANCH));
            for (row, value) in rows {
                row[WIDTH + from..WIDTH + from + BRANCH].copy_from_slice(value);
            }
        }
        let mut sum = vec![0.0; FEATURES];
        for row in features.chunks_exact_mut(FEATURES) {
            layer_norm(row, all_gain, all_shift);
            add(&mut sum, row);
        }
        // The sum over pieces and the projection commute: one row instead of `count`.
        let mut mean = into.apply(&sum);
        let pieces = count as f32;
        mean.iter_mut().zip(into_bias).for_each(|(value, bias)| {
            *value = (*value + pieces * bias) / pieces.sqrt();
        });
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

/// One convolution with its bias, rectified and added to its input; beyond the ends it sees zeros.
fn convolve(input: &[f32], (width, left): (usize, usize), weights: &Matrix, bias: &[f32]) -> Vec<f32> {
    let count = input.len() / BRANCH;
    let mut windows = vec![0.0; count * width * BRANCH];
    for (at, window) in windows.chunks_exact_mut(width * BRANCH).enumerate() {
        for (step, slot) in window.chunks_exact_mut(BRANCH).enumerate() {
            if let Some(there) = (at + step).checked_sub(left).filter(|there| *there < count) {
                slot.copy_from_slice(&input[there * BRANCH..(there + 1) * BRANCH]);
            }
        }
    }
    let mut out = weights.apply(&windows);
    for (row, input) in out.chunks_exact_mut(BRANCH).zip(input.chunks_exact(BRANCH)) {
        add(row, bias);
        row.iter_mut().zip(input).for_each(|(value, input)| *value = value.max(0.0) + input);
    }
    out
}

fn positive(mut values: Vec<f32>) -> Vec<f32> {
    values.iter_mut().for_each(|value| *value = value.max(0.0));
    values
}

fn add(row: &mut [f32], other: &[f32]) {
    row.iter_mut().zip(other).for_each(|(value, other)| *value += other);
}

fn layer_norm(row: &mut [f32], gain: &[f32], shift: &[f32]) {
    let count = row.len() as f32;
    let mean = row.iter().sum::<f32>() / count;
    let variance = row.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / count;
    let scale = 1.0 / (variance + EPSILON).sqrt();
    for ((value, gain), shift) in row.iter_mut().zip(gain).zip(shift) {
        *value = (*value - mean) * scale * gain + shift;
    }
}

/// A 16-bit float as NumPy writes it. The model holds no infinities.
fn half_float(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    if exponent == 0 { sign * fraction * 2.0f32.powi(-24) } else { sign * (1.0 + fraction / 1024.0) * 2.0f32.powi(exponent - 15) }
}
