"""How MySQL's snapshot reads: markers, empty tables, several readers, orders, sizes of fetches."""

from mysql import FENCE, fence, note, payload, start, topic
from parity import Run, scenario

TABLES = {"a_empty": 0, "b": 3, "c_one": 1, "d_empty": 0, "e": 2}


@scenario
def mysql_snapshot_markers(run: Run):
    """Empty tables first, last and in between, by one reader in two orders and fetches of one row; then the same by several."""
    setup = [*FENCE]
    for name, rows in TABLES.items():
        setup.append(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)")
        setup += [f"INSERT INTO {name} VALUES ({i},{i})" for i in range(rows)]
        setup.append(f"ANALYZE TABLE {name}")
    db = run.mysql(*setup)
    variants = {
        "one": {"snapshot.fetch.size": 1, "min.row.count.to.stream.results": 0},
        "up": {"snapshot.tables.order.by.row.count": "ascending", "min.row.count.to.stream.results": 1},
        "down": {"snapshot.tables.order.by.row.count": "descending"},
        "extended": {"snapshot.locking.mode": "extended"},
        "none": {"snapshot.locking.mode": "none"},
        "two": {"snapshot.max.threads": 2},
        "legacy": {"snapshot.max.threads": 2, "legacy.snapshot.max.threads": True},
    }
    start(run, **variants)
    fence(run, db, *variants)
    for variant in variants:
        found = {}
        for name in TABLES:
            rows = [payload(record) for record in run.read(topic(run, name, variant))]
            found[name] = [[row["after"]["id"], row["source"]["snapshot"]] for row in rows if row["op"] == "r"]
        if variant in ("two", "legacy"):
            # which row of a table comes last is nobody's order
            found = {name: sorted(id for id, _ in rows) for name, rows in found.items()} | {
                "markers": sorted(marker for rows in found.values() for _, marker in rows if marker in ("first", "last"))
            }
        note(run, variant, found)
