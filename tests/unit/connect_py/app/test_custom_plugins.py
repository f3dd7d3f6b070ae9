"""Custom converters and post-processors: installed code by the names of entry points, one value's or one event's failure at a time."""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_py.api import Conversion, ConvertedColumn, CustomConverter, EncodedBatch, JsonEncoding, PostProcessor, Route
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import struct
from connect_py.errors import ConfigError, DataError
from connectors.engine.plugins.custom_converters import CustomConverters
from connectors.engine.plugins.post_processors import PostProcessors, Reselect
from connectors.engine.relational.tables import Table, TableId
from connectors.mysql.types.custom import JdbcSinkDataTypesConverter, TinyIntOneToBooleanConverter
from connectors.postgres.config import parse_config, validate_config
from connectors.postgres.tables import CapturedTable, TableFactory
from connectors.postgres.types.base import PgColumn
from tests.paths import ROOT

MODULE = "acme_custom_plugins"
CODE = '''
from connect_py.api import Conversion, CustomConverter, PostProcessor
from connect_py.data import Schema, Type
from connect_py.errors import ConfigError


class Isbn(CustomConverter):
    """Texts of a domain as a number."""

    def configure(self, properties):
        self.schema_name = properties.get("schema.name", "isbn")
        if "bad" in properties:
            raise ConfigError("bad is no property of mine")

    def converter_for(self, column):
        if column.type_name != "varchar" or column.length != 17:
            return None
        return Conversion(Schema(Type.INT64, name=self.schema_name), lambda text: None if text is None else int(text.replace("-", "")))


class Upper(PostProcessor):
    def apply(self, key, value):
        after = value["after"]
        if after is not None:
            if after["name"] == "bad":
                raise KeyError("bad")
            after["name"] = after["name"] and after["name"].upper()
'''
GIVEN = {"topic.prefix": "t", "database.hostname": "h", "database.user": "u", "database.dbname": "d"}
CONVERTERS = {"converters": "isbn", "isbn.type": "com.acme.IsbnConverter", "isbn.schema.name": "com.acme.Isbn"}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with one plugin of each kind."""
    (tmp_path / f"{MODULE}.py").write_text(CODE)
    info = tmp_path / "acme_custom_plugins-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-custom-plugins\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[connect_py.custom_converters]\ncom.acme.IsbnConverter = {MODULE}:Isbn\n"
        f"[connect_py.post_processors]\ncom.acme.Upper = {MODULE}:Upper\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop(MODULE, None)


def build(columns: tuple[PgColumn, ...], encoding: JsonEncoding | None = None, **more: str) -> CapturedTable:
    config = parse_config({**GIVEN, **{name.replace("_", "."): text for name, text in more.items()}})
    factory = TableFactory(config, encoding or JsonEncoding(key_schemas=False, value_schemas=False), ())
    return factory.build(Table(TableId("s", "t"), columns, (columns[0].name,)))


BOOK = (
    PgColumn("id", 23, "int4", nullable=False),
    PgColumn("isbn", 1043, "varchar", 21, default="'1-2'::character varying"),
    PgColumn("name", 1043, "varchar", 204),
)


def rows(table: CapturedTable, *lines: str) -> list[Any]:
    made = table.encoder.copy_rows([line.encode() + b"\n" for line in lines], table.route, b"{}", b'"op":"r"}')
    return [json.loads(value or b"")["after"] for _, _, value in made]


def test_a_converter_decides_schema_default_and_values(package: None) -> None:
    table = build(BOOK, **{"converters": "isbn", "isbn.type": "com.acme.IsbnConverter", "isbn.schema.name": "com.acme.Isbn"})
    field = table.encoder.columns[1].schema
    assert (field.type, field.name, field.optional, field.default) == (Type.INT64, "com.acme.Isbn", True, 12)
    assert rows(table, "1\t97-8\tx", "2\t\\N\ty") == [{"id": 1, "isbn": 978, "name": "x"}, {"id": 2, "isbn": 12, "name": "y"}]


def test_a_value_that_fails_is_null_and_named(package: None, caplog: pytest.LogCaptureFixture) -> None:
    table = build((BOOK[0], PgColumn("isbn", 1043, "varchar", 21), BOOK[2]), **CONVERTERS)
    assert rows(table, "1\tno number\tx") == [{"id": 1, "isbn": None, "name": "x"}]
    assert "A value of column isbn was written as null" in caplog.text


@pytest.mark.parametrize(("mode", "level"), [("warn", logging.WARNING), ("skip", logging.DEBUG), ("fail", None)])
def test_the_mode_for_values_decides(package: None, mode: str, level: int | None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    given = {**CONVERTERS, "event.converting.failure.handling.mode": mode}
    table = build((BOOK[0], PgColumn("isbn", 1043, "varchar", 21), BOOK[2]), **given)
    if level is None:
        with pytest.raises(DataError, match="Failed to properly convert data value for column isbn"):
            rows(table, "1\tno number\tx")
        return
    assert rows(table, "1\tno number\tx") == [{"id": 1, "isbn": None, "name": "x"}]
    assert [record.levelno for record in caplog.records if "written as null" in record.getMessage()] == [level]


def test_rules_that_hide_values_come_after_the_converter(package: None) -> None:
    table = build(BOOK, **CONVERTERS, **{"column.mask.with.3.chars": "s.t.name"})
    assert rows(table, "1\t97-8\tx") == [{"id": 1, "isbn": 978, "name": "***"}]


def problems(**more: str) -> dict[str, list[str]]:
    given = {**GIVEN, **{name.replace("_", "."): text for name, text in more.items()}}
    return {value.name: value.errors for value in validate_config(given) if value.errors}


def test_what_is_not_installed_is_refused_with_what_is(package: None) -> None:
    found = problems(**{"converters": "a", "a.type": "os:system", "post.processors": "b", "post.processors.b.type": "com.acme.Lower"})
    assert "There is no custom converter os:system. Installed are: com.acme.IsbnConverter" in found["converters"][0]
    assert "There is no post-processor com.acme.Lower. Installed are: com.acme.Upper" in found["post.processors"][0]
    assert "there is no a.type" in problems(converters="a")["converters"][0]
    assert "there is no post.processors.a.type" in problems(post_processors="a")["post.processors"][0]
    assert "bad is no property of mine" in problems(**CONVERTERS, **{"isbn.bad": "1"})["converters"][0]
    assert problems(**CONVERTERS) == {}


# -- post-processors -----------------------------------------------------------------------------------------------------------------


def batch(table: CapturedTable, *lines: str) -> EncodedBatch:
    made = table.encoder.copy_rows(
        [line.encode() + b"\n" for line in lines],
        table.route,
        table.block.snapshot("true", 1_700_000_000_000_000, 7, 9),
        b'"transaction":null,"op":"r","ts_ms":1,"ts_us":1,"ts_ns":1}',
    )
    return EncodedBatch([*made, (table.route, b'{"id":1}', None)], {"server": "t"}, {"lsn": 9})


@pytest.mark.parametrize(
    "encoding",
    [
        JsonEncoding(),
        JsonEncoding(key_schemas=False, value_schemas=False),
        JsonEncoding(key_decimals_numeric=True, value_decimals_numeric=True),
        JsonEncoding(nulls_as_defaults=False),
    ],
)
def test_events_that_are_not_changed_stay_the_same_bytes(encoding: JsonEncoding) -> None:
    class Nothing(PostProcessor):
        def apply(self, key: Struct | None, value: Struct) -> None:
            pass

    columns = (
        *BOOK,
        PgColumn("n", 1700, "numeric", (10 << 16 | 2) + 4),
        PgColumn("any", 1700, "numeric"),
        PgColumn("raw", 17, "bytea"),
        PgColumn("at", 1184, "timestamptz"),
        PgColumn("f", 701, "float8"),
        PgColumn("p", 600, "point"),
    )
    found = batch(
        build(columns, encoding),
        '1\t97-8\t\U0001f600 \\\\ "x"\t12.34\t1e3\t\\\\xff\t2024-05-06 07:08:09.123+00\t0.1\t(1,2)',
        "2" + "\t\\N" * 8,
    )
    processed = PostProcessors([Nothing()], encoding, "fail").apply(found)
    assert list(processed.rows) == list(found.rows)


def test_events_are_changed_and_tombstones_are_not_shown(package: None) -> None:
    processors = PostProcessors.make({"post.processors": "u", "post.processors.u.type": "com.acme.Upper"}, JsonEncoding())
    assert processors is not None
    done = processors.apply(batch(build(BOOK, JsonEncoding()), "1\t97-8\tx"))
    assert [value and json.loads(value)["payload"]["after"]["name"] for _, _, value in done.rows] == ["X", None]


def test_an_event_that_fails_fails_the_task_or_is_left_out(package: None, caplog: pytest.LogCaptureFixture) -> None:
    given = {"post.processors": "u", "post.processors.u.type": "com.acme.Upper"}
    found = batch(build(BOOK, JsonEncoding()), "1\t97-8\tbad", "2\t97-8\tx")
    strict = PostProcessors.make(given, JsonEncoding())
    assert strict is not None
    with pytest.raises(DataError, match=r"Error while processing event at offset \{'lsn': 9\}: KeyError"):
        strict.apply(found)
    lenient = PostProcessors.make({**given, "event.processing.failure.handling.mode": "warn"}, JsonEncoding())
    assert lenient is not None
    assert [value and json.loads(value)["payload"]["after"]["id"] for _, _, value in lenient.apply(found).rows] == [2, None]
    assert "it is left out" in caplog.text


def test_records_that_are_no_changes_pass() -> None:
    class Refuses(PostProcessor):
        def apply(self, key: Struct | None, value: Struct) -> None:
            raise AssertionError

    route = Route("beats", None, Schema(Type.STRUCT, name="io.debezium.connector.common.Heartbeat"))
    found = EncodedBatch([(route, None, b"{}")], {"server": "t"}, {"lsn": 9})
    assert PostProcessors([Refuses()], JsonEncoding(), "fail").apply(found).rows == found.rows


def test_the_columns_that_are_read_again() -> None:
    def options(**more: str) -> Reselect:
        given = {f"post.processors.r.reselect.{name.replace('_', '.')}": text for name, text in more.items()}
        given |= {"post.processors": "r", "post.processors.r.type": "io.debezium.processors.reselect.ReselectColumnsPostProcessor"}
        found = Reselect.parse(given)
        assert found is not None
        return found

    assert options().is_selected("s.t", "c")
    assert options(columns_include_list="s.t:c,x.*").is_selected("S.T", "C")
    assert not options(columns_include_list="s.t:c").is_selected("s.t", "cc")
    assert not options(columns_exclude_list="s.t:c").is_selected("s.t", "c")
    assert options(columns_include_list="s.t:c", columns_exclude_list="s.t:c").is_selected("s.t", "c")
    with pytest.raises(ConfigError, match=r"reselect\.error\.handling\.mode=perhaps"):
        options(error_handling_mode="perhaps")
    assert Reselect.parse({}) is None


# -- MySQL's own converters ------------------------------------------------------------------------------------------------------------


def conversion(converter: CustomConverter, column: ConvertedColumn, **properties: str) -> Conversion | None:
    converter.configure({name.replace("_", "."): text for name, text in properties.items()})
    return converter.converter_for(column)


TINY = ConvertedColumn("on", "shop.items", "TINYINT", length=1)


def test_a_tinyint_of_one_digit_is_a_boolean() -> None:
    found = conversion(TinyIntOneToBooleanConverter(), TINY)
    assert found is not None
    assert found.schema.type is Type.BOOLEAN
    assert [found.convert(text) for text in ("0", "1", "-1", "true", "x", None)] == [False, True, False, True, False, None]
    required = ConvertedColumn("on", "shop.items", "TINYINT UNSIGNED", length=1, optional=False)
    of_required = conversion(TinyIntOneToBooleanConverter(), required)
    assert of_required is not None
    assert of_required.convert(None) is False
    assert conversion(TinyIntOneToBooleanConverter(), ConvertedColumn("on", "shop.items", "TINYINT", length=4)) is None
    assert conversion(TinyIntOneToBooleanConverter(), ConvertedColumn("on", "shop.items", "TINYINT"), length_checker="false") is not None
    assert conversion(TinyIntOneToBooleanConverter(), TINY, selector="shop.other.*") is None
    assert conversion(TinyIntOneToBooleanConverter(), TINY, selector="SHOP.items.on") is not None
    assert conversion(TinyIntOneToBooleanConverter(), ConvertedColumn("on", "shop.items", "INT", length=1)) is None


def test_types_for_sinks_are_taken_by_their_selectors() -> None:
    flag = conversion(JdbcSinkDataTypesConverter(), TINY, selector_boolean="shop.items.on")
    assert flag is not None
    assert (flag.schema.type, flag.convert("1"), flag.convert("-1"), flag.convert("true")) == (Type.INT16, 1, 0, 1)
    real = conversion(JdbcSinkDataTypesConverter(), TINY, selector_real=".*")
    assert real is not None
    assert (real.schema.type, real.convert("1.5")) == (Type.FLOAT64, 1.5)
    single = conversion(JdbcSinkDataTypesConverter(), TINY, selector_real=".*", treat_real_as_double="false")
    assert single is not None
    assert single.schema.type is Type.FLOAT32
    text = conversion(JdbcSinkDataTypesConverter(), ConvertedColumn("c", "d.t", "VARCHAR", charset="utf8mb4"), selector_string="d.t.c")
    assert text is not None
    assert dict(text.schema.parameters) == {"__debezium.source.column.character_set": "utf8mb4"}
    assert conversion(JdbcSinkDataTypesConverter(), TINY) is None


class OfItsOwn(CustomConverter):
    """Fields that are optional whatever the column is, with defaults of their own."""

    def converter_for(self, column: ConvertedColumn) -> Conversion:
        return Conversion(Schema(Type.INT32, optional=True), lambda text: int(text or 0) or None, default=lambda text: len(text) or None)


@pytest.mark.parametrize("optional", [True, False])
def test_a_field_may_be_optional_and_have_its_default_by_the_converter(optional: bool) -> None:
    converters = CustomConverters((OfItsOwn(),))
    for default, expected in ((None, None), ("abc", 3), ("", None)):
        plan = converters.plan(ConvertedColumn("c", "d.t", "INT", optional=optional, default=default), "")
        assert plan is not None
        assert plan.convert is not None
        assert (plan.schema.optional, plan.schema.default) == (True, expected)
        assert (plan.convert("7"), plan.convert("0"), plan.null) == ("7", "null", "")


def test_no_converters_ask_nobody() -> None:
    assert CustomConverters.parse({}).plan(TINY, "") is None


def test_the_example_in_the_documentation_works() -> None:
    spec = importlib.util.spec_from_file_location("acme_column", ROOT / "docs/example-plugin/acme_connect/column.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    converter = module.IsbnConverter()
    converter.configure({"column": "isbn"})
    found = converter.converter_for(ConvertedColumn("isbn", "shop.books", "varchar", length=17))
    assert found is not None
    assert (found.schema.type, found.convert("978-3-16"), found.convert(None)) == (Type.INT64, 978316, None)
    with pytest.raises(ConfigError, match="column must say"):
        module.IsbnConverter().configure({})
    initials = module.InitialsProcessor()
    initials.configure({})
    row = struct([("name", Schema(Type.STRING))])
    event = Struct(struct([("before", row.as_optional()), ("after", row.as_optional())]), [None, Struct(row, ["Ada Lovelace"])])
    initials.apply(None, event)
    assert event["after"]["name"] == "AL"
