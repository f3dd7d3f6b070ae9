"""What ``binlog_row_metadata=FULL`` says of a table's columns (MySQL's `Optional_metadata_fields`; MariaDB's are the same)."""

from __future__ import annotations

from dataclasses import dataclass

from connectors.mysql.binlog.codes import ColumnType
from connectors.mysql.binlog.cursor import Cursor
from connectors.mysql.binlog.table_map import StoredColumn, TableMap

(_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME, _SET_LABELS, _ENUM_LABELS, _GEOMETRY_TYPE, _KEY) = range(1, 9)
_KEY_WITH_PREFIXES, _LABELS_DEFAULT_CHARSET, _LABELS_CHARSET = 9, 10, 11
#: Each has a bit for its sign.
_NUMERIC = frozenset(
    (
        *(ColumnType.TINY, ColumnType.SHORT, ColumnType.INT24, ColumnType.LONG, ColumnType.LONGLONG),
        *(ColumnType.NEWDECIMAL, ColumnType.FLOAT, ColumnType.DOUBLE, ColumnType.YEAR),
    )
)
_CHARACTER = frozenset(
    (
        *(ColumnType.STRING, ColumnType.VAR_STRING, ColumnType.VARCHAR, ColumnType.BLOB, ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB),
        *(ColumnType.LONG_BLOB, ColumnType.BLOB_COMPRESSED, ColumnType.VARCHAR_COMPRESSED),
    )
)
_LABELLED = frozenset((ColumnType.ENUM, ColumnType.SET))


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """One column.

    Attributes:
        unsigned: as the column's type says it, which is no word of YEAR's.
        collation: number of its collation, 0 where none applies; 63 is `binary`.
        labels: of an enum or a set, as bytes in that collation's character set.
        geometry: number of its type, -1 for other columns.
    """

    name: str
    stored: StoredColumn
    nullable: bool
    unsigned: bool
    collation: int
    labels: tuple[bytes, ...]
    geometry: int
    in_key: int


def described_columns(map_: TableMap) -> list[DescribedColumn] | None:
    """The columns; None where the log does not name them (``binlog_row_metadata=MINIMAL``).

    Attribute `in_key` is the place in the primary key, from 1; 0 for columns outside.

    Raises:
        MalformedEventError: the fields contradict the map.
    """
    fields = dict(map_.metadata)
    if _COLUMN_NAME not in fields:
        return None
    cursor = Cursor(fields[_COLUMN_NAME])
    names = [cursor.text(cursor.packed()) for _ in map_.columns]
    unsigned = _flags(map_, fields.get(_SIGNEDNESS, b""))
    collations = _collations(map_, fields, _CHARACTER, _DEFAULT_CHARSET, _COLUMN_CHARSET)
    collations |= _collations(map_, fields, _LABELLED, _LABELS_DEFAULT_CHARSET, _LABELS_CHARSET)
    labels = _labels(map_, ColumnType.SET, fields.get(_SET_LABELS, b"")) | _labels(map_, ColumnType.ENUM, fields.get(_ENUM_LABELS, b""))
    shapes = Cursor(fields.get(_GEOMETRY_TYPE, b""))
    geometry = [shapes.packed() if c.type is ColumnType.GEOMETRY and shapes.at < shapes.end else -1 for c in map_.columns]
    key = _key(fields)
    return [
        DescribedColumn(
            name=names[i],
            stored=column,
            nullable=map_.nullable[i],
            unsigned=i in unsigned and column.type is not ColumnType.YEAR,
            collation=collations.get(i, 0),
            labels=labels.get(i, ()),
            geometry=geometry[i],
            in_key=key.index(i) + 1 if i in key else 0,
        )
        for i, column in enumerate(map_.columns)
    ]


def _of(map_: TableMap, types: frozenset[ColumnType]) -> list[int]:
    return [i for i, column in enumerate(map_.columns) if column.type in types]


def _flags(map_: TableMap, bits: bytes) -> set[int]:
    """A bit for each numeric column, the first in the highest bit."""
    return {i for place, i in enumerate(_of(map_, _NUMERIC)) if place >> 3 < len(bits) and bits[place >> 3] >> (7 - (place & 7)) & 1}


def _collations(map_: TableMap, fields: dict[int, bytes], types: frozenset[ColumnType], default: int, each: int) -> dict[int, int]:
    """One for all columns of some types with exceptions, or one each."""
    columns = _of(map_, types)
    if each in fields:
        cursor = Cursor(fields[each])
        return {i: cursor.packed() for i in columns}
    if default not in fields:
        return {}
    cursor = Cursor(fields[default])
    found = dict.fromkeys(columns, cursor.packed())
    while cursor.at < cursor.end:
        place, collation = cursor.packed(), cursor.packed()
        if place < len(columns):
            found[columns[place]] = collation
    return found


def _labels(map_: TableMap, type_: ColumnType, data: bytes) -> dict[int, tuple[bytes, ...]]:
    cursor = Cursor(data)
    found = {}
    for i in _of(map_, frozenset((type_,))):
        if cursor.at < cursor.end:
            found[i] = tuple(cursor.take(cursor.packed()) for _ in range(cursor.packed()))
    return found


def _key(fields: dict[int, bytes]) -> list[int]:
    simple, prefixed = fields.get(_KEY), fields.get(_KEY_WITH_PREFIXES)
    cursor = Cursor(simple or prefixed or b"")
    found = []
    while cursor.at < cursor.end:
        found.append(cursor.packed())
        if simple is None:
            cursor.packed()
    return found
