"""What the checkpoint of a Structured Streaming query says, and whether it agrees with the tables.

Spark writes the end offsets of batch N to ``offsets/N`` before it runs the batch and ``commits/N`` after it, and the very first start to
``sources/0/0``. The sink reads these to learn a batch's range, and believes the tables where the two differ: then a new *generation* of the
checkpoint begins at the tables' positions. Layout: ``<location>/<connector>/g<generation>``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connect_py.api.record import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Offsets by topic partition.
Offsets = Mapping[TopicPartition, int]


class UnreadableError(Exception):
    """A checkpoint's file is not of the form that Spark 4.1 writes; the caller begins a new generation."""


@dataclass(frozen=True)
class State:
    """Where a checkpoint stands.

    Attributes:
        start: where the next batch begins.
        planned: where it ends, if that has been decided already.
    """

    start: Offsets
    planned: Offsets | None


def agrees(state: State, positions: Offsets) -> bool:
    """Whether a query that goes on from a checkpoint misses nothing, and repeats nothing but its last batch.

    That one may have been applied, wholly or to some tables, before a kill; its applied part is left out then. A partition that the
    checkpoint does not know is read from its first record, so the positions must not be beyond that.
    """
    end = state.start if state.planned is None else state.planned
    return all(tp in positions for tp in end) and all(
        state.start.get(tp, 0) <= position <= end.get(tp, state.start.get(tp, 0)) for tp, position in positions.items()
    )


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """A file of ``offsets`` or ``sources/0``: a version, perhaps settings, and a line of the Kafka source's offsets.

    Raises:
        UnreadableError: it is neither.
    """
    lines = text.lstrip("\x00").strip().splitlines()
    if not lines or lines[0] != "v1" or len(lines) not in (2, 3):
        raise UnreadableError(f"not two or three lines of version 1: {text[:200]!r}")
    try:
        topics = json.loads(lines[-1])
        return {TopicPartition(topic, int(number)): int(offset) for topic, found in topics.items() for number, offset in found.items()}
    except (ValueError, AttributeError) as error:
        raise UnreadableError(f"{error}: {lines[-1][:200]!r}") from None


class Checkpoints:
    """The generations of one connector's checkpoint, on any file system that Spark knows."""

    def __init__(self, spark: SparkSession, location: str, connector: str) -> None:
        jvm: Any = spark._jvm
        self._root = f"{location.rstrip('/')}/{connector}"
        self._path = jvm.org.apache.hadoop.fs.Path
        self._io = jvm.org.apache.commons.io.IOUtils
        self._charset = jvm.java.nio.charset.StandardCharsets.UTF_8
        self._fs = self._path(self._root).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    def newest(self) -> int:
        """The newest generation; 0 when there is none."""
        names = [re.fullmatch(r"g(\d+)", name) for name in self._names(self._root)]
        return max((int(name[1]) for name in names if name), default=0)

    def path(self, generation: int) -> str:
        """Where a generation lies."""
        return f"{self._root}/g{generation}"

    def state(self, generation: int) -> State | None:
        """Where a generation stands; None when its query has not begun.

        Raises:
            UnreadableError: it cannot be known.
        """
        planned, done = (max((int(name) for name in self._names(f"{self.path(generation)}/{of}") if name.isdigit()), default=-1)
                         for of in ("offsets", "commits"))  # fmt: skip
        if planned == -1:
            initial = self._text(f"{self.path(generation)}/sources/0/0")
            return None if initial is None else State(parse_offsets(initial), None)
        if done == planned:
            return State(self.end(generation, planned), None)
        return State(self.start(generation, planned), self.end(generation, planned))

    def start(self, generation: int, batch: int) -> dict[TopicPartition, int]:
        """Where a batch begins. Raises as `state`."""
        name = f"offsets/{batch - 1}" if batch else "sources/0/0"
        return self._offsets(f"{self.path(generation)}/{name}")

    def end(self, generation: int, batch: int) -> dict[TopicPartition, int]:
        """Where a batch ends. Raises as `state`."""
        return self._offsets(f"{self.path(generation)}/offsets/{batch}")

    def remove_before(self, generation: int) -> None:
        """Remove older generations, which nothing will look at again."""
        for name in self._names(self._root):
            if (found := re.fullmatch(r"g(\d+)", name)) and int(found[1]) < generation:
                self._fs.delete(self._path(f"{self._root}/{name}"), True)

    def _offsets(self, path: str) -> dict[TopicPartition, int]:
        text = self._text(path)
        if text is None:
            raise UnreadableError(f"{path} is missing")
        return parse_offsets(text)

    def _names(self, directory: str) -> list[str]:
        path = self._path(directory)
        return [status.getPath().getName() for status in self._fs.listStatus(path)] if self._fs.exists(path) else []

    def _text(self, name: str) -> str | None:
        path = self._path(name)
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            return str(self._io.toString(stream, self._charset))
        finally:
            stream.close()
