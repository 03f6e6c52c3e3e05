//! What a table was last configured with, whatever was changed in place since.
//!
//! Options fit a table if they are this or what the table has now. So an operator who changes a cap in place
//! does not keep a worker that has the deployment's configuration from starting again.
//!
//! All accesses are Relaxed: these words decide only whether a process that opens the table is told of a
//! difference. No request is placed by them.

use crate::algorithm::primitive::Ordering;
use crate::shm::layout::checksum;
use crate::shm::layout::control::{Configured, cap_to_bits};
use crate::table::engine::Engine;
use crate::table::options::Options;

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
            let fingerprint = fingerprint(&options.engines);
            self.engines.store(fingerprint, Ordering::Relaxed);
        }
        let caps = options.total_caps();
        let (requests, tokens) = (cap_to_bits(caps.requests), cap_to_bits(caps.tokens));
        self.max_in_flight.store(requests, Ordering::Relaxed);
        self.max_tokens.store(tokens, Ordering::Relaxed);
    }

    pub(crate) fn has_engines(&self, engines: &[Engine]) -> bool {
        self.engines.load(Ordering::Relaxed) == fingerprint(engines)
    }

    pub(crate) fn has_max_in_flight(&self, cap: Option<u32>) -> bool {
        self.max_in_flight.load(Ordering::Relaxed) == cap_to_bits(cap)
    }

    pub(crate) fn has_max_tokens(&self, cap: Option<u32>) -> bool {
        self.max_tokens.load(Ordering::Relaxed) == cap_to_bits(cap)
    }
}

/// Returns an FNV-1a fingerprint of names, weights and caps, in any order of the engines; not 0. Two configurations may
/// have the same.
fn fingerprint(engines: &[Engine]) -> u64 {
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
