//! The description of the file.

use super::{Catcher, Mutant, fault};

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "two parts of the file overlap",
        "src/shm/layout/mod.rs",
        &[(
            "end = offset + count * bytes;",
            "end = offset + (count - 1) * bytes;",
        )],
        Catcher::Unit("sections_do_not_overlap"),
    ),
    fault(
        "a dump takes one process for another",
        "src/shm/layout/control.rs",
        &[
            (
                "publisher_pid: [Field::number(\"publisher's pid\")",
                "publisher_pid: [Field::number(\"changer's pid\")",
            ),
            (
                "changer_pid: [Field::number(\"changer's pid\")",
                "changer_pid: [Field::number(\"publisher's pid\")",
            ),
        ],
        Catcher::Unit("a_dump_names_each_word"),
    ),
    fault(
        "a dump takes what a publication has left over for its own",
        "src/shm/layout/publication.rs",
        &[(
            "        engine if engine < rows => {",
            "        engine => {",
        )],
        Catcher::Unit("a_dump_names_each_word"),
    ),
    fault(
        "a picture of the file shows bits as unused that the code takes for used",
        "src/algorithm/rows.rs",
        &[(
            "Field::number(\"max_tokens\").of_bits(32)",
            "Field::number(\"max_tokens\")",
        )],
        Catcher::Unit("the_pictures_show"),
    ),
    fault(
        "a bit that nothing uses may be set",
        "src/inspect/verify/unused.rs",
        &[(
            "if word & !field.used != 0 {",
            "if word & !field.used == u64::MAX {",
        )],
        Catcher::Test("verify", "bits_that_nothing_uses"),
    ),
    fault(
        "the checksum of a header leaves a word out",
        "src/shm/layout/header.rs",
        &[("checksum(covered)", "checksum(&covered[..62])")],
        Catcher::Unit("f2_any_flipped_bit"),
    ),
    fault(
        "a header with a right checksum may have any mode",
        "src/shm/layout/header.rs",
        &[(".filter(|mode| *mode <= 0o777)", "")],
        Catcher::Unit("f2_a_forged_checksum"),
    ),
];
