//! Inside one process: its threads, its forks, and what its handles share.

use super::{Catcher, Mutant, fault};

const FORK: &str = "src/shm/fork.rs";
const FRONTEND: &str = "src/frontend/mod.rs";
const LIFETIME: &str = "src/algorithm/lifetime.rs";
const KEPT: &str = "src/shm/kept.rs";
const OWNER: &str = "src/algorithm/owner.rs";
const REAPER: &str = "src/table/reaper.rs";
const RETIRED: &str = "src/algorithm/lifetime/retired.rs";
const MEMBERSHIP: &str = "src/frontend/membership.rs";
const LANES: &str = "src/frontend/lanes.rs";
const THREAD: &str = "src/frontend/thread.rs";

pub(super) const FAULTS: &[Mutant] = &[
    // -- Threads and lanes -----------------------------------------------------------------------
    fault(
        "a thread uses its key after it was given back",
        THREAD,
        &[(
            "all().end(KEY.replace(ThreadKey::NONE));",
            "all().end(KEY.get());",
        )],
        Catcher::Unit("c3_a_thread_that_has_given_its_key_back"),
    ),
    fault(
        "a thread never gives its key back",
        THREAD,
        &[(
            "all().end(KEY.replace(ThreadKey::NONE));",
            "KEY.set(ThreadKey::NONE);",
        )],
        Catcher::Test("threads", "lanes_of_threads_that_ended"),
    ),
    fault(
        "a thread's end is not counted",
        OWNER,
        &[(
            "        self.ended.fetch_add(1, Ordering::Release);
",
            "",
        )],
        Catcher::Test("threads", "lanes_of_threads_that_ended"),
    ),
    fault(
        "an old look at a thread's slot is taken for its end",
        OWNER,
        &[(
            "self.slots[key.slot()].0.load(Ordering::Acquire) > key.generation()",
            "self.slots[key.slot()].0.load(Ordering::Acquire) != key.generation()",
        )],
        Catcher::Model("owning"),
    ),
    fault(
        "a lane is claimed from a living thread",
        OWNER,
        &[(
            "if before != NO_THREAD && !threads.has_ended(ThreadKey(before)) {",
            "if before == me.0 {",
        )],
        Catcher::Model("owning"),
    ),
    fault(
        "lanes are given by the number of a thread in its process",
        LANES,
        &[(
            "let owners = self.lanes[..self.owned].iter().map(|lane| &lane.owner);",
            "let owners = self.lanes[..self.owned].iter().skip(me.slot()).take(1).map(|lane| &lane.owner);",
        )],
        Catcher::Test("threads", "lanes_are_given_to_threads_frontend_by_frontend"),
    ),
    fault(
        "in a child lanes are given by the number of a thread in its process",
        LANES,
        &[(
            "let owners = self.lanes[..self.owned].iter().map(|lane| &lane.owner);",
            "let owners = self.lanes[..self.owned].iter().skip(me.slot()).take(1).map(|lane| &lane.owner);",
        )],
        Catcher::Test("threads", "threads_of_a_child"),
    ),
    fault(
        "a thread enters a lane of its own that it is in",
        LIFETIME,
        &[(
            "        let free = self.busy.load(Ordering::Relaxed) == 0;
",
            "        let free = true;
",
        )],
        Catcher::Test("threads", "c1_a_signal_handler_that_routes"),
    ),
    fault(
        "a policy of the user's own is asked inside of an operation",
        FRONTEND,
        &[(
            "            let choice = chooser.choose_by_custom(load, last_chosen);
",
            "            let inside = self.operation()?;
            let choice = chooser.choose_by_custom(load, last_chosen);
            drop(inside);
",
        )],
        Catcher::Test("threads", "p1_a_policy_may"),
    ),
    fault(
        "a tie by a policy of the user's own uses no turn up",
        "src/frontend/operation.rs",
        &[(
            "if choice.is_tied() {\n                    (self.lane)",
            "if choice.is_tied() && false {\n                    (self.lane)",
        )],
        Catcher::Test("threads", "c7_ties_by_a_policy"),
    ),
    // -- The last handle and the last permit -----------------------------------------------------
    fault(
        "closing does not wait for threads that may not have seen it",
        RETIRED,
        &[(
            "                while lane.is_busy() {",
            "                while false && lane.is_busy() {",
        )],
        Catcher::Model("models::lifetime"),
    ),
    fault(
        "whether all handles are gone is looked at after the permit's end",
        LIFETIME,
        &[
            (
                "        let is_closed = handles.is_closed();
",
                "",
            ),
            (
                "            .store(permits.wrapping_sub(1), Ordering::Release);
        is_closed
",
                "            .store(permits.wrapping_sub(1), Ordering::Release);
        handles.is_closed()
",
            ),
        ],
        Catcher::Model("models::lifetime"),
    )
    .harmless("the lane is busy until `leave`, so the thing stays; the order is the plainer one"),
    fault(
        "a look at the list keeps only the first thing",
        RETIRED,
        &[(
            "                    next = thing.next().load(Ordering::Relaxed);
",
            "                    next = ptr::null_mut();
",
        )],
        Catcher::Model("models::lifetime"),
    ),
    fault(
        "a thing that is still held is not put back",
        RETIRED,
        &[("(true, false) => self.put(thing),", "(true, false) => {}")],
        Catcher::Model("models::lifetime"),
    ),
    // -- Forks -----------------------------------------------------------------------------------
    fault(
        "the lock of a frontend goes with a fork",
        KEPT,
        &[(
            "            mapped.keep_from_children()?;
",
            "",
        )],
        Catcher::Test("forks", "k3_a_child_without_fork_handlers_keeps_no_lock"),
    ),
    fault(
        "the lock of a frontend goes with a fork that began before the first join",
        KEPT,
        &[(
            "            mapped.keep_from_children()?;
",
            "",
        )],
        Catcher::Test("forks", "k3_a_fork_that_began_before"),
    ),
    fault(
        "a lock that a child may have a copy of is kept",
        KEPT,
        &[(
            "is_shared: open.was_copied(table)?,",
            "is_shared: open.was_copied(table)? && false,",
        )],
        Catcher::Test("forks", "k3_children_without_fork_handlers_keep_no_lock"),
    ),
    fault(
        "a canary that a child has is taken for gone",
        KEPT,
        &[(
            "        Ok(true)
",
            "        Ok(false)
",
        )],
        Catcher::Unit("k3_a_canary"),
    ),
    fault(
        "a canary is not mapped",
        KEPT,
        &[(
            "canary.mapped = canary.file.as_ref().map(Mapped::new).transpose()?;",
            "canary.mapped = None;",
        )],
        Catcher::Unit("k3_a_canary"),
    ),
    fault(
        "a lock file is opened during a fork",
        FORK,
        &[
            (
                "let was_quiet = process.ended.load(Ordering::SeqCst) >= begun;",
                "let was_quiet = true;",
            ),
            (
                "while self.ended.load(Ordering::SeqCst) < self.begun.load(Ordering::SeqCst)",
                "while self.ended.load(Ordering::SeqCst) > self.begun.load(Ordering::SeqCst)",
            ),
        ],
        Catcher::Unit("k3_no_descriptor_is_opened"),
    ),
    fault(
        "a lock file that a fork may have copied is kept",
        FORK,
        &[(
            "let is_quiet = process.begun.load(Ordering::SeqCst) == begun;",
            "let is_quiet = process.begun.load(Ordering::SeqCst) >= begun;",
        )],
        Catcher::Unit("k3_a_descriptor_that_a_fork"),
    ),
    fault(
        "a descriptor is taken off the list while a fork may be copying it",
        FORK,
        &[(
            "        ProcessPage::get()?.wait_for_forks();\n",
            "        Process::get()?;\n",
        )],
        Catcher::Unit("k3_a_descriptor_stays_on_the_list"),
    ),
    fault(
        "a child closes what it has opened itself",
        FORK,
        &[(
            "        if self.process.load(Ordering::Relaxed) == own {
            return;
        }
",
            "        let _ = own;
",
        )],
        Catcher::Test("forks", "k3_a_child_joins_in_a_fork_handler"),
    ),
    fault(
        "a child waits for the forks of its parent",
        FORK,
        &[(
            "rustix::mm::madvise(page, PAGE, Advice::LinuxWipeOnFork)",
            "rustix::mm::madvise(page, PAGE, Advice::Normal)",
        )],
        Catcher::Test("forks", "k3_a_child_joins_in_a_fork_handler"),
    ),
    fault(
        "a fork in a policy goes unnoticed when there is no room",
        FRONTEND,
        &[(
            "        let has_room = chooser.check_room(count);\n        if !self.membership.is_ours() {",
            "        let has_room = chooser.check_room(count);\n        if false {",
        )],
        Catcher::Test("forks", "k3_a_fork_inside_a_policy"),
    ),
    fault(
        "a child asks its parent's reaper",
        REAPER,
        &[(
            "        if !self.process.is_current() {
            // The thread may",
            "        if false {
            // The thread may",
        )],
        Catcher::Test("forks", "k3_a_child_asks_its_copy"),
    ),
    fault(
        "a child waits for its parent's reaper",
        REAPER,
        &[(
            "        if !self.process.is_current() {
            // A forked",
            "        if false {
            // A forked",
        )],
        Catcher::Test("forks", "k3_a_child_asks_its_copy"),
    ),
    // -- Reaping ---------------------------------------------------------------------------------
    fault(
        "a reaper without a pause does not sleep",
        REAPER,
        &[("period.max(SHORTEST_PERIOD)", "period.max(Duration::ZERO)")],
        Catcher::Test("threads", "a_reaper_without_a_pause"),
    ),
    fault(
        "only the first death is found by a route at the cap",
        MEMBERSHIP,
        &[(
            "        self.last_reap.store(now, Ordering::Relaxed);",
            "        self.last_reap.store(u64::MAX, Ordering::Relaxed);",
        )],
        Catcher::Test("crashes", "k1_each_death_is_found_by_a_route_at_the_cap"),
    ),
    fault(
        "a mapping is taken to keep a lock on any file system",
        "src/shm/kept.rs",
        &[(
            "Ok(is_locked(table, canary.byte)?.then_some(canary))",
            "Ok((canary.byte > 0).then_some(canary))",
        )],
        Catcher::Test("forks", "k2_a_frontend_lives_on_file_systems"),
    ),
    fault(
        "forks of other threads are waited for without end",
        FORK,
        &[(
            "self.0.elapsed() > Self::LIMIT",
            "self.0.elapsed() < Duration::ZERO",
        )],
        Catcher::Test("forks", "k3_a_fork_that_waits_for_another"),
    ),
    fault(
        "a custom policy is asked anew without end",
        "src/frontend/mod.rs",
        &[(
            "        for _ in 0..attempts {",
            "        for _ in 0..u64::from(attempts) << 32 {",
        )],
        Catcher::Test("threads", "p1_a_policy_that_changes"),
    ),
];
