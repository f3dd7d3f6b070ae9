"""All plugins of this project keep the contract that other people's plugins have to keep (`connect_py.testing`, docs/plugins.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connect_py.api import Header, SinkRecord, SourceRecord
from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.primitive import (
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
    SimpleHeaderConverter,
    StringConverter,
)
from connect_py.data import Struct
from connect_py.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    STRING,
    array,
    struct,
)
from connect_py.errors import ConfigError
from connect_py.plugins.registry import KINDS, Plugins
from connect_py.testing import (
    SinkRun,
    SourceRun,
    check_converter,
    check_header_converter,
    check_plugin,
    check_predicate,
    check_transform,
)
from connectors.file.sink import FileStreamSinkConnector
from connectors.file.source import FileStreamSourceConnector

PLUGINS = Plugins.discover()
ORDER = struct([("id", INT64), ("note", OPTIONAL_STRING)], name="shop.Order")
RECORD = SourceRecord({"p": 1}, {"o": 1}, "orders", INT64, 7, ORDER, Struct(ORDER, [7, "x"]), timestamp=1_700_000_000_000)
PLAIN = SinkRecord("orders", 0, 5, None, {"id": 7}, None, {"id": 7, "note": "x"}, 1_700_000_000_000, [Header("h", "1", STRING)])

TRANSFORMS: dict[str, tuple[dict[str, str], dict[str, str] | None]] = {
    "Cast$Value": ({"spec": "id:string"}, {"spec": "id:nonsense"}),
    "ExtractField$Value": ({"field": "id"}, {}),
    "HoistField$Value": ({"field": "line"}, {}),
    "InsertField$Value": ({"static.field": "s", "static.value": "v"}, {}),
    "InsertHeader": ({"header": "a", "value.literal": "b"}, {}),
    "DropHeaders": ({"headers": "h"}, {}),
    "MaskField$Value": ({"fields": "note"}, {}),
    "RegexRouter": ({"regex": "o(.*)", "replacement": "p$1"}, {"regex": "("}),
    "ReplaceField$Value": ({"exclude": "note"}, None),
    "SetSchemaMetadata$Value": ({"schema.name": "n"}, None),
    "TimestampRouter": ({}, None),
    "ValueToKey": ({"fields": "id"}, {}),
    "Filter": ({}, None),
    "Flatten$Value": ({}, None),
}


def kafka(name: str) -> type[Any]:
    return PLUGINS.load(f"org.apache.kafka.connect.transforms.{name}")


@pytest.mark.parametrize("java_name", sorted(PLUGINS.references))
def test_a_plugin_has_a_name_a_version_and_properties(java_name: str) -> None:
    check_plugin(PLUGINS.load(java_name))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_changes_no_record_in_place_and_repeats_itself(name: str) -> None:
    config, broken = TRANSFORMS[name]
    records = [RECORD] if name in ("SetSchemaMetadata$Value",) else [RECORD, PLAIN]
    check_transform(kafka(name), config, records, broken=broken)


def test_predicates_answer_and_leave_records_alone() -> None:
    name = "predicates."
    assert check_predicate(kafka(f"{name}HasHeaderKey"), {"name": "h"}, [RECORD, PLAIN], broken={}) == [False, True]
    assert check_predicate(kafka(f"{name}TopicNameMatches"), {"pattern": "or.*"}, [RECORD, PLAIN], broken={"pattern": "("}) == [True, True]
    assert check_predicate(kafka(f"{name}RecordIsTombstone"), {}, [RECORD, PLAIN]) == [False, False]


@pytest.mark.parametrize(
    ("plugin", "samples", "keeps_schemas"),
    [
        (JsonConverter, [(ORDER, Struct(ORDER, [1, None])), (array(INT32), [1, 2]), (STRING, "é")], True),
        (ShortConverter, [(INT16, -5)], False),
        (IntegerConverter, [(INT32, 2**31 - 1)], False),
        (LongConverter, [(INT64, -(2**63))], False),
        (FloatConverter, [(FLOAT32, 0.5)], False),
        (DoubleConverter, [(FLOAT64, 0.1)], False),
        (BooleanConverter, [(BOOLEAN, True)], False),
    ],
)
def test_a_converter_reads_what_it_wrote(plugin: type[Any], samples: list[tuple[Any, Any]], keeps_schemas: bool) -> None:
    check_converter(plugin, {}, samples, keeps_schemas=keeps_schemas)


def test_the_header_converter_reads_what_it_wrote() -> None:
    check_header_converter(SimpleHeaderConverter, {}, [(STRING, "a text"), (BOOLEAN, True)], keeps_schemas=False)


def test_a_file_source_goes_on_where_it_committed_and_repeats_what_it_did_not_commit(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("one\ntwo\n")
    with SourceRun(FileStreamSourceConnector, {"file": str(lines), "topic": "t"}) as run:
        assert [record.value for record in run.take(2)] == ["one", "two"]
        run.idle()
        run.commit()
        with lines.open("a") as file:
            file.write("three\n")
        assert run.take(1)[0].value == "three"
        run.restart(commit=False)
        assert run.take(1)[0].value == "three"


def test_a_file_sink_writes_what_it_is_given_and_commits_no_more(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with SinkRun(FileStreamSinkConnector, {"file": str(target), "topics": "topic"}) as run:
        run.put(SinkRecord("topic", 0, 0, value="a"), SinkRecord("topic", 0, 1, value="b"))
        assert dict(run.commit()) == {("topic", 0): 2}
    assert target.read_text() == "a\nb\n"


class Wrong(kafka("RegexRouter")):  # type: ignore[misc]
    def apply(self, record: Any) -> Any:
        record.topic = "other"
        return record


def test_the_suite_finds_a_transform_that_changes_its_record() -> None:
    with pytest.raises(AssertionError, match="changed a record in place"):
        check_transform(Wrong, {"regex": "a", "replacement": "b"}, [SourceRecord({"p": 1}, {"o": 1}, "a")])


def test_the_suite_finds_a_configuration_with_errors() -> None:
    with pytest.raises(AssertionError, match="topic"):
        SourceRun(FileStreamSourceConnector, {"file": "x"})


def test_the_suite_finds_properties_that_should_have_been_refused() -> None:
    with pytest.raises(AssertionError, match="should refuse"):
        check_transform(kafka("RegexRouter"), {"regex": "a", "replacement": "b"}, [], broken={"regex": "a", "replacement": "b"})


def test_every_kind_of_plugin_has_an_example_among_ours() -> None:
    assert all(any(True for _ in PLUGINS.of_kind(kind)) for kind in KINDS)


def test_bytes_and_texts_come_back_as_they_were() -> None:
    made = ByteArrayConverter()
    made.configure({}, is_key=False)
    assert made.to_connect_data("t", made.from_connect_data("t", BYTES, b"\x00\xff")) == (OPTIONAL_BYTES, b"\x00\xff")
    text = StringConverter()
    text.configure({}, is_key=True)
    assert text.to_connect_data("t", text.from_connect_data("t", STRING, "é")) == (OPTIONAL_STRING, "é")
    with pytest.raises(ConfigError):
        text.configure({"converter.encoding": "no such encoding"}, is_key=True)
