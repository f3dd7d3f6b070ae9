"""Changes within structs, arrays and maps, and of what may be null, as rows of real tables."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

import pytest

from connect_py.errors import FatalTaskError
from tests.fix_spark import BIGINT, ID, INT, TEXT, Lake, event, iceberg_and_long_delta, struct

pytestmark = [pytest.mark.services, pytest.mark.spark]


def nested(**fields: Mapping[str, Any]) -> dict[str, Any]:
    return {**struct(fields), "optional": True}


def array(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items), "optional": True}


def table_map(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "map", "keys": {"type": "string"}, "values": dict(values), "optional": True}


OLD = {"doc": nested(a=INT, inner=nested(x=INT)), "list": array(nested(x=INT)), "by": table_map(INT)}
NEW = {
    "doc": nested(inner=nested(y=TEXT, x=BIGINT), a=INT, new=array(INT)),
    "list": array(nested(x=BIGINT, y=TEXT)),
    "by": table_map(BIGINT),
}
OLD_ROW = {"doc": {"a": 1, "inner": {"x": 1}}, "list": [{"x": 1}, None], "by": {"k": 1}}
NEW_ROW = {
    "doc": {"inner": {"y": "new", "x": 2**40}, "a": 2, "new": [1, 2]},
    "list": [{"x": 2**40, "y": "new"}],
    "by": {"k": 2**40},
}


@iceberg_and_long_delta
def test_fields_are_added_and_widened_within_columns_whatever_the_order_of_old_and_new_events(lake: Lake) -> None:
    topic = lake.topic("t")
    task = lake.start(lake.config(topic))
    lake.produce(topic, [event("c", 1, OLD_ROW, OLD), event("c", 2, {"doc": None, "list": None, "by": None}, OLD)])
    lake.drain(task)
    lake.produce(topic, [event("c", 4, OLD_ROW, OLD), event("c", 3, NEW_ROW, NEW), event("u", 2, OLD_ROW, OLD)])
    lake.drain(task)
    lake.produce(topic, [event("c", 5, OLD_ROW, OLD)])
    lake.drain(task)
    rows = {row["id"]: row for row in lake.rows_by_spark(task, "t")}
    old = {
        "doc": {"a": 1, "inner": {"x": 1, "y": None}, "new": None},
        "list": [{"x": 1, "y": None}, None],
        "by": {"k": 1},
    }
    assert rows == {key: {"id": key, **(NEW_ROW if key == 3 else old)} for key in (1, 2, 3, 4, 5)}
    assert lake.snapshots("t") == 3


@pytest.mark.long
def test_a_field_that_cannot_be_widened_gets_a_field_of_its_own_is_cast_left_out_or_refused(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", 1, {"doc": {"a": 5}}, {"doc": nested(a=INT)})])
    lake.drain(lake.start(lake.config(topic)))
    texts = {"doc": nested(a=TEXT, b=INT)}
    lake.produce(topic, [event("c", 2, {"doc": {"a": "6", "b": 1}}, texts)])
    for behavior, problem in (("evolve", r"Column doc\.a of table public\.t is int and the records now have string"), ("exception", "doc")):
        with pytest.raises(FatalTaskError, match=problem):
            lake.start(lake.config(topic, tables_schema__change_behavior=behavior)).step()
    lake.drain(lake.start(lake.config(topic, tables_schema__change_behavior="ignore")))
    lake.produce(topic, [event("c", 3, {"doc": {"a": "7", "b": 2}}, texts)])
    lake.drain(lake.start(lake.config(topic, tables_schema__change_behavior="try_evolve")))
    lake.produce(topic, [event("c", 4, {"doc": {"a": "eight", "b": 3}}, texts)])
    lake.drain(lake.start(lake.config(topic)))
    assert {row["id"]: row["doc"] for row in lake.rows("t")} == {
        1: {"a": 5, "b": None, "a__string": None},
        2: {"a": 6, "b": None, "a__string": None},
        3: {"a": 7, "b": 2, "a__string": None},
        4: {"a": None, "b": 3, "a__string": "eight"},
    }


@pytest.mark.long
def test_objects_without_schemas_get_new_fields_too_and_keep_the_types_of_those_that_are_there(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic) | {f"{side}.converter.schemas.enable": "false" for side in ("key", "value")}
    more = {"lakehouse.table.public.t.column-types": "o:struct<d:date,n:int>"}

    def flat(key: int, **row: Any) -> tuple[bytes, bytes]:
        return json.dumps({"id": key}).encode(), json.dumps({"id": key, **row}).encode()

    lake.produce(topic, [flat(1, o={"d": "2024-02-29", "n": 1}, l=[{"a": 1}])])
    lake.drain(lake.start(config | more))
    lake.produce(topic, [flat(2, o={"d": "2024-03-01", "x": {"y": "new"}}, l=[{"a": 2, "b": True}, {}]), flat(3, o={}, l=[])])
    lake.drain(lake.start(config))
    rows = {row["id"]: (row["o"], row["l"]) for row in lake.rows("t")}
    day = datetime.date
    assert rows == {
        1: ({"d": day(2024, 2, 29), "n": 1, "x": None}, [{"a": 1, "b": None}]),
        2: ({"d": day(2024, 3, 1), "n": None, "x": {"y": "new"}}, [{"a": 2, "b": True}, {"a": None, "b": None}]),
        3: ({"d": None, "n": None, "x": None}, []),
    }


@iceberg_and_long_delta
def test_a_column_that_may_be_null_or_is_gone_in_the_source_loses_its_not_null(lake: Lake) -> None:
    topic = lake.topic("t")
    config = lake.config(topic, tables_schema__force__optional="false")
    task = lake.start(config)
    lake.produce(topic, [event("c", 1, {"n": 1, "m": 1}, {"n": ID, "m": ID})])
    lake.drain(task)
    fields = task.spark.table(lake.sql("t")).schema
    assert [fields[name].nullable for name in ("id", "n", "m")] == [False, False, False]
    lake.produce(topic, [event("c", 2, {"n": None}, {"n": INT})])
    with pytest.raises(FatalTaskError, match="n"):
        lake.start(config | {"lakehouse.tables.schema-change.behavior": "exception"}).step()
    lake.drain(task)
    lake.produce(topic, [event("u", 1, {"n": 3}, {"n": INT})])
    lake.drain(task)
    fields = task.spark.table(lake.sql("t")).schema
    assert [fields[name].nullable for name in ("id", "n", "m")] == [False, True, True]
    assert sorted((row["id"], row["n"], row["m"]) for row in lake.rows("t")) == [(1, 3, 1), (2, None, None)]
