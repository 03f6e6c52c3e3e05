//! The metrics of tables of in-flight counts, in the text format of Prometheus.
//!
//! `headcount metrics` and `headcount-server` serve these metrics. `docs/cli.md` in the repository lists them.

mod queue;

use headcount::{Dimensions, EngineState, View};
use prometheus::{Encoder, GaugeVec, IntCounterVec, Opts, Registry, TextEncoder};
use std::time::UNIX_EPOCH;

/// A table in a scrape.
#[derive(Debug)]
pub struct Sample {
    /// The value of the label `table`.
    pub label: String,
    /// The contents of the table. `None` if it could not be read.
    pub contents: Option<Contents>,
}

/// The contents of a table at one moment.
#[derive(Debug)]
pub struct Contents {
    /// Its engines, frontends and last publication.
    pub view: View,
    /// Its size and limits, which never change.
    pub dimensions: Dimensions,
    /// Whether all known frontends count in this table, and none in a former table at its path.
    pub is_linked: bool,
}

/// The metrics of one scrape. They are made for it and dropped with it, so that no metric outlives its engine.
struct Scrape<'a> {
    registry: Registry,
    tables: &'a [Sample],
}

impl Scrape<'_> {
    /// Registers gauges. Each metric has the label `table`.
    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<GaugeVec> {
        let gauges = GaugeVec::new(Opts::new(name, help), &[&["table"], labels].concat())?;
        self.registry.register(Box::new(gauges.clone()))?;
        Ok(gauges)
    }

    fn counters(&self, name: &str, help: &str, label: &str) -> prometheus::Result<IntCounterVec> {
        let counters = IntCounterVec::new(Opts::new(name, help), &["table", label])?;
        self.registry.register(Box::new(counters.clone()))?;
        Ok(counters)
    }

    /// The tables that could be read, by their labels.
    fn contents(&self) -> impl Iterator<Item = (&str, &Contents)> {
        (self.tables.iter()).filter_map(|t| Some((t.label.as_str(), t.contents.as_ref()?)))
    }
}

