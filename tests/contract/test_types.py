"""Every column type that a connector knows has a place wherever types are told apart; a failure names the places that a type lacks.

What has no place on purpose is listed here with the reason. A new type that is added to a family, and nowhere else, fails in all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import bson
import pytest
from bson import Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

from connect_py.app.verify.normal import LOGICAL as COMPARED
from connect_py.converters.json_schema import schema_to_json
from connect_py.data import Schema, Type
from connect_py.data.schema import DECIMAL
from connect_py.errors import ConnectError
from connectors.jdbc.column_types import Kinds
from connectors.jdbc.dialects.mysql import mysql_kinds
from connectors.jdbc.dialects.postgres import postgres_kinds
from connectors.jdbc.dialects.sqlite import sqlite_kinds
from connectors.mongodb.snapshot.queries import family_of
from connectors.mongodb.values.bson_forms import Form
from connectors.mongodb.values.bson_json import bson_json
from connectors.mysql.config.value_options import ValueOptions as MySqlOptions
from connectors.mysql.model import JDBC, MyColumn
from connectors.mysql.types import columns as mysql
from connectors.mysql.types.keys import chunk_key
from connectors.postgres.snapshot.chunks import JAVA_CLASSES
from connectors.postgres.types import columns as postgres
from connectors.postgres.types.base import BaseType, PgColumn, ValueOptions
from spark_sink.types.columns import LOGICAL, TypeOptions, column_type, logical_type

DOCS = Path(__file__).parents[2] / "docs"


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# -- sinks: what becomes of a schema -------------------------------------------------------------------------------------------------------

_UTC = ZoneInfo("UTC")
DIALECTS: Final[dict[str, Kinds]] = {
    "postgres": postgres_kinds("public"),
    "mysql": mysql_kinds(repr, _UTC, is_mariadb=False, has_axes=True),
    "mariadb": mysql_kinds(repr, _UTC, is_mariadb=True, has_axes=False),
    "sqlite": sqlite_kinds(),
}

#: Kept in lakehouse tables as the arrays that they are; geometries by ``lakehouse.geometry.mode``.
_AS_THEY_ARE = ("io.debezium.data.FloatVector", "io.debezium.data.DoubleVector")
_GEOMETRY = "io.debezium.data.geometry."
#: Texts and numbers that Debezium's JDBC sink writes as such, because it has no type for the name; the databases convert what they can.
_PLAIN_IN_JDBC = frozenset(f"io.debezium.time.{name}" for name in ("Interval", "IsoDate", "IsoTime", "IsoTimestamp"))
#: The dialects that have a type for a name; in the others the value is a text or a number, or, of vectors and arrays, refused.
_SERVERS = words("postgres mysql mariadb")
_ONLY_IN: Final[dict[str, frozenset[str]]] = {
    **{f"io.debezium.data.{name}": _SERVERS for name in ("DoubleVector", "Enum", "FloatVector", "Json")},
    **{f"io.debezium.data.{name}": words("postgres") for name in ("Ltree", "SparseDoubleVector", "Tsvector", "Uuid", "Xml")},
    **{f"io.debezium.time.{name}": _SERVERS for name in ("ZonedTime", "ZonedTimestamp")},
    "io.debezium.data.EnumSet": words("mysql mariadb"),
    "io.debezium.time.MicroDuration": words("postgres"),
    "io.debezium.time.Year": words("mysql mariadb"),
}


def has_lakehouse_column(schema: Schema) -> bool:
    """Whether the lakehouse sink has a rule for a schema, and for its name where it has one."""
    try:
        column_type(json.loads(schema_to_json(schema)), TypeOptions())
    except ConnectError:
        return False
    name = schema.name
    return name is None or name in (DECIMAL, *_AS_THEY_ARE) or name.startswith(_GEOMETRY) or logical_type(name, TypeOptions()) is not None


def dialects_without(schema: Schema) -> list[str]:
    """The dialects of the JDBC sink that should have a column type for a schema's own name, and have none."""
    if schema.name in _PLAIN_IN_JDBC:
        return []
    wanted = _ONLY_IN.get(schema.name or "", DIALECTS.keys())
    return [dialect for dialect in wanted if not _has_own_kind(DIALECTS[dialect], schema)]


