//! API servers on headcount: real processes, real sockets, real signals. After whatever is done to
//! them, every count is what it should be, soon.

mod addresses;
mod again;
mod arguments;
mod batches;
mod bodies;
mod clients;
mod costs;
mod counts;
mod deployment;
mod descriptors;
mod draining;
mod engine;
mod engines;
mod engines_that_do_not_read;
mod framing;
mod hosts;
mod itself;
mod keepalive;
mod kills;
mod leaving;
mod load;
mod mock;
mod names;
mod network;
mod odd_json;
mod one_deployment;
mod pages;
mod proxying;
mod reload;
mod resolver;
mod shutdown;
mod slow_readers;
mod stream;
mod table_path;
mod unread;
