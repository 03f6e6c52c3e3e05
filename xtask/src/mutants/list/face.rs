//! The choice, the file, and what users see.

use super::{Catcher, Mutant, fault};

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "ties go to the engine of the lowest number",
        "src/algorithm/scan/mod.rs",
        &[(
            "| i64::from(turn as u32)",
            "| i64::from(turn as u32 % 4096)",
        )],
        Catcher::Test("counting", "c7_"),
    ),
    fault(
        "ties go to the next engine in number",
        "src/frontend/choose/tie_break.rs",
        &[(
            "        self.chosen.as_flattened_mut()[engine] = number(self.turn, engine);",
            "        let n = self.chosen.as_flattened().len(); for i in 1..=n { let e = (engine + i) % n; self.chosen.as_flattened_mut()[e] = number(self.turn + i as u32, e); }",
        )],
        Catcher::Unit("c7_"),
    ),
    fault(
        "a closed engine is chosen for its count",
        "src/algorithm/word/row.rs",
        &[(
            "pub(crate) const MOST_RANK: i32 = (-1 << VALUE_BITS) - 2;",
            "pub(crate) const MOST_RANK: i32 = i32::MAX;",
        )],
        Catcher::Unit("an_occupancy"),
    ),
    fault(
        "counts are compared where weights differ",
        "src/algorithm/terms.rs",
        &[(
            "by_counts &= term.is_of_counts() && term.weight == weight;",
            "by_counts &= term.is_of_counts() || term.weight == weight;",
        )],
        Catcher::Test("policies", "a_plain_route"),
    ),
    fault(
        "pressure does not count",
        "src/publication/record.rs",
        &[(
            "(stats.iter()).any(|s| s.waiting > 0 && s.pressure() > 0.0)",
            "(stats.iter()).any(|s| s.waiting > 0 && s.pressure() > 10.0)",
        )],
        Catcher::Test("policies", "a_plain_route"),
    ),
    fault(
        "a floor that the snapshot can lower",
        "src/algorithm/scan/mod.rs",
        &[(
            "lanes.greater(lanes.float(lanes.next(in_flight)), terms.floor())",
            "terms.floor()",
        )],
        Catcher::Test("publishing", "s3_"),
    ),
    fault(
        "old news counts",
        "src/frontend/choose/load.rs",
        &[("(age < limit).then(", "(age < limit.max(u64::MAX)).then(")],
        Catcher::Test("publishing", "s4_"),
    ),
    fault(
        "statistics stick to a slot",
        "src/publication/record.rs",
        &[(
            "        if !origin.is_of(engines.generation(engine)) {",
            "        if !origin.is_of(engines.generation(engine)) && engine > usize::MAX - 1 {",
        )],
        Catcher::Test("publishing", "statistics_of_an_engine"),
    ),
    fault(
        "an engine's count is forgotten when its state changes",
        "src/algorithm/word/row.rs",
        &[(
            "Self::pack(self.value().into(), state, NO_LANE, tag)",
            "Self::pack(u64::from(self.value() / u32::MAX), state, NO_LANE, tag)",
        )],
        Catcher::Test("counting", "c8_"),
    ),
    fault(
        "locks are those of the process, not of the open file",
        "src/shm/lock.rs",
        &[(
            "ofd(self.fd.as_fd(), libc::F_OFD_SETLK, libc::F_WRLCK, range)",
            "ofd(self.fd.as_fd(), libc::F_SETLK, libc::F_WRLCK, range)",
        )],
        Catcher::Test("crashes", "k"),
    ),
    fault(
        "a child keeps its parent's locked files",
        "src/shm/fork.rs",
        &[(
            "    entries().for_each(|entry| entry.close_unless_of(own));",
            "    let _ = (own, Entry::close_unless_of);",
        )],
        Catcher::Test("forks", "k3_a_child_has_none_of_its_parents_lock_files"),
    ),
    fault(
        "a child takes itself for its parent",
        "src/shm/fork.rs",
        &[(
            "self.process.token.load(Ordering::Relaxed) == self.own",
            "self.process.token.load(Ordering::Relaxed) != self.own + 1000",
        )],
        Catcher::Test("crashes", "k3_a_child_never"),
    ),
    fault(
        "a table is named before it is finished",
        "src/shm/open.rs",
        &[
            (
                "        let table = Self::finish(file, path, header, fill)?;
        let unnamed = format!(\"/proc/thread-self/fd/{}\", table.file.as_raw_fd());",
                "        let unnamed = format!(\"/proc/thread-self/fd/{}\", file.as_raw_fd());",
            ),
            (
                "            Ok(()) => table.at(path),",
                "            Ok(()) => Self::finish(file, path, header, fill),",
            ),
        ],
        Catcher::Test("file", "f1_"),
    ),
    fault(
        "memory is not reserved",
        "src/shm/open.rs",
        &[(
            "rustix::fs::fallocate(file, none, start as u64, length))",
            "rustix::fs::ftruncate(file, start as u64 + length).map(|()| drop(none)))",
        )],
        Catcher::Test("file", "f3_"),
    ),
];
