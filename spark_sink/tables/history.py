"""Which watermark of a Delta table counts: what its commits say, what its property says. Pure.

Every commit of the sink's carries, as the commit's user metadata, a JSON object with the watermark and the connector's *sequence*: the
version that goes with the transaction identifier. A sequence never restarts and is the same counter across changes of offsets: Delta
ignores a statement whose version is not above the stored one, so whoever read a sequence can commit the next one only once.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from connect_py.errors import FatalTaskError
from spark_sink.tables.snapshots import BEGUN
from spark_sink.tables.watermark import Watermark


@dataclass(frozen=True)
class Commit:
    """One line of a table's history.

    Attributes:
        restored: the version that a RESTORE brought back, or the moment whose version it brought back.
        metadata: the commit's user metadata, if it is a JSON object.
        replaces: whether it put another table in place of what was there (CREATE OR REPLACE); the log goes on, the rows are gone.
        time: when it was made, UTC.
    """

    version: int
    time: datetime.datetime
    metadata: Mapping[str, Any]
    restored: int | datetime.datetime | None = None
    replaces: bool = False


@dataclass(frozen=True)
class Applied:
    """What a table says about one connector.

    Attributes:
        sequence: of the connector's newest commit, rolled back or not; 0 before the first.
        time: of the commit that holds the watermark; None when a property holds it, or nothing does.
        epoch: start of the task that made that commit, milliseconds since 1970; 0 when unknown.
    """

    watermark: Watermark
    sequence: int = 0
    generation: int = 0
    epoch: int = 0
    time: datetime.datetime | None = None


def parse_metadata(text: str | None) -> Mapping[str, Any]:
    """Commits of others carry any text, or none."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def metadata_json(connector: str, applied: Applied, more: Mapping[str, str]) -> str:
    """What a commit carries; the inverse of `newest_commit` for one commit."""
    own = {
        f"kafka.connect.offsets.{connector}": json.loads(applied.watermark.to_json()),
        "kafka.connect.sequence": applied.sequence,
        "kafka.connect.generation": applied.generation,
        "kafka.connect.task-epoch": applied.epoch,
    }
    if applied.watermark.snapshots:
        own[BEGUN + connector] = json.loads(applied.watermark.snapshots_json())
    return json.dumps(own | dict(more), separators=(",", ":"))


def newest_commit(history: Iterable[Commit], properties: Mapping[str, str], connector: str) -> tuple[Applied, bool]:
    """The watermark that counts: of the newest commit with one that has not been rolled back or replaced, else the table property's.

    Args:
        history: newest first.

    Returns:
        What the table says, and whether it came from a commit (else a longer history might say more).

    Raises:
        FatalTaskError: what is stored cannot be read.
    """
    key = f"kafka.connect.offsets.{connector}"
    sequence = int(properties.get(f"kafka.connect.sequence.{connector}", 0))
    visible: int | datetime.datetime | None = None
    replaced = False
    for commit in history:
        mine = key in commit.metadata
        if mine:
            sequence = max(sequence, _number(commit, "kafka.connect.sequence"))
        if _hidden(commit, visible):
            continue
        if commit.restored is not None:
            visible = commit.restored
        elif commit.replaces:
            replaced = True
        elif mine:
            begun = json.dumps(commit.metadata.get(BEGUN + connector, {}))
            watermark = Watermark() if replaced else Watermark.parse(json.dumps(commit.metadata[key]), begun)
            generation, epoch = _number(commit, "kafka.connect.generation"), _number(commit, "kafka.connect.task-epoch")
            return Applied(watermark, sequence, generation, epoch, commit.time), True
    generation = int(properties.get(f"kafka.connect.generation.{connector}", 0))
    return Applied(Watermark.parse(properties.get(key), properties.get(BEGUN + connector)), sequence, generation), False


def _hidden(commit: Commit, visible: int | datetime.datetime | None) -> bool:
    if visible is None:
        return False
    return commit.version > visible if isinstance(visible, int) else commit.time > visible


def _number(commit: Commit, key: str) -> int:
    value = commit.metadata.get(key, 0)
    if not isinstance(value, int):
        raise FatalTaskError(f"A table's commit {commit.version} has {key} {value!r}, which is not a number; somebody else wrote it.")
    return value
