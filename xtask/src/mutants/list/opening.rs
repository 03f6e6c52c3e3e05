//! Creating, opening and passing on a table, and which frontends count as alive meanwhile.

use super::{Catcher, Mutant, fault};

const LOCK: &str = "src/shm/lock.rs";
const OPEN: &str = "src/shm/open.rs";
const PASS: &str = "src/table/inherit.rs";
const PATH: &str = "src/table/path_state.rs";
const REGISTRY: &str = "src/algorithm/registry.rs";

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "a reaper locks one byte only, as a frontend does",
        LOCK,
        &[(
            "        self.try_lock_range(of_visitor(slot))",
            "        self.try_lock_range(of_frontend(slot))",
        )],
        Catcher::Test("crashes", "k4_an_opener_waits"),
    ),
    fault(
        "a joiner stays a visitor",
        LOCK,
        &[(
            "        let byte = slot_lock(slot) + 1;
        self.unlock_range(Range { byte, length: 1 })",
            "        let byte = slot_lock(slot) + 1;
        self.unlock_range(Range { byte: byte + 1, length: 1 })",
        )],
        Catcher::Test("crashes", "k2_a_stopped_process"),
    ),
    fault(
        "a joiner lets go of its lock to become the frontend",
        LOCK,
        &[(
            "        let byte = slot_lock(slot) + 1;
        self.unlock_range(Range { byte, length: 1 })",
            "        let byte = slot_lock(slot);
        self.unlock_range(Range { byte, length: 2 })",
        )],
        Catcher::Test("crashes", "k2_a_stopped_process"),
    ),
    fault(
        "opening does not wait for a reaper",
        REGISTRY,
        &[(
            "            if !self.is_unsettled(locks)? || !pause() {",
            "            if !self.is_unsettled(locks)? || pause() {",
        )],
        Catcher::Model("k4_who_opens_waits"),
    ),
    fault(
        "a joiner becomes the frontend after the slot says so",
        REGISTRY,
        &[
            (
                "                if let Err(error) = locks.become_frontend(index) {
                    locks.unlock(index)?;
                    return Err(error);
                }
",
                "",
            ),
            (
                "                return Ok(Some(index));",
                "                self.enter(index);
                locks.become_frontend(index)?;
                return Ok(Some(index));",
            ),
        ],
        Catcher::Model("k2_a_look_takes_none_who_leaves"),
    ),
    fault(
        "a visitor is taken for the frontend",
        REGISTRY,
        &[("holder()? == Some(Holder::Frontend)", "holder()?.is_some()")],
        Catcher::Test("crashes", "k2_a_frontend_that_is_just_being_reaped"),
    ),
    fault(
        "a joiner that comes too late is taken for the frontend that died",
        REGISTRY,
        &[("holder()? == Some(Holder::Frontend)", "holder()?.is_some()")],
        Catcher::Model("k4_who_opens_does_not_take_a_joiner"),
    ),
    fault(
        "a look does not see that the slot has changed hands",
        REGISTRY,
        &[(
            "            if slot.word() == word {
                return Ok(Some(is_held));
            }",
            "            if slot.word() == word || word.is_taken() {
                return Ok(Some(is_held));
            }",
        )],
        Catcher::Model("k2_a_look_takes_none_who_leaves"),
    ),
    fault(
        "joining does not wait for the reaper of the last place",
        "src/frontend/membership.rs",
        &[("const LOOKS: u32 = 20;", "const LOOKS: u32 = 1;")],
        Catcher::Test("crashes", "k1_a_joiner_waits"),
    ),
    fault(
        "the process that created a table has no lock file to reap with",
        "src/table/options.rs",
        &[(
            "        table.reap()?; // finds none dead, and opens the lock file that later reaps use\n",
            "",
        )],
        Catcher::Test("crashes", "k1_reaping_a_table_of_ones_own_making"),
    ),
    fault(
        "a lock outlives an exec",
        LOCK,
        &[("OFlags::RDWR | OFlags::CLOEXEC;", "OFlags::RDWR;")],
        Catcher::Test("crashes", "k3_a_program"),
    ),
    fault(
        "programs inherit the table's file",
        OPEN,
        &[(
            "mode | OFlags::CLOEXEC | OFlags::NOFOLLOW",
            "mode | OFlags::NOFOLLOW",
        )],
        Catcher::Test("crashes", "k3_a_program"),
    ),
    fault(
        "a passed table goes on to grandchildren",
        PASS,
        &[(
            "fcntl_setfd(fd, FdFlags::CLOEXEC)",
            "fcntl_setfd(fd, FdFlags::empty())",
        )],
        Catcher::Test("file", "a_passed_table"),
    ),
    fault(
        "any file at the number is taken for the passed table",
        PASS,
        &[(
            "if (stat.st_dev, stat.st_ino) != (passed.device, passed.inode) {",
            "if (stat.st_dev, stat.st_ino) == (0, 0) {",
        )],
        Catcher::Test("file", "a_passed_table"),
    ),
    fault(
        "a passed table has no path",
        PASS,
        &[(
            "variable.push(self.path.as_deref().unwrap_or(Path::new(\"\")));",
            "variable.push(Path::new(\"\"));",
        )],
        Catcher::Test("file", "each_user_of_a_table"),
    ),
    fault(
        "a table that was removed is not missed",
        PATH,
        &[(
            "Err(Errno::NOENT | Errno::NOTDIR) => Ok(PathState::Gone),",
            "Err(Errno::NOENT | Errno::NOTDIR) => Ok(PathState::Here),",
        )],
        Catcher::Test("file", "each_user_of_a_table"),
    ),
    fault(
        "any file at the path is the table",
        PATH,
        &[(
            "if (found.st_dev, found.st_ino) == self.identity() =>",
            "if found.st_ino > 0 =>",
        )],
        Catcher::Test("file", "each_user_of_a_table"),
    ),
    fault(
        "a link at the path is followed",
        PATH,
        &[("rustix::fs::lstat(path)", "rustix::fs::stat(path)")],
        Catcher::Test("file", "each_user_of_a_table"),
    ),
    fault(
        "a path is looked for from where the process is by now",
        OPEN,
        &[(
            "let absolute = std::path::absolute(path).map_err(|e| At(path).failed(\"locating\", e))?;",
            "let absolute = path.to_owned();",
        )],
        Catcher::Test("file", "each_user_of_a_table"),
    ),
    fault(
        "verify does not look at the path",
        "src/inspect/verify/header.rs",
        &[(
            "            && state.is_split()\n",
            "            && !state.is_split() && state.is_split()\n",
        )],
        Catcher::Test("file", "each_user_of_a_table"),
    ),
    fault(
        "a reaper does not look at the path",
        "src/table/reaper.rs",
        &[(".or_else(|| table.path_trouble())", "")],
        Catcher::Test("file", "each_user_of_a_table"),
    ),
    fault(
        "a table that was replaced is forgotten while frontends live in it",
        "cli/src/table_arg.rs",
        &[(
            "            all.len() > count\n",
            "            all.len() < count\n",
        )],
        Catcher::Test("cli", "in_a_table_that_was_replaced"),
    ),
    fault(
        "a deployment says again and again that its table was removed",
        "server/src/parent/table_path.rs",
        &[(
            "if state != last && (state.is_split()",
            "if (state.is_split()",
        )],
        Catcher::Test("http", "table_path"),
    ),
    fault(
        "a reap waits for another thread's, which a forked child does not have",
        OPEN,
        &[(
            "let Ok(mut spare) = self.spare_lock.try_lock() else",
            "let Ok(mut spare) = self.spare_lock.lock() else",
        )],
        Catcher::Test("crashes", "k3_a_child_of_a_process_that_is_just_reaping"),
    ),
    fault(
        "a forked child reaps with its parent's lock file",
        OPEN,
        &[("Some(lock) if lock.is_ours() => lock", "Some(lock) => lock")],
        Catcher::Test("crashes", "k3_a_child_never"),
    ),
    fault(
        "a frontend leaves without saying so",
        "src/frontend/membership.rs",
        &[(
            "        registry.vacate(self.slot);",
            "        let _ = (registry, self.slot);",
        )],
        Catcher::Test("crashes", "a_frontend_that_leaves"),
    ),
    fault(
        "a table with another number of lanes is opened",
        "src/table/configuration/difference.rs",
        &[(
            "                self.threads.map(number),\n",
            "                None,\n",
        )],
        Catcher::Test("file", "f1_each_option"),
    ),
    fault(
        "a table with another cap in tokens is opened",
        "src/table/configuration/difference.rs",
        &[(
            "                asked_cap(self.max_tokens, configured.has_max_tokens(self.max_tokens)),\n",
            "                None,\n",
        )],
        Catcher::Test("file", "f1_each_option"),
    ),
    fault(
        "a passed table is opened whatever its options are",
        PASS,
        &[(
            "let table = self.opened(file)?;",
            "let table = Self::default().opened(file)?;",
        )],
        Catcher::Test("file", "a_passed_table"),
    ),
    fault(
        "a descriptor of another user's table is as good as one's own",
        OPEN,
        &[(
            "Self::validate(file.into(), name, Access::ReadWrite, any_owner)?;",
            "Self::validate(file.into(), name, Access::ReadWrite, any_owner || name.is_absolute())?;",
        )],
        Catcher::Test("file", "f4_a_table_of_another_user"),
    ),
    fault(
        "a pipe of a table's name is waited for",
        OPEN,
        &[("OFlags::NOFOLLOW | OFlags::NONBLOCK", "OFlags::NOFOLLOW")],
        Catcher::Test("file", "f2_a_file_that_is_no_table"),
    ),
];
