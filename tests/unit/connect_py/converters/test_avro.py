"""AvroConverter against what Confluent's own converter wrote, an independent reader, and a registry's HTTP protocol.

`golden/converter_avro.jsonl` holds what Confluent's AvroConverter (schema-registry 8.5.0, Avro 1.12.0) registered, wrote and read back for
these Connect schemas and values, which are told as JsonConverter's envelopes; where it reads only, `registered` and `body` are given.
"""

import contextlib
import decimal
import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect_py.converters.avro.binary import ANYTHING, long_bytes
from connect_py.converters.avro.converter import AvroConverter
from connect_py.converters.avro.schema import avro_text, parse_avro
from connect_py.converters.json_converter import JsonConverter
from connect_py.converters.protobuf.converter import ProtobufConverter
from connect_py.converters.registry.wire import frame, message_indexes, read_message_indexes, zigzag
from connect_py.data import Struct, Type
from connect_py.data.avro_names import scrub_name
from connect_py.data.schema import BOOLEAN, BYTES, FLOAT64, INT32, INT64, OPTIONAL_STRING, STRING, array, decimal_schema, map_of, struct
from connect_py.errors import ConfigError, DataError, RetriableError
from tests.fix_registry import SchemaRegistry
from tests.paths import GOLDEN as RECORDINGS
from tests.seeds import examples

GOLDEN = [json.loads(line) for line in (RECORDINGS / "converter_avro.jsonl").read_text().splitlines()]
ROW = struct([("id", INT32), ("name", OPTIONAL_STRING), ("price", decimal_schema(2))], name="com.acme.Row")
VALUE = Struct(ROW, [7, "x", decimal.Decimal("2.22")])


@pytest.fixture(scope="module")
def shared_registry() -> Iterator[SchemaRegistry]:
    running = SchemaRegistry()
    yield running
    running.stop()


_MADE: dict[str, AvroConverter] = {}


def configured(case: dict[str, Any], registry: SchemaRegistry) -> AvroConverter:
    """A converter for a golden case; one for all cases of the same properties, since each sets up TLS."""
    key = json.dumps(case["config"])
    if key not in _MADE:
        _MADE[key] = converter(registry, **{name.replace(".", "_"): value for name, value in case["config"].items()})
    return _MADE[key]


def converter(registry: SchemaRegistry, *, is_key: bool = False, **properties: str) -> AvroConverter:
    made = AvroConverter()
    given = {name.replace("_", "."): value for name, value in properties.items()}
    made.configure({"schema.registry.url": registry.url, "max.retries": "0", **given}, is_key=is_key)
    return made


def envelopes(schemas: bool = True) -> JsonConverter:
    made = JsonConverter()
    made.configure({"schemas.enable": str(schemas)}, is_key=False)
    return made


@pytest.mark.parametrize("case", GOLDEN, ids=range(len(GOLDEN)))
def test_schema_and_bytes_are_those_of_confluents_converter_and_read_back_as_it_reads_them(case: dict[str, Any], shared_registry):
    made = configured(case, shared_registry)
    topic = f"t{GOLDEN.index(case)}"
    if "connect" in case:
        schema, value = envelopes("schemaless" not in case).to_connect_data(topic, case["connect"].encode())
        data = made.from_connect_data(topic, schema, value)
        if case["bytes"] is None:
            assert data is None
            return
        assert shared_registry.text_of(int.from_bytes(data[1:5])) == case["schema"]
        assert data[5:].hex() == case["bytes"][10:]
    else:
        data = frame(shared_registry.add(f"{topic}-value", case["registered"])) + bytes.fromhex(case["body"])
    back = envelopes().from_connect_data(topic, *made.to_connect_data(topic, data))
    assert json.loads(back) == json.loads(case["back"])


scalars = st.one_of(
    st.tuples(st.just(INT64), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(INT32), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just(FLOAT64), st.floats(allow_nan=False)),
    st.tuples(st.just(BOOLEAN), st.booleans()),
    st.tuples(st.just(STRING), st.text()),
    st.tuples(st.just(BYTES), st.binary()),
)


@settings(max_examples=examples(60))
@given(fields=st.lists(scalars, min_size=1, max_size=8), nulls=st.lists(st.booleans(), min_size=8, max_size=8))
def test_an_independent_reader_finds_the_same_values(shared_registry, fields, nulls):
    schema = struct([(f"f{at}", part.as_optional() if nulls[at] else part) for at, (part, _) in enumerate(fields)], name="com.acme.Any")
    values = [None if nulls[at] and at % 2 else value for at, (_, value) in enumerate(fields)]
    made = configured({"config": {}}, shared_registry)
    data = made.from_connect_data("any", schema, Struct(schema, values))
    text = shared_registry.text_of(int.from_bytes(data[1:5]))
    read = fastavro.schemaless_reader(io.BytesIO(data[5:]), json.loads(text), None)
    assert list(read.values()) == values
    assert made.to_connect_data("any", data)[1].values == values


