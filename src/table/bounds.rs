//! How many requests may wait, and how tenants share: the options of a table's queue.

use crate::algorithm::queue::Bounds;
use crate::algorithm::queue::order::CLASSES;
use crate::algorithm::word::MAX_REQUESTS;
use crate::error::{Error, Result};
use crate::table::Table;
use crate::table::options::Options;

/// The options of a queue that were set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct QueueOptions {
    max_waiting: Option<u32>,
    of_class: [Option<u32>; CLASSES],
    /// The greatest class above 3 that was named.
    unknown_class: Option<u8>,
    share_tokens: Option<bool>,
}

impl Options {
    /// Gives the table a queue, in which at most so many requests wait for a place
    /// ([`Frontend::acquire`](crate::Frontend::acquire)), over all processes: 1 to 1,048,575. Default: no queue, so that
    /// each request is placed or refused at once. Exact, like a cap: of any number that come at the same time so
    /// many wait.
    ///
    /// A table without a queue pays nothing for it. One with a queue pays a load for each request, and 700 bytes
    /// for each frontend, as every table does. [`Table::apply`] changes it; without it, those that wait already wait on.
    pub fn max_waiting(mut self, requests: u32) -> Self {
        self.queue.max_waiting = Some(requests);
        self
    }

    /// Bounds how many requests of a [class](crate::Request::class) wait, 0 to 3, to 1 to 1,048,575. Default: as many as
    /// [`max_waiting`](Self::max_waiting) allows for all classes together, which is needed as well.
    pub fn max_waiting_of_class(mut self, class: u8, requests: u32) -> Self {
        match self.queue.of_class.get_mut(usize::from(class)) {
            Some(bound) => *bound = Some(requests),
            None => self.queue.unknown_class = self.queue.unknown_class.max(Some(class)),
        }
        self
    }

    /// Whether [tenants](crate::Request::tenant) share the tokens of the requests that are served, and not their number.
    /// Default: no. A request without tokens counts as one token.
    pub fn share_tokens(mut self, tokens: bool) -> Self {
        self.queue.share_tokens = Some(tokens);
        self
    }
}

impl QueueOptions {
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |option, found: u64, expected: String| {
            Err(Error::Option {
                option,
                found,
                expected,
            })
        };
        let range = || format!("1 to {MAX_REQUESTS}");
        let is_wrong = |bound: &u32| !(1..=MAX_REQUESTS).contains(bound);
        if let Some(bound) = self.max_waiting.filter(is_wrong) {
            let expected = format!("{}, or left out for a table without a queue", range());
            return wrong("max_waiting", bound.into(), expected);
        }
        if let Some(class) = self.unknown_class {
            return wrong(
                "the class of max_waiting_of_class",
                class.into(),
                format!("0 to {}", CLASSES - 1),
            );
        }
        let bounds = self.of_class.into_iter().flatten();
        if let Some(bound) = bounds.clone().find(is_wrong) {
            return wrong("max_waiting_of_class", bound.into(), range());
        }
        if self.max_waiting.is_none() && bounds.count() > 0 {
            let expected = "set when a class has a bound of its own".to_owned();
            return wrong("max_waiting", 0, expected);
        }
        Ok(())
    }

    /// What a table has that is created with these options, or brought to them.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            all: self.max_waiting.unwrap_or(0),
            of_class: self.of_class.map(Option::unwrap_or_default),
            by_tokens: self.share_tokens.unwrap_or(false),
        }
    }

    /// Each option with the value that was asked for, and the one that the table has. `entirely`: an option that was
    /// not set asks for what it stands for.
    pub(crate) fn compared(
        &self,
        table: &Table,
        entirely: bool,
    ) -> impl Iterator<Item = (&'static str, Option<String>, String)> {
        const OF_CLASS: [&str; CLASSES] = [
            "max_waiting_of_class(0)",
            "max_waiting_of_class(1)",
            "max_waiting_of_class(2)",
            "max_waiting_of_class(3)",
        ];
        let in_words = |bound: u32| match bound {
            0 => "none".to_owned(),
            bound => bound.to_string(),
        };
        let asked = move |bound: Option<u32>| {
            (entirely || bound.is_some()).then(|| in_words(bound.unwrap_or(0)))
        };
        let found = table.queue().bounds();
        let share = self.share_tokens.or(entirely.then_some(false));
        let queue = [
            ("max_waiting", asked(self.max_waiting), in_words(found.all)),
            (
                "share_tokens",
                share.map(|share| share.to_string()),
                found.by_tokens.to_string(),
            ),
        ];
        let of_class = *self;
        queue.into_iter().chain((0..CLASSES).map(move |class| {
            let found = in_words(found.of_class[class]);
            (OF_CLASS[class], asked(of_class.of_class[class]), found)
        }))
    }

    /// Each option that was set, for [`Options`]' `Debug`.
    pub(crate) fn said(&self, said: &mut std::fmt::DebugStruct<'_, '_>) {
        self.max_waiting
            .map(|bound| said.field("max_waiting", &bound));
        if self.of_class.iter().any(Option::is_some) {
            said.field("max_waiting_of_class", &self.of_class);
        }
        self.share_tokens
            .map(|tokens| said.field("share_tokens", &tokens));
    }
}
