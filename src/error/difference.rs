//! One thing in which a table differs from the options that are asked for.

use std::fmt;
use std::path::Path;

/// One thing in which a table differs from the options that are asked for; in
/// [`Error::Differs`](crate::Error::Differs) and [`Changes`](crate::Changes).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Difference {
    /// The engine that differs, by its name. `None`: the table itself.
    pub engine: Option<String>,
    /// The option that differs, by the name that it has in [`Options`](crate::Options) or
    /// [`Engine`](crate::Engine). `"engine"` if the table has no engine of that name, or one that was not asked for.
    pub option: &'static str,
    /// The table's value: a number, `none` for no cap, or `absent` or `present` for an engine.
    pub found: String,
    /// The value that was asked for, in the same form.
    pub asked: String,
}

pub(crate) const ENGINE: &str = "engine";
pub(crate) const ABSENT: &str = "absent";
pub(crate) const PRESENT: &str = "present";

impl Difference {
    /// Whether the table has no engine of that name.
    pub fn is_missing_engine(&self) -> bool {
        self.option == ENGINE && self.found == ABSENT
    }

    /// Whether the table has an engine of that name, which was not asked for.
    pub fn is_surplus_engine(&self) -> bool {
        self.option == ENGINE && self.asked == ABSENT
    }

    /// Whether [`Table::apply`](crate::Table::apply) can change it. What a table was created with stays.
    pub fn can_be_changed(&self) -> bool {
        !["max_engines", "max_frontends", "threads", "mode"].contains(&self.option)
    }

    /// Returns the change in words: `engine a: max_in_flight 8, now 9`, `engine b: added`,
    /// `engine c: removed` or `max_in_flight none, now 60`.
    pub fn change(&self) -> String {
        let (option, found, asked) = (self.option, &self.found, &self.asked);
        match &self.engine {
            Some(name) if self.is_missing_engine() => format!("engine {name}: added"),
            Some(name) if self.is_surplus_engine() => format!("engine {name}: removed"),
            Some(name) => format!("engine {name}: {option} {found}, now {asked}"),
            None => format!("{option} {found}, now {asked}"),
        }
    }

    pub(crate) fn engine(name: &str, option: &'static str, found: String, asked: String) -> Self {
        Self {
            engine: Some(name.to_owned()),
            option,
            found,
            asked,
        }
    }
}

/// `engine "a": max_in_flight is 8, not 9`, say.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (option, found, asked) = (self.option, &self.found, &self.asked);
        match &self.engine {
            Some(name) if self.is_missing_engine() => write!(f, "engine \"{name}\" is not in it"),
            Some(name) if self.is_surplus_engine() => {
                write!(f, "engine \"{name}\" is in it and was not asked for")
            }
            Some(name) => write!(f, "engine \"{name}\": {option} is {found}, not {asked}"),
            None => write!(f, "{option} is {found}, not {asked}"),
        }
    }
}

/// The message of an [`Error::Differs`](crate::Error::Differs).
pub(super) fn message(path: &Path, differences: &[Difference]) -> String {
    const SHOWN: usize = 3;
    let path = path.display();
    let shown: Vec<_> = differences
        .iter()
        .take(SHOWN)
        .map(Difference::to_string)
        .collect();
    let more = match differences.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let advice = match differences.iter().all(Difference::can_be_changed) {
        true => format!(
            "ask for what it has, or change it with `Table::apply` or `headcount apply {path}`"
        ),
        false => format!(
            "what a table was created with stays: ask for the same, make a table at another path, or `headcount rm {path}` when no process uses it"
        ),
    };
    format!(
        "{path} differs from what was asked for: {}{more}; {advice}",
        shown.join("; ")
    )
}
