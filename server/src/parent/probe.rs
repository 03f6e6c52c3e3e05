//! Engines that are down are asked until they answer; and what is dead is reaped, workers of this deployment or others.
//!
//! The parent does this, for all that is down in the table: whichever worker has marked it, alive or
//! not, and also what a deployment has left that died as a whole.

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
                    // A second is long for an engine that has nothing to do.
                    let limit = options.connect_timeout.max(Duration::from_secs(1));
                    let back = matches!(timeout(limit, answer).await, Ok(Ok(true)));
                    (engine, back)
                };
                probes.spawn(asked);
            }
        }
        while let Some(probed) = probes.join_next().await {
            // It may have been removed or drained meanwhile; then there is nothing to bring up, whatever
            // has its number now.
            if let Ok((engine, true)) = probed
                && let Ok(true) = table.up_if_down(engine.id)
            {
                say(format_args!("{} is back", engine.name));
                lock(&configuration).is_up(&engine.name);
            }
        }
    }
}

/// Whether an engine says that it is well.
async fn ask(dialer: &Dialer, engine: &str, path: &str) -> Result<bool, Box<dyn Error>> {
    let stream = dialer.reach(engine).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(path)
        .header(HOST, authority(engine))
        .body(Empty::<Bytes>::new())?;
    let mut answer = pin!(sender.send_request(request));
    let answer = tokio::select! {
        answer = &mut answer => answer,
        // It has ended. What was answered before that is there, or an error is.
        _ = connection => answer.await,
    };
    Ok(answer?.status().is_success())
}
