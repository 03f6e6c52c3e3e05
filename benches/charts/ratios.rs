//! The ratios, each with what it must and should be.

use crate::canvas::{COLOURS, Canvas, FAINT, INK, WIDTH, picture, write, write_to_the_left};
use crate::{Drawn, number};
use plotters::prelude::*;
use serde_json::Value;
use std::path::Path;

/// The order, and what each says.
const RATIOS: [(&str, &str); 10] = [
    (
        "route_finish_e8",
        "route + finish, 8 calm engines : bare choice",
    ),
    ("route_finish_e64", "the same, 64 engines"),
    ("route_finish_e256", "the same, 256 engines"),
    (
        "pressed_e8",
        "8 engines, pressure, weights, caps : bare choice",
    ),
    ("pressed_e64", "the same, 64 engines"),
    ("pressed_e256", "the same, 256 engines"),
    (
        "shaped_e64",
        "with tokens, exclusions and a preference, too",
    ),
    (
        "contended_p2_e8",
        "two processes, 8 calm engines : bare pair",
    ),
    (
        "snapshot_read_e8",
        "statistics of 8 engines : 10 plain loads",
    ),
    (
        "vs_robust_mutex",
        "a table behind a robust mutex : this one",
    ),
];
const LEFT: i32 = 330;
const RIGHT: i32 = WIDTH as i32 - 110;
const ROW: i32 = 56;

pub(crate) fn draw(path: &Path, limits: &Value) -> Drawn {
    let height = 80 + 8 + ROW as u32 * RATIOS.len() as u32;
    let title = "How far from the yardsticks";
    let subtitle = "Ratios, each on a scale of its own; less is better, in the last row more";
    picture(path, height, title, subtitle, |body| {
        for (row, (name, what)) in RATIOS.into_iter().enumerate() {
            let found = number(&limits["ratios"], name)?;
            let must = number(&limits["limits"][name], "must")?;
            let aim = number(&limits["limits"][name], "aim")?;
            bar(body, row as i32 * ROW, name, what, [found, must, aim])?;
        }
        Ok(())
    })
}

/// Draws one ratio: a bar, and ticks at what it must be and at what it should be, on a scale of its own. A bar
/// that is longer than the scale is cut.
fn bar(on: &Canvas<'_>, y: i32, name: &str, what: &str, [found, must, aim]: [f64; 3]) -> Drawn {
    write_to_the_left(on, (LEFT - 16, y + 4), 15, name)?;
    write_to_the_left(on, (LEFT - 16, y + 24), 12, what)?;
    let most = must.max(aim) * 1.6;
    let x = |value: f64| LEFT + (f64::from(RIGHT - LEFT) * (value / most).min(1.0)) as i32;
    on.draw(&Rectangle::new(
        [(LEFT, y + 6), (RIGHT, y + 30)],
        FAINT.filled(),
    ))?;
    let more_is_better = aim > must;
    let reached = (found <= must) != more_is_better || found == must;
    let colour = if reached { COLOURS[0] } else { COLOURS[1] };
    on.draw(&Rectangle::new(
        [(LEFT, y + 6), (x(found), y + 30)],
        colour.filled(),
    ))?;
    write(on, (RIGHT + 12, y + 9), 17, &format!("{found:.2}"))?;
    for (value, label) in [(must, "must"), (aim, "aim")] {
        let at = x(value);
        on.draw(&PathElement::new(
            [(at, y + 2), (at, y + 34)],
            INK.stroke_width(2),
        ))?;
        write(on, (at + 3, y + 33), 12, &format!("{label} {value}"))?;
    }
    Ok(())
}
