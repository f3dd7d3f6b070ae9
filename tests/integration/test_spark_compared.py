"""The documented examples of two other sinks, and what this one makes of the same events (docs/sinks/compared.md).

Events are as those sinks get them: plain records for Iceberg's Kafka Connect sink, records flattened by `ExtractNewRecordState` with
`delete.tombstone.handling.mode=rewrite` for debezium-server-iceberg.
"""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from connect_py.errors import FatalTaskError
from tests.fix_spark import BIGINT, ID, INT, TEXT, Lake, struct, with_schema

pytestmark = [pytest.mark.services, pytest.mark.spark]

MOMENT = {"type": "int64", "optional": True, "name": "org.apache.kafka.connect.data.Timestamp", "version": 1}
EVENTS = "(id STRING, type STRING, ts TIMESTAMP, payload STRING) USING iceberg PARTITIONED BY (hours(ts))"
HOUR = 3_600_000


def plain(number: int, kind: str, **more: str) -> tuple[None, bytes]:
    """A record of Iceberg's examples."""
    fields = {"id": TEXT, "type": TEXT, "ts": MOMENT, "payload": TEXT, **dict.fromkeys(more, TEXT)}
    return None, with_schema(struct(fields), {"id": str(number), "type": kind, "ts": number * HOUR, "payload": f"p{number}", **more})


def written(number: int, kind: str) -> dict[str, Any]:
    """The row that it becomes."""
    ts = datetime.datetime(1970, 1, 1, number, tzinfo=datetime.UTC)
    return {"id": str(number), "type": kind, "ts": ts, "payload": f"p{number}"}


def flat(op: str, key: int, row: dict[str, Any], columns: dict[str, Any], ts: int = 1) -> tuple[bytes, bytes]:
    """A record of debezium-server-iceberg's flattening: op, table, source.ts_ns, db, ts_ms added, deletes rewritten."""
    added = {"__op": TEXT, "__table": TEXT, "__source_ts_ns": BIGINT, "__db": TEXT, "__ts_ms": BIGINT, "__deleted": TEXT}
    values = {
        "__op": op,
        "__table": "customers",
        "__source_ts_ns": ts,
        "__db": "inventory",
        "__ts_ms": ts,
        "__deleted": str(op == "d").lower(),
    }
    value = with_schema(struct({"id": ID, **columns, **added}), {"id": key, **row, **values})
    return with_schema(struct({"id": ID}), {"id": key}), value


def sorted_rows(lake: Lake, table: str) -> list[dict[str, Any]]:
    return sorted(lake.rows(table), key=lambda row: str(row["id"]))


def iceberg_config(lake: Lake, topic: str, **more: str) -> dict[str, str]:
    """Under Iceberg's own names, without what creates or alters tables."""
    config = lake.config(topic)
    for name in ("tables.auto-create-enabled", "tables.evolve-schema-enabled"):
        del config[f"lakehouse.{name}"]
    return config | {"lakehouse.tables.metadata-columns": ""} | {f"iceberg.{name.replace('_', '.')}": value for name, value in more.items()}


@pytest.mark.long
def test_icebergs_single_destination_table_has_every_record(lake: Lake, held_spark: Any) -> None:
    topic = lake.topic("events")
    task = lake.start(iceberg_config(lake, topic, tables="public.events"))
    task.spark.sql(f"CREATE TABLE lake.public.events {EVENTS}")
    lake.produce(topic, [plain(1, "list"), plain(2, "create"), plain(2, "create")])
    lake.drain(task)
    assert sorted_rows(lake, "events") == [written(1, "list"), written(2, "create"), written(2, "create")]
    assert lake.files("events") == 2  # the table's own partitions


@pytest.mark.long
def test_icebergs_static_routing_writes_what_matches_and_skips_the_rest_when_told_to(lake: Lake) -> None:
    topic = lake.topic("events")
    config = iceberg_config(lake, topic, tables="public.events_list,public.events_create") | {
        "iceberg.tables.route-field": "type",
        "iceberg.table.public.events_list.route-regex": "list",
        "iceberg.table.public.events_create.route-regex": "create",
    }
    lake.produce(topic, [plain(1, "list"), plain(2, "create"), plain(3, "other"), plain(4, "list")])
    task = lake.start(config)
    for table in ("events_list", "events_create"):
        task.spark.sql(f"CREATE TABLE lake.public.{table} {EVENTS}")
    with pytest.raises(FatalTaskError, match=r"offset 2"):  # here nothing is skipped unless that is wanted
        task.step()
    lake.drain(lake.start(config | {"lakehouse.tables.unrouted": "skip"}))
    assert sorted_rows(lake, "events_list") == [written(1, "list"), written(4, "list")]
    assert sorted_rows(lake, "events_create") == [written(2, "create")]


