//! A method for each task.

use super::{Actor, CameAndWent, CoreDump, ForkedAmid, ForkedUse, Task, WorkDone};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

impl Task {
    /// A burst without tokens.
    pub fn burst(requests: usize) -> Self {
        Self::Burst {
            requests,
            tokens: 0,
        }
    }

    /// A route to any engine, without tokens.
    pub fn route() -> Self {
        Self::Route {
            pin: None,
            tokens: 0,
        }
    }

    /// The opening of the table at `path`.
    pub fn open(path: &Path) -> Self {
        Self::Open { path: path.into() }
    }

    /// The opening of the table of another user.
    pub fn open_any_owner(path: &Path) -> Self {
        Self::OpenAnyOwner { path: path.into() }
    }

    /// The creation of a table.
    pub fn create(path: &Path, engines: usize) -> Self {
        let path = path.into();
        Self::Create { path, engines }
    }
}

impl Actor {
    fn ask<T: DeserializeOwned>(&mut self, task: &Task) -> T {
        let result = self.attempt(task);
        result.unwrap_or_else(|error| panic!("an actor could not {task:?}: {error}"))
    }

    /// Opens the table at `path`.
    pub fn open(&mut self, path: &Path) {
        self.ask(&Task::open(path))
    }

    /// Opens the table at `path` even if it belongs to another user.
    pub fn open_any_owner(&mut self, path: &Path) {
        self.ask(&Task::open_any_owner(path))
    }

    /// Creates a table of `engines` engines at `path`, or opens it if it exists.
    pub fn create(&mut self, path: &Path, engines: usize) {
        self.ask(&Task::create(path, engines))
    }

    /// Takes the table that the parent process passed.
    pub fn inherit(&mut self) {
        self.ask(&Task::Inherit { threads: None })
    }

    /// Joins, and returns the slot.
    pub fn join(&mut self) -> usize {
        self.ask(&Task::Join)
    }

    /// Finishes all requests and leaves.
    pub fn leave(&mut self) {
        self.ask(&Task::Leave)
    }

    /// Routes one request, keeps the permit, and returns the engine.
    pub fn route(&mut self) -> usize {
        self.ask(&Task::route())
    }

    /// Routes one request to `engine`, and keeps the permit.
    pub fn route_pinned(&mut self, engine: usize) {
        self.route_pinned_with_tokens(engine, 0);
    }

    /// Routes one request of `tokens` tokens to `engine`, and keeps the permit.
    pub fn route_pinned_with_tokens(&mut self, engine: usize, tokens: u32) {
        let pin = Some(engine);
        let found: usize = self.ask(&Task::Route { pin, tokens });
        assert_eq!(found, engine, "a pinned request goes to its engine");
    }

    /// Routes requests one after the other, passing over those that are refused at a cap. Keeps the permits, and
    /// returns how many each engine got.
    pub fn burst(&mut self, requests: usize) -> Vec<u32> {
        self.ask(&Task::burst(requests))
    }

    /// The same with requests of `tokens` tokens each.
    pub fn burst_with_tokens(&mut self, requests: usize, tokens: u32) -> Vec<u32> {
        self.ask(&Task::Burst { requests, tokens })
    }

    /// Routes requests by one call of `route_many`. Keeps the permits, and returns how many each engine got.
    pub fn route_many(&mut self, requests: usize) -> Vec<u32> {
        self.ask(&Task::RouteMany { requests })
    }

    /// Gives all requests `tokens` tokens. Returns how many got them on each engine; the others were refused them at a
    /// cap.
    pub fn set_tokens(&mut self, tokens: u32) -> Vec<u32> {
        self.ask(&Task::SetTokens { tokens })
    }

    /// Finishes all requests.
    pub fn finish_all(&mut self) {
        self.ask(&Task::FinishAll)
    }

    /// Returns how many permits there are for each engine.
    pub fn held(&mut self) -> Vec<u32> {
        self.ask(&Task::Held)
    }

    /// Returns the tokens of the permits for each engine.
    pub fn held_tokens(&mut self) -> Vec<u32> {
        self.ask(&Task::HeldTokens)
    }

    /// Routes and finishes one request at a time. Returns how often each engine was chosen.
    pub fn break_ties(&mut self, requests: usize) -> Vec<u32> {
        self.ask(&Task::BreakTies { requests })
    }

    /// Starts threads that route and finish until the actor is killed or [paused](Self::pause).
    pub fn churn(&mut self, threads: u64) {
        self.ask(&Task::Churn { threads })
    }

    /// Stops these threads. [`held`](Self::held) has their permits from then on.
    pub fn pause(&mut self) {
        self.ask(&Task::Pause)
    }

    /// Returns what these threads did since this was last asked.
    pub fn work_done(&mut self) -> WorkDone {
        self.ask(&Task::WorkDone)
    }

    /// Becomes the publisher.
    pub fn become_publisher(&mut self) {
        self.ask(&Task::BecomePublisher)
    }

    /// Publishes statistics that all follow from one number.
    pub fn publish(&mut self, number: u32) {
        self.ask(&Task::Publish { number })
    }

