//! Arithmetic over many numbers, compiled for several kinds of processor and chosen at run time.
//!
//! Whole numbers are exact in any order. Sums of fractions run in sixteen lanes whose order is written
//! down. So equal input gives equal bits on every processor: wide registers only make it faster.

/// Work that is compiled for wide registers where there are any.
///
/// Everything it calls in its loops must be inlined always: only then is it compiled so.
pub trait Work {
    /// What comes out.
    type Out;
    /// Does it.
    fn work<W: Width>(self, width: W) -> Self::Out;
}

/// Inner products of whole numbers, as a kind of processor does them best.
pub trait Width: Copy {
    /// Four rows with each of some columns.
    fn products<const C: usize>(self, four: [&[i16]; 4], columns: [&[i16]; C]) -> [[i32; 4]; C];
    /// A few rows with each of four columns of 8 bits.
    fn few_products<const R: usize>(self, rows: [&[i16]; R], four: [&[u8]; 4]) -> [[i32; 4]; R];
    /// Numbers of 8 bits with numbers of 16 bits.
    fn product(self, small: &[u8], large: &[i16]) -> i32;
}

/// Whatever the compiler makes of it.
#[derive(Clone, Copy)]
struct Plain;

impl Width for Plain {
    #[inline(always)]
    fn products<const C: usize>(self, four: [&[i16]; 4], columns: [&[i16]; C]) -> [[i32; 4]; C] {
        columns.map(|column| four.map(|row| row.iter().zip(column).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()))
    }

    #[inline(always)]
    fn few_products<const R: usize>(self, rows: [&[i16]; R], four: [&[u8]; 4]) -> [[i32; 4]; R] {
        rows.map(|row| four.map(|column| self.product(column, row)))
    }

    #[inline(always)]
    fn product(self, small: &[u8], large: &[i16]) -> i32 {
        small.iter().zip(large).map(|(a, b)| i32::from(*a as i8) * i32::from(*b)).sum()
    }
}

/// Does some work with the widest registers of this processor.
#[cfg(all(feature = "model", target_arch = "x86_64"))]
pub fn wide<W: Work>(work: W) -> W::Out {
    match pulp::Arch::new() {
        pulp::Arch::V3(v3) => v3.vectorize(avx2::With(work, v3)),
        _ => work.work(Plain),
    }
}

/// Does some work as the compiler sees fit.
#[cfg(not(all(feature = "model", target_arch = "x86_64")))]
pub fn wide<W: Work>(work: W) -> W::Out {
    work.work(Plain)
}

/// Processors with registers of 256 bits, which nearly all are.
#[cfg(all(feature = "model", target_arch = "x86_64"))]
mod avx2 {
    use std::arch::x86_64::{__m128i, __m256i};

    use pulp::x86::V3;
    use pulp::{NullaryFnOnce, cast};

    use super::{Width, Work};

    pub struct With<W>(pub W, pub V3);

    impl<W: Work> NullaryFnOnce for With<W> {
        type Output = W::Out;

        #[inline(always)]
        fn call(self) -> W::Out {
            self.0.work(self.1)
        }
    }

    impl Width for V3 {
        #[inline(always)]
        fn products<const C: usize>(self, four: [&[i16]; 4], columns: [&[i16]; C]) -> [[i32; 4]; C] {
            let four = four.map(|row| row.as_chunks::<16>().0);
            let columns = columns.map(|column| column.as_chunks::<16>().0);
            let steps = columns[0].len();
            let (four, columns) = (four.map(|row| &row[..steps]), columns.map(|column| &column[..steps]));
            let mut sums = [[self.avx._mm256_setzero_si256(); 4]; C];
            for step in 0..steps {
                let row: [__m256i; 4] = std::array::from_fn(|at| cast(four[at][step]));
                for (sums, column) in sums.iter_mut().zip(columns) {
                    let column: __m256i = cast(column[step]);
                    for (sum, row) in sums.iter_mut().zip(row) {
                        *sum = self.avx2._mm256_add_epi32(*sum, self.avx2._mm256_madd_epi16(row, column));
                    }
                }
            }
            sums.map(|[a, b, c, d]| {
                let pairs = self.avx2._mm256_hadd_epi32(self.avx2._mm256_hadd_epi32(a, b), self.avx2._mm256_hadd_epi32(c, d));
                let [low, high]: [__m128i; 2] = cast(pairs);
                cast(self.sse2._mm_add_epi32(low, high))
            })
        }

        #[inline(always)]
        fn few_products<const R: usize>(self, rows: [&[i16]; R], four: [&[u8]; 4]) -> [[i32; 4]; R] {
            let rows = rows.map(|row| row.as_chunks::<16>().0);
            let four = four.map(|column| column.as_chunks::<16>().0);
            let steps = rows[0].len();
            let (rows, four) = (rows.map(|row| &row[..steps]), four.map(|column| &column[..steps]));
            let mut sums = [[self.avx._mm256_setzero_si256(); 4]; R];
            for step in 0..steps {
                // Written out: a closure here would not be compiled for wide registers.
                let columns = [
                    self.avx2._mm256_cvtepi8_epi16(cast(four[0][step])),
                    self.avx2._mm256_cvtepi8_epi16(cast(four[1][step])),
                    self.avx2._mm256_cvtepi8_epi16(cast(four[2][step])),
                    self.avx2._mm256_cvtepi8_epi16(cast(four[3][step])),
                ];
                for (sums, row) in sums.iter_mut().zip(rows) {
                    let row: __m256i = cast(row[step]);
                    for (sum, column) in sums.iter_mut().zip(columns) {
                        *sum = self.avx2._mm256_add_epi32(*sum, self.avx2._mm256_madd_epi16(row, column));
                    }
                }
            }
            sums.map(|[a, b, c, d]| {
                let pairs = self.avx2._mm256_hadd_epi32(self.avx2._mm256_hadd_epi32(a, b), self.avx2._mm256_hadd_epi32(c, d));
                let [low, high]: [__m128i; 2] = cast(pairs);
                cast(self.sse2._mm_add_epi32(low, high))
            })
        }

