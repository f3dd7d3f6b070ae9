"""The processes that read chunks of a snapshot beside the task, as the task sees them (`reader_process.py` is the other side).

Where a moment of the database can only be taken by every connection for itself, while a lock keeps others from writing, readers are started
before there is anything to read: `start_readers`, then, once they have connected and the lock is there, `take_moment`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from connectors.engine.snapshot.initial.marking import OpenChunk
from connectors.engine.snapshot.parallel import frames

#: What a reader may be ahead: two or three batches. The system allows as much without privileges.
_PIPE_BYTES = 1 << 20
#: How long a reader may take to end after its standard input has.
_END_SECONDS = 5.0
#: How long readers may take to connect, and to take a moment.
_READY_SECONDS, _MOMENT_SECONDS = 60.0, 10.0


class Reader:
    """One reading process.

    Attributes:
        fd: where its frames come from.
        chunks: that it was given and has not ended, in order.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, command: Sequence[str], spec: bytes) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self._process.stdin is not None and self._process.stdout is not None
        self.fd = self._process.stdout.fileno()
        with contextlib.suppress(OSError, AttributeError):  # other systems have other pipes
            fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self.chunks: deque[OpenChunk[bytes]] = deque()
        self.send(frames.SPEC, spec)

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._process.pid

    @classmethod
    def start(cls, module: str, spec: Mapping[str, Any]) -> Reader:
        """Start one that runs a module, and tell it what it is to know first. Raises RetriableError."""
        try:
            return cls([sys.executable, "-P", "-m", module], json.dumps(spec).encode())
        except OSError as error:
            raise RetriableError(f"A process that reads the snapshot cannot be started: {error}") from error

    def send(self, kind: int, body: bytes) -> None:
        """Hand something to it; one that is gone is noticed by `receive`."""
        assert self._process.stdin is not None
        data = memoryview(frames.frame(kind, body))
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[self._process.stdin.write(data) :]

    def receive(self) -> tuple[int, bytes]:
        """The next frame, of which something is there. Raises RetriableError when it has ended."""
        length, kind = frames.HEADER.unpack(self._take(frames.HEADER.size))
        return kind, self._take(length - 1)

    def _take(self, size: int) -> bytes:
        data = os.read(self.fd, size) if size else b""
        if len(data) < size:
            parts, left = [data], size - len(data)
            while left and parts[-1]:
                parts.append(os.read(self.fd, left))
                left -= len(parts[-1])
            if left:
                raise RetriableError(f"A process that read the snapshot ended ({self._ending()}); what it had not sent is read again")
            data = b"".join(parts)
        return data

    def _ending(self) -> str:
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def close(self) -> None:
        """End it, wherever it is."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def start_readers(module: str, spec: Mapping[str, Any], count: int) -> list[Reader]:
    """Start readers, and wait until all of them have connected. Raises ConnectError; none is left then."""
    readers: list[Reader] = []
    try:
        for _ in range(count):
            readers.append(Reader.start(module, spec))
        _ask(readers, frames.READY, _READY_SECONDS)
    except BaseException:
        for reader in readers:
            reader.close()
        raise
    return readers


def take_moment(readers: Sequence[Reader]) -> None:
    """Let every reader take its moment of the database now. Raises ConnectError."""
    _ask(readers, frames.MOMENT, _MOMENT_SECONDS)


def _ask(readers: Sequence[Reader], kind: int, seconds: float) -> None:
    """Ask all of them at once, and wait for the answers."""
    for reader in readers:
        reader.send(kind, b"")
    deadline = time.monotonic() + seconds
    for reader in readers:
        answers = select.poll()
        answers.register(reader.fd, select.POLLIN | select.POLLHUP)
        if not answers.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise RetriableError(f"A process that is to read the snapshot did not answer within {seconds:.0f} s")
        found, body = reader.receive()
        if found == frames.ERROR:
            raise told_error(body)


def told_error(body: bytes) -> ConnectError:
    """What a frame of ERROR tells."""
    told: Mapping[str, str] = json.loads(body)
    kinds = {"retriable": RetriableError, "fatal": FatalTaskError}
    return kinds.get(told["kind"], ConnectError)(told["text"])
