"""Changes of transactions that are still open, kept until they commit (pgoutput protocol version 2; PostgreSQL's manual, "Streaming of
Large Transactions for Logical Decoding").

With version 1 the server keeps a transaction until its commit, on its own disk beyond `logical_decoding_work_mem`, and then sends it. With
version 2 and ``streaming 'on'`` it sends the changes of a transaction that outgrows that memory in segments while it is open, and
afterwards whether it committed. `SegmentedMessages` stands between the connection and the stream: it keeps segments and hands a
transaction out when its commit comes, as the messages that version 1 would have sent, at the position where they would have come. So
nothing after it knows of segments, and records, offsets and restarts are the same by construction. Two things are not, for lack of what the
server says: where a replicated transaction committed at its origin is not known yet, and shown as 0 (`source.origin_lsn`); and a
transactional message of `pg_logical_emit_message` comes under the number of the whole transaction, so that one which the rollback to a
savepoint took back shows all the same where it was written before the first row after that savepoint. (Before version 15 a begin shows
where the transaction's first record of any kind lies; here it shows where its first segment begins.)

Memory is bounded: all open transactions together hold `memory_bytes`; the largest of them goes to a temporary file when they have more. A
file has no name from its creation on, so it is gone with the process however that ends. Nothing here is worth keeping over a
restart: the server sends an open transaction again, from its beginning.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from struct import Struct
from typing import IO

from connect_py.errors import FatalTaskError
from connectors.postgres import pgoutput
from connectors.postgres.pgoutput import STREAM_ABORT, STREAM_COMMIT, STREAM_START, STREAM_STOP

log = logging.getLogger(__name__)

_SIZE = Struct(">I")
_LSN = Struct(">q")
_KIND = pgoutput.WAL_HEADER
#: Where a message continues after the transaction's number, which only messages of segments have.
_REST = _KIND + 5
_ORIGIN = 0x4F
_KINDS = frozenset((STREAM_START, STREAM_COMMIT, STREAM_ABORT))
#: Bytes of a file that are in memory while it is handed out.
BLOCK_BYTES = 1 << 20
#: Messages that are kept before the stream may look at the clock.
KEPT_TOGETHER = 1024

#: What the connection has: a length (0: nothing now, below 0: the end) and a message.
Get = Callable[[int], tuple[int, "memoryview | bytes"]]


class OpenTransaction:
    """The changes of one transaction: a file's, then those in memory. Each message with its length before it.

    Attributes:
        first_lsn: where its first segment begins.
        written: number of bytes in the file.
        aborted: numbers of sub-transactions that were rolled back, as the messages hold them, and how much there was when each of them was:
            what lies between its first message and that point is its own, or of a sub-transaction inside of it.
    """

    def __init__(self, xid: int, first_lsn: int = 0) -> None:
        self.xid = xid
        self.first_lsn = first_lsn
        self.written = 0
        self.aborted: dict[bytes, int] = {}
        self.memory = bytearray()
        self._file: IO[bytes] | None = None

    def abort(self, part: int) -> None:
        """Note that a sub-transaction was rolled back."""
        self.aborted[part.to_bytes(4, "big")] = self.written + len(self.memory)

    def spill(self, directory: str | None) -> None:
        """Move what is in memory to the file. Raises FatalTaskError: it does not fit, or the directory cannot be written."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="connect-py-transaction-", dir=directory, buffering=0)  # noqa: SIM115  # `close` does
                log.info("Transaction %d is large and still open: its changes are kept in a temporary file until it commits", self.xid)
            view = memoryview(self.memory)
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            where = directory or tempfile.gettempdir()
            raise FatalTaskError(
                f"The changes of the open transaction {self.xid} cannot be kept in {where}: {error.strerror}; {self.written} bytes of it "
                "are there. Nothing is lost, the server sends them again. Make room, or name another directory in "
                "large.transaction.directory, or leave them to the server with large.transaction.streaming=false; then restart the task."
            ) from error
        self.written += len(self.memory)
        self.memory = bytearray()

    def replay(self) -> Iterator[bytes]:
        """Return the messages as version 1 has them, without those of aborted sub-transactions. Raises FatalTaskError."""
        aborted = self.aborted
        gone = before = 0
        rest = b""
        for block in self._blocks():
            data = rest + block
            at, end = 0, len(data)
            while at + 4 <= end:
                stop = at + 4 + _SIZE.unpack_from(data, at)[0]
                if stop > end:
                    break
                start, at = at + 4, stop
                if data[start + _KIND] == _ORIGIN:
                    yield data[start:stop]
                    continue
                if aborted:
                    gone = max(gone, aborted.get(data[start + _KIND + 1 : start + _REST], 0))
                    if before + start < gone:
                        continue
                yield data[start : start + _KIND + 1] + data[start + _REST : stop]
            before += at
            rest = data[at:]

    def _blocks(self) -> Iterator[bytes]:
        try:
            if self._file is not None:
                self._file.seek(0)
                while block := self._file.read(BLOCK_BYTES):
                    yield block
        except OSError as error:
            raise FatalTaskError(
                f"The changes of transaction {self.xid} cannot be read back from its temporary file: {error.strerror}. Nothing is lost, "
                "the server sends them again when the task is restarted."
            ) from error
        self.close()
        memory = memoryview(self.memory)
        for at in range(0, len(memory), BLOCK_BYTES):
            yield bytes(memory[at : at + BLOCK_BYTES])

    def close(self) -> None:
        """Give the file up."""
        if self._file is not None:
            self._file.close()
            self._file = None


