//! Every operation by itself: `cargo bench --bench operations`, with a part of a name for only some.

mod join;
mod publish;
mod route;
mod sampling;

use criterion::{criterion_group, criterion_main};

criterion_group! {
    name = operations;
    config = sampling::quick();
    targets = route::all, publish::all, join::all
}
criterion_main!(operations);
