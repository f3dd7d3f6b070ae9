"""A null stays a null on its way through the chain; whether a default takes its place is for each transform and converter to decide."""

import json

from connect_py.api import EncodedBatch, Route
from connect_py.data import Schema, Type
from connect_py.data.schema import INT32, struct
from connect_py.plugins.registry import Plugins
from connect_py.task.chain import Chain
from connect_py.task.failed_records import SourceErrorReporter, Tolerance
from connectors.postgres.encode.source_info import SourceBlock

JSON = "org.apache.kafka.connect.json.JsonConverter"
ROW = struct([("id", INT32), ("n", Schema(Type.INT32, optional=True, default=7))], name="t.Value")
PLAIN = {"key.converter": JSON, "value.converter": JSON, "key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}


def chain(**config: str) -> Chain:
    given = PLAIN | {name.replace("_", "."): value for name, value in config.items()}
    errors = SourceErrorReporter("c", 0, given)
    return Chain(Plugins.discover(), {}, given, Tolerance(given, lambda seconds: False, errors), errors)


def written(made: Chain) -> object:
    """What the chain makes of a row whose column is null."""
    route = Route("t", None, ROW)
    (record,) = made.records(EncodedBatch([(route, None, b'{"id":1,"n":null}')], {}, {}))
    produced = made.convert(record)
    assert produced is not None
    assert produced.value is not None
    return json.loads(produced.value)


def test_a_null_that_has_a_default_is_written_as_the_converter_wants_it():
    replace = "org.apache.kafka.connect.transforms.ReplaceField$Value"
    kept = {"transforms": "r", "transforms_r_type": replace, "transforms_r_exclude": "x", "transforms_r_replace.null.with.default": "false"}
    assert written(chain(value_converter_replace_null_with_default="false")) == {"id": 1, "n": None}
    assert written(chain(value_converter_replace_null_with_default="false", **kept)) == {"id": 1, "n": None}
    assert written(chain(**kept)) == {"id": 1, "n": 7}


def test_a_null_in_a_required_field_is_left_to_the_converter_too():
    """A delete's row before has only the key where the table's replica identity gives no more."""
    required = struct([("id", INT32), ("n", Schema(Type.INT32, default=7))], name="t.Value")
    route = Route("t", None, required)
    made = chain(value_converter_replace_null_with_default="false")
    (record,) = made.records(EncodedBatch([(route, None, b'{"id":1,"n":null}')], {}, {}))
    assert record.value.without_default("n") is None
    assert record.value["n"] == 7


def test_connectors_are_asked_for_nulls_unless_their_bytes_go_to_kafka_as_they_are():
    assert chain().encoding.nulls_as_defaults
    assert not chain(value_converter_replace_null_with_default="false").encoding.nulls_as_defaults


def test_the_snapshot_marker_of_a_streamed_event_is_null_and_shows_as_false():
    for defaults, shown in ((True, "false"), (False, None)):
        block = SourceBlock("3.6.1.Final", "shop", "db", "public", "t", nulls_as_defaults=defaults)
        assert json.loads(block.transaction(1001, 7, 9)(10))["snapshot"] == shown
        assert json.loads(block.snapshot("last", 1001, 7, 10))["snapshot"] == "last"