class SegmentedMessages:
    """Messages of a connection with protocol version 2 as those of version 1. Owned by the stream's thread.

    Args:
        get: returns the connection's next message.
        memory_bytes: how much all open transactions may hold in memory, before one goes to a file.
        directory: where the files are; None for the system's temporary directory.
        sends_empty: whether the server sends begin and commit of a transaction of which it sends nothing else (before version 15).

    Attributes:
        has_kept: whether messages were kept since the owner reset it.
    """

    def __init__(self, get: Get, *, memory_bytes: int, directory: str | None = None, sends_empty: bool = False) -> None:
        self._get = get
        self._memory_bytes = memory_bytes
        self._directory = directory
        self._sends_empty = sends_empty
        self._open: dict[int, OpenTransaction] = {}
        self._in_memory = 0
        self._segment: OpenTransaction | None = None
        self._replay: Iterator[bytes] | None = None
        self.has_kept = False

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many transactions are open, their bytes in memory, and in files."""
        return len(self._open), self._in_memory, sum(found.written for found in self._open.values())

    def get(self, asynchronous: int = 1) -> tuple[int, memoryview | bytes]:
        """Return the next message. After many that were kept, say that there is none, so that the stream looks at the clock.

        Raises:
            FatalTaskError: a transaction cannot be kept.
        """
        if self._replay is not None:
            message = next(self._replay, None)
            if message is not None:
                return len(message), message
            self._replay = None
        for _ in range(KEPT_TOGETHER):
            length, data = self._get(asynchronous)
            if length <= _KIND or data[0] != 0x77:
                return length, data
            kind = data[_KIND]
            if self._segment is not None:
                self.has_kept = True
                if kind == STREAM_STOP:
                    self._segment = None
                else:
                    self._keep(self._segment, length, data)
            elif kind not in _KINDS:
                return length, data
            else:
                found = self._boundary(kind, bytes(data))
                if found is not None:
                    return len(found), found
        return 0, b""

    def close(self) -> None:
        """Give up what is open."""
        for transaction in self._open.values():
            transaction.close()
        self._open.clear()
        self._segment = self._replay = None
        self._in_memory = 0

    def _boundary(self, kind: int, message: bytes) -> bytes | None:
        """Return the first message of a transaction that committed."""
        if kind == STREAM_START:
            xid = pgoutput.decode_stream_start(message)
            self._segment = self._open.setdefault(xid, OpenTransaction(xid, _LSN.unpack_from(message, 1)[0]))
            return None
        if kind == STREAM_ABORT:
            xid, part = pgoutput.decode_stream_abort(message)
            if xid == part:
                gone = self._forget(xid)
                if gone is not None:
                    gone.close()
            elif xid in self._open:
                self._open[xid].abort(part)
            return None
        xid = pgoutput.decode_stream_commit(message)
        self._replay = self._committed(self._forget(xid) or OpenTransaction(xid), message)
        return next(self._replay, None)

    def _forget(self, xid: int) -> OpenTransaction | None:
        found = self._open.pop(xid, None)
        if found is not None:
            self._in_memory -= len(found.memory)
        return found

    def _committed(self, transaction: OpenTransaction, commit: bytes) -> Iterator[bytes]:
        """Yield a transaction's messages between its begin and its commit, as version 1 sends them."""
        messages = transaction.replay()
        head: list[bytes] = []
        lsn = 0
        for message in messages:
            head.append(message)
            # a change has a position; relations, types and origins have none of their own
            if lsn := _LSN.unpack_from(message, 1)[0]:
                break
        if not lsn and not self._sends_empty:
            return
        # a begin shows the position of the first change, unless an origin follows it
        first = transaction.first_lsn if self._sends_empty else lsn
        yield pgoutput.begin_of(commit, 0 if head and head[0][_KIND] == _ORIGIN else first)
        yield from head
        yield from messages
        yield pgoutput.commit_of(commit)

    def _keep(self, transaction: OpenTransaction, length: int, data: memoryview | bytes) -> None:
        memory = transaction.memory
        memory += _SIZE.pack(length)
        memory += data
        self._in_memory += 4 + length
        while self._in_memory > self._memory_bytes:
            largest = max(self._open.values(), key=lambda found: len(found.memory))
            self._in_memory -= len(largest.memory)
            largest.spill(self._directory)
