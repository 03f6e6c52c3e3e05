//! What the last publication says.

use super::{Fault, FaultKind, Look, Verification, steady};
use crate::algorithm::seqlatch::Unread;
use crate::publication::record::{self, Reading, is_share};
use crate::table::Table;

impl Table {
    pub(super) fn verify_publication(&self, found: &mut Verification) {
        let look = steady(|| self.look_at_publication());
        found.note(|| "the last publication".to_owned(), look);
    }

    fn look_at_publication(&self) -> Look<Fault> {
        let max_engines = self.header().geometry.max_engines;
        let wrong = |at: String, found: String, expected: String| {
            Some(Fault::new(FaultKind::Publication, at, found, expected))
        };
        let look = |reading: Reading<'_>| {
            let (rows, arrivals) = (reading.rows(), reading.arrivals());
            let at = || "the last publication".to_owned();
            if rows > max_engines {
                let found = format!("statistics of {rows} engines");
                return wrong(at(), found, format!("of at most {max_engines}"));
            }
            // Its publisher had seen so many, so they are there by now.
            let there = self.engines().arrivals();
            if arrivals > there {
                let found = format!("made after {arrivals} engines were put into slots");
                return wrong(at(), found, format!("after at most {there}"));
            }
            (0..rows).find_map(|engine| {
                let share = reading.packed(engine).stored_kv_usage();
                if is_share(share) {
                    return None;
                }
                let at = format!("the statistics of engine {engine}");
                wrong(at, format!("a KV usage of {share}"), "from 0 to 1".into())
            })
        };
        let read = record::read(self.mapping().latch(), look);
        match read {
            Ok(None) | Err(Unread::Empty) => Look::Fine,
            Ok(Some(fault)) => Look::Wrong(fault),
            Err(Unread::Overtaken) => Look::Moved,
        }
    }
}
