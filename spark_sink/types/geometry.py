"""Geometries as PostGIS's extended WKB, in which a value names its spatial reference, or as text: SQL, pure.

EWKB is WKB with a flag in the type's number and the reference's number behind it, both in the byte order that the first byte tells. What
Debezium reads from PostGIS has them already; MySQL's does not. Text is made by a function that the session must have
(`spark_sink.spark.functions`). It is of arrays, since Spark has no functions of Python's within lambda functions.
"""

from __future__ import annotations

#: Of the type's most significant byte (`liblwgeom.h.in`, WKBSRIDFLAG 0x20000000).
_HAS_SRID = 32

#: A session's function from an array of WKBs to their texts and, when there are none, why (`spark_sink.spark.functions`).
TO_TEXTS = "connect_py_wkt"


def ewkb(value: str) -> str:
    """SQL of a struct of wkb and srid as one binary; without a srid it is the WKB."""
    digits = f"hex({value}.`wkb`)"
    little, srid = f"{digits} LIKE '01%'", f"lpad(hex({value}.`srid`), 8, '0')"
    flags = f"CAST(conv(IF({little}, substr({digits}, 9, 2), substr({digits}, 3, 2)), 16, 10) AS INT)"
    flagged = f"lpad(hex({flags} | {_HAS_SRID}), 2, '0')"
    turned = f"concat(substr({srid}, 7, 2), substr({srid}, 5, 2), substr({srid}, 3, 2), substr({srid}, 1, 2))"
    of_little = f"concat(substr({digits}, 1, 8), {flagged}, {turned}, substr({digits}, 11))"
    of_big = f"concat(substr({digits}, 1, 2), {flagged}, substr({digits}, 5, 6), {srid}, substr({digits}, 11))"
    return (
        f"CASE WHEN {value}.`srid` IS NULL OR ({flags} & {_HAS_SRID}) <> 0 THEN {value}.`wkb` "
        f"ELSE unhex(IF({little}, {of_little}, {of_big})) END"
    )


def wkt(value: str) -> str:
    """SQL of a struct with wkb as well-known text; what is no geometry raises."""
    lacks = f"{value} IS NOT NULL AND {value}.`wkb` IS NULL"
    return f"IF({lacks}, raise_error('a geometry has no wkb'), {_texts(f'array({value}.`wkb`)')}[0])"


def wkts(value: str) -> str:
    """As `wkt`, of an array of such structs, as an array."""
    lacks = f"exists({value}, g -> g IS NOT NULL AND g.`wkb` IS NULL)"
    return f"IF({lacks}, raise_error('a geometry has no wkb'), {_texts(f'transform({value}, g -> g.`wkb`)')})"


def _texts(wkbs: str) -> str:
    found = f"{TO_TEXTS}({wkbs})"
    return f"IF({found}.`problem` IS NULL, {found}.`texts`, raise_error({found}.`problem`))"
