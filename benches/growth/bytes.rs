//! The bytes that tables take on their file system, measured on real files.

use headcount::Table;
use headcount_yardstick::MeasureError;
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub(crate) fn of_tables() -> Result<Value, MeasureError> {
    let directory = tempfile::tempdir_in("/dev/shm")?;
    let size = |engines, frontends, lanes| of_table(directory.path(), engines, frontends, lanes);
    let mut tables = Vec::new();
    for (engines, frontends, lanes) in [
        (1, 1, 1),
        (8, 8, 4),
        (64, 64, 4),
        (256, 64, 4),
        (1024, 256, 4),
        (4096, 1023, 4),
    ] {
        let (length, reserved) = size(engines, frontends, lanes)?;
        tables.push(json!({
            "max_engines": engines,
            "max_frontends": frontends,
            "lanes": lanes,
            "length": length,
            "reserved": reserved,
        }));
    }
    // Differences over many, for lines are filled up.
    let length = |engines, frontends, lanes| size(engines, frontends, lanes).map(|of| of.0 as f64);
    let engine = (length(1040, 1, 1)? - length(16, 1, 1)?) / 1024.0;
    let engine_of_lanes = (length(1040, 64, 4)? - length(16, 64, 4)?) / 1024.0;
    let frontend = (length(64, 65, 4)? - length(64, 1, 4)?) / 64.0;
    let lane = (length(64, 64, 4)? - length(64, 64, 1)?) / (64.0 * 3.0);
    Ok(json!({
        "tables": tables,
        "an_engine_with_one_lane": engine,
        "an_engine_with_256_lanes": engine_of_lanes,
        "a_frontend_of_4_lanes_with_64_engines": frontend,
        "a_lane_with_64_engines": lane,
    }))
}

/// The length of a table's file, and the memory that it has been given.
fn of_table(
    directory: &Path,
    engines: usize,
    frontends: usize,
    lanes: usize,
) -> Result<(u64, u64), MeasureError> {
    let path = directory.join("table");
    let options = Table::options()
        .max_engines(engines)
        .max_frontends(frontends);
    options.threads(lanes - 1).create(&path)?;
    let file = std::fs::metadata(&path)?;
    std::fs::remove_file(&path)?;
    Ok((file.len(), file.blocks() * 512))
}
