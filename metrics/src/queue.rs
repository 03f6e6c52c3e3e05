//! The metrics of a table's queue. A table without a queue has none of them.

use crate::Scrape;
use headcount::{QueueView, WaitedView};
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{IntCounterVec, Opts};
use std::collections::HashMap;

const WAITED: &str = "headcount_waited_seconds";
const WAITED_HELP: &str =
    "How long requests waited that got a place after waiting, since the table was created.";

/// Registers the metrics of all queues of a scrape.
pub(crate) fn register(scrape: &Scrape<'_>) -> prometheus::Result<()> {
    let queues = || {
        let contents = scrape.contents();
        contents
            .filter_map(|(table, contents)| Some((table, contents, contents.view.queue.as_ref()?)))
    };
    let by_class = |name, help| scrape.gauges(name, help, &["class"]);
    let waiting = by_class(
        "headcount_waiting",
        "Requests of the class that wait for a place, counted exactly.",
    )?;
    let oldest = by_class(
        "headcount_waiting_oldest_seconds",
        "For how long the first of the class that waits has waited; absent if none waits.",
    )?;
    let most_of_class = by_class(
        "headcount_max_waiting_of_class",
        "The most requests of the class that wait; absent if it has no bound of its own.",
    )?;
    let most = scrape.gauges(
        "headcount_max_waiting",
        "The most requests that wait, of all classes together.",
        &[],
    )?;
    let of_frontend = scrape.gauges(
        "headcount_frontend_waiting",
        "Requests of the frontend that wait for a place.",
        &["frontend", "pid"],
    )?;
    let counter = |name, help| -> prometheus::Result<IntCounterVec> {
        let counters = IntCounterVec::new(Opts::new(name, help), &["table"])?;
        scrape.registry.register(Box::new(counters.clone()))?;
        Ok(counters)
    };
    let refused = counter(
        "headcount_waiting_refused_total",
        "Requests refused since the table was created because the queue was full.",
    )?;
    let timed_out = counter(
        "headcount_waiting_timed_out_total",
        "Requests that waited since the table was created and whose time was over.",
    )?;
    let cancelled = counter(
        "headcount_waiting_cancelled_total",
        "Requests that waited since the table was created, and were given up by their callers or found no engine any more.",
    )?;
    for (table, contents, queue) in queues() {
        for (class, view) in queue.classes.iter().enumerate() {
            let class = class.to_string();
            let label = [table, class.as_str()];
            waiting.with_label_values(&label).set(view.waiting.into());
            if let Some(age) = view.oldest {
                oldest.with_label_values(&label).set(age.as_secs_f64());
            }
            if let Some(bound) = view.max_waiting {
                most_of_class.with_label_values(&label).set(bound.into());
            }
        }
        most.with_label_values(&[table])
            .set(queue.max_waiting.into());
        for frontend in &contents.view.frontends {
            let (slot, pid) = (frontend.slot.to_string(), frontend.pid.to_string());
            of_frontend
                .with_label_values(&[table, slot.as_str(), pid.as_str()])
                .set(frontend.waiting as f64);
        }
        let totals = [
            (&refused, queue.refused_total),
            (&timed_out, queue.timed_out_total),
            (&cancelled, queue.cancelled_total),
        ];
        for (counter, total) in totals {
            counter.with_label_values(&[table]).inc_by(total);
        }
    }
    let waited = Waited::of(queues().map(|(table, _, queue)| (table, queue)))?;
    scrape.registry.register(Box::new(waited))
}

/// The histogram of each table. Its counts are the table's; the crate's own histogram could only count anew.
struct Waited {
    desc: Desc,
    metrics: Vec<Metric>,
}

impl Waited {
    fn of<'a>(queues: impl Iterator<Item = (&'a str, &'a QueueView)>) -> prometheus::Result<Self> {
        let desc = Desc::new(
            WAITED.to_owned(),
            WAITED_HELP.to_owned(),
            vec!["table".to_owned()],
            HashMap::new(),
        )?;
        let metrics = queues.map(|(table, queue)| {
            let mut label = LabelPair::default();
            label.set_name("table".to_owned());
            label.set_value(table.to_owned());
            let mut metric = Metric::from_label(vec![label]);
            metric.set_histogram(histogram(&queue.waited));
            metric
        });
        let metrics = metrics.collect();
        Ok(Self { desc, metrics })
    }
}

fn histogram(waited: &WaitedView) -> Histogram {
    let mut sum = 0_u64;
    let buckets = WaitedView::BOUNDS
        .iter()
        .zip(waited.by_range)
        .map(|(bound, count)| {
            sum = sum.wrapping_add(count);
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound / 1e3);
            bucket.set_cumulative_count(sum);
            bucket
        });
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_count(waited.count());
    histogram.set_sample_sum(waited.sum.as_secs_f64());
    histogram
}

impl Collector for Waited {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut family = MetricFamily::default();
        family.set_name(WAITED.to_owned());
        family.set_help(WAITED_HELP.to_owned());
        family.set_field_type(MetricType::HISTOGRAM);
        family.set_metric(self.metrics.clone());
        vec![family]
    }
}
