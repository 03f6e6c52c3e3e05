//! A request that is placed, in each of the ways that the chooser has, while others change what it
//! chooses by.
//!
//! Once the change has returned, what is still to be placed goes where the [rule](crate::rule) says, and
//! the counts are exact whatever comes between what.

use super::Pair;
use super::changes::{CHANGES, Change, Promise};
use crate::Result;
use crate::rule::{Asks, Load, Outcome};
use crate::scene::{CALM, PRESSED, Scene, TOKENS, counts, ensure};
use headcount::{
    Engine, EngineId, Frontend, Options, Permit, Policy, Request, RouteError, Table, View,
};
use headcount_tests::{Lead, Tracee};
use std::time::Duration;

/// A way to place a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    /// By the counts alone.
    Plain,
    /// By the counts, with tokens.
    Tokens,
    /// Two of them.
    Many,
    /// Under a cap of each engine.
    Capped,
    /// Under a cap of the table.
    TableCapped,
    /// The general way, since weights differ.
    Weighted,
    /// By a publication that says that an engine is pressed.
    Pressed,
    Excluding,
    Preferring,
    Custom,
    ByTokens,
    Open,
    Floor,
    PowerOfTwo,
}

const ROUTES: [Route; 14] = [
    Route::Plain,
    Route::Tokens,
    Route::Many,
    Route::Capped,
    Route::TableCapped,
    Route::Weighted,
    Route::Pressed,
    Route::Excluding,
    Route::Preferring,
    Route::Custom,
    Route::ByTokens,
    Route::Open,
    Route::Floor,
    Route::PowerOfTwo,
];

pub(super) fn pairs() -> Vec<Pair> {
    let all = ROUTES
        .into_iter()
        .flat_map(|route| CHANGES.map(|change| (route, change)));
    all.filter(|(route, change)| route.meets(change))
        .map(|(route, change)| {
            Pair::new(format!("{}-{}", route.name(), change.name), move |lead| {
                point(route, &change, lead)
            })
        })
        .collect()
}

/// The result of the requests: their engines, or why they were refused.
type Placed = std::result::Result<Vec<usize>, String>;

fn point(route: Route, change: &Change, lead: &mut Lead) -> Result<bool> {
    let mut scene = route.scene()?;
    let mut child: Tracee<Placed> = Tracee::fork(
        || route.join(&scene.table),
        |frontend| (route.perform(&frontend), frontend),
        |(placed, frontend)| {
            std::mem::forget(frontend);
            placed.map_err(|error| error.to_string()).map(|permits| {
                let engines = permits
                    .iter()
                    .map(|permit| permit.engine().index())
                    .collect();
                std::mem::forget(permits);
                engines
            })
        },
    )?;
    // After the child has joined, which would reap the dead that it leaves.
    (change.prepare)(&mut scene)?;
    lead.lead(&mut child)?;

    let before = scene.table.view();
    let in_flight: u32 = before.engines.iter().map(|engine| engine.in_flight).sum();
    let left = route.count() + scene.in_flight() - in_flight as usize;
    (change.act)(&mut scene)?;
    let then = scene.table.view();
    caps_hold(&before, &then)?;
    let report = child.report()?;
    caps_hold(&then, &scene.table.view())?;
    scene.counts_are_exact(report.as_deref().unwrap_or_default())?;

    let outcome = match &report {
        Ok(_) => Outcome::Placed(counts(&scene.table.view())),
        Err(_) => Outcome::Refused,
    };
    let allowed = route.asks().outcomes(&then, left);
    let by_the_rule = match change.promise {
        Promise::Acted => allowed.contains(&outcome),
        Promise::Room => outcome == Outcome::Refused || allowed.contains(&outcome),
        Promise::Exact => true,
    };
    ensure(by_the_rule, || {
        let then = counts(&then);
        format!(
            "{left} to place in {then:?} came to {outcome:?} ({report:?}), and should to {allowed:?}"
        )
    })?;
    drop(child);
    scene.permits.clear();
    scene.ends_well()?;
    Ok(left > 0)
}

/// C4, C5: nothing counts more than its cap, unless it did and the cap has come down since.
pub(super) fn caps_hold(before: &View, view: &View) -> Result<()> {
    for engine in &view.engines {
        let (requests, tokens) = (before.engine(engine.id.index()))
            .map_or((0, 0), |before| (before.in_flight, before.tokens));
        let requests = engine
            .max_in_flight
            .is_none_or(|cap| engine.in_flight <= cap.max(requests));
        let tokens = engine
            .max_tokens
            .is_none_or(|cap| engine.tokens <= cap.max(tokens));
        ensure(requests && tokens, || {
            format!("C4: over its cap: {engine:?}")
        })?;
    }
    let sums = |view: &View| {
        (view.engines.iter()).fold((0, 0), |(requests, tokens), engine| {
            (requests + engine.in_flight, tokens + engine.tokens)
        })
    };
    let (requests, tokens) = sums(view);
    let was = sums(before);
    let within = (view.max_in_flight).is_none_or(|cap| requests <= cap.max(was.0))
        && view.max_tokens.is_none_or(|cap| tokens <= cap.max(was.1));
    ensure(within, || {
        format!("C4: {requests} requests and {tokens} tokens are over the table's cap")
    })
}

