//! The picture: what each engine had in flight over time, a panel for each strategy.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::Error;
use crate::report::{Report, StrategyResult};
use crate::run::Outcome;
use crate::timeline::Timeline;
use crate::wire::Change;

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

const WIDTH: u32 = 1200;
const HEADER: u32 = 100;
const PANEL_HEIGHT: u32 = 350;

const INK: RGBColor = RGBColor(34, 34, 34);
const FAINT: RGBColor = RGBColor(232, 232, 232);
/// Slots that are decoded and hold no request.
const PADDING: RGBColor = RGBColor(253, 228, 190);

/// Told apart with any colour vision (Okabe and Ito, Color Universal Design, 2008).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

pub(crate) fn draw(path: &Path, report: &Report, outcomes: &[Outcome]) -> Result<(), Error> {
    let columns = outcomes.len().min(2);
    let rows = outcomes.len().div_ceil(columns);
    let size = (WIDTH, HEADER + PANEL_HEIGHT * rows as u32);
    let canvas = SVGBackend::new(path, size).into_drawing_area();
    Picture::new(report, outcomes)
        .draw(&canvas, (rows, columns))
        .map_err(|error| Error::Chart {
            path: path.to_owned(),
            reason: error.to_string(),
        })
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
        // Of a trace, not the long time in which the last few requests are finished.
        let last = if report.config.trace.is_none() {
            Change::Finished
        } else {
            Change::Received
        };
        let length = |outcome: &Outcome| {
            let end = times(outcome, last).map_or(Duration::ZERO, |(_, end)| end);
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
        let load = match &config.trace {
            None => format!(
                "{} bursts of {} requests, one after the other",
                config.rounds, config.requests
            ),
            Some(_) => format!("{} recorded requests", config.requests),
        };
        let title = "Requests in flight at each engine, for each way to choose one";
        let subtitle = format!("Always the same {load}, {}", config.way());
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
            x += 220;
        }
        if self.report.config.trace.is_none() {
            header.draw(&Rectangle::new(
                [(x, y - 7), (x + 26, y + 7)],
                PADDING.filled(),
            ))?;
            write(
                header,
                (x + 32, y - 8),
                14,
                &"slots of a padded batch beyond an even split's, at worst",
            )?;
        }
        Ok(())
    }

    fn panel(&self, panel: &Canvas<'_>, outcome: &Outcome, result: &StrategyResult) -> Drawn {
        write(panel, (24, 10), 18, &result.strategy)?;
        write(panel, (24, 33), 14, &Note(result))?;

        let mut chart = ChartBuilder::on(panel)
            .margin_top(58)
            .margin_right(24)
            .margin_bottom(6)
            .margin_left(14)
            .x_label_area_size(40)
            .y_label_area_size(48)
            .build_cartesian_2d(0.0..self.seconds, 0.0..self.requests)?;

        if self.report.config.trace.is_none() {
            let even = f64::from(self.report.config.even_batch());
            let padded = f64::from(result.worst_padded_batch);
            let slots = [(0.0, even), (self.seconds, padded)];
            chart.draw_series([Rectangle::new(slots, PADDING.filled())])?;
        }
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(INK)
            .label_style(font(13))
            .axis_desc_style(font(14))
            .x_labels(8)
            .y_labels(7)
            .x_label_formatter(&|seconds| format!("{seconds}"))
            .y_label_formatter(&|requests| format!("{requests}"))
            .x_desc("seconds since the first arrival")
            .y_desc("requests in flight")
            .draw()?;

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
        if let Some((death, _)) = times(outcome, Change::Aborted) {
            let seconds = death.saturating_sub(origin).as_secs_f64();
            let (top, label) = (
                (seconds, self.requests),
                (seconds + 0.01 * self.seconds, self.requests),
            );
            chart.draw_series([PathElement::new([(seconds, 0.0), top], INK)])?;
            chart.draw_series([Text::new("a frontend was killed", label, font(13))])?;
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
        if let Some(spread) = &result.in_flight_spread {
            return write!(
                f,
                "most minus least: {} requests at worst, {:.1} on average, {} and {:.0} tokens",
                spread.peak_requests, spread.mean_requests, spread.peak_tokens, spread.mean_tokens,
            );
        }
        let Some(worst) = result.rounds.iter().max_by_key(|round| round.badness()) else {
            return Ok(());
        };
        let (shares, padded) = (worst.shares("/"), worst.padded_batch);
        write!(f, "worst split {shares} \u{2192} batch padded to {padded}")?;
        match worst.padding_cost_percent {
            Some(cost) if cost > 0.0 => write!(f, ", {cost:.1} % more than needed")?,
            _ => write!(f, ", no more than needed")?,
        }
        if worst.spread <= 1 {
            write!(f, " (the lines coincide)")?;
        }
        Ok(())
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

fn write(on: &Canvas<'_>, at: (i32, i32), size: u32, what: &impl ToString) -> Drawn {
    on.draw(&Text::new(what.to_string(), at, font(size)))?;
    Ok(())
}

fn font(size: u32) -> TextStyle<'static> {
    let top_left = Pos::new(HPos::Left, VPos::Top);
    ("sans-serif", size).into_font().color(&INK).pos(top_left)
}
