//! A forked child that is led through an operation instruction by instruction.

use crate::forked::{EndsHere, PATIENCE, tell, told};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, PipeReader};
use std::marker::PhantomData;

/// A child that has stopped right before its operation, or somewhere in it.
///
/// It reports an `R` when the operation has ended.
#[derive(Debug)]
pub struct Tracee<R> {
    pid: libc::pid_t,
    ended: bool,
    pipe: PipeReader,
    reports: PhantomData<R>,
}

/// A system call that changes nothing, and that nothing else makes.
const MARK: libc::c_long = libc::SYS_getppid;

/// Where `PTRACE_PEEKUSER` finds it.
#[cfg(target_arch = "x86_64")]
const INSTRUCTION_POINTER: u64 = std::mem::offset_of!(libc::user_regs_struct, rip) as u64;

impl<R: Serialize + DeserializeOwned> Tracee<R> {
    /// Forks a child that prepares itself, stops, performs its operation, stops again, and makes its
    /// report of the result once it is [asked](Self::report). It lives on after that.
    ///
    /// This process must have one thread, so that the child may do anything.
    pub fn fork<P, D>(
        prepare: impl FnOnce() -> P,
        operation: impl FnOnce(P) -> D,
        report: impl FnOnce(D) -> R,
    ) -> io::Result<Self> {
        let (pipe, to_parent) = io::pipe()?;
        // SAFETY: there is one thread, and the child leaves by `_exit` only.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(pipe);
                let _ends = EndsHere;
                // SAFETY: ends a child that nothing leads on.
                unsafe { libc::alarm(PATIENCE) };
                let prepared = prepare();
                // SAFETY: lets the parent trace this child.
                unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
                stop();
                let done = operation(prepared);
                stop();
                tell(to_parent, &report(done));
                stop();
                // SAFETY: ends this child.
                unsafe { libc::_exit(0) }
            }
            pid => {
                let tracee = Self {
                    pid,
                    ended: false,
                    pipe,
                    reports: PhantomData,
                };
                tracee.wait_for(libc::SIGSTOP)?;
                Ok(tracee)
            }
        }
    }

    /// Lets the child execute one instruction. Returns false if the operation has ended.
    pub fn step(&mut self) -> io::Result<bool> {
        self.go(libc::PTRACE_SINGLESTEP)?;
        match self.wait()? {
            libc::SIGTRAP => {}
            libc::SIGSTOP => self.ended = true,
            other => return Err(stopped_by(other)),
        }
        Ok(!self.ended)
    }

    /// Returns the address of the next instruction. `None` on processors for which this is not written.
    pub fn position(&self) -> io::Result<Option<u64>> {
        #[cfg(target_arch = "x86_64")]
        return self
            .peek(libc::PTRACE_PEEKUSER, INSTRUCTION_POINTER)
            .map(Some);
        #[cfg(not(target_arch = "x86_64"))]
        Ok(None)
    }

    /// Lets the child go on until it is at an instruction that it has passed `passes` times before, by a breakpoint,
    /// which is far quicker than single steps. Returns false if the operation has ended, and the child never came
    /// there.
    #[cfg(target_arch = "x86_64")]
    pub fn run_to(&mut self, position: u64, passes: usize) -> io::Result<bool> {
        const BREAKPOINT: u64 = 0xcc;
        let code = self.peek(libc::PTRACE_PEEKTEXT, position)?;
        let trap = code & !0xff | BREAKPOINT;
        for pass in 0..=passes {
            if pass > 0 && !self.step()? {
                return Ok(false);
            }
            if self.position()? == Some(position) {
                continue;
            }
            self.poke(libc::PTRACE_POKETEXT, position, trap)?;
            self.go(libc::PTRACE_CONT)?;
            match self.wait()? {
                libc::SIGTRAP => {}
                libc::SIGSTOP => self.ended = true,
                other => return Err(stopped_by(other)),
            }
            self.poke(libc::PTRACE_POKETEXT, position, code)?;
            if self.ended {
                return Ok(false);
            }
            self.poke(libc::PTRACE_POKEUSER, INSTRUCTION_POINTER, position)?;
        }
        Ok(true)
    }

    /// Lets the child go on to the end, on processors for which breakpoints are not written.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn run_to(&mut self, _position: u64, _passes: usize) -> io::Result<bool> {
        self.finish()?;
        Ok(false)
    }

    #[cfg(target_arch = "x86_64")]
    fn peek(&self, what: libc::c_uint, at: u64) -> io::Result<u64> {
        // SAFETY: this thread's own; a word that is read may be -1, so that only it tells of an error.
        let error = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { *error = 0 };
        // SAFETY: the child is ours, traced and stopped; this reads a word of it.
        let word = unsafe { libc::ptrace(what, self.pid, at, 0) };
        match io::Error::last_os_error() {
            error if word == -1 && error.raw_os_error() != Some(0) => Err(error),
            _ => Ok(word as u64),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn poke(&self, what: libc::c_uint, at: u64, word: u64) -> io::Result<()> {
        // SAFETY: the child is ours, traced and stopped; this writes a word of it, whose page is its own
        // then.
        match unsafe { libc::ptrace(what, self.pid, at, word) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Lets the child go on to the end of its operation.
    pub fn finish(&mut self) -> io::Result<()> {
        if !self.ended {
            self.go(libc::PTRACE_CONT)?;
            self.wait_for(libc::SIGSTOP)?;
            self.ended = true;
        }
        Ok(())
    }

    /// Marks a moment of the operation, in the child, for [`marked_calls`](Self::marked_calls).
    pub fn mark() {
        // SAFETY: asks for a number. No code that is traced makes this call.
        unsafe { libc::syscall(MARK) };
    }

    /// Lets the child go on to the end of its operation, and returns the system calls between its two
    /// [marks](Self::mark).
    pub fn marked_calls(&mut self) -> io::Result<Vec<libc::c_long>> {
        const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;
        let options = libc::PTRACE_O_TRACESYSGOOD as usize;
        // SAFETY: the child is ours, traced and stopped; this touches no memory.
        if unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, self.pid, 0, options) } == -1 {
            return Err(io::Error::last_os_error());
        }
        let mut calls = Vec::new();
        while !self.ended {
            self.go(libc::PTRACE_SYSCALL)?;
            match self.wait()? {
                SYSTEM_CALL => calls.extend(self.system_call()?),
                libc::SIGSTOP => self.ended = true,
                other => return Err(stopped_by(other)),
            }
        }
        match *calls.split(|call| *call == MARK).collect::<Vec<_>>() {
            [_, marked, _] => Ok(marked.to_vec()),
            _ => Err(io::Error::other("the child has not marked two moments")),
        }
    }

    /// The number of the system call at whose entry the child has stopped. `None`: it has stopped at the end of one.
    fn system_call(&self) -> io::Result<Option<libc::c_long>> {
        // SAFETY: a C structure of integers, of which zeros are a value.
        let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
        let (request, size) = (libc::PTRACE_GET_SYSCALL_INFO, size_of_val(&info));
        // SAFETY: the child is ours, traced and stopped; this writes at most `size` bytes, into the structure.
        let got = unsafe { libc::ptrace(request, self.pid, size, &raw mut info) };
        if got <= 0 {
            return Err(io::Error::last_os_error());
        }
        if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
            return Ok(None);
        }
        // SAFETY: the kernel has just said that it is this one of the variants.
        Ok(Some(unsafe { info.u.entry }.nr as libc::c_long))
    }

    /// Lets the child end its operation, and returns its report. To be called once.
    pub fn report(&mut self) -> io::Result<R> {
        self.finish()?;
        self.go(libc::PTRACE_CONT)?;
        self.wait_for(libc::SIGSTOP)?;
        told(&mut self.pipe)
    }

    fn go(&self, how: libc::c_uint) -> io::Result<()> {
        // SAFETY: the child is ours, traced and stopped; this only lets it go on.
        match unsafe { libc::ptrace(how, self.pid, 0, 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    fn wait_for(&self, signal: i32) -> io::Result<()> {
        match self.wait()? {
            found if found == signal => Ok(()),
            other => Err(stopped_by(other)),
        }
    }

    /// The signal by which the child has stopped.
    fn wait(&self) -> io::Result<i32> {
        let mut status = 0;
        // SAFETY: waits for a child of ours; writes to the integer only.
        if unsafe { libc::waitpid(self.pid, &raw mut status, 0) } == -1 {
            return Err(io::Error::last_os_error());
        }
        if libc::WIFSTOPPED(status) {
            Ok(libc::WSTOPSIG(status))
        } else {
            Err(io::Error::other(format!("the child ended: {status:#x}")))
        }
    }
}

impl<R> Drop for Tracee<R> {
    /// Kills the child wherever it is, and waits until it is gone.
    fn drop(&mut self) {
        crate::forked::kill(self.pid);
    }
}

/// Stops this process until its parent lets it go on.
fn stop() {
    // SAFETY: stops this process only.
    unsafe { libc::raise(libc::SIGSTOP) };
}

fn stopped_by(signal: i32) -> io::Error {
    io::Error::other(match signal {
        libc::SIGALRM => format!("the child had not ended after {PATIENCE} s"),
        _ => format!("the child was stopped by signal {signal}"),
    })
}
