"""The inside of a process that reads chunks of a snapshot for a task (`pool.py` is the other side).

Python runs one thread at a time, so more readers are more processes: each has a connection of its own to the exported consistent snapshot,
reads and encodes, and hands batches over as frames. It is started by exec, never by fork: the task's process has librdkafka's threads.

It ends when its standard input does, at any point: a reader must not outlive its task. One thread waits for frames there; the main
thread reads the database.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Protocol, TypeVar, cast

from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from connectors.engine.snapshot.initial.run import ChunkRows, Encode, Marker
from connectors.engine.snapshot.parallel import frames

#: A raw row, as a connector reads it.
R = TypeVar("R")


class ChunkSource(Protocol[R]):
    """What a connector reads in such a process."""

    def open(self, chunk: Mapping[str, Any]) -> ChunkRows[R]:
        """Return the rows of a chunk, as the `describe` of `ReaderPool` gave it. Raises ConnectError."""
        ...


class ConsistentSource(ChunkSource[R], Protocol):
    """A source of a database where every connection begins a consistent snapshot by itself (`start_readers`)."""

    def begin_consistent_snapshot(self) -> None:
        """See the database as it is now from here on. Raises ConnectError."""
        ...


def serve(connect: Callable[[Mapping[str, Any]], ChunkSource[R] | ConsistentSource[R]], pack: Callable[[R], bytes]) -> int:
    """Read chunks until standard input ends; returns the exit code of the process.

    Args:
        connect: makes the source, of what the task sends first. Raises ConnectError.
        pack: a raw row as bytes, which the task's `ReaderTable.encode` takes.
    """
    out = os.dup(1)
    os.dup2(2, 1)  # nothing that a library prints may be taken for a frame
    commands: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
    threading.Thread(target=_read_commands, args=(os.fdopen(0, "rb", closefd=False), commands), name="commands", daemon=True).start()
    try:
        _, spec = commands.get()
        source = connect(json.loads(spec))
        while True:
            kind, body = commands.get()
            if kind == frames.CHUNK:
                _read_chunk(*source.open(json.loads(body)), pack, out)
                continue
            if kind == frames.BEGIN:
                cast("ConsistentSource[R]", source).begin_consistent_snapshot()
            _write(out, frames.frame(frames.READY))
    except BrokenPipeError:
        return 1
    except Exception as error:  # noqa: BLE001  # the last line of defence: everything that is raised is sent to the task, which decides
        what = "retriable" if isinstance(error, RetriableError) else "fatal" if isinstance(error, FatalTaskError) else "error"
        text = str(error) if isinstance(error, ConnectError) else f"{type(error).__name__}: {error}"
        _write(out, frames.frame(frames.ERROR, json.dumps({"kind": what, "text": text}).encode()))
        return 1


def _read_commands(stream: BinaryIO, commands: queue.SimpleQueue[tuple[int, bytes]]) -> None:
    """Pass on what the task asks for. The process ends with this thread, however it ends: the task is gone, or what it sent is torn."""
    try:
        while len(header := stream.read(frames.HEADER.size)) == frames.HEADER.size:
            length, kind = frames.HEADER.unpack(header)
            if len(body := stream.read(length - 1)) < length - 1:
                break
            commands.put((kind, body))
    finally:
        os._exit(1)


def _read_chunk(batches: Iterator[list[R]], encode: Encode[R], pack: Callable[[R], bytes], out: int) -> None:
    """Send a chunk: its first and last row raw, since only the task knows their markers."""
    is_first = True
    held: list[R] = []
    for rows in batches:
        if not rows:
            continue
        raw = held + rows
        held = [raw.pop()]
        if is_first and raw:
            is_first = False
            _write(out, frames.frame(frames.FIRST, pack(raw.pop(0))))
        if raw and (records := encode(raw, Marker.MIDDLE)):
            _write(out, frames.rows_frame(records))
    if held:
        _write(out, frames.frame(frames.LAST, pack(held[0])))
    _write(out, frames.frame(frames.END))


def _write(out: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]
