//! The order of waiting requests: which comes first, and which of them want the same engines.

use bytemuck::{Pod, Zeroable};
use core::fmt;

/// How many classes of requests there are. The first one is served first.
pub(crate) const CLASSES: usize = 4;

/// How many bits of a tag are its start.
pub(crate) const START_BITS: u32 = 62;
const START_MASK: u64 = (1 << START_BITS) - 1;

/// What a request of weight 1 moves the start of its tenant's next one by.
pub(crate) const UNIT: u64 = 1 << 10;

/// A waiting request's place in the order: the smaller one is served first. class 2 | start 62.
///
/// The start is that of start-time fair queueing: the virtual time at which the request's turn has come. Without
/// tenants it is as good as a number that is drawn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Tag(u64);

impl Tag {
    /// No request. Starts are 1 or more, so no request has it.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn new(class: usize, start: u64) -> Self {
        Self(((class as u64) << START_BITS) | start.clamp(1, START_MASK))
    }

    /// Behind all requests of a class that wait.
    pub(crate) fn last_of(class: usize) -> Self {
        Self::new(class, START_MASK)
    }

    pub(crate) fn class(self) -> usize {
        (self.0 >> START_BITS) as usize
    }

    pub(crate) fn start(self) -> u64 {
        self.0 & START_MASK
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NONE => f.write_str("none"),
            tag => write!(f, "class {}, start {}", tag.class(), tag.start()),
        }
    }
}

/// A tag, and the slot of its frontend, which decides between equal tags.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub(crate) tag: Tag,
    pub(crate) slot: usize,
}

/// The engines that a request may go to, by their slots: all, one, or all but a few.
/// 0 (1) | only one 1 | how many 3 | places but one 7 | engine 13 | engine 13 | engine 13 | engine 13.
///
/// As others see it, it also says how many places the request needs there.
///
/// Of more than [`MOST_EXCLUDED`](Self::MOST_EXCLUDED) excluded engines it knows the first ones. Then it says of some
/// engines that the request may go there, though it may not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct EngineSet(u64);

const ENGINE_BITS: u32 = 13;
const ENGINE_MASK: u64 = (1 << ENGINE_BITS) - 1;
const PLACES_SHIFT: u32 = 52;
const PLACES_MASK: u64 = (1 << 7) - 1;
const COUNT_SHIFT: u32 = 59;
const ONE: u64 = 1 << 62;

impl EngineSet {
    #[cfg(any(test, loom))]
    pub(crate) const ANY: Self = Self(0);
    pub(crate) const MOST_EXCLUDED: usize = 4;
    /// The bits that are used.
    pub(crate) const BITS: u64 = (0b1_111 << COUNT_SHIFT) | ((1 << COUNT_SHIFT) - 1);

    pub(crate) fn one(engine: usize) -> Self {
        Self(ONE | (engine as u64 & ENGINE_MASK))
    }

    pub(crate) fn all_but(excluded: impl Iterator<Item = usize>) -> Self {
        let mut known: Vec<u64> = excluded.map(|engine| engine as u64 & ENGINE_MASK).collect();
        // In one order, so that requests which exclude the same engines have the same set.
        known.sort_unstable();
        known.dedup();
        known.truncate(Self::MOST_EXCLUDED);
        let count = (known.len() as u64) << COUNT_SHIFT;
        let place = |(at, engine): (usize, &u64)| engine << (at as u32 * ENGINE_BITS);
        Self(count | known.iter().enumerate().map(place).sum::<u64>())
    }

    /// The same for a request that needs so many places. Of more than 128 it says 128.
    pub(crate) fn needing(self, places: usize) -> Self {
        let others = (places.saturating_sub(1) as u64).min(PLACES_MASK);
        Self(self.0 & !(PLACES_MASK << PLACES_SHIFT) | (others << PLACES_SHIFT))
    }

    /// How many places the request needs.
    pub(crate) fn places(self) -> u32 {
        (self.0 >> PLACES_SHIFT & PLACES_MASK) as u32 + 1
    }

    /// The one engine, if there is only one.
    pub(crate) fn only(self) -> Option<usize> {
        (self.0 & ONE != 0).then_some((self.0 & ENGINE_MASK) as usize)
    }

    pub(super) fn excluded(self) -> impl Iterator<Item = usize> {
        let count = (self.0 >> COUNT_SHIFT & 0b111).min(Self::MOST_EXCLUDED as u64);
        let count = if self.0 & ONE != 0 { 0 } else { count as u32 };
        (0..count).map(move |at| (self.0 >> (at * ENGINE_BITS) & ENGINE_MASK) as usize)
    }

