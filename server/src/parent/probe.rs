//! Probes the engines that are down until they answer, and reaps dead frontends of the table.
//!
//! The parent does this for every engine that is down in the table, whichever process has taken it down, even one
//! of an earlier deployment.

use crate::engine::dial::{Dialer, authority};
use crate::log::say;
use crate::options::Options;
use crate::parent::outside_changes::{Configuration, lock};
use bytes::Bytes;
use headcount::{EngineState, Table};
use http_body_util::Empty;
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Probes at intervals, for ever.
pub(crate) async fn probe(
    table: Table,
    options: Options,
    configuration: Arc<Mutex<Configuration>>,
) {
    let dialer = Arc::new(Dialer::new(&options));
    let mut ticks = interval(options.probe_every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = table.reap() {
            say(format_args!("{error}; trying again soon"));
        }
        let mut probes = JoinSet::new();
        for engine in table.view().engines {
            if engine.state == EngineState::Down {
                let (dialer, path) = (Arc::clone(&dialer), options.probe_path.clone());
                let asked = async move {
                    let answer = ask(&dialer, &engine.name, &path);
                    // An idle engine answers within a second.
                    let limit = options.connect_timeout.max(Duration::from_secs(1));
                    let back = matches!(timeout(limit, answer).await, Ok(Ok(true)));
                    (engine, back)
                };
                probes.spawn(asked);
            }
        }
        while let Some(probed) = probes.join_next().await {
            // An engine that was removed or drained meanwhile stays so, and so does one that now has its row.
            if let Ok((engine, true)) = probed
                && let Ok(true) = table.up_if_down(engine.id)
            {
                say(format_args!("{} is up again", engine.name));
                lock(&configuration).is_up(&engine.name);
            }
        }
    }
}

/// Asks an engine for its probe path. Returns whether the answer is a 2xx.
async fn ask(dialer: &Dialer, engine: &str, path: &str) -> Result<bool, Box<dyn Error>> {
    let stream = dialer.reach(engine).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(path)
        .header(HOST, authority(engine).as_ref())
        .body(Empty::<Bytes>::new())?;
    let mut answer = pin!(sender.send_request(request));
    let answer = tokio::select! {
        answer = &mut answer => answer,
        // The connection has ended. Its answer or its error is there now.
        _ = connection => answer.await,
    };
    Ok(answer?.status().is_success())
}
