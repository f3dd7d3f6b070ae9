"""What rows of an initial snapshot say of their place: tables without rows, tables of one row, an order by size."""

from parity import Run, scenario
from postgres_more import start, topic


def _record(run: Run, tables: dict[str, int], **variants: dict) -> None:
    """Snapshots of tables with so many rows each, one a variant."""
    make = "CREATE TABLE {0} (id integer PRIMARY KEY); INSERT INTO {0} SELECT generate_series(1, {1});"
    start(run, "".join(make.format(name, rows) for name, rows in tables.items()), **variants)
    filled = [name for name, rows in tables.items() if rows]
    run.record_topics(*(topic(run, f"public.{name}", variant) for variant in variants for name in filled))


@scenario
def pg_snapshot_markers(run: Run):
    """An empty table comes first, and stands between others."""
    _record(run, {"a_empty": 0, "b": 3, "c_one": 1, "d_empty": 0, "e": 2}, pg={}, up={"snapshot_tables_order_by_row_count": "ascending"})
