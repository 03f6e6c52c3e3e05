//! What a request asks of the choice of its engine, and the places that it is given there.

use crate::json;
use crate::prompt::Prompt;
use crate::refusal::Refusal;
use crate::upload::Upload;
use crate::worker::Worker;
use headcount::{Cap, EngineState, EngineView, Error, Permit, Request};
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

/// The most sequences of one request, where no cap is lower.
const MOST_AT_ONCE: u32 = 16_384;

/// The most tokens of one request, where no cap is lower: more than any engine holds, and little enough of
/// the 2^32 - 1 that an engine counts at once for others to have room beside it.
const MOST_TOKENS: u32 = 1 << 28;

/// What a request asks for.
#[derive(Debug)]
pub(crate) struct Wish {
    /// Sequences that its engine will run.
    requests: u32,
    /// Tokens of all of them.
    tokens: u32,
    prefer: Option<(usize, f64)>,
}

/// Places for all that an engine will run for a request. Dropping them gives them back.
#[derive(Debug)]
pub(crate) struct Places {
    first: Permit,
    _others: Vec<Permit>,
}

impl Places {
    /// The number of their engine.
    pub(crate) fn engine(&self) -> usize {
        self.first.engine()
    }

    pub(crate) fn engine_name(&self) -> String {
        self.first.engine_name()
    }
}

impl Wish {
    /// What a request asks for whose body is there, or as much as is held of it.
    pub(crate) fn read(
        worker: &Worker,
        headers: &HeaderMap,
        upload: &Upload,
    ) -> Result<Self, Refusal> {
        let counts_tokens = worker.options.counts_tokens();
        let (body, beginning) = (upload.held(), worker.options.affinity_bytes);
        let prompt = match upload.length() {
            // Not all engines look at the type before they read JSON.
            _ if is_media(headers) && !json::begins_object(body) => Prompt::of_media(),
            Some(_) if upload.is_whole() => Prompt::read(body, beginning)?,
            Some(length) => Prompt::unread(body, length, beginning),
            None if counts_tokens => return Err(Refusal::LengthRequired),
            None => Prompt::unread(body, 0, beginning),
        };
        let requests = u32::try_from(prompt.requests).unwrap_or(u32::MAX);
        if requests > MOST_AT_ONCE {
            return Err(Refusal::TooManySequences {
                asked: prompt.requests,
                most: MOST_AT_ONCE,
            });
        }
        let tokens = u32::try_from(prompt.tokens).map_or(MOST_TOKENS, |n| n.min(MOST_TOKENS));
        Ok(Self {
            requests,
            tokens: if counts_tokens { tokens } else { 0 },
            // Without a prompt there is nothing to be warm.
            prefer: (!prompt.beginning.is_empty())
                .then(|| worker.affinity.prefer(&prompt.beginning))
                .flatten(),
        })
    }

    /// Chooses an engine and takes all the places there, or none.
    ///
    /// A number of tokens that no engine takes is an estimate that went too far, or a prompt that the engine
    /// knows how to refuse: such a request counts as many as the largest cap has, and so waits for an engine
    /// that has no others.
    pub(crate) fn take(&self, worker: &Worker, tried: &[usize]) -> Result<Places, Refusal> {
        match self.take_with(self.tokens, worker, tried) {
            Ok(places) => return Ok(places),
            Err(NoPlace::Other(refusal)) => return Err(refusal),
            Err(NoPlace::Full { passes: true }) if self.requests == 1 => {
                return Err(Refusal::Saturated);
            }
            Err(NoPlace::Full { .. }) => {}
        }
        let most = Most::of(worker, self.requests);
        if self.requests > most.requests {
            return Err(Refusal::TooManySequences {
                asked: self.requests.into(),
                most: most.requests,
            });
        }
        if self.tokens <= most.tokens {
            return Err(Refusal::Saturated);
        }
        (self.take_with(most.tokens, worker, tried)).map_err(|no_place| match no_place {
            NoPlace::Full { .. } => Refusal::Saturated,
            NoPlace::Other(refusal) => refusal,
        })
    }

