"""Rows that stay JSON through transforms are, byte by byte, what the same transforms make of records."""

from __future__ import annotations

import datetime
import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from connect_py.api import EncodedBatch, JsonEncoding, Route, SourceRecord
from connect_py.api.record import EncodedRow, KeyText
from connect_py.converters.json_converter import JsonConverter
from connect_py.data import Field, Schema, Struct, Type
from connect_py.data.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    array,
    struct,
)
from connect_py.data.times import EPOCH
from connect_py.errors import FatalTaskError
from connect_py.plugins.registry import Plugins, discover
from connect_py.task.chain import Chain
from connect_py.task.failed_records import SourceErrorReporter, Tolerance
from connect_py.transforms.routers import RegexRouter
from connectors.engine.envelope import envelope_schema, key_schema, row_schema
from connectors.postgres.encode.source_info import SOURCE_SCHEMA
from tests.fix_registry import SchemaRegistry
from tests.seeds import seeds, size

JSON = "org.apache.kafka.connect.json.JsonConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"
KAFKA, DEBEZIUM = "org.apache.kafka.connect.transforms.", "io.debezium.transforms."
KEEPS = "x.Keeps"


class Keeps:
    """Sees records, so that a chain with it has to decode rows; changes nothing."""

    java_name = KEEPS
    version = "1"

    def configure(self, config: Any) -> None:
        pass

    def apply(self, record: SourceRecord) -> SourceRecord:
        return record

    def close(self) -> None:
        pass


PLUGINS = Plugins({**discover(), KEEPS: Keeps})


def chain(config: dict[str, str], *more: str) -> Chain:
    """A chain of the transforms of `config`, and of one that sees records if it is wanted."""
    if more:
        config = {**config, "transforms": ",".join([config["transforms"], *more])}
        config |= {f"transforms.{name}.type": KEEPS for name in more}
    errors = SourceErrorReporter("c", 0, config)
    return Chain(
        PLUGINS, {"key.converter": JSON, "value.converter": JSON}, config, Tolerance(config, lambda seconds: False, errors), errors
    )


@pytest.fixture(scope="module")
def registry() -> Iterator[SchemaRegistry]:
    running = SchemaRegistry()
    yield running
    running.stop()


def avro_rows(registry: SchemaRegistry) -> dict[str, str]:
    """The properties of keys and values in Avro."""
    sides = ("key.converter", "value.converter")
    return dict.fromkeys(sides, AVRO) | {f"{side}.schema.registry.url": registry.url for side in sides}


# -- random events -----------------------------------------------------------------------------------------------------------------

