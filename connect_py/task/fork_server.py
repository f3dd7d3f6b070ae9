"""Fork task processes from one process that has imported what tasks need.

A task that starts Python for itself spends 0.35 s of CPU on imports and holds 20 MB or more that no other process shares. A forked one
starts within milliseconds and shares what was imported. The worker cannot fork itself, because a fork takes only the calling thread along
and leaves every lock as it stands. So it starts a server: a process with one thread and no connection, which imports, then forks on
request.

    worker ── control socket: b"fork" + 4 file descriptors ──▶ server ── fork ──▶ task
       ▲                                                         │                 │ stdin, stdout and stderr: the worker's pipes
       └───────── status socket of each task: "pid 123", at the end "code 0" ──────┘

The server keeps an ended task as a zombie until the worker closes the task's status socket. Until then no other process can get the task's
process id, so the worker may signal its group without hitting a stranger, as it may with a child of its own. When the worker dies, the
server's control socket ends and the server with it; the tasks notice by themselves. When the server dies, its tasks run on; the worker
still learns that one ends, but not how, and starts another server for the next task.

Linux only: the end of a task without a server is learned from its pidfd. The standard library's `multiprocessing.forkserver` has the same
shape, but its processes have no pipes and no process group.

`show_name` shows the name of a forked process's task in place of its server's. Every task imports this module, so it imports little.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import gc
import logging
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

log = logging.getLogger(__name__)

#: How long a request waits for the server, which may still be importing on a busy machine.
_ANSWER_SECONDS = 60.0

#: Messages of a status socket, each with a number in decimal digits.
_PID, _CODE, _ERROR = b"pid ", b"code ", b"errno "
_MESSAGE_BYTES = 32

#: What a process counts as having ended with when the server died before it did.
UNKNOWN_CODE = 255

_REQUEST = b"fork"
_DESCRIPTORS = 4


def is_supported() -> bool:
    """Return whether this system can fork tasks."""
    return sys.platform.startswith("linux") and hasattr(os, "pidfd_open")


# -- the worker's side


class ForkedProcess:
    """A process that the server has forked, with the attributes of `subprocess.Popen` that a worker needs.

    Attributes:
        pid: its process id, and its group's.
        stdin, stdout, stderr: this end of its pipes, unbuffered.
        returncode: None until `wait` has seen its end; then its exit code, or the negative number of the signal that ended it.
    """

    def __init__(self, pid: int, pidfd: int, status: socket.socket, stdin: BinaryIO, stdout: BinaryIO, stderr: BinaryIO) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.returncode: int | None = None
        self._pidfd = pidfd
        self._status = status
        self._lock = threading.Lock()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return its code. Raises subprocess.TimeoutExpired."""
        with self._lock:
            if self.returncode is None:
                deadline = None if timeout is None else time.monotonic() + timeout
                _await_readable(self._status.fileno(), timeout)
                message = self._status.recv(_MESSAGE_BYTES)
                if message:
                    self.returncode = int(message.removeprefix(_CODE))
                else:
                    _await_readable(self._pidfd, None if deadline is None else max(0.0, deadline - time.monotonic()))
                    log.warning("Process %d ended after the server that had forked it: how it ended is not known", self.pid)
                    self.returncode = UNKNOWN_CODE
            return self.returncode

    def release(self) -> None:
        """Give the process id back to the system, after the end. Nothing may be sent to it any more."""
        with self._lock:
            self._status.close()
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1


def _await_readable(descriptor: int, timeout: float | None) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not poll.poll(None if timeout is None else timeout * 1000):
        raise subprocess.TimeoutExpired("forked process", timeout or 0.0)


