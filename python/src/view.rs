//! Results of the library as the dataclasses of `headcount/_view.py`.

use headcount::{
    Changes, Difference, Dimensions, EngineId, EngineStats, QueueView, Reaped, Verification, View,
    WaitedView,
};
use pyo3::prelude::*;
use pyo3::types::{PyModule, PyTuple};
use std::time::UNIX_EPOCH;

fn made<'py>(
    py: Python<'py>,
    module: &'static str,
    class: &str,
    fields: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = fields.into_pyobject(py)?;
    PyModule::import(py, module)?.getattr(class)?.call1(fields)
}

/// A `headcount.View`.
pub(crate) fn view<'py>(py: Python<'py>, view: &View) -> PyResult<Bound<'py, PyAny>> {
    let engines: Vec<_> = (view.engines.iter())
        .map(|engine| {
            let stats = engine
                .stats
                .map(|stats| self::stats(py, &stats))
                .transpose()?;
            let fields = (
                id(py, engine.id)?,
                &engine.name,
                engine.state.name(),
                engine.weight,
                engine.in_flight,
                engine.tokens,
                engine.admitted_total,
                engine.finished_total,
                engine.max_in_flight,
                engine.max_tokens,
                stats,
            );
            made(py, VIEW, "EngineView", fields)
        })
        .collect::<PyResult<_>>()?;
    let frontends: Vec<_> = (view.frontends.iter())
        .map(|frontend| {
            // No frontend joined before 1970; such a time reads as 1970.
            let joined_at = frontend
                .joined_at
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let fields = (
                frontend.slot,
                frontend.pid,
                frontend.alive,
                joined_at.as_secs_f64(),
                frontend.in_flight,
                frontend.tokens,
                frontend.waiting,
            );
            made(py, VIEW, "FrontendView", fields)
        })
        .collect::<PyResult<_>>()?;
    let snapshot = (view.snapshot)
        .map(|snapshot| {
            let [first, second] = snapshot.words;
            let fields = (snapshot.age.as_secs_f64(), (first, second));
            made(py, VIEW, "SnapshotView", fields)
        })
        .transpose()?;
    let [a, b, c, d, e] = view.refusals_total.by_reason().map(|(_, count)| count);
    let refusals_total = made(py, VIEW, "Refusals", (a, b, c, d, e))?;
    let fields = (
        engines,
        frontends,
        view.publisher,
        snapshot,
        view.max_in_flight,
        view.max_tokens,
        view.deployment,
        refusals_total,
        (view.queue.as_ref())
            .map(|queue| self::queue(py, queue))
            .transpose()?,
    );
    made(py, VIEW, "View", fields)
}

/// A `headcount.QueueView`.
fn queue<'py>(py: Python<'py>, queue: &QueueView) -> PyResult<Bound<'py, PyAny>> {
    let classes: Vec<_> = (queue.classes.iter())
        .map(|class| {
            let oldest = class.oldest.map(|oldest| oldest.as_secs_f64());
            let fields = (class.waiting, class.max_waiting, oldest);
            made(py, VIEW, "ClassView", fields)
        })
        .collect::<PyResult<_>>()?;
    let waited = (queue.waited.by_range, queue.waited.sum.as_secs_f64());
    let fields = (
        queue.max_waiting,
        queue.share_tokens,
        classes,
        made(py, VIEW, "WaitedView", waited)?,
        queue.refused_total,
        queue.timed_out_total,
        queue.cancelled_total,
    );
    made(py, VIEW, "QueueView", fields)
}

/// The bounds of a `headcount.WaitedView`, in seconds.
pub(crate) fn waited_bounds(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, WaitedView::BOUNDS.map(|bound| bound / 1e3))
}

/// A `headcount.Dimensions`.
pub(crate) fn dimensions<'py>(py: Python<'py>, of: Dimensions) -> PyResult<Bound<'py, PyAny>> {
    let fields = (
        of.format,
        of.size,
        of.max_engines,
        of.max_frontends,
        of.threads,
        of.engines,
        of.mode,
    );
    made(py, VIEW, "Dimensions", fields)
}

/// A `headcount.EngineId`.
pub(crate) fn id(py: Python<'_>, id: EngineId) -> PyResult<Bound<'_, PyAny>> {
    let fields = (id.index(), id.generation());
    made(py, "headcount._engine", "EngineId", fields)
}

/// A `headcount.Reaped`.
pub(crate) fn reaped<'py>(py: Python<'py>, reaped: Reaped) -> PyResult<Bound<'py, PyAny>> {
    let fields = (
        reaped.frontends,
        reaped.requests,
        reaped.tokens,
        reaped.waiting,
    );
    made(py, VIEW, "Reaped", fields)
}

/// A `headcount.Verification`.
pub(crate) fn verification<'py>(
    py: Python<'py>,
    found: &Verification,
) -> PyResult<Bound<'py, PyAny>> {
    let faults = found.faults.iter().map(|fault| {
        let fields = (fault.kind.name(), &fault.at, &fault.found, &fault.expected);
        made(py, VIEW, "Fault", fields)
    });
    let faults: Vec<_> = faults.collect::<PyResult<_>>()?;
    let fields = (faults, &found.busy, found.counts, found.ledgers);
    made(py, VIEW, "Verification", fields)
}

/// A `headcount.Changes`.
pub(crate) fn changes<'py>(py: Python<'py>, changes: &Changes) -> PyResult<Bound<'py, PyAny>> {
    let differences = differences(py, &changes.differences)?;
    let text = changes.to_string();
    made(py, VIEW, "Changes", (differences, text.trim_end()))
}

/// `headcount.Difference`s.
pub(crate) fn differences<'py>(
    py: Python<'py>,
    differences: &[Difference],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let made = |it: &Difference| {
        let fields = (&it.engine, it.option, &it.found, &it.asked);
        made(py, VIEW, "Difference", fields)
    };
    differences.iter().map(made).collect()
}

fn stats<'py>(py: Python<'py>, stats: &EngineStats) -> PyResult<Bound<'py, PyAny>> {
    let fields = (
        stats.waiting,
        stats.running,
        stats.kv_usage,
        stats.in_flight,
    );
    made(py, "headcount._engine", "EngineStats", fields)
}

const VIEW: &str = "headcount._view";
