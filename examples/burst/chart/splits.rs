//! How each burst was split: each engine's share above or below the even one, a panel for each strategy.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Canvas, Drawn, FAINT, INK, font, write};
use crate::report::{Report, Round, StrategyResult};

const WIDTH: u32 = 900;
const HEADER: u32 = 62;
const PANEL_HEIGHT: u32 = 250;
/// Bursts that are shown.
const MOST_ROUNDS: usize = 3;

const ABOVE: RGBColor = RGBColor(213, 94, 0);
const BELOW: RGBColor = RGBColor(86, 180, 233);

pub(super) fn draw(path: &Path, report: &Report) -> Drawn {
    let columns = match report.results.len() {
        results @ ..=3 => results,
        _ => 2,
    };
    let rows = report.results.len().div_ceil(columns);
    let size = (WIDTH, HEADER + PANEL_HEIGHT * rows as u32);
    let canvas = SVGBackend::new(path, size).into_drawing_area();
    canvas.fill(&WHITE)?;
    let (header, panels) = canvas.split_vertically(HEADER as i32);
    let config = &report.config;
    let title = format!("Bursts of {} requests, {}", config.requests, config.way());
    let subtitle = format!(
        "Sent to each engine, above or below the even share of {}. Below each burst: its batch, padded to a \
         CUDA-graph size.",
        config.even_share()
    );
    write(&header, (20, 10), 20, &title)?;
    write(&header, (20, 38), 14, &subtitle)?;
    let highest = report.results.iter().map(most).max().unwrap_or(0);
    for (result, panel) in report
        .results
        .iter()
        .zip(panels.split_evenly((rows, columns)))
    {
        draw_panel(&panel, report, result, f64::from(highest.max(2)))?;
    }
    canvas.present()?;
    Ok(())
}

/// The bars of a strategy, a group for each burst.
fn draw_panel(panel: &Canvas<'_>, report: &Report, result: &StrategyResult, highest: f64) -> Drawn {
    let even = f64::from(report.config.even_share());
    let rounds = &result.rounds[..result.rounds.len().min(MOST_ROUNDS)];
    let engines = report.config.engines as usize;
    write(panel, (20, 8), 18, &result.strategy)?;

    // A gap of one bar before each group and after the last one.
    let width = (rounds.len() * (engines + 1) + 1) as f64;
    let mut chart = ChartBuilder::on(panel)
        .margin(14)
        .margin_top(34)
        .build_cartesian_2d(0.0..width, -(highest + 1.7)..highest + 0.9)?;
    chart.draw_series([PathElement::new([(0.0, 0.0), (width, 0.0)], INK)])?;
    let centred = |y| Pos::new(HPos::Center, y);
    for (round, number) in rounds.iter().zip(0..) {
        let first = (number * (engines + 1) + 1) as f64;
        for (&sent, engine) in round.per_engine.iter().zip(0..) {
            let (left, off) = (first + f64::from(engine), f64::from(sent) - even);
            let colour = match off {
                off if off > 0.0 => ABOVE,
                off if off < 0.0 => BELOW,
                _ => INK,
            };
            let shown = if off == 0.0 { 0.06 } else { off };
            let bar = [(left + 0.1, shown.min(0.0)), (left + 0.9, shown.max(0.0))];
            chart.draw_series([Rectangle::new(bar, colour.filled())])?;
            if engines <= 8 {
                let place = if off < 0.0 { VPos::Top } else { VPos::Bottom };
                let label = font(13).pos(centred(place));
                let at = (left + 0.5, shown + 0.06 * off.signum());
                chart.draw_series([Text::new(sent.to_string(), at, label)])?;
            }
        }
        let middle = first + engines as f64 / 2.0;
        let foot = font(12).pos(centred(VPos::Bottom));
        let padded = padding(round);
        chart.draw_series([Text::new(padded, (middle, -(highest + 1.6)), foot)])?;
    }
    chart.draw_series([PathElement::new(
        [(0.0, -(highest + 1.0)), (width, -(highest + 1.0))],
        FAINT,
    )])?;
    Ok(())
}

fn padding(round: &Round) -> String {
    match round.padding_cost_percent {
        Some(cost) if cost > 0.0 => format!("{}, +{cost:.1} %", round.padded_batch),
        _ => round.padded_batch.to_string(),
    }
}

/// The most that a share was off the even one.
fn most(result: &StrategyResult) -> u32 {
    let rounds = &result.rounds[..result.rounds.len().min(MOST_ROUNDS)];
    let shares = rounds.iter().flat_map(|round| &round.per_engine);
    let (least, largest) = shares.fold((u32::MAX, 0), |(least, largest), &share| {
        (share.min(least), share.max(largest))
    });
    let even: u32 = rounds.first().map_or(0, |round| {
        round.per_engine.iter().sum::<u32>() / round.per_engine.len() as u32
    });
    (largest.saturating_sub(even)).max(even.saturating_sub(least))
}
