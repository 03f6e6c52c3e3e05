//! The command: what is typed, what is shown, and what is listed.

use super::{Catcher, Mutant, fault};

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "two engines with a comma between them are one",
        "cli/src/engine_form.rs",
        &[("        _ if name.contains(',') => Err(unclear()),\n", "")],
        Catcher::Test("cli", "an_engine_that_could_be_meant"),
    ),
    fault(
        "what follows the last sign in a query is a weight",
        "cli/src/engine_form.rs",
        &[(
            "if let Some((_, query)) = word.split_once('?') {",
            "if let Some((_, query)) = word.split_once(\"??\") {",
        )],
        Catcher::Test("cli", "create_add_and_a_file"),
    ),
    fault(
        "a variable that is set to nothing names a table",
        "cli/src/table_arg.rs",
        &[(
            "std::env::var_os(VARIABLE).filter(|path| !path.is_empty())",
            "std::env::var_os(VARIABLE)",
        )],
        Catcher::Test("cli", "without_a_table_it_says"),
    ),
    fault(
        "metrics of a table that is not there yet end at once",
        "cli/src/metrics/mod.rs",
        &[(
            "Err(error @ Error::NotFound { .. }) => {",
            "Err(error @ Error::NotFound { .. }) if self.logged.is_err() => {",
        )],
        Catcher::Test("cli", "a_table_that_is_not_there_yet"),
    ),
    fault(
        "a cap on tokens is short of room when half of it is taken",
        "cli/src/warning.rs",
        &[(
            "(u64::from(cap) - tokens < mean)",
            "(u64::from(cap) - tokens < tokens)",
        )],
        Catcher::Test("cli", "a_table_that_is_short_of_tokens"),
    ),
    fault(
        "names are cut in a pipe",
        "cli/src/show/mod.rs",
        &[("            _ => usize::MAX,\n", "            _ => 80,\n")],
        Catcher::Test("cli", "names_are_whole"),
    ),
    fault(
        "a character that turns the direction of text is printed",
        "metrics/src/lib.rs",
        &[("'\\u{2028}'..='\\u{202e}'", "'\\u{2028}'..='\\u{2029}'")],
        Catcher::Test("cli", "nothing_that_a_terminal_acts_on"),
    ),
    fault(
        "every file is listed as a table",
        "cli/src/list.rs",
        &[(
            "Ok(read == found.len() && found == *BEGINNING)",
            "Ok(read > 0)",
        )],
        Catcher::Test("cli", "tables_are_listed"),
    ),
    fault(
        "a question for which there is no room is asked",
        "cli/src/top/draw.rs",
        &[("        app.popup = None;\n", "")],
        Catcher::Test("cli", "a_question_is_seen"),
    ),
    fault(
        "a dry run changes the table",
        "cli/src/apply.rs",
        &[("        if self.dry_run {", "        if false {")],
        Catcher::Test("cli", "a_living_table_comes"),
    ),
    fault(
        "a cap of the table that is to go is not seen to differ",
        "src/table/configuration/difference.rs",
        &[("(entirely || (cap", "(false || (cap")],
        Catcher::Test("cli", "a_living_table_comes"),
    ),
    fault(
        "a cap of all that is not named goes",
        "src/table/change.rs",
        &[(
            "let mut total = rows.total_caps();",
            "let mut total = Total::default();",
        )],
        Catcher::Test("cli", "the_caps_of_a_living_table"),
    ),
    fault(
        "refusals for one reason are shown as those for another",
        "cli/src/observed.rs",
        &[(
            "\"engine_tokens\" => \"engines' caps on tokens\"",
            "\"engine_tokens\" => \"engines' caps on requests\"",
        )],
        Catcher::Test("cli", "refusals_are_shown"),
    ),
];