NAMES = ["id", "after", "before", "source", "op", "name", "ts_ms", "a%b", "größe", 'quo"te', "back\\slash"]
TEXTS = [
    "plain",
    "",
    'says "so"',
    '","source":{"version":"x',
    '{"before":null,"after":{}}',
    ',"after":null',
    "\\",
    "ünï",
    "\U0001f600",
    "line\nbreak\x01",
    "a%s%b",
    "null",
    "2026-11-29 01:02:03",
    "true",
    "12",
    "-7",
    "1.5e3",
    "NaN",
]
NUMBER = Schema(Type.BYTES, name=DECIMAL, version=1, parameters=(("scale", "2"), ("connect.decimal.precision", "10")))
NESTED = struct([("after", STRING), ("x", INT32)], name="nested", optional=True)
DEEP = struct([("in", NESTED), ("n", NUMBER), ("name", array(INT32))], optional=True)
MAP = Schema(Type.MAP, key_schema=STRING, value_schema=STRING.as_optional(), optional=True)
DAY = Schema(Type.INT32, name=DATE, version=1)
CLOCK = Schema(Type.INT32, name=TIME, version=1)
INSTANT = Schema(Type.INT64, name=TIMESTAMP, version=1)
MILLIS = Schema(Type.INT64, name="io.debezium.time.Timestamp", version=1)
ZONED = Schema(Type.STRING, name="io.debezium.time.ZonedTimestamp", version=1)
TYPES: list[tuple[Schema, Callable[[random.Random], Any]]] = [
    (INT32, lambda chance: chance.randrange(-(2**31), 2**31)),
    (INT64, lambda chance: chance.randrange(-(2**63), 2**63)),
    (STRING, lambda chance: chance.choice(TEXTS)),
    (BOOLEAN, lambda chance: chance.random() < 0.5),
    (FLOAT64, lambda chance: chance.choice([0.0, -1.5, 1e300, 12345678.9])),
    (NUMBER, lambda chance: Decimal(chance.randrange(-(10**9), 10**9)).scaleb(-2)),
    (INT8, lambda chance: chance.randrange(-128, 128)),
    (INT16, lambda chance: chance.choice([0, -1, 32767])),
    (INT32, lambda chance: chance.randrange(-20, 20)),
    (STRING, lambda chance: str(chance.randrange(-20, 200))),
    (FLOAT32, lambda chance: chance.choice([0.5, -0.0, 1e10, math.inf, 16777216.0])),
    (FLOAT64, lambda chance: chance.choice([math.nan, -math.inf, 5e-324, 1e7, 127.9, 3e9])),
    (BYTES, lambda chance: chance.randbytes(chance.randrange(5))),
    (DAY, lambda chance: EPOCH.date() + datetime.timedelta(days=chance.randrange(-9999, 99999))),
    (CLOCK, lambda chance: (EPOCH + datetime.timedelta(milliseconds=chance.randrange(86_400_000))).time()),
    (INSTANT, lambda chance: EPOCH + datetime.timedelta(milliseconds=chance.randrange(-(10**12), 10**13))),
    (
        ZONED,
        lambda chance: f"2{chance.randrange(1000):03d}-{chance.randrange(1, 13):02d}-03T04:05:06{chance.choice(['Z', '.120Z', '+02:00'])}",
    ),
    (Schema(Type.INT64, name="io.debezium.time.MicroTimestamp", version=1), lambda chance: chance.randrange(-(10**15), 10**16)),
    (MILLIS, lambda chance: chance.choice([0, -1, 1795917723123, -62135596800001, chance.randrange(10**12)])),
]
NESTING: list[tuple[Schema, Callable[[random.Random], Any]]] = [
    (NESTED, lambda chance: Struct(NESTED, [chance.choice(TEXTS), 1])),
    (MAP, lambda chance: {chance.choice(["after", "source", "k"]): chance.choice([*TEXTS, None])}),
    (array(STRING), lambda chance: [chance.choice(TEXTS) for _ in range(chance.randrange(3))]),
    (array(array(NUMBER.as_optional())), lambda chance: [[Decimal("1.00"), None], []] * chance.randrange(3)),
    (array(NESTED), lambda chance: [None, Struct(NESTED, [chance.choice(TEXTS), 1])] * chance.randrange(3)),
    (DEEP, lambda chance: Struct(DEEP, [chance.choice([None, Struct(NESTED, [chance.choice(TEXTS), 1])]), Decimal("1.00"), [1]])),
    (Schema(Type.MAP, key_schema=INT32, value_schema=INT32), lambda chance: {1: 2}),
]
#: As headers show keys.
NUMBERS = JsonEncoding(key_schemas=False, key_decimals_numeric=True)
DEFAULTS: dict[str | Type, Any] = {
    Type.INT16: -5,
    Type.INT32: 7,
    Type.INT64: 8,
    Type.STRING: "unset",
    Type.BOOLEAN: True,
    Type.FLOAT32: 0.5,
    Type.FLOAT64: 1.5,
    Type.BYTES: b"\x07",
    DECIMAL: Decimal("1.00"),
    DATE: EPOCH.date(),
    TIME: datetime.time(1),
    TIMESTAMP: EPOCH,
}


