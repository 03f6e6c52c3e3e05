//! C2, C5, C7 and C8 in any table: each choice is the one that a slow chooser makes which is right at a glance.
//!
//! The slow one goes by what `table.view()` says at that moment. One frontend routes by all policies in turn, while
//! engines change, come and go, and statistics are published, so what it remembers is of another moment nearly each
//! time.
//!
//! Rules: docs/contract.md.

use headcount::{
    Engine, EngineId, EngineState, EngineView, Frontend, Permit, Policy, Publisher, Request, Table,
    View,
};
use headcount_tests::{Random, TestTable};
use std::time::Duration;

const FOREVER: Duration = Duration::from_secs(3600);

/// The policies but custom ones, those that read statistics by fresh and by old ones.
fn policies() -> Vec<Policy> {
    let by_age = [FOREVER, Duration::ZERO].into_iter().flat_map(|limit| {
        [Policy::in_flight(), Policy::open(), Policy::floor()]
            .map(|policy| policy.stale_after(limit))
    });
    let others = [
        Policy::tokens(),
        Policy::round_robin(),
        Policy::power_of_two(),
    ];
    by_age.chain(others).collect()
}

/// A request that can be made again and looked at.
#[derive(Clone, Debug, Default)]
struct Wish {
    tokens: u32,
    pin: Option<EngineId>,
    excluded: Vec<EngineId>,
    preferred: Option<(EngineId, f64)>,
}

impl Wish {
    fn request(&self) -> Request<'_> {
        let mut request = Request::new().tokens(self.tokens).exclude(&self.excluded);
        if let Some(engine) = self.pin {
            request = request.pin(engine);
        }
        if let Some((engine, slack)) = self.preferred {
            request = request.prefer(engine, slack);
        }
        request
    }
}

/// The slow chooser.
struct Slow<'a> {
    view: &'a View,
    policy: &'a Policy,
    wish: &'a Wish,
}

/// Which engines may be chosen for a request.
#[derive(PartialEq, Debug)]
enum Right {
    None,
    OneOf(Vec<EngineId>),
}

impl<'a> Slow<'a> {
    fn may_take(&self, engine: &EngineView) -> bool {
        let has_room = |cap: Option<u32>, taken: u64| cap.is_none_or(|cap| taken <= cap.into());
        let tokens = u64::from(engine.tokens) + u64::from(self.wish.tokens);
        engine.state == EngineState::Active
            && !self.wish.excluded.contains(&engine.id)
            && self.wish.pin.is_none_or(|pin| pin == engine.id)
            && has_room(engine.max_in_flight, u64::from(engine.in_flight) + 1)
            && (self.wish.tokens == 0 || has_room(engine.max_tokens, tokens))
    }

    fn has_room_in_the_table(&self) -> bool {
        let requests: u64 = self
            .view
            .engines
            .iter()
            .map(|e| u64::from(e.in_flight))
            .sum();
        self.view
            .max_in_flight
            .is_none_or(|cap| requests < cap.into())
    }

