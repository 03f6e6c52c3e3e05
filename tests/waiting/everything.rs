//! All at once: a short form of what `cargo xtask soak` runs for longer.

use std::process::Command;

#[test]
fn q4_no_place_is_lost_or_given_twice_while_processes_are_killed_and_stopped() {
    let run = Command::new(env!("CARGO_BIN_EXE_queue")).arg("4").output();
    let run = run.expect("starts the program");
    let said = String::from_utf8_lossy(&run.stdout);
    println!("{said}");
    assert!(run.status.success(), "{said}");
}
