"""Headers of rows in a chain: those of a route are converted once, those that a transform changed are converted as they are."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from connect_py.api import EncodedBatch, Header, Route, SourceRecord
from connect_py.api.record import KeyText
from connect_py.converters.primitive import StringConverter
from connect_py.data import Field, Schema, Type
from connect_py.data.schema import DECIMAL, STRING
from connect_py.plugins.registry import Plugins
from connect_py.task.chain import Chain
from connect_py.task.failed_records import SourceErrorReporter, Tolerance

SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
JSON, TEXT = "org.apache.kafka.connect.json.JsonConverter", "org.apache.kafka.connect.storage.StringConverter"
ODD, COUNTS = "x.MarksOddRows", "x.Counts"
WORKER = {"key.converter": TEXT, "value.converter": TEXT, "header.converter": TEXT}


class MarksOddRows:
    """Adds a header in place, as a careless transform does, and gives one row another topic."""

    java_name = ODD
    version = "1"

    def configure(self, config: Any) -> None:
        pass

    def apply(self, record: SourceRecord) -> SourceRecord:
        if record.value in ("1", "3"):
            record.headers.append(Header("odd", record.value, STRING))
        if record.value == "2":
            record.topic = "elsewhere"
        return record

    def close(self) -> None:
        pass


class Counts(StringConverter):
    """Converts headers, and notes what it was asked to convert."""

    java_name = COUNTS
    calls: ClassVar[list[tuple[str, str, Any]]] = []

    def from_connect_header(self, topic: str, name: str, schema: Any, value: Any) -> Any:
        self.calls.append((topic, name, value))
        return super().from_connect_header(topic, name, schema, value)


PLUGINS = Plugins(
    {
        ODD: MarksOddRows,
        COUNTS: Counts,
        SIMPLE: "connect_py.converters.primitive:SimpleHeaderConverter",
        JSON: "connect_py.converters.json_converter:JsonConverter",
        TEXT: "connect_py.converters.primitive:StringConverter",
    },
)


def test_a_header_that_a_transform_adds_is_on_its_row_only() -> None:
    config = {"header.converter": COUNTS, "transforms": "odd", "transforms.odd.type": ODD}
    errors = SourceErrorReporter("c", 0, config)
    chain = Chain(PLUGINS, WORKER, config, Tolerance(config, lambda seconds: False, errors), errors)
    calls = Counts.calls
    calls.clear()
    marked, bare = Route("a", STRING, STRING, headers=(("h", "x"),)), Route("b", STRING, STRING)
    rows = [(route, b'"k"', b'"%d"' % n) for route, numbers in ((marked, range(5)), (bare, (0, 1)), (marked, (4,))) for n in numbers]
    made = [chain.convert(record) for record in chain.records(EncodedBatch(rows, {}, {}))]
    headers = [record.headers for record in made if record is not None]
    h, odd = ("h", b"x"), [("odd", b"1"), ("odd", b"3")]
    assert headers == [[h], [h, odd[0]], [h], [h, odd[1]], [h], None, [odd[0]], [h]]
    assert [record.topic for record in made if record is not None] == [*"aa", "elsewhere", *"aabba"]
    assert calls.count(("a", "h", "x")) == 3  # once for the route, and with each of the two rows that were changed
    assert ("elsewhere", "h", "x") in calls


KEY = Schema(
    Type.STRUCT,
    fields=(Field("id", Schema(Type.INT32)), Field("n", Schema(Type.BYTES, name=DECIMAL, version=1, parameters=(("scale", "2"),)))),
)


@pytest.mark.parametrize(
    ("converter", "shown"),
    [(SIMPLE, b'{"id":3,"n":1.50}'), (TEXT, b"Struct{id=3,n=1.50}"), (JSON, b'{"id":3,"n":"AJY="}')],
)
def test_a_header_that_shows_a_key_is_converted_as_a_struct(converter: str, shown: bytes) -> None:
    worker = {**WORKER, "header.converter": converter, "header.converter.schemas.enable": "false"}
    errors = SourceErrorReporter("c", 0, {})
    chain = Chain(PLUGINS, worker, {}, Tolerance({}, lambda seconds: False, errors), errors)
    route = Route("t", KEY, STRING, headers=(("__debezium.newkey", KeyText('{"id":3,"n":1.50}')),))
    assert chain.headers_of(route) == [("__debezium.newkey", shown)]
