mod counting;
mod crashes;
mod publishing;
mod registry;
