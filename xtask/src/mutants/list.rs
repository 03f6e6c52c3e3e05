//! The faults, and what has to catch each.

use std::fmt;

/// A fault.
#[derive(Debug)]
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    /// What is replaced by what; each stands in the file exactly once.
    pub(crate) edits: &'static [(&'static str, &'static str)],
    /// Whether tags have two bits, so that they come round within a model.
    pub(crate) narrow_tags: bool,
    pub(crate) catcher: Catcher,
    /// Why nothing has to catch it, if nothing has.
    pub(crate) harmless: Option<&'static str>,
}

/// What catches a fault: the tests whose name contains the last word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Catcher {
    Model(&'static str),
    Unit(&'static str),
    Test(&'static str, &'static str),
}

impl fmt::Display for Catcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(name) => write!(f, "the model {name}"),
            Self::Unit(name) => write!(f, "the unit test {name}"),
            Self::Test(suite, name) => write!(f, "{suite}::{name}"),
        }
    }
}

const COUNTER: &str = "src/algorithm/counter.rs";
const LATCH: &str = "src/algorithm/latch.rs";
const PLACE: &str = "src/algorithm/place.rs";
const HOLD: &str = "src/algorithm/hold.rs";
const REGISTRY: &str = "src/algorithm/registry.rs";

const fn fault(
    name: &'static str,
    file: &'static str,
    edits: &'static [(&'static str, &'static str)],
    catcher: Catcher,
) -> Mutant {
    Mutant {
        name,
        file,
        edits,
        narrow_tags: false,
        catcher,
        harmless: None,
    }
}

impl Mutant {
    const fn with_narrow_tags(mut self) -> Self {
        self.narrow_tags = true;
        self
    }

    const fn harmless(mut self, why: &'static str) -> Self {
        self.harmless = Some(why);
        self
    }
}

/// Why an ordering between one holder of a lock and the next cannot be missed.
const A_LOCK_ORDERS: &str = "whoever acts on it holds the lock, and a lock orders what was done under it; the \
                             ordering is there so that nothing rests on the kernel's lock being a barrier";

