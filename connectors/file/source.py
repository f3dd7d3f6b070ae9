"""FileStreamSource: lines of a text file as records (`connect/file`, `FileStreamSourceConnector.java`, `FileStreamSourceTask.java`).

The key is null, the value a STRING. The source partition is ``{"filename": path}``, the source offset ``{"position": n}``. Here n counts
*bytes*, where Java counts decoded characters but skips bytes on restart; the two agree for ASCII, and for other text bytes are the ones
that lead back to the right position. A last line without a line end is not emitted: it may not be finished. A missing file is looked
for each second.

As in Java, each poll first reads on, as much as the buffer has room for, and gives lines only when something came. So lines beyond
``batch.size`` that are in the buffer at the end of the file wait until the file grows. The buffer is small (1 KiB, doubled while one line
does not fit), which bounds what can wait; with the default of 2000 lines nothing does.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from io import BufferedReader
from typing import cast

from connect_py.api import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    SourceConnector,
    SourceOffset,
    SourcePartition,
    SourceRecord,
    SourceTask,
    SourceTaskContext,
)
from connect_py.api.config import REQUIRED, non_empty
from connect_py.api.permissions import allowed_file
from connect_py.data.schema import STRING
from connect_py.errors import ConnectError

log = logging.getLogger(__name__)

FILE, TOPIC, BATCH_SIZE = "file", "topic", "batch.size"
FILENAME, POSITION = "filename", "position"


def check_file(name: str, value: str | None) -> None:
    """Raise ConfigError unless the worker's operator allows the file; none stands for standard input or output."""
    if value:
        allowed_file(name, value)


_DEFINITION = ConfigDef(
    [
        ConfigKey(
            FILE,
            ConfigType.STRING,
            None,
            Importance.HIGH,
            "Source filename. If not specified, the standard input will be used",
            display_name=FILE,
            validator=check_file,
        ),
        ConfigKey(
            TOPIC, ConfigType.STRING, REQUIRED, Importance.HIGH, "The topic to publish data to", display_name=TOPIC, validator=non_empty
        ),
        ConfigKey(
            BATCH_SIZE,
            ConfigType.INT,
            "2000",
            Importance.LOW,
            "The maximum number of records the source task can read from the file each time it is polled",
            display_name=BATCH_SIZE,
        ),
    ]
)

#: FileStreamSourceTask.INITIAL_BUFFER_SIZE, in bytes here; doubled when a line does not fit.
_BUFFER = 1024

#: How long poll waits at the end of the file, and for a file that is missing.
_IDLE_SECONDS = 0.2
_MISSING_SECONDS = 1.0
#: The same where nothing was appended for a while, and how often the file's size is looked at meanwhile: as often as FileStreamSourceTask
#: reads. A look costs half of what a turn of the task's loop does.
_REST_SECONDS = 5.0
_LOOK_SECONDS = 1.0


