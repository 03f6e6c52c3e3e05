//! Numbers of one engine or of several at a time, so that each formula is written once for both.

/// One number, or a vector of them. What is computed with them is the same to the bit: each operation is one of
/// IEEE 754, or of integers.
///
/// A value of such a type stands for the processor's having the instructions.
pub(in crate::algorithm) trait Lanes: Copy {
    type Ints: Copy;
    type Floats: Copy;

    fn splat(self, number: i32) -> Self::Ints;
    /// Adds one.
    fn next(self, ints: Self::Ints) -> Self::Ints;
    fn float(self, ints: Self::Ints) -> Self::Floats;
    /// The bits of floats.
    fn bits(self, floats: Self::Floats) -> Self::Ints;
    fn add(self, one: Self::Floats, other: Self::Floats) -> Self::Floats;
    fn multiply(self, one: Self::Floats, other: Self::Floats) -> Self::Floats;
    /// The less of numbers that are numbers.
    fn less(self, one: Self::Floats, other: Self::Floats) -> Self::Floats;
    /// The greater of numbers that are numbers.
    fn greater(self, one: Self::Floats, other: Self::Floats) -> Self::Floats;
    /// `then` where `one` is less than `other`, `otherwise` elsewhere.
    fn if_less(
        self,
        one: Self::Ints,
        other: Self::Ints,
        then: Self::Ints,
        otherwise: Self::Ints,
    ) -> Self::Ints;
}

/// One engine.
#[derive(Clone, Copy)]
pub(super) struct One;

impl Lanes for One {
    type Ints = i32;
    type Floats = f32;

    #[inline(always)]
    fn splat(self, number: i32) -> i32 {
        number
    }

    #[inline(always)]
    fn next(self, int: i32) -> i32 {
        int + 1
    }

    #[inline(always)]
    fn float(self, int: i32) -> f32 {
        int as f32
    }

    #[inline(always)]
    fn bits(self, float: f32) -> i32 {
        float.to_bits() as i32
    }

    #[inline(always)]
    fn add(self, one: f32, other: f32) -> f32 {
        one + other
    }

    #[inline(always)]
    fn multiply(self, one: f32, other: f32) -> f32 {
        one * other
    }

    #[inline(always)]
    fn less(self, one: f32, other: f32) -> f32 {
        if one < other { one } else { other }
    }

    #[inline(always)]
    fn greater(self, one: f32, other: f32) -> f32 {
        if one > other { one } else { other }
    }

    #[inline(always)]
    fn if_less(self, one: i32, other: i32, then: i32, otherwise: i32) -> i32 {
        if one < other { then } else { otherwise }
    }
}
