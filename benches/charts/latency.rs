//! Latency by share of requests: how the slow ones grow, for each number of processes.

use crate::canvas::{COLOURS, Canvas, axes, grid, legend, picture, tick, write};
use crate::{Drawn, number, rows};
use plotters::prelude::*;
use serde_json::Value;
use std::path::Path;

const PANEL_HEIGHT: u32 = 340;
const KEY: u32 = 36;
/// Where the axis ends, in shares that are slower: one in a hundred thousand.
const NINES: f64 = 5.0;

pub(crate) fn draw(path: &Path, latency: &Value) -> Drawn {
    let all = rows(&latency["rows"])?;
    let mut processes: Vec<u64> = all.iter().filter_map(|r| r["processes"].as_u64()).collect();
    processes.dedup();
    let mut rates: Vec<&Value> = Vec::new();
    for row in all {
        if !rates.contains(&&row["rate"]) {
            rates.push(&row["rate"]);
        }
    }
    let lines = processes.len().div_ceil(2) as u32;
    let title = "Latency of route under load";
    let subtitle = "From when a request was due until it had its engine; faint: the same with nothing to \
                    do, which is the machine's own share";
    let height = 80 + KEY + lines * PANEL_HEIGHT;
    picture(path, height, title, subtitle, |body| {
        let (key, panels) = body.split_vertically(KEY);
        let names: Vec<String> = rates.iter().map(|rate| name(rate)).collect();
        let entries = COLOURS.into_iter().zip(names.iter().map(String::as_str));
        legend(&key, (24, 14), 190, entries)?;
        let panels = panels.split_evenly((lines as usize, 2));
        for (count, panel) in processes.iter().zip(&panels) {
            let of: Vec<_> = all.iter().filter(|r| r["processes"] == *count).collect();
            curves(panel, *count, &of, &rates)?;
        }
        Ok(())
    })
}

fn name(rate: &Value) -> String {
    match rate.as_u64() {
        None => "flat out".to_owned(),
        Some(rate) if rate >= 1_000_000 => format!("{} million a second", rate / 1_000_000),
        Some(rate) => format!("{},000 a second", rate / 1_000),
    }
}

fn curves(panel: &Canvas<'_>, processes: u64, rows: &[&Value], rates: &[&Value]) -> Drawn {
    let title = match processes {
        1 => "One process".to_owned(),
        count => format!("{count} processes"),
    };
    write(panel, (24, 4), 17, &title)?;
    let mut chart = axes(panel, 34).build_cartesian_2d(0.0..NINES, (10.0..1e9).log_scale())?;
    let mut mesh = chart.configure_mesh();
    grid(
        &mut mesh,
        "share of requests that are no slower, in percent",
    );
    mesh.x_labels(6)
        .y_labels(9)
        .x_label_formatter(&|nines| share(*nines))
        .y_label_formatter(&|time| tick(*time))
        .draw()?;
    for row in rows {
        let at = rates.iter().position(|rate| **rate == row["rate"]);
        let colour = COLOURS[at.unwrap_or(0) % COLOURS.len()];
        let points = curve(row)?;
        if row["routes"] == true {
            chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?
        } else {
            chart.draw_series(LineSeries::new(points, colour.mix(0.35).stroke_width(1)))?
        };
    }
    Ok(())
}

/// How many nines a share has, and the time: as far as there are requests enough to tell.
fn curve(row: &Value) -> Result<Vec<(f64, f64)>, Box<dyn std::error::Error>> {
    let requests = number(row, "requests")?;
    let points = rows(&row["curve"])?.iter().filter_map(|point| {
        let (percent, time) = (point[0].as_f64()?, point[1].as_f64()?);
        let slower = 1.0 - percent / 100.0;
        (slower * requests >= 1.0).then(|| (-slower.log10(), time.max(10.0)))
    });
    Ok(points.collect())
}

fn share(nines: f64) -> String {
    match nines.round() as usize {
        0 => "0".to_owned(),
        1 => "90".to_owned(),
        2 => "99".to_owned(),
        more => format!("99.{}", "9".repeat(more - 2)),
    }
}
