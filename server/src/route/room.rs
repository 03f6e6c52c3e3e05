//! How much room the engines have, read from the table. Nothing is counted for that.

use crate::message::error_response::ErrorResponse;
use crate::route::Router;
use crate::route::permits::NoRoom;
use headcount::{EngineId, EngineState, EngineView, View};
use hyper::HeaderMap;
use std::sync::atomic::Ordering::Relaxed; // for a number of turns, which leads to no other memory

/// Where there is room for several requests at one engine.
#[derive(Debug)]
pub(crate) enum Room {
    /// At the active engines except these.
    But(Vec<EngineId>),
    /// At no engine. This one lacks least.
    Nowhere(EngineId),
    /// No engine takes requests.
    NoEngine,
}

impl Room {
    /// Finds room for so many requests with so many tokens in all, at one engine that is not closed.
    pub(crate) fn find(router: &Router, requests: u32, tokens: u32, closed: &[EngineId]) -> Self {
        let view = router.table.view();
        let active = (view.engines.iter())
            .filter(|e| e.state == EngineState::Active && !closed.contains(&e.id));
        let left_at = |e: &EngineView| {
            let requests = left(e.in_flight.into(), e.max_in_flight);
            (requests, left(e.tokens.into(), e.max_tokens))
        };
        let fits = |left: (u64, u64)| left.0 >= requests.into() && left.1 >= tokens.into();
        let (with_room, full): (Vec<_>, Vec<_>) = active.partition(|e| fits(left_at(e)));
        let nearest = (with_room.iter().chain(&full)).max_by_key(|e| left_at(e));
        match nearest {
            Some(nearest) if with_room.is_empty() || !fits(left_in_all(&view)) => {
                Self::Nowhere(nearest.id)
            }
            Some(_) => Self::But(full.iter().map(|engine| engine.id).collect()),
            None => Self::NoEngine,
        }
    }
}

/// Returns how much is left below a cap.
fn left(count: u64, cap: Option<u32>) -> u64 {
    cap.map_or(u64::MAX, |cap| u64::from(cap).saturating_sub(count))
}

/// Returns how many requests and tokens are left below the caps of all engines together.
fn left_in_all(view: &View) -> (u64, u64) {
    let total = |count: fn(&EngineView) -> u32| -> u64 {
        let engines = view.engines.iter();
        engines.map(|engine| u64::from(count(engine))).sum()
    };
    (
        left(total(|engine| engine.in_flight), view.max_in_flight),
        left(total(|engine| engine.tokens), view.max_tokens),
    )
}

/// Returns an engine at which several requests with so many tokens in all wait for room: of the active ones that are not
/// closed and ever have room for them, one that has most now. Of several, another one each time.
pub(super) fn engine_to_wait_at(
    router: &Router,
    requests: u32,
    tokens: u32,
    closed: &[EngineId],
) -> Result<EngineId, NoRoom> {
    let view = router.table.view();
    let active = |e: &&EngineView| e.state == EngineState::Active && !closed.contains(&e.id);
    let mut engines: Vec<_> = view.engines.iter().filter(active).collect();
    if engines.is_empty() {
        return Err(NoRoom::Other(ErrorResponse::NoEngine));
    }
    engines.retain(|e| {
        let ever = |cap: Option<u32>| cap.unwrap_or(u32::MAX);
        ever(e.max_in_flight) >= requests && ever(e.max_tokens) >= tokens
    });
    let turn = router.turn.fetch_add(1, Relaxed) % engines.len().max(1);
    engines.rotate_left(turn);
    let left_at = |e: &&EngineView| {
        let requests = left(e.in_flight.into(), e.max_in_flight);
        (requests, left(e.tokens.into(), e.max_tokens))
    };
    let most = engines.into_iter().max_by_key(left_at);
    most.map(|e| e.id).ok_or(NoRoom::Full { passes: false })
}

/// Fails if a request with this head would be refused now, whatever its body.
pub(crate) fn check(router: &Router, headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let view = router.table.view();
    let mut active = (view.engines.iter()).filter(|engine| engine.state == EngineState::Active);
    let mut refusal = ErrorResponse::NoEngine;
    let has_room = active.any(|engine| {
        refusal = ErrorResponse::Saturated;
        left(engine.in_flight.into(), engine.max_in_flight) > 0
            && left(engine.tokens.into(), engine.max_tokens) > 0
    });
    let (requests, tokens) = left_in_all(&view);
    if has_room && requests > 0 && tokens > 0 {
        return Ok(());
    }
    match (&router.queue, refusal) {
        (Some(queue), ErrorResponse::Saturated) => queue.check(&view, headers),
        (_, refusal) => Err(refusal),
    }
}

/// The largest request that ever has room, when no other request is in flight.
#[derive(Debug)]
pub(crate) struct LargestRequest {
    pub(crate) requests: u32,
    /// At engines that have room for its sequences.
    pub(crate) tokens: u32,
}

impl LargestRequest {
    pub(crate) fn of(router: &Router, requests: u32) -> Self {
        let view = router.table.view();
        let or_total = |most: Option<u32>, total: Option<u32>| {
            most.unwrap_or(u32::MAX).min(total.unwrap_or(u32::MAX))
        };
        let caps = || {
            let engines = view.engines.iter();
            engines.map(|e| [e.max_in_flight, e.max_tokens].map(|cap| cap.unwrap_or(u32::MAX)))
        };
        let tokens = caps()
            .filter(|[most, _]| *most >= requests)
            .map(|[_, tokens]| tokens);
        Self {
            requests: or_total(
                caps().map(|[requests, _]| requests).max(),
                view.max_in_flight,
            ),
            tokens: or_total(tokens.max(), view.max_tokens),
        }
    }
}
