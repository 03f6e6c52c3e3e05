//! What catches each weakened memory ordering of the algorithms.
//!
//! The faults themselves are generated from the sources, see [`weaken`](crate::mutants::weaken). Each has one line here:
//! the function, which of the orderings in this function it is, the change, and the models that fail by it. A
//! unit test checks that each ordering stronger than Relaxed has its lines, and each line its ordering.

/// A weakened ordering, and what becomes of it.
#[derive(Clone, Copy, Debug)]
pub(in crate::mutants) struct Entry {
    pub(in crate::mutants) function: &'static str,
    /// Which of the orderings in the function it is. The first is 1.
    pub(in crate::mutants) nth: usize,
    pub(in crate::mutants) change: &'static str,
    /// The models whose name contains this: one of them fails, unless there is a reason why not.
    pub(in crate::mutants) models: &'static str,
    /// Why no model fails.
    pub(in crate::mutants) not_caught: Option<&'static str>,
}

/// A model with this in its name catches it.
const fn caught(
    function: &'static str,
    nth: usize,
    change: &'static str,
    models: &'static str,
) -> Entry {
    Entry {
        function,
        nth,
        change,
        models,
        not_caught: None,
    }
}

/// No model catches it, for this reason. All models that run the function have this in their name, and pass.
const fn not_caught(
    function: &'static str,
    nth: usize,
    change: &'static str,
    models: &'static str,
    why: &'static str,
) -> Entry {
    Entry {
        function,
        nth,
        change,
        models,
        not_caught: Some(why),
    }
}

const ACQUIRE: &str = "Acquire -> Relaxed";
const RELEASE: &str = "Release -> Relaxed";
const ACQ_REL_TO_ACQUIRE: &str = "AcqRel -> Acquire";
const ACQ_REL_TO_RELEASE: &str = "AcqRel -> Release";
const ACQUIRE_FENCE: &str = "Acquire -> none";
const RELEASE_FENCE: &str = "Release -> none";
const SEQ_CST_FENCE: &str = "SeqCst -> AcqRel";

/// The models of what lives how long.
const LIFETIME: &str = "models::lifetime";
const UNTIL_NO_NEW: &str = "run_until_no_new_requests";

const BY_A_LOCK: &str =
    "a process runs this only while it holds a lock, and a lock orders what was done under it";
const STEADY: &str = "a look that mixes two operations does not come out the same three times, with pauses between, \
                      and `verify` believes nothing else";
const BY_THE_SWAP: &str = "where a compare-and-swap is a fence, Acquire would do; where it is none, nothing unsafe \
                           rests on this";
const BY_THE_FENCE: &str =
    "the thread that drops the last handle comes to the fence in `close`, which acquires as much";
const BY_THE_LIST: &str = "a pass hands on nothing but the list, whose own exchange does that; and a read-modify-write \
                           keeps the releases before it";
const IN_A_COMPILER: &str = "it binds the compiler alone, where the read-modify-write before it is a full fence; models \
                             run the other one";
const BY_THE_FENCES: &str = "the fences before the wake-up and after it order the place; the Release and the Acquire order \
                             the note of the wake-up, and loom orders the stores of a word as it runs them";
const IN_ONE_ORDER: &str = "a thread that puts a thing back has to see the reason of a thread that found nothing; \
                            loom has it see that anyway, for it orders the read-modify-writes of a word as it \
                            runs them";

