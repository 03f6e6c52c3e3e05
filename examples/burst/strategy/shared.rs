//! One counter an engine in shared memory, which all frontends add to and subtract from: what nginx keeps of an
//! upstream with `zone`, `least_conn` and `max_conns`. Exact until a process is killed: no
//! other process knows how much to subtract for it.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::MmapRaw;

use super::{Choose, Seat, least_loaded};
use crate::error::Error;
use crate::wire::{Request, Stats};

/// The counters, mapped.
#[derive(Debug)]
pub(crate) struct Counters {
    map: MmapRaw,
    engines: usize,
}

#[derive(Debug)]
pub(super) struct Shared {
    counters: Counters,
    cap: u32,
    scan_start: usize,
}

impl Counters {
    /// Maps the counters at this path, and creates them if they are not there.
    pub(crate) fn open(path: &Path, engines: usize) -> Result<Self, Error> {
        let open = || -> io::Result<MmapRaw> {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            file.set_len((engines * size_of::<AtomicU32>()) as u64)?;
            MmapRaw::map_raw(&file)
        };
        let map = open().map_err(|source| Error::System {
            what: format!("map {}", path.display()),
            source,
        })?;
        Ok(Self { map, engines })
    }

    /// What all engines have in flight by these counters.
    pub(crate) fn sum(&self) -> u64 {
        (0..self.engines)
            .map(|engine| u64::from(self.of(engine).load(Ordering::Relaxed)))
            .sum()
    }

    fn of(&self, engine: usize) -> &AtomicU32 {
        assert!(engine < self.engines);
        let counter = self.map.as_mut_ptr().cast::<u32>().wrapping_add(engine);
        // SAFETY: the counter lies within the map, which begins at a page and lives as long as the reference; no
        // process touches it other than atomically.
        unsafe { AtomicU32::from_ptr(counter) }
    }
}

impl Shared {
    pub(super) fn open(path: &Path, seat: Seat) -> Result<Self, Error> {
        Ok(Self {
            counters: Counters::open(path, seat.engines)?,
            cap: seat.cap.unwrap_or(u32::MAX),
            scan_start: seat.scan_start(),
        })
    }
}

impl Choose for Shared {
    fn choose(&mut self, _: &Request) -> Result<Option<usize>, Error> {
        let engines = self.counters.engines;
        let start = self.scan_start;
        self.scan_start = (start + 1) % engines;
        loop {
            let loads: Vec<_> = (0..engines)
                .map(|engine| self.counters.of(engine).load(Ordering::Relaxed))
                .collect();
            let engine = least_loaded(engines, start, |engine| f64::from(loads[engine]));
            let load = loads[engine];
            if load >= self.cap {
                return Ok(None);
            }
            // Only if the count is still the one that was compared. So this cap is exact, too.
            let counted = self.counters.of(engine).compare_exchange(
                load,
                load + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if counted.is_ok() {
                return Ok(Some(engine));
            }
        }
    }

    fn finished(&mut self, _: u64, engine: usize) {
        self.counters.of(engine).fetch_sub(1, Ordering::Relaxed);
    }

    fn broadcast(&mut self, _: &[Stats]) -> Result<(), Error> {
        Ok(())
    }
}
