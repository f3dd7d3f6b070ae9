"""Where a row stands in a snapshot: `source.snapshot` (debezium-common §1.5; `SnapshotRecord.java`)."""

from __future__ import annotations

import enum


class Marker(enum.Enum):
    """The value of `source.snapshot`."""

    FIRST = "first"
    FIRST_IN_DATA_COLLECTION = "first_in_data_collection"
    MIDDLE = "true"
    LAST_IN_DATA_COLLECTION = "last_in_data_collection"
    LAST = "last"
    INCREMENTAL = "incremental"


def marker_of(*, first: bool, first_in_table: bool, last_in_table: bool, last: bool) -> Marker:
    """The marker of a row to which several apply."""
    if last:
        return Marker.LAST
    if first:
        return Marker.FIRST
    if last_in_table:
        return Marker.LAST_IN_DATA_COLLECTION
    return Marker.FIRST_IN_DATA_COLLECTION if first_in_table else Marker.MIDDLE
