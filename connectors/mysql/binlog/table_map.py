"""Table maps: which table a number stands for, and how its columns are stored (MySQL's `Table_map_event`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from connectors.mysql.binlog.codes import METADATA_SIZE, ColumnType
from connectors.mysql.binlog.cursor import Cursor
from connectors.mysql.binlog.errors import MalformedEventError

_BIG_ENDIAN = (ColumnType.STRING, ColumnType.VAR_STRING, ColumnType.ENUM, ColumnType.SET)
_LENGTH_BITS = 0x30
_KNOWN = frozenset(int(code) for code in ColumnType)


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """How one column's values are stored.

    Attributes:
        type: the real type: enums and sets are disguised as strings in the event.
        size: bytes of a string at most, of an enum, a set or a length; digits of a fraction of a time; bits of a bit column.
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
        problem: why the columns could not be read, which is no harm while nobody wants the rows.
    """

    table_id: int
    schema: str
    table: str
    columns: tuple[StoredColumn, ...]
    metadata: tuple[tuple[int, bytes], ...] = ()
    nullable: tuple[bool, ...] = ()
    problem: str | None = None


#: Each transaction tells its tables' numbers anew.
_KEPT = 1024


@lru_cache(maxsize=_KEPT)
def table_map(body: bytes) -> TableMap:
    """A table map's body: the same one for the same bytes, as long as few others come in between. Raises as `read_table_map`."""
    return read_table_map(Cursor(body))


def read_table_map(cursor: Cursor) -> TableMap:
    """A table map's body. Raises MalformedEventError, IndexError, ValueError."""
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
    """The first byte is the real type; two bits of it may belong to the length instead, turned over (Bug#37426)."""
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
