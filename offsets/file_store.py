"""Source offsets of a standalone worker in a file (`FileOffsetBackingStore.java`).

Java's file is a serialized `HashMap`, which nothing but that class reads; ours is text of our own, one line a source partition, in the
format of the offsets topic::

    {"format":"connect-py offsets","version":1}
    ["C",{"filename":"test.txt"}]<TAB>{"position":30}

Keys and values are JSON without raw control characters, so neither holds a tab or a line break. A change writes the whole file beside the
old one and renames it, so that a crash leaves the one or the other. A missing or empty file is an empty store; any other content is
refused, because overwriting what one cannot read may lose somebody's offsets.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect_py.api.record import SourceOffset, SourcePartition
from connect_py.errors import ConfigError, ConnectError, DataError
from offsets.keys import encode_json
from offsets.offset_store import OffsetCache, offset_records

FILENAME = "offset.storage.file.filename"

_HEADER = encode_json({"format": "connect-py offsets", "version": 1})


class FileOffsetStore:
    """A `connect_py.api.storage.OffsetStore` in one file; only one worker may use it.

    Args:
        worker: worker properties, with `offset.storage.file.filename`.

    Raises:
        ConfigError: no file is named.
    """

    def __init__(self, worker: Mapping[str, str]) -> None:
        name = worker.get(FILENAME, "").strip()
        if not name:
            raise ConfigError(f'Missing required configuration "{FILENAME}" which has no default value.')
        self._path = Path(name)
        self._lock = threading.Lock()
        self._cache = OffsetCache()

    def start(self) -> None:
        """Read the file.

        Raises:
            ConfigError: it holds something else, a Java worker's offsets for instance; it is left as it is.
        """
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise ConfigError(f"The offset file '{self._path}' ({FILENAME}) cannot be read: {error.strerror}") from error
        if not data:
            return
        header, *lines = data.rstrip(b"\n").split(b"\n")
        if header != _HEADER:
            kind = "was written by a Java worker" if data.startswith(b"\xac\xed") else "is no offset file"
            raise ConfigError(f"'{self._path}' ({FILENAME}) {kind}; it was left as it is. Name another file, or move this one away.")
        with self._lock:
            for number, line in enumerate(lines, 2):
                key, tab, value = line.partition(b"\t")
                try:
                    self._cache.apply(key, value if tab else b"")
                except DataError as error:
                    raise ConfigError(f"Line {number} of '{self._path}' ({FILENAME}) is damaged: {error}. It was left as it is.") from error

    def stop(self) -> None:
        """The file is always complete; there is nothing to close."""

    def refresh(self, timeout: float) -> None:
        """There is nobody else who writes."""

    def of_connector(self, connector: str) -> list[tuple[SourcePartition, SourceOffset]]:
        """Everything known of one connector."""
        with self._lock:
            return self._cache.of_connector(connector)

    def put(self, connector: str, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> None:
        """Store offsets (None forgets one); returns when the file system holds them.

        Raises:
            DataError: a partition or offset that is no flat map of strings to primitives; nothing was written.
            ConnectError: the file cannot be written; it holds the offsets before these, and so does the store.
        """
        found = offset_records(connector, offsets)
        if not found:
            return
        with self._lock:
            changed = self._cache.copy()
            for key, value in found:
                changed.apply(key, value)
            self._save(changed)
            self._cache = changed

    def _save(self, cache: OffsetCache) -> None:
        lines = [_HEADER, *(key + b"\t" + value for key, value in cache.records())]
        beside = self._path.with_name(self._path.name + ".new")
        try:
            with open(beside, "wb") as file:
                file.write(b"\n".join(lines) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._path)
        except OSError as error:
            raise ConnectError(
                f"Offsets could not be written to '{self._path}' ({FILENAME}): {error.strerror}. It holds those of the last write that "
                "succeeded."
            ) from error