class Table:
    """A table with random columns, and random events of it."""

    def __init__(self, chance: random.Random, topic: str) -> None:
        self.chance, self.topic = chance, topic
        usual = NAMES[:-2] if chance.random() < 0.8 else NAMES
        names = chance.sample(usual, chance.randrange(1, 8)) if chance.random() < 0.9 else []
        if names and "id" not in names and chance.random() < 0.5:
            names[0] = "id"
        self.columns = []
        for name in names:
            schema, value = chance.choice(TYPES if chance.random() < 0.85 else NESTING)
            if name != "id" and chance.random() < 0.5:
                schema = schema.as_optional()
            default = DEFAULTS.get(schema.name or schema.type, DEFAULTS.get(schema.type))
            if default is not None and chance.random() < 0.3:
                schema = schema.with_default(default)
            self.columns.append((Field(name, schema), value))
        fields = [(field.name, field.schema) for field, _ in self.columns]
        self.row = row_schema(topic, fields)
        self.envelope = envelope_schema(topic, self.row, SOURCE_SCHEMA)
        self.key = key_schema(topic, fields[:1] if chance.random() < 0.9 else [])
        headers: tuple[tuple[str, str], ...] = (("__debezium.context.connectorName", "c"),) if chance.random() < 0.3 else ()
        if self.key is not None and chance.random() < 0.2:
            ((_, text, _),) = encoded([(Route(topic, self.key, self.row), self.key_of(self.values()), None)], NUMBERS)
            headers += (("__debezium.oldkey", KeyText((text or b"").decode())),)
        self.route = Route(topic, self.key, self.envelope, headers, chance.choice([None, None, 3]))

    def key_of(self, row: Struct) -> Struct | None:
        return None if self.key is None else Struct(self.key, row.values[:1])

    def values(self) -> Struct:
        missing = [field.schema.optional and self.chance.random() < 0.3 for field, _ in self.columns]
        return Struct(self.row, [None if no else value(self.chance) for (_, value), no in zip(self.columns, missing, strict=True)])

    def record(self) -> tuple[Route, Struct | None, Struct | None]:
        """An event, or a tombstone."""
        chance, row = self.chance, self.values()
        key = self.key_of(row)
        operation = chance.choice(["r", "r", "c", "u", "u", "d", "tombstone", "t"])
        if operation == "tombstone":
            return self.route, key, None
        before = row if operation == "d" else self.values() if operation == "u" and chance.random() < 0.7 else None
        after = None if operation in "dt" else row
        source = [
            "3.6.1.Final",
            "postgresql",
            "shop",
            1795,
            chance.choice(["true", "last", None]),
            'd"b',
            None,
            1,
            2,
            "public",
            self.topic,
            7,
        ]
        transaction = None if chance.random() < 0.7 else Struct(self.envelope.fields[3].schema, ["7:9", 1, 2])
        block = Struct(SOURCE_SCHEMA, [*source, chance.randrange(9), None, chance.choice(TEXTS), None])
        return self.route, key, Struct(self.envelope, [before, after, block, transaction, operation, 5, 6, 7])


def encoded(rows: list[tuple[Route, Any, Any]], encoding: JsonEncoding) -> list[EncodedRow]:
    """Rows as a connector serialises them for a chain."""

    def converter(*, schemas: bool, numeric: bool) -> JsonConverter:
        made = JsonConverter()
        decimals, defaults = "NUMERIC" if numeric else "BASE64", str(encoding.nulls_as_defaults)
        made.configure({"schemas.enable": str(schemas), "decimal.format": decimals, "replace.null.with.default": defaults})
        return made

    key_converter = converter(schemas=encoding.key_schemas, numeric=encoding.key_decimals_numeric)
    value_converter = converter(schemas=encoding.value_schemas, numeric=encoding.value_decimals_numeric)
    return [
        (
            route,
            None if key is None else key_converter.from_connect_data("", route.key_schema, key),
            None if value is None else value_converter.from_connect_data("", route.value_schema, value),
        )
        for route, key, value in rows
    ]


def records_of(made: Chain, batch: EncodedBatch) -> list[Any]:
    """What a chain makes of the records of a batch, up to one that fails."""
    out: list[Any] = []
    try:
        for record in made.records(batch):
            produced = made.convert(record)
            if produced is not None:
                out.append((produced.topic, produced.partition, produced.key, produced.value, produced.headers))
    except FatalTaskError as error:
        out.append(str(error.__cause__))
    return out


