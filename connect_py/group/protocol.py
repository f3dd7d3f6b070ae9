"""Encode and decode what the workers of a Connect group send each other through the broker.

A worker's state travels in JoinGroup requests, the leader's decisions in SyncGroup answers. The formats are those of Kafka's
`ConnectProtocol.java` (`eager`) and `IncrementalCooperativeConnectProtocol.java` (`compatible`, `sessioned`); all numbers are
big-endian. Java workers read and write the same bytes.

Our workers add a trailer to their state (`WorkerDetails`), which Java workers ignore.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from connect_py.errors import ConfigError, DataError

#: Error codes of an assignment (`ConnectProtocol.Assignment`).
NO_ERROR, CONFIG_MISMATCH = 0, 1

#: Stands for the connector itself in the list of its tasks (`ConnectProtocol.CONNECTOR_TASK`).
_CONNECTOR_TASK = -1

#: "CP": begins our trailer. Other bytes in its place are another software's, and ignored.
_TRAILER_MAGIC, _TRAILER_VERSION = 0x4350, 1


class GroupProtocol(StrEnum):
    """A protocol of the group, by its name on the wire; the members' names are the values of ``connect.protocol``."""

    EAGER = "default"
    COMPATIBLE = "compatible"
    SESSIONED = "sessioned"

    @property
    def version(self) -> int:
        """What every blob of this protocol begins with."""
        return {GroupProtocol.EAGER: 0, GroupProtocol.COMPATIBLE: 1, GroupProtocol.SESSIONED: 2}[self]

    @property
    def offered(self) -> tuple[GroupProtocol, ...]:
        """What a worker with this ``connect.protocol`` lists in JoinGroup, best first."""
        best_first = (GroupProtocol.SESSIONED, GroupProtocol.COMPATIBLE, GroupProtocol.EAGER)
        return best_first[best_first.index(self) :]

    @classmethod
    def of_property(cls, text: str) -> GroupProtocol:
        """Return the protocol that a worker's ``connect.protocol`` names, in any case. Raises ConfigError."""
        try:
            return cls[text.strip().upper()]
        except KeyError:
            raise ConfigError(
                f"Invalid value {text} for configuration connect.protocol: it must be one of eager, compatible, sessioned"
            ) from None


class TaskId(NamedTuple):
    """A task; equal to the tuple (connector, number)."""

    connector: str
    task: int


#: A connector, by its name, or a task.
Item: TypeAlias = str | TaskId


@dataclass(frozen=True, slots=True)
class Allocation:
    """Connectors and tasks, each once. The order says which came first."""

    connectors: tuple[str, ...] = ()
    tasks: tuple[TaskId, ...] = ()

    @classmethod
    def of(cls, items: Iterable[Item]) -> Allocation:
        """Put items into connectors and tasks, each once, in their order."""
        unique = dict.fromkeys(items)
        return cls(
            tuple(item for item in unique if not isinstance(item, TaskId)), tuple(item for item in unique if isinstance(item, TaskId))
        )

    def __iter__(self) -> Iterator[Item]:
        yield from self.connectors
        yield from self.tasks

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """What the leader sends to a member.

    Attributes:
        error: `NO_ERROR`, or `CONFIG_MISMATCH` when the leader could not reach the newest configuration.
        leader: the leader's member id.
        leader_url: its REST address, as in its state.
        config_offset: of the configuration that the assignment was computed from.
        assigned: what the member starts. Under `eager` all that it is to run, otherwise only what is new for it.
        revoked: what it stops; empty under `eager`.
        delay_ms: after which every member joins again; 0 for never.
    """

    error: int
    leader: str
    leader_url: str
    config_offset: int
    assigned: Allocation = Allocation()
    revoked: Allocation = Allocation()
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class WorkerDetails:
    """What our workers tell each other in addition to Connect's format.

    Attributes:
        draining: the worker ends; its work should move to others at once, and no other work to it.
        version: of the software.
        host: name of its machine.
    """

    draining: bool = False
    version: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class WorkerState:
    """What a member sends when it joins.

    Attributes:
        url: its advertised REST address, ending with a slash.
        config_offset: of its snapshot of the configuration topic; -1 for an empty topic.
        allocation: everything that it runs.
        received: the assignment by which it runs that; Java workers wrap the allocation in it. Not looked at by leaders.
        details: None for Java workers.
    """

    url: str
    config_offset: int
    allocation: Allocation = field(default_factory=Allocation)
    received: GroupAssignment | None = None
    details: WorkerDetails | None = None


def encode_metadata(state: WorkerState, protocol: GroupProtocol) -> bytes:
    """Return a worker's state as the metadata of one protocol of its JoinGroup request.

    The details are left out under `eager`, whose Java readers would take them for an allocation.

    Raises:
        DataError: a text is longer than the format can hold, or a number too large.
    """
    parts = [_number("h", protocol.version), _text(state.url), _number("q", state.config_offset)]
    if protocol is not GroupProtocol.EAGER:
        if state.received is None and not state.allocation:
            parts.append(_number("i", -1))
        else:
            wrapped = state.received or GroupAssignment(NO_ERROR, "", state.url, state.config_offset)
            parts.append(_sized(encode_assignment(replace(wrapped, assigned=state.allocation), protocol)))
        if state.details is not None:
            parts += _trailer(state.details)
    return b"".join(parts)


def decode_metadata(data: bytes) -> WorkerState:
    """Read the state of a worker of any version. Bytes after what is known are ignored.

    Raises:
        DataError: the bytes are no worker's state.
    """
    reader = _Reader(data, "the state of a worker")
    reader.version()
    url, offset = reader.text("url"), reader.number("q", "config-offset")
    nested = reader.nullable_bytes("allocation") if reader.has_more() else None
    received = None if nested is None else decode_assignment(nested)
    return WorkerState(url, offset, received.assigned if received else Allocation(), received, _details(reader.rest()))


