"""Which columns of a table a source's rows are held against, and both sides' rows in normal form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from connect_py.app.verify.normal import converter, of_column, text_of
from connect_py.app.verify.source import SourceRow
from connect_py.data import Schema, Struct
from connect_py.errors import ConnectError
from spark_sink.sql.decode import METADATA, UNAVAILABLE
from spark_sink.sql.merge import VERSION_COLUMNS

if TYPE_CHECKING:
    from spark_sink.config.sink_config import SinkConfig

#: Names that Iceberg keeps for itself: columns that come so have an underscore at their end in the table.
_RESERVED = frozenset({"_file", "_pos", "_partition", "_spec_id", "_deleted", "_row_id", "_last_updated_sequence_number"})

#: Columns that the sink adds to rows: no row of the source has their values.
_OF_SINK = frozenset({UNAVAILABLE, *VERSION_COLUMNS, *(column for column, _ in METADATA.values())})

#: Transforms may make a schema for each record.
_MAX_SCHEMAS = 1000

#: Values of the key's columns, and of all compared ones, each in the order of their names.
Normal = tuple[tuple[Any, ...], tuple[Any, ...]]


class NotComparableError(ConnectError):
    """A table's rows do not say what would have to be known of them; the text says what."""


#: What reads the compared columns of a row of the source, in their order.
_Readers = list[Callable[[SourceRow], Any]]


@dataclass(frozen=True)
class Column:
    """A compared column.

    Attributes:
        name: as the table has it, or would have it.
        places: the columns of the table that hold its values; of two the first one that is not null. A column whose type has changed
            continues next to the old one, as `<name>__<type>`. Empty where the table lacks it.
        type: of the first place.
    """

    name: str
    places: tuple[str, ...]
    type: pa.DataType | None


