//! Takes docs/top.svg: `headcount top` in a terminal, over a minute of real requests.

use crate::step::{Failed, cargo, target};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The path of the table, which the picture shows.
const TABLE: &str = "/dev/shm/llama";

/// The columns and rows of the terminal.
const SIZE: (&str, &str) = ("100", "18");

/// Takes the picture.
pub(crate) fn take() -> Result<(), Failed> {
    cargo("the command", "build --release --package headcount-cli").run()?;
    cargo(
        "the actor",
        "build --release --package headcount-tests --bin actor",
    )
    .run()?;
    let binaries = target().join("release");
    let headcount =
        |arguments: &[&str]| run(Command::new(binaries.join("headcount")).args(arguments));
    let mut create = vec!["create", TABLE, "--max-in-flight-total", "1000"];
    let engines = "gpu-0 gpu-1 gpu-2 gpu-3 http://10.0.0.7:8000=0.5";
    for engine in engines.split(' ') {
        create.extend(["--engine", engine]);
    }
    headcount(&create)?;
    let table = Removed;
    headcount(&["cap", TABLE, "gpu-1", "48"])?;
    let actor = binaries.join("actor");
    let mut frontends: Vec<_> = (0..3)
        .map(|_| Actor::start(&actor))
        .collect::<Result<_, _>>()?;
    for frontend in &mut frontends {
        frontend.tell(&json!("join"))?;
    }
    let mut publisher = Actor::start(&actor)?;
    publisher.tell(&json!("become-publisher"))?;
    let publish = json!({ "publish": { "number": 7 } });
    let terminal = Terminal::run(&binaries.join("headcount"))?;
    let start = Instant::now();
    // Bursts come and go in waves of different lengths. Each frontend in turn finishes all it has.
    while start.elapsed() < Duration::from_secs(64) {
        let seconds = start.elapsed().as_secs_f64();
        for (n, frontend) in frontends.iter_mut().enumerate() {
            let wave = (seconds / (5.0 + 4.0 * n as f64)).sin() + 1.0;
            if (seconds * 2.0) as usize % 3 == n {
                frontend.tell(&json!("finish-all"))?;
            }
            let requests = 4 + (wave * 12.0) as usize;
            frontend.tell(&json!({ "burst": { "requests": requests, "tokens": 700 } }))?;
        }
        publisher.tell(&publish)?;
        sleep(Duration::from_millis(450));
    }
    headcount(&["drain", TABLE, "gpu-3"])?;
    drop(frontends.pop());
    publisher.tell(&publish)?;
    sleep(Duration::from_millis(600));
    let screen = terminal.screen()?;
    drop((frontends, publisher, terminal, table));
    let svg = anstyle_svg::Term::new().render_svg(screen.trim_end());
    fs::write("docs/top.svg", svg).map_err(|error| Failed(format!("docs/top.svg: {error}")))
}

fn run(command: &mut Command) -> Result<Vec<u8>, Failed> {
    match command.stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(Failed(format!("{command:?}: {}", output.status))),
        Err(error) => Err(Failed(format!("{command:?}: {error}"))),
    }
}

/// Removes the table when it is dropped.
struct Removed;

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(TABLE);
    }
}

/// A process that has opened the table and takes orders. Dropping it kills it.
struct Actor(Child);

impl Actor {
    fn start(program: &Path) -> Result<Self, Failed> {
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut actor = command
            .spawn()
            .map(Self)
            .map_err(|e| Failed(e.to_string()))?;
        actor.tell(&json!({ "open": { "path": TABLE } }))?;
        Ok(actor)
    }

    /// Sends a task, as `headcount_tests::Task` is written.
    fn tell(&mut self, task: &Value) -> Result<(), Failed> {
        let input = self.0.stdin.as_mut();
        let mut input = input.ok_or_else(|| Failed("an actor without input".to_owned()))?;
        writeln!(&mut input, "{task}").map_err(|error| Failed(format!("an actor: {error}")))
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A terminal of a tmux server of its own.
struct Terminal;

impl Terminal {
    fn tmux(arguments: &[&str]) -> Result<Vec<u8>, Failed> {
        let mut tmux = Command::new("tmux");
        run(tmux
            .args(["-u", "-L", "headcount-picture", "-f", "/dev/null"])
            .args(arguments))
    }

    fn run(program: &Path) -> Result<Self, Failed> {
        let program = fs::canonicalize(program).map_err(|error| Failed(error.to_string()))?;
        let program = program.display().to_string();
        let size = ["-x", SIZE.0, "-y", SIZE.1];
        let start = [&["new-session", "-d"], &size[..], &[&program, "top", TABLE]].concat();
        Self::tmux(&start)?;
        Ok(Self)
    }

    fn screen(&self) -> Result<String, Failed> {
        let screen = Self::tmux(&["capture-pane", "-p", "-e"])?;
        String::from_utf8(screen).map_err(|error| Failed(error.to_string()))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Self::tmux(&["kill-server"]);
    }
}
