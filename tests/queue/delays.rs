//! For how long threads could run and did not, as the kernel counts it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

/// How often it is looked.
const PAUSE: Duration = Duration::from_millis(2);

/// A thread of this process.
struct Watched {
    name: std::ffi::OsString,
    file: File,
    delay: u64,
}

impl Watched {
    /// For how many nanoseconds it could run and did not, since the last call.
    fn delayed(&mut self) -> u64 {
        let mut said = [0; 96];
        let length = self.file.read_at(&mut said, 0).unwrap_or(0);
        let said = String::from_utf8_lossy(&said[..length]);
        // Running time, delay, how often it came to run.
        let delay = said.split(' ').nth(1).and_then(|delay| delay.parse().ok());
        let before = std::mem::replace(&mut self.delay, delay.unwrap_or(0));
        self.delay.saturating_sub(before)
    }
}

/// Looks at all threads of this process while `go_on`, and says when one was delayed. The delay has come to its end then.
/// A kernel that does not count delays has none.
pub(crate) fn note_delays(go_on: impl Fn() -> bool, mut late: impl FnMut(u64)) {
    const WORTH_IT: u64 = 500_000;
    let mut threads: Vec<Watched> = Vec::new();
    for look in 0_u64.. {
        if !go_on() {
            return;
        }
        // The library starts one, too.
        if look % 8 == 0 {
            find_new(&mut threads);
        }
        let longest = threads.iter_mut().map(Watched::delayed).max();
        if let Some(delay @ WORTH_IT..) = longest {
            late(delay + PAUSE.as_nanos() as u64);
        }
        thread::sleep(PAUSE);
    }
}

fn find_new(threads: &mut Vec<Watched>) {
    for thread in std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = thread.file_name();
        if threads.iter().all(|known| known.name != name)
            && let Ok(file) = File::open(thread.path().join("schedstat"))
        {
            let mut watched = Watched {
                name,
                file,
                delay: 0,
            };
            watched.delayed();
            threads.push(watched);
        }
    }
}
