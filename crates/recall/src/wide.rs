//! Vectorised arithmetic, compiled for several processor types and selected at run time.
//!
//! Integer sums are exact in any order. Float sums use sixteen lanes in a fixed order. Equal input
//! therefore gives identical results on every processor; wide registers only make it faster.

/// Work that is compiled for wide registers if the processor has them.
///
/// Everything that it calls in its loops must be `#[inline(always)]`. Otherwise the callee is not
/// compiled for wide registers.
pub trait Work {
    type Out;
    fn work<W: Width>(self, width: W) -> Self::Out;
}

/// Integer dot products, in the fastest form for a processor type.
///
/// The length of all operands is a multiple of 32.
pub trait Width: Copy {
    /// The number of rows, at most four, for which all sums fit in registers.
    const ROWS: usize;
    /// Multiplies four rows with each column.
    fn products<const C: usize>(self, four: [&[i16]; 4], columns: [&[i16]; C]) -> [[i32; 4]; C];
    /// Multiplies a few rows with each of four 8-bit columns. Meanwhile prefetches the bytes in
    /// `ahead`, some with each step, because a burst of prefetches would stall.
    fn few_products<const R: usize>(
        self,
        rows: [&[i16]; R],
        four: [&[u8]; 4],
        ahead: &[u8],
    ) -> [[i32; 4]; R];
    /// Multiplies 8-bit numbers with 16-bit numbers.
    fn product(self, small: &[u8], large: &[i16]) -> i32;
    /// Prefetches bytes. Affects only speed.
    fn fetch(self, bytes: &[u8]);
}

/// The portable implementation.
#[derive(Clone, Copy)]
struct Plain;

impl Width for Plain {
    const ROWS: usize = 4;

    #[inline(always)]
    fn products<const C: usize>(self, four: [&[i16]; 4], columns: [&[i16]; C]) -> [[i32; 4]; C] {
        columns.map(|column| {
            four.map(|row| {
                row.iter()
                    .zip(column)
                    .map(|(a, b)| i32::from(*a) * i32::from(*b))
                    .sum()
            })
        })
    }

    #[inline(always)]
    fn few_products<const R: usize>(
        self,
        rows: [&[i16]; R],
        four: [&[u8]; 4],
        _: &[u8],
    ) -> [[i32; 4]; R] {
        rows.map(|row| four.map(|column| self.product(column, row)))
    }

    #[inline(always)]
    fn product(self, small: &[u8], large: &[i16]) -> i32 {
        small
            .iter()
            .zip(large)
            .map(|(a, b)| i32::from(*a as i8) * i32::from(*b))
            .sum()
    }

    #[inline(always)]
    fn fetch(self, _: &[u8]) {}
}

/// Runs work with the widest registers of this processor.
#[cfg(all(feature = "model", target_arch = "x86_64"))]
pub fn wide<W: Work>(work: W) -> W::Out {
    match pulp::Arch::new() {
        pulp::Arch::V4(v4) => v4.vectorize(x86::With(work, v4)),
        pulp::Arch::V3(v3) => v3.vectorize(x86::With(work, v3)),
        _ => work.work(Plain),
    }
}

/// Runs work with the portable implementation.
#[cfg(not(all(feature = "model", target_arch = "x86_64")))]
pub fn wide<W: Work>(work: W) -> W::Out {
    work.work(Plain)
}

/// Implementations for processors with 256-bit registers (nearly all) and 512-bit registers.
///
/// Loops are written out instead of using closures, because a closure that is not inlined is not
/// compiled for wide registers.
#[cfg(all(feature = "model", target_arch = "x86_64"))]
mod x86 {
    use std::arch::x86_64::{__m128i, __m256i, __m512i, _MM_HINT_T0};

    use pulp::core_arch::x86::Sse;
    use pulp::x86::{V3, V4};
    use pulp::{NullaryFnOnce, cast};

    use super::{Width, Work};

    pub struct With<W, T>(pub W, pub T);

