//! A name is read whole, with its own generation, or not at all.
//!
//! Bounds: the reader has to come in between two accesses of the writer, and again; three preemptions
//! let it.

use crate::algorithm::name::Name;
use crate::algorithm::word::RowState;
use crate::explore::{explore, race};
use crate::scene::Scene;
use std::sync::Arc;

const OLD: &[u8] = b"the old one";
const NEW: &[u8] = b"a new name!!";

#[test]
fn a_name_is_never_torn() {
    explore("a name is read while it changes", 3, || {
        let name = Arc::new(Name::<2>::new());
        name.write(OLD);
        let (writer, reader) = (Arc::clone(&name), Arc::clone(&name));
        let ((), read) = race(move || writer.write(NEW), move || reader.read());
        match read {
            None => {}
            Some((bytes, 2)) => assert_eq!(bytes, OLD),
            Some((bytes, 4)) => assert_eq!(bytes, NEW),
            Some((_, generation)) => panic!("generation {generation}"),
        }
        assert_eq!(name.read(), Some((NEW.to_vec(), 4)));
    });
}

#[test]
fn a_name_whose_writer_died_is_none_until_it_is_written_again() {
    explore("a name left half-way", 1, || {
        let name = Name::<2>::new();
        name.write(OLD);
        name.leave_half_way();
        assert_eq!(name.read(), None);
        name.write(NEW);
        assert_eq!(name.read(), Some((NEW.to_vec(), 4)));
    });
}

#[test]
fn c8_a_change_by_generation_never_hits_the_next_engine_of_the_slot() {
    explore("a change of an engine that is replaced", 3, || {
        let (scene, name) = (Arc::new(Scene::new(1, 1)), Arc::new(Name::<2>::new()));
        name.write(OLD);
        let (next, found) = (Arc::clone(&name), name.generation());
        let drain = scene.with(move |scene: &Scene| {
            let is_it = || name.generation() == found;
            (scene.rows()).rewrite_engine(0, is_it, |_| Some(RowState::Draining))
        });
        let replace = scene.with(move |scene: &Scene| {
            scene.rewrite(0, RowState::Removed);
            next.write(NEW);
            scene.rewrite(0, RowState::Active);
        });
        let (drained, ()) = race(drain, replace);
        let state = scene.counter().load(0).state();
        assert_eq!(state, RowState::Active, "after {drained:?}");
    });
}
