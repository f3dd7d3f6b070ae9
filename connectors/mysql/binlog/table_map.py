"""Table maps: which table a number stands for, and how its columns are stored (MySQL's `Table_map_event`).

``binlog_row_metadata=FULL`` adds what `described_columns` reads (MySQL's `Optional_metadata_fields`; MariaDB's are the same).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from connectors.mysql.binlog.codes import METADATA_SIZE, ColumnType, MalformedEventError
from connectors.mysql.binlog.cursor import Cursor

_BIG_ENDIAN = (ColumnType.STRING, ColumnType.VAR_STRING, ColumnType.ENUM, ColumnType.SET)
_LENGTH_BITS = 0x30
_KNOWN = frozenset(int(code) for code in ColumnType)


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """How one column's values are stored.

    Attributes:
        type: the real type: enums and sets are disguised as strings in the event.
        size: maximum bytes of a string; bytes of an enum, a set or a length; digits of a fraction of a time; bits of a bit column.
        scale: digits of a decimal's fraction, of which `size` is the precision.
    """

    type: ColumnType
    size: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class TableMap:
    """A table's number for the rows that follow.

    Attributes:
        metadata: what ``binlog_row_metadata`` adds: (field number, bytes) pairs.
        nullable: of each column, whether NULL is a value.
        problem: why the columns could not be read, which does no harm while the rows are not used.
    """

    table_id: int
    schema: str
    table: str
    columns: tuple[StoredColumn, ...]
    metadata: tuple[tuple[int, bytes], ...] = ()
    nullable: tuple[bool, ...] = ()
    problem: str | None = None

    def is_whole(self, present: bytes) -> bool:
        """Return whether images with a bit map of columns hold all of them."""
        return int.from_bytes(present, "little").bit_count() >= len(self.columns)


#: Each transaction announces its tables' numbers again.
_KEPT = 1024


@lru_cache(maxsize=_KEPT)
def table_map(body: bytes) -> TableMap:
    """Return a table map's body: the same object for the same bytes, as long as few others come in between. Raises as `read_table_map`."""
    return read_table_map(Cursor(body))


def read_table_map(cursor: Cursor) -> TableMap:
    """Return a table map's body. Raises MalformedEventError, IndexError, ValueError."""
    table_id = cursor.number(6)
    cursor.take(2)
    schema = _name(cursor)
    table = _name(cursor)
    width = cursor.packed()
    types = cursor.take(width)
    metadata = Cursor(cursor.take(cursor.packed()))
    unknown = [code for code in types if code not in _KNOWN]
    if unknown:
        return TableMap(table_id, schema, table, (), problem=f"{unknown[0]} is no known type of a column of {schema}.{table}")
    columns = tuple(_column(code, metadata) for code in types)
    bits = int.from_bytes(cursor.take((width + 7) // 8), "little")
    nullable = tuple(bool(bits >> i & 1) for i in range(width))
    return TableMap(table_id, schema, table, columns, tuple(_optional_metadata(cursor)), nullable)


def _name(cursor: Cursor) -> str:
    name = cursor.text(cursor.packed())
    cursor.take(1)
    return name


def _column(code: int, metadata: Cursor) -> StoredColumn:
    type_ = ColumnType(code)
    octets = metadata.take(METADATA_SIZE.get(type_, 0))
    match type_:
        case ColumnType.STRING:
            return _string(octets)
        case ColumnType.BIT:
            return StoredColumn(type_, octets[0] + 8 * octets[1])
        case ColumnType.NEWDECIMAL:
            if not octets[1] <= octets[0] <= 65:
                raise MalformedEventError(f"there is no decimal({octets[0]},{octets[1]})")
            return StoredColumn(type_, octets[0], octets[1])
    return StoredColumn(type_, int.from_bytes(octets, "big" if type_ in _BIG_ENDIAN else "little"))


def _string(octets: bytes) -> StoredColumn:
    """Read a string's type and length. The first byte is the real type; two inverted bits of it may belong to the length (Bug#37426)."""
    code, size = octets
    if code & _LENGTH_BITS != _LENGTH_BITS:
        return StoredColumn(ColumnType.STRING, size | (code & _LENGTH_BITS ^ _LENGTH_BITS) << 4)
    real = ColumnType(code) if code in _KNOWN else ColumnType.STRING
    return StoredColumn(real if real in (ColumnType.ENUM, ColumnType.SET) else ColumnType.STRING, size)


def _optional_metadata(cursor: Cursor) -> list[tuple[int, bytes]]:
    found = []
    while cursor.at < cursor.end:
        field = cursor.number(1)
        found.append((field, cursor.take(cursor.packed())))
    return found


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
    """Return the columns; None where the log does not name them (``binlog_row_metadata=MINIMAL``).

    Attribute `in_key` is the position in the primary key, from 1; 0 for columns outside.

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
    """Return a bit for each numeric column, the first in the highest bit."""
    return {i for bit, i in enumerate(_of(map_, _NUMERIC)) if bit >> 3 < len(bits) and bits[bit >> 3] >> (7 - (bit & 7)) & 1}


def _collations(map_: TableMap, fields: dict[int, bytes], types: frozenset[ColumnType], default: int, each: int) -> dict[int, int]:
    """Read collations: one for all columns of some types with exceptions, or one each."""
    columns = _of(map_, types)
    if each in fields:
        cursor = Cursor(fields[each])
        return {i: cursor.packed() for i in columns}
    if default not in fields:
        return {}
    cursor = Cursor(fields[default])
    found = dict.fromkeys(columns, cursor.packed())
    while cursor.at < cursor.end:
        index, collation = cursor.packed(), cursor.packed()
        if index < len(columns):
            found[columns[index]] = collation
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
