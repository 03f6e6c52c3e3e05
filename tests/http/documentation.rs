//! docs/server.md agrees with the program.

use crate::deployment::program;
use std::collections::BTreeMap;
use std::process::Command;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/server.md");

fn said(option: &str) -> String {
    let output = Command::new(program()).arg(option).output().unwrap();
    assert!(output.status.success(), "{option}");
    String::from_utf8(output.stdout).unwrap()
}

/// The options in `--help`, with their defaults, which some do not have.
fn options() -> BTreeMap<String, Option<String>> {
    let help = said("--help");
    let options = help.split("\n      --").skip(1).map(|entry| {
        let (form, text) = entry.split_once('\n').unwrap();
        let form = form.trim_end_matches('>').replace(" <", " ");
        // Of an option without a value that can be named, the text says what happens without it.
        let default = text.split("          \n          [default: ").nth(1);
        let default = default.and_then(|rest| rest.split(']').next());
        (format!("--{form}"), default.map(str::to_owned))
    });
    options.collect()
}

#[test]
fn the_table_of_settings_has_each_option_with_its_default_and_no_other() {
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let rows = document.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `--")?.split(" | ");
        let (form, default) = (cells.next()?.strip_suffix('`')?, cells.next()?);
        Some((format!("--{form}"), default.to_owned()))
    });
    let rows: BTreeMap<_, _> = rows.collect();
    let options = options();
    assert!(options.len() > 25, "{options:?}");
    assert!(rows.keys().eq(options.keys()), "{rows:#?}\n{options:#?}");
    for (form, default) in options {
        if let Some(default) = default {
            let told = rows[&form].starts_with(&format!("`{default}`"));
            assert!(told, "{form}: {}, and in --help {default}", rows[&form]);
        }
    }
}

#[test]
fn the_program_tells_its_name_and_version() {
    let version = format!("headcount-server {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(said("--version"), version);
    assert!(said("--help").contains("Usage: headcount-server "));
    let wrong = Command::new(program()).arg("--no-such").output().unwrap();
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("headcount-server"));
}
