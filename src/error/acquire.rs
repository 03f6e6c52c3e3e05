//! Why a request has not got a place by waiting.

use super::RouteError;
use std::time::Duration;

/// Why a request has not got a place; from [`Frontend::acquire`](crate::Frontend::acquire) and
/// [`acquire_async`](crate::Frontend::acquire_async). Nothing is counted for the request any more.
///
/// ```
/// use headcount::{AcquireError, RouteError};
///
/// /// The status of an HTTP answer.
/// fn status(error: &AcquireError) -> u16 {
///     match error {
///         // With a `Retry-After`. Some answer 429 to the first one.
///         AcquireError::QueueFull { .. } | AcquireError::WaitedTooLong { .. } => 503,
///         AcquireError::Route(RouteError::Unavailable(_)) => 503,
///         AcquireError::Route(RouteError::Saturated { .. }) => 413, // larger than the caps
///         _ => 500,
///     }
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// No engine can take the request, now or by waiting: see the error. While the request waited, the engine that it
    /// was pinned to may have been removed, or all engines have gone down.
    #[error(transparent)]
    Route(#[from] RouteError),

    /// As many requests wait as [`Options::max_waiting`](crate::Options::max_waiting) allows, in all or of the request's
    /// class. The request has not waited. Answer 503 (some say 429) with a `Retry-After`.
    #[error("{}", full(*.class, *.retry_after))]
    QueueFull {
        /// The class whose own bound it is. `None`: the bound of all classes together.
        class: Option<u8>,
        /// How long a request at the end of the queue would wait until it is served, by the rate at which requests that
        /// waited were served lately. The queue itself has room sooner. `None`: not known.
        retry_after: Option<Duration>,
    },

    /// The request's time was over before it got a place.
    #[error(
        "the request waited for {waited:.1?} and got no place in that time; wait longer, or answer that the service is busy"
    )]
    WaitedTooLong {
        /// How long it has waited.
        waited: Duration,
    },

    /// The caller has told the call to end: see [`Frontend::acquire_while`](crate::Frontend::acquire_while).
    #[error("the caller ended the wait for a place")]
    Cancelled,

    /// The table has no queue, and has no place for the request. Set
    /// [`Options::max_waiting`](crate::Options::max_waiting) when the table is created, or by
    /// [`Table::apply`](crate::Table::apply).
    #[error(
        "the table has no queue, and no place for this request now; create it with `max_waiting`, or apply that to it"
    )]
    NoQueue,

    /// The kernel did not start the thread that waits for tasks.
    #[error("could not start the thread that waits for tasks: {}", std::io::Error::from_raw_os_error(*.errno))]
    NoThread {
        /// The kernel's error.
        errno: i32,
    },
}

fn full(class: Option<u8>, retry_after: Option<Duration>) -> String {
    let who = match class {
        None => "as many requests wait as the table's `max_waiting` allows".to_owned(),
        Some(class) => {
            format!(
                "as many requests of class {class} wait as the table's bound for that class allows"
            )
        }
    };
    match retry_after {
        None => format!("{who}; try again later"),
        Some(after) => format!("{who}; try again in {after:.1?}"),
    }
}