class FileStreamSourceTask(SourceTask):
    """Reads one file, or standard input."""

    patience = _IDLE_SECONDS
    rest_patience = _REST_SECONDS

    def __init__(self) -> None:
        self._is_stopped = False
        self._woken = threading.Event()
        self._file: BufferedReader | None = None
        self._rest = b""
        self._room = _BUFFER
        self._position = 0

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Resume at the committed position."""
        values = _DEFINITION.parse(config)
        self._path: str | None = values[FILE]
        self._topic: str = values[TOPIC]
        self._batch: int = max(1, values[BATCH_SIZE])
        self._partition: SourcePartition = {FILENAME: self._path}
        offset = context.offset(self._partition)
        self._position = int((offset or {}).get(POSITION) or 0)

    def poll(self) -> Sequence[SourceRecord] | None:
        """Read the next complete lines."""
        if self._file is None and not self._open():
            self._wait(_MISSING_SECONDS)
            return None
        records: list[SourceRecord] = []
        while len(records) < self._batch and not self._is_stopped and self._read_on():
            records += self._lines(self._batch - len(records))
        if not records:
            self._await_more()
            return None
        return records

    def _await_more(self) -> None:
        """Wait for the file to grow, for `interrupt`, or as long as `patience` says."""
        left = self.patience
        while not self._wait(min(left, _LOOK_SECONDS)):
            left -= _LOOK_SECONDS
            if left <= 0 or self._has_more():
                return

    def _wait(self, seconds: float) -> bool:
        """Wait for `interrupt` or `stop`; returns whether one came."""
        if self._is_stopped or not self._woken.wait(seconds):
            return self._is_stopped
        self._woken.clear()
        return True

    def _has_more(self) -> bool:
        """Whether there may be something to read: of a pipe, and of a file that has no size, only a read knows."""
        assert self._file is not None
        if not self._path:
            return True
        size = os.fstat(self._file.fileno()).st_size
        return size == 0 or size > self._file.raw.tell()

    def stop(self) -> None:
        """Make a waiting poll return."""
        self._is_stopped = True
        self._woken.set()

    def interrupt(self) -> None:
        """Make a waiting poll return, for once."""
        self._woken.set()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._file is not None and self._path:
            self._file.close()

    def _read_on(self) -> bool:
        """Fill the buffer; returns whether anything came."""
        assert self._file is not None
        more = self._file.read1(self._room - len(self._rest))
        self._rest += more
        return bool(more)

    def _lines(self, most: int) -> list[SourceRecord]:
        """Complete lines of the buffer. Makes room for more when none is complete in a full one."""
        records: list[SourceRecord] = []
        while len(records) < most and (found := _split_line(self._rest)) is not None:
            line, consumed = found
            self._rest = self._rest[consumed:]
            self._position += consumed
            records.append(
                SourceRecord(
                    self._partition,
                    {POSITION: self._position},
                    self._topic,
                    value_schema=STRING,
                    value=line.decode("utf-8", "replace"),
                    timestamp=time.time_ns() // 1_000_000,
                )
            )
        if len(self._rest) >= self._room:
            self._room *= 2
        return records

    def _open(self) -> bool:
        if not self._path:
            self._file = cast(BufferedReader, sys.stdin.buffer)
            return True
        try:
            self._file = open(allowed_file(FILE, self._path), "rb")  # noqa: SIM115  # held until close
        except FileNotFoundError:
            log.warning("Couldn't find file %s, sleeping to wait for it to be created", self._path)
            return False
        except OSError as error:
            raise ConnectError(
                f"The file {self._path} cannot be read: {error.strerror}. Nothing was emitted from it by this task."
            ) from error
        size = os.fstat(self._file.fileno()).st_size
        if self._position > size:
            raise ConnectError(
                f"The file {self._path} has {size} bytes, but {self._position} of it were read before: it was truncated or replaced. "
                "Stop the connector and reset its offsets (DELETE /connectors/<name>/offsets) to read the new file from its beginning."
            )
        self._file.seek(self._position)
        return True


class FileStreamSourceConnector(SourceConnector):
    """One task for one file."""

    java_name = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    java_task_name = "org.apache.kafka.connect.file.FileStreamSourceTask"
    version = "4.3.1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the definition of the properties."""
        return _DEFINITION

    def start(self, config: Mapping[str, str]) -> None:
        """Take the configuration. Raises ConfigError."""
        _DEFINITION.parse(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return one configuration: there is always one task."""
        return [dict(self._config)]

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """Lines of a file have positions, those of standard input have none."""
        return bool((config.get("file") or "").strip())

    def task_class(self) -> type[SourceTask]:
        """Return the class of its task."""
        return FileStreamSourceTask

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Check positions.

        Raises:
            ConnectError: an offset is no position, or the connector reads standard input, which has none.
        """
        if not config.get(FILE):
            raise ConnectError(
                "Offsets cannot be modified if the 'file' configuration is unspecified. This is because stdin is used for input and "
                "offsets are not tracked."
            )
        for partition, offset in offsets:
            if offset is None:
                continue
            if POSITION not in offset:
                raise ConnectError("Offset objects should either be null or contain the key 'position'")
            position = offset[POSITION]
            if not isinstance(position, int) or isinstance(position, bool):
                raise ConnectError("The value for the 'position' key in the offset is expected to be a Long value")
            if position < 0:
                raise ConnectError("The value for the 'position' key in the offset should be a non-negative value")
            if FILENAME not in partition:
                raise ConnectError("Partition objects should contain the key 'filename'")
        return True


def _split_line(data: bytes) -> tuple[bytes, int] | None:
    """Return (line, bytes consumed with its end), or None when no line is complete. Ends are LF, CR LF and CR; a CR that is the last byte
    known may be half of a CR LF."""
    feed, carriage = data.find(b"\n"), data.find(b"\r")
    if carriage != -1 and (feed == -1 or carriage < feed):
        if carriage + 1 == len(data):
            return None
        return data[:carriage], carriage + (2 if data[carriage + 1] == 10 else 1)
    return None if feed == -1 else (data[:feed], feed + 1)
