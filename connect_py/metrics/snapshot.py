"""What a status shows of a source's snapshot, from the figures that its task reports (an extension of ours, which clients of Connect pass
over)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from connect_py.api.metrics import MetricGroup

#: The group by which a task tells of its snapshot. Its values: `running`, and by table `rows`, `estimated-rows`, `rows-per-second`,
#: `seconds-left` and `done`; a table may be missing from all but `rows`.
GROUP = ("connect.py", "snapshot-progress")


def snapshot_of(groups: Iterable[MetricGroup]) -> dict[str, Any] | None:
    """``{"state", "rows", "estimated_rows", "tables": [{"table", "state", "rows", "estimated_rows", "rows_per_second", "seconds_left"}]}``;
    None when no snapshot is told of. What is not known is left out."""
    found = next((group for group in groups if (group.domain, group.type) == GROUP), None)
    if found is None:
        return None
    rows, estimates = _map(found, "rows"), _map(found, "estimated-rows")
    shown: dict[str, Any] = {"state": "RUNNING" if found.values.get("running") else "COMPLETED", "rows": sum(rows.values())}
    if estimates.keys() == rows.keys():
        shown["estimated_rows"] = sum(estimates.values())
    shown["tables"] = [_table(found, name, rows[name]) for name in rows]
    return shown


def _table(group: MetricGroup, name: str, rows: int | float) -> dict[str, Any]:
    shown: dict[str, Any] = {"table": name, "state": "COMPLETED" if _map(group, "done").get(name) else "PENDING", "rows": rows}
    if shown["state"] == "PENDING" and name in _map(group, "rows-per-second"):
        shown["state"] = "RUNNING"
    for field in ("estimated-rows", "rows-per-second", "seconds-left"):
        if name in _map(group, field):
            shown[field.replace("-", "_")] = _map(group, field)[name]
    return shown


def _map(group: MetricGroup, name: str) -> Mapping[str, int | float]:
    value = group.values.get(name)
    return value if isinstance(value, Mapping) else {}
