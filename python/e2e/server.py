"""Starts a vLLM deployment, watches it, and ends all of its processes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import headcount
import session

PATIENCE = 900  # seconds, for a start

ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}


class Server:
    """A `vllm serve` with so many ranks and API servers."""

    def __init__(self, model: Path, log: Path, ranks: int, api_servers: int, plugin: bool) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log = log
        self.sockets = tempfile.mkdtemp(prefix="headcount-e2e-")
        options = (
            f"--data-parallel-size {ranks} --api-server-count {api_servers} --load-format dummy "
            f"--dtype float32 --enforce-eager --max-model-len 1024 --host 127.0.0.1 --port {port} "
            "--no-enable-log-requests --disable-uvicorn-access-log --served-model-name tiny"
        )
        own = {"TMPDIR": self.sockets, "HEADCOUNT_VLLM": "1" if plugin else "0"}
        vllm = Path(sys.executable).with_name("vllm")
        start = time.monotonic()
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [vllm, "serve", model, *options.split()],
                env=os.environ | ENVIRONMENT | own,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # It ends the deployment if this process dies without doing so.
        leash = [sys.executable, Path(session.__file__), str(self.process.pid)]
        self.leash = subprocess.Popen(leash, stdin=subprocess.PIPE, start_new_session=True)
        try:
            self._wait()
        except BaseException:
            self.kill()
            raise
        self.seconds_to_start = time.monotonic() - start

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"vLLM ended with {self.process.returncode}; see {self.log}")
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            time.sleep(0.5)
        raise RuntimeError(f"vLLM did not start within {PATIENCE} s; see {self.log}")

    def lines(self) -> list[str]:
        """Returns the lines that the plugin has logged."""
        return [line for line in self.log.read_text().splitlines() if "headcount: " in line]

    def path(self) -> Path:
        """Returns the path of the deployment's table, which is the same for each API server."""
        found = {path for line in self.lines() for path in re.findall(r"headcount top (\S+)`", line)}
        (path,) = found
        return Path(path)

    def table(self) -> headcount.Table:
        return headcount.Table.open_read_only(self.path())

    def kill(self) -> None:
        """Kills all processes by SIGKILL, and removes what they would have removed themselves."""
        shared: set[Path] = set()
        session.kill(self.process.pid, lambda pid: shared.update(shared_memory(pid)))
        self.process.wait()
        self.leash.communicate()
        for path in shared:
            path.unlink(missing_ok=True)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def stop(self) -> None:
        """Stops the deployment by SIGTERM, and kills the processes that are left."""
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=60)
        self.kill()


def shared_memory(pid: int) -> set[Path]:
    """Returns the files of Python's shared memory that a process has mapped; they outlive a SIGKILL."""
    with contextlib.suppress(OSError):
        maps = Path(f"/proc/{pid}/maps").read_text()
        return {Path(path) for path in re.findall(r"/dev/shm/psm_\w+", maps)}
    return set()
