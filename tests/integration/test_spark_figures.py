"""The sink's figures beside what it has really done: rows by operation, superfluous events, lag by table, changes of schemas. Real broker,
real tables, written two at once."""

from __future__ import annotations

import time
from typing import Any

import pytest

from connect_py.metrics.commits import PAST_GROUP
from spark_sink.config.sink_config import parse
from spark_sink.routing import TableName
from spark_sink.tables.upkeep import MaintenancePolicy, StatsSchedule
from spark_sink.task import SparkLakehouseSinkTask
from tests.fix_spark import INT, TEXT, Lake, Watched, event, iceberg_and_long_delta

pytestmark = [pytest.mark.services, pytest.mark.spark]


def figures(task: SparkLakehouseSinkTask, table: str | None = None) -> dict[str, Any]:
    """A table's figures, or the sink's; those that are told by operation or kind have it behind a colon."""
    found: dict[str, Any] = {}
    for group in task.metrics():
        if group.tags.get("table") == table:
            suffix = "".join(f":{value}" for name, value in group.tags.items() if name != "table")
            found |= {name + suffix: value for name, value in group.values.items()}
    return found


def of(prefix: str, found: dict[str, Any]) -> dict[str, int]:
    return {name.removeprefix(prefix + ":"): value for name, value in found.items() if name.startswith(prefix + ":")}


@iceberg_and_long_delta
def test_figures_say_what_the_sink_has_done_to_each_table(lake: Lake) -> None:
    kept, log = lake.topic("kept"), lake.topic("log")
    config = lake.config(kept, log, control_commit_threads="2") | {
        "lakehouse.table.public.log.write-mode": "append",
        "lakehouse.max-offsets-per-trigger": "100",
    }
    lake.produce(kept, [event("c", key, {"n": key}, {"n": INT}, "kept") for key in range(6)])
    lake.produce(log, [event("r", key, {"n": key}, {"n": INT}, "log") for key in range(3)])
    watched, stats = Watched(), StatsSchedule()
    task = lake.start(config, make_tables=watched, stats=stats)
    lake.drain(task)
    lake.produce(kept, [event("u", key, {"n": -key, "more": "x"}, {"n": INT, "more": TEXT}, "kept") for key in (1, 1, 1, 2)])
    lake.produce(kept, [event("d", 2, {"n": -2, "more": "x"}, {"n": INT, "more": TEXT}, "kept"), (b'{"schema":null,"payload":null}', None)])
    lake.produce(log, [event("u", 1, {"n": 5}, {"n": INT}, "log"), event("u", 1, {"n": 6}, {"n": INT}, "log")])
    lake.drain(task)
    for _ in range(2):  # one table a step, in the order of their commits
        stats.took(0, 0)  # else a look would wait for its share of the time
        task.step()

    found = figures(task, "public.kept")
    assert of("records-applied-by-op-total", found) == {"c": 6, "u": 4, "d": 1}
    assert found["records-applied-total"] == 11
    assert found["records-deduplicated-total"] == 3, "two updates of key 1, and that of key 2 before its delete"
    assert of("schema-changes-total", found) == {"create.table": 1, "add.column": 1}
    assert (found["commits-total"], found["failures-total"], found["batches-skipped-already-committed-total"]) == (2, 0, 0)
    assert found["apply-seconds-total"] > found["last-apply-seconds"] > 0
    assert {row["id"]: row["n"] for row in lake.rows("kept")} == {0: 0, 1: -1, 3: 3, 4: 4, 5: 5}

    assert found["generation"] == 0
    assert found["data-files"] == lake.files("kept")
    assert found["size-bytes"] > 0
    if lake.format == "iceberg":
        assert found["snapshots"] == len(lake.table("kept").metadata.snapshots)
        assert found["delete-files"] > 0, "rows that were changed are noted as deleted beside the files"

    added, removed = found["files-added-total"], found["files-removed-total"]
    assert added - removed == found["data-files"]
    assert found.get("small-files") == (found["data-files"] if lake.format == "iceberg" else None), "Delta tells no sizes of files"
    assert "records-stale-total" not in found, "whatever comes last in the log counts"
    began = found["valid-through-timestamp-seconds"]
    task.step()
    watched.tables.compact(TableName(("public", "kept")), MaintenancePolicy.of(parse(config)), thoroughly=True)
    stats.committed(TableName(("public", "kept")))
    for _ in range(2):
        stats.took(0, 0)
        task.step()
    found = figures(task, "public.kept")
    assert found["data-files"] == lake.files("kept") == 1
    assert (found["files-added-total"], found["files-removed-total"]) == (added + 1, added), "compaction's too, and each once"
    assert found["valid-through-timestamp-seconds"] > began

    found = figures(task, "public.log")
    assert of("records-applied-by-op-total", found) == {"r": 3, "u": 2}
    assert (found["records-applied-total"], found["records-deduplicated-total"]) == (5, 0)
    assert len(lake.rows("log")) == 5

    whole = figures(task)
    assert (whole["batches-total"], whole["records-passed-over-total"], whole["lag-offsets"], whole["lag-ms"]) == (2, 1, 0, 0)
    assert whole["batch-seconds-total"] > whole["batch-read-seconds-total"] > 0


