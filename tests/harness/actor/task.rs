//! The tasks of an actor, and its answers. A test and its actors exchange them as JSON, one value a line.

use crate::waiting::Ask;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One thing that an actor does. [`Actor`](crate::Actor) has a method for each, which says what the answer is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the methods of `Actor` describe the fields")]
pub enum Task {
    /// Open a table.
    Open { path: PathBuf },
    /// Open a table even if it belongs to another user.
    OpenAnyOwner { path: PathBuf },
    /// Create a table, or open it if it exists.
    Create { path: PathBuf, engines: usize },
    /// Take the table that the parent process passed.
    Inherit { threads: Option<usize> },
    /// Join the table.
    Join,
    /// Finish all requests and leave the table.
    Leave,
    /// Route one request.
    Route { pin: Option<usize>, tokens: u32 },
    /// Route requests one after the other.
    Burst { requests: usize, tokens: u32 },
    /// Route requests by one call of `route_many`.
    RouteMany { requests: usize },
    /// Give all requests so many tokens.
    SetTokens { tokens: u32 },
    /// Finish all requests.
    FinishAll,
    /// Finish the oldest request.
    FinishOne,
    /// Acquire a place for a request.
    Acquire { ask: Ask, milliseconds: u64 },
    /// Acquire a place for each request, by a thread each, and finish each after it was held for so long.
    AcquireAll {
        asks: Vec<Ask>,
        milliseconds: u64,
        held_for: u64,
    },
    /// Count the permits.
    Held,
    /// Add up the tokens of the permits.
    HeldTokens,
    /// Route and finish one request at a time.
    BreakTies { requests: usize },
    /// Start threads that route and finish.
    Churn { threads: u64 },
    /// Stop these threads.
    Pause,
    /// Report what these threads did.
    WorkDone,
    /// Become the publisher.
    BecomePublisher,
    /// Publish statistics.
    Publish { number: u32 },
    /// Become the publisher and publish in a thread.
    PublishForever,
    /// Become the deployment.
    Deploy,
    /// Apply two configurations alternately, in a thread.
    ApplyForever,
    /// Reap in a thread.
    ReapForever,
    /// Open a table again and again, in a thread.
    OpenForever { path: PathBuf },
    /// Add engines and remove them, in a thread.
    AddAndRemoveForever,
    /// Add an engine.
    AddEngine { name: String },
    /// Remove an engine.
    RemoveEngine { name: String },
    /// Add and remove two engines alternately, in a thread.
    ComeAndGo,
    /// Report what became of these engines.
    CameAndWent,
    /// Fork a child that does nothing.
    ForkAndLive,
    /// Fork a child that uses its copies.
    ForkAndUse,
    /// Fork children while threads join and leave.
    ForkWhileJoining { children: usize },
    /// Fork a child while a thread opens the first table of the process.
    ForkWhileOpening { path: PathBuf },
    /// Fork children while a thread reaps.
    ForkWhileReaping { children: usize },
    /// Open files until no descriptor is left.
    UseUpDescriptors,
    /// Reap once.
    Reap,
    /// Report what lies at the path of the table.
    PathState,
    /// Report which file a child has at the number of the inherited table.
    ChildHasTable,
    /// Start a child that inherits.
    ChildInherits { path: Option<PathBuf> },
    /// Reap in the background.
    ReapEvery { milliseconds: u64 },
    /// Report the last error of that.
    ReaperError,
    /// Crash.
    Crash { bytes: usize, dump: CoreDump },
    /// Change the working directory.
    ChangeDirectory { directory: PathBuf },
    /// Start a program that outlives the actor.
    StartSleep,
    /// Become another program.
    ExecSleep,
    /// Route and finish with system calls forbidden.
    RouteWithoutSystemCalls { times: usize },
    /// Do a task when the clock says so, and report when it began and ended.
    At { time: u64, task: Box<Task> },
}

/// What the kernel writes of a process that crashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreDump {
    /// Everything.
    Whole,
    /// A file without the memory of the process.
    WithoutMemory,
    /// Nothing.
    None,
}

/// What an actor says to a task: the answer, or the debug form of the error.
pub type Answer = Result<serde_json::Value, String>;

/// What churning threads have done.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct WorkDone {
    /// How many operations there were.
    pub operations: u64,
    /// The longest that one took, in nanoseconds.
    pub longest: u64,
}

/// What became of an engine that comes and goes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CameAndWent {
    /// How often it was added and removed.
    pub cycles: u64,
    /// How often it was not as it had been added.
    pub wronged: u64,
}

/// Children that were forked while threads join and leave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForkedAmid {
    /// How many of the forks fell into a join.
    pub amid: usize,
    /// The pids of the children, which live on.
    pub children: Vec<i32>,
}

/// What a child was told when it used the copies that a fork gave it: `forked`, `done`, `none` or `another error`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ForkedUse {
    /// By `Frontend::route`.
    pub route: String,
    /// By `Permit::set_tokens`.
    pub set_tokens: String,
    /// By `Publisher::publish`.
    pub publish: String,
    /// By `Table::join`.
    pub join: String,
}

/// When a task began and ended, by a clock that all processes share, and the answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Timed {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) answer: Answer,
}
