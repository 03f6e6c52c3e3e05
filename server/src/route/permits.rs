//! What a request asks of the choice of its engine, and the places that it is given there.

use crate::message::error_response::ErrorResponse;
use crate::message::upload::Upload;
use crate::route::Router;
use crate::route::json;
use crate::route::prompt::Prompt;
use crate::route::room::{Largest, Room};
use headcount::{Cap, EngineId, Permit, Request, RouteError};
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

/// The most sequences of one request, where no cap is lower.
const MOST_AT_ONCE: u32 = 16_384;

/// The most tokens of one request, where no cap is lower: more than any engine holds, and little enough of
/// the 2^32 - 1 that an engine counts at once for others to have room beside it.
const MOST_TOKENS: u32 = 1 << 28;

/// What a request asks for.
#[derive(Debug)]
pub(crate) struct RoutingHints {
    /// Sequences that its engine will run.
    requests: u32,
    /// Tokens of all of them.
    tokens: u32,
    prefer: Option<(EngineId, f64)>,
}

/// Permits for all that an engine will run for a request. Dropping them gives them back.
#[derive(Debug)]
pub(crate) struct Permits {
    first: Permit,
    _others: Vec<Permit>,
}

impl Permits {
    /// The number of their engine.
    pub(crate) fn engine(&self) -> EngineId {
        self.first.engine()
    }

    pub(crate) fn engine_name(&self) -> String {
        self.first.engine_name()
    }
}

impl RoutingHints {
    /// What a request asks for whose body is there, or as much as is held of it.
    pub(crate) fn read(
        router: &Router,
        headers: &HeaderMap,
        upload: &Upload,
    ) -> Result<Self, ErrorResponse> {
        let counts_tokens = router.counts_tokens;
        let (body, beginning) = (upload.held(), router.affinity_bytes);
        let prompt = match upload.length() {
            // Not all engines look at the type before they read JSON.
            _ if is_media(headers) && !json::begins_object(body) => Prompt::of_media(),
            Some(_) if upload.is_whole() => Prompt::read(body, beginning)?,
            Some(length) => Prompt::unread(body, length, beginning),
            None if counts_tokens => return Err(ErrorResponse::LengthRequired),
            None => Prompt::unread(body, 0, beginning),
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
            // Without a prompt there is nothing to be warm.
            prefer: (!prompt.beginning.is_empty())
                .then(|| router.affinity.prefer(&prompt.beginning))
                .flatten(),
        })
    }

    /// Chooses an engine and takes all the places there, or none.
    ///
    /// A number of tokens that no engine takes is an estimate that went too far, or a prompt that the engine
    /// knows how to refuse: such a request counts as many as the largest cap has, and so waits for an engine
    /// that has no others.
    pub(crate) fn take(&self, router: &Router, tried: &[EngineId]) -> Result<Permits, ErrorResponse> {
        match self.take_with(self.tokens, router, tried) {
            Ok(places) => return Ok(places),
            Err(NoPlace::Other(refusal)) => return Err(refusal),
            Err(NoPlace::Full { passes: true }) if self.requests == 1 => {
                return Err(ErrorResponse::Saturated);
            }
            Err(NoPlace::Full { .. }) => {}
        }
        let most = Largest::of(router, self.requests);
        if self.requests > most.requests {
            return Err(ErrorResponse::TooManySequences {
                asked: self.requests.into(),
                most: most.requests,
            });
        }
        if self.tokens <= most.tokens {
            return Err(ErrorResponse::Saturated);
        }
        (self.take_with(most.tokens, router, tried)).map_err(|no_place| match no_place {
            NoPlace::Full { .. } => ErrorResponse::Saturated,
            NoPlace::Other(refusal) => refusal,
        })
    }

    fn take_with(&self, tokens: u32, router: &Router, tried: &[EngineId]) -> Result<Permits, NoPlace> {
        let others = self.requests - 1;
        // What does not divide evenly is the first one's.
        let of_each = tokens / self.requests;
        let of_first = tokens - of_each * others;
        let mut tried = tried.to_vec();
        let mut is_full = false;
        // Each time round there is an engine less to choose, so this ends.
        loop {
            let mut closed = tried.clone();
            // Several are not tried where there is no room for them now: it would take places from others for a
            // moment.
            match (others > 0).then(|| Room::look(router, self.requests, tokens, &tried)) {
                Some(Room::But(full)) => closed.extend(full),
                Some(Room::Nowhere(nearest)) => {
                    if let Some(places) = self.take_nowhere(tokens, router, nearest)? {
                        return Ok(places);
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
                Err(RouteError::Saturated { passes, .. }) => return Err(NoPlace::Full { passes }),
                Err(RouteError::Unavailable(_)) if is_full => {
                    return Err(NoPlace::Full { passes: true });
                }
                Err(RouteError::Unavailable(_)) => {
                    return Err(NoPlace::Other(ErrorResponse::NoEngine));
                }
                Err(error) => return Err(NoPlace::Other(ErrorResponse::Table(error.into()))),
            };
            let request = Request::new().tokens(of_each).pin(first.engine());
            let others = match others {
                0 => Ok(Vec::new()),
                _ => (router.frontend).route_many_with(others as usize, &request),
            };
            match others {
                Ok(others) => {
                    return Ok(Permits {
                        first,
                        _others: others,
                    });
                }
                // Others were faster.
                Err(RouteError::Saturated {
                    cap: Cap::EngineRequests | Cap::EngineTokens,
                    ..
                }) => is_full = true,
                Err(RouteError::Saturated { passes, .. }) => return Err(NoPlace::Full { passes }),
                // Drained or gone since the first one was placed.
                Err(RouteError::Unavailable(_) | RouteError::NoSuchEngine { .. }) => {}
                Err(error) => return Err(NoPlace::Other(ErrorResponse::Table(error.into()))),
            }
            tried.push(first.engine());
        }
    }

    /// Asks the table for all at once where there is no room: so it counts a refusal, and returns what the dead
    /// hold. The places, if that or others have made room meanwhile; none if the engine has gone meanwhile.
    fn take_nowhere(
        &self,
        tokens: u32,
        router: &Router,
        engine: EngineId,
    ) -> Result<Option<Permits>, NoPlace> {
        // No less than there is no room for.
        let of_each = tokens.div_ceil(self.requests);
        let request = Request::new().tokens(of_each).pin(engine);
        let placed = (router.frontend).route_many_with(self.requests as usize, &request);
        match placed {
            Ok(mut permits) => Ok(permits.pop().map(|first| Permits {
                first,
                _others: permits,
            })),
            Err(RouteError::Saturated { passes, .. }) => Err(NoPlace::Full { passes }),
            Err(RouteError::Unavailable(_) | RouteError::NoSuchEngine { .. }) => Ok(None),
            Err(error) => Err(NoPlace::Other(ErrorResponse::Table(error.into()))),
        }
    }
}

/// Why no places were taken.
#[derive(Debug)]
enum NoPlace {
    /// There is no room. `passes`: for as much, there may be later.
    Full {
        passes: bool,
    },
    Other(ErrorResponse),
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