/// By file, below src/algorithm.
pub(in crate::mutants) const TABLE: &[(&str, &[Entry])] = &[
    (
        "counter.rs",
        &[
            caught("load", 1, ACQUIRE, "k1_death_in_route_with_tokens"),
            caught("attempt_in", 1, RELEASE, "k1_death_after_an_operation"),
            caught("attempt_in", 2, RELEASE, "c5_what_is_seen"),
            caught("attempt_in", 3, RELEASE, "c5_what_is_seen"),
            caught("attempt_in", 4, RELEASE, "k1_death_in_route_with_tokens"),
            caught("attempt_in", 5, RELEASE, "c1_a_recount"),
            caught("attempt_in", 6, RELEASE, "c5_tokens_are_seen"),
            caught("write_down_tokens", 1, RELEASE, "c5_what_is_seen"),
            caught("rewrite", 1, RELEASE, "c8_"),
            not_caught("recover", 1, ACQUIRE, "", BY_A_LOCK),
            caught("recover", 2, RELEASE, "c1_a_recount_while"),
            caught("recover", 3, RELEASE, "k1_death_in_route_and_a_reap"),
            caught("tokens_at", 1, ACQUIRE, "c5_tokens_are_seen"),
            caught("advance_tokens", 1, RELEASE, "c5_tokens_are_seen"),
            caught("hold_tokens", 1, RELEASE, "c1_a_recount"),
        ],
    ),
    (
        "counter/audit.rs",
        &[
            not_caught("ledger_at", 1, ACQUIRE, "auditing", STEADY),
            caught("ledger_at", 2, ACQUIRE, "c1_a_recount"),
            not_caught("ledger_at", 3, ACQUIRE, "auditing", STEADY),
            caught("still", 1, ACQUIRE_FENCE, "c1_a_recount"),
            caught("is_in_an_operation", 1, ACQUIRE, "a_lane_whose_frontend"),
            not_caught("lane_fault", 1, ACQUIRE_FENCE, "auditing", STEADY),
            caught("lane_fault", 2, ACQUIRE, "a_lane_that_is_used"),
            caught("lane_fault", 3, ACQUIRE, "a_lane_that_is_used"),
        ],
    ),
    (
        "counter/evidence.rs",
        &[
            caught("leave_witness", 1, RELEASE, "c1_a_recount_beside"),
            caught("is_witnessed", 1, ACQUIRE, "c1_a_recount_beside"),
            caught("sweep", 1, RELEASE, "c1_a_recount_beside"),
            caught("writer_state", 1, ACQUIRE, "k1_death_after_an_operation"),
            caught("writer_state", 2, ACQUIRE, "c5_tokens_are_seen"),
            caught("writer_state", 3, ACQUIRE, "c5_what_is_seen"),
            caught("writer_state", 4, ACQUIRE, "c5_what_is_seen"),
        ],
    ),
    (
        "lifetime.rs",
        &[
            caught("drop_one", 1, ACQ_REL_TO_ACQUIRE, LIFETIME),
            not_caught("drop_one", 1, ACQ_REL_TO_RELEASE, LIFETIME, BY_THE_FENCE),
            caught("close", 1, "SeqCst -> AcqRel", LIFETIME),
            not_caught("is_closed", 1, "SeqCst -> Acquire", LIFETIME, BY_THE_SWAP),
            caught("enter_shared", 1, ACQUIRE, "without_fences"),
            caught("end_permit", 1, RELEASE, "without_fences"),
            caught("leave", 1, RELEASE, LIFETIME),
            caught("is_busy", 1, ACQUIRE, LIFETIME),
            caught("is_unused", 1, ACQUIRE, LIFETIME),
            caught(UNTIL_NO_NEW, 1, ACQ_REL_TO_ACQUIRE, LIFETIME),
            caught(UNTIL_NO_NEW, 1, ACQ_REL_TO_RELEASE, LIFETIME),
            not_caught(UNTIL_NO_NEW, 2, ACQ_REL_TO_ACQUIRE, LIFETIME, BY_THE_LIST),
            caught(UNTIL_NO_NEW, 2, ACQ_REL_TO_RELEASE, LIFETIME),
        ],
    ),
    (
        "lifetime/retired.rs",
        &[
            caught("put", 1, ACQ_REL_TO_ACQUIRE, LIFETIME),
            not_caught("put", 1, ACQ_REL_TO_RELEASE, LIFETIME, IN_ONE_ORDER),
            not_caught("give_back", 1, ACQ_REL_TO_ACQUIRE, LIFETIME, IN_ONE_ORDER),
            caught("give_back", 1, ACQ_REL_TO_RELEASE, LIFETIME),
        ],
    ),
    (
        "name.rs",
        &[
            caught("generation", 1, ACQUIRE, "a_name_"),
            caught("read", 1, ACQUIRE_FENCE, "a_name_"),
            caught("write", 1, RELEASE_FENCE, "a_name_"),
            caught("write", 2, RELEASE, "a_name_"),
        ],
    ),
    (
        "owner.rs",
        &[
            caught("end", 1, RELEASE, "owning"),
            caught("end", 2, RELEASE, "owning"),
            caught("ended", 1, ACQUIRE, "owning"),
            caught("has_ended", 1, ACQUIRE, "owning"),
        ],
    ),
    (
        "primitive.rs",
        &[
            not_caught(
                "fence_after_swap",
                1,
                SEQ_CST_FENCE,
                "q1_enqueue",
                IN_A_COMPILER,
            ),
            caught(
                "fence_after_swap",
                2,
                SEQ_CST_FENCE,
                "q1_enqueue_against_finish",
            ),
        ],
    ),
    (
        "queue.rs",
        &[
            caught("publish", 1, RELEASE_FENCE, "q2_a_head"),
            caught("publish", 2, RELEASE, "q2_a_head"),
            not_caught("wake_word", 1, ACQUIRE, "queueing::q1_", BY_THE_FENCES),
            caught("look_anew", 1, SEQ_CST_FENCE, "q1_enqueue_against_finish"),
            not_caught("ring", 1, RELEASE, "queueing::q1_", BY_THE_FENCES),
            caught("head", 1, ACQUIRE, "q2_a_head"),
            caught("head", 2, ACQUIRE_FENCE, "q2_a_head"),
            caught("next_after", 1, SEQ_CST_FENCE, "q1_reap_of_a_head"),
        ],
    ),
    (
        "record/slot.rs",
        &[
            caught("word", 1, ACQUIRE, "k4_who_opens_waits"),
            caught("set", 1, RELEASE, "k4_who_opens_waits"),
        ],
    ),
    (
        "rows.rs",
        &[
            caught("hints", 1, ACQUIRE, "c8_"),
            caught("update_hints", 1, RELEASE, "c8_"),
        ],
    ),
    (
        "scan/mod.rs",
        &[not_caught(
            "acquire",
            1,
            ACQUIRE_FENCE,
            "choosing",
            "only the word of the chosen engine has to come before what is read next, and that word is loaded again, \
             with Acquire",
        )],
    ),
    (
        "seqlatch.rs",
        &[
            caught("try_read", 1, ACQUIRE, "s1_"),
            caught("try_read", 2, ACQUIRE_FENCE, "s1_"),
            not_caught("publish", 1, ACQUIRE, "publishing", BY_A_LOCK),
            caught("publish", 2, RELEASE_FENCE, "s1_"),
            caught("publish", 3, RELEASE, "s1_"),
        ],
    ),
];
