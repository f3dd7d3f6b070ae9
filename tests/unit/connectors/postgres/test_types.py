"""PostgreSQL types that hold other values or whose texts have a grammar of their own. What the reference shows: pg_types*.json."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.engine.encode.plan import Unrepresentable
from connectors.postgres.types.binary import bytes_of_bits
from connectors.postgres.types.columns import BaseType, Nested, PgColumn, ValueOptions, column_plan, elements_of
from connectors.postgres.types.numbers import amount_of
from connectors.postgres.types.temporal import iso_text, micros_of_interval
from connectors.postgres.types.text import pairs_of

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def column(type_name: str, typmod: int = -1, **more) -> PgColumn:
    return PgColumn("c", 1, type_name, typmod, **more)


def shown(column: PgColumn, text: str, options: ValueOptions | None = None) -> object:
    plan = column_plan(column, options or ValueOptions())
    assert plan is not None and plan.convert is not None
    return json.loads(plan.convert(text))


def array_of(type_name: str, category: str = "b", **more) -> PgColumn:
    return column(f"_{type_name}", element=BaseType(2, type_name, -1, category), **more)


def server_element(value: str | None) -> str:
    """As `array_out` prints an element: quoted when it must be."""
    if value is None:
        return "NULL"
    if value == "" or value.upper() == "NULL" or any(c in '{}",\\' or c.isspace() for c in value):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return value


@given(st.lists(st.none() | TEXTS))
def test_arrays_of_any_texts_are_read_as_they_were_printed(values):
    assert elements_of("{" + ",".join(map(server_element, values)) + "}") == values


@given(st.dictionaries(TEXTS, st.none() | TEXTS))
def test_hstores_of_any_texts_are_read_as_they_were_printed(pairs):
    def quoted(text):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    text = ", ".join(f"{quoted(key)}=>{'NULL' if value is None else quoted(value)}" for key, value in pairs.items())
    assert pairs_of(text) == pairs
    as_json = shown(column("hstore"), text)
    assert isinstance(as_json, str) and json.loads(as_json) == pairs
    assert shown(column("hstore"), text, ValueOptions(hstore_mode="map")) == pairs


@given(st.text("01", max_size=70))
def test_bits_are_little_endian_without_leading_zeros(text):
    data = bytes_of_bits(text)
    assert int.from_bytes(data, "little") == int(text or "0", 2)
    assert not data.endswith(b"\0")


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_unrepresentable(text):
    for read in (elements_of, pairs_of, bytes_of_bits, micros_of_interval, amount_of):
        try:
            read(text)
        except Unrepresentable:
            continue


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("{}", []),
        ("[2:3]={1,2}", ["1", "2"]),
        ('{"NULL",NULL}', ["NULL", None]),
        ("{{1,2},{3,4}}", ["{1,2}", "{3,4}"]),
        ('{{"a}","b"}}', ['{"a}","b"}']),
    ],
)
def test_array_texts(text, elements):
    assert elements_of(text) == elements
    assert all(isinstance(element, Nested) == (element[:1] == "{") for element in elements_of(text) if element)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("$1,234.56", "1234.56"),
        ("-$1,234.56", "-1234.56"),
        ("($1.00)", "-1.00"),
        ("1.234,56 €", "1234.56"),
        ("-1 234,56 kr", "-1234.56"),
        ("￥12,345", "12345"),
        ("د.ك. 1,234.567", "1234.567"),
        ("$92,233,720,368,547,758.07", "92233720368547758.07"),
        ("CHF 1'234.50", "1234.50"),
    ],
)
def test_amounts_of_money_in_several_locales(text, amount):
    assert amount_of(text) == Decimal(amount)


@pytest.mark.parametrize(
    ("text", "micros", "iso"),
    [
        ("1 year 2 mons 3 days 04:05:06.78", 37091106780000, "P1Y2M3DT4H5M6.78S"),
        ("-1 days -00:00:00.000001", -86400000001, "P0Y0M-1DT0H0M-0.000001S"),
        ("-1 years -2 mons +3 days -04:05:06.789", -36572706789000, "P-1Y-2M3DT-4H-5M-6.789S"),
        ("00:00:00", 0, "P0Y0M0DT0H0M0S"),
        ("178000000 years", (1 << 63) - 1, "P178000000Y0M0DT0H0M0S"),
        ("100:00:00", 360000000000, "P0Y0M0DT100H0M0S"),
    ],
)
def test_intervals(text, micros, iso):
    assert (micros_of_interval(text), iso_text(text)) == (micros, iso)


def test_pgvector_types():
    assert shown(column("vector"), "[1,2.5,-3e-05]") == [1.0, 2.5, -3e-05]
    assert shown(column("halfvec"), "[0.1]") == [0.1]
    assert shown(column("sparsevec"), "{1:1.5,3:2}/5") == {"dimensions": 5, "vector": [[1, 1.5], [3, 2.0]]}
    assert shown(column("sparsevec"), "{}/5") == {"dimensions": 5, "vector": []}


def test_postgis_types_keep_their_ewkb_and_show_the_srid():
    value = shown(column("geometry"), "0101000020E6100000000000000000F03F0000000000000040")
    assert value == {"wkb": "AQEAACDmEAAAAAAAAAAA8D8AAAAAAAAAQA==", "srid": 4326}
    assert shown(column("geography"), "0101000000000000000000F03F0000000000000040")["srid"] is None  # type: ignore[index]


@pytest.mark.parametrize("element", ["money", "name", "interval", "varbit", "xml", "point", "refcursor"])
def test_arrays_that_the_reference_never_shows_are_left_out(element):
    assert column_plan(array_of(element), ValueOptions(include_unknown=True)) is None


def test_unknown_types_are_left_out_or_binary():
    assert column_plan(column("pair", category="c"), ValueOptions()) is None
    assert shown(column("pair", category="c"), "(1,x)", ValueOptions(include_unknown=True, binary_mode="hex")) == b"(1,x)".hex()
    assert column_plan(array_of("price", "d"), ValueOptions()) is None
    assert shown(array_of("price", "d"), "{1.5}", ValueOptions(include_unknown=True, binary_mode="base64")) == ["MS41"]


def test_an_element_without_a_form_is_null_and_the_others_stay():
    assert shown(array_of("numeric", typmod=(10 << 16 | 2) + 4), "{1.10,NaN,2.20}") == ["bg==", None, "ANw="]


def test_seconds_of_intervals_are_the_doubles_of_the_reference_s_driver():
    assert iso_text("00:00:01.235") == "P0Y0M0DT0H0M1.234999999S"
    assert micros_of_interval("00:00:01.235") == 1234999
    assert iso_text("-3 days +04:05:06.789") == "P0Y0M-3DT4H5M6.789S"
    assert iso_text("-00:00:00.000001") == "P0Y0M0DT0H0M-0.000001S"
