//! What all measurements are made of: processes that take turns, and the alternatives.

/// The ratios to the limit, with what they are measured by.
#[path = "../../yardstick/src/lib.rs"]
pub mod ratios;

/// What one could use instead, each as its users would write it.
#[path = "../alternatives/mod.rs"]
pub mod alternatives;

/// Processes that publish in the background.
pub mod background;

/// How a program that measures ends.
pub mod outcome;
