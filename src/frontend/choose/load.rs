//! The loads of the built-in policies, as [terms](crate::algorithm::terms): what the limits of the engines say, and what
//! a snapshot adds to it.

use crate::algorithm::choose::Renewal;
use crate::algorithm::rows::Rows;
use crate::algorithm::seqlatch::{self, SeqLatch};
use crate::algorithm::terms::{Source, Term, Terms};
use crate::algorithm::word::RowState;
use crate::frontend::policy::Policy;
use crate::publication::record::{self, EngineStats, Reading};
use crate::shm::clock;
use crate::shm::layout::publication::HEAD_WORDS;
use crate::table::Table;
use crate::table::engines::Engines;
use std::time::Duration;

/// A policy as a choice compares it with that of the lane's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PolicyKey {
    kind: Kind,
    /// Kind 4 | `stale_after` in nanoseconds 60.
    number: u64,
    /// The bits of which a [publication](SeqLatch::publication) has one if it has a say.
    read_if: u64,
}

/// Policies by the terms that their loads are made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    InFlight,
    Open,
    Floor,
    Tokens,
    RoundRobin,
    /// `(in_flight + 1) / weight`.
    Weights,
    /// None: the better of two engines.
    PowerOfTwo,
    /// None: a load of the user's own.
    Custom,
}

const STALE_AFTER_BITS: u32 = 60;
const MOST_STALE_AFTER: u64 = (1 << STALE_AFTER_BITS) - 1;

impl PolicyKey {
    /// `(in_flight + 1) / weight`, whatever was published.
    pub(super) const BY_WEIGHTS: Self = Self {
        kind: Kind::Weights,
        number: (Kind::Weights as u64) << STALE_AFTER_BITS,
        read_if: 0,
    };

    pub(crate) fn of(policy: &Policy) -> Self {
        match *policy {
            Policy::InFlight { stale_after } => {
                Self::new(Kind::InFlight, seqlatch::UNDER_PRESSURE, stale_after)
            }
            Policy::Open { stale_after } => Self::new(Kind::Open, u64::MAX, stale_after),
            Policy::Floor { stale_after } => Self::new(Kind::Floor, u64::MAX, stale_after),
            Policy::Tokens => Self::new(Kind::Tokens, 0, Duration::ZERO),
            Policy::RoundRobin => Self::new(Kind::RoundRobin, 0, Duration::ZERO),
            Policy::PowerOfTwo => Self::new(Kind::PowerOfTwo, 0, Duration::ZERO),
            Policy::Custom(_) => Self::new(Kind::Custom, 0, Duration::ZERO),
        }
    }

    fn new(kind: Kind, read_if: u64, stale_after: Duration) -> Self {
        let nanoseconds = clock::in_nanoseconds(stale_after).min(MOST_STALE_AFTER);
        Self {
            kind,
            number: ((kind as u64) << STALE_AFTER_BITS) | nanoseconds,
            read_if,
        }
    }

    /// Whether its load is made of [terms](crate::algorithm::terms).
    #[inline]
    pub(crate) fn has_terms(self) -> bool {
        !matches!(self.kind, Kind::PowerOfTwo | Kind::Custom)
    }

    pub(super) fn is_power_of_two(self) -> bool {
        self.kind == Kind::PowerOfTwo
    }

    fn stale_after(self) -> u64 {
        self.number & MOST_STALE_AFTER
    }
}

/// Where the terms of a table's engines come from, for one policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loads<'a> {
    table: &'a Table,
    policy: &'a PolicyKey,
}

