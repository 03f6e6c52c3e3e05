//! The requests that wait, and those in flight, while bursts come that are larger than the caps, and below it how long
//! each request waited; two panels for each strategy.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Canvas, Drawn, INK, axes, font, write};
use crate::waiting::{Run, Waited};

const WIDTH: u32 = 900;
const HEADER: u32 = 92;
const PANEL_HEIGHT: u32 = 290;

const IN_FLIGHT: RGBColor = RGBColor(86, 180, 233);
const WAITING: RGBColor = RGBColor(213, 94, 0);

pub(super) fn draw(path: &Path, waited: &Waited) -> Drawn {
    let columns = waited.runs.len();
    let canvas = SVGBackend::new(path, (WIDTH, HEADER + 2 * PANEL_HEIGHT)).into_drawing_area();
    canvas.fill(&WHITE)?;
    let (header, panels) = canvas.split_vertically(HEADER as i32);
    let config = &waited.config;
    let title = format!(
        "{} engines with a cap of {}, and {} frontends: {} bursts of {} requests for {} places",
        config.engines,
        config.cap,
        config.frontends,
        config.bursts,
        config.requests,
        config.places()
    );
    write(&header, (20, 10), 19, &title)?;
    let subtitle = "A request that finds no place tries again, or waits in the table's queue.";
    write(&header, (20, 38), 14, &subtitle)?;
    header.draw(&Rectangle::new([(20, 66), (42, 80)], IN_FLIGHT.filled()))?;
    write(&header, (48, 65), 14, &"requests in flight")?;
    header.draw(&PathElement::new(
        [(190, 73), (212, 73)],
        WAITING.stroke_width(3),
    ))?;
    write(&header, (218, 65), 14, &"requests without a place")?;
    let panels = panels.split_evenly((2, columns));
    let (above, below) = panels.split_at(columns);
    for (run, (above, below)) in waited.runs.iter().zip(above.iter().zip(below)) {
        draw_counts(above, waited, run)?;
        draw_waits(below, waited, run)?;
    }
    canvas.present()?;
    Ok(())
}

fn draw_counts(panel: &Canvas<'_>, waited: &Waited, run: &Run) -> Drawn {
    write(panel, (20, 4), 16, &run.in_words())?;
    let note = format!(
        "{:.1}% of the places were free while requests had none",
        run.idle_while_waiting_percent
    );
    write(panel, (20, 26), 13, &note)?;
    // The same axes in all panels.
    let (runs, seconds) = (waited.runs.iter(), seconds(waited));
    let places = f64::from(waited.config.places());
    let most = runs
        .map(|run| run.most_waiting() as f64)
        .fold(places, f64::max);
    let names = ["seconds", "requests"];
    let mut chart = axes(panel, 52, (seconds, most * 1.12), names)?;

    let mut in_flight = run.in_flight_curve();
    in_flight.push(((run.end - run.start).as_secs_f64(), 0.0));
    chart.draw_series([Polygon::new(in_flight, IN_FLIGHT.filled())])?;
    chart.draw_series(LineSeries::new(
        run.waiting_curve(),
        WAITING.stroke_width(2),
    ))?;
    chart.draw_series([PathElement::new(
        [(0.0, places), (seconds, places)],
        INK.stroke_width(2),
    )])?;
    let cap = font(13).pos(Pos::new(HPos::Right, VPos::Bottom));
    let caps = format!("all caps: {places}");
    chart.draw_series([Text::new(caps, (seconds, places * 1.01), cap)])?;
    Ok(())
}

/// Where the axes of time end.
fn seconds(waited: &Waited) -> f64 {
    let lengths = waited.runs.iter().map(|run| run.end - run.start);
    lengths
        .map(|length| length.as_secs_f64())
        .fold(0.1, f64::max)
}

fn draw_waits(panel: &Canvas<'_>, waited: &Waited, run: &Run) -> Drawn {
    let note = format!(
        "how long each request waited: {:.0} ms at most; {} of {} were overtaken",
        run.longest_wait_ms,
        run.overtaken,
        waited.config.requests * waited.config.bursts,
    );
    write(panel, (20, 10), 13, &note)?;
    let longest = waited.runs.iter().map(|run| run.longest_wait_ms);
    let most = longest.fold(100.0, f64::max) * 1.08;
    let names = ["when the request came, seconds", "milliseconds"];
    let mut chart = axes(panel, 34, (seconds(waited), most), names)?;
    let dots = run.waits().into_iter();
    chart.draw_series(dots.map(|wait| Circle::new(wait, 2, WAITING.filled())))?;
    Ok(())
}
