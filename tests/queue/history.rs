//! What all processes have written down, as requests.

use crate::record::{Event, What};

/// A request, from when it wanted a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) process: usize,
    pub(crate) class: u8,
    pub(crate) begins: u64,
    /// When it had a place for certain.
    pub(crate) holds: Option<u64>,
    /// When it was about to finish, or had given up, or its process was about to be killed.
    pub(crate) ends: u64,
    /// Whether it ends by the death of its process, or with all.
    pub(crate) is_cut: bool,
}

impl Wanted {
    /// Until when it waited.
    pub(crate) fn waits_until(&self) -> u64 {
        self.holds.unwrap_or(self.ends)
    }
}

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    events: Vec<Event>,
    /// From when to when it was stopped.
    pub(crate) stops: Vec<(u64, u64)>,
    /// When it was about to be killed, or when all was over.
    end: u64,
    /// From when to when a thread could run and did not.
    late: Vec<(u64, u64)>,
}

impl Process {
    pub(crate) fn new(events: Vec<Event>, mut stops: Vec<(u64, u64)>, end: u64) -> Self {
        stops.iter_mut().for_each(|(_, to)| *to = (*to).min(end));
        let late = events.iter().filter_map(|(_, time, what)| match what {
            What::Late(over) => Some((time - over, *time)),
            _ => None,
        });
        Self {
            late: late.collect(),
            events,
            stops,
            end,
        }
    }

    /// The longest for which a thread of it could run and did not, that touches this time.
    pub(crate) fn lateness(&self, from: u64, to: u64) -> u64 {
        let touches = self
            .late
            .iter()
            .filter(|late| late.0 <= to && late.1 >= from);
        touches.map(|late| late.1 - late.0).max().unwrap_or(0)
    }

    /// Whether it was killed in this time, or all was over.
    pub(crate) fn is_killed(&self, from: u64, to: u64) -> bool {
        (from..=to).contains(&self.end)
    }

    /// Whether it was stopped at some moment of this time.
    pub(crate) fn is_stopped(&self, from: u64, to: u64) -> bool {
        self.stops.iter().any(|stop| stop.0 <= to && stop.1 >= from)
    }
}

/// All that was written down.
pub(crate) struct History {
    pub(crate) processes: Vec<Process>,
    /// By their begins.
    pub(crate) requests: Vec<Wanted>,
    /// How many were told what they must not be told.
    pub(crate) failed: usize,
}

impl History {
    pub(crate) fn new(processes: Vec<Process>) -> Self {
        let mut requests = Vec::new();
        let mut failed = 0;
        for (number, process) in processes.iter().enumerate() {
            let mut current: [Option<Wanted>; 4] = [None; 4];
            for &(thread, time, what) in &process.events {
                // What a process does after the end is not judged: all of them stop then.
                let time = time.min(process.end);
                let request = &mut current[thread];
                match what {
                    What::Begins(class) => {
                        *request = Some(Wanted {
                            process: number,
                            class,
                            begins: time,
                            holds: None,
                            ends: process.end,
                            is_cut: true,
                        });
                    }
                    What::Holds => request.iter_mut().for_each(|r| r.holds = Some(time)),
                    What::Finishes | What::GivesUp => {
                        let is_cut = false;
                        let ended = |r| Wanted {
                            ends: time,
                            is_cut,
                            ..r
                        };
                        requests.extend(request.take().map(ended));
                    }
                    What::Fails => {
                        failed += 1;
                        *request = None;
                    }
                    What::Late(_) => {}
                }
            }
            requests.extend(current.into_iter().flatten());
        }
        requests.sort_unstable_by_key(|request| request.begins);
        Self {
            processes,
            requests,
            failed,
        }
    }
}

impl History {
    /// The longest for which a thread of any process could run and did not, that touches this time.
    pub(crate) fn lateness(&self, from: u64, to: u64) -> u64 {
        let of_each = self
            .processes
            .iter()
            .map(|process| process.lateness(from, to));
        of_each.max().unwrap_or(0)
    }

    /// Whether any process was stopped or killed in this time, or did not run for so long.
    pub(crate) fn is_any_held_up(&self, from: u64, to: u64, least: u64) -> bool {
        (self.processes.iter()).any(|process| {
            process.is_stopped(from, to)
                || process.is_killed(from, to)
                || process.lateness(from, to) >= least
        })
    }
}
