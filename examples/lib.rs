//! Programs to learn from, and to see what headcount is good for.
//!
//! - `api_server`: how to build an API server on headcount, in one file.
//! - `burst`: bursts of requests over engines, with exact counts and with the strategies of today; and what
//!   leaks when processes are killed.
//! - `http_load`: load for HTTP servers, in a closed loop or an open one, and what came of it.
//!
//! Run one with `cargo run --release --example burst`.
