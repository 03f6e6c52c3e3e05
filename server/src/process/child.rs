//! Processes that the parent starts: this program again, with a part to play.

use crate::log::LAST_LINES;
use crate::process::shutdown::AT_ONCE;
use rustix::process::{Pid, kill_process};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::process::{Child, ChildStdin};
use tokio::time::timeout;

/// This program. Also if its file has been replaced meanwhile: then all of a deployment still are of
/// one version.
pub(crate) fn this_program() -> Command {
    let path = std::env::current_exe().ok().filter(|path| path.exists());
    let mut command = Command::new(path.unwrap_or(PathBuf::from("/proc/self/exe")));
    // Ctrl-C is for the parent alone, which then ends the others in order.
    command.process_group(0);
    command
}

/// Starts a process with a lifeline.
pub(crate) fn start(mut command: Command) -> io::Result<(Child, Option<ChildStdin>)> {
    command.stdin(Stdio::piped());
    let mut child = tokio::process::Command::from(command).spawn()?;
    let lifeline = child.stdin.take();
    Ok((child, lifeline))
}

/// Has a worker end at once. It cuts its requests itself, so that each has its line in the access log.
pub(crate) async fn cut(child: &mut Child) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    if let Some(pid) = pid {
        // It may be dead already.
        let _ = kill_process(pid, AT_ONCE);
    }
    finish(child, Duration::ZERO).await;
}

/// Waits for a process whose lifeline is cut; for somewhat longer than it was told to take, so that it can write
/// its last lines.
pub(crate) async fn finish(child: &mut Child, limit: Duration) {
    let limit = limit + LAST_LINES + Duration::from_secs(2);
    if timeout(limit, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}