def encode_assignment(assignment: GroupAssignment, protocol: GroupProtocol) -> bytes:
    """Return the bytes of an assignment. Revocations and the delay are left out under `eager`. Raises DataError as `encode_metadata`."""
    parts = [
        _number("h", protocol.version),
        _number("h", assignment.error),
        _text(assignment.leader),
        _text(assignment.leader_url),
        _number("q", assignment.config_offset),
        _allocation(assignment.assigned),
    ]
    if protocol is not GroupProtocol.EAGER:
        parts += [_allocation(assignment.revoked), _number("i", assignment.delay_ms)]
    return b"".join(parts)


def decode_assignment(data: bytes) -> GroupAssignment:
    """Read an assignment of any version; fields that are missing at its end have their defaults, bytes behind it are ignored.

    Raises:
        DataError: the bytes are no assignment.
    """
    reader = _Reader(data, "an assignment")
    reader.version()
    return GroupAssignment(
        error=reader.number("h", "error"),
        leader=reader.text("leader"),
        leader_url=reader.text("leader-url"),
        config_offset=reader.number("q", "config-offset"),
        assigned=reader.allocation("assignment"),
        revoked=reader.allocation("revoked"),
        delay_ms=reader.number("i", "delay") if reader.has_more() else 0,
    )


def _number(kind: str, value: int) -> bytes:
    try:
        return struct.pack(f">{kind}", value)
    except struct.error:
        raise DataError(f"The number {value} does not fit its field of {struct.calcsize(kind)} bytes in the group's protocol.") from None


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) > 0x7FFF:
        raise DataError(f"A text of {len(data)} bytes is too long for the group's protocol, which has room for 32767: {text[:80]}…")
    return _number("h", len(data)) + data


def _sized(data: bytes) -> bytes:
    return _number("i", len(data)) + data


def _allocation(work: Allocation) -> bytes:
    """In Java's order: connectors first, then those that have tasks only."""
    tasks: dict[str, list[int]] = {connector: [_CONNECTOR_TASK] for connector in work.connectors}
    for task in work.tasks:
        tasks.setdefault(task.connector, []).append(task.task)
    parts = [_number("i", len(tasks))]
    for connector, numbers in tasks.items():
        parts += [_text(connector), _number("i", len(numbers)), *(_number("i", number) for number in numbers)]
    return b"".join(parts)


def _trailer(details: WorkerDetails) -> list[bytes]:
    values = {"draining": details.draining, "version": details.version, "host": details.host}
    body = json.dumps({key: value for key, value in values.items() if value}, separators=(",", ":")).encode()
    return [_number("h", _TRAILER_MAGIC), _number("h", _TRAILER_VERSION), _sized(body)]


def _details(trailer: bytes) -> WorkerDetails | None:
    """None for bytes that are not our trailer: whose they are is not known, and the state in front of them is complete without."""
    reader = _Reader(trailer, "a trailer")
    try:
        if reader.number("h", "magic") != _TRAILER_MAGIC or reader.number("h", "version") < _TRAILER_VERSION:
            return None
        values = json.loads(reader.nullable_bytes("body") or b"{}")
    except (DataError, ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    version, host = values.get("version"), values.get("host")
    return WorkerDetails(
        draining=values.get("draining") is True,
        version=version if isinstance(version, str) else "",
        host=host if isinstance(host, str) else "",
    )


class _Reader:
    """Reads one blob from its start.

    Args:
        data: the blob.
        what: it should be, for errors.
    """

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._at, self._what = data, 0, what

    def has_more(self) -> bool:
        return self._at < len(self._data)

    def rest(self) -> bytes:
        return self._data[self._at :]

    def number(self, kind: str, name: str) -> int:
        return int(struct.unpack(f">{kind}", self._take(struct.calcsize(f">{kind}"), name))[0])

    def version(self) -> None:
        """Any that is not negative is read by the layout that is known, as Java's readers do."""
        version = self.number("h", "version")
        if version < 0:
            raise DataError(f"Unsupported subscription version: {version}")

    def text(self, name: str) -> str:
        size = self.number("h", name)
        try:
            return self._take(size, name).decode()
        except UnicodeDecodeError:
            raise self._error(name, "is not UTF-8") from None

    def nullable_bytes(self, name: str) -> bytes | None:
        size = self.number("i", name)
        return None if size < 0 else self._take(size, name)

    def allocation(self, name: str) -> Allocation:
        """Nothing where the field is missing or null."""
        items: list[Item] = []
        connectors = self._count(name, 6) if self.has_more() else 0  # the smallest entry has an empty name and no tasks
        for _ in range(connectors):
            connector = self.text(name)
            tasks = self._count(name, 4)
            if tasks < 0:
                raise self._error(name, f"has a connector with {tasks} tasks")
            for _ in range(tasks):
                task = self.number("i", name)
                items.append(connector if task == _CONNECTOR_TASK else TaskId(connector, task))
        return Allocation.of(items)

    def _count(self, name: str, entry_size: int) -> int:
        count = self.number("i", name)
        if count * entry_size > len(self._data) - self._at:
            raise self._error(name, f"has {count} entries, for which there are not enough bytes")
        return count

    def _take(self, size: int, name: str) -> bytes:
        if size < 0:
            raise self._error(name, f"has a length of {size}")
        end = self._at + size
        if end > len(self._data):
            raise self._error(name, f"needs {size} bytes at {self._at}")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def _error(self, name: str, problem: str) -> DataError:
        return DataError(f"{len(self._data)} bytes of the group's protocol are not {self._what}: the field {name} {problem}.")
