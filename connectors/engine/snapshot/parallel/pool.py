"""The initial snapshot read by several processes (`snapshot.max.threads`), seen from the task; `worker.py` is the other side. Knows no
database.

A connector provides a module that runs `worker.serve`, and what makes records of the first and last rows. Chunks are handed out in order,
from all tables, so all readers work on a large table. Each reader has one chunk more than it reads, so that it does not wait for the
boundaries of the next. What a reader sends goes out as it comes: as in the reference, the order of a table's rows is that of no single
SELECT. Markers keep their meaning (`MarkedRows`).

No thread waits here, and nothing is buffered: a reader that is faster than Kafka blocks in its write, as its pipe holds a megabyte. A
reader that dies is a retriable failure of the snapshot; readers end with the task, whose end closes their standard input.

Some databases can only open a consistent snapshot per connection, while a lock keeps others from writing. There the readers are started
before there is anything to read: `start_readers`, then, once they have connected and the lock is held, `begin_consistent_snapshot`.

The task's thread uses this module.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from connect_py.api import Route
from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from connectors.engine.snapshot.initial.progress import Chunk
from connectors.engine.snapshot.initial.run import Encode, MarkedRows, OpenChunk, Part, Piece
from connectors.engine.snapshot.parallel import frames

#: What a reader may be ahead: two or three batches. The system allows as much without privileges.
_PIPE_BYTES = 1 << 20
#: How long a reader may take to end after its standard input has.
_END_SECONDS = 5.0
#: How long readers may take to connect, and to begin a consistent snapshot.
_READY_SECONDS, _BEGIN_SECONDS = 60.0, 10.0


class ReaderProcess:
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
        """The id of its process."""
        return self._process.pid

    @classmethod
    def start(cls, module: str, spec: Mapping[str, Any]) -> ReaderProcess:
        """Start one that runs a module, and send it the `spec` first. Raises RetriableError."""
        try:
            return cls([sys.executable, "-P", "-m", module], json.dumps(spec).encode())
        except OSError as error:
            raise RetriableError(f"A process that reads the snapshot cannot be started: {error}") from error

    def send(self, kind: int, body: bytes) -> None:
        """Send a frame to it; `receive` notices when it is gone."""
        assert self._process.stdin is not None
        data = memoryview(frames.frame(kind, body))
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[self._process.stdin.write(data) :]

    def receive(self) -> tuple[int, bytes]:
        """Return the next frame, of which something is there. Raises RetriableError when it has ended."""
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
        """End it, at any point."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def start_readers(module: str, spec: Mapping[str, Any], count: int) -> list[ReaderProcess]:
    """Start readers, and wait until all of them have connected. Raises ConnectError; none is left then."""
    readers: list[ReaderProcess] = []
    try:
        for _ in range(count):
            readers.append(ReaderProcess.start(module, spec))
        _ask(readers, frames.READY, _READY_SECONDS)
    except BaseException:
        for reader in readers:
            reader.close()
        raise
    return readers


def begin_consistent_snapshot(readers: Sequence[ReaderProcess]) -> None:
    """Let every reader begin a consistent snapshot of the database now. Raises ConnectError."""
    _ask(readers, frames.BEGIN, _BEGIN_SECONDS)


def _ask(readers: Sequence[ReaderProcess], kind: int, seconds: float) -> None:
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
            raise parse_error(body)


def parse_error(body: bytes) -> ConnectError:
    """Return the error that a frame of ERROR holds."""
    told: Mapping[str, str] = json.loads(body)
    kinds = {"retriable": RetriableError, "fatal": FatalTaskError}
    return kinds.get(told["kind"], ConnectError)(told["text"])


T = TypeVar("T")

#: How long one call waits for rows.
WAIT_SECONDS = 0.25
#: Chunks of a reader at a time.
_CHUNKS_EACH = 2


@dataclass(frozen=True, slots=True)
class ReaderTable:
    """What the task needs to know of a table that readers read.

    Attributes:
        encode: makes records of raw rows.
        key_head: before each key that a reader sends, with a closing brace after it; empty where readers send keys as they are to be.
        value_head: the same of values.
    """

    route: Route
    encode: Encode[bytes]
    key_head: bytes = b""
    value_head: bytes = b""


