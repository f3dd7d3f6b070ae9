"""Offsets as they are stored: what is read of them, and what a client may set by REST (KIP-875)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connect_py.api import SourceOffset, SourcePartition
from connect_py.errors import BadRequestError, ConfigError


def check_offsets(
    offsets: Sequence[tuple[SourcePartition, SourceOffset | None]],
    load: Callable[[Mapping[str, Any]], object],
    *,
    key: str = "server",
    others: tuple[str, ...] = (),
) -> bool:
    """Refuse what a task could not go on from. The reference stores anything, and its task then fails or begins anew.

    Args:
        offsets: (partition, offset) pairs; None removes one.
        load: reads a stored offset, raises ConfigError.
        key: of a partition, whose value is `topic.prefix`.
        others: what a partition may hold beside it.

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
    """A field of a stored offset; None where it is missing, or a truth value.

    Raises:
        ConfigError: it is something else.
    """
    value = stored.get(name)
    if value is None or isinstance(value, bool):
        return None
    try:
        return int(value)
    except ValueError:
        raise ConfigError(
            f"The field '{name}' of the stored offset is {value!r}, not a whole number. Nothing was read. Set the offset anew "
            "(PATCH offsets while the connector is stopped), or delete it to begin with a snapshot."
        ) from None