def rows_of(made: Chain, batch: EncodedBatch) -> list[Any] | None:
    """What a chain makes of the rows of a batch; None when they must be decoded."""
    changed = made.encoded(batch)
    if changed is None:
        return None
    return [(route.topic, route.partition, key, value, made.headers_of(route)) for route, key, value in changed.rows]


UNWRAP = {"transforms.zone.type": f"{DEBEZIUM}TimezoneConverter", "transforms.unwrap.type": f"{DEBEZIUM}ExtractNewRecordState"}
STEPS: dict[str, list[dict[str, str]]] = {
    "zone": [
        {"converted.timezone": "Europe/Berlin"},
        {"converted.timezone": "+08:00", "include.list": "topic:shop.a1:id,shop.b2"},
        {"converted.timezone": "America/New_York", "exclude.list": "shop.a1:id"},
        {"converted.timezone": "UTC", "include.list": "shop.b3:after.id,shop.b3:name"},
        {"converted.timezone": "Asia/Kolkata", "include.list": "topic:shop.a1:source.ts_ms"},
    ],
    "unwrap": [
        {},
        {"add.fields": "op,table,lsn,source.ts_ms,ts_ms,transaction.id"},
        {"add.fields": "origin:from,op", "add.fields.prefix": "m_", "delete.tombstone.handling.mode": "rewrite"},
        {"delete.tombstone.handling.mode": "rewrite-with-tombstone"},
        {"delete.tombstone.handling.mode": "drop", "add.fields": "name,nothing"},
        {"delete.tombstone.handling.mode": "delete-to-tombstone", "add.fields": "db,db:again", "add.fields.prefix": ""},
    ],
    "route": [
        {"type": f"{KAFKA}RegexRouter", "regex": "shop\\.(.*)", "replacement": "all.$1"},
        {"type": f"{DEBEZIUM}ByLogicalTableRouter", "topic.regex": "shop\\.(.)(.)", "topic.replacement": "shop.$1"},
        {
            "type": f"{DEBEZIUM}ByLogicalTableRouter",
            "topic.regex": "(.*)",
            "topic.replacement": "one",
            "key.enforce.uniqueness": "false",
        },
    ],
    "fields": [
        {"type": f"{KAFKA}ReplaceField$Value", "exclude": "name,source,after"},
        {"type": f"{KAFKA}ReplaceField$Value", "include": "id,a%b", "renames": "id:number,a%b:c%d", "replace.null.with.default": "false"},
        {"type": f"{KAFKA}InsertField$Value", "static.field": "where", "static.value": "here", "topic.field": "topic!"},
        {"type": f"{KAFKA}InsertField$Value", "timestamp.field": "at", "partition.field": "part?"},
        {"type": f"{KAFKA}SetSchemaMetadata$Value", "schema.name": "other", "schema.version": "4"},
        {"type": f"{KAFKA}ExtractField$Value", "field": "name"},
        {"type": f"{KAFKA}ExtractField$Value", "field": "id", "replace.null.with.default": "false"},
        {"type": f"{KAFKA}ExtractField$Value", "field": "after"},
        {"type": f"{KAFKA}Filter", "predicate": "gone"},
        {"type": f"{KAFKA}Filter", "predicate": "some", "negate": "true"},
        {"type": f"{KAFKA}Filter", "predicate": "marked"},
    ],
    "values": [
        {"type": f"{KAFKA}Cast$Value", "spec": "id:string"},
        {"type": f"{KAFKA}Cast$Value", "spec": "id:int64,name:boolean,after:float64", "replace.null.with.default": "false"},
        {"type": f"{KAFKA}Cast$Value", "spec": "id:float32,op:int16,ts_ms:string,größe:string,missing:int8"},
        {"type": f"{KAFKA}Cast$Value", "spec": "id:int8,source:string,a%b:boolean,before:string,after:string"},
        {"type": f"{KAFKA}TimestampConverter$Value", "field": "id", "target.type": "string", "format": "yyyy-MM-dd HH:mm:ss.SSS"},
        {"type": f"{KAFKA}TimestampConverter$Value", "field": "ts_ms", "target.type": "unix", "unix.precision": "microseconds"},
        {"type": f"{KAFKA}TimestampConverter$Value", "field": "id", "target.type": "Date", "format": "d"},
        {"type": f"{KAFKA}TimestampConverter$Value", "field": "größe", "target.type": "Timestamp", "unix.precision": "seconds"},
        {"type": f"{KAFKA}TimestampConverter$Value", "field": "op", "target.type": "Timestamp", "format": "yyyy-MM-dd HH:mm:ss"},
        {"type": f"{KAFKA}TimestampConverter$Value", "field": "id", "target.type": "Time", "replace.null.with.default": "false"},
        {"type": f"{KAFKA}MaskField$Value", "fields": "id"},
        {"type": f"{KAFKA}MaskField$Value", "fields": "id,name,op,a%b,größe", "replacement": "12"},
        {"type": f"{KAFKA}MaskField$Value", "fields": "name,id,before", "replace.null.with.default": "false"},
        {"type": f"{KAFKA}MaskField$Value", "fields": "name", "replacement": "ä%s"},
    ],
    "headers": [
        {"type": f"{KAFKA}InsertHeader", "header": "where", "value.literal": "in the größte shop"},
        {"type": f"{KAFKA}InsertHeader", "header": "__debezium.context.connectorName", "value.literal": "again", "predicate": "marked"},
        {"type": f"{KAFKA}DropHeaders", "headers": "__debezium.context.connectorName,x"},
        {"type": f"{KAFKA}DropHeaders", "headers": "x", "predicate": "gone"},
    ],
    "flat": [
        {"type": f"{KAFKA}Flatten$Value"},
        {"type": f"{KAFKA}Flatten$Value", "delimiter": "_%_"},
        {"type": f"{KAFKA}Flatten$Key", "delimiter": ""},
    ],
    "hoist": [
        {"type": f"{KAFKA}HoistField$Value", "field": "line"},
        {"type": f"{KAFKA}HoistField$Value", "field": "a%b"},
        {"type": f"{KAFKA}HoistField$Key", "field": "id"},
    ],
    "key": [
        {"type": f"{KAFKA}TimestampConverter$Key", "field": "id", "target.type": "unix", "unix.precision": "nanoseconds"},
        {"type": f"{KAFKA}MaskField$Key", "fields": "id"},
        {"type": f"{KAFKA}Cast$Key", "spec": "id:string"},
        {"type": f"{KAFKA}Cast$Key", "spec": "name:float64,id:int64"},
        {"type": f"{KAFKA}ValueToKey", "fields": "name,id"},
        {"type": f"{KAFKA}ValueToKey", "fields": "id"},
        {"type": f"{KAFKA}ExtractField$Key", "field": "id"},
        {"type": f"{KAFKA}ExtractField$Key", "field": "name", "predicate": "gone", "negate": "true"},
        {"type": f"{KAFKA}ReplaceField$Key", "renames": "id:key"},
        {"type": f"{KAFKA}SetSchemaMetadata$Key", "schema.name": "k"},
        {"type": f"{KAFKA}InsertField$Key", "topic.field": "t"},
    ],
}
#: What works on one value, which is not a struct.
WHOLE: list[dict[str, str]] = [
    {"type": f"{KAFKA}Cast$Value", "spec": "string"},
    {"type": f"{KAFKA}Cast$Value", "spec": "float64"},
    {"type": f"{KAFKA}Cast$Value", "spec": "int16"},
    {"type": f"{KAFKA}Cast$Value", "spec": "boolean"},
    {"type": f"{KAFKA}TimestampConverter$Value", "target.type": "string", "format": "yyyy-MM-dd'T'HH:mm:ss"},
    {"type": f"{KAFKA}TimestampConverter$Value", "target.type": "Timestamp", "replace.null.with.default": "false"},
    {"type": f"{KAFKA}TimestampConverter$Value", "target.type": "unix", "unix.precision": "seconds", "format": "yyyy-MM-dd"},
    {"type": f"{KAFKA}HoistField$Value", "field": "v"},
]
PREDICATES = {
    "predicates.gone.type": f"{KAFKA}predicates.RecordIsTombstone",
    "predicates.some.type": f"{KAFKA}predicates.TopicNameMatches",
    "predicates.some.pattern": "(shop|all).*[ab]",
    "predicates.marked.type": f"{KAFKA}predicates.HasHeaderKey",
    "predicates.marked.name": "__debezium.context.connectorName",
}


