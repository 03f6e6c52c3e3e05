//! The queue of a table: as arguments, and in sentences.

use crate::caps::{Cap, a_number};
use crate::format::{count, wait};
use clap::Args;
use headcount::{MAX_IN_FLIGHT, Options, QueueView};

/// The most requests that can wait in a table.
const MOST: u32 = MAX_IN_FLIGHT;

/// How many requests may wait.
#[derive(Args, Clone, Debug)]
pub(crate) struct QueueArgs {
    /// The most requests that wait for a place, over all processes [default: none, each is placed or refused].
    #[arg(long, value_name = "N|none", allow_negative_numbers = true)]
    max_waiting: Option<Cap<MOST>>,
    /// The most requests of a class that wait, 0 to 3; once for each class.
    #[arg(long, value_name = "CLASS=N", value_parser = of_class, requires = "max_waiting",
          allow_negative_numbers = true)]
    max_waiting_of_class: Vec<(u8, u32)>,
    /// Let tenants share tokens, and not requests, while they wait.
    #[arg(long, requires = "max_waiting")]
    share_tokens: bool,
}

impl QueueArgs {
    /// Sets what is given in options.
    pub(crate) fn set_in(&self, options: Options) -> Result<Options, String> {
        let Some(Cap(Some(most))) = self.max_waiting else {
            return match self.max_waiting_of_class.is_empty() && !self.share_tokens {
                true => Ok(options),
                false => Err("--max-waiting is none, so the table has no queue; leave the other flags of a queue out".to_owned()),
            };
        };
        let mut options = options.max_waiting(most);
        let mut given = Vec::new();
        for (class, most) in &self.max_waiting_of_class {
            if given.contains(class) {
                return Err(format!(
                    "--max-waiting-of-class is given twice for class {class}; give it once for each class"
                ));
            }
            given.push(*class);
            options = options.max_waiting_of_class(*class, *most);
        }
        Ok(match self.share_tokens {
            true => options.share_tokens(true),
            false => options,
        })
    }
}

/// Reads a class and its bound.
fn of_class(text: &str) -> Result<(u8, u32), String> {
    let (class, most) =
        (text.split_once('=')).ok_or_else(|| "give a class and a number, as 2=50".to_owned())?;
    let class = class.parse().ok().filter(|class| *class <= 3);
    let class = class.ok_or_else(|| "a class is a number from 0 to 3".to_owned())?;
    let most = a_number(most, MOST).map_err(|expected| format!("give {expected} after the ="))?;
    Ok((class, most))
}

/// Describes the bounds of a queue.
pub(crate) fn bounds(queue: &QueueView) -> String {
    let mut said = format!(
        "at most {} wait",
        count(queue.max_waiting.into(), "request")
    );
    for (class, view) in queue.classes.iter().enumerate() {
        if let Some(bound) = view.max_waiting {
            said += &format!(", at most {bound} of class {class}");
        }
    }
    if queue.share_tokens {
        said += "; tenants share tokens";
    }
    said
}

/// Returns how many requests wait.
pub(crate) fn waiting(queue: &QueueView) -> u64 {
    let classes = queue.classes.iter();
    classes.map(|class| u64::from(class.waiting)).sum()
}

/// Says who waits, of how many at most, and for how long the first one has.
pub(crate) fn who_waits(queue: &QueueView) -> String {
    let mut said = match queue.max_waiting {
        // The bound was taken away, and some wait on.
        0 => format!("{} waiting, and no more may", waiting(queue)),
        most => format!("{} of at most {most} waiting", waiting(queue)),
    };
    if let Some(age) = queue.classes.iter().filter_map(|class| class.oldest).max() {
        said += &format!(", the first for {}", wait(age));
    }
    let classes = queue.classes.iter().enumerate();
    let told: Vec<_> = classes
        .filter(|(class, view)| view.max_waiting.is_some() || *class > 0 && view.waiting > 0)
        .collect();
    if !told.is_empty() {
        let classes = queue.classes.iter().enumerate();
        let classes = classes.filter(|(_, view)| view.waiting > 0 || view.max_waiting.is_some());
        let classes: Vec<_> = classes
            .map(|(class, view)| match view.max_waiting {
                Some(bound) => format!("class {class}: {} of at most {bound}", view.waiting),
                None => format!("class {class}: {}", view.waiting),
            })
            .collect();
        said += &format!(" ({})", classes.join(", "));
    }
    said
}

/// Says how long requests have waited, and how many in vain. `None`: none has.
pub(crate) fn who_waited(queue: &QueueView) -> Option<String> {
    let mut parts = Vec::new();
    if queue.waited.count() > 0 {
        let within = |share| match queue.waited.quantile(share) {
            Some(bound) => format!("within {}", wait(bound)),
            None => "in over 60 s".to_owned(),
        };
        parts.push(format!(
            "{} served after waiting, half of them {}, 99% {}",
            queue.waited.count(),
            within(0.5),
            within(0.99)
        ));
    }
    for (count, what) in [
        (queue.refused_total, "refused because the queue was full"),
        (queue.timed_out_total, "timed out"),
        (queue.cancelled_total, "cancelled"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_of_a_class_names_the_class() {
        assert_eq!(of_class("3=1048575"), Ok((3, 1_048_575)));
        for wrong in ["3", "4=1", "=1", "1=", "1=0", "1=1048576", "-1=2", "1=2=3"] {
            assert!(of_class(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_queue_is_described_in_few_words() {
        let options = headcount::Table::options().engines(1).max_waiting(5);
        let table = options.memfd().unwrap();
        let mut queue = table.view().queue.unwrap();
        assert_eq!(bounds(&queue), "at most 5 requests wait");
        assert_eq!(who_waits(&queue), "0 of at most 5 waiting");
        assert_eq!(who_waited(&queue), None);
        queue.classes[0].waiting = 2;
        queue.classes[0].oldest = Some(std::time::Duration::from_millis(3200));
        assert_eq!(
            who_waits(&queue),
            "2 of at most 5 waiting, the first for 3.2 s"
        );
        queue.classes[3].max_waiting = Some(4);
        queue.share_tokens = true;
        assert_eq!(
            bounds(&queue),
            "at most 5 requests wait, at most 4 of class 3; tenants share tokens"
        );
        assert_eq!(
            who_waits(&queue),
            "2 of at most 5 waiting, the first for 3.2 s (class 0: 2, class 3: 0 of at most 4)"
        );
        queue.waited.by_range[3] = 99;
        queue.waited.by_range[15] = 1;
        queue.cancelled_total = 7;
        assert_eq!(
            who_waited(&queue).unwrap(),
            "100 served after waiting, half of them within 10 ms, 99% within 10 ms, 7 cancelled"
        );
        queue.waited.by_range[15] = 2;
        assert!(who_waited(&queue).unwrap().contains("99% in over 60 s"));
        queue.max_waiting = 0;
        assert!(who_waits(&queue).starts_with("2 waiting, and no more may"));
    }
}
