"""What a source says of its log, whether or not the connector's task runs.

A connector whose source keeps a log for it can say where that log ends, where the connector's position in it is, and how much of it is
left. The runtime asks every few seconds in a process of its own, also while the task is paused, stopped or FAILED: so a source that is
quiet and a task that is stuck look different, and the log that a stopped connector keeps on the server is seen to grow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from connect_py.api.record import SourceOffset, SourcePartition
from connect_py.api.task import MetricGroup

#: A task's figures show what it has read by this group: `position`, a number on the scale of `SourceFacts.head`; or `segment` and
#: `position`, a file of the log by its number and a position in that file.
POSITION_GROUP = ("connect.py", "source-position")

#: What the committed offsets of a connector are.
StoredOffsets = Sequence[tuple[SourcePartition, SourceOffset]]


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What a source says at one time.

    Attributes:
        head: the end of the log, as a number that grows with it; None where the source does not say.
        position: the connector's durable position on the same scale: the server has it, or the stored offset. None where it is not known.
        unit: what a difference of two such numbers is.
        segments: for a log of several files, the number of each file and where it begins on that scale.
        groups: figures for /metrics; the runtime adds the label `connector`.
    """

    head: int | None
    position: int | None = None
    unit: Literal["bytes", "seconds"] = "bytes"
    segments: Mapping[int, int] = field(default_factory=dict)
    groups: Sequence[MetricGroup] = ()


class SourceFactsReader(Protocol):
    """Asks one source. One thread at a time calls it.

    Attributes:
        uses_offsets: whether `read` looks at the stored offsets. They cost a request to Kafka now and then.
    """

    @property
    def uses_offsets(self) -> bool:
        """Whether `read` looks at the stored offsets."""
        ...

    def read(self, offsets: StoredOffsets) -> SourceFacts:
        """Ask by one or two short statements, with a time limit of a few seconds; connects first where that is needed.

        Raises:
            ConnectError: the source does not say. The next call starts with a new connection.
        """
        ...

    def close(self) -> None:
        """End the connection, without waiting. `read` may be called again afterwards."""
        ...