def _has_own_kind(kinds: Kinds, schema: Schema) -> bool:
    try:
        found = kinds.of(schema)
    except ConnectError:
        return False
    try:
        return schema.name is None or found is not kinds.of(replace(schema, name=None))
    except ConnectError:
        return True


def places_in_sinks(schemas: Iterable[Schema]) -> list[str]:
    """The places of the sinks that a type's schemas lack."""
    lacks = []
    for schema in schemas:
        if not has_lakehouse_column(schema):
            lacks.append(f"a lakehouse column for {schema.name or schema.type.name} (spark_sink/types/columns.py)")
        lacks += [
            f"a column of the JDBC sink for {schema.name or schema.type.name} (connectors/jdbc/dialects/{dialect}.py)"
            for dialect in dialects_without(schema)
        ]
    return sorted(set(lacks))


def words_of(page: str) -> frozenset[str]:
    """What stands in code letters in a page, without parameters in parentheses."""
    return frozenset(re.sub(r"\(.*?\)", "", text).strip() for text in re.findall(r"`([^`\n]+)`", (DOCS / "connectors" / page).read_text()))


# -- PostgreSQL ----------------------------------------------------------------------------------------------------------------------------

POSTGRES_WORDS = words_of("postgresql.md")
#: SQL's names of types that the catalog calls otherwise.
SQL_NAMES = {
    "bool": "boolean",
    "bpchar": "char",
    "float4": "real",
    "float8": "double precision",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "varbit": "bit varying",
}
#: Defaults of these are not in the reference's schemas, whatever they are (`PostgresDefaultValueConverter`).
POSTGRES_WITHOUT_DEFAULT = words(
    "bytea char cidr citext daterange geography geometry halfvec hstore inet int4range int8range isbn ltree macaddr macaddr8 money name "
    "numrange oid point sparsevec timetz tsrange tstzrange tsvector vector"
)
#: Numbers and bytes in records that offsets hold as texts: pgjdbc has no simple Java class for such keys.
POSTGRES_TEXT_KEYS = words("bit interval money time timestamp varbit")
_DEFAULTS = (
    *("1", "true", "'1'::x", "B'1'", "'{}'::x", "'1 day'::interval"),
    *("'2024-02-03 04:05:06'::x", "'2024-02-03 04:05:06+00'::x", "'2024-02-03'::x", "'04:05:06'::x"),
)
_SIMPLE = (Type.BOOLEAN, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BYTES)
_NUMERIC_10_2 = (10 << 16 | 2) + 4
_POSTGRES_OPTIONS = [
    ValueOptions(time_mode=mode, decimal_mode=decimals, interval_mode=intervals, hstore_mode=maps)
    for mode in ("adaptive", "microseconds", "nanoseconds", "connect", "isostring")
    for decimals, intervals, maps in (("precise", "numeric", "json"), ("string", "string", "map"))
]


def postgres_lacks(kind: str) -> list[str]:
    def plan(options: ValueOptions, **more: Any) -> Any:
        return postgres.column_plan(PgColumn("c", 0, kind, **more), options)

    first, lacks = _POSTGRES_OPTIONS[0], []
    if plan(first) is None:
        lacks.append("a family (connectors/postgres/types/columns.py)")
    elif kind not in POSTGRES_WITHOUT_DEFAULT and all(
        plan(first, default=text, typmod=typmod).schema.default is None for text in _DEFAULTS for typmod in (-1, _NUMERIC_10_2)
    ):
        lacks.append("a default (connectors/postgres/types/defaults.py)")
    array = PgColumn("c", 0, f"_{kind}", element=BaseType(0, kind, -1))
    if kind not in postgres.NEVER and postgres.column_plan(array, first) is None:
        lacks.append("arrays (connectors/postgres/types/columns.py)")
    if kind not in {*JAVA_CLASSES, *POSTGRES_TEXT_KEYS} and (plan(first) is None or plan(first).schema.type in _SIMPLE):
        lacks.append("a class of its keys in offsets (connectors/postgres/snapshot/chunks.py)")
    if SQL_NAMES.get(kind, kind) not in POSTGRES_WORDS:
        lacks.append("documentation (docs/connectors/postgresql.md)")
    plans = [plan(options, typmod=typmod) for options in _POSTGRES_OPTIONS for typmod in (-1, 3)]
    return lacks + places_in_sinks(found.schema for found in plans if found is not None)


