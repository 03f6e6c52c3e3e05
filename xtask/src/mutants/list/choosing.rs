//! The choice, what changes make of it, and names.

use super::{Catcher, Mutant, fault};

const ROWS: &str = "src/algorithm/rows.rs";
const CHOOSE: &str = "src/algorithm/choose.rs";
const SCAN: &str = "src/algorithm/scan/mod.rs";
const VECTORS: &str = "src/algorithm/scan/vectors.rs";
const TERMS: &str = "src/algorithm/terms.rs";
const NAME: &str = "src/algorithm/name.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a change moves no version on",
        ROWS,
        &[("        self.update_hints(ScanHints::next);\n", "")],
        Catcher::Model("c8_up_against"),
    ),
    fault(
        "a change rewrites no other row",
        ROWS,
        &[(
            "self.rewrite_all(|other| other != row);",
            "self.rewrite_all(|other| other == row);",
        )],
        Catcher::Model("c8_up_against"),
    ),
    fault(
        "a change passes rows over that take no requests",
        ROWS,
        &[(
            "let same = |word: Word| Some(word.state());",
            "let same = |word: Word| word.is_active().then_some(word.state());",
        )],
        Catcher::Model("c8_up_against_a_choice_of_an_engine"),
    ),
    fault(
        "a change moves the version on after the rewrites",
        ROWS,
        &[
            ("        self.update_hints(ScanHints::next);\n", ""),
            (
                "            let _ = self.counter.rewrite(row, same);\n        }\n",
                "            let _ = self.counter.rewrite(row, same);\n        }\n        self.update_hints(ScanHints::next);\n",
            ),
        ],
        Catcher::Model("c8_up_against"),
    ),
    fault(
        "a choice does not look at the hints again",
        ROWS,
        &[(
            "            if now == hints {",
            "            if now == now {",
        )],
        Catcher::Model("c8_"),
    ),
    fault(
        "a choice by count does not look at the hints again",
        CHOOSE,
        &[(
            "let stands = self.hints() == terms.hints();",
            "let stands = true;",
        )],
        Catcher::Model("c8_up_against_a_choice_by_count"),
    ),
    fault(
        "the chosen word is not compared with the rank by which it was chosen",
        CHOOSE,
        &[("seen, taken) == least.load();", "seen, taken) <= i32::MAX;")],
        Catcher::Model("c2_two_choices_by_count"),
    ),
    fault(
        "a name's generation is not made odd",
        NAME,
        &[(
            "self.generation.load(Ordering::Relaxed) | 1;",
            "self.generation.load(Ordering::Relaxed) + 1;",
        )],
        Catcher::Model("a_name_"),
    ),
    fault(
        "a name is read without a look at its generation",
        NAME,
        &[(
            "(stood && generation.is_multiple_of(2))",
            "(stood || generation.is_multiple_of(2))",
        )],
        Catcher::Model("a_name_"),
    ),
    fault(
        "an engine comes up, and choices under way are not made anew",
        "src/table/change.rs",
        &[(
            "to == RowState::Active && moved",
            "to == RowState::Removed && moved",
        )],
        Catcher::Test("engines", "c8_a_route_under_way"),
    ),
    fault(
        "an engine that is up already is brought up, and choices under way are not made anew",
        "src/table/change.rs",
        &[(
            "to == RowState::Active && moved.is_some()",
            "to == RowState::Active && moved.is_some_and(|before| !before.is_active())",
        )],
        Catcher::Step("Route-UpAfterDeathInUp"),
    ),
    fault(
        "limits change, and choices under way are not made anew",
        "src/table/change.rs",
        &[(
            "        engines.configure(engine, &limits);\n        engines.rows().announce_all();\n",
            "        engines.configure(engine, &limits);\n",
        )],
        Catcher::Test("engines", "c8_a_route_under_way"),
    ),
    fault(
        "terms are kept whatever the publication is",
        TERMS,
        &[("self.source.publication == publication && ", "")],
        Catcher::Test("publishing", "s"),
    ),
    fault(
        "terms are kept whatever the policy is",
        TERMS,
        &[(" && self.source.policy == policy", "")],
        Catcher::Test("policies", ""),
    ),
    fault(
        "terms outlive their publication",
        "src/frontend/choose/load.rs",
        &[(
            "!terms.never_expire() && clock::now_coarse() >= terms.expires()",
            "!terms.never_expire() && clock::now_coarse() >= u64::MAX - terms.expires()",
        )],
        Catcher::Test("publishing", "s4_"),
    ),
    fault(
        "an engine stays excluded for the next request",
        CHOOSE,
        &[(
            "false => wishes.excluded(|engine, _| terms.include(engine)),",
            "false => wishes.excluded(|_, _| ()),",
        )],
        Catcher::Test("policies", ""),
    ),
    fault(
        "limits are changed, and lanes are not told before that",
        ROWS,
        &[("        self.update_hints(ScanHints::changing);\n", "")],
        Catcher::Model("k1_death_in_a_change_of_limits"),
    ),
    fault(
        "limits have changed, and lanes take them for being changed",
        ROWS,
        &[(
            "Self((self.0 & !CHANGING).wrapping_add(ONE_VERSION))",
            "Self(self.0.wrapping_add(ONE_VERSION))",
        )],
        Catcher::Model("c8_a_higher_weight"),
    ),
    fault(
        "limits have changed, and the version is as it was",
        ROWS,
        &[(
            "Self((self.0 & !CHANGING).wrapping_add(ONE_VERSION))",
            "Self(self.0 & !CHANGING)",
        )],
        Catcher::Model("c8_a_higher_weight"),
    ),
    fault(
        "a change of limits does not rewrite the row that it is about",
        ROWS,
        &[(
            "self.rewrite_all(|_| true);",
            "self.rewrite_all(|row| row > 0);",
        )],
        Catcher::Model("c8_a_lower_weight"),
    ),
    fault(
        "terms are kept that are of the middle of a change",
        TERMS,
        &[(
            "if source.hints.is_changing() {",
            "if source.hints.is_changing() && self.engines == usize::MAX {",
        )],
        Catcher::Model("k1_death_in_a_change_of_limits"),
    ),
    fault(
        "a choice by the general way does not look at the hints again",
        CHOOSE,
        &[(
            "            if self.hints() == terms.hints() {\n                return choice;",
            "            if self.hints() == terms.hints() || choice.is_some() {\n                return choice;",
        )],
        Catcher::Model("c8_up_against_a_choice_by_count"),
    ),
    fault(
        "a choice by the general way takes terms whose hints are not those of now",
        CHOOSE,
        &[(
            "            if self.hints() != terms.hints()\n                || !renewal",
            "            if terms.engines() == 0\n                || !renewal",
        )],
        Catcher::Model("c8_a_higher_weight"),
    ),
    fault(
        "tokens that a dead process has not written are waited for",
        CHOOSE,
        &[(
            "            is_exact = true;\n",
            "            is_exact &= true;\n",
        )],
        Catcher::Model("k1_death_before_the_tokens_against"),
    ),
    fault(
        "the tokens of the chosen engine are those of another moment than its word",
        CHOOSE,
        &[(
            "true => self.counter.observe(least.engine()),",
            "true => (self.counter.load(least.engine()), self.counter.tokens[least.engine()].load(Ordering::Relaxed).tokens()),",
        )],
        Catcher::Model("k1_death_before_the_tokens_and"),
    ),
    fault(
        "the short way is taken under a cap of the table",
        TERMS,
        &[(
            "self.are_plain = !by_tokens && !source.hints.has_total_cap();",
            "self.are_plain = !by_tokens;",
        )],
        Catcher::Test("counting", "c4_"),
    ),
    fault(
        "a choice does not say that the table has a cap",
        "src/algorithm/place.rs",
        &[(
            "marks: if hints.has_total_cap() {",
            "marks: if hints.has_total_cap() && engine == usize::MAX {",
        )],
        Catcher::Model("c4_the_last_free_place_of_the_table"),
    ),
    fault(
        "engines without room for the tokens stay excluded for the next request",
        CHOOSE,
        &[("true => terms.include_all(),", "true => {}")],
        Catcher::Test("choosing", "c5_"),
    ),
    fault(
        "an excluded engine is preferred all the same",
        CHOOSE,
        &[(
            "        if !terms.admits(engine) {",
            "        if engine >= terms.engines() {",
        )],
        Catcher::Test("choosing", "c2_"),
    ),
    fault(
        "a preferred engine is one of those that are equal",
        CHOOSE,
        &[(
            "            *choice = Choice::new(engine, seen, terms.hints());",
            "            *choice = Choice::new(engine, seen, terms.hints()).tied(choice.is_tied());",
        )],
        Catcher::Test("counting", "c7_"),
    ),
    fault(
        "the slack of a preference is not on the scale of the loads",
        CHOOSE,
        &[("<= least + slack * terms.scale()", "<= least + slack")],
        Catcher::Test("choosing", "c2_"),
    ),
    fault(
        "engines without room for the tokens have a say in ties",
        CHOOSE,
        &[(
            "== least.load()\n                && self.has_room(engine, seen.1, tokens)",
            "== least.load()",
        )],
        Catcher::Test("counting", "c8_an_engine_without_room"),
    ),
    fault(
        "a weight without a common multiple makes the others unequal",
        TERMS,
        &[(
            "            self.0 = multiple;\n        }",
            "            self.0 = multiple;\n        } else {\n            self.0 = 1.0;\n        }",
        )],
        Catcher::Test("weights", "c7_ties_between_weights"),
    ),
    fault(
        "loads have no scale",
        TERMS,
        &[(
            "            self.0 = multiple;\n",
            "            self.0 = multiple.min(1.0);\n",
        )],
        Catcher::Test("choosing", "_with_weights_and_caps"),
    ),
    fault(
        "the scale is that of the former weights",
        TERMS,
        &[(
            "self.hints == source.hints && self.source.policy == source.policy;",
            "self.source.policy == source.policy;",
        )],
        Catcher::Test("choosing", "c8_"),
    ),
    fault(
        "statistics are not on the scale of the loads",
        TERMS,
        &[("            self.pressure[place] *= scale;\n", "")],
        Catcher::Test("choosing", "_with_weights_and_caps"),
    ),
    fault(
        "traffic that the table has not seen is not on the scale of the loads",
        TERMS,
        &[("            self.base[place] *= scale;\n", "")],
        Catcher::Test("choosing", "_with_weights_and_caps"),
    ),
    fault(
        "counts are compared where there is a queue",
        TERMS,
        &[(
            " && !has_penalty && self.base == 0.0",
            " && self.base == 0.0 && has_penalty == has_penalty",
        )],
        Catcher::Test("choosing", "c2_"),
    ),
    fault(
        "a floor counts as none",
        TERMS,
        &[("        self.floor <= 1.0\n", "        self.floor <= 9.0\n")],
        Catcher::Test("choosing", "c2_"),
    ),
    fault(
        "engines have no caps where counts are compared",
        TERMS,
        &[(
            "                capped |= term.cap < MAX_REQUESTS;\n",
            "                capped |= term.cap > MAX_REQUESTS;\n",
        )],
        Catcher::Test("counting", "c4_"),
    ),
    fault(
        "the engines behind the last eight are not looked at",
        VECTORS,
        &[("        rest.is_empty(),\n", "        rest.len() < 8,\n")],
        Catcher::Unit("scan"),
    ),
    fault(
        "engines that are equal and eight apart are not found equal",
        VECTORS,
        &[(
            "let is_tied = places & (places - 1) | v.signs(v.and(is_least, self.is_tied)) != 0;",
            "let is_tied = places & (places - 1) != 0;",
        )],
        Catcher::Unit("scan"),
    ),
    fault(
        "engines that are equal and in one eight are not found equal",
        VECTORS,
        &[(
            "let is_tied = places & (places - 1) | v.signs",
            "let is_tied = v.signs",
        )],
        Catcher::Unit("scan"),
    ),
    fault(
        "engines that were equal are taken for equal to a better one",
        VECTORS,
        &[(
            "self.is_tied = v.select(is_less, v.splat(0), v.or(self.is_tied, is_equal));",
            "self.is_tied = v.or(self.is_tied, is_equal);",
        )],
        Catcher::Unit("scan"),
    ),
    fault(
        "of engines that are eight apart and equal the first in number is chosen",
        VECTORS,
        &[(
            "let of_equals = v.select(is_equal, v.least_of_each(turn, self.turn), self.turn);",
            "let of_equals = self.turn;",
        )],
        Catcher::Unit("scan"),
    ),
    fault(
        "of eight engines that are equal the first in number is chosen",
        VECTORS,
        &[(
            "    let turn = match is_tied {",
            "    let turn = match is_tied && words.len() > 8 {",
        )],
        Catcher::Unit("scan"),
    ),
    fault(
        "caps are not looked at in vectors",
        VECTORS,
        &[(
            "v.if_less(occupancy, v.ints(&terms.cap), load, v.splat(CLOSED))",
            "v.if_less(occupancy, v.splat(0xf_ffff), load, v.splat(CLOSED))",
        )],
        Catcher::Unit("scan"),
    ),
    fault(
        "the words of a vector are in another order than its terms",
        "src/algorithm/scan/avx2.rs",
        &[(
            "_mm256_permute4x64_epi64::<0b11_01_10_00>",
            "_mm256_permute4x64_epi64::<0b11_10_01_00>",
        )],
        Catcher::Unit("scan"),
    ),
    fault(
        "the least of one half of a vector is taken for that of all",
        "src/algorithm/scan/avx2.rs",
        &[(
            "_mm256_permute2x128_si256::<0x01>",
            "_mm256_permute2x128_si256::<0x10>",
        )],
        Catcher::Unit("scan"),
    ),
    fault(
        "the vectors of the processor are not used",
        SCAN,
        &[(
            "if let Some(avx2) = avx2::Avx2::detect() {\n        let least",
            "if let Some(avx2) = avx2::Avx2::detect().filter(|_| words.len() > 4096) {\n        let least",
        )],
        Catcher::Unit("the_vectors_of_the_processor"),
    ),
    fault(
        "every second engine is passed over",
        SCAN,
        &[(
            "    let least = even.min(odd);\n",
            "    let least = even.min(odd | i64::MAX);\n",
        )],
        Catcher::Unit("scan"),
    ),
    fault(
        "the last engines are not compared with those that won",
        SCAN,
        &[("    if count <= 1 {\n", "    if count < 1 {\n")],
        Catcher::Unit("scan"),
    ),
    fault(
        "what a file says of limits unannounced is looked for without end",
        "src/frontend/choose/mod.rs",
        &[("            memory.terms.outdate();\n", "")],
        Catcher::Test("hostile", "f2_limits"),
    ),
    fault(
        "a request is not counted in the load of an engine with a weight",
        SCAN,
        &[(
            "let own = lanes.multiply(lanes.float(lanes.next(in_flight)), terms.cost());",
            "let own = lanes.multiply(lanes.float(in_flight), terms.cost());",
        )],
        Catcher::Test("weights", "c2_"),
    ),
    fault(
        "a request's tokens are not counted in the load of an engine with a weight",
        SCAN,
        &[(
            "(u64::from(tokens) + u64::from(of_request))",
            "(u64::from(tokens) + u64::from(of_request) * 0)",
        )],
        Catcher::Test("weights", "tokens"),
    ),
    fault(
        "engines that come later have their turns in the order of their numbers",
        "src/frontend/choose/tie_break.rs",
        &[(
            "engines.map(|engine| number(scattered(engine), engine))",
            "engines.map(|engine| number(scattered(engine) & 0, engine))",
        )],
        Catcher::Unit("c7_"),
    ),
];
