//! A process that acts on a table, told by its standard input. One command a line, one answer each.
//!
//! | command | answer |
//! |---|---|
//! | `open PATH`, `open-any-owner PATH`, `create PATH ENGINES`, `inherit`, `inherit-with-threads N` | `ok` |
//! | `join` | `slot S` |
//! | `leave` | `ok` |
//! | `route [tokens N] [pin E]` | `engine E`; the permit is kept |
//! | `burst N`, `burst-tokens N T` | how many of the N each engine got; the permits are kept |
//! | `many N` | the same, by `route_many` |
//! | `finish-all` | `ok` |
//! | `held` | how many permits are kept for each engine |
//! | `held-tokens` | the tokens of these |
//! | `tie N` | how often each engine was chosen in N times route and finish |
//! | `churn THREADS` | `ok`; routes and finishes until killed or told `pause` |
//! | `pause` | `ok`; the threads have stopped, and what they hold is in `held` |
//! | `work-done` | how many operations the threads did since this was asked, and the longest in ns |
//! | `publish N`, `publish-forever` | `ok`; statistics that all say the same number |
//! | `publisher` | `ok` |
//! | `deploy` | `ok` |
//! | `apply-forever` | `ok`, and applies the configurations `many_engines(0)` and `(1)` by turns |
//! | `reap-forever`, `open-forever PATH` | `ok` |
//! | `add-and-remove-forever` | `ok`; engines of several names |
//! | `add NAME`, `remove NAME` | the number of the engine |
//! | `come-and-go` | `ok`; for ever, an engine that others may change and one that they may not, in one slot |
//! | `came-and-went` | how often the latter came, and how often it was found changed |
//! | `fork-and-live` | the child's pid; the child keeps its copies and does nothing |
//! | `fork-and-use` | what the child was told when it used its copies |
//! | `fork-while-joining N` | how many of N forks fell into a join, as threads join and leave, and the pids of the children, which live on |
//! | `fork-while-opening PATH` | whether a fork fell `amid` the opening of PATH by a thread, if its child can open it, too |
//! | `fork-while-reaping N` | `ok`, if each of N children that were forked while a thread reaps can reap |
//! | `use-up-descriptors` | `ok`; no more can be opened |
//! | `reap` | `F frontends R requests` |
//! | `path-state` | `Here`, `Gone`, `Replaced` or `NoPath` |
//! | `child-has-table` | the file that a child of this process has at the number of the table that it inherited |
//! | `child-inherits [PATH]` | what a child of this process is told when it inherits; PATH: it has that file at the table's number |
//! | `reap-every MS` | `ok` |
//! | `reaper-says` | the last error of that reaper, or `nothing` |
//! | `crash BYTES HOW` | nothing: the process ends with so much memory; HOW: `dump`, `no-dump`, `no-memory-in-dump` |
//! | `go DIRECTORY` | `ok` |
//! | `start-sleep` | the pid of a program that was started and goes on without this process |
//! | `exec-sleep` | nothing: the process goes on as another program |
//! | `timed T COMMAND` | does that when the clock says T, and tells when it began and ended, and its answer |
//! | `no-system-calls N` | `ok`, after N times route and finish with all system calls forbidden |
//!
//! Called as `actor use-everything PATH`, it opens that table, uses it in every way, and ends.
//!
//! A call that fails is answered with `error` and the error's debug form.

mod churn;
mod comers;
mod ending;
mod everything;
mod forked;
mod passed;
mod reaping;

use churn::{Churn, WorkDone};
use comers::Comers;
use headcount::{
    Deployment, Engine, EngineStats, Error, Frontend, Options, Permit, Publisher, Reaper, Request,
    RouteError, Table,
};
use headcount_tests::{many_engines, monotonic_ns};
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

type Answer = Result<String, Box<dyn std::error::Error>>;

#[derive(Default)]
struct Actor {
    table: Option<Table>,
    frontend: Option<Frontend>,
    publisher: Option<Publisher>,
    deployment: Option<Deployment>,
    permits: Vec<Permit>,
    churn: Option<Churn>,
    comers: Option<Arc<Comers>>,
    reaper: Option<Reaper>,
    work: WorkDone,
}

fn main() {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let [command, path] = arguments.as_slice()
        && command == "use-everything"
    {
        return everything::use_everything(path.as_ref());
    }
    let mut actor = Actor::default();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = actor
            .act(&words)
            .unwrap_or_else(|error| format!("error {error:?}"));
        let mut output = std::io::stdout().lock();
        if writeln!(output, "{answer}")
            .and_then(|()| output.flush())
            .is_err()
        {
            return;
        }
    }
}