@settings(max_examples=examples(1000), deadline=None)
@given(
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.builds(lambda bits, near: (1 << bits) + near, st.integers(0, 62), st.integers(-2, 1)))
)
def test_whole_numbers_have_seven_bits_a_byte(number: int):
    assert long_bytes(number) == zigzag(number)


def test_collections_read_by_an_independent_reader(shared_registry):
    row = ROW.as_optional()
    schema = struct([("a", array(map_of(STRING, INT64))), ("m", map_of(INT32, STRING)), ("s", row)], name="com.acme.All")
    value = Struct(schema, [[{"k": 1}, {}], {5: "five", 6: "six"}, Struct(row, VALUE.values)])
    data = converter(shared_registry).from_connect_data("all", schema, value)
    read = fastavro.schemaless_reader(io.BytesIO(data[5:]), json.loads(shared_registry.text_of(int.from_bytes(data[1:5]))), None)
    assert read == {
        "a": [{"k": 1}, {}],
        "m": [{"key": 5, "value": "five"}, {"key": 6, "value": "six"}],
        "s": {"id": 7, "name": "x", "price": decimal.Decimal("2.22")},
    }


def test_blocks_with_sizes_as_other_writers_make_them_are_read(schema_registry):
    schema_id = schema_registry.add("t-value", '{"type":"array","items":"int"}')
    schema, value = converter(schema_registry).to_connect_data("t", frame(schema_id) + bytes.fromhex("0304020400"))
    assert (schema.type, value) == (Type.ARRAY, [1, 2])


def test_a_schema_is_registered_once_for_all_its_records(schema_registry):
    made = converter(schema_registry)
    for _ in range(5):
        made.from_connect_data("t", ROW, VALUE)
    assert schema_registry.requests == ["POST /subjects/t-value/versions?normalize=False"]


def test_an_equal_schema_that_is_another_object_is_not_registered_again(schema_registry):
    made = converter(schema_registry)
    for _ in range(3):
        made.from_connect_data("t", struct([("id", INT32)], name="com.acme.Id"), Struct(struct([("id", INT32)], name="com.acme.Id"), [1]))
    assert len(schema_registry.requests) == 1


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [("TopicNameStrategy", "t-key"), ("RecordNameStrategy", "com.acme.Row"), ("TopicRecordNameStrategy", "t-com.acme.Row")],
)
def test_subjects_are_named_by_the_strategy_of_a_java_class(schema_registry, strategy, subject):
    name = f"io.confluent.kafka.serializers.subject.{strategy}"
    converter(schema_registry, is_key=True, key_subject_name_strategy=name).from_connect_data("t", ROW, VALUE)
    assert list(schema_registry.subjects) == [subject]


def test_a_strategy_of_ones_own_is_refused(schema_registry):
    with pytest.raises(ConfigError, match=r"com\.acme\.Mine for configuration value\.subject\.name\.strategy: it must be one of"):
        converter(schema_registry, value_subject_name_strategy="com.acme.Mine")


def test_a_schema_that_may_not_be_registered_must_be_known(schema_registry):
    made = converter(schema_registry, auto_register_schemas="false")
    with pytest.raises(DataError, match=r"subject 't-value' \(auto\.register\.schemas is false\)"):
        made.from_connect_data("t", ROW, VALUE)
    converter(schema_registry).from_connect_data("t", ROW, VALUE)
    assert made.from_connect_data("t", ROW, VALUE)[:5] == frame(1)


def test_the_latest_schema_is_written_by_the_names_of_fields(schema_registry):
    fields = [
        {"name": "extra", "type": "string", "default": "e"},
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["string", "null"]},
    ]
    latest = json.dumps({"type": "record", "name": "Other", "fields": fields})
    schema_registry.add("t-value", latest)
    made = converter(schema_registry, auto_register_schemas="false", use_latest_version="true")
    schema = struct([("id", INT32), ("name", OPTIONAL_STRING)], name="com.acme.Row")
    data = made.from_connect_data("t", schema, Struct(schema, [7, "x"]))
    assert fastavro.schemaless_reader(io.BytesIO(data[5:]), json.loads(latest), None) == {"extra": "e", "id": 7, "name": "x"}