impl Renewal for Loads<'_> {
    #[inline(always)]
    fn is_of_now(&self, terms: &Terms) -> bool {
        terms.are_of(self.publication(), self.policy.number)
    }

    #[inline(always)]
    fn has_expired(&self, terms: &Terms) -> bool {
        !terms.never_expire() && clock::now_coarse() >= terms.expires()
    }

    #[cold]
    #[inline(never)]
    fn renew(&self, terms: &mut Terms) {
        let source = Source {
            hints: self.rows().hints(),
            publication: self.publication(),
            policy: self.policy.number,
        };
        if source.publication != 0 {
            let read = record::read(self.latch(), |reading| {
                let expires = self.expires(&reading)?;
                let term = |engine| self.term(engine, reading.stats(engine, &self.engines()));
                self.work_out_by(terms, source, expires, term);
                Some(())
            });
            match read {
                Ok(Some(())) => return,
                // Too old, or of another life of the machine. The next one is another publication.
                Ok(None) => {}
                Err(_) => {
                    self.work_out_by(terms, source, u64::MAX, |engine| self.term(engine, None));
                    return terms.outdate();
                }
            }
        }
        self.work_out_by(terms, source, u64::MAX, |engine| self.term(engine, None));
    }
}

impl<'a> Loads<'a> {
    #[inline]
    pub(crate) fn new(table: &'a Table, policy: &'a PolicyKey) -> Self {
        Self { table, policy }
    }

    #[inline]
    pub(crate) fn rows(&self) -> &'a Rows<'a> {
        self.table.mapping().rows()
    }

    #[inline]
    fn latch(&self) -> &'a SeqLatch<'a, HEAD_WORDS> {
        self.table.mapping().latch()
    }

    /// The last publication, or 0 if it has no say.
    #[inline(always)]
    fn publication(&self) -> u64 {
        let last = self.latch().publication();
        if last & self.policy.read_if != 0 {
            last
        } else {
            0
        }
    }

    fn work_out_by(
        &self,
        terms: &mut Terms,
        source: Source,
        expires: u64,
        term: impl Fn(usize) -> Option<Term>,
    ) {
        let by_tokens = self.policy.kind == Kind::Tokens;
        let engines = 0..self.rows().in_use(source.hints);
        terms.renew(source, expires, by_tokens, engines.map(term));
    }

    fn engines(&self) -> Engines<'a> {
        self.table.engines()
    }

    /// When a publication is too old. `None`: it is.
    fn expires(&self, reading: &Reading<'_>) -> Option<u64> {
        let limit = self.policy.stale_after();
        let age = reading.age(clock::now_coarse())?;
        (age < limit).then(|| reading.published_at().saturating_add(limit))
    }

    /// The terms of an engine of which these statistics were published.
    fn term(&self, engine: usize, stats: Option<EngineStats>) -> Option<Term> {
        if self.rows().counter.load(engine).state() == RowState::Removed {
            return None;
        }
        let limits = self.rows().limits(engine);
        let term = Term {
            has_token_cap: self.rows().max_tokens(engine) < u32::MAX,
            ..Term::of_limits(limits.max_in_flight(), limits.weight())
        };
        let stats = stats.unwrap_or_default();
        let has = stats.running.saturating_add(stats.waiting) as f32;
        Some(match self.policy.kind {
            Kind::InFlight => drain_penalty(term, &stats),
            Kind::Open => Term {
                base: traffic_past_us(&stats),
                ..drain_penalty(term, &stats)
            },
            // One more than the policy says, on all engines.
            Kind::Floor => Term {
                weight: 1.0,
                floor: has + 1.0,
                base: 3.0 * stats.waiting as f32,
                ..term
            },
            Kind::RoundRobin => Term {
                weight: f32::INFINITY,
                ..term
            },
            Kind::Tokens | Kind::Weights | Kind::PowerOfTwo | Kind::Custom => term,
        })
    }
}

/// The cost of a queue on an engine with little cache left; never of a queue longer than the count.
fn drain_penalty(term: Term, stats: &EngineStats) -> Term {
    Term {
        waiting: stats.waiting as f32,
        pressure: stats.pressure(),
        ..term
    }
}

/// Requests that the engine has and this table never saw.
fn traffic_past_us(stats: &EngineStats) -> f32 {
    let known = u64::from(stats.in_flight.unwrap_or(0));
    let has = u64::from(stats.running) + u64::from(stats.waiting);
    has.saturating_sub(known) as f32
}
