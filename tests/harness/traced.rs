//! A process that is stopped at a chosen system call.

use crate::{Actor, Task, TestTable};
use std::ptr;

/// Puts a dead frontend with 7 requests into a table of two engines in which no frontend has joined yet. Returns a
/// reaper that has stopped between taking the dead frontend's lock and all else.
pub fn reaper_half_way(table: &TestTable) -> (Actor, Traced) {
    let mut reaper = Actor::opened(table.path());
    let mut dead = Actor::joined(table.path());
    assert_eq!(dead.burst(7), [4, 3]);
    dead.kill();
    let stopped = Traced::after_its_next_lock(&mut reaper, &Task::Reap);
    (reaper, stopped)
}

/// An actor that this thread traces. It stays stopped until it is let go; dropping this does so.
#[derive(Debug)]
pub struct Traced {
    pid: libc::pid_t,
}

impl Traced {
    /// Gives the actor a task, and stops it right after it has taken its next lock on a file.
    pub fn after_its_next_lock(actor: &mut Actor, task: &Task) -> Self {
        let traced = Self { pid: actor.pid() };
        traced.ask(libc::PTRACE_SEIZE, libc::PTRACE_O_TRACESYSGOOD as usize);
        traced.ask(libc::PTRACE_INTERRUPT, 0);
        traced.wait();
        actor.tell(task);
        loop {
            traced.ask(libc::PTRACE_SYSCALL, 0);
            traced.wait();
            if traced.enters_a_lock() {
                break;
            }
        }
        traced.ask(libc::PTRACE_SYSCALL, 0);
        traced.wait();
        traced
    }

    /// Lets the actor go on.
    pub fn goes_on(self) {}

    fn enters_a_lock(&self) -> bool {
        // SAFETY: a C structure of integers, of which zeros are a value.
        let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
        let (request, size) = (libc::PTRACE_GET_SYSCALL_INFO, size_of_val(&info));
        // SAFETY: writes at most `size` bytes, into the structure.
        let got = unsafe { libc::ptrace(request, self.pid, size, &raw mut info) };
        assert!(got > 0, "the kernel says what a process has stopped at");
        if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
            return false;
        }
        // SAFETY: the kernel has just said that it is this one of the variants.
        let entry = unsafe { info.u.entry };
        entry.nr == libc::SYS_fcntl as u64 && entry.args[1] == libc::F_OFD_SETLK as u64
    }

    fn ask(&self, request: libc::c_uint, data: usize) {
        // SAFETY: these requests stop, start or let go of a child of this process; they touch no
        // memory.
        let done = unsafe { libc::ptrace(request, self.pid, ptr::null_mut::<u8>(), data) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }

    fn wait(&self) {
        let mut status = 0;
        // SAFETY: waits for a child of ours; writes to the integer only.
        let waited = unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) };
        assert!(
            waited == self.pid && libc::WIFSTOPPED(status),
            "it stops: {status:#x}"
        );
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // SAFETY: lets go of a process that this thread traces, or fails if that is gone.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.pid, 0, 0) };
    }
}