def test_the_latest_schema_must_have_every_field(schema_registry):
    schema_registry.add("t-value", '{"type":"record","name":"Other","fields":[{"name":"id","type":"int"}]}')
    made = converter(schema_registry, auto_register_schemas="false", use_latest_version="true")
    with pytest.raises(DataError, match="registered schema Other has no field for name, price"):
        made.from_connect_data("t", ROW, VALUE)


def test_an_incompatible_schema_is_refused_with_its_subject(schema_registry):
    schema_registry.refused.add("t-value")
    with pytest.raises(DataError, match=r"register the AVRO schema of subject 't-value'.*incompatible.*HTTP 409"):
        converter(schema_registry).from_connect_data("t", ROW, VALUE)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_retriable_and_the_next_call_succeeds(schema_registry, status):
    made = converter(schema_registry)
    schema_registry.failures.append(status)
    with pytest.raises(RetriableError, match=f"HTTP {status}"):
        made.from_connect_data("t", ROW, VALUE)
    assert made.from_connect_data("t", ROW, VALUE) is not None


def test_a_registry_that_is_away_is_retriable_and_no_credentials_are_told(schema_registry):
    made = converter(schema_registry)
    schema_registry.stop()
    away = AvroConverter()
    away.configure({"schema.registry.url": schema_registry.url.replace("//", "//ann:s3cret@"), "max.retries": "0"}, is_key=False)
    for one in (made, away):
        with pytest.raises(RetriableError, match="does not answer") as failed:
            one.from_connect_data("t", ROW, VALUE)
        assert "s3cret" not in str(failed.value)


def test_the_next_address_is_tried_when_one_does_not_answer(schema_registry):
    made = AvroConverter()
    made.configure({"schema.registry.url": f"http://127.0.0.1:1, {schema_registry.url}", "max.retries": "0"}, is_key=False)
    assert made.from_connect_data("t", ROW, VALUE)[:5] == frame(1)


def test_name_and_password_or_a_token_are_sent(schema_registry):
    schema_registry.password, schema_registry.token = "ann:s3cret", "t0ken"
    with pytest.raises(DataError, match="HTTP 401"):
        converter(schema_registry).from_connect_data("t", ROW, VALUE)
    basic = converter(schema_registry, basic_auth_credentials_source="USER_INFO", basic_auth_user_info="ann:s3cret")
    bearer = converter(schema_registry, bearer_auth_credentials_source="STATIC_TOKEN", bearer_auth_token="t0ken")
    for made in (basic, bearer):
        assert made.from_connect_data("t", ROW, VALUE)[:5] == frame(1)


def test_a_java_key_store_is_refused_with_the_way_out(schema_registry):
    with pytest.raises(ConfigError, match=r"Convert it to PEM"):
        converter(schema_registry, ssl_truststore_location="/etc/trust.jks")


def test_referenced_schemas_are_fetched(schema_registry):
    schema_registry.add("point", '{"type":"record","name":"Point","namespace":"g","fields":[{"name":"x","type":"int"}]}')
    line = '{"type":"record","name":"Line","namespace":"g","fields":[{"name":"from","type":"Point"},{"name":"to","type":"g.Point"}]}'
    line_id = schema_registry.add("t-value", line, references=[{"name": "g.Point", "subject": "point", "version": 1}])
    schema, value = converter(schema_registry).to_connect_data("t", frame(line_id) + b"\2\4")
    assert schema.fields[0].schema.name == "g.Point"
    assert repr(value) == "Struct{from=Struct{x=1},to=Struct{x=2}}"


def test_the_registrys_version_is_the_schemas_unless_the_topic_has_another_subject(schema_registry):
    text = '{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]}'
    schema_registry.add("t-value", '"string"')
    known = frame(schema_registry.add("t-value", text)) + b"\2"
    assert converter(schema_registry).to_connect_data("t", known)[0].version == 2
    assert converter(schema_registry).to_connect_data("copy-of-t", known)[0].version is None


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b'{"a":1}', b"\1\0\0\0\1\2"])
def test_bytes_without_a_frame_are_refused(schema_registry, data):
    with pytest.raises(DataError, match="Unknown magic byte!"):
        converter(schema_registry).to_connect_data("t", data)


def test_bytes_that_end_early_are_refused_wherever_they_are_cut(schema_registry):
    made = converter(schema_registry)
    whole = made.from_connect_data("t", ROW, VALUE)
    for end in range(5, len(whole)):
        with pytest.raises(DataError, match="no value of the Avro schema"):
            made.to_connect_data("t", whole[:end])