class Layout:
    """The columns to compare, and both sides' rows in normal form.

    Args:
        types: the table's columns.
        row: any row of the source; None where it has none, so that rows of the table are their own keys.
        fills_nulls: whether records have a column's default in place of a null.
        every_row: whether rows count whatever they say of themselves: each is an event, and what it means is decided elsewhere.
        columns_vary: whether other rows may have other columns, so that the table's count too.
        added_fields: fields of rows that tell of the event, and are not compared.
        config: of the sink, for this table.
    """

    def __init__(
        self,
        types: pa.Schema,
        row: SourceRow | None,
        config: SinkConfig,
        *,
        fills_nulls: bool,
        columns_vary: bool = False,
        added_fields: frozenset[str] = frozenset(),
        every_row: bool = False,
    ) -> None:
        self._types = {field.name: field.type for field in types}
        self._fills_nulls = fills_nulls
        self._known: dict[tuple[int, int], tuple[Schema | None, Schema, _Readers]] = {}
        self._passed_over = _OF_SINK | added_fields
        names = {} if row is None else self._columns_of(row)
        if row is None or columns_vary:
            names |= {name: None for name in self._types if name not in self._passed_over}
        left_out = config.values.get("tables.exclude-columns") or ()
        # what may not be added was left out on purpose
        ignored = config["tables.schema-change.behavior"] == "ignore"
        found = [self._column(name) for name in sorted(names) if name not in left_out]
        self.columns = [column for column in found if column.places or not ignored]
        keyed = row is not None and row.key is not None
        self.key = [column for column in self.columns if row is None or (keyed and column.name in self._names(row.key))]  # type: ignore[arg-type]
        self.has_key = bool(self.key)
        self._key_places = [self.columns.index(column) for column in self.key]
        self._where = None if every_row else self._filter(config)

    @property
    def lacking(self) -> list[str]:
        """Columns that the table has not."""
        return [column.name for column in self.columns if not column.places]

    @property
    def not_compared(self) -> list[str]:
        """Columns of the table that the source has not; metadata left out."""
        used = {place for column in self.columns for place in column.places}
        return [name for name in self._types if name not in used and name not in self._passed_over]

    @property
    def read(self) -> list[str]:
        """Columns of the table that must be read."""
        return sorted({place for column in self.columns for place in column.places} | ({self._where[0]} if self._where else set()))

    @property
    def read_for_key(self) -> list[str]:
        """Columns of the table that hold the key."""
        return sorted({place for column in self.key for place in column.places})

    def keys(self, batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        """Return keys of the table's rows, all of them."""
        values = {name: of_column(batch.column(name)) for name in self.read_for_key}
        return zip(*[_merged([values[place] for place in column.places], batch.num_rows) for column in self.key], strict=True)

    def of_table(self, batch: pa.RecordBatch) -> Iterator[Normal]:
        """Yield rows of the table that count."""
        if self._where is not None:
            name, wanted = self._where
            batch = batch.filter(pc.equal(pc.fill_null(batch.column(name), False), wanted))
        values = {name: of_column(batch.column(name)) for name in batch.schema.names}
        columns = [_merged([values[place] for place in column.places], batch.num_rows) for column in self.columns]
        for row in zip(*columns, strict=True):
            yield self.key_of(row), row

    def key_of(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the key's values out of all."""
        return tuple([row[place] for place in self._key_places])

    def of_source(self, row: SourceRow) -> Normal:
        """Return a row of the source."""
        values = tuple([reader(row) for reader in self._readers_of(row)])
        return self.key_of(values), values

    def key_of_source(self, row: SourceRow) -> tuple[Any, ...]:
        """Return the key of a row of the source."""
        readers = self._readers_of(row)
        return tuple([readers[place](row) for place in self._key_places])

    def _readers_of(self, row: SourceRow) -> _Readers:
        key = row.key.schema if row.key is not None else None
        known = self._known.get((id(key), id(row.row.schema)))
        if known is None:
            if len(self._known) >= _MAX_SCHEMAS:
                self._known.clear()
            # the schemas are kept with it, so that no other one gets their ids
            known = self._known[id(key), id(row.row.schema)] = key, row.row.schema, self._reader(row)
        return known[2]

    def _columns_of(self, row: SourceRow) -> dict[str, None]:
        return dict.fromkeys([*self._names(row.row), *(self._names(row.key) if row.key is not None else ())])

    def _names(self, struct: Struct) -> list[str]:
        """Return a struct's fields as columns, those of the row alone."""
        return [_column_name(field.name) for field in struct.schema.fields if field.name not in self._passed_over]

    def _column(self, name: str) -> Column:
        newer = [other for other in self._types if re.fullmatch(re.escape(name) + "__[a-z0-9_]+", other)]
        places = (*newer[-1:], *([name] if name in self._types else ()))
        return Column(name, places, self._types[places[0]] if places else None)

    def _reader(self, row: SourceRow) -> _Readers:
        """Return what reads the columns of rows of the same schemas: values of the key are the record key's."""
        of_key = _fields(row.key) if row.key is not None else {}
        of_row = _fields(row.row)
        readers: _Readers = []
        for column in self.columns:
            in_key = column.name in of_key
            place, schema = of_key.get(column.name) or of_row.get(column.name) or (None, None)
            if place is None or schema is None:
                readers.append(_nothing)
                continue
            convert = converter(schema, column.type)
            default = schema.default if self._fills_nulls else None
            readers.append(_reading(place, convert, None if default is None else convert(default), in_key=in_key))
        return readers

    def _filter(self, config: SinkConfig) -> tuple[str, bool] | None:
        """Return the column that marks the rows that count, and its value for these."""
        if config["tables.write-mode"] == "scd2":
            return "__is_current", True
        return ("__deleted", False) if "__deleted" in self._types else None


def _column_name(field: str) -> str:
    return field + "_" if field.lower() in _RESERVED else field


def _fields(struct: Struct) -> Mapping[str, tuple[int, Schema]]:
    return {_column_name(field.name): (place, field.schema) for place, field in enumerate(struct.schema.fields)}


def _reading(place: int, convert: Callable[[Any], Any], default: Any, *, in_key: bool) -> Callable[[SourceRow], Any]:
    def of_key(row: SourceRow) -> Any:
        value = convert(row.key.values[place])  # type: ignore[union-attr]
        return default if value is None else value

    def of_row(row: SourceRow) -> Any:
        value = row.row.values[place]
        return default if value is None else convert(value)

    return of_key if in_key else of_row


def _nothing(_: SourceRow) -> None:
    return None


def _merged(places: list[Any], rows: int) -> Any:
    if not places:
        return [None] * rows
    if len(places) == 1:
        return places[0]
    return [
        newer if newer is not None else text_of(older) if older is not None and not isinstance(older, str | bytes | tuple) else older
        for newer, older in zip(*places, strict=True)
    ]
