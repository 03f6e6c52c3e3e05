//! Crashes whose core dump takes the kernel a while.

use headcount_tests::CoreDump;
use std::io;

/// Crashes with `bytes` bytes of memory in use. Returns only if a limit cannot be set.
pub(crate) fn crash(bytes: usize, dump: CoreDump) -> io::Result<()> {
    match dump {
        CoreDump::Whole => limit_of_dumps(libc::RLIM_INFINITY)?,
        CoreDump::None => limit_of_dumps(0)?,
        CoreDump::WithoutMemory => {
            limit_of_dumps(libc::RLIM_INFINITY)?;
            std::fs::write("/proc/self/coredump_filter", "0")?;
        }
    }
    let memory = vec![1_u8; bytes];
    std::hint::black_box(&memory);
    std::process::abort()
}

/// Sets the size of core dumps, as `ulimit -c` does.
fn limit_of_dumps(bytes: libc::rlim_t) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: reads that structure only.
    match unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
