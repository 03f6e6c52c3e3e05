//! Waiting for a place, in one queue over all processes.
//!
//! A request that finds no place counts itself on the queue's rows, takes a [tag](order::Tag), and stands in the memory
//! of its frontend. The first of those that may go to the same engines is a *head*, which others see in the
//! [table](super::record::heads). The smallest tag is served first. A request *comes first* on an engine if no head with
//! a smaller tag may go there.
//!
//! # Why no wake-up is lost
//!
//! | who | first | then a full fence | then |
//! |---|---|---|---|
//! | waits | publishes its head | [`look_anew`](Queue::look_anew) | looks for a place, and sleeps if there is none |
//! | frees a place: finishes, reaps, brings an engine up | frees it | [`is_awaited_after`](Queue::is_awaited_after) | looks at the heads, and wakes the first that may use it |
//! | leaves the queue: has a place, gives up, is reaped | clears its head | [`next_after`](Queue::next_after) | looks for free places, and wakes the first that may use one |
//!
//! Of two full fences one comes first. So of a request that waits and a process that frees a place, the one sees the
//! place or the other sees the head. If the process sees a head that is just being cleared, then the frontend that
//! clears it sees the place, and wakes the next. A frontend reads the word that it sleeps on before it looks, and
//! sleeps only while that has not changed: see [`serve`].
//!
//! A wake-up that is *under way* is noted beside the head, and not sent again: the woken frontend takes the note away
//! before it looks ([`look_anew`](Queue::look_anew)). A process that frees a place and finds the note there has
//! done so before that frontend's fence, so the frontend will see the place.
//!
//! # Who is passed over
//!
//! A frontend that has not answered a wake-up for [`PATIENCE`] is stopped or dead. Its heads hold no other back until it
//! answers. It keeps its tags, so it comes first again when it goes on. A process that finds a place free, and others in
//! line for it, wakes all of them: a finish woke only the first one, which may have been passed over since, and
//! the next ones may be stopped, too.
//!
//! # Deaths
//!
//! A process that dies between freeing a place and waking leaves a free place and a sleeper, and so does one that dies
//! between being woken and taking the place. Each frontend that waits looks by itself every 50 ms, and the second one every 10 ms. What a
//! dead process had counted on the queue's rows is returned by a reap, as on all rows, and its heads go with it. Of the
//! frontends that look in vain one [reaps](Queue::has_to_reap) every 20 ms.

pub(crate) mod audit;
pub(crate) mod order;
pub(crate) mod serve;

use super::counter::Counter;
use super::record::heads::{HEADS, HeadsRecord};
use super::record::queue::QueueRecord;
use super::rows::Rows;
use super::total::Taken;
use super::word::{Amount, LaneId};
use crate::algorithm::primitive::{AtomicU64, Ordering, fence, fence_after_swap};
use order::{CLASSES, EngineSet, Key, Size, Tag, UNIT};

/// How long a frontend may take to answer a wake-up before others are served that come after it, in nanoseconds.
pub(crate) const PATIENCE: u64 = 10_000_000;

/// How many heads of a frontend are looked at: in a model fewer, since each is an access.
const LOOKED_AT: usize = if cfg!(loom) { 2 } else { HEADS };

/// The most that one request moves its tenant's next start by, so that starts last for a million of the largest ones.
const MOST_COST: f64 = (1_u64 << 42) as f64;

/// How many virtual times of tenants a table has, hashed; those of requests without a tenant are beside them.
pub(crate) const TENANTS: usize = 512 - CLASSES;

/// The queue of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue<'a> {
    pub(crate) rows: Rows<'a>,
    pub(crate) record: &'a QueueRecord,
    /// Of each tenant, when its next request would be served if there were room: first those of requests without a
    /// tenant, by class, then [`TENANTS`].
    pub(crate) tenants: &'a [AtomicU64],
    /// By slot.
    pub(crate) heads: &'a [HeadsRecord],
}

/// The first of a frontend's requests that may go to the same engines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) tag: Tag,
    pub(crate) engines: EngineSet,
    pub(crate) size: Size,
}

