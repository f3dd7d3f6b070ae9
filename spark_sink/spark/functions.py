"""Python functions that the sink's expressions use: geometries' well-known binary as well-known text.

A session must have them (`register`); they run on executors, over Arrow batches. The conversion itself is pure.

Texts are ISO's (SQL/MM part 3, section 5.1) in PostGIS's spelling (`ST_AsText`): ``POINT Z (1 2 3)``. Binaries are ISO's, whose numbers of
types are 1000, 2000 and 3000 higher with Z, M and both, or extended ones, which have flags for that and for a spatial reference; the text
says nothing of the reference. Curves, polyhedral surfaces and triangles, which PostGIS has in addition to the seven types of simple
features, are read too.

Shapely (GEOS) would be shorter, but writes other texts (``POINT (1e-7 0)``), has no curves, and refuses rings that are not closed, which
databases store. It reads a geometry with bytes left over or of an unknown type without a word.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connect_py.errors import DataError
from spark_sink.config.sink_config import SinkConfig
from spark_sink.types.columns import WKT_UDF

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession


def register(spark: SparkSession, config: SinkConfig) -> None:
    """Give a session the functions that a configuration needs."""
    if config["geometry.mode"] != "wkt":
        return
    from pyspark.sql.functions import arrow_udf

    # Without annotations: Spark would resolve them, and this module knows pyarrow's types only when it is checked.
    function = lambda values: to_texts(values)  # noqa: E731
    spark.udf.register(WKT_UDF, arrow_udf(function, "texts array<string>, problem string"))


def to_texts(values: pyarrow.Array) -> pyarrow.Array:
    """Convert arrays of WKBs for `WKT_UDF`. A failure is returned, not raised: Spark also calls this for rows that it does not need."""
    import pyarrow as pa

    type_ = pa.struct([("texts", pa.list_(pa.string())), ("problem", pa.string())])
    return pa.array([_text_or_problem(value) for value in values.to_pylist()], type=type_)


def _text_or_problem(wkbs: list[bytes | None] | None) -> dict[str, object]:
    try:
        texts = None if wkbs is None else [None if wkb is None else wkt(wkb) for wkb in wkbs]
    except DataError as error:
        return {"texts": None, "problem": str(error)}
    return {"texts": texts, "problem": None}


#: Names by the number of the type.
_NAMES = {
    1: "POINT",
    2: "LINESTRING",
    3: "POLYGON",
    4: "MULTIPOINT",
    5: "MULTILINESTRING",
    6: "MULTIPOLYGON",
    7: "GEOMETRYCOLLECTION",
    8: "CIRCULARSTRING",
    9: "COMPOUNDCURVE",
    10: "CURVEPOLYGON",
    11: "MULTICURVE",
    12: "MULTISURFACE",
    15: "POLYHEDRALSURFACE",
    16: "TIN",
    17: "TRIANGLE",
}

#: What the types that consist of geometries may have in them. The first is written without its name; of a collection all have one.
_MEMBERS = {4: (1,), 5: (2,), 6: (3,), 7: (0, *_NAMES), 9: (2, 8), 10: (2, 8, 9), 11: (2, 8, 9), 12: (3, 10), 15: (3,), 16: (17,)}

_POINT, _LINES, _RINGS = 1, (2, 8), (3, 17)

#: Flags of extended types (`liblwgeom.h.in`): Z, M, and that a reference's number follows.
_Z, _M, _SRID = 0x80000000, 0x40000000, 0x20000000

#: Collections within collections: PostGIS reads no more (`lwin_wkb.c`, LW_PARSER_MAX_DEPTH), and Python's stack is not endless.
_MAX_NESTED = 200


def wkt(wkb: bytes) -> str:
    """Return the text of a geometry.

    Numbers are the shortest that read back as the same double, whole ones without a fraction. A point without coordinates is, as PostGIS
    writes it, one whose coordinates are all NaN.

    Raises:
        DataError: the bytes are no geometry, or there are more of them than it has.
    """
    reader = _Reader(wkb)
    try:
        text = reader.geometry().named
    except struct.error:
        raise DataError(f"the geometry ends before its end, after {len(wkb)} bytes") from None
    if reader.place != len(wkb):
        raise DataError(f"the geometry ends after {reader.place} of {len(wkb)} bytes")
    return text


@dataclass(frozen=True, slots=True)
class _Text:
    """A geometry's type, what is between its name and its coordinates (`` Z ``), and these, with parentheses, or EMPTY."""

    kind: int
    dimensions: str
    body: str

    @property
    def named(self) -> str:
        if self.body == "EMPTY":
            return f"{_NAMES[self.kind]}{self.dimensions.rstrip()} EMPTY"
        return f"{_NAMES[self.kind]}{self.dimensions}{self.body}"


