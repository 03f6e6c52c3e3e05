//! Finds the addresses of engines that have a name.
//!
//! A name is looked up in the background, and the addresses that were found last are used meanwhile. A
//! resolver that fails or is silent is a problem of this host, not of an engine.

use crate::log::say;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// How soon to look up a name again that never had an address.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Looks up names, and remembers their addresses.
#[derive(Debug)]
pub(crate) struct Resolver {
    /// How long addresses are used without another look-up.
    fresh: Duration,
    known: Arc<Mutex<HashMap<String, CachedName>>>,
}

/// What earlier look-ups of a name have found.
#[derive(Debug, Default)]
struct CachedName {
    /// The addresses found last. Empty if there never were any.
    addresses: Arc<[IpAddr]>,
    /// When the last look-up ended.
    asked: Option<Instant>,
    /// Why the last look-up failed, if it did.
    failure: Option<String>,
    /// The look-up that is running: when it began, and a channel that closes when it ends.
    running: Option<(Instant, watch::Receiver<()>)>,
}

impl Resolver {
    pub(crate) fn new(fresh: Duration) -> Self {
        Self {
            fresh,
            known: Arc::default(),
        }
    }

    /// Returns the addresses of a name. Waits only while none are known, and not after a look-up has taken
    /// `limit`.
    pub(crate) async fn find(&self, name: &str, limit: Duration) -> io::Result<Arc<[IpAddr]>> {
        let (began, mut end) = match self.look(name) {
            Lookup::Known(addresses) => return Ok(addresses),
            Lookup::Failed(why) => return Err(io::Error::other(why)),
            Lookup::Running(began, end) => (began, end),
        };
        // The channel closes when the look-up has ended.
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

    /// Returns the addresses of a name once more, when none of `tried` works. `None` if the look-up that is
    /// running finds the same, or does not end within `limit`.
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

    /// Puts an address of a name first: others of the name did not answer.
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
        let wait = if known.addresses.is_empty() {
            TRY_AGAIN.min(self.fresh)
        } else {
            self.fresh
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

/// Whether two lists have the same addresses in any order: many resolvers rotate them with each answer.
fn is_same(a: &[IpAddr], b: &[IpAddr]) -> bool {
    a.len() == b.len() && a.iter().all(|ip| b.contains(ip))
}

/// Asks the system's resolver, on a thread of its own.
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
                    say(format_args!("looking up {name} works again"));
                }
                // The old order has the address first that answered last.
                if !is_same(&found, &self.addresses) {
                    self.addresses = unique(found).into();
                }
            }
            Ok(_) => self.fail(name, "the resolver knows no address"),
            Err(error) => self.fail(name, &error.to_string()),
        }
    }

    /// Notes a failure. Logs the first one after a success.
    fn fail(&mut self, name: &str, why: &str) {
        let why = format!("looking up {name}: {why}");
        if self.failure.is_none() {
            let then = if self.addresses.is_empty() {
                "its requests go to other engines until an address is found"
            } else {
                "its last addresses stay in use"
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
