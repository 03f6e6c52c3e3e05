//! The differences between a table and the options that are asked for.

use crate::algorithm::word::RowState;
use crate::error::difference::{ABSENT, ENGINE, PRESENT};
use crate::error::{Difference, Error, Result};
use crate::shm::is_locked;
use crate::shm::layout::ENGINES_LOCK;
use crate::table::Table;
use crate::table::engine::Engine;
use crate::table::options::{Options, threads_of};
use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

impl Options {
    /// Fails if an option that was set does not fit the table.
    pub(crate) fn compare(&self, table: &Table) -> Result<()> {
        const PATIENCE: Duration = Duration::from_millis(200);
        self.check_mode()?;
        self.queue.check()?;
        let start = Instant::now();
        loop {
            let differences = self.differences(table, false);
            if differences.is_empty() {
                return Ok(());
            }
            // Another process may just be changing it to that.
            let is_changing = is_locked(table.as_fd(), ENGINES_LOCK).unwrap_or(false);
            if !is_changing || start.elapsed() > PATIENCE {
                return Err(Error::Differs {
                    path: table.path().to_owned(),
                    differences,
                });
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The differences between the table and these options. An option that was not set differs from nothing, and
    /// neither does one that the table was last configured with. If `entirely`, what the table has now is all
    /// that counts, and a cap that was not set differs from one that it has.
    pub(crate) fn differences(&self, table: &Table, entirely: bool) -> Vec<Difference> {
        let header = table.header();
        let number = |size: usize| size.to_string();
        let octal = |mode: u32| format!("{mode:04o}");
        let asked_cap = |cap: Option<u32>, is_configured: bool| {
            (entirely || (cap.is_some() && !is_configured)).then(|| in_words(cap))
        };
        let caps = table.engines().rows().total_caps();
        let configured = &table.mapping().control().configured;
        let geometry = &header.geometry;
        let of_the_table = [
            (
                "max_engines",
                self.max_engines.map(number),
                number(geometry.max_engines),
            ),
            (
                "max_frontends",
                self.max_frontends.map(number),
                number(geometry.max_frontends),
            ),
            (
                "threads",
                self.threads.map(number),
                number(threads_of(geometry.lanes)),
            ),
            ("mode", self.mode.map(octal), octal(header.mode)),
            (
                "max_in_flight",
                asked_cap(
                    self.max_in_flight,
                    configured.has_max_in_flight(self.max_in_flight),
                ),
                in_words(caps.requests),
            ),
            (
                "max_tokens",
                asked_cap(self.max_tokens, configured.has_max_tokens(self.max_tokens)),
                in_words(caps.tokens),
            ),
        ];
        let mut differences: Vec<_> = (of_the_table.into_iter())
            .chain(self.queue.compared(table, entirely))
            .filter_map(|(option, asked, found)| {
                let asked = asked.filter(|asked| *asked != found)?;
                Some(Difference {
                    engine: None,
                    option,
                    found,
                    asked,
                })
            })
            .collect();
        if self.names_engines() && (entirely || !configured.has_engines(&self.engines)) {
            self.add_differences_of_engines(table, &mut differences);
        }
        differences
    }

    fn add_differences_of_engines(&self, table: &Table, differences: &mut Vec<Difference>) {
        let present = || PRESENT.to_owned();
        let absent = || ABSENT.to_owned();
        let has: HashMap<_, _> = (table.present_engines())
            .map(|(_, engine)| (engine.name.clone(), engine))
            .collect();
        for asked in &self.engines {
            match has.get(asked.name()) {
                Some(found) => differences.extend(between(found, asked)),
                None => {
                    let missing = Difference::engine(asked.name(), ENGINE, absent(), present());
                    differences.push(missing);
                }
            }
        }
        let asked: HashSet<_> = self.engines.iter().map(Engine::name).collect();
        let mut surplus: Vec<_> = has
            .keys()
            .filter(|name| !asked.contains(name.as_str()))
            .collect();
        surplus.sort();
        let surplus = surplus
            .into_iter()
            .map(|name| Difference::engine(name, ENGINE, present(), absent()));
        differences.extend(surplus);
    }
}

impl Table {
    /// The engines that the table has, with their slots.
    pub(crate) fn present_engines(&self) -> impl Iterator<Item = (usize, Engine)> {
        let engines = self.engines();
        (0..engines.in_use())
            .filter(move |&slot| engines.word(slot).state() != RowState::Removed)
            .map(move |slot| (slot, engines.read(slot)))
    }
}

/// The differences between two engines of one name.
fn between(found: &Engine, asked: &Engine) -> impl Iterator<Item = Difference> {
    let requests = |engine: &Engine| in_words(engine.get_max_in_flight());
    let tokens = |engine: &Engine| in_words(engine.get_max_tokens());
    let name = asked.name().to_owned();
    [
        ("weight", found.weight.to_string(), asked.weight.to_string()),
        ("max_in_flight", requests(found), requests(asked)),
        ("max_tokens", tokens(found), tokens(asked)),
    ]
    .into_iter()
    .filter(|(_, found, asked)| found != asked)
    .map(move |(option, found, asked)| Difference::engine(&name, option, found, asked))
}

/// A cap as people are told it.
fn in_words(cap: Option<u32>) -> String {
    cap.map_or_else(|| "none".to_owned(), |cap| cap.to_string())
}
