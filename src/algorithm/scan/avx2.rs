//! Eight engines at a time, by AVX2.

use super::lanes::Lanes;
use super::vectors::Vectors;
use crate::algorithm::primitive::Atomic;
use crate::algorithm::word::Word;
use core::arch::asm;
use core::arch::x86_64::*;

/// That the processor has AVX2.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// `None`: it has not. Costs a load, from the second call on.
    #[inline]
    pub(super) fn detect() -> Option<Self> {
        std::arch::is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

/// Runs an instruction.
macro_rules! avx2 {
    ($instruction:expr) => {
        // SAFETY: the processor has it, as the value of `Avx2` says by which this was called.
        unsafe { $instruction }
    };
}

/// Loads the words, four into each vector.
#[inline]
#[target_feature(enable = "avx2")]
fn load(words: &[Atomic<Word>; 8]) -> (__m256, __m256) {
    let (low, high): (__m256, __m256);
    // SAFETY: reads the eight words, and nothing else. As far as the language is concerned these are eight Relaxed
    // loads: the words are aligned to their size, and no processor with AVX2 tears an aligned word of eight bytes,
    // whatever instruction loads it.
    unsafe {
        asm!(
            "vmovups {low}, ymmword ptr [{words}]",
            "vmovups {high}, ymmword ptr [{words} + 32]",
            words = in(reg) words.as_ptr(),
            low = out(ymm_reg) low,
            high = out(ymm_reg) high,
            options(nostack, preserves_flags, readonly)
        );
    }
    (low, high)
}

impl Lanes for Avx2 {
    type Ints = __m256i;
    type Floats = __m256;

    #[inline(always)]
    fn splat(self, number: i32) -> __m256i {
        avx2!(_mm256_set1_epi32(number))
    }

    #[inline(always)]
    fn next(self, ints: __m256i) -> __m256i {
        self.add_ints(ints, self.splat(1))
    }

    #[inline(always)]
    fn float(self, ints: __m256i) -> __m256 {
        avx2!(_mm256_cvtepi32_ps(ints))
    }

    #[inline(always)]
    fn bits(self, floats: __m256) -> __m256i {
        avx2!(_mm256_castps_si256(floats))
    }

    #[inline(always)]
    fn add(self, one: __m256, other: __m256) -> __m256 {
        avx2!(_mm256_add_ps(one, other))
    }

    #[inline(always)]
    fn multiply(self, one: __m256, other: __m256) -> __m256 {
        avx2!(_mm256_mul_ps(one, other))
    }

    #[inline(always)]
    fn less(self, one: __m256, other: __m256) -> __m256 {
        avx2!(_mm256_min_ps(one, other))
    }

    #[inline(always)]
    fn greater(self, one: __m256, other: __m256) -> __m256 {
        avx2!(_mm256_max_ps(one, other))
    }

    #[inline(always)]
    fn if_less(self, one: __m256i, other: __m256i, then: __m256i, otherwise: __m256i) -> __m256i {
        self.select(self.is_less(one, other), then, otherwise)
    }
}

impl Vectors for Avx2 {
    #[inline(always)]
    fn ints(self, from: &[i32; 8]) -> __m256i {
        bytemuck::cast(*from)
    }

    #[inline(always)]
    fn floats(self, from: &[f32; 8]) -> __m256 {
        bytemuck::cast(*from)
    }

    #[inline(always)]
    fn upper_halves(self, words: &[Atomic<Word>; 8]) -> __m256i {
        let (low, high) = avx2!(load(words));
        // The upper halves of words 0, 1, 4, 5 | 2, 3, 6, 7.
        let halves = avx2!(_mm256_shuffle_ps::<0b11_01_11_01>(low, high));
        avx2!(_mm256_permute4x64_epi64::<0b11_01_10_00>(self.bits(halves)))
    }

    #[inline(always)]
    fn shift_right<const BITS: i32>(self, ints: __m256i) -> __m256i {
        avx2!(_mm256_srai_epi32::<BITS>(ints))
    }

    #[inline(always)]
    fn add_ints(self, one: __m256i, other: __m256i) -> __m256i {
        avx2!(_mm256_add_epi32(one, other))
    }

    #[inline(always)]
    fn is_less(self, one: __m256i, other: __m256i) -> __m256i {
        avx2!(_mm256_cmpgt_epi32(other, one))
    }

    #[inline(always)]
    fn is_equal(self, one: __m256i, other: __m256i) -> __m256i {
        avx2!(_mm256_cmpeq_epi32(one, other))
    }

    #[inline(always)]
    fn and(self, one: __m256i, other: __m256i) -> __m256i {
        avx2!(_mm256_and_si256(one, other))
    }

    #[inline(always)]
    fn or(self, one: __m256i, other: __m256i) -> __m256i {
        avx2!(_mm256_or_si256(one, other))
    }

    #[inline(always)]
    fn select(self, mask: __m256i, then: __m256i, otherwise: __m256i) -> __m256i {
        avx2!(_mm256_blendv_epi8(otherwise, then, mask))
    }

    #[inline(always)]
    fn least_of_each(self, one: __m256i, other: __m256i) -> __m256i {
        avx2!(_mm256_min_epi32(one, other))
    }

    #[inline(always)]
    fn least_of_all(self, ints: __m256i) -> __m256i {
        let turned = avx2!(_mm256_permute2x128_si256::<0x01>(ints, ints));
        let ints = self.least_of_each(ints, turned);
        let turned = avx2!(_mm256_shuffle_epi32::<0b01_00_11_10>(ints));
        let ints = self.least_of_each(ints, turned);
        let turned = avx2!(_mm256_shuffle_epi32::<0b10_11_00_01>(ints));
        self.least_of_each(ints, turned)
    }

    #[inline(always)]
    fn first(self, ints: __m256i) -> i32 {
        avx2!(_mm256_cvtsi256_si32(ints))
    }

    #[inline(always)]
    fn signs(self, ints: __m256i) -> u32 {
        avx2!(_mm256_movemask_ps(_mm256_castsi256_ps(ints)) as u32)
    }
}
