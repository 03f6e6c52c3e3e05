//! A resolver that answers as it is told, for a network of the test's own.

use crate::network::put_in_front;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

/// The answer of the resolver.
#[derive(Clone, Debug)]
pub(crate) enum Says {
    /// These addresses, to every question.
    Addresses(Vec<Ipv4Addr>),
    /// SERVFAIL.
    Failure,
    /// NXDOMAIN.
    NoSuchName,
    Nothing,
}

/// A DNS server at 127.0.0.1, which all programs of this network ask.
#[derive(Debug)]
pub(crate) struct Resolver {
    says: Arc<Mutex<Says>>,
    asked: Arc<AtomicU32>,
}

impl Resolver {
    /// `directory` is for its configuration.
    pub(crate) fn start(directory: &Path, says: Says) -> Self {
        let configuration = directory.join("resolv.conf");
        let content = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";
        fs::write(&configuration, content).unwrap();
        put_in_front(&configuration, "/etc/resolv.conf");
        let order = directory.join("nsswitch.conf");
        fs::write(&order, "hosts: files dns\n").unwrap();
        if Path::new("/etc/nsswitch.conf").exists() {
            put_in_front(&order, "/etc/nsswitch.conf");
        }
        let resolver = Self {
            says: Arc::new(Mutex::new(says)),
            asked: Arc::default(),
        };
        let socket = UdpSocket::bind("127.0.0.1:53").unwrap();
        let (says, asked) = (Arc::clone(&resolver.says), Arc::clone(&resolver.asked));
        thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question) {
                asked.fetch_add(1, Relaxed);
                if let Some(answer) = answer(&question[..length], &says.lock().unwrap()) {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        resolver
    }

    pub(crate) fn says(&self, says: Says) {
        *self.says.lock().unwrap() = says;
    }

    /// How many questions it has got.
    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Relaxed)
    }
}

/// The answer to a question with one name in it (RFC 1035, 4.1).
fn answer(question: &[u8], says: &Says) -> Option<Vec<u8>> {
    let name = question.get(12..)?;
    let name = &name[..name.iter().position(|&byte| byte == 0)? + 1];
    let kind = question.get(12 + name.len()..12 + name.len() + 4)?;
    let (code, addresses) = match says {
        // Of IPv6 there are none.
        Says::Addresses(addresses) if kind[..2] == [0, 1] => (0, &addresses[..]),
        Says::Addresses(_) => (0, &[][..]),
        Says::Failure => (2, &[][..]),
        Says::NoSuchName => (3, &[][..]),
        Says::Nothing => return None,
    };
    let mut answer = question[..2].to_vec();
    answer.extend([
        0x81,
        0x80 | code,
        0,
        1,
        0,
        addresses.len() as u8,
        0,
        0,
        0,
        0,
    ]);
    answer.extend(name);
    answer.extend(kind);
    for address in addresses {
        // The name of the question, A, IN, for no time at all, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}
