//! Changes that an operator makes beside the configuration.

use headcount::{Engine, Options, Table};
use headcount_tests::TestTable;

#[test]
fn a_change_by_an_operator_keeps_no_worker_from_starting() {
    let options = || {
        Table::options()
            .engine(Engine::named("a").max_in_flight(2))
            .engine(Engine::named("b").weight(2.0))
            .max_in_flight(60)
    };
    let table = TestTable::new(&options());
    let open = |options: Options| options.open_or_create(table.path());
    for change in [
        |table: &Table| table.set_max_in_flight(0, Some(1)),
        |table: &Table| table.set_weight(1, 3.0),
        |table: &Table| table.add(Engine::named("c")).map(drop),
        |table: &Table| table.remove(0).map(drop),
        |table: &Table| table.set_total_max_in_flight(Some(9)),
        |table: &Table| table.set_total_max_tokens(Some(9)),
    ] {
        change(&table).unwrap();
        // The configuration is still the table's, in any order, and the operator's change stands.
        let before = table.view();
        open(options()).unwrap();
        let other_order = Table::options()
            .engine(Engine::named("b").weight(2.0))
            .engine(Engine::named("a").max_in_flight(2));
        open(other_order).unwrap();
        let after = table.view();
        assert_eq!(after.engines, before.engines);
        assert_eq!(after.max_in_flight, before.max_in_flight);
    }
    // What was neither configured nor is there does not fit.
    let differs = |options: Options| open(options).unwrap_err().to_string();
    let said = differs(options().max_in_flight(61));
    assert!(said.contains("max_in_flight is 9, not 61"), "{said}");
    let said = differs(options().max_tokens(8));
    assert!(said.contains("max_tokens is 9, not 8"), "{said}");
    let other = Table::options().engine(Engine::named("a").max_in_flight(3));
    let said = differs(other);
    assert!(said.contains("engine \"a\" is not in it"), "{said}");
    // What is there now fits as well.
    let now = Table::options()
        .engine(Engine::named("b").weight(3.0))
        .engine(Engine::named("c"))
        .max_in_flight(9);
    open(now.clone()).unwrap();
    // The next configuration takes the place of the last one.
    table.apply(&now.max_in_flight(10)).unwrap();
    let said = differs(options());
    assert!(said.contains("max_in_flight is 10, not 60"), "{said}");
    assert!(said.contains("engine \"a\" is not in it"), "{said}");
}