@pytest.mark.long
def test_icebergs_dynamic_routing_takes_the_tables_name_from_the_record(lake: Lake) -> None:
    topic = lake.topic("events")
    config = iceberg_config(lake, topic) | {"iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "db_table"}
    config["lakehouse.tables.exclude-columns"] = "db_table"
    lake.produce(topic, [plain(1, "list", db_table="public.events_list"), plain(2, "create", db_table="public.events_none")])
    task = lake.start(config)
    task.spark.sql(f"CREATE TABLE lake.public.events_list {EVENTS}")
    with pytest.raises(FatalTaskError, match=r"public\.events_none does not exist"):  # there such a record is skipped
        task.step()
    lake.drain(lake.start(config | {"lakehouse.tables.exclude.list": r"public\.events_none"}))
    assert sorted_rows(lake, "events_list") == [written(1, "list")]


CUSTOMERS = [
    flat("r", 1, {"name": "Sally", "age": 30}, {"name": TEXT, "age": INT}, 1),
    flat("r", 2, {"name": "George", "age": 40}, {"name": TEXT, "age": INT}, 2),
    flat("u", 1, {"name": "Sally", "age": 31}, {"name": TEXT, "age": INT}, 3),
    flat("d", 2, {"name": "George", "age": 40}, {"name": TEXT, "age": INT}, 4),
]


def test_debezium_servers_upsert_keeps_deleted_rows_marked_with_their_last_state(lake: Lake) -> None:
    topic = lake.topic("customers")
    lake.produce(topic, CUSTOMERS)
    lake.drain(lake.start(lake.config(topic, tables_delete__mode="soft")))
    rows = {row["id"]: (row["name"], row["age"], row["__op"], row["__deleted"]) for row in lake.whole_rows("customers")}
    assert rows == {1: ("Sally", 31, "u", False), 2: ("George", 40, "d", True)}


@pytest.mark.long
def test_debezium_servers_upsert_without_deleted_rows_removes_them(lake: Lake) -> None:
    topic = lake.topic("customers")
    lake.produce(topic, CUSTOMERS)
    lake.drain(lake.start(lake.config(topic)))
    assert lake.rows("customers") == [{"id": 1, "name": "Sally", "age": 31}]


@pytest.mark.long
def test_debezium_servers_append_mode_has_every_event(lake: Lake) -> None:
    topic = lake.topic("customers")
    lake.produce(topic, CUSTOMERS)
    lake.drain(lake.start(lake.config(topic, tables_write__mode="append")))
    rows = sorted(lake.whole_rows("customers"), key=lambda row: row["__offset"])
    assert [(row["id"], row["age"], row["__op"]) for row in rows] == [(1, 30, "r"), (2, 40, "r"), (1, 31, "u"), (2, 40, "d")]


@pytest.mark.long
def test_debezium_servers_changes_of_the_schema_do_the_same_but_for_a_column_that_went(lake: Lake) -> None:
    topic = lake.topic("customers")
    task = lake.start(lake.config(topic))
    lake.produce(topic, [flat("c", key, {"name": f"n{key}", "age": key}, {"name": TEXT, "age": INT}) for key in (1, 2, 3)])
    lake.drain(task)
    # a new column, and int to long: added and widened by both
    lake.produce(topic, [flat("u", 1, {"name": "n1", "age": 2**40, "mail": "m"}, {"name": TEXT, "age": BIGINT, "mail": TEXT})])
    lake.drain(task)
    # a column that went: there null in new records, here unknown, so that what the table knows stays
    lake.produce(topic, [flat("u", 2, {"age": 22}, {"age": INT}), flat("c", 4, {"age": 4}, {"age": INT})])
    lake.drain(task)
    assert sorted_rows(lake, "customers") == [
        {"id": 1, "name": "n1", "age": 2**40, "mail": "m"},
        {"id": 2, "name": "n2", "age": 22, "mail": None},
        {"id": 3, "name": "n3", "age": 3, "mail": None},
        {"id": 4, "name": None, "age": 4, "mail": None},
    ]


@pytest.mark.long
def test_debezium_servers_table_names_can_be_had(lake: Lake) -> None:
    topic = lake.topic("customers")
    lake.produce(topic, CUSTOMERS[:1])
    lake.drain(lake.start(lake.config(topic, tables_route__pattern="public.cdc_{prefix}_{schema}_{table}")))
    assert lake.rows(f"cdc_{lake.tag}_public_customers") == [{"id": 1, "name": "Sally", "age": 30}]
