"""When an initial snapshot is taken, and whether streaming follows: `snapshot.mode` as a table
(`io.debezium.spi.snapshot.Snapshotter`)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from connect_py.errors import ConfigError, FatalTaskError
from connectors.engine.plugins.extensions import extensions


class StoredPosition(enum.Enum):
    """What the offsets topic knows of a source partition."""

    NONE = "none"
    UNFINISHED_SNAPSHOT = "unfinished"
    STREAMING = "streaming"


@dataclass(frozen=True, slots=True)
class SnapshotMode:
    """One mode.

    Attributes:
        without_offset: data is read when nothing is stored.
        when_unfinished: data is read again after a snapshot that did not end.
        when_finished: data is read at every start.
        streams: whether changes are followed afterwards.
        when_position_lost: data is read when the server no longer has the log of the stored position; otherwise that fails the task.
    """

    name: str
    without_offset: bool
    when_unfinished: bool
    when_finished: bool
    streams: bool
    when_position_lost: bool = False

    def reads_data(self, stored: StoredPosition) -> bool:
        """Return whether a start with this stored position takes a snapshot.

        Raises:
            FatalTaskError: an unfinished snapshot is stored and the mode never takes one.
        """
        if stored is StoredPosition.NONE:
            return self.without_offset
        if stored is StoredPosition.UNFINISHED_SNAPSHOT:
            if not (self.when_unfinished or self.without_offset or self.when_finished):
                raise FatalTaskError(
                    "The connector previously stopped while taking a snapshot, but now the connector is configured to never allow "
                    "snapshots. Reconfigure the connector to use snapshots initially or when needed."
                )
            return self.when_unfinished
        return self.when_finished


MODES = {
    mode.name: mode
    for mode in (
        SnapshotMode("always", True, True, True, streams=True),
        SnapshotMode("initial", True, True, False, streams=True),
        SnapshotMode("initial_only", True, True, False, streams=False),
        SnapshotMode("no_data", False, False, False, streams=True),
        SnapshotMode("when_needed", True, True, False, streams=True, when_position_lost=True),
    )
}


def configuration_based(*, data: bool, streams: bool, on_data_error: bool) -> SnapshotMode:
    """Return the mode `configuration_based`: the three properties decide at every start, regardless of the stored offset."""
    return SnapshotMode("configuration_based", data, data, data, streams=streams, when_position_lost=on_data_error)


#: Entry points of packages that add modes: the name is what `snapshot.mode.custom.name` says, the value a function of the connector's
#: properties that gives a `SnapshotMode`.
ENTRY_POINTS = "connect_py.snapshotters"


def custom(name: str, config: Mapping[str, str]) -> SnapshotMode:
    """Return the mode `custom`, which an installed package adds.

    Raises:
        ConfigError: there is none of that name, or it cannot be made.
    """
    entry = next(iter(extensions(ENTRY_POINTS, name)), None)
    if entry is None:
        raise ConfigError(f"Unable to find {name} snapshotter. Please check your configuration.")
    try:
        mode = entry.load()(config)
    except Exception as error:
        raise ConfigError(f"The snapshotter {name} cannot be made: {error}") from error
    if not isinstance(mode, SnapshotMode):
        raise ConfigError(f"The snapshotter {name} gave {type(mode).__name__}, not a SnapshotMode")
    return mode
