"""One stream, many tables: routes by the records' own values, against a real broker and real tables."""

from __future__ import annotations

from typing import Any

import pytest

from connect_py.errors import FatalTaskError
from tests.fix_spark import INT, TEXT, Lake, event

pytestmark = [pytest.mark.services, pytest.mark.spark]

COLUMNS = {"kind": TEXT, "n": INT}


def of_kind(op: str, key: int, kind: str | None, number: int) -> tuple[bytes | None, bytes]:
    return event(op, key, {"kind": kind, "n": number}, COLUMNS)


def rows(lake: Lake, name: str) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in lake.rows(name))


def test_dynamic_routes_divide_one_topic_and_replays_change_nothing(lake: Lake) -> None:
    topic = lake.topic("all")
    config = lake.config(topic, tables_dynamic__enabled="true", tables_route__field="kind", tables_exclude_list="public[.]none")
    lake.produce(topic, [of_kind("c", 1, "public.A", 1), of_kind("c", 1, "public.b", 2), of_kind("c", 3, "public.none", 3)])
    task = lake.start(config)
    lake.drain(task)
    lake.produce(topic, [of_kind("u", 1, "public.b", 20), of_kind("d", 1, "public.b", 20), of_kind("c", 4, "public.b", 4)])
    lake.drain(task)
    assert rows(lake, "a") == [(1, 1)]
    assert rows(lake, "b") == [(4, 4)]
    assert lake.snapshots("a") == 1, "a table without records in a batch must not be touched"
    lake.context.rewind()
    lake.drain(lake.start(config))
    assert (lake.snapshots("a"), lake.snapshots("b")) == (1, 2)
    assert task.metrics()[0].values["records-passed-over-total"] == 1
    lake.produce(topic, [of_kind("c", 9, None, 9)])
    with pytest.raises(FatalTaskError, match=f"topic {topic} partition 0 offset 6 has no table: lakehouse.tables.route-field is kind"):
        task.step()


@pytest.mark.long
def test_static_routes_follow_regexes_and_each_table_has_settings_of_its_own(lake: Lake) -> None:
    topic = lake.topic("all")
    more: dict[str, Any] = {
        "lakehouse.tables": "public.upserted,public.logged",
        "lakehouse.tables.unrouted": "skip",
        "lakehouse.table.public.upserted.route-regex": "x|both",
        "lakehouse.table.public.logged.route-regex": "both",
        "lakehouse.table.public.logged.write-mode": "append",
    }
    task = lake.start(lake.config(topic, tables_route__field="kind") | more)
    lake.produce(topic, [of_kind("c", 1, "x", 1), of_kind("c", 2, "both", 2), of_kind("u", 2, "both", 3), of_kind("c", 5, "neither", 5)])
    lake.drain(task)
    assert rows(lake, "upserted") == [(1, 1), (2, 3)]
    assert rows(lake, "logged") == [(2, 2), (2, 3)]


@pytest.mark.long
def test_a_header_or_the_source_block_can_route(lake: Lake) -> None:
    topic = lake.topic("all")
    for number, name in enumerate(("h1", "h2")):
        key, value = of_kind("c", number, None, number)
        lake.producer.produce(topic, value, key, 0, headers=[("to", f"public.{name}".encode())])
    assert lake.producer.flush(20) == 0
    lake.drain(lake.start(lake.config(topic, tables_dynamic__enabled="true", tables_route__field="__header.to")))
    assert (rows(lake, "h1"), rows(lake, "h2")) == ([(0, 0)], [(1, 1)])
    other = lake.topic("sources")
    lake.produce(other, [event("c", n, {"n": n}, {"n": INT}, table=f"s{n % 2}") for n in range(4)])
    lake.drain(
        lake.start(lake.config(other, tables_dynamic__enabled="true", tables_route__field="__source.table", tables_namespace="public"))
    )
    assert (rows(lake, "s0"), rows(lake, "s1")) == ([(0, 0), (2, 2)], [(1, 1), (3, 3)])
