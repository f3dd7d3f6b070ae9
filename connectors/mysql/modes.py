"""When a start reads structures, when it reads rows, and whether changes are followed: `snapshot.mode` of MySQL (mysql.md §4). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from connect_py.errors import FatalTaskError
from connectors.engine.snapshot.modes import SnapshotMode, StoredPosition


@dataclass(frozen=True, slots=True)
class MySqlMode:
    """One mode.

    Attributes:
        data: what must be stored for rows to be read.
        schema: the same of structures; whoever reads rows reads structures first.
        streams: whether changes are followed afterwards.
        when_position_lost: rows are read when the server no longer has the log of the stored position; otherwise that fails the task.
        keeps_position: streaming goes on from the stored position, not from the snapshot's.
        when_history_lost: structures are read when the schema history is gone, and streaming goes on from the stored position; otherwise
            that fails the task.
    """

    name: str
    data: frozenset[StoredPosition]
    schema: frozenset[StoredPosition]
    streams: bool = True
    when_position_lost: bool = False
    keeps_position: bool = False
    when_history_lost: bool = False

    def reads_data(self, stored: StoredPosition) -> bool:
        """Whether a start with this stored position reads rows."""
        return stored in self.data

    def reads_schema(self, stored: StoredPosition) -> bool:
        """Whether a start with this stored position reads structures.

        Raises:
            FatalTaskError: an unfinished snapshot is stored and the mode takes none.
        """
        if stored is StoredPosition.UNFINISHED_SNAPSHOT and stored not in self.data | self.schema:
            raise FatalTaskError(
                "The connector previously stopped while taking a snapshot, but now the connector is configured to never allow "
                "snapshots. Reconfigure the connector to use snapshots initially or when needed."
            )
        return stored in self.data | self.schema


_EVER: Final = frozenset(StoredPosition)
_NEW: Final = frozenset({StoredPosition.NONE, StoredPosition.UNFINISHED_SNAPSHOT})
_NEVER: Final[frozenset[StoredPosition]] = frozenset()

MODES: Final = {
    mode.name: mode
    for mode in (
        MySqlMode("always", _EVER, _EVER),
        MySqlMode("initial", _NEW, _NEW),
        MySqlMode("initial_only", _NEW, _NEW, streams=False),
        MySqlMode("no_data", _NEVER, _NEW),
        MySqlMode("recovery", _NEVER, _EVER, keeps_position=True, when_history_lost=True),
        MySqlMode("when_needed", _NEW, _NEW, when_position_lost=True),
    )
}


def configuration_based(raw: Mapping[str, str]) -> MySqlMode:
    """`configuration_based`: the properties decide at every start, whatever is stored."""

    def says(name: str) -> bool:
        return raw.get(f"snapshot.mode.configuration.based.{name}", "false").strip().lower() == "true"

    data, schema = says("snapshot.data"), says("snapshot.schema")
    return MySqlMode(
        "configuration_based",
        _EVER if data else _NEVER,
        _EVER if data or schema else _NEVER,
        streams=says("start.stream"),
        when_position_lost=says("snapshot.on.data.error"),
        when_history_lost=says("snapshot.on.schema.error"),
    )


def of_custom(mode: SnapshotMode) -> MySqlMode:
    """A mode that an installed package adds (`snapshot.mode=custom`); where rows are read, structures are."""
    stored = {
        StoredPosition.NONE: mode.without_offset,
        StoredPosition.UNFINISHED_SNAPSHOT: mode.when_unfinished,
        StoredPosition.STREAMING: mode.when_finished,
    }
    data = frozenset(position for position, wanted in stored.items() if wanted)
    return MySqlMode(mode.name, data, data | _NEW, streams=mode.streams, when_position_lost=mode.when_position_lost)
