//! C1 to C5 without deaths: operations of two lanes on the same engines.

use crate::explore::explore;
use crate::scene::Scene;
use loom::thread;
use std::sync::Arc;

#[test]
fn c2_two_lanes_route_to_the_same_engine() {
    explore("two lanes route", 3, || {
        let scene = Arc::new(Scene::new(2, 2));
        let (a, b) = (scene.join(), scene.join());
        let other = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.route(a, 0).unwrap())
        };
        let mine = scene.route(b, 0).unwrap();
        let theirs = other.join().unwrap();
        assert_ne!(mine, theirs, "two requests over two equal engines");
        scene.assert_counts(&[(0, 0), (1, 0)]);
    });
}

#[test]
fn c3_route_against_finish() {
    explore("route against finish", 3, || {
        let scene = Arc::new(Scene::new(1, 2));
        let (a, b) = (scene.join(), scene.join());
        let first = scene.route(a, 5).unwrap();
        let other = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.finish(a, first, 5))
        };
        let mine = scene.route(b, 7).unwrap();
        other.join().unwrap();
        scene.assert_counts(&[(mine, 7)]);
        scene.finish(b, mine, 7);
        scene.assert_counts(&[]);
    });
}

#[test]
fn c5_two_lanes_route_with_tokens_while_a_third_looks() {
    explore("tokens are seen with their requests", 2, || {
        let scene = Arc::new(Scene::new(1, 2));
        let (a, b) = (scene.join(), scene.join());
        let other = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.route(a, 10))
        };
        let looker = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.counted(0))
        };
        scene.route(b, 10);
        let (requests, tokens) = looker.join().unwrap();
        assert_eq!(tokens, 10 * requests);
        other.join().unwrap();
        scene.assert_counts(&[(0, 10), (0, 10)]);
    });
}

#[test]
fn c4_the_last_free_place_and_two_takers() {
    explore("the last place of an engine", 3, || {
        let scene = Arc::new(Scene::new(1, 2).with_cap(1));
        let (a, b) = (scene.join(), scene.join());
        let other = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.route(a, 0))
        };
        let mine = scene.route(b, 0);
        let theirs = other.join().unwrap();
        assert!(mine.is_some() != theirs.is_some(), "one of the two");
        scene.assert_counts(&[(0, 0)]);
    });
}

#[test]
fn c4_the_last_free_place_of_the_table_and_two_takers() {
    explore("the last place of the table", 2, || {
        let scene = Arc::new(Scene::new(2, 2).with_total(1));
        let (a, b) = (scene.join(), scene.join());
        let other = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.route(a, 3))
        };
        let mine = scene.route(b, 3);
        let theirs = other.join().unwrap();
        assert!(mine.is_some() != theirs.is_some(), "one of the two");
        let engine = mine.or(theirs).unwrap();
        scene.assert_counts(&[(engine, 3)]);
    });
}

#[test]
fn c3_a_permit_is_finished_by_another_lane_of_its_frontend() {
    explore("a permit dropped on another thread", 3, || {
        let scene = Arc::new(Scene::with_lanes(1, 1, 2));
        let slot = scene.join();
        let (one, two) = (
            scene.registry().lane(slot, 0),
            scene.registry().lane(slot, 1),
        );
        let permit = scene.route_as(one, 4).unwrap();
        let other = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.finish_as(two, permit, 4))
        };
        let mine = scene.route_as(one, 6).unwrap();
        other.join().unwrap();
        scene.assert_counts(&[(mine, 6)]);
        assert_eq!(
            (scene.held(slot, 0).requests(), scene.held(slot, 0).tokens()),
            (1, 6)
        );
    });
}