    fn may_be_chosen(&self) -> Vec<&'a EngineView> {
        let engines = self.view.engines.iter();
        engines.filter(|engine| self.may_take(engine)).collect()
    }

    /// The weight by which the policy divides.
    fn weight(&self, engine: &EngineView) -> f64 {
        match self.policy {
            Policy::Floor { .. } => 1.0,
            _ => engine.weight.into(),
        }
    }

    /// The smallest number of which each weight is a part, or 1 if there is none that is small.
    fn scale(&self) -> f64 {
        let is_there = |engine: &&EngineView| engine.state != EngineState::Leaving;
        let engines: Vec<_> = self.view.engines.iter().filter(is_there).collect();
        let is_multiple = |scale: &f64| {
            engines.iter().all(|engine| {
                let weight = self.weight(engine);
                (scale / weight).fract() == 0.0
            })
        };
        let scales = (1..=4096).map(f64::from);
        scales.into_iter().find(is_multiple).unwrap_or(1.0)
    }

    /// The load of an engine, times the scale: 32-bit floats, and one operation after the other as documented.
    fn load(&self, engine: &EngineView, scale: f64) -> f32 {
        let cost = (scale / self.weight(engine)) as f32;
        let scale = scale as f32;
        let (count, with_this) = (engine.in_flight as f32, (engine.in_flight + 1) as f32);
        let is_fresh = |limit: Duration| limit == FOREVER;
        let stats = match *self.policy {
            Policy::InFlight {
                stale_after: limit, ..
            }
            | Policy::Open {
                stale_after: limit, ..
            }
            | Policy::Floor {
                stale_after: limit, ..
            } => engine.stats.filter(|_| is_fresh(limit)),
            _ => None,
        };
        let stats = stats.unwrap_or_default();
        let (waiting, running) = (stats.waiting as f32, stats.running as f32);
        let penalty = 6.0 * (stats.kv_usage - 0.5).max(0.0) * scale;
        let own = with_this * cost + count.min(waiting) * penalty;
        match self.policy {
            Policy::InFlight { .. } => own,
            Policy::Open { .. } => {
                let known = stats.in_flight.unwrap_or(0) as f32;
                own + (running + waiting - known).max(0.0) * scale
            }
            Policy::Floor { .. } => {
                (with_this.max(running + waiting + 1.0)) * cost + 3.0 * waiting * scale
            }
            Policy::Tokens => {
                (u64::from(engine.tokens) + u64::from(self.wish.tokens)) as f32 * cost
            }
            Policy::RoundRobin => 0.0,
            _ => with_this * cost,
        }
    }

    /// Those that may be chosen, as far as the preferred engine has no say.
    fn least(&self, allowance: f32) -> (Vec<&'a EngineView>, f32) {
        let scale = self.scale();
        let mut engines = self.may_be_chosen();
        let loads = engines.iter().map(|engine| self.load(engine, scale));
        let least = loads.fold(f32::INFINITY, f32::min);
        engines.retain(|engine| self.load(engine, scale) <= least * (1.0 + allowance));
        (engines, least)
    }

    /// `allowance`: by what share a load may be above the least one.
    fn choose(&self, allowance: f32) -> Right {
        let may_be_chosen = self.may_be_chosen();
        if may_be_chosen.is_empty() || !self.has_room_in_the_table() {
            return Right::None;
        }
        if self.wish.pin.is_some() {
            return Right::OneOf(vec![may_be_chosen[0].id]);
        }
        let scale = self.scale();
        let (least_loaded, least) = self.least(allowance);
        let ids = |engines: &[&EngineView]| engines.iter().map(|engine| engine.id).collect();
        if let Some((preferred, slack)) = self.wish.preferred
            && let Some(engine) = may_be_chosen.iter().find(|engine| engine.id == preferred)
        {
            let most = least + slack as f32 * scale as f32;
            let load = self.load(engine, scale);
            if load <= most * (1.0 - allowance) {
                return Right::OneOf(vec![engine.id]);
            }
            if load <= most * (1.0 + allowance) {
                let mut either: Vec<EngineId> = ids(&least_loaded);
                either.push(engine.id);
                return Right::OneOf(either);
            }
        }
        Right::OneOf(ids(&least_loaded))
    }

    /// Whether the better one of two engines picked at random may be this one.
    fn may_win_among_two(&self, chosen: EngineId) -> bool {
        let may_be_chosen = self.may_be_chosen();
        let load =
            |engine: &EngineView| (f64::from(engine.in_flight) + 1.0) / f64::from(engine.weight);
        let Some(it) = may_be_chosen.iter().find(|engine| engine.id == chosen) else {
            return false;
        };
        let others = may_be_chosen.iter().filter(|engine| engine.id != chosen);
        let beats_one = others.clone().any(|other| load(it) <= load(other));
        may_be_chosen.len() == 1 || beats_one || self.wish.preferred.is_some()
    }
}

