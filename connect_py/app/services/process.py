"""A server as a child process: started with a log file, waited for, and stopped by its own pid.

A service must not outlive the process that wanted it, even when that one is killed. Each starting process therefore has one
`Guard`: a small process that holds the pids of the services and the reading end of a pipe. When the pipe breaks it terminates
what is left. A guard works on every POSIX system and does not depend on which thread started the service, as PR_SET_PDEATHSIG does.

The guard's pipe and the table of services belong to the caller; nothing here is thread-safe.
"""

from __future__ import annotations

import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from connect_py.errors import ConnectError

#: Below Linux's range of ephemeral ports (32768 …), so that no outgoing connection can take a port between choice and use.
PORT_RANGE = range(20000, 32000)

#: How often a service is asked whether it is ready, in seconds.
PROBE_INTERVAL_SECONDS = 0.05


class ServiceError(ConnectError):
    """A server could not be fetched, started or stopped; the text holds the end of its log."""


class Ports:
    """TCP ports of the loopback interface that nothing listens on, each given to one server.

    A locked file reserves a port, since a server takes seconds to start, and may be restarted: no process that asks here is given it until
    this one ends, or has chosen many others.

    Args:
        candidates: from which to choose.
        most: reservations that are kept; older ones end.
    """

    def __init__(self, candidates: Sequence[int] = PORT_RANGE, most: int = 100) -> None:
        self._candidates = candidates
        self._most = most
        self._locks: deque[int] = deque()

    def choose(self) -> int:
        """Return one that is free, and nobody else's."""
        folder = Path(tempfile.gettempdir()) / f"connect-py-ports-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        while True:
            port = random.choice(self._candidates)  # noqa: S311
            lock = os.open(folder / str(port), os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            except OSError:
                os.close(lock)
                continue
            self._locks.append(lock)
            while len(self._locks) > self._most:
                os.close(self._locks.popleft())
            return port


_ports = Ports()


def free_port() -> int:
    """Return a TCP port of the loopback interface that nothing listens on now, and that is nobody else's (`Ports`)."""
    return _ports.choose()


def is_listening(port: int) -> bool:
    """Return whether a TCP connection to the loopback port is accepted."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def wait_until(probe: Callable[[], object], seconds: float, what: str, alive: Callable[[], bool] = lambda: True) -> None:
    """Ask until `probe` is true.

    Raises:
        ServiceError: the time is over, or `alive` says that waiting is in vain.
    """
    deadline = time.monotonic() + seconds
    while not probe():
        if not alive():
            raise ServiceError(f"{what} ended before it was ready")
        if time.monotonic() > deadline:
            raise ServiceError(f"{what} was not ready after {seconds:.0f} s")
        time.sleep(PROBE_INTERVAL_SECONDS)


def child_pids(pid: int) -> list[int]:
    """Return the ids of a process's living children, by Linux's /proc (`task/*/children` is not everywhere); zombies do not count."""
    return sorted(child for child, parent in _living_parents().items() if parent == pid)


def process_tree(pid: int) -> list[int]:
    """Return the ids of a process and of all living ones below it, parents first."""
    parents, found = _living_parents(), [pid]
    for above in found:
        found += sorted(child for child, parent in parents.items() if parent == above)
    return found


def _living_parents() -> dict[int, int]:
    """Return the parent of each living process."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(path.parent.name)] = int(parent)
    return parents


def is_running(pid: int) -> bool:
    """Return whether a process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # it may also end between the opening of the file and the reading
        return False


def command_of(pid: int) -> list[str]:
    """Return the words of a process's command line; none of one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used, its children's not counted."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Guard:
    """Terminate this process's services when this process is gone."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def watch(self, pid: int) -> None:
        """Terminate the process when this one ends."""
        self._tell(f"+{pid}")

    def forget(self, pid: int) -> None:
        """The process has ended, or may outlive this one."""
        self._tell(f"-{pid}")

    def _tell(self, line: str) -> None:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-S", str(Path(__file__).with_name("guard.py"))]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True)
        stdin = self._process.stdin
        if stdin is None:
            raise ServiceError("the guard process has no pipe")
        stdin.write(line + "\n")
        stdin.flush()


GUARD = Guard()


class Service:
    """One server process.

    Args:
        name: for messages and the log file.
        command: program and arguments.
        log: file that takes both outputs; appended to.
        env: variables added to this process's.
        user: system user to run as, when this process is root.
        cwd: working directory; the log's folder by default.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(env or {})},
                user=user,
                group=user and primary_group(user),
                extra_groups=[] if user else None,
                cwd=cwd or log.parent,
            )
        GUARD.watch(self.pid)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def wait_ready(self, probe: Callable[[], object], seconds: float = 180) -> None:
        """Ask until `probe` is true. Whatever is raised, also by an interrupt, the process has been stopped then: nobody has it yet.

        Raises:
            ServiceError: it ended or did not answer in time; the text holds the end of its log.
        """
        try:
            wait_until(probe, seconds, self.name, self.is_alive)
        except ServiceError as error:
            self.kill()
            raise ServiceError(f"{error}; the end of {self.log}:\n{self.log_tail()}") from None
        except BaseException:
            self.kill()
            raise

    def stop(self, seconds: float = 15, with_signal: int = signal.SIGTERM) -> None:
        """Ask the process to end and wait; kill it when it does not."""
        if self.is_alive():
            self._process.send_signal(with_signal)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        GUARD.forget(self.pid)

    def kill(self) -> None:
        """End the process at once, as a power cut would (SIGKILL)."""
        self._process.kill()
        self._process.wait()
        GUARD.forget(self.pid)

    def leave_running(self) -> None:
        """Let the process outlive this one."""
        GUARD.forget(self.pid)

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""


def primary_group(user: str) -> int:
    """Return the id of the user's own group."""
    import pwd

    return pwd.getpwnam(user).pw_gid
