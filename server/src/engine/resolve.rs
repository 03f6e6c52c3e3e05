//! The addresses of engines that have a name.
//!
//! A name is looked up in the background, and what was found last is used meanwhile: a resolver that
//! fails, or says nothing, is a trouble of this host's, and no engine's.

use crate::log::say;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// How soon a name is looked up again for which nothing was ever found.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Resolver, and what is known of them.
#[derive(Debug)]
pub(crate) struct Resolver {
    /// For how long what was found is used without asking again.
    fresh: Duration,
    known: Arc<Mutex<HashMap<String, CachedName>>>,
}

/// What is known of a name.
#[derive(Debug, Default)]
struct CachedName {
    /// What was found last; empty if nothing ever was.
    addresses: Arc<[IpAddr]>,
    /// When the last look-up ended.
    asked: Option<Instant>,
    /// Why that one failed, if it did.
    failure: Option<String>,
    /// The look-up that goes on: when it began, and an end that closes with it.
    running: Option<(Instant, watch::Receiver<()>)>,
}

impl Resolver {
    pub(crate) fn new(fresh: Duration) -> Self {
        Self {
            fresh,
            known: Arc::default(),
        }
    }

    /// The addresses of a name. Waits only while none are known, and until a look-up has taken `limit`.
    pub(crate) async fn find(&self, name: &str, limit: Duration) -> io::Result<Arc<[IpAddr]>> {
        let (began, mut end) = match self.look(name) {
            Lookup::Known(addresses) => return Ok(addresses),
            Lookup::Failed(why) => return Err(io::Error::other(why)),
            Lookup::Running(began, end) => (began, end),
        };
        // It closes when the look-up has ended.
        let _ = timeout(limit.saturating_sub(began.elapsed()), end.changed()).await;
        match self.lock().get(name) {
            Some(known) if !known.addresses.is_empty() => Ok(Arc::clone(&known.addresses)),
            Some(known) if known.running.is_none() => {
                Err(io::Error::other(known.failure.clone().unwrap_or_default()))
            }
            _ => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("looking up {name}: no answer from the resolver yet"),
            )),
        }
    }

    /// What else a name has, once it has been looked up again: for when no address of `tried` works. None
    /// if there is nothing new, or no answer within `limit`.
    pub(crate) async fn find_others(
        &self,
        name: &str,
        tried: &Arc<[IpAddr]>,
        limit: Duration,
    ) -> Option<Arc<[IpAddr]>> {
        let end = match self.lock().get(name) {
            Some(known) if !is_same(&known.addresses, tried) => {
                return Some(Arc::clone(&known.addresses));
            }
            Some(known) => known.running.clone(),
            None => None,
        };
        let (_, mut end) = end?;
        let _ = timeout(limit, end.changed()).await;
        let known = self.lock();
        let addresses = &known.get(name)?.addresses;
        (!is_same(addresses, tried)).then(|| Arc::clone(addresses))
    }

    /// This address is the one to try first: another of the name did not answer.
    pub(crate) fn prefer(&self, name: &str, first: IpAddr) {
        if let Some(known) = self.lock().get_mut(name)
            && let Some(place) = known.addresses.iter().position(|ip| *ip == first)
        {
            let mut addresses = known.addresses.to_vec();
            addresses[..=place].rotate_right(1);
            known.addresses = addresses.into();
        }
    }

    fn look(&self, name: &str) -> Lookup {
        let mut all = self.lock();
        if !all.contains_key(name) {
            all.insert(name.to_owned(), CachedName::default());
        }
        let Some(known) = all.get_mut(name) else {
            return Lookup::Failed(String::new());
        };
        let wait = match known.addresses.is_empty() {
            true => TRY_AGAIN.min(self.fresh),
            false => self.fresh,
        };
        if known.running.is_none() && known.asked.is_none_or(|asked| asked.elapsed() >= wait) {
            let (end, ended) = watch::channel(());
            known.running = Some((Instant::now(), ended));
            tokio::spawn(look_up(Arc::clone(&self.known), name.to_owned(), end));
        }
        match &known.running {
            _ if !known.addresses.is_empty() => Lookup::Known(Arc::clone(&known.addresses)),
            Some((began, end)) => Lookup::Running(*began, end.clone()),
            None => Lookup::Failed(known.failure.clone().unwrap_or_default()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, CachedName>> {
        lock(&self.known)
    }
}

enum Lookup {
    Known(Arc<[IpAddr]>),
    Running(Instant, watch::Receiver<()>),
    Failed(String),
}

fn lock(known: &Mutex<HashMap<String, CachedName>>) -> MutexGuard<'_, HashMap<String, CachedName>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same addresses, in whatever order: many resolvers turn the order round with each answer.
fn is_same(a: &[IpAddr], b: &[IpAddr]) -> bool {
    a.len() == b.len() && a.iter().all(|ip| b.contains(ip))
}

/// Asks the resolver, which takes a thread of its own for as long as it takes.
async fn look_up(
    all: Arc<Mutex<HashMap<String, CachedName>>>,
    name: String,
    end: watch::Sender<()>,
) {
    let found = tokio::net::lookup_host((name.as_str(), 0)).await;
    let found = found.map(|found| found.map(|address| address.ip()).collect::<Vec<_>>());
    let mut all = lock(&all);
    if let Some(known) = all.get_mut(&name) {
        known.running = None;
        known.asked = Some(Instant::now());
        known.take(&name, found);
    }
    drop(all);
    drop(end);
}

impl CachedName {
    fn take(&mut self, name: &str, found: io::Result<Vec<IpAddr>>) {
        match found {
            Ok(found) if !found.is_empty() => {
                if self.failure.take().is_some() {
                    say(format_args!("{name} is resolved again"));
                }
                // Which one answers is known of the old order.
                if !is_same(&found, &self.addresses) {
                    self.addresses = unique(found).into();
                }
            }
            Ok(_) => self.fail(name, "the resolver knows no address"),
            Err(error) => self.fail(name, &error.to_string()),
        }
    }

    /// Says so once, until it is well again.
    fn fail(&mut self, name: &str, why: &str) {
        let why = format!("looking up {name}: {why}");
        if self.failure.is_none() {
            let then = match self.addresses.is_empty() {
                true => "requests go to other engines until it is found",
                false => "its last addresses go on being used",
            };
            say(format_args!("{why}; {then}"));
        }
        self.failure = Some(why);
    }
}

fn unique(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let mut unique = Vec::with_capacity(addresses.len());
    for address in addresses {
        if !unique.contains(&address) {
            unique.push(address);
        }
    }
    unique
}
