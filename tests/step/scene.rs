//! The scene of the first process: the table, and what other processes hold in it.

use crate::Result;
use headcount::{
    EngineStats, EngineView, Frontend, Options, Permit, Publisher, Request, Table, View,
};
use headcount_tests::Forked;

/// The tokens of each request.
pub(crate) const TOKENS: u32 = 10;

/// A table, and the frontend of this process.
pub(crate) struct Scene {
    pub(crate) table: Table,
    pub(crate) own: Frontend,
    /// What this process has in flight.
    pub(crate) permits: Vec<Permit>,
    /// The engines of the requests that a frontend that died has in flight.
    pub(crate) held_by_dead: Vec<usize>,
    /// If this process publishes.
    pub(crate) publisher: Option<Publisher>,
}

impl Scene {
    /// A table without a name, which this process has joined.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let table = options.memfd()?;
        Ok(Self {
            own: table.join()?,
            table,
            permits: Vec::new(),
            held_by_dead: Vec::new(),
            publisher: None,
        })
    }

    /// Admits a request to each of these engines.
    pub(crate) fn pin(&mut self, engines: &[usize]) -> Result<()> {
        for &engine in engines {
            let request = Request::new().pin(engine).tokens(TOKENS);
            self.permits.push(self.own.route_with(&request)?);
        }
        Ok(())
    }

    /// Finishes `count` requests of an engine.
    pub(crate) fn finish(&mut self, engine: usize, count: usize) {
        for _ in 0..count {
            let of_engine = self
                .permits
                .iter()
                .position(|p| p.engine().index() == engine);
            drop(of_engine.map(|index| self.permits.swap_remove(index)));
        }
    }

    /// Publishes.
    pub(crate) fn publish(&mut self, stats: &[EngineStats]) -> Result<()> {
        let publisher = match self.publisher.take() {
            Some(publisher) => publisher,
            None => self.table.publisher()?,
        };
        Ok(self.publisher.insert(publisher).publish(stats)?)
    }

    /// Leaves a frontend that died with a request on each of these engines.
    pub(crate) fn leave_dead(&mut self, engines: &[usize]) -> Result<()> {
        let table = &self.table;
        let mut child: Forked<()> = Forked::start(|| {
            let frontend = table.join().expect("joins");
            for &engine in engines {
                let request = Request::new().pin(engine).tokens(TOKENS);
                std::mem::forget(frontend.route_with(&request).expect("routes"));
            }
            std::mem::forget(frontend);
        })?;
        self.held_by_dead.extend(engines);
        Ok(child.report()?)
    }

    /// Returns what the dead held.
    pub(crate) fn reap(&mut self) -> Result<()> {
        self.table.reap()?;
        self.held_by_dead.clear();
        Ok(())
    }

    /// Requests in flight that are not those of the first process.
    pub(crate) fn in_flight(&self) -> usize {
        self.permits.len() + self.held_by_dead.len()
    }

    /// Fails unless the table counts what this process holds, and what others hold, and no more.
    pub(crate) fn counts_are_exact(&self, others: &[usize]) -> Result<()> {
        let view = self.table.view();
        for engine in &view.engines {
            let own = self
                .permits
                .iter()
                .filter(|p| p.engine().index() == engine.id.index());
            let others = others.iter().filter(|&&other| other == engine.id.index());
            let expected = own.count() + others.count();
            if engine.in_flight as usize != expected {
                return Err(format!(
                    "C1: {} in flight on engine {}, where {expected} permits live",
                    engine.in_flight,
                    engine.id.index()
                )
                .into());
            }
        }
        Ok(())
    }

    /// Fails if anything is left when the first process is gone, or if ledgers and counts differ.
    pub(crate) fn ends_well(self) -> Result<()> {
        self.table.reap()?;
        self.counts_are_exact(&[])?;
        let found = self.table.verify()?;
        match found.faults.as_slice() {
            [] => Ok(()),
            faults => Err(format!("K1: {faults:?}").into()),
        }
    }
}

/// Statistics without any pressure.
pub(crate) const CALM: EngineStats = EngineStats::new().waiting(0).running(0).kv_usage(0.1);

/// Statistics of an engine with a queue and no cache left.
pub(crate) const PRESSED: EngineStats = EngineStats::new().waiting(100).running(100).kv_usage(1.0);

/// What is in flight on an engine, 0 if there is none of that number.
pub(crate) fn on(view: &View, engine: usize) -> u32 {
    view.engine(engine).map_or(0, |engine| engine.in_flight)
}

/// What is in flight, engine by engine.
pub(crate) fn counts(view: &View) -> Vec<u32> {
    let last = view
        .engines
        .iter()
        .map(|engine| engine.id.index() + 1)
        .max();
    (0..last.unwrap_or(0))
        .map(|engine| on(view, engine))
        .collect()
}

/// The engine of that name.
pub(crate) fn named<'v>(view: &'v View, name: &str) -> Option<&'v EngineView> {
    view.engines.iter().find(|engine| engine.name == name)
}

/// Fails with `what` unless `holds`.
pub(crate) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(what().into()) }
}
