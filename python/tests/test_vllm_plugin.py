"""The plugin without its client: how vLLM loads it, its settings, and the table that it uses."""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import logging
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import headcount
import pytest
from headcount.vllm import _deployment, _on_import, _settings
from headcount.vllm._deployment import Deployment, Membership
from headcount.vllm._settings import Settings

# -- Loading -------------------------------------------------------------------------------------------


def test_vllm_finds_the_plugin_which_is_harmless_without_vllm() -> None:
    (plugin,) = (
        entry
        for entry in importlib.metadata.entry_points(group="vllm.general_plugins")
        if entry.name == "headcount"
    )
    finders = list(sys.meta_path)
    try:
        register = plugin.load()
        register()
        register()
        assert len(sys.meta_path) == len(finders) + 1
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("vllm.v1.engine.core_client")
    finally:
        sys.meta_path[:] = finders


def test_turned_off_it_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from headcount.vllm import register

    monkeypatch.setenv("HEADCOUNT_VLLM", "0")
    finders = list(sys.meta_path)
    register()
    assert sys.meta_path == finders


def test_a_module_is_seen_when_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("imported_later", "imported_badly"):
        (tmp_path / f"{name}.py").write_text("value = 1\n")
    seen: list[int] = []
    _on_import.then("imported_later", lambda module: seen.append(module.value))
    assert seen == []
    module = importlib.import_module("imported_later")
    assert seen == [1]
    assert module.__spec__ is not None
    assert type(module.__spec__.loader).__name__ == "SourceFileLoader"
    _on_import.then("imported_later", lambda module: seen.append(module.value))
    assert seen == [1, 1]
    _on_import.then("imported_badly", lambda module: seen.append(module.nothing))
    with caplog.at_level(logging.WARNING, logger="vllm.headcount"):
        assert importlib.import_module("imported_badly").value == 1
    assert "leaving vLLM as it is" in caplog.text


def test_what_the_environment_says(caplog: pytest.LogCaptureFixture) -> None:
    read = _settings.from_environment
    assert read({}) == Settings(path=None, policy="in_flight")
    assert read({"HEADCOUNT_VLLM": "0"}) is None
    assert read({"HEADCOUNT_VLLM": "off"}) is None
    assert read({"HEADCOUNT_VLLM_PATH": "", "HEADCOUNT_VLLM_POLICY": ""}) == Settings()
    told = {"HEADCOUNT_VLLM": "1", "HEADCOUNT_VLLM_PATH": "/x", "HEADCOUNT_VLLM_POLICY": "tokens"}
    assert read(told) == Settings(path="/x", policy="tokens")
    assert read({"HEADCOUNT_VLLM_COUNT_OUTPUT": "1"}) == Settings(count_output=True)
    assert read({"HEADCOUNT_VLLM_COUNT_OUTPUT": "off"}) == Settings()
    with caplog.at_level(logging.WARNING, logger="vllm.headcount"):
        assert read({"HEADCOUNT_VLLM_POLICY": "best"}) == Settings()
        assert read({"HEADCOUNT_VLLM_COUNT_OUTPUT": "often"}) == Settings()
    assert "'best', which is no policy" in caplog.text
    assert "HEADCOUNT_VLLM_COUNT_OUTPUT is 'often', and must be 0 or 1" in caplog.text


# -- Tables --------------------------------------------------------------------------------------------


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    deployment = Deployment(f"ipc:///tmp/{uuid.uuid4()}", first_rank=0)
    yield deployment
    Path(deployment.path()).unlink(missing_ok=True)


def join(deployment: Deployment, path: Path | None = None) -> Membership:
    return _deployment.join(deployment, [0, 1], Settings(str(path) if path else None))


def path_of(membership: Membership) -> Path:
    return Path(membership.table.path)


HOLD = """
import sys
from headcount.vllm import _deployment
from headcount.vllm._deployment import Deployment
from headcount.vllm._settings import Settings
coordinator, path = sys.argv[1:]
membership = _deployment.join(Deployment(coordinator, 0), [0, 1], Settings(path or None))
permits = membership.frontend.route_many(8)
print("held", flush=True)
sys.stdin.read()
"""


