//! How fast a table is on this machine, as ratios to yardsticks: the cheapest code that could do the same.
//!
//! `headcount bench` and the benchmarks use it. It is a package of its own, so it sees no more of the
//! library than users do.
//!
//! Each ratio is taken between two [workloads](Workload). The same processes run both alternately, in
//! [slices](SLICE) of half a millisecond, many times. So a disturbance by the machine meets both.
//!
//! [`measure`] returns the project's own ratios. [`Processes`] and [`Alternation`] compare other workloads.

mod alternation;
mod bare_choice;
mod contenders;
mod deployment;
mod error;
mod in_flight;
mod locked;
mod machine;
mod ours;
mod pair;
mod processes;
mod ratios;
mod robust_mutex;
mod shared;

pub use alternation::{Alternation, Times, median};
pub use bare_choice::BareChoice;
pub use contenders::{Contenders, Workload};
pub use deployment::{
    calm, fresh_table, pressed, pressed_in_flight, pressed_statistics, pressed_table,
};
pub use error::MeasureError;
pub use locked::{Lock, LockedTable};
pub use machine::{Cache, Machine};
pub use ours::{
    read_statistics, route_and_finish, route_and_finish_another, route_shaped_and_finish_another,
};
pub use pair::{bare_pair, plain_loads, shared_line, shared_words};
pub use processes::{Gate, Processes, Worker};
pub use ratios::{Ratio, measure};
pub use robust_mutex::RobustMutex;
pub use shared::Shared;

use std::time::Duration;

/// How long each contender runs before the next one does.
pub const SLICE: Duration = Duration::from_micros(500);
