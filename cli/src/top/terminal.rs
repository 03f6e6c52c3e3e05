//! The terminal. It is restored at the end, on a panic, on signals, and when its other end is closed.
//!
//! A thread of its own handles signals: the thread that draws may be blocked, and for ever if the terminal has been
//! closed at its other end.

use crate::failure::Failure;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2,
};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io::{IsTerminal, stdin, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The signals that end a process by default and that can be caught.
const FATAL: [i32; 8] = [
    SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
];

/// How often the thread checks for signals.
const ATTENTION: Duration = Duration::from_millis(50);

/// The terminal blocks if a drawing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// A full screen. Dropping it restores the terminal.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: DefaultTerminal,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Locked by the thread that writes to the terminal.
    writing: Mutex<()>,
    /// Whether a signal asks this process to stop until it is resumed.
    stop: AtomicBool,
}

impl Screen {
    pub(crate) fn take() -> Result<Self, Failure> {
        if !stdout().is_terminal() || !stdin().is_terminal() {
            return Err(Failure::usage(
                "top needs a terminal; use `headcount show` or `headcount metrics` elsewhere",
            ));
        }
        // Before the terminal is changed, so that at no moment a signal could leave it changed.
        let failed = |error| lost("catching signals for", &error);
        let signals = Signals::new(FATAL.iter().chain(&[SIGTSTP])).map_err(failed)?;
        let shared = Arc::new(Shared::default());
        let attended = Arc::clone(&shared);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || attend(signals, &attended))
            .map_err(failed)?;
        // With a panic hook that restores it.
        let terminal = ratatui::try_init().map_err(|error| {
            give_back();
            lost("taking", &error)
        })?;
        Ok(Self { terminal, shared })
    }

    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        let _writing = self.shared.write();
        let drawn = self.terminal.draw(picture);
        drawn.map(drop).map_err(|error| lost("drawing on", &error))
    }

    /// Stops this process if a signal has asked for that.
    pub(crate) fn obey(&mut self) -> Result<(), Failure> {
        // Relaxed: the flag publishes no other data.
        if self.shared.stop.swap(false, Ordering::Relaxed) {
            self.stop()
        } else {
            Ok(())
        }
    }

    /// Stops this process, as Ctrl-Z would, and takes the terminal again when it is resumed.
    pub(crate) fn stop(&mut self) -> Result<(), Failure> {
        let writing = self.shared.write();
        give_back();
        emulate_default_handler(SIGTSTP).map_err(|error| lost("stopping on", &error))?;
        let taken = enable_raw_mode()
            .and_then(|()| execute!(stdout(), EnterAlternateScreen))
            .and_then(|()| self.terminal.clear());
        drop(writing);
        taken.map_err(|error| lost("taking", &error))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _writing = self.shared.write();
        // The panic hook has done it already. A second time would overwrite the message of the panic.
        if !thread::panicking() {
            give_back();
        }
    }
}

impl Shared {
    fn write(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the terminal, unless the thread that has locked it is blocked.
    fn write_soon(&self) -> Option<MutexGuard<'_, ()>> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Ok(writing) = self.writing.try_lock() {
                return Some(writing);
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

/// Handles signals until one of them ends this process.
fn attend(mut signals: Signals, shared: &Shared) {
    loop {
        let gone = is_gone().then_some(SIGHUP);
        for signal in gone.into_iter().chain(signals.pending()) {
            if signal == SIGTSTP {
                // Relaxed: the flag publishes no other data.
                shared.stop.store(true, Ordering::Relaxed);
                continue;
            }
            let writing = shared.write_soon();
            match &writing {
                Some(_) => give_back(),
                // A write would block, too.
                None => drop(disable_raw_mode()),
            }
            // Ends the process as the signal would have.
            let _ = emulate_default_handler(signal);
        }
        thread::sleep(ATTENTION);
    }
}

/// Returns whether the terminal was closed at its other end.
fn is_gone() -> bool {
    let input = stdin();
    let mut fds = [PollFd::new(&input, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    poll(&mut fds, Some(&at_once)).is_ok_and(|_| fds[0].revents().intersects(gone))
}

/// Returns the failure of an operation on the terminal.
pub(crate) fn lost(doing: &str, error: &std::io::Error) -> Failure {
    Failure::failed(format!(
        "{doing} the terminal: {error}; use `headcount show` instead"
    ))
}

/// Restores the terminal. Nothing more can be done if that fails.
fn give_back() {
    let _ = execute!(stdout(), Show);
    ratatui::restore();
}

#[cfg(test)]
mod tests;