    impl<W: Work, T: Width> NullaryFnOnce for With<W, T> {
        type Output = W::Out;

        #[inline(always)]
        fn call(self) -> W::Out {
            self.0.work(self.1)
        }
    }

    /// Splits slices into chunks of register size, `count` from each.
    #[inline(always)]
    fn chunks<T, const N: usize, const S: usize>(
        slices: [&[T]; S],
        count: usize,
    ) -> [&[[T; N]]; S] {
        let mut chunks: [&[[T; N]]; S] = [&[]; S];
        for at in 0..S {
            chunks[at] = &slices[at].as_chunks::<N>().0[..count];
        }
        chunks
    }

    /// Prefetches cache lines of 64 bytes.
    #[inline(always)]
    fn fetch(sse: Sse, bytes: &[u8]) {
        for line in bytes.as_chunks::<64>().0 {
            sse._mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
    }

    /// Returns the sum of each of four registers.
    #[inline(always)]
    fn sums_256(v3: V3, [a, b, c, d]: [__m256i; 4]) -> [i32; 4] {
        let pairs = v3.avx2._mm256_hadd_epi32(
            v3.avx2._mm256_hadd_epi32(a, b),
            v3.avx2._mm256_hadd_epi32(c, d),
        );
        let [low, high]: [__m128i; 2] = cast(pairs);
        cast(v3.sse2._mm_add_epi32(low, high))
    }

    #[inline(always)]
    fn sums_512(v4: V4, [a, b, c, d]: [__m512i; 4]) -> [i32; 4] {
        let f = v4.avx512f;
        let ab = f._mm512_add_epi32(f._mm512_unpacklo_epi32(a, b), f._mm512_unpackhi_epi32(a, b));
        let cd = f._mm512_add_epi32(f._mm512_unpacklo_epi32(c, d), f._mm512_unpackhi_epi32(c, d));
        let all = f._mm512_add_epi32(
            f._mm512_unpacklo_epi64(ab, cd),
            f._mm512_unpackhi_epi64(ab, cd),
        );
        let [low, high]: [__m256i; 2] = cast(all);
        let [low, high]: [__m128i; 2] = cast(v4.avx2._mm256_add_epi32(low, high));
        cast(v4.sse2._mm_add_epi32(low, high))
    }

    impl Width for V3 {
        const ROWS: usize = 3;

        #[inline(always)]
        fn products<const C: usize>(
            self,
            four: [&[i16]; 4],
            columns: [&[i16]; C],
        ) -> [[i32; 4]; C] {
            let steps = four[0].len() / 16;
            let (four, columns) = (
                chunks::<_, 16, 4>(four, steps),
                chunks::<_, 16, C>(columns, steps),
            );
            let mut sums = [[self.avx._mm256_setzero_si256(); 4]; C];
            for step in 0..steps {
                let rows: [__m256i; 4] = [
                    cast(four[0][step]),
                    cast(four[1][step]),
                    cast(four[2][step]),
                    cast(four[3][step]),
                ];
                for at in 0..C {
                    let column: __m256i = cast(columns[at][step]);
                    for row in 0..4 {
                        sums[at][row] = self.avx2._mm256_add_epi32(
                            sums[at][row],
                            self.avx2._mm256_madd_epi16(rows[row], column),
                        );
                    }
                }
            }
            let mut out = [[0; 4]; C];
            for at in 0..C {
                out[at] = sums_256(self, sums[at]);
            }
            out
        }

        #[inline(always)]
        fn few_products<const R: usize>(
            self,
            rows: [&[i16]; R],
            four: [&[u8]; 4],
            ahead: &[u8],
        ) -> [[i32; 4]; R] {
            let steps = rows[0].len() / 16;
            let (rows, four) = (
                chunks::<_, 16, R>(rows, steps),
                chunks::<_, 16, 4>(four, steps),
            );
            let ahead = ahead.as_chunks::<64>().0;
            let mut sums = [[self.avx._mm256_setzero_si256(); 4]; R];
            for step in 0..steps {
                if step < ahead.len() {
                    fetch(self.sse, &ahead[step]);
                }
                for at in 0..4 {
                    let column = self.avx2._mm256_cvtepi8_epi16(cast(four[at][step]));
                    for row in 0..R {
                        let product = self.avx2._mm256_madd_epi16(column, cast(rows[row][step]));
                        sums[row][at] = self.avx2._mm256_add_epi32(sums[row][at], product);
                    }
                }
            }
            let mut out = [[0; 4]; R];
            for row in 0..R {
                out[row] = sums_256(self, sums[row]);
            }
            out
        }

        #[inline(always)]
        fn product(self, small: &[u8], large: &[i16]) -> i32 {
            let (small, large) = (small.as_chunks::<16>().0, large.as_chunks::<16>().0);
            let mut sum = self.avx._mm256_setzero_si256();
            for (small, large) in small.iter().zip(large) {
                let wide = self.avx2._mm256_cvtepi8_epi16(cast(*small));
                sum = self
                    .avx2
                    ._mm256_add_epi32(sum, self.avx2._mm256_madd_epi16(wide, cast(*large)));
            }
            let [low, high]: [__m128i; 2] = cast(sum);
            let lanes: [i32; 4] = cast(self.sse2._mm_add_epi32(low, high));
            lanes[0] + lanes[1] + lanes[2] + lanes[3]
        }

        #[inline(always)]
        fn fetch(self, bytes: &[u8]) {
            fetch(self.sse, bytes);
        }
    }

    impl Width for V4 {
        const ROWS: usize = 4;

        #[inline(always)]
        fn products<const C: usize>(
            self,
            four: [&[i16]; 4],
            columns: [&[i16]; C],
        ) -> [[i32; 4]; C] {
            let steps = four[0].len() / 32;
            let (four, columns) = (
                chunks::<_, 32, 4>(four, steps),
                chunks::<_, 32, C>(columns, steps),
            );
            let mut sums = [[self.avx512f._mm512_setzero_si512(); 4]; C];
            for step in 0..steps {
                let rows: [__m512i; 4] = [
                    cast(four[0][step]),
                    cast(four[1][step]),
                    cast(four[2][step]),
                    cast(four[3][step]),
                ];
                for at in 0..C {
                    let column: __m512i = cast(columns[at][step]);
                    for row in 0..4 {
                        let product = self.avx512bw._mm512_madd_epi16(rows[row], column);
                        sums[at][row] = self.avx512f._mm512_add_epi32(sums[at][row], product);
                    }
                }
            }
            let mut out = [[0; 4]; C];
            for at in 0..C {
                out[at] = sums_512(self, sums[at]);
            }
            out
        }

        #[inline(always)]
        fn few_products<const R: usize>(
            self,
            rows: [&[i16]; R],
            four: [&[u8]; 4],
            ahead: &[u8],
        ) -> [[i32; 4]; R] {
            let steps = rows[0].len() / 32;
            let (rows, four) = (
                chunks::<_, 32, R>(rows, steps),
                chunks::<_, 32, 4>(four, steps),
            );
            let ahead = ahead.as_chunks::<128>().0;
            let mut sums = [[self.avx512f._mm512_setzero_si512(); 4]; R];
            for step in 0..steps {
                if step < ahead.len() {
                    fetch(self.sse, &ahead[step]);
                }
                let columns = [
                    self.avx512bw._mm512_cvtepi8_epi16(cast(four[0][step])),
                    self.avx512bw._mm512_cvtepi8_epi16(cast(four[1][step])),
                    self.avx512bw._mm512_cvtepi8_epi16(cast(four[2][step])),
                    self.avx512bw._mm512_cvtepi8_epi16(cast(four[3][step])),
                ];
                for row in 0..R {
                    let own: __m512i = cast(rows[row][step]);
                    for at in 0..4 {
                        let product = self.avx512bw._mm512_madd_epi16(own, columns[at]);
                        sums[row][at] = self.avx512f._mm512_add_epi32(sums[row][at], product);
                    }
                }
            }
            let mut out = [[0; 4]; R];
            for row in 0..R {
                out[row] = sums_512(self, sums[row]);
            }
            out
        }

        #[inline(always)]
        fn product(self, small: &[u8], large: &[i16]) -> i32 {
            let (small, large) = (small.as_chunks::<32>().0, large.as_chunks::<32>().0);
            let mut sum = self.avx512f._mm512_setzero_si512();
            for (small, large) in small.iter().zip(large) {
                let wide = self.avx512bw._mm512_cvtepi8_epi16(cast(*small));
                sum = self
                    .avx512f
                    ._mm512_add_epi32(sum, self.avx512bw._mm512_madd_epi16(wide, cast(*large)));
            }
            let [low, high]: [__m256i; 2] = cast(sum);
            let [low, high]: [__m128i; 2] = cast(self.avx2._mm256_add_epi32(low, high));
            let lanes: [i32; 4] = cast(self.sse2._mm_add_epi32(low, high));
            lanes[0] + lanes[1] + lanes[2] + lanes[3]
        }

        #[inline(always)]
        fn fetch(self, bytes: &[u8]) {
            fetch(self.sse, bytes);
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

#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (whole_a, whole_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = whole_a
        .remainder()
        .iter()
        .zip(whole_b.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in whole_a.zip(whole_b) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    gather(lanes) + rest
}

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

/// Returns the largest absolute value, or `least` if that is larger.
#[inline(always)]
pub fn most(values: &[f32], least: f32) -> f32 {
    let mut lanes = [least; LANES];
    let whole = values.chunks_exact(LANES);
    let rest = whole
        .remainder()
        .iter()
        .fold(least, |most, value| value.abs().max(most));
    for values in whole {
        for lane in 0..LANES {
            let value = values[lane].abs();
            lanes[lane] = if value > lanes[lane] {
                value
            } else {
                lanes[lane]
            };
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
    sum.iter_mut()
        .zip(other)
        .for_each(|(sum, value)| *sum += share * value);
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
            let few = width.few_products(
                [row(0), row(1), row(2)],
                [codes(0), codes(1), codes(2), codes(3)],
                self.1,
            );
            (
                width.products([row(0), row(1), row(2), row(3)], [row(4), row(5)]),
                few,
                width.product(codes(0), row(1)),
            )
        }
    }

    #[test]
    fn wide_registers_change_no_bit() {
        let a: Vec<f32> = (0..203).map(|at| (at as f32 * 0.37).sin()).collect();
        let b: Vec<f32> = (0..203).map(|at| (at as f32 * 0.11).cos()).collect();
        assert_eq!(wide(Dot(&a, &b)).to_bits(), dot(&a, &b).to_bits());
        assert!((dot(&a, &b) - a.iter().zip(&b).map(|(a, b)| a * b).sum::<f32>()).abs() < 1e-4);
        assert_eq!(
            most(&a, 0.0),
            a.iter().fold(0.0, |most, value| value.abs().max(most))
        );
        let numbers: Vec<i16> = (0..384).map(|at| (at * 89 % 16381) as i16 - 8190).collect();
        let codes: Vec<u8> = (0..256).map(|at| (at * 37) as u8).collect();
        let plain = Products(&numbers, &codes).work(Plain);
        assert_eq!(wide(Products(&numbers, &codes)), plain);
        // On processors with wider registers, also test the 256-bit implementation.
        #[cfg(all(feature = "model", target_arch = "x86_64"))]
        if let Some(v3) = pulp::x86::V3::try_new() {
            assert_eq!(
                v3.vectorize(x86::With(Products(&numbers, &codes), v3)),
                plain
            );
        }
        assert!((sum(&a) - a.iter().sum::<f32>()).abs() < 1e-4);
    }
}
