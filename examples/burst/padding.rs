//! What an uneven split costs: a batch is padded to the next size that has a CUDA graph, and every
//! engine waits for the largest.

/// The captured sizes: 1, 2, 4, then every 8 up to 256, then every 16.
pub(crate) fn padded(batch: u32) -> u32 {
    match batch {
        0..=2 => batch,
        3..=4 => 4,
        5..=256 => batch.next_multiple_of(8),
        _ => batch.next_multiple_of(16),
    }
}

/// How many more slots are decoded than with an even split, in per cent.
pub(crate) fn cost_percent(padded_batch: u32, even: u32) -> f64 {
    if even == 0 {
        0.0
    } else {
        100.0 * (f64::from(padded_batch) / f64::from(even) - 1.0)
    }
}
