//! S1: a reader sees a publication entirely or not at all, wherever it or the publisher stands.

use super::Pair;
use crate::Result;
use crate::scene::{Scene, ensure};
use headcount::{
    EngineStats, Error, Frontend, Options, PackedEngineStats, Policy, Publisher, Table, View,
};
use headcount_tests::{Lead, Tracee};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const ENGINES: usize = 4;

/// A way to read publications.
#[derive(Clone, Copy, Debug)]
enum Read {
    View,
    Stats,
    /// By a request whose policy reads the statistics of all engines.
    Route,
}

const READS: [Read; 3] = [Read::View, Read::Stats, Read::Route];

pub(super) fn pairs() -> Vec<Pair> {
    let read_at_each_point = READS.map(|read| {
        Pair::new(format!("Publish-{read:?}"), move |lead| {
            read_while_published(read, lead)
        })
    });
    let published_at_each_point = READS.into_iter().flat_map(|read| {
        // The copy that is being read is overwritten by the third publication, in part by the fourth.
        [1, 2, 3, 4, 9].map(|count| {
            Pair::new(format!("{read:?}Publication-Publish{count}"), move |lead| {
                published_while_read(read, count, lead)
            })
            .every(match read {
                Read::View => 13,
                Read::Stats | Read::Route => 1,
            })
        })
    });
    let publishers = Pair::new("Publisher-Publisher", two_publishers).every(3);
    (read_at_each_point.into_iter())
        .chain(published_at_each_point)
        .chain([publishers])
        .collect()
}

fn options() -> Options {
    let options = Table::options().engines(ENGINES).max_engines(ENGINES);
    options.max_frontends(3).threads(0)
}

/// The number of a publication stands everywhere in it.
fn publish(publisher: &mut Publisher, number: u32) -> headcount::Result<()> {
    let stats = EngineStats::new()
        .waiting(number)
        .running(number)
        .kv_usage(0.0)
        .in_flight(0);
    publisher.publish_with(&[stats; ENGINES], [number.into(); 2])
}

/// What was read, not evaluated yet.
enum Found {
    View(Box<View>),
    Stats([PackedEngineStats; ENGINES], [u64; 2]),
    Routed(Arc<[AtomicU32; ENGINES]>),
}

/// One that reads.
struct Reader {
    frontend: Frontend,
    seen: Arc<[AtomicU32; ENGINES]>,
}

impl Reader {
    fn of(table: &Table) -> Self {
        let seen: Arc<[AtomicU32; ENGINES]> = Arc::default();
        let to = Arc::clone(&seen);
        let policy = Policy::custom(move |engine| {
            let waiting = engine.stats.map_or(0, |stats| stats.waiting);
            // Relaxed: there is one thread.
            to[engine.engine.index()].store(waiting, Ordering::Relaxed);
            0.0
        });
        let frontend = table.join().expect("joins");
        Self {
            frontend: frontend.with_policy(policy.stale_after(Duration::MAX)),
            seen,
        }
    }

    fn read(self, how: Read) -> (Found, Frontend) {
        let table = self.frontend.table();
        let found = match how {
            Read::View => Found::View(Box::new(table.view())),
            Read::Stats => {
                let mut stats = [PackedEngineStats::default(); ENGINES];
                let read = table.read_stats(&mut stats);
                Found::Stats(stats, read.map_or([0; 2], |read| read.words))
            }
            Read::Route => {
                std::mem::forget(self.frontend.route());
                Found::Routed(self.seen)
            }
        };
        (found, self.frontend)
    }
}

impl Found {
    /// Returns the numbers of the publications that it is of: one, if it is whole.
    fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = match self {
            Self::View(view) => {
                let words = view.snapshot.map_or([0; 2], |snapshot| snapshot.words);
                let stats = view.engines.iter().flat_map(|engine| {
                    let stats = engine.stats.unwrap_or_default();
                    [stats.waiting.into(), stats.running.into()]
                });
                words.into_iter().chain(stats).collect()
            }
            Self::Stats(stats, words) => {
                let stats = stats.iter();
                let stats = stats.flat_map(|s| [s.waiting().into(), s.running().into()]);
                words.iter().copied().chain(stats).collect()
            }
            // Relaxed: there is one thread.
            Self::Routed(seen) => {
                let load = |number: &AtomicU32| number.load(Ordering::Relaxed).into();
                seen.iter().map(load).collect()
            }
        };
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

/// The publisher is stopped at each instruction.
fn read_while_published(read: Read, lead: &mut Lead) -> Result<bool> {
    let scene = Scene::new(&options())?;
    let mut child: Tracee<()> = Tracee::fork(
        || {
            let mut publisher = scene.table.publisher().expect("publishes");
            publish(&mut publisher, 1).expect("publishes");
            publisher
        },
        |mut publisher| (publish(&mut publisher, 2), publisher),
        |(published, publisher)| {
            published.expect("publishes");
            std::mem::forget(publisher);
        },
    )?;
    lead.lead(&mut child)?;
    let (found, _frontend) = Reader::of(&scene.table).read(read);
    let numbers = found.numbers();
    ensure(numbers == [1] || numbers == [2], || {
        format!("S1: read was a mix of publications {numbers:?}")
    })?;
    child.report()?;
    let (found, _frontend) = Reader::of(&scene.table).read(read);
    ensure(found.numbers() == [2], || {
        format!("S1: after the second, read was {:?}", found.numbers())
    })?;
    Ok(numbers == [1])
}

/// The reader is stopped at each instruction.
fn published_while_read(read: Read, count: u32, lead: &mut Lead) -> Result<bool> {
    let scene = Scene::new(&options())?;
    let mut publisher = scene.table.publisher()?;
    publish(&mut publisher, 1)?;
    let mut child: Tracee<Vec<u64>> = Tracee::fork(
        || Reader::of(&scene.table),
        |reader| reader.read(read),
        |found| {
            let numbers = found.0.numbers();
            std::mem::forget(found);
            numbers
        },
    )?;
    lead.lead(&mut child)?;
    for number in 2..2 + count {
        publish(&mut publisher, number)?;
    }
    let numbers = child.report()?;
    let newest = u64::from(1 + count);
    let oldest = match lead.instructions() {
        0 => newest,
        _ => 1,
    };
    let is_whole = numbers.len() == 1 && (oldest..=newest).contains(&numbers[0]);
    ensure(is_whole, || {
        format!("S1: read was a mix of publications {numbers:?}")
    })?;
    drop(child);
    scene.ends_well()?;
    Ok(true)
}

/// Of two that become the publisher one does, and the other is told so.
fn two_publishers(lead: &mut Lead) -> Result<bool> {
    let scene = Scene::new(&options())?;
    let mut child: Tracee<bool> = Tracee::fork(
        || scene.table.clone(),
        |table| table.publisher(),
        |publisher| {
            let publishes = publisher.is_ok();
            std::mem::forget(publisher);
            publishes
        },
    )?;
    lead.lead(&mut child)?;
    let other = match scene.table.publisher() {
        Ok(other) => Some(other),
        Err(Error::PublisherHeld { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let publishes = child.report()?;
    ensure(publishes != other.is_some(), || {
        format!("of two, one publishes: {publishes}, {}", other.is_some())
    })?;
    drop((child, other));
    drop(scene.table.publisher()?);
    Ok(!publishes)
}
