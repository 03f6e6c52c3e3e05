//! A network of a test's own, in which the test is root: it can break links, and act as the resolver.

use crate::deployment::{PROGRAM, program};
use headcount_tests::skipped;
use std::ffi::CString;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::Command;
use std::{env, io, ptr};

/// The variable that tells the restarted program that it is in that network.
const INSIDE: &str = "HEADCOUNT_TEST_NETWORK";

/// Runs a scene in a process of its own, with namespaces of its own for the network and for mounts. There
/// it has a loopback device, and files that it may put others in front of. `test` is the full name of the
/// calling test, which is skipped where no such namespaces can be made.
pub(crate) fn apart(test: &str, scene: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        set_up_loopback().unwrap();
        return scene();
    }
    let unshare = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--mount", program]);
        command
    };
    let probe = unshare("true").output();
    if !probe.is_ok_and(|ended| ended.status.success()) {
        return skipped(test, "no namespaces can be made here");
    }
    let this = env::current_exe().unwrap();
    let ran = unshare(this.to_str().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .env(PROGRAM, program())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

/// Puts a file in front of another one, for this process and those that it starts.
pub(crate) fn put_in_front(file: &Path, of: &str) {
    let [file, of] = [file.to_str().unwrap(), of].map(|path| CString::new(path).unwrap());
    // SAFETY: both are strings that end with a zero; nothing else is read.
    let done = unsafe {
        libc::mount(
            file.as_ptr(),
            of.as_ptr(),
            ptr::null(),
            libc::MS_BIND,
            ptr::null(),
        )
    };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}

/// Brings up the loopback device, which is down in a new network.
pub(crate) fn set_up_loopback() -> io::Result<()> {
    let socket = TcpListener::bind("0.0.0.0:0")?;
    // SAFETY: a name and flags of zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: reads the request only.
    match unsafe {
        libc::ioctl(
            socket.as_fd().as_raw_fd(),
            libc::SIOCSIFFLAGS,
            &raw const request,
        )
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs a command of the test's network, which has to succeed.
pub(crate) fn run(line: &str) {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    let ended = command.args(words).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{line}: {said}");
}