impl Route {
    fn name(self) -> String {
        match self {
            Self::Plain => "Route".into(),
            other => format!("Route{other:?}"),
        }
    }

    /// Whether the rule says anything of the two together.
    fn meets(self, change: &Change) -> bool {
        match (self, change.name) {
            // It excludes the engine that is to come up.
            (Self::Excluding, "Up" | "UpAfterDeathInUp" | "RaiseCap" | "RaiseTokenCap") => false,
            // Its loads know no weights.
            (Self::Floor, "LowerWeight" | "RaiseWeight") => false,
            // Without tokens there is room under any cap on them.
            (_, "RaiseTokenCap" | "LastTokens") => self.tokens() > 0,
            // It compares two of the three engines.
            (Self::PowerOfTwo, "Up" | "UpAfterDeathInUp" | "RaiseCap" | "Add" | "Replace") => false,
            (
                _,
                "LastPlaceInTable" | "LastTokensInTable" | "ApplyLowerTableCap"
                | "ApplyRaiseTableCap",
            ) => self == Self::TableCapped,
            (_, "ApplyFirstCap" | "ApplyFirstCapAndLastPlace") => self != Self::TableCapped,
            _ => true,
        }
    }

    fn options(self) -> Options {
        let options = Table::options().max_engines(5).max_frontends(4).threads(1);
        let options = match self {
            Self::Capped => (0..2).fold(options, |options, n| {
                let engine = Engine::named(n.to_string());
                options.engine(engine.max_in_flight(50).max_tokens(5_000))
            }),
            _ => options.engines(2),
        };
        let third = Engine::named("2").weight(if self == Self::Weighted { 7.0 } else { 1.0 });
        match self {
            Self::TableCapped => options.max_in_flight(9).max_tokens(9 * TOKENS),
            _ => options,
        }
        .engine(third)
    }

    /// Two requests on engine 0, three on engine 1, and an engine 2 that takes none of these requests.
    fn scene(self) -> Result<Scene> {
        let mut scene = Scene::new(&self.options())?;
        scene.pin(&[0, 0, 1, 1, 1])?;
        if self != Self::Excluding {
            scene.table.down(2)?;
        }
        match self {
            Self::Pressed => scene.publish(&[CALM, CALM, PRESSED])?,
            Self::Open | Self::Floor => scene.publish(&[CALM; 3])?,
            _ => {}
        }
        Ok(scene)
    }

    fn policy(self) -> Policy {
        let policy = match self {
            Self::ByTokens => Policy::tokens(),
            Self::Open => Policy::open(),
            Self::Floor => Policy::floor(),
            Self::PowerOfTwo => Policy::power_of_two(),
            Self::Custom => Policy::custom(|engine| {
                (f64::from(engine.in_flight) + 1.0) / f64::from(engine.weight)
            }),
            _ => Policy::in_flight(),
        };
        policy.stale_after(Duration::from_secs(60))
    }

    fn tokens(self) -> u32 {
        match self {
            Self::Tokens | Self::TableCapped | Self::Preferring | Self::ByTokens => TOKENS,
            _ => 0,
        }
    }

    /// How many requests are placed.
    fn count(self) -> usize {
        match self {
            Self::Many => 2,
            _ => 1,
        }
    }

    /// The same for the rule.
    fn asks(self) -> Asks {
        Asks {
            tokens: self.tokens(),
            excluded: match self {
                Self::Excluding => const { &[EngineId::new(2, 2)] },
                _ => &[],
            },
            preferred: (self == Self::Preferring).then_some((0, 1.0)),
            load: match self {
                Self::ByTokens => Load::Tokens,
                Self::Floor => Load::Floor,
                _ => Load::Requests,
            },
        }
    }

    fn request(self) -> Request<'static> {
        let asks = self.asks();
        let request = Request::new().tokens(asks.tokens).exclude(asks.excluded);
        match asks.preferred {
            Some((engine, slack)) => request.prefer(engine, slack),
            None => request,
        }
    }

    /// Joins, and finishes a first request, after which the next one takes the common way.
    fn join(self, table: &Table) -> Frontend {
        let frontend = table.join().expect("joins").with_policy(self.policy());
        drop(frontend.route_with(&self.request()));
        frontend
    }

    fn perform(self, frontend: &Frontend) -> std::result::Result<Vec<Permit>, RouteError> {
        match self {
            Self::Plain => frontend.route().map(|permit| vec![permit]),
            Self::Many => frontend.route_many(2),
            _ => {
                let permit = frontend.route_with(&self.request());
                permit.map(|permit| vec![permit])
            }
        }
    }
}
