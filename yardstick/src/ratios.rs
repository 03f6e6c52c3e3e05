//! The project's own ratios.

use super::{
    Alternation, BareChoice, Contenders, LockedTable, MeasureError, Processes, RobustMutex, SLICE,
    Times, bare_pair, calm, fresh_table, plain_loads, pressed_in_flight, pressed_statistics,
    pressed_table, read_statistics, route_and_finish, route_and_finish_another,
    route_shaped_and_finish_another, shared_line, shared_words,
};
use headcount::{EngineStats, Publisher, Table};

/// A ratio, and what it should be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio {
    /// Its name.
    pub name: &'static str,
    /// The operation of the table.
    pub operation: &'static str,
    /// The number of engines.
    pub engines: usize,
    /// What the operation is compared with.
    pub yardstick: &'static str,
    /// What the ratio tells: the words before its value, and those after it.
    pub meaning: [&'static str; 2],
    /// The median over all rounds.
    pub value: f64,
    /// The median time of the operation, in nanoseconds.
    pub takes: f64,
    /// The median time of the yardstick, in nanoseconds.
    pub yardstick_takes: f64,
    /// The value that the project requires.
    pub must: f64,
    /// The value that the project aims at.
    pub aim: f64,
    /// Whether a larger value is better: then the yardstick is divided by the operation.
    pub more_is_better: bool,
    /// In how many rounds no other program took a core.
    pub undisturbed: usize,
}

impl Ratio {
    /// Whether the ratio is at least as good as `limit`.
    pub fn reaches(&self, limit: f64) -> bool {
        if self.more_is_better {
            self.value >= limit
        } else {
            self.value <= limit
        }
    }
}

/// Measures all ratios, which takes a few seconds.
///
/// It forks, so no other thread of this process may run.
///
/// # Errors
///
/// A sentence, if the system refuses memory or processes, or a process ends before it has answered.
pub fn measure(rounds: usize) -> Result<Vec<Ratio>, MeasureError> {
    let alone = alone(rounds)?;
    let by_two = by_two(rounds)?;
    let in_first = ALONE.iter().map(|plan| plan.ratio(&alone));
    let in_second = BY_TWO.iter().map(|plan| plan.ratio(&by_two));
    Ok(in_first.chain(in_second).collect())
}

