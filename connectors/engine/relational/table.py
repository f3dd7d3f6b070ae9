"""Tables and columns as a relational connector knows them (`io.debezium.relational.{TableId,Table,Column}`). Values, no behaviour of a
database."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A table's name; its text is what filters, statements of users and topic names see: `schema.table`."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


class Column(Protocol):
    """What this package needs to know of a column; a connector's own class says more (its type)."""

    @property
    def name(self) -> str:
        """As the server spells it."""
        ...


C = TypeVar("C", bound=Column)


@dataclass(frozen=True)
class Table(Generic[C]):
    """A table's structure.

    Attributes:
        columns: in the table's order.
        key: names of the columns of the primary key, or of the first usable unique index, in key order; empty without one.
    """

    id: TableId
    columns: tuple[C, ...]
    key: tuple[str, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, C]:
        return {column.name: column for column in self.columns}

    def column(self, name: str) -> C | None:
        """A column by its exact name."""
        return self._by_name.get(name)