def steps_of(name: str, step: dict[str, str]) -> dict[str, str]:
    return {f"transforms.{name}.{key}": value for key, value in step.items()}


def random_config(chance: random.Random, registry: SchemaRegistry) -> dict[str, str]:
    names = [name for name in STEPS if chance.random() < (0.6 if name == "unwrap" else 0.25)] or ["unwrap"]
    if chance.random() < 0.2:
        chance.shuffle(names)
    config = {**UNWRAP, **PREDICATES, "transforms": ",".join(names)}
    for name in names:
        config |= steps_of(name, chance.choice(STEPS[name]))
    if config.get("transforms.fields.type") == f"{KAFKA}ExtractField$Value" and chance.random() < 0.8:
        names = [*(name for name in names if name not in ("values", "flat", "hoist")), "whole"]
        config |= steps_of("whole", chance.choice(WHOLE)) | {"transforms": ",".join(names)}
    for side in ("key", "value"):
        config[f"{side}.converter"] = chance.choice([JSON, JSON, AVRO])
        config[f"{side}.converter.schema.registry.url"] = registry.url
        config[f"{side}.converter.schemas.enable"] = chance.choice(["true", "false"])
        config[f"{side}.converter.decimal.format"] = chance.choice(["BASE64", "NUMERIC"])
    if chance.random() < 0.2:
        config["header.converter"] = JSON
    return config