pub(crate) const MUTANTS: &[Mutant] = &[
    // -- The counter -----------------------------------------------------------------------------
    fault(
        "the help is left out",
        COUNTER,
        &[(
            "lane.confirmed.fetch_max(operation, Ordering::Relaxed);",
            "let _ = (&lane.confirmed, operation);",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the tokens of others are not brought up to date",
        COUNTER,
        &[(
            "                    self.advance_tokens(row, tokens_before, change);
                }
                // Relaxed: made visible",
            "                    let _ = tokens_before;
                }
                // Relaxed: made visible",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "the ledger is written before the word",
        COUNTER,
        &[(
            "        let taken = self.words[row]
",
            "        total.store(after(total_before, change), Ordering::Relaxed);
        let taken = self.words[row]
",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the intent is cleared before the ledger is written",
        COUNTER,
        &[(
            "            total.store(after(total_before, change), Ordering::Relaxed);
        }
        // Release: pairs with the Acquire of the intent in `standing`, whose",
            "            lane.intent.store(Intent::IDLE, Ordering::Release);
            total.store(after(total_before, change), Ordering::Relaxed);
        }
        // Release: pairs with the Acquire of the intent in `standing`, whose",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the intent is written after the word",
        COUNTER,
        &[(
            "        lane.intent
            .store(Intent::active(row, tag), Ordering::Release);
",
            "",
        ),(
            "        if taken {
            if let Some(",
            "        if taken {
            lane.intent.store(Intent::active(row, tag), Ordering::Release);
            if let Some(",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the word is read only once by a helper, with tags of two bits",
        COUNTER,
        &[(
            "            && self.words[row].load(Ordering::Relaxed) == seen;
        if !still",
            ";
        if !still",
        )],
        Catcher::Model("k1_death_after_many"),
    )
    .with_narrow_tags(),
    fault(
        "the confirmation is stored, not raised",
        COUNTER,
        &[(
            "lane.confirmed.fetch_max(operation, Ordering::Relaxed);",
            "lane.confirmed.store(operation, Ordering::Relaxed);",
        )],
        Catcher::Model("k1_death_with_two_helpers"),
    ),
    fault(
        "the operation's number does not advance",
        COUNTER,
        &[(
            "lane.operation.load(Ordering::Relaxed).wrapping_add(1);",
            "lane.operation.load(Ordering::Relaxed);",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the count is taken from a newer word than the choice",
        COUNTER,
        &[(
            "        let lane = &self.lanes[usize::from(me.0) - 1];
        // Relaxed, here",
            "        let seen = self.load(row);
        let lane = &self.lanes[usize::from(me.0) - 1];
        // Relaxed, here",
        )],
        Catcher::Model("c4_the_last_free_place_and"),
    ),
    fault(
        "a dead lane's operation counts as done if its word still names it, and not otherwise",
        COUNTER,
        &[(
            "word.is_by(id, tag) || confirmed >= lane.operation.load(Ordering::Relaxed);",
            "word.is_by(id, tag) || (confirmed == u64::MAX && lane.operation.load(Ordering::Relaxed) > 0);",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "a dead lane's tokens are not brought up to date",
        COUNTER,
        &[(
            "                    self.advance_tokens(row, tokens_before, change);
                    self.hold_tokens(id",
            "                    let _ = tokens_before;
                    self.hold_tokens(id",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "a word is loaded without Acquire",
        COUNTER,
        &[(
            "self.words[row].load(Ordering::Acquire)",
            "self.words[row].load(Ordering::Relaxed)",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "a word is written without Release",
        COUNTER,
        &[(
            "                seen.changed(change, me, tag),
                Ordering::Release,",
            "                seen.changed(change, me, tag),
                Ordering::Relaxed,",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "the end of an operation is written without Release",
        COUNTER,
        &[(
            "        lane.intent.store(Intent::IDLE, Ordering::Release);
        taken",
            "        lane.intent.store(Intent::IDLE, Ordering::Relaxed);
        taken",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "a mark is written without Release",
        COUNTER,
        &[(
            "                        seen.marked(state, tag),
                        Ordering::Release,",
            "                        seen.marked(state, tag),
                        Ordering::Relaxed,",
        )],
        Catcher::Model("c8_"),
    ),
    fault(
        "a mark does not change the word's tag",
        COUNTER,
        &[(
            "seen.marked(state, tag),",
            "seen.marked(state, { let _ = tag; seen.tag() }),",
        )],
        Catcher::Model("c8_a_request_chosen"),
    ),
    fault(
        "an operation's number is stored without Release",
        COUNTER,
        &[(
            "lane.operation.store(operation, Ordering::Release);",
            "lane.operation.store(operation, Ordering::Relaxed);",
        )],
        Catcher::Model("k1_death_after_many"),
    ),
    fault(
        "an operation's fields are stored without Release",
        COUNTER,
        &[(
            "lane.tokens_before.store(tokens_before, Ordering::Release);",
            "lane.tokens_before.store(tokens_before, Ordering::Relaxed);",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "a helper loads the number without Acquire",
        COUNTER,
        &[(
            "let operation = lane.operation.load(Ordering::Acquire);",
            "let operation = lane.operation.load(Ordering::Relaxed);",
        )],
        Catcher::Model("k1_death_after_many"),
    ),
    fault(
        "a helper loads the intent without Acquire",
        COUNTER,
        &[(
            "let intent = lane.intent.load(Ordering::Acquire);
        if intent != ",
            "let intent = lane.intent.load(Ordering::Relaxed);
        if intent != ",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "a helper loads the fields without Acquire",
        COUNTER,
        &[(
            "let tokens_before = lane.tokens_before.load(Ordering::Acquire);",
            "let tokens_before = lane.tokens_before.load(Ordering::Relaxed);",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "tokens are written without Release",
        COUNTER,
        &[(
            "before.changed(change),
            Ordering::Release,",
            "before.changed(change),
            Ordering::Relaxed,",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "tokens are looked at without Acquire",
        COUNTER,
        &[(
            "let tokens = self.tokens[row].load(Ordering::Acquire);",
            "let tokens = self.tokens[row].load(Ordering::Relaxed);",
        )],
        Catcher::Model("c5_"),
    ),
    // -- Placing ---------------------------------------------------------------------------------
    fault(
        "the table's cap is checked, and counted on whatever it is then",
        PLACE,
        &[(
            "            if self.attempt(me, total.row, word, change) {
                return true;
            }",
            "            let _ = word;
            self.add(me, total.row, change);
            if self.load(total.row).value() > 0 {
                return true;
            }",
        )],
        Catcher::Model("c4_the_last_free_place_of"),
    ),
    fault(
        "a place under the table's cap is not given back",
        PLACE,
        &[(
            "self.take_from(me, total, change);
            }
            backoff",
            "let _ = total;
            }
            backoff",
        )],
        Catcher::Model("c4_a_place_under"),
    ),
    // -- Publications ----------------------------------------------------------------------------
    fault(
        "the sequence advances before the copy is written",
        LATCH,
        &[(
            "        fence(Ordering::Release);
",
            "        fence(Ordering::Release);
        self.sequence.store(next, Ordering::Release);
",
        )],
        Catcher::Model("s1_"),
    ),
    fault(
        "the sequence is stored without Release",
        LATCH,
        &[(
            "self.sequence.store(sequence, Ordering::Release)",
            "self.sequence.store(sequence, Ordering::Relaxed)",
        )],
        Catcher::Model("s1_"),
    ),
    fault(
        "the sequence is loaded without Acquire",
        LATCH,
        &[(
            "let before = self.sequence.load(Ordering::Acquire)",
            "let before = self.sequence.load(Ordering::Relaxed)",
        )],
        Catcher::Model("s1_"),
    ),
    fault(
        "a reader has no fence",
        LATCH,
        &[("        fence(Ordering::Acquire);\n", "")],
        Catcher::Model("s1_"),
    ),
    fault(
        "a publisher has no fence",
        LATCH,
        &[("        fence(Ordering::Release);\n", "")],
        Catcher::Model("s1_"),
    ),
    fault(
        "a reader does not look whether it was overtaken",
        LATCH,
        &[(
            "if number(after).wrapping_sub(number(before)) < COPIES as u64 - 1 {",
            "if number(after).wrapping_sub(number(before)) < u64::MAX {",
        )],
        Catcher::Model("s1_"),
    ),
    fault(
        "a reader allows for one publication too many",
        LATCH,
        &[(
            "if number(after).wrapping_sub(number(before)) < COPIES as u64 - 1 {",
            "if number(after).wrapping_sub(number(before)) < COPIES as u64 {",
        )],
        Catcher::Model("s1_"),
    ),
    fault(
        "an operation's change is stored without Release",
        COUNTER,
        &[(
            "lane.change.store(change, Ordering::Release);",
            "lane.change.store(change, Ordering::Relaxed);",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "an intent is stored without Release",
        COUNTER,
        &[(
            ".store(Intent::active(row, tag), Ordering::Release);",
            ".store(Intent::active(row, tag), Ordering::Relaxed);",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "a helper loads the change without Acquire",
        COUNTER,
        &[(
            "let change = lane.change.load(Ordering::Acquire);",
            "let change = lane.change.load(Ordering::Relaxed);",
        )],
        Catcher::Model("c5_"),
    ),
    fault(
        "a recovered operation is ended without Release",
        COUNTER,
        &[(
            "        // Release: as at the end of `attempt`, and for the same readers.
        lane.intent.store(Intent::IDLE, Ordering::Release);",
            "        lane.intent.store(Intent::IDLE, Ordering::Relaxed);",
        )],
        Catcher::Model("k1_death_in_route_and_a_reap"),
    ),
    fault(
        "a dead lane's intent is loaded without Acquire",
        COUNTER,
        &[(
            "let intent = lane.intent.load(Ordering::Acquire);
        let Some",
            "let intent = lane.intent.load(Ordering::Relaxed);
        let Some",
        )],
        Catcher::Model("k1_"),
    )
    .harmless(A_LOCK_ORDERS),
    fault(
        "the next publisher loads the sequence without Acquire",
        LATCH,
        &[(
            "number(self.sequence.load(Ordering::Acquire)).wrapping_add(1)",
            "number(self.sequence.load(Ordering::Relaxed)).wrapping_add(1)",
        )],
        Catcher::Model("s2_"),
    )
    .harmless(A_LOCK_ORDERS),
    fault(
        "a slot's word is loaded without Acquire",
        REGISTRY,
        &[(
            "self.word.load(Ordering::Acquire)",
            "self.word.load(Ordering::Relaxed)",
        )],
        Catcher::Model("k1_"),
    )
    .harmless(A_LOCK_ORDERS),
    // -- Frontends -------------------------------------------------------------------------------
    fault(
        "a joiner does not look again once it has the lock",
        REGISTRY,
        &[(
            "            if !word.is_taken() {
                slot.set(word.taken());",
            "            {
                slot.set(word.taken());",
        )],
        Catcher::Model("k1_a_slot_whose_frontend_has_just_died"),
    ),
    fault(
        "a reaper does not look again once it has the lock",
        REGISTRY,
        &[(
            "            if word.is_taken() {
                slot.set(word.reaping());",
            "            {
                slot.set(word.reaping());",
        )],
        Catcher::Model("k1_two_reapers"),
    ),
    fault(
        "a reaper does not recover the lanes",
        REGISTRY,
        &[(
            "            self.counter.recover(self.lane(slot, lane));",
            "            let _ = lane;",
        )],
        Catcher::Model("k1_death_in_route_with_tokens"),
    ),
    fault(
        "a slot is vacated before it is empty",
        REGISTRY,
        &[(
            "                self.empty(index, &mut returned);
                self.vacate(index);
",
            "                self.vacate(index);
                self.empty(index, &mut returned);
",
        )],
        Catcher::Model("k1_death_of_the_reaper"),
    ),
    fault(
        "a slot is vacated without Release",
        REGISTRY,
        &[(
            "        self.word.store(word, Ordering::Release);",
            "        self.word.store(word, Ordering::Relaxed);",
        )],
        Catcher::Model("k1_join_against"),
    )
    .harmless(A_LOCK_ORDERS),
    // -- Who still needs a seat -------------------------------------------------------------------
    fault(
        "the end of a permit is counted without Release",
        HOLD,
        &[(
            ".store(permits.wrapping_sub(1), Ordering::Release);",
            ".store(permits.wrapping_sub(1), Ordering::Relaxed);",
        )],
        Catcher::Model("holding"),
    ),
    fault(
        "a lane is left without Release",
        HOLD,
        &[(
            "self.busy.store(0, Ordering::Release);",
            "self.busy.store(0, Ordering::Relaxed);",
        )],
        Catcher::Model("holding"),
    ),
    fault(
        "a seat is taken apart while a lane is busy",
        HOLD,
        &[(
            "permits == 0 && !lanes.into_iter().any(LaneHold::is_busy)",
            "permits == 0 && { let _ = lanes; true }",
        )],
        Catcher::Model("holding"),
    ),
    fault(
        "who has a seat in hand does not look again when others had reason to",
        HOLD,
        &[("if now == seen {", "if now >= seen {")],
        Catcher::Model("holding"),
    ),
    // -- The face --------------------------------------------------------------------------------
    fault(
        "ties go to the engine of the lowest number",
        "src/choose.rs",
        &[("if !tied || last_chosen < self.last_chosen {", "if !tied {")],
        Catcher::Test("counting", "c7_"),
    ),
    fault(
        "ties go to the next engine in number",
        "src/turns.rs",
        &[(
            "        self.chosen[engine].store(number(turn, engine), Ordering::Relaxed);
    }

    /// Halves",
            "        let n = self.chosen.len(); (1..=n).for_each(|i| self.chosen[(engine + i) % n].store(number(turn + i as u64, (engine + i) % n), Ordering::Relaxed));
    }

    /// Halves",
        )],
        Catcher::Unit("c7_"),
    ),
    fault(
        "an engine at its cap is chosen for its count",
        "src/operation.rs",
        &[(
            "            && seen.value() < engines.limits(least.engine).max_in_flight()\n",
            "",
        )],
        Catcher::Test("counting", "c4_"),
    ),
    fault(
        "a closed engine is chosen for its count",
        "src/operation.rs",
        &[(
            "seen.is_active()\n            && seen.value()",
            "seen.value()",
        )],
        Catcher::Test("policies", "a_plain_route"),
    ),
    fault(
        "counts are compared where weights differ",
        "src/operation.rs",
        &[(
            "if roster.weights_differ() || mapping",
            "if mapping",
        )],
        Catcher::Test("policies", "a_plain_route"),
    ),
    fault(
        "pressure does not count",
        "src/publication.rs",
        &[(
            "(stats.iter()).any(|s| s.waiting > 0 && s.pressure() > 0.0)",
            "(stats.iter()).any(|s| s.waiting > 0 && s.pressure() > 10.0)",
        )],
        Catcher::Test("policies", "a_plain_route"),
    ),
    fault(
        "a floor that the snapshot can lower",
        "src/load.rs",
        &[("(u64::from(c.word.value()).max(has) + 3", "(has + 3")],
        Catcher::Test("publishing", "s3_"),
    ),
    fault(
        "old news counts",
        "src/choose.rs",
        &[(
            "is_some_and(|age| age < limit)",
            "is_some_and(|age| age < limit.max(u64::MAX))",
        )],
        Catcher::Test("publishing", "s4_"),
    ),
    fault(
        "statistics stick to a slot",
        "src/publication.rs",
        &[(
            "        if !origin.is_of(engines.generation(engine)) {",
            "        if !origin.is_of(engines.generation(engine)) && engine > usize::MAX - 1 {",
        )],
        Catcher::Test("publishing", "statistics_of_an_engine"),
    ),
    fault(
        "an engine's count is forgotten when its state changes",
        "src/algorithm/word.rs",
        &[(
            "Self::pack(self.value().into(), state, NOBODY, tag)",
            "Self::pack(u64::from(self.value() / u32::MAX), state, NOBODY, tag)",
        )],
        Catcher::Test("counting", "c8_"),
    ),
    fault(
        "a cap is changed, and those who have read the old one are not made to choose anew",
        "src/engine_list.rs",
        &[(
            "        engines.mark(engine, |word| Some(word.state()));\n",
            "",
        )],
        Catcher::Test("engines", "a_lower_cap"),
    ),
    fault(
        "locks are those of the process, not of the open file",
        "src/file/lock.rs",
        &[(
            "ofd(self.fd.as_fd(), libc::F_OFD_SETLK, libc::F_WRLCK, byte)",
            "ofd(self.fd.as_fd(), libc::F_SETLK, libc::F_WRLCK, byte)",
        )],
        Catcher::Test("crashes", "k"),
    ),
    fault(
        "a child keeps its parent's locked files",
        "src/file/fork.rs",
        &[(
            "    entries().for_each(Entry::close);",
            "    let _ = Entry::close;",
        )],
        Catcher::Test("crashes", "k3_"),
    ),
    fault(
        "a child takes itself for its parent",
        "src/file/fork.rs",
        &[(
            "self.mark.load(Ordering::Relaxed) == self.own",
            "self.mark.load(Ordering::Relaxed) != self.own + 1000",
        )],
        Catcher::Test("crashes", "k3_a_child_never"),
    ),
    fault(
        "a table is named before it is finished",
        "src/file/open.rs",
        &[
            (
                "        let table = Self::finish(file, path, header, fill)?;
        let unnamed = format!(\"/proc/thread-self/fd/{}\", table.file.as_raw_fd());",
                "        let unnamed = format!(\"/proc/thread-self/fd/{}\", file.as_raw_fd());",
            ),
            (
                "            Ok(()) => Ok(table),",
                "            Ok(()) => Self::finish(file, path, header, fill),",
            ),
        ],
        Catcher::Test("file", "f1_"),
    ),
    fault(
        "memory is not reserved",
        "src/file/open.rs",
        &[(
            "rustix::fs::fallocate(file, none, start as u64, length))",
            "rustix::fs::ftruncate(file, start as u64 + length).map(|()| drop(none)))",
        )],
        Catcher::Test("file", "f3_"),
    ),
];