impl Actor {
    fn act(&mut self, words: &[&str]) -> Answer {
        let ok = || Ok("ok".to_owned());
        match *words {
            ["open", path] => {
                self.table = Some(Table::open(path)?);
                ok()
            }
            ["open-any-owner", path] => {
                self.table = Some(Options::default().any_owner(true).open(path)?);
                ok()
            }
            ["create", path, engines] => {
                let options = Table::options().engines(engines.parse()?);
                self.table = Some(options.open_or_create(path)?);
                ok()
            }
            ["inherit"] => {
                self.table = Some(Options::default().inherited()?);
                ok()
            }
            ["inherit-with-threads", threads] => {
                self.table = Some(Options::default().threads(threads.parse()?).inherited()?);
                ok()
            }
            ["join"] => {
                let frontend = self.table()?.join()?;
                let slot = frontend.slot();
                self.frontend = Some(frontend);
                Ok(format!("slot {slot}"))
            }
            ["leave"] => {
                self.permits.clear();
                self.frontend = None;
                ok()
            }
            ["route", ref how @ ..] => {
                let permit = self.frontend()?.route_with(&request(how)?)?;
                let engine = permit.engine().index();
                self.permits.push(permit);
                Ok(format!("engine {engine}"))
            }
            ["burst", count] => self.burst(count.parse()?, 0),
            ["burst-tokens", count, tokens] => self.burst(count.parse()?, tokens.parse()?),
            ["many", count] => {
                let permits = self.frontend()?.route_many(count.parse()?)?;
                self.keep(permits)
            }
            ["finish-all"] => {
                self.permits.clear();
                ok()
            }
            ["held"] => self.count(&self.permits, |_| 1),
            ["held-tokens"] => self.count(&self.permits, Permit::tokens),
            ["tie", count] => {
                let mut wins = vec![0_u32; self.engines()?];
                for _ in 0..count.parse()? {
                    wins[self.frontend()?.route()?.engine().index()] += 1;
                }
                Ok(join(&wins))
            }
            ["churn", threads] => {
                self.churn = Some(Churn::start(self.frontend()?, threads.parse()?));
                ok()
            }
            ["pause"] => {
                let churn = self.churn.take().ok_or("not churning")?;
                let (permits, work) = churn.pause();
                self.permits.extend(permits);
                self.work = self.work.and(work);
                ok()
            }
            ["work-done"] => {
                let WorkDone {
                    operations,
                    longest,
                } = std::mem::take(&mut self.work);
                Ok(format!("{operations} {longest}"))
            }
            ["deploy"] => {
                self.deployment = Some(self.table()?.deploy()?);
                ok()
            }
            ["apply-forever"] => {
                let table = self.table()?.clone();
                thread::spawn(move || {
                    let both = [many_engines(0), many_engines(1)];
                    while both.iter().all(|options| table.apply(options).is_ok()) {}
                });
                ok()
            }
            ["publisher"] => {
                self.publisher = Some(self.table()?.publisher()?);
                ok()
            }
            ["publish", number] => {
                self.publish(number.parse()?)?;
                ok()
            }
            ["publish-forever"] => {
                let table = self.table()?.clone();
                let mut publisher = table.publisher()?;
                let engines = self.engines()?;
                thread::spawn(move || {
                    for number in 1_u32.. {
                        if publish(&mut publisher, engines, number).is_err() {
                            return;
                        }
                    }
                });
                ok()
            }
            ["reap-forever"] => {
                let table = self.table()?.clone();
                thread::spawn(move || while table.reap().is_ok() {});
                ok()
            }
            ["add-and-remove-forever"] => {
                let table = self.table()?.clone();
                thread::spawn(move || {
                    let cycle =
                        |n: u32| table.remove(table.add(Engine::named(format!("{n}-{n}")))?);
                    while (10_000..10_100).all(|n| cycle(n).is_ok()) {}
                });
                ok()
            }
            ["add", name] => {
                let added = self.table()?.add(Engine::named(name))?;
                Ok(added.index().to_string())
            }
            ["remove", name] => {
                let table = self.table()?;
                let found = table.find(name).ok_or("no such engine")?;
                table.remove(found)?;
                Ok(found.index().to_string())
            }
            ["come-and-go"] => {
                self.comers = Some(Comers::start(self.table()?.clone()));
                ok()
            }
            ["came-and-went"] => Ok(self.comers.as_ref().ok_or("nobody comes")?.said()),
            ["open-forever", path] => {
                let path = path.to_owned();
                thread::spawn(move || while Table::open(&path).is_ok() {});
                ok()
            }
            ["fork-and-live"] => Ok(forked::live(|| false)?.pid.to_string()),
            ["fork-and-use"] => {
                if self.publisher.is_none() {
                    self.publisher = self.table()?.publisher().ok();
                }
                let table = self.table()?.clone();
                let frontend = self.frontend()?.clone();
                let permits = std::mem::take(&mut self.permits);
                let publisher = self.publisher.as_mut();
                let (permits, said) = forked::used(&table, frontend, permits, publisher)?;
                self.permits = permits;
                Ok(said)
            }
            ["fork-while-joining", count] => {
                let children = forked::while_joining(self.table()?, count.parse()?)?;
                let amid = children.iter().filter(|child| child.amid).count();
                let pids: Vec<_> = children.iter().map(|child| child.pid.to_string()).collect();
                Ok(format!("{amid} {}", pids.join(" ")))
            }
            ["fork-while-opening", path] => {
                let amid = forked::while_opening(path)?;
                Ok(if amid { "amid" } else { "not amid" }.to_owned())
            }
            ["fork-while-reaping", count] => {
                reaping::fork_meanwhile(self.table()?, count.parse()?)?;
                ok()
            }
            ["use-up-descriptors"] => {
                while let Ok(file) = std::fs::File::open("/dev/null") {
                    std::mem::forget(file);
                }
                ok()
            }
            ["reap"] => {
                let reaped = self.table()?.reap()?;
                Ok(format!(
                    "{} frontends {} requests",
                    reaped.frontends, reaped.requests
                ))
            }
            ["path-state"] => Ok(format!("{:?}", self.table()?.path_state()?)),
            ["child-has-table"] => passed::child_has_table(),
            ["child-inherits"] => passed::child_inherits(None),
            ["child-inherits", path] => passed::child_inherits(Some(path)),
            ["reap-every", period] => {
                let period = Duration::from_millis(period.parse()?);
                self.reaper = Some(self.table()?.reap_every(period)?);
                ok()
            }
            ["reaper-says"] => {
                let reaper = self.reaper.as_ref().ok_or("no reaper")?;
                Ok(reaper.last_error().unwrap_or("nothing".to_owned()))
            }
            ["crash", bytes, how] => Err(ending::crash(bytes.parse()?, how)?.into()),
            ["start-sleep"] => {
                let mut sleep = Command::new("sleep");
                let sleep = sleep.arg("60").stdin(Stdio::null()).stdout(Stdio::null());
                Ok(sleep.spawn()?.id().to_string())
            }
            ["go", directory] => {
                std::env::set_current_dir(directory)?;
                ok()
            }
            ["timed", at, ref command @ ..] => {
                let at = at.parse()?;
                while monotonic_ns() < at {
                    std::hint::spin_loop();
                }
                let start = monotonic_ns();
                // An error is an answer, too.
                let answer = self.act(command);
                let end = monotonic_ns();
                let answer = answer.unwrap_or_else(|error| format!("error {error:?}"));
                Ok(format!("{start} {end} {answer}"))
            }
            ["exec-sleep"] => Err(Command::new("sleep")
                .arg("1000")
                .stdout(Stdio::null())
                .exec()
                .into()),
            ["no-system-calls", count] => {
                forked::without_system_calls(self.frontend()?, count.parse()?)?;
                ok()
            }
            _ => Err(format!("no such command: {words:?}").into()),
        }
    }