@pytest.mark.parametrize("seed", seeds(size("CONNECT_PY_ROW_CHAINS", 60, 1000)))
def test_rows_become_what_records_become(seed: int, registry: SchemaRegistry) -> None:
    chance = random.Random(seed)
    config = random_config(chance, registry)
    rows_chain, records_chain = chain(config), chain(config, "keeps")
    tables = [Table(chance, topic) for topic in ("shop.a1", "shop.b2", "shop.b3")]
    heartbeat = struct([("ts_ms", INT64)], name="Heartbeat")
    beats = Route("beats", None, heartbeat)
    for _ in range(6):
        some = tables if chance.random() < 0.5 else [chance.choice(tables)]
        rows = [chance.choice(some).record() for _ in range(chance.randrange(1, 6))]
        if chance.random() < 0.2:
            rows.append((beats, None, Struct(heartbeat, [5])))
        batch = EncodedBatch(encoded(rows, rows_chain.encoding), {}, {})
        expected = records_of(records_chain, EncodedBatch(encoded(rows, records_chain.encoding), {}, {}))
        short = rows_of(rows_chain, batch)
        assert (records_of(rows_chain, batch) if short is None else short) == expected, (seed, config)


@pytest.mark.parametrize("literal", ["12", "true", "2026-11-29", "null", "[1]"])
def test_a_header_that_is_no_text_needs_records(literal: str) -> None:
    step = {"type": f"{KAFKA}InsertHeader", "header": "h", "value.literal": literal}
    made = chain({"transforms": "h", **steps_of("h", step)})
    batch = EncodedBatch(encoded([event(None, [1, "new"])], made.encoding), {}, {})
    assert made.encoded(batch) is None
    assert [row[4] for row in records_of(made, batch)] == [[("h", None if literal == "null" else literal.encode())]]


