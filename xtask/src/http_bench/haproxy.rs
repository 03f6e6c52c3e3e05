//! Sets HAProxy up for the comparison.

use super::nginx::free_address;
use super::stage::Running;
use super::{WORKERS, failed};
use crate::step::Failed;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// Starts HAProxy in front of these engines, with its configuration in a directory.
pub(super) fn start(
    haproxy: &Path,
    directory: &Path,
    engines: &[SocketAddr],
    cap: usize,
) -> Result<(Running, SocketAddr), Failed> {
    let address = free_address()?;
    let file = directory.join("haproxy.cfg");
    let text = configuration(address, engines, cap);
    fs::write(&file, text).map_err(|error| failed("configuring HAProxy", &error))?;
    // In the foreground, without messages.
    let child = Command::new(haproxy)
        .arg("-db")
        .arg("-q")
        .arg("-f")
        .arg(&file)
        .spawn();
    let child = child.map_err(|error| failed("starting HAProxy", &error))?;
    Ok((Running(child), address))
}

fn configuration(address: SocketAddr, engines: &[SocketAddr], cap: usize) -> String {
    let servers = engines.iter().enumerate();
    let servers = servers.map(|(number, engine)| format!("    server e{number} {engine}\n"));
    let servers: String = servers.collect();
    format!(
        "global
    maxconn 8192
    nbthread {WORKERS}
defaults
    mode http
    balance leastconn
    http-reuse always
    timeout connect 5s
    timeout queue 60s
    timeout client 60s
    timeout server 60s
    default-server maxconn {cap}
listen engines
    bind {address} backlog 4096
{servers}"
    )
}
