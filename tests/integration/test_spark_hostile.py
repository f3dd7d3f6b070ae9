"""Records that are not what they should be, and names that mean something elsewhere. Real broker, real tables."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from connect_py.errors import FatalTaskError
from tests.fix_spark import ID, INT, TEXT, Lake, Watched, event, struct, with_schema

pytestmark = [pytest.mark.services, pytest.mark.spark]

TOLERANT = {"errors.tolerance": "all"}


#: Delta takes the same way through the same session.
FORMATS = pytest.mark.parametrize("lake", ["iceberg", pytest.param("delta", marks=pytest.mark.long)], indirect=True)


@FORMATS
def test_names_and_comments_stay_as_they_are_and_are_no_variables_of_the_workers(lake: Lake) -> None:
    topic = lake.topic("t")
    text = "E=${env:HOME} ${system:user.home} ${spark:spark.app.name} ${a}"
    names = {"c${env:HOME}": 1, "d${system:user.home}": 2, "e${a}": 3}
    columns = {name: {**INT, "doc": text} for name in names}
    config = lake.config(topic) | {"lakehouse.spark.conf.spark.sql.shuffle.partitions": "2"}
    if lake.format == "delta":  # which has braces in names of columns only where these are mapped
        config |= {"lakehouse.tables.auto-create-props.delta.columnMapping.mode": "name"}
    task = lake.start(config)
    lake.produce(topic, [event("c", 1, names, columns)])
    lake.drain(task)
    lake.produce(topic, [event("c", 2, {**names, "f${a}": 4}, {**columns, "f${a}": {**INT, "doc": text}})])
    lake.drain(task)
    assert sorted(lake.rows_by_spark(task, "t"), key=lambda row: row["id"]) == [
        {"id": 1, **names, "f${a}": None},
        {"id": 2, **names, "f${a}": 4},
    ]
    fields = {field.name: field for field in task.spark.table(lake.sql("t")).schema.fields}
    assert [fields[name].metadata["comment"] for name in names] == [text] * 3
    metadata = b"".join(path.read_bytes() for path in lake.warehouse.rglob("*.json"))
    assert (text.encode() in metadata, b"E=" + os.environ["HOME"].encode() in metadata) == (True, False)


def poisoned(schema: Any, payload: Any) -> tuple[bytes | None, bytes]:
    return with_schema(struct({"id": ID}), {"id": 9}), with_schema(schema, payload)


def test_records_whose_schemas_are_none_or_whose_names_lead_elsewhere_are_bad_records_and_the_others_are_applied(lake: Lake) -> None:
    topic = lake.topic("t")
    key, good = event("c", 1, {"n": 1}, {"n": INT})
    decimal = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "x"}, "optional": True}
    variable = struct({"scale": {"type": "int32"}, "value": {"type": "bytes"}}, name="io.debezium.data.VariableScaleDecimal", optional=True)
    nested = '{"type":"array","items":' * 2000 + '{"type":"string"}' + "}" * 2000
    records = [
        (key, good),
        poisoned({"type": "struct"}, {}),
        poisoned(struct({"id": ID}) | {"fields": [{"type": "int32", "field": 5}]}, {}),
        event("c", 2, {"d": None}, {"d": decimal}),
        (key, ('{"schema":{"type":"struct","fields":[{"field":"a",' + nested[1:] + "]}" + ',"payload":{}}').encode()),
        (key, good.replace(b'"after":{"id":1', b'"after":{"x":' + b"[" * 2000 + b"]" * 2000 + b',"id":1')),
        event("c", 3, {"v": {"scale": -2_000_000_000, "value": "AQ=="}}, {"v": variable}, table="t"),
        (key, json.dumps(json.loads(good) | {"payload": json.loads(good)["payload"] | {"source": {"schema": 5, "table": {}}}}).encode()),
        event("c", 4, {"z": 1}, {"z": INT}, table="../../../escaped"),
        event("c", 5, {"y": 1}, {"y": INT}, table="a/b"),
        event("c", 6, {"n": 6}, {"n": INT}),
    ]
    lake.produce(topic, records)
    lake.drain(lake.start(lake.config(topic) | TOLERANT))
    why = {record.offset: str(record.error) for record in lake.context.rejected}
    assert sorted(why) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert "has no list of fields" in why[1]
    assert "cannot be a part of a table's name" in why[8]
    assert [row["id"] for row in lake.rows("t")] == [1, 6]
    assert [path.name for path in (lake.warehouse / "public").iterdir()] == ["t"], "nothing anywhere else"
    assert not list(lake.warehouse.parent.rglob("escaped"))
    with pytest.raises(FatalTaskError, match=f"topic {topic} partition 0 offset 1 cannot become a row"):
        lake.context.rewind()
        lake.start(lake.config(topic)).step()


@pytest.mark.long
def test_a_route_of_a_records_own_value_leads_nowhere_else(lake: Lake, tmp_path: Path) -> None:
    topic = lake.topic("all")
    lake.produce(
        topic, [event("c", number, {"kind": kind}, {"kind": TEXT}) for number, kind in enumerate(("public.t", "a../b", "public.t/x"))]
    )
    config = lake.config(topic, tables_dynamic__enabled="true", tables_route__field="kind")
    with pytest.raises(FatalTaskError, match=r"cannot be a part of a table's name.* With errors\.tolerance=all"):
        lake.start(config).step()
    lake.drain(lake.start(config | TOLERANT))
    assert [record.offset for record in lake.context.rejected] == [1, 2]
    assert [row["id"] for row in lake.rows("t")] == [0]


@pytest.mark.long
@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_a_columns_name_that_delta_refuses_fails_the_task_at_once(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", 1, {"a b;": 1}, {"a b;": INT})])
    with pytest.raises(FatalTaskError, match=r"(?s)DELTA_INVALID_CHARACTERS_IN_COLUMN_NAME.*a b;"):
        lake.start(lake.config(topic)).step()


def test_a_commit_whose_answer_is_lost_is_found_and_written_once(lake: Lake) -> None:
    topic = lake.topic("t")
    lost: list[str] = []

    def lose_the_answer(statement: str) -> None:
        if "system.fast_forward" in statement:
            lost.append(statement)
            raise ConnectionError("the catalog has gone")

    task = lake.start(lake.config(topic, tables_write__mode="append"), make_tables=Watched(after=lose_the_answer, by_statements=True))
    for number in (1, 2):
        lake.produce(topic, [event("c", number, {"n": number}, {"n": INT})])
        assert lake.drain(task) == 1
    assert len(lost) == 2
    assert sorted(row["id"] for row in lake.rows("t")) == [1, 2]
    assert lake.watermark("t") == {topic: {"0": 2}}


@pytest.mark.long
def test_a_start_whose_first_look_at_a_table_fails_still_takes_it_over(lake: Lake) -> None:
    topic = lake.topic("t")
    lake.produce(topic, [event("c", 1, {"n": 1}, {"n": INT})])
    lake.drain(lake.start(lake.config(topic), clock=lambda: 4_000_000_000_000_000_000))  # another machine, whose clock is ahead

    def fail() -> None:
        raise ConnectionError("the catalog does not answer")

    watched = Watched()
    task = lake.start(lake.config(topic), make_tables=watched)
    watched.once("TABLE", fail)
    with pytest.raises(Exception, match="does not answer"):
        task.step()
    lake.produce(topic, [event("c", 2, {"n": 2}, {"n": INT})])
    lake.drain(task)
    assert sorted(row["id"] for row in lake.rows("t")) == [1, 2]
