//! The parts that the charts share: colours, letters and axes.

use crate::Drawn;
use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

pub(crate) type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(crate) const WIDTH: u32 = 1200;
pub(crate) const INK: RGBColor = RGBColor(34, 34, 34);
pub(crate) const FAINT: RGBColor = RGBColor(232, 232, 232);
pub(crate) const GREY: RGBColor = RGBColor(150, 150, 150);

/// Told apart with any colour vision (Okabe and Ito, Color Universal Design, 2008).
pub(crate) const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

/// The height of a title and the line below it.
pub(crate) const HEADER: u32 = 80;

/// A white canvas with a title and a line below it; `draw` gets what is below these.
pub(crate) fn picture(
    path: &Path,
    height: u32,
    title: &str,
    subtitle: &str,
    draw: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> Drawn {
    let canvas = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    canvas.fill(&WHITE)?;
    let (header, body) = canvas.split_vertically(HEADER);
    write(&header, (24, 14), 23, title)?;
    write(&header, (24, 46), 15, subtitle)?;
    draw(&body)?;
    canvas.present()?;
    Ok(())
}

pub(crate) fn write(on: &Canvas<'_>, at: (i32, i32), size: u32, what: &str) -> Drawn {
    on.draw(&Text::new(what.to_owned(), at, font(size, HPos::Left)))?;
    Ok(())
}

pub(crate) fn write_to_the_left(on: &Canvas<'_>, at: (i32, i32), size: u32, what: &str) -> Drawn {
    on.draw(&Text::new(what.to_owned(), at, font(size, HPos::Right)))?;
    Ok(())
}

pub(crate) fn font(size: u32, horizontal: HPos) -> TextStyle<'static> {
    let anchor = Pos::new(horizontal, VPos::Top);
    ("sans-serif", size).into_font().color(&INK).pos(anchor)
}

/// Axes below a heading that is so high, with the letters and lines that all charts have.
pub(crate) fn axes<'a, 'b>(
    panel: &'a Canvas<'b>,
    top: i32,
) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut axes = ChartBuilder::on(panel);
    axes.margin(14).margin_right(28).margin_top(top);
    axes.x_label_area_size(40).y_label_area_size(64);
    axes
}

/// The grid and the letters of a chart. Upright are nanoseconds.
pub(crate) fn grid<X: Ranged, Y: Ranged<ValueType = f64>>(
    mesh: &mut MeshStyle<'_, '_, X, Y, SVGBackend<'_>>,
    what: &str,
) {
    mesh.light_line_style(TRANSPARENT).bold_line_style(FAINT);
    mesh.axis_style(INK).label_style(font(13, HPos::Left));
    mesh.axis_desc_style(font(14, HPos::Left)).x_desc(what);
}

/// A key: coloured strokes with what they stand for, so far apart.
pub(crate) fn legend<'a>(
    on: &Canvas<'_>,
    (mut x, y): (i32, i32),
    step: i32,
    entries: impl IntoIterator<Item = (RGBColor, &'a str)>,
) -> Drawn {
    for (colour, name) in entries {
        on.draw(&PathElement::new(
            [(x, y), (x + 26, y)],
            colour.stroke_width(3),
        ))?;
        write(on, (x + 34, y - 8), 14, name)?;
        x += step;
    }
    Ok(())
}

/// Nanoseconds, as one says them.
pub(crate) fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 99.95 => format!("{ns:.1} ns"),
        ns if ns < 9_999.5 => format!("{ns:.0} ns"),
        ns if ns < 999_500.0 => format!("{:.0} \u{b5}s", ns / 1e3),
        ns if ns < 999.5e6 => format!("{:.0} ms", ns / 1e6),
        ns => format!("{:.1} s", ns / 1e9),
    }
}

/// A power of ten of nanoseconds on an axis.
pub(crate) fn tick(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.0} \u{b5}s", ns / 1e3),
        ns if ns < 1e9 => format!("{:.0} ms", ns / 1e6),
        ns => format!("{:.0} s", ns / 1e9),
    }
}
