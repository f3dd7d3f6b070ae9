"""In which order a snapshot reads its tables (`snapshot.tables.order.by.row.count`). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def by_rows(tables: Sequence[T], rows: Mapping[T, int], order: str) -> list[T]:
    """Tables in `ascending` or `descending` order of their rows, else as they are; one of which nothing is known counts as empty, and
    equal ones keep their order."""
    if order not in ("ascending", "descending"):
        return list(tables)
    return sorted(tables, key=lambda table: rows.get(table, 0), reverse=order == "descending")
