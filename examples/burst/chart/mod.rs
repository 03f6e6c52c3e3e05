//! The pictures: how bursts were split, the requests in flight at each engine over time, the places that are left
//! when frontends are killed, and the requests that wait.

mod in_flight;
mod places;
mod splits;
mod waiting;

use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::cap::Held;
use crate::error::Error;
use crate::report::Report;
use crate::run::Outcome;
use crate::waiting::Waited;

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Axes<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

const INK: RGBColor = RGBColor(34, 34, 34);
const FAINT: RGBColor = RGBColor(232, 232, 232);

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

/// Draws bursts or a trace.
pub(crate) fn draw(path: &Path, report: &Report, outcomes: &[Outcome]) -> Result<(), Error> {
    let drawn = match report.config.trace {
        None => splits::draw(path, report),
        Some(_) => in_flight::draw(path, report, outcomes),
    };
    drawn.map_err(|error| failed(path, &*error))
}

/// Draws the places that were left while frontends were killed.
pub(crate) fn draw_places(path: &Path, held: &Held) -> Result<(), Error> {
    places::draw(path, held).map_err(|error| failed(path, &*error))
}

/// Draws the requests that waited.
pub(crate) fn draw_waiting(path: &Path, waited: &Waited) -> Result<(), Error> {
    waiting::draw(path, waited).map_err(|error| failed(path, &*error))
}

fn failed(path: &Path, error: &dyn std::error::Error) -> Error {
    Error::Chart {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

fn write(on: &Canvas<'_>, at: (i32, i32), size: u32, what: &impl ToString) -> Drawn {
    on.draw(&Text::new(what.to_string(), at, font(size)))?;
    Ok(())
}

/// Draws the axes of a panel below its heading: seconds to the right up to `seconds`, requests upwards up to `requests`.
fn axes<'a>(
    panel: &Canvas<'a>,
    heading: u32,
    (seconds, requests): (f64, f64),
    [right, up]: [&str; 2],
) -> Drawn<Axes<'a>> {
    let mut axes = ChartBuilder::on(panel)
        .margin_top(heading)
        .margin_right(24)
        .margin_bottom(6)
        .margin_left(14)
        .x_label_area_size(40)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..seconds, 0.0..requests)?;
    axes.configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT)
        .axis_style(INK)
        .label_style(font(13))
        .axis_desc_style(font(14))
        .x_labels(8)
        .y_labels(7)
        .x_label_formatter(&|seconds| format!("{seconds}"))
        .y_label_formatter(&|requests| format!("{requests}"))
        .x_desc(right)
        .y_desc(up)
        .draw()?;
    Ok(axes)
}

fn font(size: u32) -> TextStyle<'static> {
    let top_left = Pos::new(HPos::Left, VPos::Top);
    ("sans-serif", size).into_font().color(&INK).pos(top_left)
}