    /// Becomes the publisher, and publishes in a thread from then on.
    pub fn publish_forever(&mut self) {
        self.ask(&Task::PublishForever)
    }

    /// Becomes the deployment.
    pub fn deploy(&mut self) {
        self.ask(&Task::Deploy)
    }

    /// Applies the configurations `many_engines(0)` and `(1)` alternately, in a thread.
    pub fn apply_forever(&mut self) {
        self.ask(&Task::ApplyForever)
    }

    /// Reaps in a thread.
    pub fn reap_forever(&mut self) {
        self.ask(&Task::ReapForever)
    }

    /// Opens the table at `path` again and again, in a thread.
    pub fn open_forever(&mut self, path: &Path) {
        self.ask(&Task::OpenForever { path: path.into() })
    }

    /// Adds engines of several names and removes them, in a thread.
    pub fn add_and_remove_forever(&mut self) {
        self.ask(&Task::AddAndRemoveForever)
    }

    /// Adds an engine, and returns its number.
    pub fn add_engine(&mut self, name: &str) -> usize {
        self.ask(&Task::AddEngine { name: name.into() })
    }

    /// Removes an engine, and returns its number.
    pub fn remove_engine(&mut self, name: &str) -> usize {
        self.ask(&Task::RemoveEngine { name: name.into() })
    }

    /// Adds and removes two engines alternately in one slot, in a thread. Others may change the first, and not the
    /// second.
    pub fn come_and_go(&mut self) {
        self.ask(&Task::ComeAndGo)
    }

    /// Returns what became of the second of these engines.
    pub fn came_and_went(&mut self) -> CameAndWent {
        self.ask(&Task::CameAndWent)
    }

    /// Forks a child that keeps its copies and does nothing. Returns its pid.
    pub fn fork_and_live(&mut self) -> i32 {
        self.ask(&Task::ForkAndLive)
    }

    /// Forks a child that uses its copies, and returns what it was told.
    pub fn fork_and_use(&mut self) -> ForkedUse {
        self.ask(&Task::ForkAndUse)
    }

    /// Forks children that live on, while threads join and leave.
    pub fn fork_while_joining(&mut self, children: usize) -> ForkedAmid {
        self.ask(&Task::ForkWhileJoining { children })
    }

    /// Forks a child while a thread opens the table at `path`, the first of the process. The child opens it, too.
    /// Returns whether the fork fell into the opening.
    pub fn fork_while_opening(&mut self, path: &Path) -> bool {
        self.ask(&Task::ForkWhileOpening { path: path.into() })
    }

    /// Forks children while a thread reaps. Each of them reaps, too.
    pub fn fork_while_reaping(&mut self, children: usize) {
        self.ask(&Task::ForkWhileReaping { children })
    }

    /// Opens files until no descriptor is left.
    pub fn use_up_descriptors(&mut self) {
        self.ask(&Task::UseUpDescriptors)
    }

    /// Reaps once. Returns how many frontends and how many requests were reaped.
    pub fn reap(&mut self) -> (u64, u64) {
        self.ask(&Task::Reap)
    }

    /// Returns the debug form of `Table::path_state`.
    pub fn path_state(&mut self) -> String {
        self.ask(&Task::PathState)
    }

    /// Returns the file that a child of the actor has at the number of the inherited table.
    pub fn child_has_table(&mut self) -> PathBuf {
        self.ask(&Task::ChildHasTable)
    }

    /// Has a child of the actor inherit, and returns the debug form of the error that it gets. With a path, the
    /// child has the file there at the number of the table.
    pub fn child_is_refused(&mut self, path: Option<&Path>) -> String {
        let path = path.map(Path::to_owned);
        self.refused(&Task::ChildInherits { path })
    }

    /// Reaps in the background.
    pub fn reap_every(&mut self, milliseconds: u64) {
        self.ask(&Task::ReapEvery { milliseconds })
    }

    /// Returns the last error of that.
    pub fn reaper_error(&mut self) -> Option<String> {
        self.ask(&Task::ReaperError)
    }

    /// Crashes with `bytes` bytes of memory in use. Returns before the process has ended.
    pub fn crash(&mut self, bytes: usize, dump: CoreDump) {
        self.tell(&Task::Crash { bytes, dump });
    }

    /// Changes the working directory.
    pub fn change_directory(&mut self, directory: &Path) {
        let directory = directory.into();
        self.ask(&Task::ChangeDirectory { directory })
    }

    /// Starts a program that goes on without the actor, and returns its pid.
    pub fn start_sleep(&mut self) -> i32 {
        self.ask(&Task::StartSleep)
    }

    /// Has the process go on as another program, which does nothing.
    pub fn exec_sleep(&mut self) {
        self.ends_by(&Task::ExecSleep);
    }

    /// Routes and finishes `times` times in a child that may make no system call.
    pub fn route_without_system_calls(&mut self, times: usize) {
        self.ask(&Task::RouteWithoutSystemCalls { times })
    }
}
