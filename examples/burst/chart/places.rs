//! The places that requests can use while frontends are killed, a panel for each strategy.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Canvas, Drawn, INK, axes, font, write};
use crate::cap::{Held, Run};
use crate::strategy::Strategy;

const WIDTH: u32 = 900;
const HEADER: u32 = 92;
const PANEL_HEIGHT: u32 = 300;

const IN_FLIGHT: RGBColor = RGBColor(86, 180, 233);
const LOST: RGBColor = RGBColor(213, 94, 0);

pub(super) fn draw(path: &Path, held: &Held) -> Drawn {
    let columns = held.runs.len();
    let canvas = SVGBackend::new(path, (WIDTH, HEADER + PANEL_HEIGHT)).into_drawing_area();
    canvas.fill(&WHITE)?;
    let (header, panels) = canvas.split_vertically(HEADER as i32);
    let config = &held.config;
    let title = format!(
        "{} engines with a cap of {}; {} frontends, of which one is killed (SIGKILL) every {} s",
        config.engines,
        config.cap,
        config.frontends,
        config.kill_every_ms as f64 / 1000.0
    );
    write(&header, (20, 10), 19, &title)?;
    let subtitle = format!(
        "{} clients want {} places all the time. A killed frontend is started again at once.",
        config.clients,
        config.places()
    );
    write(&header, (20, 38), 14, &subtitle)?;
    let legend = |x, colour: RGBColor, text: &str| -> Drawn {
        header.draw(&Rectangle::new([(x, 66), (x + 22, 80)], colour.filled()))?;
        write(&header, (x + 28, 65), 14, &text)
    };
    legend(20, IN_FLIGHT, "requests in flight")?;
    legend(190, LOST, "counted for requests that have ended")?;
    header.draw(&PathElement::new(
        [(480, 80), (480, 66)],
        INK.stroke_width(2),
    ))?;
    write(&header, (488, 65), 14, &"a frontend is killed")?;
    for (run, panel) in held.runs.iter().zip(panels.split_evenly((1, columns))) {
        draw_panel(&panel, held, run)?;
    }
    canvas.present()?;
    Ok(())
}

fn draw_panel(panel: &Canvas<'_>, held: &Held, run: &Run) -> Drawn {
    let places = f64::from(held.config.places());
    let name = match run.strategy {
        Strategy::Shared => "a plain shared counter".to_owned(),
        strategy => strategy.to_string(),
    };
    let title = format!("{name}: {}", run.in_words(&held.config));
    write(panel, (20, 4), 16, &title)?;
    let seconds = (run.end - run.start).as_secs_f64();
    let mut chart = axes(panel, 30, (seconds, places * 1.12), ["seconds", "requests"])?;

    let curves = [
        (run.counted_curve(), LOST),
        (run.in_flight_curve(), IN_FLIGHT),
    ];
    for (mut corners, colour) in curves {
        corners.push((seconds, 0.0));
        chart.draw_series([Polygon::new(corners, colour.filled())])?;
    }
    chart.draw_series([PathElement::new(
        [(0.0, places), (seconds, places)],
        INK.stroke_width(2),
    )])?;
    let cap = font(13).pos(Pos::new(HPos::Right, VPos::Bottom));
    let caps = format!("all caps: {places}");
    chart.draw_series([Text::new(caps, (seconds, places * 1.01), cap)])?;
    for kill in &run.kills {
        let at = kill.saturating_sub(run.start).as_secs_f64();
        let mark = [(at, 0.0), (at, places * 0.06)];
        chart.draw_series([PathElement::new(mark, INK.stroke_width(2))])?;
    }
    Ok(())
}
