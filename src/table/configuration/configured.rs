//! What a table was last configured with, whatever was changed in place since.

use crate::algorithm::primitive::{AtomicU64, Ordering};
use crate::shm::layout::checksum;
use crate::table::engine::Engine;
use crate::table::options::Options;

/// The configuration that a table was created with, or was brought to by the last
/// [`Table::apply`](crate::Table::apply).
///
/// Options fit a table if they are this or what the table has now. So an operator who changes a cap in place
/// does not keep a worker that has the deployment's configuration from starting again.
///
/// All accesses are Relaxed: these words decide only whether a process that opens the table is told of a
/// difference. No request is placed by them.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Configured {
    /// A number that stands for the engines. 0: not known.
    engines: AtomicU64,
    /// The caps of the table, each in the form of [`cap_to_bits`]. 0: not known.
    max_in_flight: AtomicU64,
    max_tokens: AtomicU64,
}

impl Configured {
    /// Another configuration is on its way. A process that dies before it is there leaves none.
    pub(crate) fn begin(&self, options: &Options) {
        if options.names_engines() {
            self.engines.store(0, Ordering::Relaxed);
        }
        self.max_in_flight.store(0, Ordering::Relaxed);
        self.max_tokens.store(0, Ordering::Relaxed);
    }

    /// The table is as these options say.
    pub(crate) fn complete(&self, options: &Options) {
        if options.names_engines() {
            let number = number_of(&options.engines);
            self.engines.store(number, Ordering::Relaxed);
        }
        let caps = options.total_caps();
        let (requests, tokens) = (cap_to_bits(caps.requests), cap_to_bits(caps.tokens));
        self.max_in_flight.store(requests, Ordering::Relaxed);
        self.max_tokens.store(tokens, Ordering::Relaxed);
    }

    pub(crate) fn has_engines(&self, engines: &[Engine]) -> bool {
        self.engines.load(Ordering::Relaxed) == number_of(engines)
    }

    pub(crate) fn has_max_in_flight(&self, cap: Option<u32>) -> bool {
        self.max_in_flight.load(Ordering::Relaxed) == cap_to_bits(cap)
    }

    pub(crate) fn has_max_tokens(&self, cap: Option<u32>) -> bool {
        self.max_tokens.load(Ordering::Relaxed) == cap_to_bits(cap)
    }
}

/// One more than the cap; the greatest number for none.
fn cap_to_bits(cap: Option<u32>) -> u64 {
    cap.map_or(u64::MAX, |cap| u64::from(cap) + 1)
}

/// A number above 0 that differs for engines that differ by name, weight or cap, in any order.
fn number_of(engines: &[Engine]) -> u64 {
    let mut engines: Vec<_> = engines.iter().collect();
    engines.sort_by(|a, b| a.name.cmp(&b.name));
    let mut words = Vec::new();
    for engine in engines {
        words.push(engine.name.len() as u64);
        words.extend(engine.name.bytes().map(u64::from));
        words.push(engine.weight.to_bits().into());
        words.push((u64::from(engine.max_in_flight) << 32) | u64::from(engine.max_tokens));
    }
    checksum(&words).max(1)
}
