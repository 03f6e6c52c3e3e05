//! The alternatives, beside the table.

use crate::canvas::{COLOURS, Canvas, GREY, picture, time, write, write_to_the_left};
use crate::{Drawn, rows};
use plotters::prelude::*;
use serde_json::Value;
use std::path::Path;

const PANEL_HEIGHT: u32 = 240;
const LEFT: i32 = 170;
const ROW: i32 = 30;

pub(crate) fn draw(path: &Path, limits: &Value) -> Drawn {
    let title = "Time of an operation, beside the alternatives";
    let subtitle = "Medians, as each process sees it; lengths are logarithmic. Most alternatives \
                    keep less: see the text";
    picture(path, 80 + 3 * PANEL_HEIGHT, title, subtitle, |body| {
        let panels = body.split_evenly((3, 2));
        let choices = rows(&limits["route_and_finish"])?;
        for (comparison, panel) in choices.iter().zip(&panels) {
            let title = format!(
                "Route + finish, {} engines, {}",
                comparison["engines"],
                processes(comparison),
            );
            bars(panel, &title, comparison)?;
        }
        if let Some(panel) = panels.get(choices.len()) {
            let title = "A consistent read of 8 engines' statistics";
            bars(panel, title, &limits["snapshot_read"])?;
        }
        Ok(())
    })
}

fn processes(comparison: &Value) -> String {
    match comparison["processes"].as_u64() {
        Some(1) => "one process".to_owned(),
        Some(count) => format!("{count} processes"),
        None => "?".to_owned(),
    }
}

/// A bar for each, the fastest first, on a scale of the panel's own that is logarithmic.
fn bars(panel: &Canvas<'_>, title: &str, comparison: &Value) -> Drawn {
    let times = comparison["nanoseconds"]
        .as_object()
        .ok_or("no times in a comparison")?;
    let mut times: Vec<(&str, f64)> = (times.iter())
        .filter_map(|(name, time)| Some((name.as_str(), time.as_f64()?)))
        .collect();
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    write(panel, (24, 6), 17, title)?;
    let (width, _) = panel.dim_in_pixel();
    let room = f64::from(width as i32 - LEFT - 100);
    let least = times.first().map_or(1.0, |first| first.1) / 2.0;
    let most = times.last().map_or(1.0, |last| last.1);
    for (row, (name, nanoseconds)) in times.into_iter().enumerate() {
        let y = 36 + row as i32 * ROW;
        let colour = match name {
            "headcount" => COLOURS[0],
            "bare pair" | "bare choice" | "plain loads" => GREY,
            _ => COLOURS[4],
        };
        let length = room * (nanoseconds / least).ln() / (most / least).ln();
        let end = LEFT + length as i32;
        write_to_the_left(panel, (LEFT - 10, y + 3), 14, name)?;
        panel.draw(&Rectangle::new([(LEFT, y), (end, y + 21)], colour.filled()))?;
        write(panel, (end + 8, y + 3), 14, &time(nanoseconds))?;
    }
    Ok(())
}
