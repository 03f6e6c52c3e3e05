//! The faults that are injected into the processes and the table while frontends work.

use headcount::{Engine, Table};
use headcount_tests::{Actor, Random, spawn_all};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The processes that may be killed, and how often each fault was injected.
pub(crate) struct Faults {
    table: Table,
    path: PathBuf,
    victims: Vec<Actor>,
    publisher: Option<Actor>,
    children: Vec<i32>,
    injected: BTreeMap<&'static str, usize>,
}

impl Faults {
    pub(crate) fn new(table: &Table, victims: usize) -> Self {
        let path = table.path().to_owned();
        let victims = spawn_all(&path, victims);
        Self {
            table: table.clone(),
            path,
            victims,
            publisher: None,
            children: Vec::new(),
            injected: BTreeMap::new(),
        }
    }

    pub(crate) fn victims(&mut self) -> impl Iterator<Item = &mut Actor> {
        self.victims.iter_mut()
    }

    /// Injects one fault.
    pub(crate) fn inject(&mut self, random: &mut Random, survivors: &[Actor]) {
        let kind = match random.below(12) {
            0 | 1 => self.kill(random),
            2 | 3 => Self::stop(random, survivors),
            4 => self.fork(random),
            5 => self.kill_publisher(),
            6 => self.add_and_remove(random),
            7 => self.flap(random),
            8 => self.drain(random),
            9 => self.move_caps(random),
            10 => {
                drop(Table::open(&self.path));
                "open and reap"
            }
            _ => {
                drop(self.table.join());
                "join and leave"
            }
        };
        *self.injected.entry(kind).or_default() += 1;
    }

    fn kill(&mut self, random: &mut Random) -> &'static str {
        let index = random.below(self.victims.len() as u64) as usize;
        self.victims.swap_remove(index).kill();
        let mut next = Actor::joined(&self.path);
        next.churn(2);
        self.victims.push(next);
        "SIGKILL"
    }

    fn stop(random: &mut Random, survivors: &[Actor]) -> &'static str {
        let frontend = &survivors[random.below(survivors.len() as u64) as usize];
        frontend.stop();
        random.pause(5_000);
        frontend.resume();
        "SIGSTOP and SIGCONT"
    }

    fn fork(&mut self, random: &mut Random) -> &'static str {
        let index = random.below(self.victims.len() as u64) as usize;
        self.children.push(self.victims[index].fork_and_live());
        // Not more than a few at a time.
        if self.children.len() > 8 {
            self.end_children();
        }
        "fork that lives on"
    }

    fn kill_publisher(&mut self) -> &'static str {
        if let Some(publisher) = self.publisher.take() {
            publisher.kill();
        }
        let mut next = Actor::opened(&self.path);
        next.publish_forever();
        self.publisher = Some(next);
        "publisher killed"
    }

    fn add_and_remove(&self, random: &mut Random) -> &'static str {
        let name = format!("extra {}", random.below(3));
        match self.table.find(&name) {
            Some(engine) => drop(self.table.remove(engine)),
            None => drop(self.table.add(Engine::named(name))),
        }
        "engine added or removed"
    }

    fn flap(&self, random: &mut Random) -> &'static str {
        drop(self.table.down(3));
        random.pause(1_000);
        drop(self.table.up(3));
        "engine flapped"
    }

    fn drain(&self, random: &mut Random) -> &'static str {
        let engine = random.below(3) as usize;
        drop(self.table.drain(engine));
        random.pause(1_000);
        drop(self.table.up(engine));
        "engine drained"
    }

    fn move_caps(&self, random: &mut Random) -> &'static str {
        let cap = 1 + random.below(60) as u32;
        drop(self.table.set_caps(0, Some(cap), Some(cap * 100)));
        "caps moved"
    }

    fn end_children(&mut self) {
        for child in self.children.drain(..) {
            // SAFETY: signals a child that an actor has told us of, and that no other code ends.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        self.end_children();
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = (self.injected.iter())
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        f.write_str(&kinds.join(", "))
    }
}