@settings(max_examples=examples(150))
@given(data=st.binary(max_size=40), which=st.integers(0, 2))
def test_any_bytes_are_a_value_or_a_data_error(shared_registry, data, which):
    texts = (
        avro_text(ANYTHING),
        '{"type":"record","name":"F","fields":[{"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}},'
        '{"name":"u","type":["null","int",{"type":"map","values":"string"}]},{"name":"d","type":{"type":"int","logicalType":"date"}}]}',
        '{"type":"array","items":{"type":"fixed","name":"X","size":3}}',
    )
    start = frame(shared_registry.add("fuzz-value", texts[which]))
    made = configured({"config": {}}, shared_registry)
    with contextlib.suppress(DataError):
        made.to_connect_data("fuzz", start + data)


def test_a_value_that_is_nested_without_end_is_refused_and_ends_no_process(schema_registry):
    start = frame(schema_registry.add("deep-value", avro_text(ANYTHING)))
    array_of_one = b"\0" * 7 + b"\2\2"
    with pytest.raises(DataError, match="no value of the Avro schema"):
        converter(schema_registry).to_connect_data("deep", start + array_of_one * 20_000)


def test_a_schema_of_another_kind_is_refused(schema_registry):
    schema_id = schema_registry.add("t-value", "{}", "JSON")
    with pytest.raises(DataError, match=r"Schema 1 on topic 't' is JSON, and io\.confluent\.connect\.avro\.AvroConverter reads AVRO"):
        converter(schema_registry).to_connect_data("t", frame(schema_id) + b"{}")


def test_nulls_are_tombstones_and_a_null_that_may_not_be_is_refused(schema_registry):
    made = converter(schema_registry)
    assert made.from_connect_data("t", None, None) is None
    assert made.from_connect_data("t", ROW.as_optional(), None) is None
    assert made.to_connect_data("t", None) == (None, None)
    with pytest.raises(DataError, match="null value for non-optional schema"):
        made.from_connect_data("t", ROW, None)
    assert not schema_registry.requests


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (INT32, 2**31, "not in the range of INT32"),
        (INT32, "1", "Invalid type for INT32: class java.lang.String"),
        (STRING, b"x", r"Invalid type for STRING: class \[B"),
        (ROW, Struct(struct([("id", INT32)]), [1]), "Mismatching struct schema"),
        (decimal_schema(2), decimal.Decimal("1.234"), "mismatching scale"),
    ],
)
def test_values_that_are_not_of_their_schema_are_refused(schema_registry, schema, value, why):
    with pytest.raises(DataError, match=why):
        converter(schema_registry).from_connect_data("t", schema, value)


def test_two_unlike_types_of_one_name_are_refused(schema_registry):
    schema = struct([("a", map_of(INT32, STRING)), ("b", map_of(INT64, STRING))], name="com.acme.Two")
    with pytest.raises(DataError, match=r"both be the Avro type io\.confluent\.connect\.avro\.MapEntry"):
        converter(schema_registry).from_connect_data("t", schema, Struct(schema, [{}, {}]))


@pytest.mark.parametrize(
    ("made", "missing", "extra"),
    [(AvroConverter, "confluent_kafka.schema_registry", "registry"), (ProtobufConverter, "google.protobuf", "protobuf")],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(schema_registry, monkeypatch, made, missing, extra):
    for name in [name for name in sys.modules if name.startswith(("google.protobuf", "connect_py.converters.protobuf.", missing))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigError, match=rf"needs the Python package '{missing}.*connect-py-worker\[{extra}\]"):
        made().configure({"schema.registry.url": schema_registry.url}, is_key=False)


def test_names_that_avro_refuses_are_scrubbed_as_confluent_does():
    assert [scrub_name(name) for name in ("ok_1", "a-b", "1c", "ü", "a b", "a.b")] == ["ok_1", "a_b", "x1c", "_C3_BC", "a_b", "a_b"]


@given(st.lists(st.integers(0, 300), min_size=1, max_size=5))
def test_message_indexes_read_back(path):
    written = message_indexes(path)
    assert read_message_indexes(b"xx" + written + b"rest", 2) == (path, 2 + len(written))


def test_a_schema_is_printed_as_it_was_read():
    fields = '{"name":"x","type":["null","A"],"default":null},{"name":"y","type":"double","default":1.0E10}'
    text = '{"type":"record","name":"A","namespace":"n","fields":[' + fields + "]}"
    assert avro_text(parse_avro(text)) == text
