//! Creating and opening: a process that opens finds a finished table or none, and trusts nothing in it.

use super::access::Access;
use super::fork::opened_here;
use super::lock::LockFile;
use super::mapping::Mapping;
use crate::error::{Error, Result};
use crate::shm::layout::{BadHeader, HEADER_BYTES, Header, Layout, VERSION};
use rustix::fs::{AtFlags, FallocateFlags, FileType, MemfdFlags, Mode, OFlags, SealFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A table's open file, checked and mapped.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub(crate) file: File,
    /// As it was given, for messages.
    pub(crate) path: PathBuf,
    /// Where the file lies, whatever this process's directory is by now. `None`: it has no path.
    pub(crate) absolute_path: Option<PathBuf>,
    /// Which file it is: its device and its number there.
    pub(crate) identity: (u64, u64),
    pub(crate) header: Header,
    pub(crate) access: Access,
    pub(crate) mapping: Mapping,
    /// For reaps, which must not fail for want of a descriptor or of a right that was given up.
    spare_lock: Mutex<Option<LockFile>>,
}

impl TableFile {
    /// Calls `act` with a lock file of this process that holds no lock.
    pub(crate) fn with_spare_lock<T>(
        &self,
        act: impl FnOnce(&LockFile) -> io::Result<T>,
    ) -> io::Result<T> {
        // Only tried: another thread may be reaping, and at a fork a child inherits that for ever.
        let Ok(mut spare) = self.spare_lock.try_lock() else {
            return act(&LockFile::open(self.as_fd())?);
        };
        let lock = match spare.take() {
            Some(lock) if lock.is_ours() => lock,
            _ => LockFile::open(self.as_fd())?,
        };
        act(spare.insert(lock))
    }

    /// The same, unless another thread has that lock file: `None` then, and no file is opened, which
    /// might wait for forks.
    pub(crate) fn with_free_spare_lock<T>(
        &self,
        act: impl FnOnce(&LockFile) -> io::Result<T>,
    ) -> Option<io::Result<T>> {
        let spare = self.spare_lock.try_lock().ok()?;
        let lock = spare.as_ref().filter(|lock| lock.is_ours())?;
        Some(act(lock))
    }