    fn table(&self) -> Result<&Table, String> {
        self.table.as_ref().ok_or_else(|| "no table".to_owned())
    }

    fn frontend(&self) -> Result<&Frontend, String> {
        self.frontend
            .as_ref()
            .ok_or_else(|| "not joined".to_owned())
    }

    fn engines(&self) -> Result<usize, String> {
        let engines = self.table()?.view().engines;
        Ok(engines.last().map_or(0, |engine| engine.id.index() + 1))
    }

    fn burst(&mut self, count: usize, tokens: u32) -> Answer {
        let request = Request::new().tokens(tokens);
        let mut placed = Vec::with_capacity(count);
        for _ in 0..count {
            match self.frontend()?.route_with(&request) {
                Ok(permit) => placed.push(permit),
                Err(RouteError::Saturated { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.keep(placed)
    }

    /// Keeps permits, and says how many there are for each engine.
    fn keep(&mut self, permits: Vec<Permit>) -> Answer {
        let said = self.count(&permits, |_| 1);
        self.permits.extend(permits);
        said
    }

    fn count(&self, permits: &[Permit], of: impl Fn(&Permit) -> u32) -> Answer {
        let mut counts = vec![0; self.engines()?];
        for permit in permits {
            counts[permit.engine().index()] += of(permit);
        }
        Ok(join(&counts))
    }

    fn publish(&mut self, number: u32) -> Result<(), Box<dyn std::error::Error>> {
        let engines = self.engines()?;
        let publisher = self.publisher.as_mut().ok_or("not the publisher")?;
        Ok(publish(publisher, engines, number)?)
    }
}

/// Publishes statistics in which every number follows from one.
fn publish(publisher: &mut Publisher, engines: usize, number: u32) -> Result<(), Error> {
    // A prime below the most that statistics can say.
    let requests = number % 100_003;
    let stats = EngineStats::new()
        .waiting(requests)
        .running(requests)
        .kv_usage((number % 1000) as f32 / 1000.0)
        .in_flight(requests);
    publisher.publish_with(&vec![stats; engines], [number.into(), number.into()])
}

fn request<'a>(mut words: &[&str]) -> Result<Request<'a>, Box<dyn std::error::Error>> {
    let mut request = Request::new();
    while let [key, value, rest @ ..] = words {
        request = match *key {
            "tokens" => request.tokens(value.parse()?),
            "pin" => request.pin(value.parse::<usize>()?),
            _ => return Err(format!("no such option: {key}").into()),
        };
        words = rest;
    }
    Ok(request)
}

fn join(numbers: &[u32]) -> String {
    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
    numbers.join(" ")
}
