//! How times grow with engines and with processes.

use crate::canvas::{COLOURS, Canvas, GREY, axes, grid, legend, picture, tick, write};
use crate::{Drawn, number, rows};
use plotters::prelude::*;
use serde_json::Value;
use std::path::Path;

const PANEL_HEIGHT: u32 = 420;

/// A line: its colour, its name, and where it goes.
type Line = (RGBColor, &'static str, Vec<(f64, f64)>);

pub(crate) fn draw(path: &Path, growth: &Value) -> Drawn {
    let title = "How the time of a route and its finish grows";
    let subtitle = "Medians; both axes of the left panel are logarithmic, on the right the \
                    upright one";
    picture(path, 80 + PANEL_HEIGHT, title, subtitle, |body| {
        let panels = body.split_evenly((1, 2));
        by_engines(&panels[0], &growth["engines"])?;
        by_processes(&panels[1], &growth["processes"])
    })
}

fn by_engines(panel: &Canvas<'_>, engines: &Value) -> Drawn {
    let pair = number(engines, "bare_pair")?;
    let rows = rows(&engines["rows"])?;
    let lines: [Line; 3] = [
        (
            COLOURS[1],
            "KV pressure",
            points(rows, "engines", "pressed")?,
        ),
        (COLOURS[0], "no pressure", points(rows, "engines", "calm")?),
        (GREY, "bare pair", vec![(1.0, pair), (4096.0, pair)]),
    ];
    write(panel, (24, 0), 17, "By engines, one process")?;
    key(panel, &lines)?;
    let (low, high) = range(&lines);
    let mut chart = axes(panel, 56)
        .build_cartesian_2d((1.0..4096.0).log_scale().base(2.0), (low..high).log_scale())?;
    let mut mesh = chart.configure_mesh();
    grid(&mut mesh, "engines");
    mesh.x_labels(13)
        .x_label_formatter(&|engines| format!("{engines:.0}"))
        .y_label_formatter(&|time| tick(*time))
        .draw()?;
    for (colour, _, points) in lines {
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
    }
    Ok(())
}

fn by_processes(panel: &Canvas<'_>, processes: &Value) -> Drawn {
    let rows = rows(processes)?;
    let lines: [Line; 3] = [
        (
            COLOURS[1],
            "64 engines",
            points(rows, "processes", "engines_64")?,
        ),
        (
            COLOURS[0],
            "8 engines",
            points(rows, "processes", "engines_8")?,
        ),
        (GREY, "bare pair", points(rows, "processes", "bare_pair")?),
    ];
    let cores = rows.iter().filter(|row| row["a_core_each"] == true).count();
    let title = format!("By processes, as each sees it; there are {cores} cores");
    write(panel, (24, 0), 17, &title)?;
    key(panel, &lines)?;
    let (low, high) = range(&lines);
    let most = lines[0].2.last().map_or(1.0, |last| last.0);
    let mut chart = axes(panel, 56).build_cartesian_2d(1.0..most, (low..high).log_scale())?;
    let mut mesh = chart.configure_mesh();
    grid(&mut mesh, "processes");
    mesh.x_labels(8)
        .x_label_formatter(&|processes| format!("{processes:.0}"))
        .y_label_formatter(&|time| tick(*time))
        .draw()?;
    for (colour, _, points) in lines {
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))?;
    }
    Ok(())
}

fn key(panel: &Canvas<'_>, lines: &[Line]) -> Drawn {
    let entries = lines.iter().map(|(colour, name, _)| (*colour, *name));
    legend(panel, (24, 40), 150, entries)
}

fn points(rows: &[Value], x: &str, y: &str) -> Result<Vec<(f64, f64)>, Box<dyn std::error::Error>> {
    rows.iter()
        .map(|row| Ok((number(row, x)?, number(row, y)?)))
        .collect()
}

/// Powers of ten that all lines lie between.
fn range(lines: &[Line]) -> (f64, f64) {
    let times = || lines.iter().flat_map(|line| &line.2).map(|point| point.1);
    let (low, high) = (
        times().fold(f64::INFINITY, f64::min),
        times().fold(1.0, f64::max),
    );
    (
        10_f64.powf(low.log10().floor()),
        10_f64.powf(high.log10().ceil()),
    )
}