    /// Creates a table at `path`, which must be free.
    ///
    /// The file has no name until it is finished, so a creator that is killed half-way leaves
    /// nothing, and of two creators one wins the name and the other gets [`Error::Exists`].
    pub(crate) fn create(path: &Path, header: Header, fill: impl FnOnce(&Mapping)) -> Result<Self> {
        let at = At(path);
        // Early, for a better message; the link below decides.
        if path.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: path.into() });
        }
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mode = Mode::from_raw_mode(header.mode);
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file: File = match rustix::fs::open(directory, flags, mode) {
            Ok(fd) => fd.into(),
            Err(Errno::NOENT) => {
                return Err(Error::NotFound {
                    path: directory.into(),
                });
            }
            Err(error) => return Err(at.failed("creating an unnamed file beside", error)),
        };
        // The mode that was asked for, whatever the umask is.
        rustix::fs::fchmod(&file, mode).map_err(|e| at.failed("setting the mode of", e))?;
        let table = Self::finish(file, path, header, fill)?;
        let unnamed = format!("/proc/thread-self/fd/{}", table.file.as_raw_fd());
        let (from, to) = (rustix::fs::CWD, rustix::fs::CWD);
        match rustix::fs::linkat(from, unnamed, to, path, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => table.at(path),
            Err(Errno::EXIST) => Err(Error::Exists { path: path.into() }),
            Err(error) => Err(at.failed("naming the finished table", error)),
        }
    }

    /// Creates a table without a name, whose size no process can change.
    pub(crate) fn memfd(header: Header, fill: impl FnOnce(&Mapping)) -> Result<Self> {
        let path = Path::new("memfd:headcount");
        let at = At(path);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file: File = rustix::fs::memfd_create("headcount", flags)
            .map_err(|e| at.failed("creating", e))?
            .into();
        rustix::fs::fchmod(&file, Mode::from_raw_mode(header.mode))
            .map_err(|e| at.failed("setting the mode of", e))?;
        let table = Self::finish(file, path, header, fill)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&table.file, seals).map_err(|e| at.failed("sealing", e))?;
        Ok(table)
    }

    /// Opens the table at `path`.
    pub(crate) fn open(path: &Path, access: Access, any_owner: bool) -> Result<Self> {
        let mode = match access {
            Access::ReadWrite => OFlags::RDWR,
            Access::ReadOnly => OFlags::RDONLY,
        };
        let file = open_file(path, mode, any_owner)?;
        Self::validate(file, path, access, any_owner)?.at(path)
    }

    /// Opens the table behind a descriptor, as an open file of its own. Its absolute path, if it has
    /// one, is for messages and for [`Table::path_state`](crate::Table::path_state).
    pub(crate) fn reopen(
        fd: BorrowedFd<'_>,
        path: Option<PathBuf>,
        any_owner: bool,
    ) -> Result<Self> {
        let link = PathBuf::from(format!("/proc/thread-self/fd/{}", fd.as_raw_fd()));
        let name = path.as_deref().unwrap_or(&link);
        let file = rustix::fs::open(&link, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| At(name).failed("opening anew", error))?;
        let mut table = Self::validate(file.into(), name, Access::ReadWrite, any_owner)?;
        table.absolute_path = path;
        Ok(table)
    }

    /// Notes that it lies at this path, also when this process has gone to another directory.
    fn at(mut self, path: &Path) -> Result<Self> {
        let absolute = std::path::absolute(path).map_err(|e| At(path).failed("locating", e))?;
        self.absolute_path = Some(absolute);
        Ok(self)
    }

    /// Reserves the memory of a new table and fills it.
    fn finish(
        file: File,
        path: &Path,
        header: Header,
        fill: impl FnOnce(&Mapping),
    ) -> Result<Self> {
        let at = At(path);
        reserve(&file, path, Layout::of(header.geometry).size)?;
        file.write_all_at(&header.to_bytes(), 0)
            .map_err(|e| at.failed("writing the header of", e))?;
        let stat = rustix::fs::fstat(&file).map_err(|e| at.failed("examining", e))?;
        let table = Self::map(file, path, header, Access::ReadWrite, &stat)?;
        fill(&table.mapping);
        Ok(table)
    }

    fn validate(file: File, path: &Path, access: Access, any_owner: bool) -> Result<Self> {
        let at = At(path);
        let not_a_table = |found: String| Error::NotATable {
            path: path.into(),
            found,
        };
        let stat = examine(&file, path, any_owner)?;
        let found = stat.st_size.max(0) as u64;
        let mut bytes = [0; HEADER_BYTES];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let expected = HEADER_BYTES;
                return Err(not_a_table(match found {
                    0 => "an empty file".into(),
                    _ => format!("a file of {found} bytes, and a header alone has {expected}"),
                }));
            }
            Err(error) => return Err(at.failed("reading the header of", error)),
        }
        let header = Header::parse(bytes).map_err(|bad| at.bad_header(bad))?;
        let mode = stat.st_mode & 0o777;
        if mode & !header.mode != 0 {
            return Err(Error::Mode {
                path: path.into(),
                found: mode,
                expected: header.mode,
            });
        }
        let layout = Layout::of(header.geometry);
        if found != layout.size as u64 {
            return Err(Error::Size {
                path: path.into(),
                found,
                expected: layout.size as u64,
            });
        }
        if access == Access::ReadWrite {
            // Costs nothing on a table of ours; fills the holes of one that was copied sparsely.
            reserve(&file, path, layout.size)?;
        }
        Self::map(file, path, header, access, &stat)
    }

    /// Maps a file that has the size its header says.
    fn map(file: File, path: &Path, header: Header, access: Access, stat: &Stat) -> Result<Self> {
        let at = At(path);
        opened_here(&file).map_err(|e| at.failed("listing", e))?;
        let layout = Layout::of(header.geometry);
        let mapping = Mapping::new(&file, layout, access).map_err(|e| at.failed("mapping", e))?;
        Ok(Self {
            file,
            path: path.into(),
            absolute_path: None,
            identity: (stat.st_dev, stat.st_ino),
            header,
            access,
            spare_lock: Mutex::new(None),
            mapping,
        })
    }
}

