//! A process that acts on a table. It reads a task from each line of its standard input, and writes an answer
//! to each, both as JSON: `headcount_tests::Task` lists the tasks, `headcount_tests::Actor` says what each does.
//!
//! Called as `actor use-everything PATH`, it opens that table, uses it in every way, and ends.

mod churn;
mod comers;
mod ending;
mod everything;
mod forever;
mod forked;
mod passed;
mod queueing;
mod reaping;

use churn::{Churn, Work};
use comers::Comers;
use headcount::{
    Deployment, Engine, EngineStats, Error, Frontend, Options, Permit, Publisher, Reaper, Request,
    RouteError, Table,
};
use headcount_tests::{ForkedAmid, Task, Waited, at, monotonic_ns};
use serde::Serialize;
use serde_json::Value;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

type Failure = Box<dyn std::error::Error>;

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
    work: Work,
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
        let result = serde_json::from_str(&line)
            .map_err(|error| format!("{line:?} is no task: {error}"))
            .and_then(|task| actor.result(task));
        let mut output = std::io::stdout().lock();
        let written = serde_json::to_string(&result).map(|answer| writeln!(output, "{answer}"));
        if !matches!(written, Ok(Ok(()))) || output.flush().is_err() {
            return;
        }
    }
}

/// Returns the answer to a task that was done.
fn answer(answer: impl Serialize) -> Result<Value, Failure> {
    Ok(serde_json::to_value(answer)?)
}

impl Actor {
    fn result(&mut self, task: Task) -> headcount_tests::Answer {
        self.act(task).map_err(|error| format!("{error:?}"))
    }

    fn act(&mut self, task: Task) -> Result<Value, Failure> {
        match task {
            Task::Open { path } => self.table = Some(Table::open(path)?),
            Task::OpenAnyOwner { path } => {
                self.table = Some(Options::default().any_owner(true).open(path)?);
            }
            Task::Create { path, engines } => {
                let options = Table::options().engines(engines);
                self.table = Some(options.open_or_create(path)?);
            }
            Task::Inherit { threads } => {
                let options = Options::default();
                let options = match threads {
                    Some(threads) => options.threads(threads),
                    None => options,
                };
                self.table = Some(options.inherited()?);
            }
            Task::Join => {
                let frontend = self.table()?.join()?;
                let slot = frontend.slot();
                self.frontend = Some(frontend);
                return answer(slot);
            }
            Task::Leave => {
                self.permits.clear();
                self.frontend = None;
            }
            Task::Route { pin, tokens } => {
                let request = Request::new().tokens(tokens);
                let request = pin.map_or(request, |engine| request.pin(engine));
                let permit = self.frontend()?.route_with(&request)?;
                let engine = permit.engine().index();
                self.permits.push(permit);
                return answer(engine);
            }
            Task::Burst { requests, tokens } => {
                let permits = self.burst(requests, tokens)?;
                return answer(self.keep(permits)?);
            }
            Task::RouteMany { requests } => {
                let permits = self.frontend()?.route_many(requests)?;
                return answer(self.keep(permits)?);
            }
            Task::SetTokens { tokens } => return answer(self.set_tokens(tokens)?),
            Task::FinishAll => self.permits.clear(),
            Task::FinishOne => {
                let now = monotonic_ns();
                drop(self.permits.remove(0));
                return answer(now);
            }
            Task::Acquire { ask, milliseconds } => {
                let timeout = Duration::from_millis(milliseconds);
                let (table, frontend) = (self.table()?, self.frontend()?);
                let (waited, permit) = ask.with(table, |request| {
                    Waited::by(|| frontend.acquire(request, timeout))
                });
                self.permits.extend(permit);
                return answer(waited);
            }
            Task::AcquireAll {
                asks,
                milliseconds,
                held_for,
            } => {
                let timeout = Duration::from_millis(milliseconds);
                let held_for = Duration::from_millis(held_for);
                return answer(queueing::all(self.frontend()?, asks, timeout, held_for));
            }
            Task::Held => return answer(self.count(&self.permits, |_| 1)?),
            Task::HeldTokens => return answer(self.count(&self.permits, Permit::tokens)?),
            Task::BreakTies { requests } => {
                let mut wins = vec![0_u32; self.engines()?];
                for _ in 0..requests {
                    wins[self.frontend()?.route()?.engine().index()] += 1;
                }
                return answer(wins);
            }
            Task::Churn { threads } => self.churn = Some(Churn::start(self.frontend()?, threads)),
            Task::Pause => {
                let (permits, work) = self.churn.take().ok_or("not churning")?.pause();
                self.permits.extend(permits);
                self.work = self.work.and(work);
            }
            Task::WorkDone => return answer(std::mem::take(&mut self.work).0),
            Task::BecomePublisher => self.publisher = Some(self.table()?.publisher()?),
            Task::Publish { number } => {
                let engines = self.engines()?;
                let publisher = self.publisher.as_mut().ok_or("not the publisher")?;
                publish(publisher, engines, number)?;
            }
            Task::PublishForever => {
                let publisher = self.table()?.publisher()?;
                forever::publish(publisher, self.engines()?);
            }
            Task::Deploy => self.deployment = Some(self.table()?.deploy()?),
            Task::ApplyForever => forever::apply(self.table()?.clone()),
            Task::ReapForever => forever::reap(self.table()?.clone()),
            Task::OpenForever { path } => forever::open(path),
            Task::AddAndRemoveForever => forever::add_and_remove(self.table()?.clone()),
            Task::AddEngine { name } => {
                return answer(self.table()?.add(Engine::named(name))?.index());
            }
            Task::RemoveEngine { name } => {
                let table = self.table()?;
                let found = table.find(&name).ok_or("no such engine")?;
                table.remove(found)?;
                return answer(found.index());
            }
            Task::ComeAndGo => self.comers = Some(Comers::start(self.table()?.clone())),
            Task::CameAndWent => {
                return answer(self.comers.as_ref().ok_or("no engine comes")?.report());
            }
            Task::ForkAndLive => return answer(forked::live(|| false)?.pid),
            Task::ForkAndUse => {
                if self.publisher.is_none() {
                    self.publisher = self.table()?.publisher().ok();
                }
                let table = self.table()?.clone();
                let frontend = self.frontend()?.clone();
                let permits = std::mem::take(&mut self.permits);
                let publisher = self.publisher.as_mut();
                let (permits, told) = forked::used(&table, frontend, permits, publisher)?;
                self.permits = permits;
                return answer(told);
            }
            Task::ForkWhileJoining { children } => {
                let children = forked::while_joining(self.table()?, children)?;
                return answer(ForkedAmid {
                    amid: children.iter().filter(|child| child.amid).count(),
                    children: children.iter().map(|child| child.pid).collect(),
                });
            }
            Task::ForkWhileOpening { path } => return answer(forked::while_opening(&path)?),
            Task::ForkWhileReaping { children } => {
                reaping::fork_meanwhile(self.table()?, children)?;
            }
            Task::UseUpDescriptors => {
                while let Ok(file) = std::fs::File::open("/dev/null") {
                    std::mem::forget(file);
                }
            }
            Task::Reap => {
                let reaped = self.table()?.reap()?;
                return answer((reaped.frontends, reaped.requests));
            }
            Task::PathState => return answer(format!("{:?}", self.table()?.path_state()?)),
            Task::ChildHasTable => return answer(passed::child_has_table()?),
            Task::ChildInherits { path } => passed::child_inherits(path.as_deref())?,
            Task::ReapEvery { milliseconds } => {
                let period = Duration::from_millis(milliseconds);
                self.reaper = Some(self.table()?.reap_every(period)?);
            }
            Task::ReaperError => {
                let reaper = self.reaper.as_ref().ok_or("no reaper")?;
                return answer(reaper.last_error());
            }
            Task::Crash { bytes, dump } => ending::crash(bytes, dump)?,
            Task::ChangeDirectory { directory } => std::env::set_current_dir(directory)?,
            Task::StartSleep => {
                let mut sleep = Command::new("sleep");
                let sleep = sleep.arg("60").stdin(Stdio::null()).stdout(Stdio::null());
                return answer(sleep.spawn()?.id());
            }
            Task::ExecSleep => {
                let mut sleep = Command::new("sleep");
                return Err(sleep.arg("1000").stdout(Stdio::null()).exec().into());
            }
            Task::RouteWithoutSystemCalls { times } => {
                forked::without_system_calls(self.frontend()?, times)?;
            }
            Task::At { time, task } => return answer(at(time, || self.result(*task))),
        }
        Ok(Value::Null)
    }