class ForkServer:
    """The worker's handle of its server, which is started again when it has died. Any thread may use it.

    Args:
        start: starts a process that calls `serve`, given the file descriptor that must become its standard input. Raises OSError.
    """

    def __init__(self, start: Callable[[int], subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._is_closed = False

    def begin(self) -> None:
        """Start the server, so that it has imported everything by the time of the first task. Raises OSError."""
        with self._lock:
            self._running()

    @property
    def pid(self) -> int | None:
        """The server's process; None before it is started."""
        return None if self._server is None else self._server.pid

    def fork(self) -> ForkedProcess:
        """Fork a process. Raises OSError when that is not possible; then there is no process."""
        with self._lock:
            control = self._running()
        with contextlib.ExitStack() as of_child, contextlib.ExitStack() as of_worker:
            pipes: list[BinaryIO] = []
            given: list[int] = []
            for mode in ("wb", "rb", "rb"):
                reader, writer = os.pipe()
                ours, theirs = (writer, reader) if mode == "wb" else (reader, writer)
                of_child.callback(os.close, theirs)
                given.append(theirs)
                pipes.append(of_worker.enter_context(os.fdopen(ours, mode, buffering=0)))
            status, child_status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            of_child.enter_context(child_status)
            of_worker.enter_context(status)
            socket.send_fds(control, [_REQUEST], [*given, child_status.fileno()])
            of_child.close()  # so that the server's death ends the wait
            status.settimeout(_ANSWER_SECONDS)
            answer = status.recv(_MESSAGE_BYTES)
            if answer.startswith(_ERROR):
                number = int(answer.removeprefix(_ERROR))
                raise OSError(number, os.strerror(number))
            if not answer.startswith(_PID):
                raise ChildProcessError("the process that tasks are forked from has died" if not answer else "the forked process has died")
            status.settimeout(None)
            pid = int(answer.removeprefix(_PID))
            forked = ForkedProcess(pid, os.pidfd_open(pid), status, pipes[0], pipes[1], pipes[2])
            of_worker.pop_all()
        return forked

    def close(self) -> None:
        """End the server. Tasks run on, but how they end is not known any more."""
        with self._lock:
            self._is_closed = True
            self._end()

    def _running(self) -> socket.socket:
        if self._is_closed:
            raise ChildProcessError("the worker is ending")
        if self._server is not None and self._server.poll() is not None:
            log.warning("The process that tasks are forked from has died (exit code %d); it is started again", self._server.returncode)
            self._end()
        if self._control is None:
            control, of_server = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with of_server:
                try:
                    self._server = self._start(of_server.fileno())
                except OSError:
                    control.close()
                    raise
            self._control = control
        return self._control

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None


# -- the server's side


class _Server:
    """Forks on request and reports how each child ended. One thread; nothing here may open a connection or start a thread."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._woken, self._waker = socket.socketpair()
        self._children: dict[socket.socket, int] = {}
        self._living: dict[int, socket.socket] = {}
        for end in (self._woken, self._waker):
            end.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)  # a signal without a handler would not wake the loop
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)

    def run(self) -> bool:
        """Serve until the worker is gone. Returns True in a forked child, False in the server at its end."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._control:
                    request, descriptors, _, _ = socket.recv_fds(self._control, len(_REQUEST), _DESCRIPTORS)
                    if not request:
                        return False
                    if self._fork(descriptors):
                        return True
                elif key.fileobj is self._woken:
                    with contextlib.suppress(BlockingIOError):
                        self._woken.recv(4096)
                    self._report_ended()
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    self._reap(key.fileobj)

    def _fork(self, descriptors: Sequence[int]) -> bool:
        status = socket.socket(fileno=descriptors[-1])
        try:
            pid = os.fork()
        except OSError as error:
            status.send(b"%b%d" % (_ERROR, error.errno or errno.EAGAIN))
            status.close()
            pid = -1
        if pid == 0:
            self._become_task(descriptors, status)
            return True
        for descriptor in descriptors[:-1]:
            os.close(descriptor)
        if pid > 0:
            self._children[status], self._living[pid] = pid, status
            self._selector.register(status, selectors.EVENT_READ)
        return False

    def _become_task(self, descriptors: Sequence[int], status: socket.socket) -> None:
        """Lead a process group of its own, take the worker's pipes, and hold nothing else of the server's: a status socket that a sibling
        held open would hide the server's death from the worker."""
        os.setsid()
        with contextlib.suppress(OSError):  # the worker has gone, and so have its pipes
            status.send(b"%b%d" % (_PID, os.getpid()))
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for held in (self._control, self._woken, self._waker, status, *self._children):
            held.close()
        for number, descriptor in enumerate(descriptors[:-1]):
            os.dup2(descriptor, number)
            os.close(descriptor)

    def _report_ended(self) -> None:
        for pid, status in list(self._living.items()):
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                del self._living[pid]
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
                with contextlib.suppress(OSError):
                    status.send(b"%b%d" % (_CODE, code))

    def _reap(self, status: socket.socket) -> None:
        """The worker has closed its end: it knows of the task's end, or has no interest in the task."""
        pid = self._children.pop(status)
        self._selector.unregister(status)
        status.close()
        if self._living.pop(pid, None) is not None:
            os.kill(pid, signal.SIGKILL)  # not its group, which it may not lead yet
        os.waitpid(pid, 0)


def serve() -> bool:
    """Fork a process at each request on standard input, until the worker is gone; called after the imports, in a process of one thread.

    Returns:
        True in a forked process, whose standard streams are the worker's pipes; False in the server, which should end then.
    """
    _shown_name()
    gc.freeze()  # a search for garbage would write to what is shared, and so copy it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return _Server(control).run()


#: What stands in the fork server's command line where a task has its name, with room for that.
FORK_SERVER = "(fork server)".ljust(200, ".")


@functools.cache
def _shown_name() -> ctypes.Array[ctypes.c_char] | None:
    """Return the placeholder in the process's command line; None where there is none.

    The server looks for it, so that no task has to.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(") ")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5)
    except (OSError, ValueError, IndexError):
        log.debug("The task's name cannot be shown", exc_info=True)
        return None
    found = ctypes.string_at(start, end - start).find(FORK_SERVER.encode())
    return None if found < 0 else (ctypes.c_char * len(FORK_SERVER)).from_address(start + found)


def show_name(name: str) -> None:
    """Write a task's name over the placeholder in the process's command line, for `ps`. Linux only; elsewhere the placeholder stays."""
    shown = _shown_name()
    if shown is not None:
        shown.raw = name.encode()[: len(FORK_SERVER)].ljust(len(FORK_SERVER), b"\0")