impl AsFd for TableFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens what lies at `path` to read it, and says how long it is. Nothing of what it holds is looked
/// at.
pub(crate) fn open_to_read(path: &Path, any_owner: bool) -> Result<(File, u64)> {
    let file = open_file(path, OFlags::RDONLY, any_owner)?;
    let stat = examine(&file, path, any_owner)?;
    Ok((file, stat.st_size.max(0) as u64))
}

fn open_file(path: &Path, mode: OFlags, any_owner: bool) -> Result<File> {
    // NONBLOCK: a pipe of that name must not make us wait for its other end.
    let flags = mode | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => Ok(fd.into()),
        Err(error) => Err(refused(path, error, any_owner)),
    }
}

/// What the kernel says of a file, which has to be one of ours.
fn examine(file: &File, path: &Path, any_owner: bool) -> Result<Stat> {
    let stat = rustix::fs::fstat(file).map_err(|e| At(path).failed("examining", e))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind != FileType::RegularFile {
        return Err(Error::NotATable {
            path: path.into(),
            found: describe(kind).into(),
        });
    }
    let own = rustix::process::geteuid().as_raw();
    if stat.st_uid != own && !any_owner {
        return Err(Error::Owner {
            path: path.into(),
            found: stat.st_uid,
            expected: own,
        });
    }
    Ok(stat)
}

/// Makes the file `size` bytes long, all of them there, so that no later access finds none left.
fn reserve(file: &File, path: &Path, size: usize) -> Result<()> {
    // In pieces, and again when a signal comes in between: some kernels give up on a piece then.
    const PIECE: usize = 1 << 20;
    let reserve_piece = |start: usize| {
        let length = PIECE.min(size - start) as u64;
        let none = FallocateFlags::empty();
        rustix::io::retry_on_intr(|| rustix::fs::fallocate(file, none, start as u64, length))
    };
    match (0..size).step_by(PIECE).try_for_each(reserve_piece) {
        Ok(()) => Ok(()),
        Err(Errno::NOSPC | Errno::DQUOT | Errno::NOMEM | Errno::FBIG) => Err(Error::NoSpace {
            path: path.into(),
            needed: size as u64,
        }),
        // A sealed table of ours: all its pages were reserved before it was sealed.
        Err(Errno::PERM) => Ok(()),
        Err(error) => Err(At(path).failed("reserving the memory of", error)),
    }
}

/// Why the kernel would not open `path`.
fn refused(path: &Path, error: Errno, any_owner: bool) -> Error {
    let own = rustix::process::geteuid().as_raw();
    match error {
        Errno::NOENT => Error::NotFound { path: path.into() },
        Errno::LOOP => Error::Symlink { path: path.into() },
        Errno::ISDIR => Error::NotATable {
            path: path.into(),
            found: describe(FileType::Directory).into(),
        },
        Errno::NXIO | Errno::NODEV => Error::NotATable {
            path: path.into(),
            found: "a socket or a device".into(),
        },
        Errno::ACCESS => match rustix::fs::lstat(path) {
            Ok(stat) if stat.st_uid != own && !any_owner => Error::Owner {
                path: path.into(),
                found: stat.st_uid,
                expected: own,
            },
            _ => At(path).failed("opening", error),
        },
        error => At(path).failed("opening", error),
    }
}

fn describe(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    }
}

/// Errors about one path.
struct At<'a>(&'a Path);

impl At<'_> {
    fn failed(&self, doing: &'static str, source: impl Into<io::Error>) -> Error {
        Error::Io {
            doing,
            path: self.0.into(),
            source: source.into(),
        }
    }

    fn bad_header(&self, bad: BadHeader) -> Error {
        let path = self.0.into();
        match bad {
            BadHeader::Magic(found) => Error::NotATable {
                path,
                found: format!(
                    "a file that starts with \"{}\"",
                    found.to_le_bytes().escape_ascii()
                ),
            },
            BadHeader::Version(found) => Error::Version {
                path,
                found,
                expected: VERSION,
            },
            BadHeader::Checksum { found, expected } => Error::Checksum {
                path,
                found,
                expected,
            },
            BadHeader::Absurd(absurd) => Error::Geometry {
                path,
                field: absurd.field,
                found: absurd.found,
                expected: absurd.expected,
            },
        }
    }
}