    fn table(&self) -> Result<&Table, Failure> {
        self.table.as_ref().ok_or_else(|| "no table".into())
    }

    fn frontend(&self) -> Result<&Frontend, Failure> {
        self.frontend.as_ref().ok_or_else(|| "not joined".into())
    }

    /// One more than the largest number of an engine.
    fn engines(&self) -> Result<usize, Failure> {
        let engines = self.table()?.view().engines;
        Ok(engines.last().map_or(0, |engine| engine.id.index() + 1))
    }

    fn burst(&self, requests: usize, tokens: u32) -> Result<Vec<Permit>, Failure> {
        let request = Request::new().tokens(tokens);
        let mut placed = Vec::with_capacity(requests);
        for _ in 0..requests {
            match self.frontend()?.route_with(&request) {
                Ok(permit) => placed.push(permit),
                Err(RouteError::Saturated { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(placed)
    }

    /// Returns how many requests of each engine got that many tokens. The others were refused them at a cap.
    fn set_tokens(&mut self, tokens: u32) -> Result<Vec<u32>, Failure> {
        let mut got = vec![0; self.engines()?];
        for permit in &mut self.permits {
            match permit.set_tokens(tokens) {
                Ok(()) => got[permit.engine().index()] += 1,
                Err(RouteError::Saturated { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(got)
    }

    /// Keeps permits, and returns how many there are for each engine.
    fn keep(&mut self, permits: Vec<Permit>) -> Result<Vec<u32>, Failure> {
        let counts = self.count(&permits, |_| 1);
        self.permits.extend(permits);
        counts
    }

    fn count(&self, permits: &[Permit], of: impl Fn(&Permit) -> u32) -> Result<Vec<u32>, Failure> {
        let mut counts = vec![0; self.engines()?];
        for permit in permits {
            counts[permit.engine().index()] += of(permit);
        }
        Ok(counts)
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
