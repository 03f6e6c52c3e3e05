//! Columns of text, aligned.

use std::fmt::{self, Display, Formatter};

/// Rows of cells, the heading first. The first column is aligned to the left, all others to the
/// right.
#[derive(Debug)]
pub(crate) struct Grid {
    rows: Vec<Vec<String>>,
}

const GAP: &str = "   ";

impl Grid {
    pub(crate) fn new<const COLUMNS: usize>(heading: [&str; COLUMNS]) -> Self {
        Self {
            rows: vec![heading.map(str::to_owned).to_vec()],
        }
    }

    pub(crate) fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.to_vec());
    }

    fn width(&self, column: usize) -> usize {
        self.rows
            .iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    }
}

impl Display for Grid {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let widths: Vec<_> = (0..self.rows[0].len())
            .map(|column| self.width(column))
            .collect();
        for (row, number) in self.rows.iter().zip(0..) {
            write!(f, "{:<1$}", row[0], widths[0])?;
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                write!(f, "{GAP}{cell:>width$}")?;
            }
            writeln!(f)?;
            if number == 0 {
                let rules: Vec<_> = widths.iter().map(|&width| "-".repeat(width)).collect();
                writeln!(f, "{}", rules.join(GAP))?;
            }
        }
        Ok(())
    }
}
