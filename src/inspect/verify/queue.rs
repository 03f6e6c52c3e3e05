//! The queue: its bounds, how far it has come, and the heads of frontends.
//!
//! A request counts itself before it shows a head, and takes its head away before it takes itself off the count. So at
//! each moment a frontend has no more heads than it counts, dead or alive. It counts itself on the row of all that wait
//! before that of its class, and takes itself off in the other order.

use super::{Fault, FaultKind, Look, Verification, steady};
use crate::algorithm::queue::Head;
use crate::algorithm::queue::audit::HeadFault;
use crate::algorithm::queue::order::CLASSES;
use crate::table::Table;
use std::fmt;

fn wrong(
    at: impl fmt::Display,
    found: impl fmt::Display,
    expected: impl fmt::Display,
) -> Look<Fault> {
    Look::Wrong(Fault::new(FaultKind::Queue, at, found, expected))
}

impl Table {
    pub(super) fn verify_queue(&self, found: &mut Verification) {
        let look = steady(|| self.look_at_queue());
        found.note(|| "the queue".to_owned(), look);
        for slot in 0..self.mapping().registry().slots.len() {
            let look = steady(|| self.look_at_heads(slot));
            found.note(|| format!("the heads of frontend slot {slot}"), look);
            let look = steady(|| self.look_at_classes(slot));
            found.note(|| format!("what waits of frontend slot {slot}"), look);
        }
    }

    /// What the queue says as a whole. Each of its bounds is possible that has no unused bit.
    fn look_at_queue(&self) -> Look<Fault> {
        let (queue, slots) = (self.queue(), self.mapping().registry().slots.len());
        let said = queue.slots_said();
        if said > slots as u64 {
            let is = format!("{said} slots of which requests have waited");
            return wrong("the queue", is, format!("at most {slots}"));
        }
        for class in 0..CLASSES {
            // Before the next start, which only grows.
            let to = queue.served_to(class);
            let next = queue.next_start();
            if to > 0 && to >= next {
                let at = format!("class {class} of the queue");
                let is = format!("served up to the start {to}");
                return wrong(at, is, format!("below {next}, the next one"));
            }
        }
        Look::Fine
    }

    /// One look at the heads of a slot: whether each can be, and whether the slot's frontend counts as many requests.
    fn look_at_heads(&self, slot: usize) -> Look<Fault> {
        let (queue, registry) = (self.queue(), self.mapping().registry());
        let word = registry.slots[slot].word();
        let heads: Vec<_> = queue.heads_of(slot).collect();
        let Some((place, first)) = heads.first() else {
            return Look::Fine;
        };
        let at = |place: &usize, head: &Head| {
            format!("head {place} of frontend slot {slot} ({:?})", head.tag)
        };
        let is_still = || {
            registry.slots[slot].word() == word && heads.iter().copied().eq(queue.heads_of(slot))
        };
        let fault = heads.iter().find_map(|(place, head)| {
            let (is, should) = self.head_fault(slot, head)?;
            Some(wrong(at(place, head), is, should))
        });
        let fault = match fault {
            Some(fault) => fault,
            None if !word.is_taken() => wrong(
                at(place, first),
                "a request that waits, though the slot is vacant",
                "none",
            ),
            None => match self.look_at_counted(slot, &heads) {
                Look::Fine => return Look::Fine,
                look => look,
            },
        };
        match is_still() {
            true => fault,
            false => Look::Moved,
        }
    }

    fn head_fault(&self, slot: usize, head: &Head) -> Option<(String, String)> {
        let max_engines = self.header().geometry.max_engines;
        let fault = self.queue().head_fault(slot, head, max_engines)?;
        Some(match fault {
            HeadFault::NoStart => ("no start".to_owned(), "1 or later".to_owned()),
            HeadFault::Start(next) => (
                "a start that no request has drawn".to_owned(),
                format!("below {next}, the next one"),
            ),
            HeadFault::Engines => (
                format!("a request for {:?}", head.engines),
                format!("for one of {max_engines} engines, or all but a few of them"),
            ),
            HeadFault::Slots(slots) => (
                "in a slot of which no request has waited".to_owned(),
                format!("in one of the first {slots}"),
            ),
        })
    }

    /// Whether a slot counts as many requests of each class as it has heads.
    fn look_at_counted(&self, slot: usize, heads: &[(usize, Head)]) -> Look<Fault> {
        let registry = self.mapping().registry();
        let queue_row = registry.counter.queue_row;
        for class in 0..CLASSES {
            let row = queue_row + 1 + class;
            let of_class = heads.iter().filter(|(_, head)| head.tag.class() == class);
            let shown = of_class.count() as i64;
            if shown <= registry.ledger(slot, row).requests() {
                continue;
            }
            let Some([counted]) = self.held_at_once(slot, [row]) else {
                return Look::Moved;
            };
            if shown > counted {
                return wrong(
                    format!("frontend slot {slot}"),
                    format!("{shown} heads of class {class}"),
                    format!("at most {counted}, the requests of that class that it counts"),
                );
            }
        }
        Look::Fine
    }

    /// Whether a slot counts as many requests in all as of all classes together, but for one that each of its lanes is
    /// about to count or to take off.
    fn look_at_classes(&self, slot: usize) -> Look<Fault> {
        let registry = self.mapping().registry();
        let most = registry.lanes_per_slot as i64;
        let rows: [usize; CLASSES + 1] = std::array::from_fn(|n| registry.counter.queue_row + n);
        let can_be = |held: [i64; CLASSES + 1]| {
            let of_classes = held[1..]
                .iter()
                .fold(0, |sum: i64, of| sum.wrapping_add(*of));
            (0..=most).contains(&held[0].wrapping_sub(of_classes))
        };
        if can_be(rows.map(|row| registry.ledger(slot, row).requests())) {
            return Look::Fine;
        }
        let word = registry.slots[slot].word();
        // A reap takes all of them off, row by row; a vacant slot has ledgers that hold nothing, which is looked at
        // with the counts.
        if !word.is_taken() || word.is_reaping() {
            return Look::Fine;
        }
        match self.held_at_once(slot, rows) {
            _ if registry.slots[slot].word() != word => Look::Moved,
            None => Look::Moved,
            Some(held) if can_be(held) => Look::Fine,
            Some([all, of_class @ ..]) => wrong(
                format!("frontend slot {slot}"),
                format!("{all} requests that wait"),
                format!("as many as of its classes: {of_class:?}"),
            ),
        }
    }

    /// Returns the requests that a slot counts on these rows, as of one moment. `None`: a row has moved meanwhile.
    fn held_at_once<const N: usize>(&self, slot: usize, rows: [usize; N]) -> Option<[i64; N]> {
        let registry = self.mapping().registry();
        let counter = &registry.counter;
        let seen = rows.map(|row| counter.load(row));
        let mut held = [0; N];
        for ((held, row), seen) in held.iter_mut().zip(rows).zip(seen) {
            for lane in 0..registry.lanes_per_slot {
                let ledger = counter.ledger_at(registry.lane(slot, lane), row, seen)?;
                *held = i64::wrapping_add(*held, ledger.requests());
            }
        }
        let is_still = rows
            .iter()
            .zip(seen)
            .all(|(row, seen)| counter.still(*row, seen));
        is_still.then_some(held)
    }
}
