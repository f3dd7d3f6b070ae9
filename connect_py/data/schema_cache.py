"""What was computed of a schema, kept while the schema lives here.

Schemas are looked up by identity: hashing a deep schema for every record would cost more than writing the record, and records of one
table share one object. Used from the thread of the converter that owns it; a lost race between two threads only computes twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from connect_py.data.schema import Schema

T = TypeVar("T")


class SchemaCache(Generic[T]):
    """A bounded memo of a function of schemas.

    Args:
        compute: the function.
        size: how many schemas are kept; when there are more, all are forgotten (a stream with that many live schemas gains nothing
            from a finer rule).
    """

    def __init__(self, compute: Callable[[Schema | None], T], size: int = 1000) -> None:
        self._compute = compute
        self._size = max(size, 1)
        self._known: dict[int, tuple[Schema | None, T]] = {}

    def __call__(self, schema: Schema | None) -> T:
        found = self._known.get(id(schema))
        if found is not None:
            return found[1]
        value = self._compute(schema)
        if len(self._known) >= self._size:
            self._known.clear()
        self._known[id(schema)] = (schema, value)  # the reference keeps the id from being given to another schema
        return value
