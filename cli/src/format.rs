//! Numbers, durations and bars in few characters.

use std::time::Duration;

/// Formats a number in at most five characters, exactly below 100,000.
pub(crate) fn short(number: u64) -> String {
    if number < 100_000 {
        return number.to_string();
    }
    let mut scaled = number as f64;
    for unit in ["k", "M", "G", "T", "P", "E"] {
        scaled /= 1000.0;
        // What would be rounded up to four digits belongs to the next unit.
        if scaled < 999.5 {
            let digits = match scaled {
                s if s < 9.995 => 2,
                s if s < 99.95 => 1,
                _ => 0,
            };
            return format!("{scaled:.digits$}{unit}");
        }
    }
    "huge".to_owned()
}

/// Formats a number of things, given the name of one.
pub(crate) fn count(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

/// Formats a rate per second in at most five characters.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        r if r < 99.95 => format!("{r:.1}"),
        r => short(r.round() as u64),
    }
}

/// Formats a weight in at most six characters, exactly where they suffice.
pub(crate) fn weight(weight: f32) -> String {
    let exact = weight.to_string();
    match exact.len() {
        0..=6 => exact,
        _ if (0.01..1e4).contains(&weight) => {
            let digits = match weight {
                w if w < 10.0 => 3,
                w if w < 100.0 => 2,
                w if w < 1000.0 => 1,
                _ => 0,
            };
            format!("{weight:.digits$}")
        }
        _ => format!("{weight:.0e}"),
    }
}

/// Formats a difference of loads, which is whole unless engines have weights.
pub(crate) fn load(load: f64) -> String {
    if (load - load.round()).abs() < 0.05 {
        short(load.round() as u64)
    } else {
        format!("{load:.1}")
    }
}

/// Formats an age in at most two units.
pub(crate) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", age.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        3600..86400 => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {:02} h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// Formats how long a request has waited, in at most two units: exactly to the millisecond below a second.
pub(crate) fn wait(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1.0 => format!("{} ms", (s * 1e4).round() / 10.0),
        s if s < 10.0 => format!("{} s", (s * 10.0).round() / 10.0),
        _ => age(time),
    }
}

/// Formats bytes, roughly.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        b if b < 1 << 10 => format!("{b} B"),
        b if b < 1 << 20 => format!("{} KiB", b >> 10),
        b => format!("{} MiB", b >> 20),
    }
}

const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Draws a bar of `width` characters, filled from the left. Whatever is above 0 shows.
pub(crate) fn bar(fullness: f64, width: usize) -> String {
    let most = width * 8;
    let mut eighths = (fullness.clamp(0.0, 1.0) * most as f64).round() as usize;
    if fullness > 0.0 {
        eighths = eighths.max(1);
    }
    let full = eighths / 8;
    let mut bar = "█".repeat(full);
    if full < width {
        bar.push(EIGHTHS[eighths % 8]);
        bar.extend(std::iter::repeat_n(' ', width - full - 1));
    }
    bar
}

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws a line of small columns, each from 0 to `most`. `None` where nothing is known.
pub(crate) fn sparkline(values: &[Option<f64>], most: f64) -> String {
    let column = |value: &Option<f64>| match value {
        None => ' ',
        Some(value) if most > 0.0 => {
            let level = (value / most * 7.0).round().clamp(0.0, 7.0);
            LEVELS[level as usize]
        }
        Some(_) => LEVELS[0],
    };
    values.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_short_and_are_exact_while_they_can() {
        let pairs = [
            (0, "0"),
            (99_999, "99999"),
            (100_000, "100k"),
            (999_499, "999k"),
            (999_500, "1.00M"),
            (1_048_575, "1.05M"),
            (12_345_678, "12.3M"),
            (u64::MAX, "18.4E"),
        ];
        for (number, text) in pairs {
            assert_eq!(short(number), text);
        }
        for exponent in 0..64 {
            for number in [1_u64 << exponent, (1 << exponent) - 1] {
                assert!(short(number).len() <= 5, "{number}");
                assert!(rate(number as f64).len() <= 5, "{number}");
            }
        }
    }

    #[test]
    fn weights_stay_short() {
        let pairs = [
            (1.0, "1"),
            (0.5, "0.5"),
            (2.25, "2.25"),
            (1.0 / 3.0, "0.333"),
            (1234.567, "1235"),
            (12_345.0, "12345"),
            (1e-6, "1e-6"),
            (1e30, "1e30"),
        ];
        for (number, text) in pairs {
            assert_eq!(weight(number), text);
        }
        for exponent in -37..=38 {
            let said = weight(1.234_567 * 10_f32.powi(exponent));
            assert!(said.len() <= 6, "{said}");
        }
    }

    #[test]
    fn a_bar_is_as_wide_as_asked_and_shows_the_least() {
        for width in 1..12 {
            for n in 0..=100 {
                assert_eq!(bar(f64::from(n) / 100.0, width).chars().count(), width);
            }
        }
        assert_eq!(bar(0.0, 3), "   ");
        assert_eq!(bar(0.0001, 3), "▏  ");
        assert_eq!(bar(0.5, 3), "█▌ ");
        assert_eq!(bar(1.0, 3), "███");
        assert_eq!(bar(0.5, 0), "");
    }

    #[test]
    fn a_sparkline_distinguishes_zero_from_unknown() {
        let values = [None, Some(0.0), Some(5.0), Some(10.0)];
        assert_eq!(sparkline(&values, 10.0), " ▁▅█");
        assert_eq!(sparkline(&[Some(0.0)], 0.0), "▁");
    }

    #[test]
    fn waits_are_exact_where_they_are_short() {
        let said = |milliseconds: f64| wait(Duration::from_secs_f64(milliseconds / 1e3));
        let waits = [0.0, 1.0, 2.5, 999.0, 1000.0, 2500.0, 60_000.0];
        assert_eq!(
            waits.map(said),
            [
                "0 ms",
                "1 ms",
                "2.5 ms",
                "999 ms",
                "1 s",
                "2.5 s",
                "1 min 00 s"
            ]
        );
    }

    #[test]
    fn ages_are_in_two_units() {
        let said = |seconds| age(Duration::from_secs(seconds));
        assert_eq!(age(Duration::from_millis(120)), "0.1 s");
        assert_eq!(
            [said(12), said(125), said(7260), said(180_000)],
            ["12 s", "2 min 05 s", "2 h 01 min", "2 d 02 h"]
        );
    }
}