@iceberg_and_long_delta
def test_events_that_are_older_than_their_rows_are_counted_as_stale(lake: Lake) -> None:
    topic = lake.topic("t")
    stats = StatsSchedule()
    task = lake.start(lake.config(topic, tables_ordering="column:n"), stats=stats)
    lake.produce(topic, [event("c", key, {"n": 5}, {"n": INT}) for key in range(4)])
    lake.drain(task)
    late = [event("u", 0, {"n": 4}, {"n": INT}), event("u", 1, {"n": 3}, {"n": INT}), event("u", 1, {"n": 2}, {"n": INT})]
    lake.produce(
        topic, [*late, event("u", 2, {"n": 6}, {"n": INT}), event("d", 3, {"n": 5}, {"n": INT}), event("c", 9, {"n": 1}, {"n": INT})]
    )
    lake.drain(task)
    stats.took(0, 0)
    task.step()
    assert {row["id"]: row["n"] for row in lake.rows("t")} == {0: 5, 1: 5, 2: 6, 9: 1}
    assert figures(task, "public.t")["records-stale-total"] == 2, "of each key the newest event of the batch is compared"


@pytest.mark.long
@iceberg_and_long_delta
def test_values_that_events_did_not_hold_are_counted(lake: Lake) -> None:
    topic, columns = lake.topic("t"), {"a": TEXT, "b": TEXT}
    unavailable = "__debezium_unavailable_value"
    lake.produce(topic, [event("c", key, {"a": "x", "b": "y"}, columns) for key in range(2)])
    task = lake.start(lake.config(topic))
    lake.drain(task)
    assert figures(task, "public.t")["unavailable-values-total"] == 0
    lake.produce(
        topic, [event("u", 0, {"a": unavailable, "b": unavailable}, columns), event("u", 1, {"a": "z", "b": unavailable}, columns)]
    )
    lake.produce(topic, [event("d", 1, {"a": "z", "b": unavailable}, columns)])
    lake.drain(task)
    assert figures(task, "public.t")["unavailable-values-total"] == 3, "what a delete does not hold is not missed"
    assert [(row["id"], row["a"], row["b"]) for row in lake.rows("t")] == [(0, "x", "y")]


@pytest.mark.long
def test_lag_is_told_for_each_table_and_a_replayed_batch_is_not_counted_again(lake: Lake) -> None:
    busy, idle = lake.topic("busy"), lake.topic("idle")
    config = lake.config(busy, idle, max__offsets__per__trigger="10")
    lake.produce(busy, [event("c", key, {"n": key}, {"n": INT}, "busy") for key in range(25)])
    lake.produce(idle, [event("c", 1, {"n": 1}, {"n": INT}, "idle")])
    task = lake.start(config)
    task.step()  # its offsets are not reported
    lag = 26 - 10
    assert figures(task)["lag-offsets"] in (lag, lag + 1)  # of a tiny share one offset is taken at least
    assert figures(task, "public.busy")["lag-offsets"] + figures(task, "public.idle")["lag-offsets"] == figures(task)["lag-offsets"]
    assert figures(task, "public.busy")["lag-offsets"] >= lag - 1
    assert figures(task, "public.busy")["lag-ms"] > 0
    applied = figures(task, "public.busy")["records-applied-total"]
    lake.drain(task)
    assert figures(task, "public.busy")["records-applied-total"] == 25 > applied
    for table in ("busy", "idle"):
        assert (figures(task, f"public.{table}")["lag-offsets"], figures(task, f"public.{table}")["lag-ms"]) == (0, 0)

    lake.context.rewind()
    again = lake.start(config)
    lake.produce(idle, [event("c", 2, {"n": 2}, {"n": INT}, "idle")])
    lake.drain(again)
    assert figures(again, "public.idle")["records-applied-total"] == 1
    assert figures(again, "public.busy").get("records-applied-total", 0) == 0
    assert len(lake.rows("busy")) == 25
    assert len(lake.rows("idle")) == 2


@iceberg_and_long_delta
def test_a_task_that_starts_over_tells_the_commits_that_the_table_has(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic)
    task = lake.start(config)
    for number in (3, 4, 5):
        lake.produce(topic, [event("c", number * 10 + key, {"n": key}, {"n": INT}) for key in range(number)])
        lake.drain(task)
    began = time.time()
    later = lake.start(config)
    later.step()
    told = [group for group in later.metrics() if (group.domain, group.type) == PAST_GROUP]
    assert [(group.tags["table"], group.values.get("records")) for group in told] == [("public.t", number) for number in (5, 4, None)]
    moments = [float(group.values["at"]) for group in told]
    assert sorted(moments, reverse=True) == moments
    assert began - 600 < moments[-1] < began