/// A ratio to be taken between two of the contenders.
struct Plan {
    name: &'static str,
    operation: &'static str,
    engines: usize,
    yardstick: &'static str,
    meaning: [&'static str; 2],
    /// The number of the contender that is the table's operation, and that of the yardstick.
    contenders: [usize; 2],
    must: f64,
    aim: f64,
}

impl Plan {
    fn ratio(&self, times: &Times) -> Ratio {
        let [ours, yardstick] = self.contenders;
        let more_is_better = self.aim > self.must;
        Ratio {
            name: self.name,
            operation: self.operation,
            engines: self.engines,
            yardstick: self.yardstick,
            meaning: self.meaning,
            value: match more_is_better {
                true => times.ratio(yardstick, ours),
                false => times.ratio(ours, yardstick),
            },
            takes: times.nanoseconds(ours),
            yardstick_takes: times.nanoseconds(yardstick),
            must: self.must,
            aim: self.aim,
            more_is_better,
            undisturbed: times.undisturbed,
        }
    }
}

const ENGINES: [usize; 3] = [8, 64, 256];

// The contenders of one process: four for each number of engines, and then these.
const CHOICE: usize = 0;
const ROUTE: usize = 1;
const BUSY_CHOICE: usize = 2;
const PRESSED: usize = 3;
const fn of_8(contender: usize) -> usize {
    contender
}
const fn of_64(contender: usize) -> usize {
    4 + contender
}
const fn of_256(contender: usize) -> usize {
    8 + contender
}
const SHAPED: usize = 12;
const LOADS: usize = 13;
const STATISTICS: usize = 14;
const COUNT_ALONE: usize = 15;

const CALM_ROUTE: &str = "route + finish, calm engines";
const PRESSED_ROUTE: &str = "route + finish, KV pressure, weights, caps";
const CONTENDED_ROUTE: &str = "route + finish, two processes at once";
const BARE_CHOICE: &str = "bare choice";
const BUSY_BARE_CHOICE: &str = "bare choice, requests in flight";
const THAN_BARE: &str = "times as long as a bare choice";

const ALONE: [Plan; 8] = [
    Plan {
        name: "route_finish_e8",
        operation: CALM_ROUTE,
        engines: 8,
        yardstick: BARE_CHOICE,
        meaning: ["A request among 8 calm engines takes", THAN_BARE],
        contenders: [of_8(ROUTE), of_8(CHOICE)],
        must: 1.8,
        aim: 1.3,
    },
    Plan {
        name: "route_finish_e64",
        operation: CALM_ROUTE,
        engines: 64,
        yardstick: BARE_CHOICE,
        meaning: ["A request among 64 calm engines takes", THAN_BARE],
        contenders: [of_64(ROUTE), of_64(CHOICE)],
        must: 1.1,
        aim: 0.6,
    },
    Plan {
        name: "route_finish_e256",
        operation: CALM_ROUTE,
        engines: 256,
        yardstick: BARE_CHOICE,
        meaning: ["A request among 256 calm engines takes", THAN_BARE],
        contenders: [of_256(ROUTE), of_256(CHOICE)],
        must: 0.9,
        aim: 0.4,
    },
    Plan {
        name: "pressed_e8",
        operation: PRESSED_ROUTE,
        engines: 8,
        yardstick: BUSY_BARE_CHOICE,
        meaning: ["A request among 8 engines under pressure takes", THAN_BARE],
        contenders: [of_8(PRESSED), of_8(BUSY_CHOICE)],
        must: 2.4,
        aim: 1.6,
    },
    Plan {
        name: "pressed_e64",
        operation: PRESSED_ROUTE,
        engines: 64,
        yardstick: BUSY_BARE_CHOICE,
        meaning: ["A request among 64 engines under pressure takes", THAN_BARE],
        contenders: [of_64(PRESSED), of_64(BUSY_CHOICE)],
        must: 1.6,
        aim: 0.9,
    },
    Plan {
        name: "pressed_e256",
        operation: PRESSED_ROUTE,
        engines: 256,
        yardstick: BUSY_BARE_CHOICE,
        meaning: [
            "A request among 256 engines under pressure takes",
            THAN_BARE,
        ],
        contenders: [of_256(PRESSED), of_256(BUSY_CHOICE)],
        must: 1.3,
        aim: 0.8,
    },
    Plan {
        name: "shaped_e64",
        operation: "the same with tokens, 2 excluded, 1 preferred",
        engines: 64,
        yardstick: BUSY_BARE_CHOICE,
        meaning: [
            "A request with tokens, exclusions and a preference takes",
            THAN_BARE,
        ],
        contenders: [SHAPED, of_64(BUSY_CHOICE)],
        must: 1.8,
        aim: 1.1,
    },
    Plan {
        name: "snapshot_read_e8",
        operation: "read of all statistics",
        engines: 8,
        yardstick: "ten plain loads",
        meaning: [
            "A consistent read of 8 engines' statistics takes",
            "times as long as ten plain loads",
        ],
        contenders: [STATISTICS, LOADS],
        must: 2.6,
        aim: 1.5,
    },
];

/// Measures the contenders of one process.
fn alone(rounds: usize) -> Result<Times, MeasureError> {
    let (mut calm_tables, mut pressed_tables, mut choices) = (Vec::new(), Vec::new(), Vec::new());
    for engines in ENGINES {
        calm_tables.push(fresh_table(engines)?);
        pressed_tables.push(pressed_table(engines)?);
        choices.push([BareChoice::new(engines)?, BareChoice::new(engines)?]);
    }
    let shaped_table = pressed_table(ENGINES[1])?;
    let words = shared_words()?;
    let mut processes = Processes::start(1, |worker| {
        let mut workloads = Vec::with_capacity(COUNT_ALONE);
        for (number, engines) in ENGINES.into_iter().enumerate() {
            let in_flight = pressed_in_flight(engines);
            let [idle, busy] = &choices[number];
            let pressed = pressed_tables[number].join()?;
            workloads.push(idle.choose_and_finish());
            workloads.push(route_and_finish(calm_tables[number].join()?));
            workloads.push(busy.choose_and_finish_another(in_flight));
            workloads.push(route_and_finish_another(pressed, in_flight)?);
        }
        let in_flight = pressed_in_flight(ENGINES[1]);
        let shaped = shaped_table.join()?;
        workloads.push(route_shaped_and_finish_another(shaped, in_flight)?);
        workloads.push(plain_loads(&words));
        workloads.push(read_statistics(&calm_tables[0], ENGINES[0]));
        Ok(Contenders::new(worker, workloads))
    })?;
    let mut publishers = Publishers::default();
    for (table, engines) in calm_tables.iter().zip(ENGINES) {
        publishers.add(table, vec![calm(); engines])?;
    }
    for (table, engines) in pressed_tables.iter().zip(ENGINES) {
        publishers.add(table, pressed_statistics(engines))?;
    }
    publishers.add(&shaped_table, pressed_statistics(ENGINES[1]))?;
    Alternation::new(COUNT_ALONE, rounds, SLICE)
        .before_each_round(|| publishers.publish())
        .run(&mut processes)
}

// The contenders of two processes that write the same words.
const PAIR: usize = 0;
const OURS: usize = 1;
const LOCKED: usize = 2;
const COUNT_BY_TWO: usize = 3;

const BY_TWO: [Plan; 2] = [
    Plan {
        name: "contended_p2_e8",
        operation: CONTENDED_ROUTE,
        engines: 8,
        yardstick: "fetch_add + fetch_sub, two processes at once",
        meaning: [
            "With two processes at once, a request takes",
            "times as long as to add one and subtract one",
        ],
        contenders: [OURS, PAIR],
        must: 4.5,
        aim: 3.0,
    },
    Plan {
        name: "vs_robust_mutex",
        operation: CONTENDED_ROUTE,
        engines: 8,
        yardstick: "the table behind a robust mutex",
        meaning: [
            "With two processes at once, a table behind a robust mutex takes",
            "times as long",
        ],
        contenders: [OURS, LOCKED],
        must: 2.0,
        aim: 4.0,
    },
];

/// Measures the contenders of two processes.
fn by_two(rounds: usize) -> Result<Times, MeasureError> {
    let table = fresh_table(ENGINES[0])?;
    let line = shared_line()?;
    let locked = LockedTable::<RobustMutex>::new(ENGINES[0])?;
    let mut processes = Processes::start(2, |worker| {
        let workloads = vec![
            bare_pair(&line),
            route_and_finish(table.join()?),
            locked.route_and_finish(worker.index),
        ];
        Ok(Contenders::new(worker, workloads))
    })?;
    let mut publishers = Publishers::default();
    publishers.add(&table, vec![calm(); ENGINES[0]])?;
    Alternation::new(COUNT_BY_TWO, rounds, SLICE)
        .before_each_round(|| publishers.publish())
        .run(&mut processes)
}

/// Publishers that publish the same again, since policies ignore a snapshot after a second.
#[derive(Default)]
struct Publishers(Vec<(Publisher, Vec<EngineStats>)>);

impl Publishers {
    fn add(&mut self, table: &Table, statistics: Vec<EngineStats>) -> Result<(), MeasureError> {
        self.0.push((table.publisher()?, statistics));
        Ok(())
    }

    fn publish(&mut self) -> Result<(), MeasureError> {
        for (publisher, statistics) in &mut self.0 {
            publisher.publish(statistics)?;
        }
        Ok(())
    }
}
