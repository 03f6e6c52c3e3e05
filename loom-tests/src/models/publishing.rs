//! S1 and S2: a publication is seen whole or not at all.

use crate::algorithm::latch::Unread;
use crate::explore::explore;
use crate::scene::Scene;
use loom::thread;
use std::sync::Arc;

#[test]
fn s1_a_reader_against_a_publisher() {
    // Five publications reuse the first one's copy, so a reader can be overtaken.
    explore("read against publish", 3, || {
        let scene = Arc::new(Scene::new(1, 1));
        (1..=2).for_each(|n| scene.latch().publish([n, n]));
        let publisher = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || (3..=6).for_each(|n| scene.latch().publish([n, n])))
        };
        match scene.latch().read(|copy| (copy.word(0), copy.word(1))) {
            Ok((one, two)) => assert!(one == two && one >= 2, "{one} beside {two}"),
            Err(unread) => assert_eq!(unread, Unread::Overtaken),
        }
        publisher.join().unwrap();
    });
}
