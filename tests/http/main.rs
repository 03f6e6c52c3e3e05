//! API servers on headcount: real processes, real sockets, real signals. After whatever is done to
//! them, every count is what it should be, soon.

mod clients;
mod deployment;
mod draining;
mod engine;
mod engines;
mod itself;
mod kills;
mod load;
mod proxying;
mod reload;
mod stream;
mod table_path;