    fn take_with(&self, tokens: u32, worker: &Worker, tried: &[usize]) -> Result<Places, NoPlace> {
        let others = self.requests - 1;
        // What does not divide evenly is the first one's.
        let of_each = tokens / self.requests;
        let of_first = tokens - of_each * others;
        let mut closed = tried.to_vec();
        // Several are not tried where there is no room for them now: it would take places from others for a
        // moment, and count as a refusal.
        let may_fit = others == 0 || self.close_full(tokens, worker, &mut closed);
        let mut is_full = false;
        // Each time round there is an engine less to choose, so this ends.
        loop {
            let mut request = Request::new().tokens(of_first).exclude(&closed);
            if let Some((engine, slack)) = self.prefer {
                request = request.prefer(engine, slack);
            }
            let first = match worker.frontend.route_with(&request) {
                Ok(permit) => permit,
                Err(Error::Saturated { passes, .. }) => return Err(NoPlace::Full { passes }),
                Err(Error::Unavailable { .. }) if is_full => {
                    return Err(NoPlace::Full { passes: true });
                }
                Err(Error::Unavailable { .. }) => return Err(NoPlace::Other(Refusal::NoEngine)),
                Err(error) => return Err(NoPlace::Other(Refusal::Table(error))),
            };
            let request = Request::new().tokens(of_each).pin(first.engine());
            let others = match others {
                0 => Ok(Vec::new()),
                _ => (worker.frontend).route_many_with(others as usize, &request),
            };
            match others {
                Ok(_others) => return Ok(Places { first, _others }),
                Err(Error::Saturated {
                    cap: Cap::EngineRequests | Cap::EngineTokens,
                    ..
                }) if may_fit => is_full = true,
                Err(Error::Saturated { passes, .. }) => return Err(NoPlace::Full { passes }),
                // Drained or gone since the first one was placed.
                Err(Error::Unavailable { .. } | Error::NoSuchEngine { .. }) => {}
                Err(error) => return Err(NoPlace::Other(Refusal::Table(error))),
            }
            closed.push(first.engine());
        }
    }

    /// Adds the engines that have no room now for all that is asked for. False, and none is added, if no other
    /// is left.
    fn close_full(&self, tokens: u32, worker: &Worker, closed: &mut Vec<usize>) -> bool {
        let fits = |count: u32, more: u32, cap: Option<u32>| {
            cap.is_none_or(|cap| more <= cap.saturating_sub(count))
        };
        let view = worker.table.snapshot();
        let active = (view.engines.into_iter())
            .filter(|e| e.state == EngineState::Active && !closed.contains(&e.index));
        let (with_room, full): (Vec<_>, Vec<_>) = active.partition(|e| {
            fits(e.in_flight, self.requests, e.max_in_flight)
                && fits(e.tokens, tokens, e.max_tokens)
        });
        if with_room.is_empty() {
            return false;
        }
        closed.extend(full.iter().map(|engine| engine.index));
        true
    }
}

/// Whether a request would be refused now, whatever it asks for. A look only: nothing is counted.
pub(crate) fn check_room(worker: &Worker) -> Result<(), Refusal> {
    let view = worker.table.snapshot();
    let is_below = |count: u64, cap: Option<u32>| cap.is_none_or(|cap| count < cap.into());
    let total = |count: fn(&EngineView) -> u32| -> u64 {
        view.engines
            .iter()
            .map(|engine| u64::from(count(engine)))
            .sum()
    };
    let mut active = (view.engines.iter()).filter(|engine| engine.state == EngineState::Active);
    let mut refusal = Refusal::NoEngine;
    let has_room = active.any(|engine| {
        refusal = Refusal::Saturated;
        is_below(engine.in_flight.into(), engine.max_in_flight)
            && is_below(engine.tokens.into(), engine.max_tokens)
    });
    let has_room = has_room
        && is_below(total(|engine| engine.in_flight), view.max_in_flight)
        && is_below(total(|engine| engine.tokens), view.max_tokens);
    if has_room { Ok(()) } else { Err(refusal) }
}

/// Why no places were taken.
#[derive(Debug)]
enum NoPlace {
    /// There is no room. `passes`: for as much, there may be later.
    Full {
        passes: bool,
    },
    Other(Refusal),
}

/// The most that one request can ever be given, when nothing else is in flight.
#[derive(Debug)]
struct Most {
    requests: u32,
    /// Where so many requests have room.
    tokens: u32,
}

impl Most {
    fn of(worker: &Worker, requests: u32) -> Self {
        let view = worker.table.snapshot();
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

/// Whether a body is a picture, a sound or a film, or a form with files.
fn is_media(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    ["multipart/", "audio/", "image/", "video/"]
        .iter()
        .any(|media| kind.starts_with(media))
}
