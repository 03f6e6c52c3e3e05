//! The queue, looked at from outside while others go on. Nothing here writes.

use super::order::{EngineSet, Tag};
use super::{Head, Queue};
use crate::algorithm::primitive::Ordering;
use crate::algorithm::record::heads::HEADS;

/// What is wrong with a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeadFault {
    /// Its tag has a class and no start.
    NoStart,
    /// Its start is later than each one that was ever drawn: this is the first that is.
    Start(u64),
    /// Its engines are none that a request can ask for.
    Engines,
    /// Its slot is not among those of which a request has ever waited: these.
    Slots(u64),
}

impl Queue<'_> {
    /// Returns the heads of a slot, each with its place, whether they are looked at by those who wake or not.
    pub(crate) fn heads_of(&self, slot: usize) -> impl Iterator<Item = (usize, Head)> {
        (0..HEADS).filter_map(move |place| Some((place, self.head(slot, place)?)))
    }

    /// Returns how many slots are said to be those of which a request has ever waited.
    pub(crate) fn slots_said(&self) -> u64 {
        // Relaxed: written before the head that was acquired, or a number by itself.
        self.record.slots.load(Ordering::Relaxed)
    }

    /// Returns how far a class has been served.
    pub(crate) fn served_to(&self, class: usize) -> u64 {
        // Relaxed: a number by itself. Together with older starts it may be too far for a moment, and not when both are
        // read again.
        self.record.served[class].load(Ordering::Relaxed)
    }

    /// Returns the first start that no request has drawn yet.
    pub(crate) fn next_start(&self) -> u64 {
        // Relaxed: each cell only grows, and those of a head's tag were written before the head that was acquired.
        (self.tenants.iter())
            .map(|cell| cell.load(Ordering::Relaxed))
            .max()
            .unwrap_or(0)
    }

    /// Returns what is wrong with a head that was just read, in a table of so many engines.
    pub(crate) fn head_fault(
        &self,
        slot: usize,
        head: &Head,
        max_engines: usize,
    ) -> Option<HeadFault> {
        let next = self.next_start();
        let slots = self.slots_said();
        match head.tag.start() {
            0 => Some(HeadFault::NoStart),
            start if start >= next && start < Tag::last_of(0).start() => {
                Some(HeadFault::Start(next))
            }
            _ if !head.engines.is_of(max_engines) => Some(HeadFault::Engines),
            _ if slots <= slot as u64 => Some(HeadFault::Slots(slots)),
            _ => None,
        }
    }
}

impl EngineSet {
    /// Whether a request of a table of so many engines can ask for it.
    fn is_of(self, max_engines: usize) -> bool {
        // However many places it needs there.
        let engines = self.needing(1);
        match self.only() {
            Some(engine) => engines == Self::one(engine) && engine < max_engines,
            None => {
                engines == Self::all_but(self.excluded())
                    && self.excluded().all(|engine| engine < max_engines)
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn engine_sets_that_no_request_asks_for_are_told() {
        let of_bits = |bits: u64| bytemuck::cast::<u64, EngineSet>(bits);
        let bits = |set: EngineSet| bytemuck::cast::<EngineSet, u64>(set);
        let (one, but) = (EngineSet::one(3), EngineSet::all_but([3, 1].into_iter()));
        for set in [EngineSet::ANY, one, but, EngineSet::all_but(0..9)] {
            assert!(set.is_of(4) && set.needing(300).is_of(4), "{set:?}");
        }
        assert!(!one.is_of(3) && !but.is_of(3));
        for (what, wrong) in [
            ("five engines", bits(but) | 7 << 59),
            ("one engine and a count", bits(one) | 1 << 59),
            ("one engine and a second", bits(one) | 1 << 13),
            ("an engine beyond the count", bits(but) | 2 << 26),
            ("an order of their own", 2 << 59 | 3 | 1 << 13),
            ("one engine twice", 2 << 59 | 3 | 3 << 13),
        ] {
            assert!(!of_bits(wrong).is_of(8), "{what}");
        }
    }
}