def holder(deployment: Deployment, path: str = "") -> subprocess.Popen[bytes]:
    """Starts another API server of the deployment, with 8 requests in flight."""
    command = [sys.executable, "-c", HOLD, deployment.coordinator, path]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    assert process.wait() == -signal.SIGKILL
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


def counted(table: headcount.Table) -> int:
    return sum(engine.in_flight for engine in table.view().engines)


def test_servers_of_a_deployment_share_a_table(deployment: Deployment) -> None:
    other = holder(deployment)
    membership = join(deployment)
    assert counted(membership.table) == 8
    kill(other)
    membership.table.reap()
    assert counted(membership.table) == 0


def test_nodes_of_a_hybrid_deployment_on_one_host_do_not(deployment: Deployment) -> None:
    second = Deployment(deployment.coordinator, first_rank=2)
    assert second.path() != deployment.path()
    assert second.engine_name(2).startswith("2@")


def test_deployments_of_two_network_namespaces_do_not_share_a_table(deployment: Deployment) -> None:
    program = "import sys; from headcount.vllm._deployment import Deployment; "
    program += "print(Deployment(sys.argv[1], 0).path())"
    here = [sys.executable, "-c", program, deployment.coordinator]
    elsewhere = ["unshare", "--user", "--map-current-user", "--net"]
    if subprocess.run([*elsewhere, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    paths = [subprocess.check_output(how + here, text=True).strip() for how in ([], elsewhere)]
    assert paths[0] == deployment.path()
    # In another network namespace the same address is another socket, while /dev/shm is the same.
    assert paths[1] != deployment.path()


def test_a_table_of_the_dead_is_removed_by_whoever_starts_next(deployment: Deployment) -> None:
    killed = holder(deployment)
    path = Path(deployment.path())
    living = join(Deployment(f"{deployment.coordinator}-living", 0))
    kill(killed)
    assert path.exists()
    # A table of killed servers stays until another server starts. That removes it, and leaves the living one.
    assert counted(headcount.Table.open_read_only(path)) == 8
    third = join(Deployment(f"{deployment.coordinator}-third", 0))
    assert not path.exists()
    assert path_of(living).exists()
    for membership in (living, third):
        path_of(membership).unlink()


FIRST = """
import subprocess, sys
from headcount.vllm import register
register()
register()
hold, coordinator = sys.argv[1:]
server = subprocess.Popen(
    [sys.executable, "-c", hold, coordinator, ""], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
assert server.stdout.readline() == b"held\\n"
print("held", flush=True)
sys.stdin.read()
# The child dies while this process ends.
subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -9 {server.pid}"])
"""


def test_a_deployments_first_process_removes_the_table_of_killed_servers(
    deployment: Deployment,
) -> None:
    command = [sys.executable, "-c", FIRST, HOLD, deployment.coordinator]
    first = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stdout.readline() == b"held\n"
    assert Path(deployment.path()).exists()
    first.communicate()
    assert first.returncode == 0
    assert not Path(deployment.path()).exists()


@pytest.mark.parametrize("explicit", [False, True])
def test_a_deployment_that_comes_back_starts_from_zero(
    deployment: Deployment, path: Path, explicit: bool
) -> None:
    given = path if explicit else None
    killed = holder(deployment, str(given or ""))
    kill(killed)
    place = given or Path(deployment.path())
    table = headcount.Table.open_read_only(place)
    assert counted(table) == 8
    before = place.stat().st_ino
    membership = join(deployment, given)
    assert path_of(membership) == place
    assert place.stat().st_ino != before
    assert counted(membership.table) == 0
    assert [engine.state for engine in membership.table.view().engines] == ["active", "active"]


def test_a_lock_that_is_a_link_is_not_followed(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_deployment, "_directory", lambda: str(tmp_path))
    lock = tmp_path / f"headcount-vllm-{os.geteuid()}-lock"
    elsewhere = tmp_path / "elsewhere"
    lock.symlink_to(elsewhere)
    # Whether there is a file of this user behind the link or none.
    for there in (False, True):
        if there:
            elsewhere.touch()
        with pytest.raises(OSError, match=str(lock)):
            join(deployment)
        assert elsewhere.exists() == there


def test_two_deployments_told_the_same_path_do_not_share_it(
    deployment: Deployment, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = join(deployment, path)
    second_deployment = Deployment(f"{deployment.coordinator}-second", 0)
    with caplog.at_level(logging.WARNING, logger="vllm.headcount"):
        second = join(second_deployment, path)
    assert path_of(first) == path
    assert path_of(second) == Path(second_deployment.path())
    assert "another deployment uses" in caplog.text
    path_of(second).unlink()


def test_the_last_one_to_leave_removes_the_table(deployment: Deployment) -> None:
    other = holder(deployment)
    membership = join(deployment)
    table = membership.table
    del membership
    _deployment.remove_if_empty(table)
    assert os.path.exists(table.path)
    kill(other)
    _deployment.remove_if_empty(table)
    assert not os.path.exists(table.path)
    # A table that another process has put there meanwhile stays.
    newer = join(deployment)
    _deployment.remove_if_empty(table)
    assert path_of(newer).exists()


# -- Users ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o666])
def test_a_name_that_another_user_has_taken_is_left_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """This process takes itself for user 4321's."""
    monkeypatch.setattr(_deployment, "_directory", lambda: str(tmp_path))
    theirs = [tmp_path / f"headcount-vllm-4321{more}-lock" for more in ("", ".1")]
    for lock in theirs:
        lock.touch()
        lock.chmod(mode)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert _deployment._prefix() == str(tmp_path / "headcount-vllm-4321.2-")
    assert (tmp_path / "headcount-vllm-4321.2-lock").exists()
    # If all names are taken, the error says what to do.
    monkeypatch.setattr(_deployment, "_NAMES", 2)
    with pytest.raises(PermissionError, match="HEADCOUNT_VLLM_PATH"):
        _deployment._prefix()


# Another number each time: tests of other checkouts may run at the same time.
OTHER_USER = 50_000 + os.getpid() % 10_000


def as_root_of_a_namespace(act: Callable[[], str]) -> str:
    """Returns what ``act`` returns in a process of another user, whose number is 0 in a user namespace."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        told = "it has raised"
        try:
            os.close(reading)
            libc = ctypes.CDLL(None, use_errno=True)
            os.setgroups([])
            os.setresgid(OTHER_USER, OTHER_USER, OTHER_USER)
            os.setresuid(OTHER_USER, OTHER_USER, OTHER_USER)
            libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: its files in /proc are its own
            if libc.unshare(0x10000000):  # CLONE_NEWUSER
                told = "no namespace"
            else:
                Path("/proc/self/uid_map").write_text(f"0 {OTHER_USER} 1")
                told = act()
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, told.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


def test_a_user_who_is_root_in_a_namespace_has_tables_of_their_own(deployment: Deployment) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    ours = join(deployment)

    def joined() -> str:
        assert os.geteuid() == 0
        membership, other = join(deployment), join(deployment)
        permits = membership.frontend.route_many(4)
        assert counted(other.table) == 4, "servers of one deployment meet in it"
        del permits
        return str(path_of(membership))

    path = as_root_of_a_namespace(joined)
    if path == "no namespace":
        pytest.skip("no user namespace can be made here")
    try:
        assert re.fullmatch(r"/dev/shm/headcount-vllm-0\.\d+-[0-9a-f]{12}", path), path
        assert os.stat(path).st_uid == OTHER_USER
        assert path_of(ours) == Path(deployment.path()) != Path(path)
        # The next server of that user removes it, and nothing else.
        again = as_root_of_a_namespace(joined)
        assert again == path
        assert path_of(ours).exists()
    finally:
        for name in (path, path[:-12] + "lock"):
            if Path(name).exists() and os.stat(name).st_uid == OTHER_USER:
                os.unlink(name)
