"""Transform rows that stay as a connector serialised them, where every transform of a chain handles such rows (`RowTransform`).

A row is then JSON without schemas from the connector to the producer, and no value is decoded. What a transform does with the rows of a
route is asked once, and so is what its predicate says of them. Used by the task's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from connect_py.api import Header, JsonEncoding, Route, SourceRecord
from connect_py.api.record import EncodedRow, KeyText
from connect_py.api.transform import RowChange
from connect_py.converters.base import RowConverter
from connect_py.converters.json_converter import JsonConverter
from connect_py.data.json_rows import NULL, NeedsRecord
from connect_py.data.schema import STRING
from connect_py.errors import ConnectError, DataError

#: Routes remembered at a time. There is one a table and schema version, and one an update of a key; more than this are leftovers.
MAX_ROUTES = 2000


class Step(NamedTuple):
    """One transform with its predicate."""

    transform: Any
    predicate: Any
    negate: bool
    name: str

    @property
    def handles_rows(self) -> bool:
        """Whether rows can go through it as they are, if routes allow it."""
        if self.predicate is not None:
            kind = type(self.predicate)
            if not (is_of_one_class(kind, "asks_for_route_only", "test") and self.predicate.asks_for_route_only):
                return False
        return is_of_one_class(type(self.transform), "row_change", "apply") and bool(self.transform.handles_rows)


def is_of_one_class(kind: type, short: str, long: str) -> bool:
    """Return whether a class has a short way that belongs to its long one: a class that derives from it may change the latter alone."""
    short_at, long_at = (next((at for at, base in enumerate(kind.__mro__) if name in vars(base)), None) for name in (short, long))
    return short_at is not None and long_at is not None and short_at <= long_at


class _Changes(dict[Route, RowChange]):
    """What one step does, by route."""

    def __init__(self, plan: Callable[[Route], RowChange]) -> None:
        super().__init__()
        self._plan = plan

    def __missing__(self, route: Route) -> RowChange:
        if len(self) >= MAX_ROUTES:
            self.clear()
        try:
            change = self._plan(route)
        except (DataError, ValueError) as error:
            change = _refusing(error)
        self[route] = change
        return change


def _refusing(error: Exception) -> RowChange:
    def refuse(key: bytes | None, value: bytes | None) -> EncodedRow | None:
        raise NeedsRecord from error

    return refuse


class RowChain:
    """The transforms of a chain, for rows.

    Args:
        steps: all must handle rows; there may be none.
        key, value: the converters; both must handle rows.

    Attributes:
        encoding: how a connector must serialise rows.
    """

    def __init__(self, steps: Sequence[Step], key: RowConverter, value: RowConverter) -> None:
        self._key, self._value = key, value
        self._changes = [_Changes(lambda route, step=step: _change_of(step, route)) for step in steps]  # type: ignore[misc]
        if not steps and isinstance(key, JsonConverter) and isinstance(value, JsonConverter):  # the connector does it all
            self.encoding = JsonEncoding(key.schemas_enabled, value.schemas_enabled, key.numeric_decimals, value.numeric_decimals)
        else:
            self.encoding = JsonEncoding(False, False, key.numeric_decimals, value.numeric_decimals)
            self._changes.append(_Changes(self._completion))

    def changed(self, rows: Sequence[EncodedRow]) -> Sequence[EncodedRow] | None:
        """Return what becomes of rows, without those that are dropped; None if the rows must be decoded for a transform."""
        try:
            for changes in self._changes:
                rows = [made for route, key, value in rows if (made := changes[route](key, value)) is not None]
        except (ConnectError, ValueError):
            return None
        return rows

    def _completion(self, route: Route) -> RowChange:
        write_value = self._value.row_writer(route.topic, route.value_schema)
        write_key = None if route.key_schema is None else self._key.row_writer(route.topic, route.key_schema)

        def complete(key: bytes | None, value: bytes | None) -> EncodedRow:
            return (
                route,
                None if key is None or write_key is None else write_key(key),
                None if value is None else write_value(value),
            )

        return complete


def _with_schemas_of_headers(route: Route) -> Route:
    """Return a route whose headers show keys of its present schema, also after a transform of keys."""
    if route.key_schema is None or not any(isinstance(text, KeyText) and text.schema is None for _, text in route.headers):
        return route
    return replace(
        route,
        headers=tuple(
            (name, KeyText(text, route.key_schema) if isinstance(text, KeyText) and text.schema is None else text)
            for name, text in route.headers
        ),
    )


def _change_of(step: Step, route: Route) -> RowChange:
    route = _with_schemas_of_headers(route)
    change: RowChange = step.transform.row_change(route)
    if step.predicate is None:
        return change
    headers = [Header(name, text, STRING) for name, text in route.headers]
    value_passes, null_passes = (
        step.predicate.test(SourceRecord({}, {}, route.topic, value=value, headers=headers)) == step.negate for value in (b"", None)
    )
    if value_passes and null_passes:
        return lambda key, value: (route, key, value)
    if not value_passes and not null_passes:
        return change

    def some(key: bytes | None, value: bytes | None) -> EncodedRow | None:
        passes = null_passes if value is None or value == NULL else value_passes
        return (route, key, value) if passes else change(key, value)

    return some
