"""The order in which a Java `HashMap` shows its keys. Pure.

Connect reads configurations from its topic into a HashMap, and clients see that order in ``GET /connectors/C/config``; tools that compare
answers as text rely on it without knowing. The order follows from `String.hashCode`, `HashMap.hash` and the table's size: buckets in
ascending order, and within a bucket the order of insertion, which resizing keeps. (Java turns a bucket of nine or more keys into a tree;
configurations never get there.)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

V = TypeVar("V")


def in_java_order(values: Mapping[str, V], *, copied: bool = False) -> dict[str, V]:
    """Return the same entries, in the order of a HashMap.

    Args:
        copied: the map was made as a copy of another, which fits its table to the number of entries; else it grew entry by entry, from 16.
    """
    size = 1 if copied else 16
    while (size < int(len(values) / 0.75 + 1)) if copied else (len(values) > size * 3 // 4):
        size *= 2
    return {key: values[key] for key in sorted(values, key=lambda key: _spread(key) & (size - 1))}


def in_fitted_order(values: Mapping[str, V]) -> dict[str, V]:
    """The same entries, in the order of a HashMap that was made for that many and grew where they were more than three quarters of it
    (`new HashMap<>(n)`, which `org.json.JSONObject` uses)."""
    size = 1
    while size < len(values) or len(values) > size * 3 // 4:
        size *= 2
    return {key: values[key] for key in sorted(values, key=lambda key: _spread(key) & (size - 1))}


@lru_cache(maxsize=8192)  # the names of properties, again and again
def _spread(key: str) -> int:
    data = key.encode("utf-16-be", "surrogatepass")
    code = 0
    for unit in zip(data[::2], data[1::2], strict=True):
        code = (31 * code + (unit[0] << 8 | unit[1])) & 0xFFFFFFFF
    return code ^ code >> 16