    /// Whether the engine of that slot is one of them.
    pub(crate) fn has(self, engine: usize) -> bool {
        match self.only() {
            Some(only) => only == engine,
            None => self.excluded().all(|excluded| excluded != engine),
        }
    }

    /// Whether each of the other's engines is one of these.
    pub(crate) fn covers(self, other: Self) -> bool {
        match (self.only(), other.only()) {
            (_, Some(engine)) => self.has(engine),
            (Some(_), None) => false,
            (None, None) => self.excluded().all(|engine| !other.has(engine)),
        }
    }
}

impl fmt::Debug for EngineSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.places() > 1 {
            write!(f, "{} places on ", self.places())?;
        }
        if let Some(engine) = self.only() {
            return write!(f, "engine {engine}");
        }
        f.write_str("any engine")?;
        for (index, engine) in self.excluded().enumerate() {
            write!(f, "{}{engine}", if index == 0 { " but " } else { ", " })?;
        }
        Ok(())
    }
}

/// When a request began to wait, and its tokens. began to wait, ms 32 | tokens 32.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Size(u64);

impl Size {
    /// `since`: nanoseconds of the monotonic clock.
    pub(crate) fn new(tokens: u32, since: u64) -> Self {
        Self((u64::from(milliseconds(since)) << 32) | u64::from(tokens))
    }

    pub(crate) fn tokens(self) -> u32 {
        self.0 as u32
    }

    /// For how many milliseconds it has waited at `now`, in nanoseconds of the monotonic clock.
    pub(crate) fn age(self, now: u64) -> u32 {
        let age = milliseconds(now).wrapping_sub((self.0 >> 32) as u32);
        // A clock read a moment earlier on another processor is not an age of weeks.
        if age > u32::MAX / 2 { 0 } else { age }
    }
}

fn milliseconds(nanoseconds: u64) -> u32 {
    (nanoseconds / 1_000_000) as u32
}

impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens, since {} ms", self.tokens(), self.0 >> 32)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set() -> impl Strategy<Value = (EngineSet, Vec<bool>)> {
        let of = |set: EngineSet| (set, (0..6).map(|engine| set.has(engine)).collect());
        prop_oneof![
            Just(of(EngineSet::ANY)),
            (0..6_usize).prop_map(move |engine| of(EngineSet::one(engine))),
            prop::collection::vec(0..6_usize, 0..4)
                .prop_map(move |excluded| of(EngineSet::all_but(excluded.into_iter()))),
        ]
    }

    proptest! {
        #[test]
        fn sets_say_what_they_were_made_of(excluded in prop::collection::btree_set(0..4096_usize, 0..4), engine in 0..4096_usize) {
            let set = EngineSet::all_but(excluded.iter().copied());
            prop_assert_eq!(set.has(engine), !excluded.contains(&engine));
            prop_assert!(EngineSet::one(engine).has(engine));
            prop_assert_eq!(EngineSet::one(engine).has((engine + 1) % 4096), false);
            prop_assert!(EngineSet::ANY.has(engine));
        }

        #[test]
        fn a_set_keeps_its_engines_whatever_it_needs_there((set, has) in set(), (other, _) in set(), places in 1..300_usize) {
            let needing = set.needing(7).needing(places);
            prop_assert_eq!((set.places(), needing.places()), (1, places.min(128) as u32));
            prop_assert_eq!((needing.only(), needing.0 & !EngineSet::BITS), (set.only(), 0));
            for (engine, has) in has.into_iter().enumerate() {
                prop_assert_eq!(needing.has(engine), has);
            }
            prop_assert_eq!(needing.covers(other), set.covers(other));
            prop_assert_eq!(other.covers(needing), other.covers(set));
        }

        #[test]
        fn a_set_that_covers_another_has_its_engines((one, ones) in set(), (other, others) in set()) {
            // Engine 6 and above are in all sets but those of one engine.
            let open = one.only().is_none() || other.only().is_some();
            let covers = open && ones.iter().zip(&others).all(|(one, other)| *one || !*other);
            prop_assert_eq!(one.covers(other), covers, "{:?} {:?}", one, other);
        }

        #[test]
        fn tags_are_ordered_by_class_and_start(a in 0..CLASSES, b in 0..CLASSES, x in 1..START_MASK, y in 1..START_MASK) {
            prop_assert_eq!(Tag::new(a, x).cmp(&Tag::new(b, y)), (a, x).cmp(&(b, y)));
            prop_assert_eq!((Tag::new(a, x).class(), Tag::new(a, x).start()), (a, x));
            prop_assert!(Tag::NONE < Tag::new(a, x));
        }
    }
}
