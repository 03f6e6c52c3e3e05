//! Tenants by their API keys, from the file of `--tenants`: `KEY NAME [share=N] [class=N]`.

use crate::engine::address::shown;
use crate::error::Error;
use crate::list_file;
use crate::route::standing::{MOST_CLASS, Standing};
use headcount::MAX_NAME_LEN;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::Path;

/// The largest share. A larger one would not differ from it: a request costs its tenant a 1024th of a turn at least.
const MOST_SHARE: u32 = 1000;

/// Stands for all keys that have no line of their own.
const ANY_OTHER: &str = "*";

/// Begins the hash of a key.
const HASHED: &str = "sha256:";

/// The SHA-256 of a key. Keys are found by it, so the time that takes tells nothing of a key.
type Hash = [u8; 32];

/// The tenants of a file.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    by_key: HashMap<Hash, Standing>,
    others: Standing,
}

impl Tenants {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let lines = list_file::read(path).map_err(|source| Error::TenantsUnreadable {
            path: path.to_owned(),
            source,
        })?;
        let mut tenants = Self::default();
        let mut names_others = false;
        for (line, text) in lines {
            let added = Line::read(&text).and_then(|line| {
                let is_twice = match line.key {
                    Some(hash) => tenants.by_key.insert(hash, line.standing).is_some(),
                    None => {
                        tenants.others = line.standing;
                        std::mem::replace(&mut names_others, true)
                    }
                };
                if is_twice {
                    return Err("an earlier line has the same key; give each key once".to_owned());
                }
                Ok(())
            });
            added.map_err(|reason| Error::TenantsMalformed {
                path: path.to_owned(),
                line,
                reason,
            })?;
        }
        Ok(tenants)
    }

    /// Returns the standing of a request with this key, or without one.
    pub(crate) fn of(&self, key: Option<&[u8]>) -> Standing {
        let known = key.and_then(|key| self.by_key.get(&hash_of(key)));
        known.unwrap_or(&self.others).clone()
    }
}

/// A line of the file. No key: all others.
struct Line {
    key: Option<Hash>,
    standing: Standing,
}

impl Line {
    /// No message repeats the key.
    fn read(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let key = match words.next().unwrap_or_default() {
            ANY_OTHER => None,
            key => Some(match key.strip_prefix(HASHED) {
                Some(digits) => hash_from(digits)?,
                None => hash_of(key.as_bytes()),
            }),
        };
        let name = words.next().filter(|name| !name.contains('='));
        let name = name.ok_or("after the key comes the name of the tenant, without =")?;
        if name.len() > MAX_NAME_LEN {
            return Err(format!(
                "the name is longer than {MAX_NAME_LEN} bytes; give a shorter one"
            ));
        }
        let (mut share, mut class) = (None, None);
        for word in words {
            let (setting, value) = word.split_once('=').unwrap_or((word, ""));
            let (place, range) = match setting {
                "share" => (&mut share, 1..=MOST_SHARE),
                "class" => (&mut class, 0..=MOST_CLASS.into()),
                _ => {
                    return Err(format!(
                        "{} is not known; after the name come share= and class=",
                        shown(word)
                    ));
                }
            };
            let [least, most] = [*range.start(), *range.end()];
            let value = value.parse().ok().filter(|value| range.contains(value));
            let value = value.ok_or_else(|| {
                format!(
                    "{} is not a {setting}; give a number from {least} to {most}",
                    shown(word)
                )
            })?;
            if place.replace(value).is_some() {
                return Err(format!("{setting} is given twice; give it once"));
            }
        }
        Ok(Self {
            key,
            standing: Standing {
                tenant: Some(name.into()),
                share: share.unwrap_or(1),
                class: class.and_then(|class| class.try_into().ok()).unwrap_or(0),
            },
        })
    }
}

fn hash_of(key: &[u8]) -> Hash {
    Sha256::digest(key).into()
}

fn hash_from(digits: &str) -> Result<Hash, String> {
    let mut hash = Hash::default();
    let is_hash = digits.len() == 2 * hash.len() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let mut pairs = digits.as_bytes().chunks_exact(2).filter(|_| is_hash);
    for byte in &mut hash {
        let pair = pairs.next().and_then(|pair| std::str::from_utf8(pair).ok());
        *byte = pair
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
            .ok_or("after sha256: come the 64 hexadecimal digits of the key's hash")?;
    }
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file with this text.
    fn read(text: &str) -> Result<Tenants, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Tenants::read(file.path()).map_err(|error| {
            let text = error.to_string();
            text.split_once(", line ")
                .map_or(text.clone(), |(_, rest)| rest.to_owned())
        })
    }

    fn standing(tenant: &str, share: u32, class: u8) -> Standing {
        Standing {
            tenant: Some(tenant.into()),
            share,
            class,
        }
    }

    #[test]
    fn a_key_is_known_by_itself_or_by_its_hash() {
        // printf abc | sha256sum
        let hash = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
        let text = format!("# keys\nkey-1 team-a share=3\n\nsha256:{hash} team-b class=2\n");
        let tenants = read(&text).unwrap();
        assert_eq!(tenants.of(Some(b"key-1")), standing("team-a", 3, 0));
        assert_eq!(tenants.of(Some(b"abc")), standing("team-b", 1, 2));
        for other in [
            None,
            Some(&b"key-2"[..]),
            Some(b""),
            Some(b"sha256:"),
            Some(b"*"),
        ] {
            assert_eq!(tenants.of(other), Standing::default(), "{other:?}");
        }
        let tenants = read(&format!("{text}* guests class=3")).unwrap();
        assert_eq!(tenants.of(None), standing("guests", 1, 3));
        assert_eq!(tenants.of(Some(b"key-1")), standing("team-a", 3, 0));
    }

    #[test]
    fn mistakes_are_named_without_the_key() {
        let long = format!("secret {}", "n".repeat(MAX_NAME_LEN + 1));
        for (text, said) in [
            ("secret", "1: after the key comes the name"),
            ("secret share=2", "1: after the key comes the name"),
            (
                "a b\nsecret n share=0",
                "2: \"share=0\" is not a share; give a number from 1 to 1000",
            ),
            ("secret n share=1001", "1: \"share=1001\" is not a share"),
            ("secret n share", "1: \"share\" is not a share"),
            (
                "secret n class=4",
                "1: \"class=4\" is not a class; give a number from 0 to 3",
            ),
            ("secret n class=1 class=2", "1: class is given twice"),
            (
                "secret n weight=1",
                "1: \"weight=1\" is not known; after the name come share= and class=",
            ),
            ("secret n\nsecret m", "2: an earlier line has the same key"),
            ("* n\n* m", "2: an earlier line has the same key"),
            ("sha256:secret n", "1: after sha256: come the 64"),
            (&long, "1: the name is longer than 232 bytes"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(said), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
