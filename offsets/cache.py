"""Source offsets as the records of an offsets topic have them (`OffsetStorageReaderImpl.java`). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from connect_py.api.record import SourceOffset, SourcePartition
from offsets.keys import offset_key, offset_value, parse_offset_key, parse_offset_value


class OffsetCache:
    """Offsets by connector and key bytes. Pure; not thread-safe."""

    def __init__(self) -> None:
        self._values: dict[str, dict[bytes, bytes]] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take the next record. Raises DataError for one with a malformed key or value; it is skipped."""
        place = parse_offset_key(key)
        if place is None or key is None:
            return
        if value is None:
            self._values.get(place[0], {}).pop(key, None)
        else:
            parse_offset_value(value)
            self._values.setdefault(place[0], {})[key] = value

    def copy(self) -> OffsetCache:
        """Return a cache with the same records that can be changed alone."""
        twin = OffsetCache()
        twin._values = {connector: dict(values) for connector, values in self._values.items()}
        return twin

    def of_connector(self, connector: str) -> list[tuple[SourcePartition, SourceOffset]]:
        """Return everything known of one connector."""
        found = []
        for key, value in self._values.get(connector, {}).items():
            place = parse_offset_key(key)
            if place is not None:
                found.append((place[1], parse_offset_value(value)))
        return found

    def only(self, connector: str) -> OffsetCache:
        """Return a cache with what is known of one connector, which can be changed alone."""
        found = OffsetCache()
        found._values[connector] = dict(self._values.get(connector, {}))
        return found

    def overlay(self, other: OffsetCache) -> None:
        """Take what another cache has in place of what this one has under the same keys."""
        for connector, values in other._values.items():
            self._values.setdefault(connector, {}).update(values)

    def records(self) -> list[tuple[bytes, bytes]]:
        """Return everything known, as keys and values."""
        return [pair for values in self._values.values() for pair in values.items()]


def offset_records(connector: str, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> list[tuple[bytes, bytes | None]]:
    """Records that store offsets; None is a tombstone. Raises DataError."""
    return [(offset_key(connector, partition), offset_value(offset)) for partition, offset in offsets]
