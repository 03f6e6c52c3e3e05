//! The terminal, taken and given back as it was: at the end, on a panic, on signals, and when it goes
//! away.
//!
//! Signals have a thread of their own: the one that draws may be held up, for good if the terminal has
//! been closed at its other end.

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

/// Those that end a process which does nothing about them, and that it can do something about.
const FATAL: [i32; 8] = [
    SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
];

/// Signals are looked for this often.
const ATTENTION: Duration = Duration::from_millis(50);

/// A drawing that is not done after this time is held up by the terminal.
const PATIENCE: Duration = Duration::from_secs(1);

/// A full screen. Dropping it gives the terminal back.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: DefaultTerminal,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Held by whoever writes to the terminal.
    writing: Mutex<()>,
    /// Somebody wants this process to stop until it is resumed.
    stop: AtomicBool,
}

impl Screen {
    pub(crate) fn take() -> Result<Self, Failure> {
        if !stdout().is_terminal() || !stdin().is_terminal() {
            return Err(Failure::usage(
                "top needs a terminal; use `headcount show` or `headcount metrics` elsewhere",
            ));
        }
        // Before the terminal is changed, so that there is no moment at which a signal could leave
        // it so.
        let failed = |error| lost("catching signals for", &error);
        let signals = Signals::new(FATAL.iter().chain(&[SIGTSTP])).map_err(failed)?;
        let shared = Arc::new(Shared::default());
        let attended = Arc::clone(&shared);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || attend(signals, &attended))
            .map_err(failed)?;
        // With a panic hook that gives it back.
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

    /// Stops this process if a signal has asked for it.
    pub(crate) fn obey(&mut self) -> Result<(), Failure> {
        // Relaxed: nothing else is said by it.
        match self.shared.stop.swap(false, Ordering::Relaxed) {
            true => self.stop(),
            false => Ok(()),
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
        // Doing it twice would put what follows over what a panic has said.
        if !thread::panicking() {
            give_back();
        }
    }
}

impl Shared {
    fn write(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to write, unless the one who has it is held up.
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

/// Does what signals ask for, until one of them ends this process.
fn attend(mut signals: Signals, shared: &Shared) {
    loop {
        let gone = is_gone().then_some(SIGHUP);
        for signal in gone.into_iter().chain(signals.pending()) {
            if signal == SIGTSTP {
                // Relaxed: nothing else is said by it.
                shared.stop.store(true, Ordering::Relaxed);
                continue;
            }
            let writing = shared.write_soon();
            match &writing {
                Some(_) => give_back(),
                // What is written now would wait, too.
                None => drop(disable_raw_mode()),
            }
            // Ends the process as the signal would have.
            let _ = emulate_default_handler(signal);
        }
        thread::sleep(ATTENTION);
    }
}

/// Whether the terminal was closed at its other end.
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

/// What to say when the terminal does not do what it is asked.
pub(crate) fn lost(doing: &str, error: &std::io::Error) -> Failure {
    Failure::failed(format!(
        "{doing} the terminal: {error}; use `headcount show` instead"
    ))
}

/// Nothing more can be done for a terminal that does not take it.
fn give_back() {
    let _ = execute!(stdout(), Show);
    ratatui::restore();
}

#[cfg(test)]
mod tests;
