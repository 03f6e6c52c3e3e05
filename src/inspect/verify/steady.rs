//! Looking at something that others may be changing.

use std::thread;
use std::time::{Duration, Instant};

/// What one look has shown.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Look<T> {
    /// It is right.
    Fine,
    /// It is wrong, in this way.
    Wrong(T),
    /// It moved while we looked, which says nothing.
    Moved,
}

/// The same wrong thing has to be seen so often, with a pause in between, to be believed. A fault in
/// the file does not go away; what a look has put together from two moments does.
const SIGHTINGS: usize = 3;
const PAUSE: Duration = Duration::from_millis(1);

/// So many looks may show something that moves, before it is called busy. One takes microseconds.
const LOOKS: usize = 5_000;
/// The longest that they may take together: a file may be crafted so that each look is slow.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks until what is seen can be believed.
pub(super) fn steady<T: PartialEq>(mut look: impl FnMut() -> Look<T>) -> Look<T> {
    let mut last = None;
    let mut sightings = 0;
    let start = Instant::now();
    for n in 1..=LOOKS {
        match look() {
            Look::Fine => return Look::Fine,
            Look::Wrong(what) => {
                sightings = match last.as_ref() == Some(&what) {
                    true => sightings + 1,
                    false => 1,
                };
                if sightings == SIGHTINGS {
                    return Look::Wrong(what);
                }
                last = Some(what);
                thread::sleep(PAUSE);
            }
            Look::Moved if start.elapsed() > PATIENCE => return Look::Moved,
            // The process that is changing it may be waiting for this processor.
            Look::Moved if n % 64 == 0 => thread::yield_now(),
            Look::Moved => {}
        }
    }
    Look::Moved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(mut looks: Vec<Look<u32>>) -> Look<u32> {
        looks.reverse();
        steady(|| looks.pop().unwrap_or(Look::Moved))
    }

    #[test]
    fn f2_looks_that_a_file_makes_slow_come_to_an_end() {
        let mut looks = 0;
        let look = || {
            looks += 1;
            thread::sleep(Duration::from_millis(20));
            Look::Moved
        };
        assert_eq!(steady::<u32>(look), Look::Moved);
        assert!(looks <= 101, "{looks}");
    }

    #[test]
    fn what_is_wrong_has_to_be_seen_again() {
        use Look::{Fine, Moved, Wrong};
        assert_eq!(told(vec![Moved, Wrong(1), Fine]), Fine);
        assert_eq!(told(vec![Wrong(1), Moved, Wrong(1), Wrong(1)]), Wrong(1));
        assert_eq!(told(vec![Wrong(1), Wrong(2), Wrong(1), Wrong(1)]), Moved);
        assert_eq!(told(vec![]), Moved);
    }
}
