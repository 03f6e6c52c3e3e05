//! The names of engines, kept from request to request with what heads say of them.

use crate::engine::dial;
use headcount::EngineId;
use hyper::header::HeaderValue;
use std::sync::{Arc, Mutex, PoisonError};

/// An engine's name, which is its address, and the fields of heads that are made of it.
#[derive(Debug)]
pub(crate) struct EngineName {
    pub(crate) text: String,
    /// The name as a value. `None` if the name has characters that no field has.
    pub(crate) field: Option<HeaderValue>,
    /// The value of `Host` in requests.
    pub(crate) host: Option<HeaderValue>,
}

impl EngineName {
    fn new(text: String) -> Self {
        Self {
            field: HeaderValue::from_str(&text).ok(),
            host: HeaderValue::from_str(&dial::authority(&text)).ok(),
            text,
        }
    }
}

/// The engine that had a place in the table last, and its name. `None` if no request has met one there.
type Known = Option<(EngineId, Arc<EngineName>)>;

/// The names so far, by the engine's place in the table.
#[derive(Debug, Default)]
pub(crate) struct EngineNames(Mutex<Vec<Known>>);

impl EngineNames {
    /// Returns the name of an engine. Asks for it if the engine has none here: an id is of one engine only, and the
    /// next engine at its place has another id.
    pub(crate) fn of(&self, engine: EngineId, ask: impl FnOnce() -> String) -> Arc<EngineName> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = engine.index();
        if place >= names.len() {
            names.resize(place + 1, None);
        }
        match &names[place] {
            Some((known, name)) if *known == engine => Arc::clone(name),
            _ => {
                let name = Arc::new(EngineName::new(ask()));
                names[place] = Some((engine, Arc::clone(&name)));
                name
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount::{Engine, Table};

    #[test]
    fn a_name_is_asked_for_again_when_another_engine_has_its_place() {
        let options = Table::options().engine(Engine::named("http://a:1"));
        let table = options.memfd().expect("a table");
        let names = EngineNames::default();
        let id = |table: &Table| table.view().engines[0].id;
        let first = id(&table);
        assert_eq!(
            names.of(first, || "http://a:1".to_owned()).text,
            "http://a:1"
        );
        let known = names.of(first, || unreachable!("it is known"));
        assert_eq!(
            known.host.as_ref().map(HeaderValue::as_bytes),
            Some(&b"a:1"[..])
        );
        table.remove(first).expect("no request is on it");
        table
            .add(Engine::named("http://b:2"))
            .expect("a free place");
        assert_eq!(id(&table).index(), first.index(), "the place is used again");
        let next = names.of(id(&table), || "http://b:2".to_owned());
        assert_eq!(next.text, "http://b:2");
    }
}
