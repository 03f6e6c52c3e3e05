//! Sets nginx up for the comparison.

use super::stage::Running;
use super::{WORKERS, failed};
use crate::step::Failed;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Finds a program, also where its directory is on root's path only.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    places.find_map(|place| Some(place.join(program)).filter(|file| file.exists()))
}

/// Returns an address at which no process listens.
pub(super) fn free_address() -> Result<SocketAddr, Failed> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    free.map_err(|error| failed("finding a free port", &error))
}

pub(super) fn version(nginx: &Path) -> Result<String, Failed> {
    let output = Command::new(nginx).arg("-v").output();
    let output = output.map_err(|error| failed("asking nginx for its version", &error))?;
    let text = String::from_utf8_lossy(&output.stderr);
    Ok(text.trim().replace("nginx version: ", ""))
}

/// Starts nginx in front of these engines, with its files in a directory.
pub(super) fn start(
    nginx: &Path,
    directory: &Path,
    engines: &[SocketAddr],
    cap: usize,
) -> Result<(Running, SocketAddr), Failed> {
    let address = free_address()?;
    let file = directory.join("nginx.conf");
    let configuration = configuration(address, engines, cap);
    fs::write(&file, configuration).map_err(|error| failed("configuring nginx", &error))?;
    let mut command = Command::new(nginx);
    command.arg("-p").arg(directory).arg("-c").arg(&file);
    command.arg("-e").arg(directory.join("error.log"));
    let child = command
        .spawn()
        .map_err(|error| failed("starting nginx", &error))?;
    Ok((Running(child), address))
}

fn configuration(address: SocketAddr, engines: &[SocketAddr], cap: usize) -> String {
    let servers = engines
        .iter()
        .map(|engine| format!("server {engine} max_conns={cap};"));
    let servers = servers.collect::<Vec<_>>().join("\n        ");
    format!(
        r#"daemon off;
worker_processes {WORKERS};
pid nginx.pid;
error_log error.log;
events {{
    worker_connections 8192;
}}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream engines {{
        zone engines 256k;
        least_conn;
        {servers}
        keepalive 64;
    }}
    server {{
        listen {address} backlog=4096;
        location / {{
            proxy_pass http://engines;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
        }}
    }}
}}
"#
    )
}
