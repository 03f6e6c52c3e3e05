mod auditing;
mod counting;
mod crashes;
mod holding;
mod publishing;
mod registry;
mod witnesses;