        #[inline(always)]
        fn product(self, small: &[u8], large: &[i16]) -> i32 {
            let (small, large) = (small.as_chunks::<16>().0, large.as_chunks::<16>().0);
            let mut sum = self.avx._mm256_setzero_si256();
            for (small, large) in small.iter().zip(large) {
                let wide = self.avx2._mm256_cvtepi8_epi16(cast(*small));
                sum = self.avx2._mm256_add_epi32(sum, self.avx2._mm256_madd_epi16(wide, cast(*large)));
            }
            let [low, high]: [__m128i; 2] = cast(sum);
            let lanes: [i32; 4] = cast(self.sse2._mm_add_epi32(low, high));
            lanes.iter().sum()
        }
    }
}

const LANES: usize = 16;

#[inline(always)]
fn gather(lanes: [f32; LANES]) -> f32 {
    let mut four = [0.0f32; 4];
    for (at, lane) in lanes.iter().enumerate() {
        four[at % 4] += lane;
    }
    (four[0] + four[1]) + (four[2] + four[3])
}

/// The inner product.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (whole_a, whole_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = whole_a.remainder().iter().zip(whole_b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in whole_a.zip(whole_b) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    gather(lanes) + rest
}

/// The sum.
#[inline(always)]
pub fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let whole = values.chunks_exact(LANES);
    let rest: f32 = whole.remainder().iter().sum();
    for values in whole {
        for lane in 0..LANES {
            lanes[lane] += values[lane];
        }
    }
    gather(lanes) + rest
}

/// The largest of the absolute values, at least `least`.
#[inline(always)]
pub fn most(values: &[f32], least: f32) -> f32 {
    let mut lanes = [least; LANES];
    let whole = values.chunks_exact(LANES);
    let rest = whole.remainder().iter().fold(least, |most, value| value.abs().max(most));
    for values in whole {
        for lane in 0..LANES {
            let value = values[lane].abs();
            lanes[lane] = if value > lanes[lane] { value } else { lanes[lane] };
        }
    }
    lanes.iter().fold(rest, |most, value| value.max(most))
}

/// Scales a vector to length one.
#[inline(always)]
pub fn normalise(vector: &mut [f32]) {
    let length = dot(vector, vector).sqrt().max(1e-9);
    vector.iter_mut().for_each(|value| *value /= length);
}

/// Adds `share` times `other` to `sum`.
#[inline(always)]
pub fn add_share(sum: &mut [f32], other: &[f32], share: f32) {
    sum.iter_mut().zip(other).for_each(|(sum, value)| *sum += share * value);
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dot<'v>(&'v [f32], &'v [f32]);

    impl Work for Dot<'_> {
        type Out = f32;
        #[inline(always)]
        fn work<W: Width>(self, _: W) -> f32 {
            dot(self.0, self.1)
        }
    }

    struct Products<'v>(&'v [i16], &'v [u8]);

    impl Work for Products<'_> {
        type Out = ([[i32; 4]; 2], [[i32; 4]; 3], i32);
        #[inline(always)]
        fn work<W: Width>(self, width: W) -> Self::Out {
            let row = |at: usize| &self.0[64 * at..64 * at + 64];
            let codes = |at: usize| &self.1[64 * at..64 * at + 64];
            let few = width.few_products([row(0), row(1), row(2)], [codes(0), codes(1), codes(2), codes(3)]);
            (width.products([row(0), row(1), row(2), row(3)], [row(4), row(5)]), few, width.product(codes(0), row(1)))
        }
    }

    #[test]
    fn wide_registers_change_no_bit() {
        let a: Vec<f32> = (0..203).map(|at| (at as f32 * 0.37).sin()).collect();
        let b: Vec<f32> = (0..203).map(|at| (at as f32 * 0.11).cos()).collect();
        assert_eq!(wide(Dot(&a, &b)).to_bits(), dot(&a, &b).to_bits());
        assert!((dot(&a, &b) - a.iter().zip(&b).map(|(a, b)| a * b).sum::<f32>()).abs() < 1e-4);
        assert_eq!(most(&a, 0.0), a.iter().fold(0.0, |most, value| value.abs().max(most)));
        let numbers: Vec<i16> = (0..384).map(|at| (at * 89 % 16381) as i16 - 8190).collect();
        let codes: Vec<u8> = (0..256).map(|at| (at * 37) as u8).collect();
        assert_eq!(wide(Products(&numbers, &codes)), Products(&numbers, &codes).work(Plain));
        assert!((sum(&a) - a.iter().sum::<f32>()).abs() < 1e-4);
    }
}
