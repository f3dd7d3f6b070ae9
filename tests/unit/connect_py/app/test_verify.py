"""The rules of `connect-py verify` without servers: values in normal form, what settles, what differs, where tables are."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from connect_py.app.verify.compare import Comparison
from connect_py.app.verify.lake import delta_storage, iceberg_catalog, open_lake_table, sqlalchemy_url
from connect_py.app.verify.layout import Layout
from connect_py.app.verify.normal import converter, date_text, days_of, micros_of, moment_text, of_column, time_text
from connect_py.app.verify.report import Outcome, Patience, as_json, as_text
from connect_py.app.verify.source import KeyRange, SourceRow
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import FLOAT32, INT32, INT64, OPTIONAL_STRING, STRING, array, decimal_schema, struct
from connect_py.errors import ConfigError, ConnectError
from spark_sink.config.sink_config import parse
from spark_sink.routing import TableName

SINK = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}


# -- values --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["1970-01-01", "1969-12-31", "0001-01-01", "9999-12-31", "2000-02-29", "1900-03-01"])
def test_dates_are_the_days_that_python_counts(text: str) -> None:
    days = (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days
    assert (days_of(text), date_text(days)) == (days, text)


def test_years_beyond_pythons_have_their_days_too() -> None:
    assert [days_of(text) for text in ("10000-01-01", "0000-12-31", "-0001-01-01")] == [2932897, -719163, -719893]
    assert date_text(days_of("10000-02-29")) == "10000-02-29"


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2016-11-04T13:51:30.123456789+02:00", 1478260290123456),
        ("1970-01-01T05:30+05:30", 0),
        ("1970-01-01 00:00:01", 1_000_000),
    ],
)
def test_moments_are_microseconds_whatever_their_offset(text: str, micros: int) -> None:
    assert micros_of(text) == micros


def test_moments_and_spans_are_shown_as_texts() -> None:
    assert (moment_text(-1), time_text(-3_723_000_004), time_text(86_400_000_000)) == (
        "1969-12-31T23:59:59.999999",
        "-01:02:03.000004",
        "24:00:00",
    )


def test_what_is_no_moment_is_refused() -> None:
    with pytest.raises(ValueError, match="'yesterday' is no date"):
        micros_of("yesterday")


def logical(name: str, type_: Type = Type.INT64) -> Schema:
    return Schema(type_, optional=True, name=name)


@pytest.mark.parametrize(
    ("schema", "value", "table"),
    [
        (INT32, 7, pa.array([7], pa.int64())),
        (INT64, 7, pa.array([7.0], pa.float64())),
        (INT32, 7, pa.array(["7"])),
        (FLOAT32, 1.1, pa.array([1.1], pa.float32())),
        (FLOAT32, float("nan"), pa.array([float("nan")], pa.float32())),
        (decimal_schema(3), Decimal("1.500"), pa.array([Decimal("1.50")], pa.decimal128(10, 2))),
        (decimal_schema(30), Decimal("1.500"), pa.array(["1.500"])),
        (logical("io.debezium.time.Date", Type.INT32), -1, pa.array([datetime.date(1969, 12, 31)])),
        (logical("io.debezium.time.Date", Type.INT32), -2147472692, pa.array([None], pa.date32())),
        (logical("io.debezium.time.MicroTimestamp"), -1, pa.array([-1], pa.timestamp("us"))),
        (logical("io.debezium.time.NanoTimestamp"), -1, pa.array([-1], pa.timestamp("us"))),
        (logical("io.debezium.time.MicroTime"), 3_600_000_001, pa.array(["01:00:00.000001"])),
        (logical("io.debezium.time.NanoTime"), -1999, pa.array([-1])),
        (logical("io.debezium.time.ZonedTimestamp", Type.STRING), "1970-01-01T01:00:00+01:00", pa.array([0], pa.timestamp("us", "UTC"))),
        (logical("io.debezium.time.ZonedTimestamp", Type.STRING), "infinity", pa.array([None], pa.timestamp("us", "UTC"))),
        (
            logical("io.debezium.time.ZonedTimestamp", Type.STRING),
            "+10000-01-01T00:00:00.000001Z",
            pa.array([253_402_300_800_000_001], pa.timestamp("us", "UTC")),
        ),
        (logical("io.debezium.time.Timestamp"), 9223372036825200, pa.array([None], pa.timestamp("us"))),
        (logical("io.debezium.time.NanoTimestamp"), -(2**63), pa.array([None], pa.timestamp("us"))),
        (logical("io.debezium.time.IsoTimestamp", Type.STRING), "-290308-12-21T19:59:27.6Z", pa.array([None], pa.timestamp("us"))),
        (logical("io.debezium.time.IsoDate", Type.STRING), "+292278994-08-16Z", pa.array([None], pa.date32())),
        (logical("io.debezium.data.Bits", Type.BYTES), b"\x01\x02", pa.array([513], pa.int64())),
        (array(logical("io.debezium.time.MicroTimestamp")), [1, None], pa.array([[1, None]], pa.list_(pa.timestamp("us")))),
        (
            Schema(Type.MAP, key_schema=STRING, value_schema=INT32),
            {"b": 1, "a": 2},
            pa.array([[("a", 2), ("b", 1)]], pa.map_(pa.string(), pa.int32())),
        ),
    ],
)
def test_a_value_and_its_column_meet_in_one_normal_form(schema: Schema, value: Any, table: pa.Array) -> None:
    assert repr(converter(schema, table.type)(value)) == repr(of_column(table)[0])


def test_structs_meet_by_the_names_of_the_tables_fields() -> None:
    schema = struct([("wkb", Schema(Type.BYTES)), ("srid", INT32), ("gone", STRING)])
    table = pa.array([{"srid": 4326, "wkb": b"\x01"}], pa.struct([("srid", pa.int32()), ("wkb", pa.binary())]))
    assert converter(schema, table.type)(Struct(schema, [b"\x01", 4326, "x"])) == of_column(table)[0]


# -- comparing -----------------------------------------------------------------------------------------------------------------------

KEY, ROW = struct([("id", INT32)]), struct([("id", INT32), ("name", OPTIONAL_STRING)])
TYPES = pa.schema([("id", pa.int32()), ("name", pa.string()), ("__op", pa.string())])


def row(number: int, name: str | None) -> SourceRow:
    return SourceRow("t", Struct(KEY, [number]), Struct(ROW, [number, name]))


class Sources:
    """A source of one table that the test changes; ranges of two rows."""

    def __init__(self, rows: dict[int, str | None]) -> None:
        self.rows = rows
        self.looks = 0

    def ranges(self, name: str) -> Iterator[tuple[KeyRange, list[SourceRow]]]:
        self.looks += 1
        keys = sorted(self.rows)
        for place in range(0, len(keys), 2):
            part = keys[place : place + 2]
            yield KeyRange(name, (part[0] - 1,), (part[-1],)), [row(key, self.rows[key]) for key in part]  # type: ignore[arg-type]

    def again(self, range_: KeyRange) -> Iterator[SourceRow]:
        (after,), (until,) = range_.after or (0,), range_.until
        yield from (row(key, name) for key, name in self.rows.items() if after < key <= until)  # type: ignore[operator]


class Table:
    """A table that the test changes."""

    def __init__(self, *rows: tuple[int, str | None]) -> None:
        self.rows: Sequence[tuple[int, str | None]] = rows

    def refresh(self) -> bool:
        return True

    def columns(self) -> pa.Schema:
        return TYPES

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        values = {"id": [key for key, _ in self.rows], "name": [name for _, name in self.rows], "__op": ["c"] * len(self.rows)}
        yield pa.record_batch({name: pa.array(values[name], TYPES.field(name).type) for name in columns})


def compared(
    sources: Sources, table: Table, meanwhile: Callable[[int], None] = lambda _: None, rounds: int = 5, **patience: Any
) -> Outcome:
    """`meanwhile` is called before each further look with its number."""
    outcome = Outcome("t", ["s"])
    layout = Layout(TYPES, row(0, ""), parse(SINK), fills_nulls=True)
    looked = 0

    def sleep(_: float) -> None:
        nonlocal looked
        looked += 1
        meanwhile(looked)

    # the time is up after this number of looks
    allowed = Patience(wait=rounds, pause=0, **patience)
    Comparison(outcome, sources, table, layout, allowed, sleep=sleep, clock=lambda: looked).run()  # type: ignore[arg-type]
    return outcome


def test_equal_tables_are_equal_at_the_first_look() -> None:
    sources = Sources({1: "a", 2: None, 3: "c"})
    outcome = compared(sources, Table((3, "c"), (1, "a"), (2, None)), rounds=0)
    assert outcome.equal and (outcome.source_rows, outcome.table_rows, sources.looks) == (3, 3, 1)


def test_each_kind_of_difference_is_counted_and_told_with_its_values() -> None:
    outcome = compared(Sources({1: "a", 2: "b", 3: "c"}), Table((1, "a"), (2, "x"), (4, "d")), rounds=1)
    assert outcome.counts == {"missing": 1, "extra": 1, "different": 1} and not outcome.equal
    told = {difference.kind: difference for difference in outcome.differences}
    assert told["different"].columns == {"name": ("b", "x")}
    assert told["missing"].source == {"id": 3, "name": "c"} and told["extra"].table == {"id": 4, "name": "d"}
    assert "different id=2: name is 'b' in the source, 'x' in the table" in as_text(outcome)
    assert as_json(outcome)["equal"] is False


def test_a_table_that_follows_is_equal_although_it_never_shows_what_the_source_shows_now() -> None:
    sources, table = Sources({1: "v0", 2: "b"}), Table((1, "old"), (2, "b"))

    def meanwhile(look: int) -> None:
        table.rows = ((1, f"v{look - 1}"), (2, "b"))  # always one behind
        sources.rows[1] = f"v{look}"

    outcome = compared(sources, table, meanwhile)
    assert outcome.equal and outcome.settled == 1


def test_rows_that_come_and_go_between_the_looks_settle() -> None:
    sources, table = Sources({1: "a", 2: "new"}), Table((1, "a"), (3, "deleted since"))

    def meanwhile(look: int) -> None:
        table.rows = ((1, "a"), (2, "new"))

    outcome = compared(sources, table, meanwhile)
    assert outcome.equal and outcome.settled == 2


def test_an_extra_row_that_the_source_gets_after_all_settles() -> None:
    sources, table = Sources({1: "a"}), Table((1, "a"), (2, "b"))
    outcome = compared(sources, table, lambda look: sources.rows.update({2: "b"}))
    assert outcome.equal and outcome.settled == 1


def test_a_key_that_is_twice_in_the_table_differs_although_a_row_is_right() -> None:
    outcome = compared(Sources({1: "a"}), Table((1, "a"), (1, "a")), rounds=0)
    assert outcome.twice == 1 and not outcome.equal and "more than once" in as_text(outcome)


def test_more_differences_than_are_watched_are_said_to_be_there() -> None:
    outcome = compared(Sources(dict.fromkeys(range(1, 21), "a")), Table((1, "a")), rounds=1, suspects=5, shown=2)
    assert (outcome.counts["missing"], outcome.unwatched, len(outcome.differences), outcome.equal) == (5, 14, 2, False)
    assert "14 more keys differed" in as_text(outcome) and "… and 3 more" in as_text(outcome)


def test_a_column_that_changed_its_type_goes_on_beside_the_old_one() -> None:
    types = pa.schema([("id", pa.int32()), ("name", pa.int32()), ("name__string", pa.string()), ("left", pa.string())])
    layout = Layout(types, row(0, ""), parse(SINK), fills_nulls=True)
    batch = pa.record_batch([[1, 2], pa.array([5, 6], pa.int32()), [None, "six"], ["x", "x"]], schema=types)
    assert [values for _, values in layout.of_table(batch.select(layout.read))] == [(1, "5"), (2, "six")]
    assert layout.not_compared == ["left"]


def test_fields_that_transforms_add_are_not_compared_and_others_are_whatever_they_begin_with() -> None:
    schema = struct([("id", INT32), ("__v", INT32), ("__version", STRING), ("__op", STRING), ("__lsn", INT64)])
    types = pa.schema([("id", pa.int32()), ("__v", pa.int32()), ("__op", pa.string()), ("__lsn", pa.int64()), ("__more", pa.string())])
    found = SourceRow("t", Struct(KEY, [1]), Struct(schema, [1, 7, "x", "r", 5]))
    layout = Layout(types, found, parse(SINK), fills_nulls=True, added_fields=frozenset({"__op", "__lsn"}))
    assert [column.name for column in layout.columns] == ["__v", "__version", "id"]
    assert (layout.lacking, layout.not_compared) == (["__version"], ["__more"])
    assert layout.of_source(found) == ((1,), (7, "x", 1))


def test_rows_that_are_marked_as_deleted_or_are_old_versions_do_not_count() -> None:
    soft = pa.schema([("id", pa.int32()), ("name", pa.string()), ("__deleted", pa.bool_())])
    layout = Layout(soft, row(0, ""), parse(SINK | {"lakehouse.tables.delete-mode": "soft"}), fills_nulls=True)
    batch = pa.record_batch([pa.array([1, 2, 3], pa.int32()), ["a", "b", "c"], [False, True, None]], schema=soft)
    assert [key for key, _ in layout.of_table(batch.select(layout.read))] == [(1,), (3,)]


def test_defaults_stand_for_nulls_as_the_converter_writes_them() -> None:
    schema = struct([("id", INT32), ("name", OPTIONAL_STRING.with_default("d"))])
    found = SourceRow("t", Struct(KEY, [1]), Struct(schema, [1, None]))
    for fills, name in ((True, "d"), (False, None)):
        layout = Layout(TYPES, found, parse(SINK), fills_nulls=fills)
        assert layout.of_source(found) == ((1,), (1, name))


# -- places --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jdbc", "settings", "url"),
    [
        ("jdbc:sqlite:file:/var/lib/c.db", {}, "sqlite:////var/lib/c.db"),
        ("jdbc:sqlite:/var/lib/c.db", {}, "sqlite:////var/lib/c.db"),
        ("jdbc:postgresql://h:5/c", {"jdbc.user": "u", "jdbc.password": "p@"}, "postgresql+psycopg://u:p%40@h:5/c"),
        ("jdbc:postgresql://h/c?user=u&password=p", {}, "postgresql+psycopg://u:p@h/c"),
        ("jdbc:mysql://h/c", {}, "mysql+pymysql://h/c"),
    ],
)
def test_jdbc_addresses_become_sqlalchemys(jdbc: str, settings: dict[str, str], url: str) -> None:
    assert sqlalchemy_url(jdbc, settings) == url


def test_catalogs_that_pyiceberg_does_not_know_are_named() -> None:
    config = parse({"topics": "t", "lakehouse.catalog.catalog-impl": "org.apache.iceberg.nessie.NessieCatalog"})
    with pytest.raises(ConfigError, match="verify reads catalogs of type hadoop, rest, jdbc"):
        iceberg_catalog(config)


@pytest.mark.parametrize(
    ("settings", "kind", "says"),
    [
        (
            {"type": "rest", "uri": "http://127.0.0.1:1"},
            ConnectError,
            "catalog (rest at http://127.0.0.1:1) cannot be asked: HTTPConnectionPool",
        ),
        (
            {"type": "jdbc", "uri": "jdbc:sqlite:/no/folder/c.db", "warehouse": "/w"},
            ConnectError,
            "unable to open database file. Its tables were",
        ),
        (
            {"type": "jdbc", "uri": "jdbc:postgresql://127.0.0.1:1/c", "warehouse": "/w", "jdbc.user": "u", "jdbc.password": "secret!"},
            ConnectError,
            "catalog (jdbc at postgresql+psycopg://u:[hidden]@127.0.0.1:1/c) cannot be asked",
        ),
        ({"type": "rest", "uri": "catalog:8181"}, ConfigError, "lakehouse.catalog.uri=catalog:8181 is no address of a REST catalog"),
        ({"type": "rest"}, ConfigError, "lakehouse.catalog.uri is missing"),
    ],
)
def test_a_catalog_that_cannot_be_asked_is_an_error_that_says_so(settings: dict[str, str], kind: type[ConnectError], says: str) -> None:
    config = parse({"topics": "t", **{f"lakehouse.catalog.{name}": value for name, value in settings.items()}})
    with pytest.raises(ConnectError) as caught:
        open_lake_table(TableName(("public", "item")), config)
    assert type(caught.value) is kind and says in str(caught.value) and "secret!" not in str(caught.value)


def test_a_jdbc_catalog_is_known_by_its_class_too(tmp_path: Any) -> None:
    settings = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:file:{tmp_path}/c.db",
        "warehouse": str(tmp_path),
    }
    config = parse({"topics": "t", **{f"lakehouse.catalog.{name}": value for name, value in settings.items()}})
    assert iceberg_catalog(config)(["public", "none"]) is None


def test_hadoops_settings_for_s3_become_deltalakes() -> None:
    config = parse(
        {
            "topics": "t",
            "lakehouse.format": "delta",
            "lakehouse.delta.root": "s3a://b/t",
            "lakehouse.hadoop.fs.s3a.endpoint": "http://localhost:9000",
            "lakehouse.hadoop.fs.s3a.access.key": "k",
        }
    )
    assert delta_storage(config) == {"AWS_ENDPOINT_URL": "http://localhost:9000", "AWS_ACCESS_KEY_ID": "k", "AWS_ALLOW_HTTP": "true"}
