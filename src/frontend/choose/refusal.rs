//! Why a request is refused, and whether waiting can help.

use super::single::Admission;
use super::{Chooser, NoChoice};
use crate::algorithm::total::{Full, Taken};
use crate::algorithm::word::RowState;
use crate::error::{Cap, RouteError, Unavailable};

/// When room is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// At this moment, on the engines that take requests.
    Now,
    /// If nothing was in flight and all engines took requests.
    Idle,
}

/// For how many requests there is room.
#[derive(Clone, Copy)]
struct Room {
    /// Below the caps in requests, whatever tokens they have.
    by_requests: u64,
    /// Below all caps.
    by_all: u64,
}

impl Room {
    /// The room for requests of so many tokens each, where so much is left below the caps.
    fn new(requests: u64, tokens_left: u64, tokens: u32) -> Self {
        let by_tokens = tokens_left.checked_div(tokens.into());
        Self {
            by_requests: requests,
            by_all: requests.min(by_tokens.unwrap_or(u64::MAX)),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            by_requests: self.by_requests.saturating_add(other.by_requests),
            by_all: self.by_all.saturating_add(other.by_all),
        }
    }
}

impl Chooser<'_> {
    /// Fails if there is no room for `count` requests like this one, as of now.
    pub(crate) fn check_room(&self, count: usize) -> Result<(), RouteError> {
        let Some(cap) = self.in_the_way(count, When::Now) else {
            return Ok(());
        };
        // If even one has no place, it is the reason for that which counts.
        Err(match self.refusal() {
            None => self.saturated(cap, count),
            Some(no_choice) => self.explain(no_choice, count),
        })
    }

    /// Why no engine may take the request, as of now. `None`: one may.
    #[cold]
    pub(super) fn refusal(&self) -> Option<NoChoice> {
        if let Some(engine) = self.request.pin {
            return self.pinned(engine).err();
        }
        let mut reason = NoChoice::AllClosed;
        for engine in 0..self.engines.in_use() {
            match (self.admits(engine), reason) {
                (Admission::Open(_), _) => return None,
                (Admission::AtItsCap(Full::Tokens), _) => {
                    reason = NoChoice::AtTheirCaps(Full::Tokens);
                }
                (Admission::AtItsCap(full), NoChoice::AllClosed) => {
                    reason = NoChoice::AtTheirCaps(full);
                }
                (Admission::AtItsCap(_) | Admission::Closed, _) => {}
            }
        }
        Some(reason)
    }

    /// That `count` requests like this one were refused by that cap, or by one that they are too large for.
    #[cold]
    pub(crate) fn saturated(&self, cap: Cap, count: usize) -> RouteError {
        let too_small = self.in_the_way(count, When::Idle);
        RouteError::Saturated {
            cap: too_small.unwrap_or(cap),
            passes: too_small.is_none(),
        }
    }

    /// Why `count` requests are not placed that come behind others on all their engines.
    #[cold]
    pub(crate) fn behind_all(&self, count: usize) -> RouteError {
        match self.refusal() {
            Some(no_choice) => self.explain(no_choice, count),
            None if self.engines.rows().hints().has_total_cap() => {
                self.saturated(Cap::TableRequests, count)
            }
            None => self.saturated(Cap::EngineRequests, count),
        }
    }

    /// The error of a call that was to place `count` requests.
    #[cold]
    pub(crate) fn explain(&self, no_choice: NoChoice, count: usize) -> RouteError {
        match no_choice {
            NoChoice::AtTheirCaps(full) => return self.saturated(Cap::of_engine(full), count),
            NoChoice::NotThere(engine) => return engine.not_there(),
            NoChoice::AllClosed => {}
        }
        let (mut engines, mut down, mut draining, mut excluded) = (0, 0, 0, 0);
        for engine in self.asked_for() {
            match self.engines.word(engine).state() {
                RowState::Removed => continue,
                RowState::Active if self.is_excluded(engine) => excluded += 1,
                RowState::Active => {}
                RowState::Draining => draining += 1,
                RowState::Down => down += 1,
            }
            engines += 1;
        }
        // Removed since it was found closed.
        if let Some(pinned) = self.request.pin.filter(|_| engines == 0) {
            return pinned.not_there();
        }
        RouteError::Unavailable(Unavailable::new(engines, down, draining, excluded))
    }

    /// The first cap below which there is no room for `count` requests like this one.
    fn in_the_way(&self, count: usize, when: When) -> Option<Cap> {
        let nothing = Room {
            by_requests: 0,
            by_all: 0,
        };
        let engines = (self.asked_for())
            .map(|engine| self.room_on(engine, when))
            .fold(nothing, Room::plus);
        let table = self.room_in_the_table(when);
        [
            (engines.by_requests, Cap::EngineRequests),
            (engines.by_all, Cap::EngineTokens),
            (table.by_requests, Cap::TableRequests),
            (table.by_all, Cap::TableTokens),
        ]
        .into_iter()
        .find_map(|(room, cap)| (room < count as u64).then_some(cap))
    }

    /// The slots that the request may go to, as far as it says so.
    fn asked_for(&self) -> std::ops::Range<usize> {
        let in_use = self.engines.in_use();
        match self.request.pin {
            Some(engine) if engine.index() < in_use => engine.index()..engine.index() + 1,
            Some(_) => 0..0,
            None => 0..in_use,
        }
    }

    fn room_on(&self, engine: usize, when: When) -> Room {
        let (word, tokens) = self.counter.observe(engine);
        let takes = match when {
            When::Now => word.is_active(),
            When::Idle => word.state() != RowState::Removed,
        };
        let is_kept = when == When::Now && self.is_behind(engine);
        if !takes || is_kept || self.is_excluded(engine) {
            return Room::new(0, 0, 0);
        }
        let (requests, tokens) = match when {
            When::Now => (word.value(), tokens),
            When::Idle => (0, 0),
        };
        let most = self.engines.limits(engine).max_in_flight();
        let most_tokens = self.engines.max_tokens(engine);
        Room::new(
            most.saturating_sub(requests).into(),
            most_tokens.saturating_sub(tokens).into(),
            self.request.tokens,
        )
    }

    fn room_in_the_table(&self, when: When) -> Room {
        let rows = self.engines.rows();
        let caps = rows.total_caps();
        let taken = match when {
            When::Now if !caps.is_none() => rows.taken(true),
            When::Now | When::Idle => Taken::default(),
        };
        let left = |cap: Option<u32>, taken| {
            cap.map_or(u64::MAX, |cap| u64::from(cap).saturating_sub(taken))
        };
        Room::new(
            left(caps.requests, taken.requests),
            left(caps.tokens, taken.tokens),
            self.request.tokens,
        )
    }
}
