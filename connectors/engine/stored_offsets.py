"""Offsets as they are stored: what is read of them, and what a client may set by REST (KIP-875)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from connect_py.api import SourceOffset, SourcePartition
from connect_py.errors import BadRequestError, ConfigError

#: `snapshot` of an offset that an initial snapshot sent, or a blocking one.
INITIAL: Final = "INITIAL"
BLOCKING: Final = "BLOCKING"
#: Of an offset that a window of an incremental snapshot sent: streaming continues, and the window's progress stands in fields of its own.
_INCREMENTAL: Final = "INCREMENTAL"


def check_offsets(
    offsets: Sequence[tuple[SourcePartition, SourceOffset | None]],
    load: Callable[[Mapping[str, Any]], object],
    *,
    key: str = "server",
    others: tuple[str, ...] = (),
) -> bool:
    """Refuse what a task could not resume from. The reference stores anything, and its task then fails or starts over.

    Args:
        offsets: (partition, offset) pairs; None removes one.
        load: reads a stored offset, raises ConfigError.
        key: of a partition, whose value is `topic.prefix`.
        others: what else a partition may hold.

    Returns:
        False: as Debezium's connectors do, this says nothing of what they keep elsewhere, such as a slot, so that the answer warns of it.

    Raises:
        BadRequestError: a partition or an offset is none of this kind of connector.
    """
    for partition, offset in offsets:
        if not {key} <= set(partition) <= {key, *others} or not isinstance(partition[key], str):
            raise BadRequestError(f"The partition {dict(partition)} is not one of this connector: it must be {{'{key}': '<topic.prefix>'}}")
        if offset is None:
            continue
        try:
            load(offset)
        except ConfigError as error:
            raise BadRequestError(f"This offset could not be read back: {error}") from None
    return False


def whole_number(stored: SourceOffset, name: str) -> int | None:
    """Return a field of a stored offset; None where it is missing, or a truth value.

    Raises:
        ConfigError: it is something else.
    """
    value = stored.get(name)
    if value is None or isinstance(value, bool):
        return None
    try:
        return int(value)
    except (ValueError, TypeError, OverflowError):
        raise ConfigError(
            f"The field '{name}' of the stored offset is {value!r}, not a whole number. Nothing was read. Set the offset anew "
            "(PATCH offsets while the connector is stopped), or delete it to begin with a snapshot."
        ) from None


def flag(stored: SourceOffset, name: str) -> bool:
    """Return a truth value of a stored offset, which older versions and clients write as a text."""
    value = stored.get(name)
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


def stored_snapshot(stored: SourceOffset) -> str | None:
    """Return `snapshot` of a relational connector's offset: INITIAL or BLOCKING, or None where changes were streamed (`SnapshotType.java`).

    True was INITIAL before Debezium 3.0. INCREMENTAL is None here: that snapshot runs while streaming continues.

    Raises:
        ConfigError: it is something else.
    """
    value = stored.get("snapshot")
    if flag(stored, "snapshot"):
        return INITIAL
    kind = "" if value in (None, False) else str(value).strip().upper()
    if kind in (INITIAL, BLOCKING):
        return kind
    if kind in ("", "FALSE", _INCREMENTAL):
        return None
    raise ConfigError(
        f"The field 'snapshot' of the stored offset is {value!r}, not one of {INITIAL}, {BLOCKING}, {_INCREMENTAL}, true and false. "
        "Nothing was read. Set the offset again (PATCH offsets while the connector is stopped), or delete it to start with a snapshot."
    )
