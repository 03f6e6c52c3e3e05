//! Threads that do one thing until their process ends, or until it fails.

use headcount::{Engine, Publisher, Table};
use headcount_tests::many_engines;
use std::path::PathBuf;
use std::thread;

/// Publishes statistics of `engines` engines.
pub(crate) fn publish(mut publisher: Publisher, engines: usize) {
    thread::spawn(move || {
        for number in 1_u32.. {
            if crate::publish(&mut publisher, engines, number).is_err() {
                return;
            }
        }
    });
}

/// Applies two configurations alternately.
pub(crate) fn apply(table: Table) {
    thread::spawn(move || {
        let both = [many_engines(0), many_engines(1)];
        while both.iter().all(|options| table.apply(options).is_ok()) {}
    });
}

/// Reaps.
pub(crate) fn reap(table: Table) {
    thread::spawn(move || while table.reap().is_ok() {});
}

/// Opens a table.
pub(crate) fn open(path: PathBuf) {
    thread::spawn(move || while Table::open(&path).is_ok() {});
}

/// Adds engines of several names, and removes them.
pub(crate) fn add_and_remove(table: Table) {
    thread::spawn(move || {
        let cycle = |n: u32| table.remove(table.add(Engine::named(format!("{n}-{n}")))?);
        while (10_000..10_100).all(|n| cycle(n).is_ok()) {}
    });
}
