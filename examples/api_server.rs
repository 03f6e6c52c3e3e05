//! How to build an API server on headcount.
fn main() {}
