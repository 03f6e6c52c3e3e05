//! A scene in a process of its own, which may fork, end by a signal, or hang.

use crate::TestTable;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

const SCENE: &str = "HEADCOUNT_TEST_SCENE";
const PATH: &str = "HEADCOUNT_TEST_PATH";

/// How many seconds a scene may take before it counts as hanging.
const PATIENCE: u32 = 60;

/// How a scene's process ended.
#[derive(Debug)]
pub struct Ended {
    /// What it exited with.
    pub code: Option<i32>,
    /// The signal that it died of.
    pub signal: Option<i32>,
}

/// Runs the calling test once more, alone in a process of its own, where `scene` is called with the path of
/// the table and the process ends. A scene that takes too long dies of SIGALRM; one that panics exits
/// with 101.
///
/// `test` is the name of the calling test, without its module. Nothing uses the library before the scene in its
/// process, so the test may not do so before it calls this.
pub fn alone(
    test: &str,
    table: impl FnOnce() -> TestTable,
    scene: impl FnOnce(&Path),
) -> (TestTable, Ended) {
    if std::env::var(SCENE).is_ok_and(|name| name == test) {
        // SAFETY: ends this process should it hang.
        unsafe { libc::alarm(PATIENCE) };
        let path = std::env::var_os(PATH).expect("the path of the scene's table");
        scene(path.as_ref());
        std::process::exit(0);
    }
    let table = table();
    let program = std::env::current_exe().expect("the test's own program");
    let path = full_name(&program, test);
    let mut command = Command::new(program);
    command
        .args(["--exact", &path, "--test-threads", "1", "--nocapture"])
        .env(SCENE, test)
        .env(PATH, table.path())
        .stdout(Stdio::null());
    let status = command.status().expect("starts the scene");
    let ended = Ended {
        code: status.code(),
        signal: status.signal(),
    };
    (table, ended)
}

/// Runs a scene as [`alone`] does, and panics unless it ends well.
pub fn succeeds_alone(test: &str, table: impl FnOnce() -> TestTable, scene: impl FnOnce(&Path)) {
    let (_table, ended) = alone(test, table, scene);
    assert_eq!(ended.code, Some(0), "{test}: {ended:?}");
}

/// Forks a child that runs `act` and ends with what it returns. Returns the child's pid.
pub fn fork(act: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child only runs `act`, and ends by `_exit` or its alarm. It allocates, which the C
    // library allows in a forked child.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: ends this child should it hang.
            unsafe { libc::alarm(PATIENCE) };
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
            // SAFETY: ends this child.
            unsafe { libc::_exit(code.unwrap_or(101)) }
        }
        child => child,
    }
}

/// Waits for a child, and returns its status: 0 if it ended well.
pub fn wait(child: i32) -> i32 {
    let mut status = -1;
    // SAFETY: waits for a child of ours; writes to the integer only.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// The name of a test with its modules, as the program of the tests lists it. Panics if there is no such test: its
/// scene would not run.
fn full_name(program: &Path, test: &str) -> String {
    let mut command = Command::new(program);
    let listed = command.args(["--list", "--format", "terse"]).output();
    let listed = listed.expect("lists the tests").stdout;
    let listed = String::from_utf8(listed).expect("the names of tests are UTF-8");
    let names = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    let mut names = names.filter(|name| name.rsplit("::").next() == Some(test));
    let name = names.next().unwrap_or_else(|| panic!("no test {test}"));
    name.to_owned()
}
