//! The requests of a process that wait, in groups of one class and the same engines, and their heads in the table.

use super::waiter::Waiter;
use crate::algorithm::queue::order::{EngineSet, Size, Tag};
use crate::algorithm::queue::{Head, Queue};
use crate::algorithm::record::heads::HEADS;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The waiting requests of a frontend.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
}

/// The requests of one class that may go to the same engines.
#[derive(Debug)]
struct Group {
    class: usize,
    engines: EngineSet,
    /// Where its head is among those of its frontend. `None`: there are more groups than others can see.
    place: Option<usize>,
    waiters: BTreeMap<(Tag, u64), Arc<Waiter>>,
}

impl Group {
    fn first(&self) -> Option<&Arc<Waiter>> {
        self.waiters.first_key_value().map(|(_, waiter)| waiter)
    }

    /// Its order among the groups.
    fn first_key(&self) -> Option<(Tag, u64)> {
        self.waiters.first_key_value().map(|(key, _)| *key)
    }

    /// Shows its head to others, if they can see it.
    fn publish(&self, queue: &Queue<'_>, slot: usize) {
        if let (Some(place), Some(first)) = (self.place, self.first()) {
            let head = Head {
                tag: first.tag(),
                engines: self.engines.needing(first.count),
                size: Size::new(first.tokens(), first.since),
            };
            queue.publish(slot, place, head);
        }
    }
}

impl Groups {
    /// Adds a request. Returns whether it comes first in its group.
    pub(super) fn add(&mut self, waiter: &Arc<Waiter>, queue: &Queue<'_>, slot: usize) -> bool {
        let (class, engines) = (waiter.class(), waiter.engines);
        let is_of = |group: &Group| group.class == class && group.engines == engines;
        let index = self.groups.iter().position(is_of).unwrap_or_else(|| {
            self.groups.push(Group {
                class,
                engines,
                place: self.free_place(),
                waiters: BTreeMap::new(),
            });
            self.groups.len() - 1
        });
        let group = &mut self.groups[index];
        let key = (waiter.tag(), waiter.number);
        group.waiters.insert(key, Arc::clone(waiter));
        let is_first = (group.waiters.first_key_value()).is_some_and(|(first, _)| *first == key);
        if is_first {
            group.publish(queue, slot);
            self.show_the_first(queue, slot);
        }
        is_first
    }

    /// Takes a request out. Returns whether it was there.
    pub(super) fn remove(&mut self, waiter: &Waiter, queue: &Queue<'_>, slot: usize) -> bool {
        let key = (waiter.tag(), waiter.number);
        let has = |group: &Group| group.waiters.contains_key(&key);
        let Some(index) = self.groups.iter().position(has) else {
            return false;
        };
        let group = &mut self.groups[index];
        let was_first = group.waiters.first_key_value().map(|(first, _)| *first) == Some(key);
        group.waiters.remove(&key);
        if !group.waiters.is_empty() {
            if was_first {
                group.publish(queue, slot);
                self.show_the_first(queue, slot);
            }
            return true;
        }
        if let Some(place) = self.groups.swap_remove(index).place {
            queue.clear(slot, place);
            self.show_the_first(queue, slot);
        }
        true
    }

    /// Has others see those groups that come first, if they cannot see all. This frontend looks for places next, for
    /// all of them.
    fn show_the_first(&mut self, queue: &Queue<'_>, slot: usize) {
        loop {
            let is_seen = |index: &usize| self.groups[*index].place.is_some();
            let key = |index: &usize| self.groups[*index].first_key();
            let (seen, unseen): (Vec<_>, Vec<_>) = (0..self.groups.len()).partition(is_seen);
            let Some(first) = unseen.into_iter().min_by_key(key) else {
                return;
            };
            let mut place = self.free_place();
            if place.is_none() {
                let last = seen.into_iter().max_by_key(key);
                let Some(last) = last.filter(|last| key(&first) < key(last)) else {
                    return;
                };
                place = self.groups[last].place.take();
                place.into_iter().for_each(|place| queue.clear(slot, place));
            }
            self.groups[first].place = place;
            self.groups[first].publish(queue, slot);
        }
    }

    /// The first request of each group, in the order in which they are served.
    pub(super) fn heads(&self) -> Vec<Arc<Waiter>> {
        let mut heads: Vec<_> = (self.groups.iter())
            .filter_map(Group::first)
            .cloned()
            .collect();
        heads.sort_by_key(|waiter| (waiter.tag(), waiter.number));
        heads
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Waiter>> {
        self.groups.iter().flat_map(|group| group.waiters.values())
    }

    fn free_place(&self) -> Option<usize> {
        let is_free = |place: &usize| (self.groups.iter()).all(|group| group.place != Some(*place));
        (0..HEADS).find(is_free)
    }
}
