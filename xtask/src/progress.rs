//! Runs the parts of a task in turn, and says how far it is.

use crate::step::{Checked, Failed, Step};
use std::time::{Duration, Instant};

/// A part of a task.
pub(crate) struct Part<'a> {
    name: &'static str,
    run: Box<dyn FnOnce() -> Result<Checked, Failed> + 'a>,
}

impl<'a> Part<'a> {
    pub(crate) fn new<T: Into<Checked>>(
        name: &'static str,
        run: impl FnOnce() -> Result<T, Failed> + 'a,
    ) -> Self {
        let run = Box::new(move || run().map(Into::into));
        Self { name, run }
    }
}

impl From<Step> for Part<'_> {
    fn from(step: Step) -> Self {
        Self::new(step.name, move || step.run())
    }
}

/// Runs the parts in turn until one fails. Prints the number of each, and at the end the time that each took and
/// what was left out.
pub(crate) fn run(parts: Vec<Part<'_>>) -> Result<(), Failed> {
    let (all, start) = (parts.len(), Instant::now());
    let mut ended = Vec::new();
    let mut result = Ok(());
    for (index, Part { name, run }) in parts.into_iter().enumerate() {
        let number = format!("[{}/{all}]", index + 1);
        println!("-- {number} {name}");
        let begun = Instant::now();
        let checked = run();
        let took = begun.elapsed();
        let how = match &checked {
            Ok(Checked::Fine) => "fine".to_owned(),
            Ok(Checked::Not(why)) => format!("LEFT OUT: {why}"),
            Err(_) => "FAILED".to_owned(),
        };
        println!("-- {number} {name}: {how}, {}", seconds(took));
        ended.push((name, how, took));
        if let Err(Failed(why)) = checked {
            result = Err(Failed(format!("{number} {why}")));
            break;
        }
    }
    if all > 1 {
        println!("-- in all {}", seconds(start.elapsed()));
        for (name, how, took) in ended {
            println!("   {:>9}  {name}: {how}", seconds(took));
        }
    }
    result
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn parts_run_in_turn_until_one_fails() {
        let ran = RefCell::new(Vec::new());
        let part = |name, result: Result<Checked, &'static str>| {
            let ran = &ran;
            Part::new(name, move || {
                ran.borrow_mut().push(name);
                result.map_err(|why| Failed(why.to_owned()))
            })
        };
        let result = run(vec![
            part("one", Ok(Checked::Fine)),
            part("two", Ok(Checked::Not("nothing to check"))),
            part("three", Err("broken")),
            part("four", Ok(Checked::Fine)),
        ]);
        assert_eq!(result.unwrap_err().0, "[3/4] broken");
        assert_eq!(*ran.borrow(), ["one", "two", "three"]);
    }
}