def needs_record(step: dict[str, str]) -> bool:
    """Whether a step handles no rows in JSON: the converter of keys may write decimals otherwise, and a null's default would show."""
    kept_nulls = ("ExtractField$Value", "MaskField$Value", "TimestampConverter$Value")
    is_kept = step.get("replace.null.with.default") == "false" and step.get("type", "").removeprefix(KAFKA) in kept_nulls
    return step.get("fields") == "name,id" or is_kept or "source.ts_ms" in step.get("include.list", "")


SHOP = struct([("id", INT64), ("name", STRING.as_optional())], name="t.Value", optional=True)
EVENT = Route("shop.a1", struct([("id", INT64)], name="k"), envelope_schema("t", SHOP, SOURCE_SCHEMA))


def event(before: list[Any] | None, after: list[Any] | None) -> tuple[Route, Struct, Struct]:
    rows = [row and Struct(SHOP, row) for row in (before, after)]
    block = Struct(SOURCE_SCHEMA, ["v", "postgresql", "shop", 1, "true", "d", None, 1, 2, "s", "t", 7, 8, None, None, None])
    key = Struct(EVENT.key_schema, [(after or before or [0])[0]])
    return EVENT, key, Struct(EVENT.value_schema, [*rows, block, None, "u", 5, 6, 7])


