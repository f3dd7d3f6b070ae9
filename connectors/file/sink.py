"""FileStreamSink: values as lines of a text file (`connect/file`, `FileStreamSinkConnector.java`, `FileStreamSinkTask.java`).

Each value is one line, as Java's `toString` shows it (`connect_py.data.java_text`); keys and headers are left out. Lines are appended with
one write a batch, so several tasks may share a file. Before offsets are committed the file is synchronised to its disk, which Java leaves
to the operating system. A batch that is delivered again after a crash is appended again: lines are at least once.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from connect_py.api import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    SinkRecord,
    SinkTask,
    SinkTaskContext,
    TopicPartition,
)
from connect_py.api.permissions import allowed_file
from connect_py.data.java_text import to_text
from connect_py.errors import ConnectError, FatalTaskError, noted
from connectors.engine.sink_records import UniformSinkConnector
from connectors.file.source import FILE, check_file

log = logging.getLogger(__name__)

_DEFINITION = ConfigDef(
    [
        ConfigKey(
            FILE,
            ConfigType.STRING,
            None,
            Importance.HIGH,
            "Destination filename. If not specified, the standard output will be used",
            display_name=FILE,
            validator=check_file,
        )
    ]
)


class FileStreamSinkTask(SinkTask):
    """Appends to one file, or to standard output, which in a task's process is the worker's log."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._path: str | None = None
        self._must_sync = False
        self._begin = b""

    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        """Open the file."""
        self._path = _DEFINITION.parse(config)[FILE] or None
        if self._path is None:
            self._file = sys.stdout.buffer
            return
        try:
            self._file = open(allowed_file(FILE, self._path), "ab", buffering=0)  # noqa: SIM115  # held until stop
        except OSError as error:
            raise noted(
                FatalTaskError(f"Couldn't find or create file '{self._path}' for FileStreamSinkTask"),
                f"{error.strerror}. Nothing was read.",
            ) from _file_error(error)
        self._must_sync = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        if self._must_sync and _ends_within_a_line(self._path):
            self._begin = b"\n"

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Append one line a record."""
        if not records:
            return
        assert self._file is not None
        lines = "".join(f"{to_text(r.value_schema, r.value)}\n" for r in records).encode("utf-8", "replace")
        rest = memoryview(self._begin + lines)
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
            self._file.flush()
        except OSError as error:
            raise FatalTaskError(self._not_written(error)) from error
        self._begin = b""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Have the disk hold what was put."""
        if self._must_sync and self._file is not None:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise FatalTaskError(self._not_written(error)) from error
        return offsets

    def stop(self) -> None:
        """Close the file; standard output stays open."""
        if self._file is not None and self._path is not None:
            self._file.close()
            self._file = None

    def _not_written(self, error: OSError) -> str:
        return (
            f"The file {self._path or 'standard output'} cannot be written: {error.strerror}. Offsets stand at the last commit; lines "
            "after it are written again after a restart."
        )


class FileStreamSinkConnector(UniformSinkConnector):
    """As many tasks as are allowed, all for one file."""

    java_name = "org.apache.kafka.connect.file.FileStreamSinkConnector"
    java_task_name = "org.apache.kafka.connect.file.FileStreamSinkTask"
    version = "4.3.1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the definition of the properties."""
        return _DEFINITION

    def start(self, config: Mapping[str, str]) -> None:
        """Take the configuration. Raises ConfigError."""
        _DEFINITION.parse(config)
        self._config = dict(config)

    def task_class(self) -> type[SinkTask]:
        """Return the class of its tasks."""
        return FileStreamSinkTask


def _ends_within_a_line(path: str) -> bool:
    """Return whether the last line is only a part of one, as a full disk leaves it: what comes next must not be appended to it."""
    try:
        with open(path, "rb") as file:
            return file.seek(0, os.SEEK_END) > 0 and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n"
    except OSError:  # one that may only be written
        return False


def _file_error(error: OSError) -> ConnectError:
    """Return the failure as `java.nio.file.Files` reports it."""
    kind = {errno.ENOENT: "NoSuchFileException", errno.EACCES: "AccessDeniedException"}.get(error.errno or 0)
    found = ConnectError(str(error.filename) if kind else f"{error.filename}: {error.strerror}")
    found.java_name = f"java.nio.file.{kind or 'FileSystemException'}"
    return found