/// The bound that keeps a request from waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    /// The table has no queue.
    NoQueue,
    /// As many wait as may in all.
    All,
    /// As many of its class wait as may.
    Class,
}

/// The bounds of a queue. 0: no queue, or no bound of that class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) all: u32,
    pub(crate) of_class: [u32; CLASSES],
    pub(crate) by_tokens: bool,
}

/// Whether other requests come first on the engines that a request may go to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// It comes first on all engines but these.
    Ahead { but: Vec<EngineSet> },
    /// Others come first on all of them.
    Behind,
}

impl<'a> Queue<'a> {
    fn counter(&self) -> &Counter<'a> {
        &self.rows.counter
    }

    /// Whether a request waits, as of a moment ago: one load of a line that no process writes while none waits.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        let counter = self.counter();
        counter.load(counter.queue_row).value() > 0
    }

    /// The same, for a process that has just freed a place by a read-modify-write: either it finds a request that waits
    /// now, or that request finds the place.
    #[inline]
    pub(crate) fn is_awaited_after(&self) -> bool {
        // Pairs with the fence in `look_anew`.
        fence_after_swap();
        self.is_awaited()
    }

    /// How many requests of a class wait.
    pub(crate) fn waiting(&self, class: usize) -> u32 {
        let counter = self.counter();
        counter.load(counter.queue_row + 1 + class).value()
    }

    pub(crate) fn bounds(&self) -> Bounds {
        // Relaxed, all: each is a number that a call goes by on its own; nothing else is read by what they say.
        let bound = |word: &AtomicU64| word.load(Ordering::Relaxed) as u32;
        Bounds {
            all: bound(&self.record.max_waiting),
            of_class: core::array::from_fn(|class| bound(&self.record.max_waiting_of_class[class])),
            by_tokens: bound(&self.record.by_tokens) != 0,
        }
    }

    pub(crate) fn set_bounds(&self, bounds: Bounds) {
        // Relaxed, all: as in `bounds`.
        let set = |word: &AtomicU64, bound: u32| word.store(bound.into(), Ordering::Relaxed);
        (self.record.max_waiting_of_class.iter())
            .zip(bounds.of_class)
            .for_each(|(word, bound)| set(word, bound));
        set(&self.record.by_tokens, bounds.by_tokens.into());
        set(&self.record.max_waiting, bounds.all);
    }

    /// Counts a request of a class that is going to wait, as lane `me`, if the bounds allow it.
    pub(crate) fn enter(&self, me: LaneId, class: usize) -> Result<(), Bound> {
        let bounds = self.bounds();
        let all = self.counter().queue_row;
        let most = match bounds.all {
            0 => return Err(Bound::NoQueue),
            most => most,
        };
        if !self.count_below(me, all, most) {
            return Err(Bound::All);
        }
        let most = match bounds.of_class[class] {
            0 => u32::MAX,
            most => most,
        };
        if !self.count_below(me, all + 1 + class, most) {
            self.counter().add(me, all, Amount::request(0).negated());
            return Err(Bound::Class);
        }
        Ok(())
    }

    /// Takes a request of a class off, as lane `me`: it waits no more.
    pub(crate) fn leave(&self, me: LaneId, class: usize) {
        let (all, one) = (self.counter().queue_row, Amount::request(0).negated());
        self.counter().add(me, all + 1 + class, one);
        self.counter().add(me, all, one);
    }

    fn count_below(&self, me: LaneId, row: usize, most: u32) -> bool {
        loop {
            let seen = self.counter().load(row);
            if seen.value() >= most {
                return false;
            }
            // A failed attempt means that another operation on the row took effect.
            if self.counter().attempt(me, row, seen, Amount::request(0)) {
                return true;
            }
        }
    }

    /// Draws the tag of a request that begins to wait, and is counted. `tenant`: a hash of its name. `weight`: that of its
    /// tenant.
    ///
    /// If no other request of its class waits, all tenants begin anew: virtual time goes on to the latest start that was
    /// drawn. So turns of requests that have given up do not count against their tenants for longer than requests wait.
    pub(crate) fn draw(&self, class: usize, tenant: Option<u64>, tokens: u32, weight: f32) -> Tag {
        // Relaxed, all: numbers, of which each has only to be later than those that were drawn before it from one word.
        if self.waiting(class) <= 1 {
            let latest = self.record.drawn[class].load(Ordering::Relaxed);
            self.record.served[class].fetch_max(latest, Ordering::Relaxed);
        }
        let now = self.record.served[class].load(Ordering::Relaxed);
        let cell = match tenant {
            None => class,
            // Each class has turns of its own.
            Some(hash) => {
                let of_class =
                    hash.wrapping_add((class as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                CLASSES + (of_class % TENANTS as u64) as usize
            }
        };
        let units = match self.record.by_tokens.load(Ordering::Relaxed) {
            0 => 1,
            _ => u64::from(tokens.max(1)),
        };
        let cost = ((units * UNIT) as f64 / f64::from(weight)).clamp(1.0, MOST_COST) as u64;
        let cell = &self.tenants[cell];
        let mut seen = cell.load(Ordering::Relaxed);
        loop {
            let start = seen.max(now).max(1);
            match cell.compare_exchange(
                seen,
                start.saturating_add(cost),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    self.record.drawn[class].fetch_max(start, Ordering::Relaxed);
                    return Tag::new(class, start);
                }
                Err(other) => seen = other,
            }
        }
    }

    /// Says that the request of a tag has its place: virtual time has come to its start.
    pub(crate) fn served(&self, tag: Tag, now: u64) {
        // Relaxed, all: numbers that are only compared, and for people.
        self.record.served[tag.class()].fetch_max(tag.start(), Ordering::Relaxed);
        let last = self.record.last_served_at.load(Ordering::Relaxed);
        self.record.last_served_at.store(now, Ordering::Relaxed);
        let gap = now.saturating_sub(last);
        let pace = self.record.pace.load(Ordering::Relaxed);
        let pace = match pace {
            _ if last == 0 => 0,
            0 => gap,
            // The last sixteen or so count.
            pace => pace - pace / 16 + gap / 16,
        };
        self.record.pace.store(pace, Ordering::Relaxed);
    }

    /// For how many nanoseconds a request would wait behind `ahead` others, by the rate at which requests that waited
    /// were served lately. 0: not known.
    pub(crate) fn expected_wait(&self, ahead: u32) -> u64 {
        // Relaxed: for a hint.
        let pace = self.record.pace.load(Ordering::Relaxed);
        pace.saturating_mul(u64::from(ahead) + 1)
    }

    /// Shows a head to others. In its place may be another one, of requests that may go to the same engines; others see
    /// one of the two at each moment. The frontend [looks](Self::look_anew) next.
    pub(crate) fn publish(&self, slot: usize, place: usize, head: Head) {
        // Relaxed: before the head, whose fence below orders it.
        let slots = &self.record.slots;
        if slots.load(Ordering::Relaxed) <= slot as u64 {
            slots.fetch_max(slot as u64 + 1, Ordering::Relaxed);
        }
        let heads = &self.heads[slot];
        // Relaxed: our own last store.
        if heads.tags[place].load(Ordering::Relaxed) == Tag::NONE {
            // Release fence: pairs with the Acquire fence in `head`. Who reads one of the words below must see that the
            // head before this one is gone.
            fence(Ordering::Release);
        }
        // Relaxed, both: made visible by the tag.
        heads.engines[place].store(head.engines, Ordering::Relaxed);
        heads.sizes[place].store(head.size, Ordering::Relaxed);
        // Release: pairs with the Acquire in `head`. Who sees the tag must see the two above.
        heads.tags[place].store(head.tag, Ordering::Release);
    }

    /// Takes a head away. Its frontend, or who reaps that, looks for [the next](Self::next_after).
    pub(crate) fn clear(&self, slot: usize, place: usize) {
        // Relaxed: the fence in `next_after` orders it before the look at the places.
        self.heads[slot].tags[place].store(Tag::NONE, Ordering::Relaxed);
    }

    /// Takes away all heads of a slot whose frontend is gone, or is just joining.
    pub(crate) fn clear_all(heads: &HeadsRecord) {
        // Relaxed, all: as in `clear`.
        (heads.tags.iter()).for_each(|tag| tag.store(Tag::NONE, Ordering::Relaxed));
        heads.woken_at.store(0, Ordering::Relaxed);
    }

    /// The word that a frontend sleeps on, to be read before it [looks](Self::look_anew): it sleeps only while the word
    /// is this one.
    pub(crate) fn wake_word(&self, slot: usize) -> u64 {
        // Acquire: pairs with the Release in `ring`. Who sees a wake-up must see the place that it is for.
        self.heads[slot].wake.load(Ordering::Acquire)
    }

    /// Begins a look for places, by a frontend whose heads are published: a wake-up that comes from now on is a new one.
    pub(crate) fn look_anew(&self, slot: usize) {
        // Relaxed: the fence orders it before the look.
        self.heads[slot].woken_at.store(0, Ordering::Relaxed);
        // SeqCst fence: pairs with those in `is_awaited_after` and `next_after`. Either we see the place that another
        // process has freed, or it sees our head, and that no wake-up is under way.
        fence(Ordering::SeqCst);
    }

    /// Notes that a wake-up of a frontend is under way. False: one is already, and none has to be sent.
    pub(crate) fn note_wake(&self, slot: usize, now: u64) -> bool {
        let heads = &self.heads[slot];
        // Relaxed, both: ordered after the fence of who frees a place; two that wake at once do no harm.
        if heads.woken_at.load(Ordering::Relaxed) != 0 {
            return false;
        }
        heads.woken_at.store(now.max(1), Ordering::Relaxed);
        self.ring(slot);
        true
    }

    /// Changes the word that a frontend sleeps on.
    pub(crate) fn ring(&self, slot: usize) {
        // Release: pairs with the Acquire in `wake_word`.
        self.heads[slot].wake.fetch_add(1, Ordering::Release);
    }

    /// Whether a frontend has not answered a wake-up for too long.
    fn is_passed_over(&self, slot: usize, now: u64) -> bool {
        // Relaxed: a time, by which no other word is read.
        let woken_at = self.heads[slot].woken_at.load(Ordering::Relaxed);
        woken_at != 0 && now.saturating_sub(woken_at) > PATIENCE
    }

    /// Returns a head as others see it, if there is one that stays for the time of the look. One that is just being
    /// replaced is looked after by its frontend, which looks for a place next.
    pub(crate) fn head(&self, slot: usize, place: usize) -> Option<Head> {
        let heads = &self.heads[slot];
        // Acquire: pairs with the Release in `publish`.
        let tag = heads.tags[place].load(Ordering::Acquire);
        if tag == Tag::NONE {
            return None;
        }
        // Relaxed, both: the Acquire above, and the fence below.
        let engines = heads.engines[place].load(Ordering::Relaxed);
        let size = heads.sizes[place].load(Ordering::Relaxed);
        // Acquire fence: pairs with the Release fence in `publish`. If one of these is of a later head of other
        // engines, then the tag is not the same any more.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        let still = heads.tags[place].load(Ordering::Relaxed);
        (still == tag).then_some(Head { tag, engines, size })
    }

    /// How many slots may have heads.
    fn slots(&self) -> usize {
        // Relaxed: ordered by the fence before the look, like the heads themselves.
        let slots = self.record.slots.load(Ordering::Relaxed);
        (slots as usize).min(self.heads.len())
    }

    /// Returns all heads.
    pub(crate) fn all_heads(&self) -> impl Iterator<Item = (Key, Head)> {
        (0..self.slots()).flat_map(move |slot| {
            (0..LOOKED_AT).filter_map(move |place| {
                let head = self.head(slot, place)?;
                let key = Key {
                    tag: head.tag,
                    slot,
                };
                Some((key, head))
            })
        })
    }

    /// Returns the heads of the frontends that answer.
    fn heads_in_line(&self, now: u64) -> impl Iterator<Item = (Key, Head)> {
        self.all_heads()
            .filter(move |(key, _)| !self.is_passed_over(key.slot, now))
    }

    /// Whether others come first on the engines that a request may go to. Called after [`look_anew`](Self::look_anew), or by
    /// a request that does not wait.
    pub(crate) fn turn(&self, mine: Key, engines: EngineSet, now: u64) -> Turn {
        let has_total_cap = self.rows.hints().has_total_cap();
        let mut but = Vec::new();
        for (key, head) in self.heads_in_line(now) {
            if key >= mine {
                continue;
            }
            // Below a cap of the table, places are those of all engines.
            if head.engines.covers(engines) || has_total_cap && self.has_room(&head, &[]) {
                return Turn::Behind;
            }
            but.push(head.engines);
        }
        Turn::Ahead { but }
    }

    /// How many other frontends that answer have a head that comes before this one.
    pub(crate) fn frontends_before(&self, mine: Key, now: u64) -> usize {
        let mut before = 0;
        let mut last = mine.slot;
        for (key, _) in self.heads_in_line(now).filter(|(key, _)| *key < mine) {
            if key.slot != last {
                before += 1;
                last = key.slot;
            }
        }
        before
    }

    /// Returns the frontend to wake for a place that was freed on `engine`: that of the first head which may go there.
    /// Called after [`is_awaited_after`](Self::is_awaited_after).
    pub(crate) fn next_for(&self, engine: usize, now: u64) -> Option<usize> {
        if self.rows.hints().has_total_cap() {
            return self.first_with_room(now);
        }
        self.heads_in_line(now)
            .filter(|(_, head)| head.engines.has(engine))
            .min_by_key(|(key, _)| *key)
            .map(|(key, _)| key.slot)
    }

    /// Returns the frontend to wake after a head was cleared or replaced: that of the first head which a place is free
    /// for.
    pub(crate) fn next_after(&self, now: u64) -> Option<usize> {
        // SeqCst fence: pairs with those in `look_anew` and `is_awaited_after`. If another process still saw the cleared head
        // when it freed a place, then we see that place.
        fence(Ordering::SeqCst);
        if !self.is_awaited() {
            return None;
        }
        self.first_with_room(now)
    }

    fn first_with_room(&self, now: u64) -> Option<usize> {
        let mut heads: Vec<_> = self.heads_in_line(now).collect();
        heads.sort_unstable_by_key(|(key, _)| *key);
        let mut before: Vec<EngineSet> = Vec::new();
        for (key, head) in heads {
            if before.iter().any(|other| other.covers(head.engines)) {
                continue;
            }
            if self.has_room(&head, &before) {
                return Some(key.slot);
            }
            before.push(head.engines);
        }
        None
    }

    /// Whether there is room for a request on one of its engines that none of `but` has. One that needs several places
    /// needs them there, if it may go to that engine alone.
    fn has_room(&self, head: &Head, but: &[EngineSet]) -> bool {
        let (engines, places) = match head.engines.only() {
            Some(engine) => (engine..engine + 1, head.engines.places()),
            None => (0..usize::MAX, 1),
        };
        let tokens = head.size.tokens().saturating_mul(places);
        let in_use = self.rows.in_use(self.rows.hints());
        let on_an_engine = (engines.start..engines.end.min(in_use))
            .filter(|&engine| head.engines.has(engine) && !but.iter().any(|set| set.has(engine)))
            .any(|engine| {
                let (word, taken) = self.counter().observe(engine);
                // After the word, so that these are no older than it.
                word.has_room(self.rows.limits(engine).max_in_flight() as i32 - (places as i32 - 1))
                    && self.rows.has_room(engine, taken, tokens)
            });
        on_an_engine && self.has_room_in_all(head)
    }

    fn has_room_in_all(&self, head: &Head) -> bool {
        let caps = self.rows.total_caps();
        if !self.rows.hints().has_total_cap() || caps.is_none() {
            return true;
        }
        let taken: Taken = self.rows.taken(caps.tokens.is_some());
        let change = Amount::request(head.size.tokens());
        caps.full(taken, change).is_none()
    }
}