/// What happens in a walk, apart from requests.
#[derive(Clone, Copy)]
struct Walk {
    tables: usize,
    steps: usize,
    /// The weights of its engines.
    weights: &'static [f32],
    /// By what share a load may be above the least one: by none if weights have a small common multiple.
    allowance: f32,
    has_caps: bool,
    has_tokens: bool,
    has_changes: bool,
    publishes: bool,
}

/// A table that something random happens to.
struct World {
    random: Random,
    walk: Walk,
    table: TestTable,
    frontends: Vec<(Policy, Frontend)>,
    publisher: Publisher,
    permits: Vec<Permit>,
    engines_added: usize,
    /// Engines that are not in the table any more.
    gone: Vec<EngineId>,
    /// How many requests were placed, and how many of these among equals.
    placed: usize,
    tied: usize,
}

impl World {
    fn new(walk: Walk, mut random: Random) -> Self {
        // Few, as many as there are in a vector, and several blocks of it with a part of one.
        let count = [1, 2, 5, 8, 9, 16, 17, 33, 100][random.below(9) as usize];
        let options = (0..count).fold(Table::options(), |options, n| {
            options.engine(random_engine(walk, &mut random, n))
        });
        let table = TestTable::new(&options.max_engines(count + 3));
        let frontend = table.join().unwrap();
        let by = |policy: Policy| (policy.clone(), frontend.clone().with_policy(policy));
        Self {
            frontends: policies().into_iter().map(by).collect(),
            publisher: table.publisher().unwrap(),
            random,
            walk,
            table,
            permits: Vec::new(),
            engines_added: count,
            gone: Vec::new(),
            placed: 0,
            tied: 0,
        }
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    /// An engine that is in the table, or now and then one that was.
    fn any_engine(&mut self) -> EngineId {
        let engines = self.table.view().engines;
        if engines.is_empty() || (!self.gone.is_empty() && self.chance(10)) {
            let gone = self.random.below(self.gone.len() as u64) as usize;
            return self.gone[gone];
        }
        engines[self.random.below(engines.len() as u64) as usize].id
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..10 => self.pile_up(),
            10..25 => self.finish_some(),
            25..35 if self.walk.has_changes => self.change_an_engine(),
            35..40 if self.walk.publishes => self.publish(),
            40..45 => self.break_ties(),
            _ => self.route(),
        }
    }

    /// Places requests on one engine, so that counts differ.
    fn pile_up(&mut self) {
        let wish = Wish {
            pin: Some(self.any_engine()),
            tokens: self.some_tokens(),
            ..Wish::default()
        };
        let (_, frontend) = &self.frontends[0];
        let count = 1 + self.random.below(4);
        let placed = (0..count).filter_map(|_| frontend.route_with(&wish.request()).ok());
        self.permits.extend(placed);
    }

    fn some_tokens(&mut self) -> u32 {
        if !self.walk.has_tokens || self.chance(30) {
            return 0;
        }
        100 * (1 + self.random.below(3) as u32)
    }

    fn finish_some(&mut self) {
        for _ in 0..self.random.below(6) {
            if self.permits.is_empty() {
                return;
            }
            let which = self.random.below(self.permits.len() as u64) as usize;
            let mut permit = self.permits.swap_remove(which);
            if self.walk.has_tokens && self.chance(30) {
                let tokens = self.some_tokens();
                let _ = permit.set_tokens(tokens);
                self.permits.push(permit);
            }
        }
    }

