"""Which rows a chunk holds: from key boundaries to a query's description, and to SQL for databases that speak it. Pure.

A chunk follows a key (`after`) and ends at the largest key that the table had when its snapshot began (`until`); the first chunk of a
table has neither bound, as in Debezium (`AbstractChunkQueryBuilder.java`). Key parts are texts as the database writes them, None for NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Values of the key's columns, in key order.
Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column by which chunks are cut."""

    name: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class ChunkQuery:
    """What to read, in key order.

    Attributes:
        key: never empty.
        after: only rows after this key.
        until: only rows up to this key; given together with `after`.
        condition: a further condition of the user's, in the database's own language.
        limit: the maximum number of rows.
        descending: the largest keys first.
    """

    key: Sequence[KeyColumn]
    after: Key | None = None
    until: Key | None = None
    condition: str | None = None
    limit: int = 1
    descending: bool = False


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """What databases write differently.

    Attributes:
        quote_name: an identifier.
        quote_value: a value of a key, as a literal that takes its type from the column it is compared with.
        row_values: whether ``ROW(a, b) > ROW(1, 2)`` is known, and served by an index.
        nulls_last: how NULL sorts among the values of an ascending key.
    """

    quote_name: Callable[[str], str]
    quote_value: Callable[[str], str]
    row_values: bool
    nulls_last: bool


def where_sql(query: ChunkQuery, dialect: SqlDialect) -> str:
    """Return the WHERE clause with a leading space; empty when there is no condition."""
    terms = []
    if query.after is not None and query.until is not None:
        terms += _bounds(query.key, query.after, query.until, dialect)
    if query.condition:
        terms.append(f"({query.condition})")
    return _where(terms)


def range_sql(key: Sequence[KeyColumn], after: Key | None, until: Key | None, dialect: SqlDialect) -> str:
    """Return the WHERE clause of all keys after `after` up to `until`, None being no bound, with a leading space; empty without bounds."""
    return _where(_bounds(key, after, until, dialect))


def order_sql(query: ChunkQuery, dialect: SqlDialect) -> str:
    """Return the ORDER BY clause and the limit, with a leading space."""
    direction = " DESC" if query.descending else ""
    names = ", ".join(dialect.quote_name(column.name) + direction for column in query.key)
    return f" ORDER BY {names} LIMIT {query.limit}"


def _where(terms: Sequence[str]) -> str:
    return " WHERE " + " AND ".join(terms) if terms else ""


def _bounds(key: Sequence[KeyColumn], after: Key | None, until: Key | None, dialect: SqlDialect) -> list[str]:
    bounds = [(">", after), ("<=", until)]
    if dialect.row_values and not any(column.nullable for column in key):
        names = [dialect.quote_name(column.name) for column in key]
        if len(key) == 1:
            return [f"{names[0]} {sign} {_literal(bound[0], dialect)}" for sign, bound in bounds if bound is not None]
        row = f"ROW({', '.join(names)})"
        return [
            f"{row} {sign} ROW({', '.join(_literal(value, dialect) for value in bound)})" for sign, bound in bounds if bound is not None
        ]
    low = [] if after is None else [_sorts_after(key, after, dialect)]
    return low if until is None else [*low, f"NOT {_sorts_after(key, until, dialect)}"]


def _sorts_after(key: Sequence[KeyColumn], bound: Key, dialect: SqlDialect) -> str:
    """Return whether a row's key sorts after a bound, column by column; never unknown (NULL), so that its negation is right too."""
    cases = []
    equal: list[str] = []
    for column, value in zip(key, bound, strict=True):
        cases.append(" AND ".join([*equal, _greater(column, value, dialect)]))
        equal.append(_equal(column, value, dialect))
    return "(" + " OR ".join(f"({case})" for case in cases) + ")"


def _greater(column: KeyColumn, value: str | None, dialect: SqlDialect) -> str:
    name = dialect.quote_name(column.name)
    if value is None:
        return "1 = 0" if dialect.nulls_last else f"{name} IS NOT NULL"
    if not column.nullable:
        return f"{name} > {_literal(value, dialect)}"
    if dialect.nulls_last:
        return f"({name} IS NULL OR {name} > {_literal(value, dialect)})"
    return f"({name} IS NOT NULL AND {name} > {_literal(value, dialect)})"


def _equal(column: KeyColumn, value: str | None, dialect: SqlDialect) -> str:
    name = dialect.quote_name(column.name)
    if value is None:
        return f"{name} IS NULL"
    literal = f"{name} = {_literal(value, dialect)}"
    return f"({name} IS NOT NULL AND {literal})" if column.nullable else literal


def _literal(value: str | None, dialect: SqlDialect) -> str:
    return "NULL" if value is None else dialect.quote_value(value)