@pytest.mark.parametrize(
    ("step", "config"),
    [(name, step) for name, steps in STEPS.items() for step in steps if not needs_record(step)],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_these_transforms_need_no_record(step: str, config: dict[str, str]) -> None:
    """So none of them is slow in silence: `test_rows_become_what_records_become` would be content with decoded rows."""
    names = [step] if step in ("unwrap", "zone") or config.get("field") == "after" else ["unwrap", step]
    given = {**UNWRAP, **PREDICATES, "transforms": ",".join(names)}
    given |= steps_of(step, config)
    made = chain(given)
    key = "name" if config.get("field") == "name" and step == "key" else "id"
    route = Route(EVENT.topic, struct([(key, INT64)], name="k"), EVENT.value_schema)
    rows = [(route, Struct(route.key_schema, [1]), event(None, [1, "new"])[2])]
    assert rows_of(made, EncodedBatch(encoded(rows, made.encoding), {}, {})) is not None


def test_a_key_of_the_rows_fields_needs_no_record() -> None:
    given = {**UNWRAP, "transforms": "unwrap,key", "transforms.key.type": f"{KAFKA}ValueToKey", "transforms.key.fields": "name,id"}
    made = chain({**given, "key.converter": JSON, "key.converter.schemas.enable": "false"})
    (row,) = rows_of(made, EncodedBatch(encoded([event([1, "old"], [1, 'new "one"'])], made.encoding), {}, {})) or []
    assert row[2] == b'{"name":"new \\"one\\"","id":1}'


@pytest.mark.parametrize(
    "config",
    [
        {"add.headers": "op"},
        {"route.by.field": "name"},
        {"drop.fields.header.name": "h"},
        {"add.fields": "snapshot"},
        {"add.fields": "before.id"},
    ],
)
def test_what_depends_on_more_than_the_envelope_needs_records(config: dict[str, str]) -> None:
    made = chain({**UNWRAP, "transforms": "unwrap", **{f"transforms.unwrap.{key}": value for key, value in config.items()}})
    assert made.encoded(EncodedBatch(encoded([event(None, [1, "new"])], made.encoding), {}, {})) is None


def test_another_converter_or_predicate_needs_records() -> None:
    text = "org.apache.kafka.connect.storage.StringConverter"
    batch = EncodedBatch(encoded([event(None, [1, "new"])], JsonEncoding(False, False)), {}, {})
    assert chain({"key.converter": text}).encoded(batch) is None
    assert chain({"value.converter": JSON, "value.converter.replace.null.with.default": "false"}).encoded(batch) is None
    assert chain({**UNWRAP, "transforms": "unwrap"}, "keeps").encoded(batch) is None


class Renamed(RegexRouter):
    """A transform that derives from one with a short way, and does something else."""

    java_name = "x.Renamed"

    def apply(self, record: Any) -> Any:
        return replace(super().apply(record), topic="renamed")


def test_a_class_that_changes_what_a_transform_does_with_records_has_no_short_way() -> None:
    plugins = Plugins({**discover(), "x.Renamed": Renamed})
    config = {"transforms": "r", "transforms.r.type": "x.Renamed", "transforms.r.regex": "a", "transforms.r.replacement": "b"}
    errors = SourceErrorReporter("c", 0, config)
    worker = {"key.converter": JSON, "value.converter": JSON}
    made = Chain(plugins, worker, config, Tolerance(config, lambda seconds: False, errors), errors)
    batch = EncodedBatch(encoded([event(None, [1, "new"])], made.encoding), {}, {})
    assert made.encoded(batch) is None
    assert [row[0] for row in records_of(made, batch)] == ["renamed"]


def test_events_whose_rows_are_texts_need_records() -> None:
    """MongoDB's: the router refuses them."""
    text = STRING.as_optional()
    schema = struct([("before", text), ("after", text), ("source", SOURCE_SCHEMA), ("op", STRING)], name="t.Envelope")
    config = {"transforms": "route", **{f"transforms.route.{key}": value for key, value in STEPS["route"][1].items()}}
    row = (Route("shop.a1", None, schema), None, b'{"before":null,"after":"{}","source":{},"op":"c"}')
    assert chain(config).encoded(EncodedBatch([row], {}, {})) is None


def test_a_batch_without_steps_is_what_it_was() -> None:
    made = chain({})
    rows = encoded([event(None, [1, "new"])], made.encoding)
    assert json.loads(rows[0][2] or b"").keys() == {"schema", "payload"}
    changed = made.encoded(EncodedBatch(rows, {}, {}))
    assert changed is not None
    assert changed.rows is rows


@pytest.mark.parametrize("transforms", ["", "unwrap"])
def test_avro_needs_no_record(transforms: str, registry: SchemaRegistry) -> None:
    config = {**UNWRAP, **avro_rows(registry), "transforms": transforms}
    sees_records = {"transforms": ",".join(filter(None, [transforms, "keeps"])), "transforms.keeps.type": KEEPS}
    made, other = chain(config), chain({**config, **sees_records})
    rows = [event(None, [1, 'new "one"']), event([1, 'new "one"'], [1, None])]
    short = rows_of(made, EncodedBatch(encoded(rows, made.encoding), {}, {}))
    assert short is not None
    assert short == records_of(other, EncodedBatch(encoded(rows, other.encoding), {}, {}))
    assert len({row[3] for row in short}) == 2


def test_a_registry_that_is_away_is_asked_again_with_the_next_batch(schema_registry: SchemaRegistry) -> None:
    made = chain({**avro_rows(schema_registry), "key.converter.max.retries": "0", "value.converter.max.retries": "0"})
    batch = EncodedBatch(encoded([event(None, [1, "new"])], made.encoding), {}, {})
    schema_registry.failures.append(503)
    assert made.encoded(batch) is None
    assert made.encoded(batch) is not None


def test_rows_of_routes_that_come_and_go_are_asked_of_the_registry_once(schema_registry: SchemaRegistry) -> None:
    """An update of a key has routes of its own, each time."""
    made = chain(avro_rows(schema_registry))
    ((_, key, value),) = encoded([event(None, [1, "new"])], made.encoding)
    for _ in range(3):
        batch = EncodedBatch([(replace(EVENT, headers=(("__debezium.oldkey", KeyText('{"id":2}')),)), key, value)], {}, {})
        assert made.encoded(batch) is not None
    assert sum("POST" in request for request in schema_registry.requests) == 2, schema_registry.requests


def test_nulls_that_stay_nulls_in_avro_need_records(registry: SchemaRegistry) -> None:
    made = chain({**avro_rows(registry), "value.converter.ignore.default.for.nullables": "true"})
    assert made.encoded(EncodedBatch(encoded([event(None, [1, "new"])], made.encoding), {}, {})) is None
