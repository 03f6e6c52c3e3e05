//! How much of an engine a request needs, and the permits that it gets there.

use crate::message::error_response::ErrorResponse;
use crate::message::upload::Upload;
use crate::route::Router;
use crate::route::json;
use crate::route::prompt::Prompt;
use crate::route::room::{LargestRequest, Room};
use crate::route::standing::Standing;
use headcount::{Cap, EngineId, Permit, Request, RouteError};
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

/// The most sequences of one request, if no cap is lower.
const MOST_AT_ONCE: u32 = 16_384;

/// The most tokens that one request counts, if no cap is lower: more than any engine can hold, and few
/// enough of the 2^32 - 1 that the table counts on an engine to leave room for other requests.
const MOST_TOKENS: u32 = 1 << 28;

/// What a request needs, and which engine it prefers.
#[derive(Debug)]
pub(crate) struct RoutingHints {
    /// How many sequences its engine will run.
    pub(super) requests: u32,
    /// The tokens of all sequences.
    pub(super) tokens: u32,
    pub(super) prefer: Option<(EngineId, f64)>,
    /// Its class and tenant, if there is a queue.
    pub(super) standing: Standing,
}

/// The permits of a request: one for each sequence that its engine will run.
#[derive(Debug)]
pub(crate) struct Permits {
    first: Permit,
    /// The tokens of the first when it was taken.
    of_first: u32,
    _others: Vec<Permit>,
}

impl Permits {
    pub(super) fn new(first: Permit, others: Vec<Permit>) -> Self {
        Self {
            of_first: first.tokens(),
            first,
            _others: others,
        }
    }

    /// Counts so many tokens of output, of all sequences together, beside those of the prompt. If a cap leaves no room
    /// for them, the count stays as it is, and the request goes on.
    pub(crate) fn set_output(&mut self, tokens: u64) {
        let tokens = u64::from(self.of_first).saturating_add(tokens);
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX).min(MOST_TOKENS);
        let _ = self.first.set_tokens(tokens);
    }

    /// Returns the engine.
    pub(crate) fn engine(&self) -> EngineId {
        self.first.engine()
    }

    /// Returns the engine's name, which is its address.
    pub(crate) fn engine_name(&self) -> String {
        self.first.engine_name()
    }
}

impl RoutingHints {
    /// Reads the hints of a request from its head and the collected part of its body.
    pub(crate) fn read(
        router: &Router,
        headers: &HeaderMap,
        upload: &Upload,
    ) -> Result<Self, ErrorResponse> {
        let counts_tokens = router.counts_tokens;
        let (body, beginning) = (upload.held(), router.affinity_bytes);
        let prompt = match upload.length() {
            // Some engines read JSON whatever the type says.
            _ if is_media(headers) && !json::begins_object(body) => Prompt::of_media(),
            Some(_) if upload.is_whole() => Prompt::read(body, beginning)?,
            Some(length) => Prompt::unread(body, length, beginning),
            None if counts_tokens => return Err(ErrorResponse::LengthRequired),
            None => Prompt::unread(body, 0, beginning),
        };
        let standing = match &router.queue {
            Some(queue) => queue.standings.read(headers)?,
            None => Standing::default(),
        };
        let requests = u32::try_from(prompt.requests).unwrap_or(u32::MAX);
        if requests > MOST_AT_ONCE {
            return Err(ErrorResponse::TooManySequences {
                asked: prompt.requests,
                most: MOST_AT_ONCE,
            });
        }
        let tokens = u32::try_from(prompt.tokens).map_or(MOST_TOKENS, |n| n.min(MOST_TOKENS));
        Ok(Self {
            requests,
            tokens: if counts_tokens { tokens } else { 0 },
            // Without a prompt, no cache is warm.
            prefer: (!prompt.beginning.is_empty())
                .then(|| router.affinity.prefer(&prompt.beginning))
                .flatten(),
            standing,
        })
    }

    /// Chooses an engine and takes all permits there, or none.
    ///
    /// More tokens than every cap are an estimate that went too far, or a prompt that the engine itself refuses.
    /// Such a request counts as many tokens as the largest cap, so it waits for an engine without other requests.
    pub(super) fn take(
        &self,
        router: &Router,
        tried: &[EngineId],
    ) -> Result<Permits, ErrorResponse> {
        match self.take_with(self.tokens, router, tried) {
            Ok(permits) => return Ok(permits),
            Err(NoRoom::Other(error)) => return Err(error),
            Err(NoRoom::Full { passes: true }) if self.requests == 1 => {
                return Err(ErrorResponse::Saturated);
            }
            Err(NoRoom::Full { .. }) => {}
        }
        let tokens = self.most_tokens(router)?;
        let placed = self.take_with(tokens, router, tried);
        placed.map_err(NoRoom::into_response)
    }