class ReaderPool(Generic[T]):
    """Reads chunks by several processes; a `Reader` of the pipeline.

    Args:
        table: what is needed of a chunk's table.
        describe: a chunk for the readers; JSON.
        module: is run by each reader; its `main` calls `worker.serve`.
        spec: sent to each reader first, as it stands when the first chunk is handed out; JSON. It may hold secrets, so it goes over a pipe.
        readers: the maximum number, not more than there are chunks; or those that were started before (`start_readers`).

    Attributes:
        pids: of the readers.
    """

    def __init__(
        self,
        table: Callable[[Chunk[T]], ReaderTable],
        describe: Callable[[Chunk[T]], Mapping[str, Any]],
        *,
        module: str,
        spec: Callable[[], Mapping[str, Any]],
        readers: int | Sequence[ReaderProcess],
    ) -> None:
        self._table = table
        self._describe = describe
        self._module = module
        self._spec = spec
        self._tables: dict[str, ReaderTable] = {}
        self._readers: dict[int, ReaderProcess] = {}
        self._all_given = False
        self._poll = select.poll()
        self._max_readers = readers if isinstance(readers, int) else len(readers)
        for reader in () if isinstance(readers, int) else readers:
            self._add(reader)

    @property
    def pids(self) -> list[int]:
        """The process ids of the readers."""
        return [reader.pid for reader in self._readers.values()]

    def __call__(self, chunks: Iterator[Chunk[T]], marks: MarkedRows[bytes]) -> Iterator[Piece[bytes] | None]:
        ready: list[int] = []
        while True:
            yield from self._hand_out(chunks)
            if not any(reader.chunks for reader in self._readers.values()):
                break
            ready = ready or self._wait(marks.awaited)
            yield self._receive(self._readers[ready.pop()]) if ready else None
        self.close()

    def close(self) -> None:
        """End the readers, at any point."""
        readers, self._readers = self._readers, {}
        for reader in readers.values():
            reader.close()

    def _wait(self, awaited: str | None) -> list[int]:
        """Return readers that have something; before the first row of all, only those that could have it."""
        if awaited is None:
            return [fd for fd, _ in self._poll.poll(WAIT_SECONDS * 1000)]
        first = select.poll()
        for reader in self._readers.values():
            if reader.chunks and reader.chunks[0].table == awaited:
                first.register(reader.fd, select.POLLIN | select.POLLHUP)
        return [fd for fd, _ in first.poll(WAIT_SECONDS * 1000)]

    def _hand_out(self, chunks: Iterator[Chunk[T]]) -> Iterator[Piece[bytes]]:
        """Give chunks to readers that are free, as long as there are any."""
        while not self._all_given and (reader := self._free()) is not None:
            chunk = next(chunks, None)
            if chunk is None:
                self._all_given = True
                return
            opened: OpenChunk[bytes] = OpenChunk(str(chunk.table), chunk)
            yield Piece(opened, Part.BEGIN)
            if opened.table not in self._tables:
                self._tables[opened.table] = self._table(chunk)
            opened.encode = self._tables[opened.table].encode
            reader.chunks.append(opened)
            reader.send(frames.CHUNK, json.dumps(self._describe(chunk)).encode())

    def _free(self) -> ReaderProcess | None:
        """Return a reader that should be given a chunk; a new one while not all are there and none is idle."""
        least = min(self._readers.values(), key=lambda reader: len(reader.chunks), default=None)
        if least is not None and (not least.chunks or len(self._readers) == self._max_readers):
            return least if len(least.chunks) < _CHUNKS_EACH else None
        return self._add(ReaderProcess.start(self._module, self._spec()))

    def _add(self, reader: ReaderProcess) -> ReaderProcess:
        self._readers[reader.fd] = reader
        self._poll.register(reader.fd, select.POLLIN | select.POLLHUP)
        return reader

    def _receive(self, reader: ReaderProcess) -> Piece[bytes]:
        kind, body = reader.receive()
        if kind == frames.ERROR:
            raise parse_error(body)
        chunk = reader.chunks[0]
        match kind:
            case frames.ROWS | frames.VALUES:
                table = self._tables[chunk.table]
                return Piece(chunk, Part.RECORDS, frames.unpack_rows(kind, body, table.route, table.key_head, table.value_head))
            case frames.FIRST:
                return Piece(chunk, Part.FIRST, [body])
            case frames.LAST:
                return Piece(chunk, Part.ROWS, [body])
        reader.chunks.popleft()
        return Piece(chunk, Part.END)