    fn change_an_engine(&mut self) {
        let engine = self.any_engine();
        let table = &self.table;
        // Of an engine that is gone, all of these fail.
        let _ = match self.random.below(12) {
            0 | 1 => table.down(engine),
            2 => table.drain(engine),
            3..6 => table.up(engine),
            6 | 7 => {
                let weights = self.walk.weights;
                let weight = weights[self.random.below(weights.len() as u64) as usize];
                table.set_weight(engine, weight)
            }
            8 if self.walk.has_caps => {
                let requests = some_cap(&mut self.random, 6);
                let tokens = some_cap(&mut self.random, 900);
                table.set_caps(engine, requests, tokens)
            }
            9 if self.walk.has_caps => {
                let total = some_cap(&mut self.random, 60);
                table.set_total_max_in_flight(total)
            }
            10 => {
                self.gone.push(engine);
                table.remove(engine).map(drop)
            }
            _ => {
                let next = random_engine(self.walk, &mut self.random, self.engines_added);
                self.engines_added += 1;
                table.add(next).map(drop)
            }
        };
    }

    fn publish(&mut self) {
        let in_use = self
            .table
            .view()
            .engines
            .last()
            .map_or(0, |last| last.id.index() + 1);
        let count = self.random.below(in_use as u64 + 1) as usize;
        let is_calm = self.chance(30);
        let stats: Vec<_> = (0..count)
            .map(|_| {
                let waiting = if is_calm {
                    0
                } else {
                    self.random.below(4) as u32
                };
                let stats = headcount::EngineStats::new()
                    .waiting(waiting)
                    .running(self.random.below(6) as u32)
                    .kv_usage([0.1, 0.5, 0.75, 1.0][self.random.below(4) as usize]);
                match self.random.below(2) {
                    0 => stats,
                    _ => stats.in_flight(self.random.below(4) as u32),
                }
            })
            .collect();
        // Refused if no engine is as far up as the last one.
        let _ = self.publisher.publish(&stats);
    }

    fn some_wish(&mut self) -> Wish {
        let mut wish = Wish {
            tokens: self.some_tokens(),
            ..Wish::default()
        };
        if self.chance(30) {
            let count = 1 + self.random.below(3);
            wish.excluded = (0..count).map(|_| self.any_engine()).collect();
        }
        if self.chance(30) {
            let slack = [0.0, 0.5, 1.0, 3.0][self.random.below(4) as usize];
            wish.preferred = Some((self.any_engine(), slack));
        }
        if self.chance(5) {
            wish.pin = Some(self.any_engine());
        }
        wish
    }

    /// Routes a request, and looks whether the slow chooser would have chosen that engine.
    fn route(&mut self) {
        let wish = if self.chance(40) {
            Wish::default()
        } else {
            self.some_wish()
        };
        let which = self.random.below(self.frontends.len() as u64) as usize;
        let (policy, frontend) = &self.frontends[which];
        let view = self.table.view();
        let slow = Slow {
            view: &view,
            policy,
            wish: &wish,
        };
        let right = slow.choose(self.walk.allowance);
        let routed = match wish.request() == Request::new() {
            true => frontend.route(),
            false => frontend.route_with(&wish.request()),
        };
        let chosen = routed.as_ref().ok().map(Permit::engine);
        let is_right = match (&right, chosen) {
            (Right::None, None) => true,
            (Right::OneOf(_), Some(chosen))
                if wish.pin.is_none() && *policy == Policy::PowerOfTwo =>
            {
                slow.may_win_among_two(chosen)
            }
            (Right::OneOf(engines), Some(chosen)) => engines.contains(&chosen),
            _ => false,
        };
        assert!(
            is_right,
            "{policy}, {wish:?}: {chosen:?}, not {right:?}, of {view:#?}"
        );
        self.placed += usize::from(chosen.is_some());
        self.tied += usize::from(matches!(&right, Right::OneOf(engines) if engines.len() > 1));
        let stays = self.chance(60);
        self.permits.extend(routed.ok().filter(|_| stays));
    }