class _Reader:
    """Reads geometries from bytes; `struct.error` means that they have ended."""

    def __init__(self, wkb: bytes) -> None:
        self._wkb = wkb
        self.place = 0

    def geometry(self, depth: int = 0) -> _Text:
        if depth > _MAX_NESTED:
            raise DataError(f"the geometry is nested more than {_MAX_NESTED} deep")
        mark = self._take("B")[0]
        if mark > 1:
            raise DataError(f"the geometry begins with {mark}, and not with 0 or 1 for the order of its bytes")
        order = "<" if mark else ">"
        number = self._take(order + "I")[0]
        if number & _SRID:
            self._take(order + "I")
        thousands, kind = divmod(number & ~(_Z | _M | _SRID), 1000)
        if kind not in _NAMES or thousands > 3:
            raise DataError(f"the geometry is of type {number}, which is unknown")
        has_z, has_m = bool(number & _Z) or thousands in (1, 3), bool(number & _M) or thousands in (2, 3)
        dimensions = f" {'Z' * has_z}{'M' * has_m} " if has_z or has_m else ""
        return _Text(kind, dimensions, self._body(kind, order, dimensions, 2 + has_z + has_m, depth))

    def _body(self, kind: int, order: str, dimensions: str, size: int, depth: int) -> str:
        if kind == _POINT:
            coordinates = self._take(f"{order}{size}d")
            return "EMPTY" if all(map(math.isnan, coordinates)) else f"({_position(coordinates)})"
        if kind in _LINES:
            return self._line(order, size)
        count = self._take(order + "I")[0]
        if kind in _RINGS:
            return _listed([self._line(order, size) for _ in range(self._at_most(count, 4))])
        return _listed([self._member(kind, dimensions, depth) for _ in range(self._at_most(count, 5))])

    def _line(self, order: str, size: int) -> str:
        count = self._at_most(self._take(order + "I")[0], 8 * size)
        numbers = self._take(f"{order}{count * size}d")
        return _listed([_position(numbers[start : start + size]) for start in range(0, len(numbers), size)])

    def _member(self, kind: int, dimensions: str, depth: int) -> str:
        member = self.geometry(depth + 1)
        unnamed = _MEMBERS[kind][0]
        if member.kind not in _MEMBERS[kind]:
            raise DataError(f"a {_NAMES[kind]} has a {_NAMES[member.kind]} in it")
        if member.kind != unnamed:
            return member.named
        if member.dimensions != dimensions and member.body != "EMPTY":
            raise DataError(f"a {_NAMES[kind]} has a {_NAMES[member.kind]} of other dimensions in it")
        return member.body

    def _at_most(self, count: int, size: int) -> int:
        """Return a count of things of at least the given size; raise struct.error if the bytes cannot hold them."""
        if count * size > len(self._wkb) - self.place:
            raise struct.error
        return count

    def _take(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(form, self._wkb, self.place)
        self.place += struct.calcsize(form)
        return found


def _listed(parts: list[str]) -> str:
    return f"({','.join(parts)})" if parts else "EMPTY"


def _position(numbers: tuple[float, ...]) -> str:
    return " ".join([_number(number) for number in numbers])


def _number(number: float) -> str:
    if math.isfinite(number):
        return repr(number).removesuffix(".0")
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
