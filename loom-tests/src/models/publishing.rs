//! S1 and S2: a publication is seen whole or not at all, also when its publisher dies.
//!
//! Bounds: a reader is torn if a writer comes in between two of its loads, one preemption, and
//! overtaken if it comes in several times; three are enough for each, with one writer.

use crate::algorithm::primitive::Ordering::Relaxed;
use crate::algorithm::seqlatch::{UNDER_PRESSURE, Unread};
use crate::death::live_for;
use crate::explore::{explore, explore_deaths, race};
use crate::scene::Scene;
use std::sync::Arc;

/// Reads; fails if the words are of different publications. 0 if there was no time to read one.
fn read(scene: &Scene) -> u64 {
    match scene
        .latch()
        .read(|copy| (copy.head[0].load(Relaxed), copy.head[1].load(Relaxed)))
    {
        Ok((one, two)) => {
            assert_eq!(one, two);
            one
        }
        Err(Unread::Overtaken | Unread::Empty) => 0,
    }
}

fn publish(scene: &Scene, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        scene.latch().publish([number, number], number % 2 == 0);
    }
}

#[test]
fn s1_a_reader_against_a_publisher() {
    // The fifth publication is the first to touch a copy that a reader may be reading.
    explore("read against publish", 3, || {
        let scene = Arc::new(Scene::new(1, 1));
        publish(&scene, 1..=2);
        let reads = scene.with(|scene| (read(scene), read(scene)));
        let (_, (first, second)) = race(scene.with(|scene| publish(scene, 3..=6)), reads);
        assert!(
            second == 0 || second >= first,
            "time does not run backwards"
        );
        assert_eq!(read(&scene), 6);
    });
}

#[test]
fn s2_a_publisher_dies_and_another_takes_over() {
    explore_deaths("death in publish", 2, |accesses| {
        let scene = Arc::new(Scene::new(1, 1));
        publish(&scene, 1..=4);
        // One dies in the middle of the fifth or the sixth; the lock passes on after that.
        let publishers = scene.with(move |scene| {
            let died = live_for(accesses, || publish(scene, 5..=6)).is_none();
            let last = read(scene);
            assert!((4..=6).contains(&last), "the last complete one stays");
            publish(scene, 7..=8);
            died
        });
        let (died, _) = race(publishers, scene.with(read));
        assert_eq!(read(&scene), 8);
        assert!(
            scene.latch().publication() & UNDER_PRESSURE != 0,
            "the eighth is under pressure"
        );
        died
    });
}

#[test]
fn a_route_by_a_snapshot_against_a_publication() {
    use crate::algorithm::word::Amount;
    explore("route against publish", 2, || {
        let scene = Arc::new(Scene::new(2, 1));
        let slot = scene.join();
        publish(&scene, 1..=3);
        let place = scene.with(move |scene| {
            let lane = scene.registry().lane(slot, 0);
            scene.rows().place(lane, Amount::request(2), || {
                let by_snapshot = scene.latch().read(|copy| {
                    let engine = (copy.head[0].load(Relaxed) % 2) as usize;
                    let is_whole = copy.head[0].load(Relaxed) == copy.head[1].load(Relaxed);
                    (scene.choice(engine), is_whole)
                });
                Ok::<_, ()>(match by_snapshot {
                    Ok((choice, is_whole)) => {
                        assert!(is_whole, "a choice is only made by a whole publication");
                        choice
                    }
                    Err(_) => scene.choice(0),
                })
            })
        });
        let (_, placed) = race(scene.with(|scene| publish(scene, 4..=7)), place);
        scene.assert_counts(&[(placed.unwrap().engine(), 2)]);
    });
}
