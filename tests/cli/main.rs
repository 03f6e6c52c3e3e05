//! The `headcount` command as its users use it: the built binary, live tables, real frontends.

mod applying;
mod bench;
mod changing;
mod colours;
mod command;
mod ending;
mod generated;
mod listing;
mod metrics;
mod queue;
mod reading;
mod scene;
mod showing;
mod signals;
mod tmux;
mod top;
mod typing;
mod verifying;
