//! Eight engines at a time, by two vectors of NEON.

use super::lanes::Lanes;
use super::vectors::Vectors;
use crate::algorithm::primitive::{Atomic, Ordering};
use crate::algorithm::word::Word;
use core::arch::aarch64::*;

/// Every aarch64 processor that runs this has NEON.
#[derive(Clone, Copy)]
pub(super) struct Neon;

/// Applies an instruction to both halves.
macro_rules! both {
    ($instruction:ident($($argument:ident),*)) => {
        // SAFETY: the processor has NEON.
        unsafe { ($instruction($($argument.0),*), $instruction($($argument.1),*)) }
    };
}

impl Lanes for Neon {
    type Ints = (int32x4_t, int32x4_t);
    type Floats = (float32x4_t, float32x4_t);

    #[inline(always)]
    fn splat(self, number: i32) -> Self::Ints {
        let number = (number, number);
        both!(vdupq_n_s32(number))
    }

    #[inline(always)]
    fn next(self, ints: Self::Ints) -> Self::Ints {
        self.add_ints(ints, self.splat(1))
    }

    #[inline(always)]
    fn float(self, ints: Self::Ints) -> Self::Floats {
        both!(vcvtq_f32_s32(ints))
    }

    #[inline(always)]
    fn bits(self, floats: Self::Floats) -> Self::Ints {
        both!(vreinterpretq_s32_f32(floats))
    }

    #[inline(always)]
    fn add(self, one: Self::Floats, other: Self::Floats) -> Self::Floats {
        both!(vaddq_f32(one, other))
    }

    #[inline(always)]
    fn multiply(self, one: Self::Floats, other: Self::Floats) -> Self::Floats {
        both!(vmulq_f32(one, other))
    }

    #[inline(always)]
    fn less(self, one: Self::Floats, other: Self::Floats) -> Self::Floats {
        both!(vminq_f32(one, other))
    }

    #[inline(always)]
    fn greater(self, one: Self::Floats, other: Self::Floats) -> Self::Floats {
        both!(vmaxq_f32(one, other))
    }

    #[inline(always)]
    fn if_less(
        self,
        one: Self::Ints,
        other: Self::Ints,
        then: Self::Ints,
        otherwise: Self::Ints,
    ) -> Self::Ints {
        self.select(self.is_less(one, other), then, otherwise)
    }
}

impl Vectors for Neon {
    #[inline(always)]
    fn ints(self, from: &[i32; 8]) -> Self::Ints {
        let from = (from.as_ptr(), from[4..].as_ptr());
        both!(vld1q_s32(from))
    }

    #[inline(always)]
    fn floats(self, from: &[f32; 8]) -> Self::Floats {
        let from = (from.as_ptr(), from[4..].as_ptr());
        both!(vld1q_f32(from))
    }

    #[inline(always)]
    fn upper_halves(self, words: &[Atomic<Word>; 8]) -> Self::Ints {
        // Relaxed: ordered by the fence after the scan.
        let halves = core::array::from_fn(|n| words[n].load(Ordering::Relaxed).upper_half());
        self.ints(&halves)
    }

    #[inline(always)]
    fn shift_right<const BITS: i32>(self, ints: Self::Ints) -> Self::Ints {
        // SAFETY: the processor has NEON.
        unsafe { (vshrq_n_s32::<BITS>(ints.0), vshrq_n_s32::<BITS>(ints.1)) }
    }

    #[inline(always)]
    fn add_ints(self, one: Self::Ints, other: Self::Ints) -> Self::Ints {
        both!(vaddq_s32(one, other))
    }

    #[inline(always)]
    fn is_less(self, one: Self::Ints, other: Self::Ints) -> Self::Ints {
        let mask = both!(vcltq_s32(one, other));
        both!(vreinterpretq_s32_u32(mask))
    }

    #[inline(always)]
    fn is_equal(self, one: Self::Ints, other: Self::Ints) -> Self::Ints {
        let mask = both!(vceqq_s32(one, other));
        both!(vreinterpretq_s32_u32(mask))
    }

    #[inline(always)]
    fn and(self, one: Self::Ints, other: Self::Ints) -> Self::Ints {
        both!(vandq_s32(one, other))
    }

    #[inline(always)]
    fn or(self, one: Self::Ints, other: Self::Ints) -> Self::Ints {
        both!(vorrq_s32(one, other))
    }

    #[inline(always)]
    fn select(self, mask: Self::Ints, then: Self::Ints, otherwise: Self::Ints) -> Self::Ints {
        let mask = both!(vreinterpretq_u32_s32(mask));
        both!(vbslq_s32(mask, then, otherwise))
    }

    #[inline(always)]
    fn least_of_each(self, one: Self::Ints, other: Self::Ints) -> Self::Ints {
        both!(vminq_s32(one, other))
    }

    #[inline(always)]
    fn least_of_all(self, ints: Self::Ints) -> Self::Ints {
        // SAFETY: the processor has NEON.
        self.splat(unsafe { vminvq_s32(vminq_s32(ints.0, ints.1)) })
    }

    #[inline(always)]
    fn first(self, ints: Self::Ints) -> i32 {
        // SAFETY: the processor has NEON.
        unsafe { vgetq_lane_s32::<0>(ints.0) }
    }

    #[inline(always)]
    fn signs(self, ints: Self::Ints) -> u32 {
        let mut lanes = [0; 8];
        // SAFETY: four of the eight each.
        unsafe { vst1q_s32(lanes.as_mut_ptr(), ints.0) };
        // SAFETY: as above.
        unsafe { vst1q_s32(lanes[4..].as_mut_ptr(), ints.1) };
        let sign = |(lane, number): (usize, &i32)| u32::from(*number < 0) << lane;
        lanes.iter().enumerate().map(sign).sum()
    }
}