@pytest.mark.parametrize("kind", sorted(postgres.FAMILIES))
def test_a_postgresql_type_has_all_its_places(kind: str) -> None:
    assert postgres_lacks(kind) == [], f"{kind} of PostgreSQL lacks these"


def test_a_postgresql_type_that_is_new_lacks_all_places() -> None:
    assert [text.partition(" (")[0] for text in postgres_lacks("xid8")] == [
        "a family",
        "arrays",
        "a class of its keys in offsets",
        "documentation",
    ]


# -- MySQL and MariaDB ---------------------------------------------------------------------------------------------------------------------

MYSQL_WORDS = words_of("mysql.md") | words_of("mariadb.md")
_SPATIAL = words("GEOMETRY POINT LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON GEOMETRYCOLLECTION GEOMCOLLECTION")
#: The name under which the page has a synonym.
MYSQL_SYNONYMS = {
    **dict.fromkeys(("BOOL",), "BOOLEAN"),
    **dict.fromkeys(("DEC", "FIXED", "NUMERIC"), "DECIMAL"),
    **dict.fromkeys(("DOUBLE PRECISION", "REAL"), "DOUBLE"),
    **dict.fromkeys(("CHARACTER", "NCHAR", "NATIONAL CHAR", "NATIONAL CHARACTER"), "CHAR"),
    "INTEGER": "INT",
    **{
        f"{prefix}{name}": "VARCHAR"
        for prefix in ("", "NATIONAL ")
        for name in ("CHAR VARYING", "CHARACTER VARYING", "VARCHAR", "NVARCHAR", "NCHAR VARCHAR", "NCHAR VARYING")
    },
    **dict.fromkeys(("LONG", "LONG VARCHAR", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT"), "TEXT"),
    **dict.fromkeys(("LONG VARBINARY", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB"), "BLOB"),
    **dict.fromkeys(_SPATIAL, "GEOMETRY"),
}
#: The servers give them no default but NULL, or only an expression, which the reference does not evaluate.
MYSQL_WITHOUT_DEFAULT = frozenset({*_SPATIAL, "VECTOR"})
#: No order that a chunk could go by: the servers refuse such primary keys.
MYSQL_WITHOUT_ORDER = frozenset({*_SPATIAL, "VECTOR", "JSON"})
_MYSQL_DEFAULTS = ("1", "2024-02-03 04:05:06", "2024-02-03", "04:05:06", "123e4567-e89b-12d3-a456-426655440000")
_MYSQL_OPTIONS = [
    MySqlOptions(time_mode=mode, decimal_mode=decimals)
    for mode in ("adaptive_time_microseconds", "adaptive", "microseconds", "nanoseconds", "connect", "isostring")
    for decimals in ("precise", "string")
]


def mysql_lacks(kind: str) -> list[str]:
    column = MyColumn("c", kind, JDBC.get(kind, JDBC["OTHER"]), charset="utf8mb4", labels=("1", "2"))

    def plan(options: MySqlOptions, default: str | None = None) -> Any:
        return mysql.column_plan(replace(column, has_default=default is not None, default=default), options)

    first, lacks = _MYSQL_OPTIONS[0], []
    if plan(first) is None:
        lacks.append("a family (connectors/mysql/types/columns.py)")
    elif kind not in MYSQL_WITHOUT_DEFAULT and all(plan(first, text).schema.default is None for text in _MYSQL_DEFAULTS):
        lacks.append("a default (connectors/mysql/types/columns.py)")
    if kind not in MYSQL_WITHOUT_ORDER and chunk_key(column) is None:
        lacks.append("an order of its keys (connectors/mysql/types/keys.py)")
    if MYSQL_SYNONYMS.get(kind, kind) not in MYSQL_WORDS:
        lacks.append("documentation (docs/connectors/mysql.md or mariadb.md)")
    plans = [plan(options) for options in _MYSQL_OPTIONS]
    return lacks + places_in_sinks(found.schema for found in plans if found is not None)


@pytest.mark.parametrize("kind", sorted(mysql.FAMILIES))
def test_a_mysql_type_has_all_its_places(kind: str) -> None:
    assert mysql_lacks(kind) == [], f"{kind} of MySQL or MariaDB lacks these"


def test_a_mysql_type_that_is_new_lacks_all_places() -> None:
    assert [text.partition(" (")[0] for text in mysql_lacks("XMLTYPE")] == ["a family", "an order of its keys", "documentation"]


# -- MongoDB -------------------------------------------------------------------------------------------------------------------------------

#: BSON's types (bsonspec.org) by the words of the page: a value, or its type byte and bytes where the driver no longer writes it.
BSON_TYPES: Final[dict[str, Any]] = {
    "double": 1.5,
    "string": "a",
    "document": {"a": 1},
    "array": [1],
    "binary": b"\1",
    "undefined": (0x06, b""),
    "ObjectId": ObjectId("64b7f0000000000000000000"),
    "boolean": True,
    "date": bson.datetime_ms.DatetimeMS(0),
    "null": None,
    "regular expression": Regex("a", "i"),
    "DBPointer": (0x0C, b"\2\0\0\0a\0" + bytes(12)),
    "code": Code("f()"),
    "symbol": (0x0E, b"\2\0\0\0a\0"),
    "with scope": Code("f()", {}),
    "int32": 1,
    "timestamp": Timestamp(1, 2),
    "int64": Int64(1),
    "decimal128": Decimal128("1.5"),
    "smallest": MinKey(),
    "largest": MaxKey(),
}
#: MongoDB refuses them as ids, or drivers no longer write them.
BSON_NO_IDS = frozenset({"array", "regular expression", "undefined", "DBPointer", "symbol", "code", "with scope"})


def test_bsons_types_are_all_there() -> None:
    types = {value[0] if isinstance(value, tuple) else bson.encode({"": value})[4] for value in BSON_TYPES.values()}
    assert types == {*range(0x01, 0x14), 0x7F, 0xFF}
    assert bson.encode({"": DBRef("c", 1)})[4] == 0x03


@pytest.mark.parametrize("kind", BSON_TYPES)
def test_a_bson_type_has_all_its_places(kind: str) -> None:
    value, lacks = BSON_TYPES[kind], []
    if isinstance(value, tuple):
        content = bytes([value[0]]) + b"a\0" + value[1]
        data = (len(content) + 5).to_bytes(4, "little") + content + b"\0"
    else:
        data = bson.encode({"a": value})
    for form in Form:
        try:
            json.loads(bson_json(form).document(data))
        except (ConnectError, ValueError):
            lacks.append(f"a text in the form {form.value} (connectors/mongodb/values/bson_json.py)")
    if kind not in BSON_NO_IDS:
        try:
            family_of(value)
        except ValueError:
            lacks.append("an order of its ids (connectors/mongodb/snapshot/queries.py)")
    if not re.search(rf"^\|[^|]*\b{kind}\b", (DOCS / "connectors/mongodb-values.md").read_text(), re.MULTILINE):
        lacks.append("documentation (docs/connectors/mongodb-values.md)")
    assert lacks == [], f"{kind} of BSON lacks these"


#: Texts and numbers that tables hold as events do, and a vector that `connect-py verify` reads by its schema's fields.
_COMPARED_AS_THEY_ARE = words("Json Uuid Xml Enum EnumSet Ltree Tsvector SparseDoubleVector")


def test_verification_compares_each_type_that_the_lakehouse_sink_changes() -> None:
    as_they_are = {f"io.debezium.data.{name}" for name in _COMPARED_AS_THEY_ARE}
    as_they_are |= {"io.debezium.time.Interval", "io.debezium.time.MicroDuration"}
    assert LOGICAL.keys() - COMPARED.keys() - as_they_are == set(), "connect_py/app/verify/normal.py: LOGICAL"
    assert COMPARED.keys() - LOGICAL.keys() == set(), "spark_sink/types/columns.py: LOGICAL"
