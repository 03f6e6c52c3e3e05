//! The requests in flight at each engine over time, while a trace was replayed, a panel for each strategy.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use plotters::prelude::*;

use super::{COLOURS, Canvas, Drawn, axes, write};
use crate::report::{Report, StrategyResult};
use crate::run::Outcome;
use crate::timeline::Timeline;
use crate::wire::Change;

const WIDTH: u32 = 1200;
const HEADER: u32 = 100;
const PANEL_HEIGHT: u32 = 350;

pub(super) fn draw(path: &Path, report: &Report, outcomes: &[Outcome]) -> Drawn {
    let columns = outcomes.len().min(2);
    let rows = outcomes.len().div_ceil(columns);
    let size = (WIDTH, HEADER + PANEL_HEIGHT * rows as u32);
    let canvas = SVGBackend::new(path, size).into_drawing_area();
    Picture::new(report, outcomes).draw(&canvas, (rows, columns))
}

/// What the panels share.
#[derive(Debug)]
struct Picture<'a> {
    report: &'a Report,
    outcomes: &'a [Outcome],
    /// Where the axes end.
    seconds: f64,
    requests: f64,
}

impl<'a> Picture<'a> {
    fn new(report: &'a Report, outcomes: &'a [Outcome]) -> Self {
        // Not the long time in which the last few requests are finished.
        let length = |outcome: &Outcome| {
            let end = times(outcome, Change::Received).map_or(Duration::ZERO, |(_, end)| end);
            end.saturating_sub(start(outcome)).as_secs_f64()
        };
        let peaks = outcomes
            .iter()
            .flat_map(|outcome| &outcome.rounds)
            .map(Timeline::peak);
        let padded = report
            .results
            .iter()
            .map(|result| result.worst_padded_batch);
        let highest = peaks.chain(padded).max().unwrap_or(0).max(1);
        Self {
            report,
            outcomes,
            seconds: outcomes.iter().map(length).fold(0.1, f64::max) * 1.01,
            requests: f64::from(highest) * 1.05,
        }
    }

    fn draw(&self, canvas: &Canvas<'_>, grid: (usize, usize)) -> Drawn {
        canvas.fill(&WHITE)?;
        let (header, panels) = canvas.split_vertically(HEADER as i32);
        self.header(&header)?;
        let panels = panels.split_evenly(grid);
        for ((outcome, result), panel) in
            self.outcomes.iter().zip(&self.report.results).zip(&panels)
        {
            self.panel(panel, outcome, result)?;
        }
        canvas.present()?;
        Ok(())
    }

    fn header(&self, header: &Canvas<'_>) -> Drawn {
        let config = &self.report.config;
        let title = "Requests in flight at each engine, for each way to choose one";
        let subtitle = format!(
            "Always the same {} recorded requests, {}",
            config.requests,
            config.way()
        );
        write(header, (24, 14), 23, &title)?;
        write(header, (24, 44), 15, &subtitle)?;
        self.legend(header, (24, 80))
    }

    fn legend(&self, header: &Canvas<'_>, (mut x, y): (i32, i32)) -> Drawn {
        let engines = self.report.config.engines as usize;
        let several = engines > COLOURS.len();
        for (number, colour) in (0..engines.min(COLOURS.len())).zip(COLOURS) {
            header.draw(&PathElement::new(
                [(x, y), (x + 26, y)],
                colour.stroke_width(3),
            ))?;
            if several {
                x += 32;
            } else {
                write(header, (x + 32, y - 8), 14, &format!("engine {number}"))?;
                x += 110;
            }
        }
        if several {
            write(
                header,
                (x + 4, y - 8),
                14,
                &format!("one line for each of {engines} engines"),
            )?;
        }
        Ok(())
    }

    fn panel(&self, panel: &Canvas<'_>, outcome: &Outcome, result: &StrategyResult) -> Drawn {
        write(panel, (24, 10), 18, &result.strategy)?;
        write(panel, (24, 33), 14, &Note(result))?;

        let names = ["seconds since the first arrival", "requests in flight"];
        let mut chart = axes(panel, 58, (self.seconds, self.requests), names)?;

        let origin = start(outcome);
        for (engine, colour) in (0..self.report.config.engines as usize).zip(COLOURS.iter().cycle())
        {
            let corners = outcome
                .rounds
                .iter()
                .flat_map(|round| round.curve(engine, origin));
            let shown = corners.take_while(|(seconds, _)| *seconds <= self.seconds);
            chart.draw_series(LineSeries::new(shown, colour.stroke_width(2)))?;
        }
        Ok(())
    }
}

/// What the panel shows, in words.
#[derive(Debug)]
struct Note<'a>(&'a StrategyResult);

impl fmt::Display for Note<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(result) = self;
        let Some(spread) = &result.in_flight_spread else {
            return Ok(());
        };
        write!(
            f,
            "most minus least: {} requests at worst, {:.1} on average, {} and {:.0} tokens",
            spread.peak_requests, spread.mean_requests, spread.peak_tokens, spread.mean_tokens,
        )
    }
}

/// When the first request of the first round arrived.
fn start(outcome: &Outcome) -> Duration {
    times(outcome, Change::Received).map_or(Duration::ZERO, |(start, _)| start)
}

/// The first and the last time of such a change in any round.
fn times(outcome: &Outcome, change: Change) -> Option<(Duration, Duration)> {
    let times = outcome
        .rounds
        .iter()
        .filter_map(|round| round.times(change));
    times.reduce(|(first, _), (_, last)| (first, last))
}
