//! How far the run is, on standard error.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Between two lines, where there is no terminal to draw a bar on.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// A bar on a terminal, elsewhere a line now and then.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    done: u64,
    total: u64,
    last_line: Instant,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{msg:34} {bar:20} {pos} of {len} answered");
            ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self {
            bar,
            done: 0,
            total: 0,
            last_line: Instant::now(),
        }
    }

    /// A new part of the run begins.
    pub(crate) fn begin(&mut self, part: String, requests: u64) {
        (self.done, self.total) = (0, requests);
        match &self.bar {
            Some(bar) => {
                bar.set_length(requests);
                bar.set_position(0);
                bar.set_message(part);
            }
            None => {
                eprintln!("{part}: {requests} requests");
                self.last_line = Instant::now();
            }
        }
    }

    pub(crate) fn advance(&mut self, requests: u64) {
        self.done += requests;
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        } else if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            eprintln!("  {} of {} answered", self.done, self.total);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
