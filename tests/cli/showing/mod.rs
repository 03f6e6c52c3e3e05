//! `show`.

mod json;
mod text;
mod warnings;
mod watch;

use headcount::Table;
use headcount_tests::TestTable;

/// The line that begins with a word.
pub(crate) fn line<'a>(text: &'a str, first: &str) -> Vec<&'a str> {
    let mut lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = lines.find(|words| words.first() == Some(&first));
    found.unwrap_or_else(|| panic!("a line of {first} in {text}"))
}

/// A table in which no two figures are alike, and numbers have a gap.
pub(crate) fn unlike() -> (TestTable, Vec<headcount::Permit>) {
    let engine = |n: u32| headcount::Engine::named(format!("e{n}"));
    let options = Table::options().engine(engine(0)).engine(engine(1));
    let options = options.engine(engine(2).weight(2.0).max_in_flight(77).max_tokens(8_100));
    let table = TestTable::new(&options.engine(engine(3)));
    let frontend = table.join().unwrap();
    let request = headcount::Request::new().tokens(9);
    let mut permits = frontend.route_many_with(5, &request.pin(2_usize)).unwrap();
    permits.truncate(3);
    permits.push(frontend.route_with(&request.pin(3_usize)).unwrap());
    let stats = [0, 1, 2, 3].map(|n| {
        headcount::EngineStats::new()
            .waiting(10 + n)
            .running(20 + n)
            .kv_usage(0.25)
            .in_flight(30 + n)
    });
    table.publisher().unwrap().publish(&stats).unwrap();
    table.remove(0).unwrap();
    table.down(3).unwrap();
    (table, permits)
}