/// Returns the metrics of tables in the text format of Prometheus.
///
/// ```
/// use headcount::Table;
/// use headcount_metrics::{Contents, Sample, encode};
///
/// let table = Table::options().engines(2).memfd()?;
/// let contents = Contents {
///     view: table.view(),
///     dimensions: table.dimensions(),
///     is_linked: true,
/// };
/// let sample = Sample {
///     label: "llama".to_owned(),
///     contents: Some(contents),
/// };
/// let metrics = encode(&[sample])?;
/// assert!(metrics.contains("headcount_table_up{table=\"llama\"} 1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// An error of the encoder, which these metrics do not cause.
pub fn encode(tables: &[Sample]) -> prometheus::Result<String> {
    let registry = Registry::new();
    let scrape = Scrape { registry, tables };
    engines(&scrape)?;
    frontends(&scrape)?;
    table(&scrape)?;
    queue::register(&scrape)?;
    let mut text = Vec::new();
    let families = scrape.registry.gather();
    TextEncoder::new().encode(&families, &mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn engines(scrape: &Scrape<'_>) -> prometheus::Result<()> {
    let of = |name, help| scrape.gauges(name, help, &["engine"]);
    let in_flight = of(
        "headcount_engine_in_flight_requests",
        "Requests in flight on the engine, counted exactly.",
    )?;
    let tokens = of(
        "headcount_engine_in_flight_tokens",
        "Tokens of the requests in flight on the engine.",
    )?;
    let admitted = scrape.counters(
        "headcount_engine_requests_admitted_total",
        "Requests that the engine was given since it was added.",
        "engine",
    )?;
    let finished = scrape.counters(
        "headcount_engine_requests_finished_total",
        "Requests that the engine has finished since it was added.",
        "engine",
    )?;
    let weight = of(
        "headcount_engine_weight",
        "How much the engine can do, compared with the others.",
    )?;
    let max_requests = of(
        "headcount_engine_max_in_flight_requests",
        "The engine's cap in requests; absent if it has none.",
    )?;
    let max_tokens = of(
        "headcount_engine_max_in_flight_tokens",
        "The engine's cap in tokens; absent if it has none.",
    )?;
    let state = scrape.gauges(
        "headcount_engine_state",
        "1 for the state that the engine is in, 0 for the others.",
        &["engine", "state"],
    )?;
    let waiting = of(
        "headcount_engine_waiting_requests",
        "Requests in the engine's queue, as published.",
    )?;
    let running = of(
        "headcount_engine_running_requests",
        "Requests in the engine's batch, as published.",
    )?;
    let kv_usage = of(
        "headcount_engine_kv_cache_usage_ratio",
        "The share of the engine's KV cache that is in use, from 0 to 1, as published.",
    )?;
    let engines = scrape
        .contents()
        .flat_map(|(table, contents)| contents.view.engines.iter().map(move |e| (table, e)));
    for (table, engine) in engines {
        let name = printable(&engine.name);
        let label = [table, name.as_str()];
        in_flight
            .with_label_values(&label)
            .set(engine.in_flight.into());
        tokens.with_label_values(&label).set(engine.tokens.into());
        admitted
            .with_label_values(&label)
            .inc_by(engine.admitted_total);
        finished
            .with_label_values(&label)
            .inc_by(engine.finished_total);
        weight.with_label_values(&label).set(exact(engine.weight));
        if let Some(cap) = engine.max_in_flight {
            max_requests.with_label_values(&label).set(cap.into());
        }
        if let Some(cap) = engine.max_tokens {
            max_tokens.with_label_values(&label).set(cap.into());
        }
        for possible in [
            EngineState::Active,
            EngineState::Draining,
            EngineState::Down,
            EngineState::Leaving,
        ] {
            state
                .with_label_values(&[label[0], label[1], possible.name()])
                .set(f64::from(u8::from(possible == engine.state)));
        }
        if let Some(stats) = &engine.stats {
            waiting.with_label_values(&label).set(stats.waiting.into());
            running.with_label_values(&label).set(stats.running.into());
            kv_usage
                .with_label_values(&label)
                .set(exact(stats.kv_usage));
        }
    }
    Ok(())
}

fn frontends(scrape: &Scrape<'_>) -> prometheus::Result<()> {
    let of = |name, help| scrape.gauges(name, help, &["frontend", "pid"]);
    let in_flight = of(
        "headcount_frontend_in_flight_requests",
        "Requests that the frontend has in flight.",
    )?;
    let tokens = of(
        "headcount_frontend_in_flight_tokens",
        "Tokens of the requests that the frontend has in flight.",
    )?;
    let alive = of(
        "headcount_frontend_alive",
        "1 if the frontend's process lives, 0 if it died and was not reaped yet.",
    )?;
    let joined = of(
        "headcount_frontend_join_timestamp_seconds",
        "When the frontend joined, in seconds of the Unix epoch.",
    )?;
    let frontends = scrape
        .contents()
        .flat_map(|(table, contents)| contents.view.frontends.iter().map(move |f| (table, f)));
    for (table, frontend) in frontends {
        let (slot, pid) = (frontend.slot.to_string(), frontend.pid.to_string());
        let label = [table, slot.as_str(), pid.as_str()];
        let since = frontend.joined_at.duration_since(UNIX_EPOCH);
        in_flight
            .with_label_values(&label)
            .set(frontend.in_flight as f64);
        tokens.with_label_values(&label).set(frontend.tokens as f64);
        alive
            .with_label_values(&label)
            .set(f64::from(u8::from(frontend.alive)));
        joined
            .with_label_values(&label)
            .set(since.map_or(0.0, |since| since.as_secs_f64()));
    }
    Ok(())
}

fn table(scrape: &Scrape<'_>) -> prometheus::Result<()> {
    let of = |name, help| scrape.gauges(name, help, &[]);
    let up = of(
        "headcount_table_up",
        "1 if the table can be read, 0 if it cannot; then it has no other metric.",
    )?;
    let linked = of(
        "headcount_table_linked",
        "1 if all frontends count in this table, 0 if some still count in a former table at its path.",
    )?;
    let publishes = of(
        "headcount_publisher_alive",
        "1 if a living process publishes statistics, 0 if none does.",
    )?;
    let deployed = of(
        "headcount_deployment_alive",
        "1 if a living process is the table's deployment, 0 if none is.",
    )?;
    let refusals = scrape.counters(
        "headcount_refusals_total",
        "Requests refused since the table was created, by the cap that refused them, or for lack of an engine.",
        "reason",
    )?;
    let age = of(
        "headcount_snapshot_age_seconds",
        "How long ago statistics were last published; absent if they never were.",
    )?;
    let max_requests = of(
        "headcount_table_max_in_flight_requests",
        "The cap of the whole table in requests; absent if it has none.",
    )?;
    let max_tokens = of(
        "headcount_table_max_in_flight_tokens",
        "The cap of the whole table in tokens; absent if it has none.",
    )?;
    let max_engines = of(
        "headcount_table_max_engines",
        "How many engines the table has room for.",
    )?;
    let max_frontends = of(
        "headcount_table_max_frontends",
        "How many frontends can join the table.",
    )?;
    let truth = |is: bool| f64::from(u8::from(is));
    for table in scrape.tables {
        up.with_label_values(&[&table.label])
            .set(truth(table.contents.is_some()));
    }
    for (label, contents) in scrape.contents() {
        let (view, dimensions, label) = (&contents.view, &contents.dimensions, [label]);
        linked
            .with_label_values(&label)
            .set(truth(contents.is_linked));
        publishes
            .with_label_values(&label)
            .set(truth(view.publisher.is_some()));
        deployed
            .with_label_values(&label)
            .set(truth(view.deployment.is_some()));
        for (reason, count) in view.refusals_total.by_reason() {
            refusals
                .with_label_values(&[label[0], reason])
                .inc_by(count);
        }
        if let Some(snapshot) = &view.snapshot {
            age.with_label_values(&label)
                .set(snapshot.age.as_secs_f64());
        }
        if let Some(cap) = view.max_in_flight {
            max_requests.with_label_values(&label).set(cap.into());
        }
        if let Some(cap) = view.max_tokens {
            max_tokens.with_label_values(&label).set(cap.into());
        }
        max_engines
            .with_label_values(&label)
            .set(dimensions.max_engines as f64);
        max_frontends
            .with_label_values(&label)
            .set(dimensions.max_frontends as f64);
    }
    Ok(())
}

/// Widens a number as its shortest decimal form: 0.41, and not 0.41000000059604645.
fn exact(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(number.into())
}

/// Replaces each [unprintable](is_unprintable) character of a name by U+FFFD.
pub fn printable(name: &str) -> String {
    name.replace(is_unprintable, "\u{fffd}")
}

/// Whether a character is a control character, changes the direction of text, or shows as nothing.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
