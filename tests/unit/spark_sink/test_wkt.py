"""Well-known text of geometries: by hand as PostGIS writes it, and of any geometry in any of the forms of its binary."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.errors import DataError
from spark_sink.spark.functions import wkt
from spark_sink.types.columns import TypeOptions, column_type

POINT, LINE, POLYGON, COLLECTION = 1, 2, 3, 7


@pytest.mark.parametrize(
    ("wkb", "text"),
    [
        ("0101000000000000000000F03F0000000000000040", "POINT(1 2)"),
        ("0101000020E6100000000000000000F03F0000000000000040", "POINT(1 2)"),
        ("00000000013FF00000000000004000000000000000", "POINT(1 2)"),
        ("0101000000000000000000F87F000000000000F87F", "POINT EMPTY"),
        ("0101000080000000000000F03F00000000000000400000000000000840", "POINT Z (1 2 3)"),
        ("01E9030000000000000000F03F00000000000000400000000000000840", "POINT Z (1 2 3)"),
        ("0101000040000000000000F03F00000000000000400000000000000840", "POINT M (1 2 3)"),
        ("01D1070000000000000000F03F00000000000000400000000000000840", "POINT M (1 2 3)"),
        ("01B90B0000000000000000F03F000000000000004000000000000008400000000000001040", "POINT ZM (1 2 3 4)"),
        ("01010000C0000000000000F03F000000000000004000000000000008400000000000001040", "POINT ZM (1 2 3 4)"),
        ("010200000000000000", "LINESTRING EMPTY"),
        ("01EA03000000000000", "LINESTRING Z EMPTY"),
        ("010700000000000000", "GEOMETRYCOLLECTION EMPTY"),
        (
            "0104000000020000000101000000000000000000F03F00000000000000400101000000000000000000F87F000000000000F87F",
            "MULTIPOINT((1 2),EMPTY)",
        ),
        ("01070000000100000001040000000100000000000000013FF00000000000004000000000000000", "GEOMETRYCOLLECTION(MULTIPOINT((1 2)))"),
        ("010900000001000000010200000000000000", "COMPOUNDCURVE(EMPTY)"),
        (
            "010900000001000000010800000003000000" + "00" * 16 + "000000000000F03F000000000000F03F00000000000000400000000000000000",
            "COMPOUNDCURVE(CIRCULARSTRING(0 0,1 1,2 0))",
        ),
    ],
)
def test_texts_are_as_postgis_writes_them(wkb: str, text: str) -> None:
    assert wkt(bytes.fromhex(wkb)) == text


@pytest.mark.parametrize(
    ("wkb", "why"),
    [
        ("", "ends before its end, after 0 bytes"),
        ("0101000000000000000000F03F", "ends before its end, after 13 bytes"),
        ("0101000000000000000000F03F000000000000004000", "ends after 21 of 22 bytes"),
        ("0201000000000000000000F03F0000000000000040", "begins with 2"),
        ("0163000000", "of type 99"),
        ("01A10F0000000000000000F03F0000000000000040", "of type 4001"),
        ("0102000000FFFFFFFF", "ends before its end"),
        ("0107000000FFFFFFFF", "ends before its end"),
        ("010400000001000000010200000000000000", "a MULTIPOINT has a LINESTRING in it"),
        ("01040000000100000001E9030000" + "00" * 24, "a MULTIPOINT has a POINT of other dimensions in it"),
        ("010700000001000000" * 300 + "010700000000000000", "nested more than 200 deep"),
    ],
)
def test_what_is_no_geometry_is_refused_with_a_reason(wkb: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        wkt(bytes.fromhex(wkb))


# -- any geometry -------------------------------------------------------------------------------------------------------------------

Position: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class Geometry:
    """Of a type; `parts` are positions, lines of positions, or geometries."""

    kind: int
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Form:
    """How a geometry is written: the order of bytes of each geometry in turn, flags or thousands, and a reference."""

    orders: tuple[str, ...]
    extended: bool
    srid: int | None


def geometries(size: int) -> st.SearchStrategy[Geometry]:
    """Of positions of so many numbers."""
    numbers = st.floats(allow_nan=False)
    positions = st.tuples(*[numbers] * size)
    lines = st.lists(positions, max_size=3).map(tuple)
    points = st.lists(positions, max_size=1).map(lambda found: Geometry(POINT, tuple(found)))
    strings = lines.map(lambda found: Geometry(LINE, found))
    polygons = st.lists(lines.filter(len), max_size=2).map(lambda found: Geometry(POLYGON, tuple(found)))
    multi = [
        st.lists(members, max_size=3).map(lambda found, kind=kind: Geometry(kind, tuple(found)))  # type: ignore[misc]
        for kind, members in ((4, points), (5, strings), (6, polygons))
    ]
    return st.recursive(
        st.one_of(points, strings, polygons, *multi),
        lambda inner: st.lists(inner, max_size=3).map(lambda found: Geometry(COLLECTION, tuple(found))),
        max_leaves=6,
    )


def written(geometry: Geometry, size: int, has: str, form: Form, depth: int = 0) -> bytes:
    order = form.orders[depth % len(form.orders)]
    flags, thousands = {"": (0, 0), "Z": (2, 1), "M": (1, 2), "ZM": (3, 3)}[has]
    number = geometry.kind | flags << 30 if form.extended else geometry.kind + 1000 * thousands
    head = bytes([order == "<"])
    if form.srid is not None and depth == 0:
        head += struct.pack(order + "II", number | 0x20000000, form.srid)
    else:
        head += struct.pack(order + "I", number)

    def of_line(line: tuple[Position, ...]) -> bytes:
        return struct.pack(order + "I", len(line)) + b"".join(struct.pack(f"{order}{size}d", *position) for position in line)

    count = struct.pack(order + "I", len(geometry.parts))
    match geometry.kind:
        case 1:
            return head + struct.pack(f"{order}{size}d", *(geometry.parts[0] if geometry.parts else [math.nan] * size))
        case 2:
            return head + of_line(geometry.parts)
        case 3:
            return head + count + b"".join(of_line(ring) for ring in geometry.parts)
    return head + count + b"".join(written(part, size, has, form, depth + 1) for part in geometry.parts)


def tokens(geometry: Geometry, has: str, *, named: bool = True) -> list[str | float]:
    """What a reader of the text finds, in order."""
    names = ("POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION")
    found: list[str | float] = ([names[geometry.kind - 1]] + ([has] if has else [])) if named else []
    if not geometry.parts:
        return [*found, "EMPTY"]
    found.append("(")
    for number, part in enumerate(geometry.parts):
        found += [","] if number else []
        if isinstance(part, Geometry):
            found += tokens(part, has, named=geometry.kind == COLLECTION)
        elif geometry.kind == POLYGON:
            found += tokens(Geometry(LINE, part), has, named=False)
        else:
            found += part
    return [*found, ")"]


def read(text: str) -> list[str | float]:
    """The tokens of a text; numbers are doubles again."""
    found = re.findall(r"[(),]|[^\s(),]+", text)
    return [float(word) if re.match(r"-?(\d|Infinity)", word) else word for word in found]


FORMS = st.builds(
    Form,
    st.lists(st.sampled_from("<>"), min_size=1, max_size=3).map(tuple),
    st.booleans(),
    st.none() | st.integers(0, 2**32 - 1),
)


@given(data=st.data(), has=st.sampled_from(["", "Z", "M", "ZM"]), form=FORMS)
def test_any_geometry_reads_back_as_it_was_in_every_form_of_its_binary(data: st.DataObject, has: str, form: Form) -> None:
    size = 2 + len(has)
    geometry = data.draw(geometries(size))
    assert read(wkt(written(geometry, size, has, form))) == tokens(geometry, has)


@given(data=st.data(), form=FORMS)
def test_broken_geometries_are_refused_or_read_and_nothing_else(data: st.DataObject, form: Form) -> None:
    wkb = bytearray(written(data.draw(geometries(2)), 2, "", form))
    for _ in range(data.draw(st.integers(1, 3))):
        wkb[data.draw(st.integers(0, len(wkb) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert wkt(bytes(wkb))
    except DataError as error:
        assert "geometry" in str(error) or " in it" in str(error)


def test_numbers_are_as_short_as_they_can_be_and_zero_keeps_its_sign() -> None:
    def of(number: float) -> str:
        return wkt(struct.pack("<BIdd", 1, 1, number, 0))

    assert [of(number) for number in (1.0, -0.0, 0.1, 1 / 3, 1e300, 123456789.5)] == [
        "POINT(1 0)",
        "POINT(-0 0)",
        "POINT(0.1 0)",
        "POINT(0.3333333333333333 0)",
        "POINT(1e+300 0)",
        "POINT(123456789.5 0)",
    ]


def test_texts_are_refused_where_spark_cannot_make_them() -> None:
    options = TypeOptions(geometry="wkt")
    geometry = {"type": "struct", "name": "io.debezium.data.geometry.Geometry", "fields": []}
    assert column_type(geometry, options).spark == "string"
    assert column_type({"type": "array", "items": geometry}, options).spark == "array<string>"
    nested = {"type": "map", "keys": {"type": "string"}, "values": geometry}
    with pytest.raises(DataError, match=r"set lakehouse\.geometry\.mode to struct or ewkb"):
        column_type(nested, options)