    /// Returns how many tokens a request counts that found no room with all its own: as many as the largest cap.
    /// Fails if it has less than that, or more requests than any engine takes.
    pub(super) fn most_tokens(&self, router: &Router) -> Result<u32, ErrorResponse> {
        let most = LargestRequest::of(router, self.requests);
        if self.requests > most.requests {
            return Err(ErrorResponse::TooManySequences {
                asked: self.requests.into(),
                most: most.requests,
            });
        }
        if self.tokens <= most.tokens {
            return Err(ErrorResponse::Saturated);
        }
        Ok(most.tokens)
    }

    fn take_with(
        &self,
        tokens: u32,
        router: &Router,
        tried: &[EngineId],
    ) -> Result<Permits, NoRoom> {
        let others = self.requests - 1;
        // The first sequence takes the remainder.
        let of_each = tokens / self.requests;
        let of_first = tokens - of_each * others;
        let mut tried = tried.to_vec();
        let mut is_full = false;
        // Each round leaves out one more engine, so the loop ends.
        loop {
            let mut closed = tried.clone();
            // A batch is not tried where it has no room now: a failed try would keep other requests out for
            // a moment.
            match (others > 0).then(|| Room::find(router, self.requests, tokens, &tried)) {
                Some(Room::But(full)) => closed.extend(full),
                Some(Room::Nowhere(nearest)) => {
                    if let Some(permits) = self.take_at_nearest(tokens, router, nearest)? {
                        return Ok(permits);
                    }
                    tried.push(nearest);
                    continue;
                }
                Some(Room::NoEngine) | None => {}
            }
            let mut request = Request::new().tokens(of_first).exclude(&closed);
            if let Some((engine, slack)) = self.prefer {
                request = request.prefer(engine, slack);
            }
            let first = match router.frontend.route_with(&request) {
                Ok(permit) => permit,
                Err(RouteError::Saturated { passes, .. }) => return Err(NoRoom::Full { passes }),
                Err(RouteError::Unavailable(_)) if is_full => {
                    return Err(NoRoom::Full { passes: true });
                }
                Err(RouteError::Unavailable(_)) => {
                    return Err(NoRoom::Other(ErrorResponse::NoEngine));
                }
                Err(error) => return Err(NoRoom::Other(ErrorResponse::Table(error.into()))),
            };
            let request = Request::new().tokens(of_each).pin(first.engine());
            let others = match others {
                0 => Ok(Vec::new()),
                _ => (router.frontend).route_many_with(others as usize, &request),
            };
            match others {
                Ok(others) => {
                    return Ok(Permits::new(first, others));
                }
                // Other requests were faster.
                Err(RouteError::Saturated {
                    cap: Cap::EngineRequests | Cap::EngineTokens,
                    ..
                }) => is_full = true,
                Err(RouteError::Saturated { passes, .. }) => return Err(NoRoom::Full { passes }),
                // The engine was drained or removed since the first sequence was placed.
                Err(RouteError::Unavailable(_) | RouteError::NoSuchEngine { .. }) => {}
                Err(error) => return Err(NoRoom::Other(ErrorResponse::Table(error.into()))),
            }
            tried.push(first.engine());
        }
    }

    /// Asks the table for the whole batch although there was no room: so the table counts a refusal, and
    /// reaps dead frontends. Returns the permits if there is room by then, and `None` if the engine has
    /// left meanwhile.
    fn take_at_nearest(
        &self,
        tokens: u32,
        router: &Router,
        engine: EngineId,
    ) -> Result<Option<Permits>, NoRoom> {
        // Rounded up, so that this asks for no less than what had no room.
        let of_each = tokens.div_ceil(self.requests);
        let request = Request::new().tokens(of_each).pin(engine);
        let placed = (router.frontend).route_many_with(self.requests as usize, &request);
        match placed {
            Ok(mut permits) => Ok((permits.pop()).map(|first| Permits::new(first, permits))),
            Err(RouteError::Saturated { passes, .. }) => Err(NoRoom::Full { passes }),
            Err(RouteError::Unavailable(_) | RouteError::NoSuchEngine { .. }) => Ok(None),
            Err(error) => Err(NoRoom::Other(ErrorResponse::Table(error.into()))),
        }
    }
}

/// Why no permits were taken.
#[derive(Debug)]
pub(super) enum NoRoom {
    /// There is no room. `passes`: there may be room for as much later.
    Full {
        passes: bool,
    },
    Other(ErrorResponse),
}

impl NoRoom {
    pub(super) fn into_response(self) -> ErrorResponse {
        match self {
            Self::Full { .. } => ErrorResponse::Saturated,
            Self::Other(error) => error,
        }
    }
}

/// Whether a body is an image, audio or video, or a form with files.
fn is_media(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().as_bytes();
    ["multipart/", "audio/", "image/", "video/"]
        .iter()
        .any(|media| {
            let start = kind.get(..media.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(media.as_bytes()))
        })
}
