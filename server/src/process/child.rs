//! Child processes of the parent: this program again, as a worker or a mock engine.

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

/// Returns a command that starts this program: the same version, even if its file was removed or replaced
/// meanwhile.
pub(crate) fn this_program() -> Command {
    let path = std::env::current_exe().ok().filter(|path| path.exists());
    let mut command = Command::new(path.unwrap_or(PathBuf::from("/proc/self/exe")));
    // Ctrl-C is for the parent alone, which then ends its children in order.
    command.process_group(0);
    command
}

/// Starts a child whose standard input is a pipe from this process: its lifeline.
pub(crate) fn start(mut command: Command) -> io::Result<(Child, Option<ChildStdin>)> {
    command.stdin(Stdio::piped());
    let mut child = tokio::process::Command::from(command).spawn()?;
    let lifeline = child.stdin.take();
    Ok((child, lifeline))
}

/// Makes a worker end at once. The worker cuts its requests itself, so that each has its line in the access log.
pub(crate) async fn cut(child: &mut Child) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    if let Some(pid) = pid {
        // Fails if it is dead already.
        let _ = kill_process(pid, AT_ONCE);
    }
    finish(child, Duration::ZERO).await;
}

/// Waits for a child whose lifeline is closed, and kills it if it takes longer than the limit and the time for its
/// last log lines.
pub(crate) async fn finish(child: &mut Child, limit: Duration) {
    let limit = limit + LAST_LINES + Duration::from_secs(2);
    if timeout(limit, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}
