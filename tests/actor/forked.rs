//! Tasks that need a real fork, or a process that may make no system call.

use headcount::{EngineStats, Error, Frontend, Permit, Publisher, Table};
use headcount_tests::ForkedUse;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A child that lives on.
pub(crate) struct Child {
    pub(crate) pid: i32,
    /// Whether the fork fell into the operation of another thread.
    pub(crate) amid: bool,
}

/// Forks a child that lives on with its copies of everything; `amid` is asked of these.
pub(crate) fn live(amid: impl FnOnce() -> bool) -> io::Result<Child> {
    // The fork handlers run in the child, so this process waits until the child has run.
    let (mut reader, mut writer) = io::pipe()?;
    // SAFETY: the child only sleeps.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: ends this child if the test that should kill it does not get that far.
            unsafe { libc::alarm(60) };
            let _ = writer.write_all(&[amid().into()]);
            loop {
                // SAFETY: sleeping touches nothing.
                unsafe { libc::pause() };
            }
        }
        pid => {
            let mut amid = [0];
            reader.read_exact(&mut amid)?;
            Ok(Child {
                pid,
                amid: amid == [1],
            })
        }
    }
}

/// Forks children that live on, while another thread joins and leaves all the time.
pub(crate) fn while_joining(table: &Table, count: usize) -> io::Result<Vec<Child>> {
    let (stop, joining) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let join_and_leave = || {
            while !stop.load(Ordering::Relaxed) {
                joining.fetch_add(1, Ordering::SeqCst);
                let frontend = table.join();
                joining.fetch_sub(1, Ordering::SeqCst);
                drop(frontend);
                drop(table.publisher());
            }
        };
        (0..4).for_each(|_| drop(scope.spawn(join_and_leave)));
        let children = (0..count)
            .map(|_| {
                std::thread::sleep(std::time::Duration::from_micros(200));
                live(|| joining.load(Ordering::SeqCst) > 0)
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        children
    })
}

/// Forks a child while another thread opens this process's first table; the child opens it, too. Whether
/// the fork fell into the opening.
pub(crate) fn while_opening(path: &Path) -> io::Result<bool> {
    let opens = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| {
            opens.store(true, Ordering::SeqCst);
            let opened = Table::open(path).is_ok();
            opens.store(false, Ordering::SeqCst);
            opened
        });
        while !opens.load(Ordering::SeqCst) && !opening.is_finished() {
            std::hint::spin_loop();
        }
        // Not to be asked in the child: the library lets a fork wait for the opening to end.
        let amid = opens.load(Ordering::SeqCst);
        // SAFETY: the child ends by `_exit` or by its alarm. It allocates, which the C library allows
        // in a forked child.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends this child should it hang.
            unsafe { libc::alarm(10) };
            let joins = Table::open(path).and_then(|table| table.join()).is_ok();
            // SAFETY: ends this child.
            unsafe { libc::_exit(i32::from(!joins)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child of ours; writes to the integer only.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        if opening.join().unwrap_or(false) && status == 0 {
            Ok(amid)
        } else {
            Err(io::Error::other(format!(
                "the child ended with {status:#x}"
            )))
        }
    })
}

/// Forks a child that uses its copies: it routes, changes the tokens of a permit, drops the permits, publishes, and
/// joins anew.
pub(crate) fn used(
    table: &Table,
    frontend: Frontend,
    mut permits: Vec<Permit>,
    publisher: Option<&mut Publisher>,
) -> io::Result<(Vec<Permit>, ForkedUse)> {
    let (reader, writer) = io::pipe()?;
    // SAFETY: this process has one thread here, so its child may do anything.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(reader);
            let forked = |result: Result<(), Error>| {
                match result {
                    Err(Error::Forked) => "forked",
                    Err(_) => "another error",
                    Ok(()) => "done",
                }
                .to_owned()
            };
            let route = forked(frontend.route().map(drop).map_err(Error::from));
            let publish = publisher.map_or("none".to_owned(), |publisher| {
                forked(publisher.publish(&[EngineStats::default()]))
            });
            let set_tokens = permits.first_mut().map_or("none".to_owned(), |permit| {
                // Also to the number that it has.
                let own = permit.tokens();
                let set = permit
                    .set_tokens(own + 7)
                    .or_else(|_| permit.set_tokens(own));
                forked(set.map_err(Error::from))
            });
            drop(permits);
            drop(frontend);
            let join = forked(table.join().and_then(|own| {
                let _permit = own.route()?;
                Ok(())
            }));
            let told = ForkedUse {
                route,
                set_tokens,
                publish,
                join,
            };
            // A fork may not drop what is its parent's, so it ends here, whatever comes of the write.
            let _ = serde_json::to_writer(&writer, &told);
            // SAFETY: ends this child only.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(writer);
            let told = serde_json::from_reader(&reader)?;
            // SAFETY: waits for the child of ours, and asks for no status.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            Ok((permits, told))
        }
    }
}

/// Forks a child that joins, forbids itself all system calls but `read`, `write` and `exit`, and then
/// routes and finishes. The kernel kills it at the first other one.
pub(crate) fn without_system_calls(frontend: &Frontend, count: usize) -> io::Result<()> {
    let table = frontend.table().clone();
    // SAFETY: this process has one thread here, so its child may do anything.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let own = table.join();
            // SAFETY: concerns this child only.
            let strict = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) };
            let done = own.is_ok_and(|own| {
                let request = headcount::Request::new().tokens(7);
                let with_tokens = || {
                    let mut permit = own.route_with(&request)?;
                    permit.set_tokens(9).and_then(|()| permit.set_tokens(3))
                };
                let done = (0..count).all(|_| own.route().is_ok() && with_tokens().is_ok());
                std::mem::forget(own);
                done
            });
            let code = i64::from(!(strict == 0 && done));
            // SAFETY: `exit` is the one way out that strict mode allows; `_exit` is another call.
            unsafe { libc::syscall(libc::SYS_exit, code) };
            unreachable!("exit does not return")
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child of ours; writes to the integer only.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
                return Ok(());
            }
            Err(io::Error::other(format!(
                "the child ended with {status:#x}"
            )))
        }
    }
}
