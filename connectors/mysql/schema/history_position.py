"""Whether a record of the schema history lies before an offset (mysql.md §10.3; `MySqlHistoryRecordComparator`). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from connectors.mysql.position.gtid import covers, parse_transactions

#: The same offset is compared with every record of a history.
_limit = lru_cache(maxsize=2)(parse_transactions)


def is_at_or_before(recorded: Mapping[str, Any], desired: Mapping[str, Any], wanted: Callable[[str], bool]) -> bool:
    """Compare two positions.

    Args:
        recorded: of the record.
        desired: the stored offset.
        wanted: tells the servers whose transactions count.
    """
    recorded_gtids, desired_gtids = recorded.get("gtids"), desired.get("gtids")
    if desired_gtids is not None:
        if recorded_gtids is None:
            return True
        ours = parse_transactions(str(recorded_gtids)).filtered(wanted)
        limit = _limit(str(desired_gtids)).filtered(wanted)
        if ours != limit:
            return covers(limit, ours)
        if _in_snapshot(desired) and not _in_snapshot(recorded):
            return False
        return _number(recorded, "event") <= _number(desired, "event")
    if recorded_gtids is not None:
        return False
    servers = recorded.get("server_id"), desired.get("server_id")
    if servers[0] and servers[1] and servers[0] != servers[1]:
        return _number(recorded, "ts_sec") <= _number(desired, "ts_sec")
    base, number = _file(recorded)
    desired_base, desired_number = _file(desired)
    if base != desired_base:
        return True
    names = ("pos", "event", "row")
    return (number, *(_number(recorded, name) for name in names)) <= (desired_number, *(_number(desired, name) for name in names))


def _in_snapshot(position: Mapping[str, Any]) -> bool:
    return position.get("snapshot") not in (None, False, "false", "")


def _number(position: Mapping[str, Any], name: str) -> int:
    return int(position.get(name) or 0)


def _file(position: Mapping[str, Any]) -> tuple[str, int]:
    """The base name and the number of a log file."""
    base, _, number = str(position.get("file") or "").rpartition(".")
    return base, int(number) if number.isdigit() else 0