    /// Routes requests that finish at once: all that are equal win equally.
    fn break_ties(&mut self) {
        const ROUNDS: usize = 3;
        let wish = Wish {
            preferred: None,
            pin: None,
            ..self.some_wish()
        };
        let which = self.random.below(self.frontends.len() as u64) as usize;
        let (policy, frontend) = &self.frontends[which];
        let view = self.table.view();
        let slow = Slow {
            view: &view,
            policy,
            wish: &wish,
        };
        let Right::OneOf(equal) = slow.choose(0.0) else {
            return;
        };
        if self.walk.allowance > 0.0 || *policy == Policy::PowerOfTwo {
            return;
        }
        let mut wins = vec![0; equal.len()];
        for _ in 0..ROUNDS * equal.len() {
            let chosen = frontend.route_with(&wish.request()).unwrap().engine();
            let which = equal.iter().position(|engine| *engine == chosen);
            wins[which.expect("one of those that are equal")] += 1;
        }
        assert!(
            wins.iter().all(|wins| *wins == ROUNDS),
            "{policy}, {wish:?}: {wins:?} of {equal:?}, of {view:#?}"
        );
    }
}

fn some_cap(random: &mut Random, below: u64) -> Option<u32> {
    (random.below(3) > 0).then(|| random.below(below) as u32)
}

fn random_engine(walk: Walk, random: &mut Random, number: usize) -> Engine {
    let weight = walk.weights[random.below(walk.weights.len() as u64) as usize];
    let mut engine = Engine::named(number.to_string()).weight(weight);
    if walk.has_caps && random.below(2) == 0 {
        engine = engine.max_in_flight(random.below(6) as u32);
    }
    if walk.has_caps && walk.has_tokens && random.below(2) == 0 {
        engine = engine.max_tokens(random.below(900) as u32);
    }
    engine
}

/// Weights of which each two have a small common multiple.
const COMMON: &[f32] = &[0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

fn walk(walk: Walk) {
    let (mut placed, mut tied) = (0, 0);
    for _ in 0..walk.tables {
        let mut world = World::new(walk, Random::seeded());
        for _ in 0..walk.steps {
            world.step();
        }
        (placed, tied) = (placed + world.placed, tied + world.tied);
        assert!(world.table.verify().unwrap().faults.is_empty());
    }
    // It would say nothing if nearly all were refused, or none were tied.
    let steps = walk.tables * walk.steps;
    assert!(
        placed > steps / 4,
        "{placed} of {steps} steps placed a request"
    );
    assert!(tied > steps / 40, "{tied} of {steps} steps had a tie");
}

#[test]
fn c2_a_request_goes_where_a_slow_chooser_sends_it() {
    walk(Walk {
        tables: 40,
        steps: 150,
        weights: &[1.0],
        allowance: 0.0,
        has_caps: false,
        has_tokens: false,
        has_changes: false,
        publishes: true,
    });
}

#[test]
fn c2_a_request_goes_where_a_slow_chooser_sends_it_with_weights_and_caps() {
    walk(Walk {
        tables: 40,
        steps: 150,
        weights: COMMON,
        allowance: 0.0,
        has_caps: true,
        has_tokens: false,
        has_changes: false,
        publishes: true,
    });
}

#[test]
fn c2_a_request_goes_where_a_slow_chooser_sends_it_with_odd_weights() {
    walk(Walk {
        tables: 40,
        steps: 150,
        weights: &[0.3, 0.7, 1.1, 4093.0, 1.0, 7.0],
        allowance: 1e-6,
        has_caps: true,
        has_tokens: true,
        has_changes: true,
        publishes: true,
    });
}

#[test]
fn c5_a_request_with_tokens_goes_where_a_slow_chooser_sends_it() {
    walk(Walk {
        tables: 40,
        steps: 150,
        weights: COMMON,
        allowance: 0.0,
        has_caps: true,
        has_tokens: true,
        has_changes: false,
        publishes: true,
    });
}

#[test]
fn c8_a_request_goes_where_a_slow_chooser_sends_it_while_engines_change() {
    walk(Walk {
        tables: 60,
        steps: 150,
        weights: COMMON,
        allowance: 0.0,
        has_caps: true,
        has_tokens: true,
        has_changes: true,
        publishes: true,
    });
}
