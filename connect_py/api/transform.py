"""Single message transforms and predicates (`org.apache.kafka.connect.transforms`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol, TypeVar

from connect_py.api.config import ConfigDef
from connect_py.api.record import EncodedRow, Route, SinkRecord, SourceRecord

Record = TypeVar("Record", SourceRecord, SinkRecord)


class Transform(Protocol):
    """Changes one record at a time. A class may derive from this protocol and gets a `close` that does nothing and no properties.

    Class attributes:
        java_name: the class name that configurations use, such as ``org.apache.kafka.connect.transforms.InsertField$Value``; the entry
            point's name, where the class states none.
        version: shown by ``GET /connector-plugins``; the distribution's, where the class states none.
    """

    java_name: ClassVar[str]
    version: ClassVar[str]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return every property, without prefix; ``predicate`` and ``negate`` are the runtime's."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties, prefix stripped. Called once, before any record. Raises ConfigError."""

    def apply(self, record: Record) -> Record | None:
        """Return a changed record, the same one, or None to drop it.

        The record given must stay as it is, since it may be given again: make another one with `dataclasses.replace`.

        Raises:
            DataError: the record is not what the transform needs; ``errors.tolerance`` decides.
            RetriableError: the same record is given again after a moment (``errors.retry.timeout``).
        """
        ...

    def close(self) -> None:
        """Free what `configure` took. Called once, also after a failure."""


#: Makes a row of a route's key and value: the row that takes their place, or None to drop it. All three are JSON without schemas, as an
#: `EncodedBatch` has them; a null that has a schema is the text ``null``, one without is None.
RowChange = Callable[[bytes | None, bytes | None], EncodedRow | None]


class RowTransform(Protocol):
    """What a `Transform` may offer in addition: to change rows as a connector serialised them, with no object a field.

    Rows go this way where every transform of a chain handles them, and both converters do. What comes out must be what `apply` and the
    converter would have written, byte by byte.
    """

    @property
    def handles_rows(self) -> bool:
        """Whether the configuration lets it. Nulls that have a default are written as that default in these rows."""
        ...

    def row_change(self, route: Route) -> RowChange:
        """Return what becomes of a route's rows. Asked about once a route; the function returns rows of few routes, which it makes once.

        Both raise DataError or ValueError where only `apply` can tell, or fail: the batch then goes that way, record by record.
        """
        ...


class Predicate(Protocol):
    """Decides whether a transform sees a record. What is not said here is as with `Transform`."""

    java_name: ClassVar[str]
    version: ClassVar[str]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return every property, without prefix."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""

    def test(self, record: SourceRecord | SinkRecord) -> bool:
        """Return whether the transform is to see the record (or, with ``negate``, is not to see it). Raises DataError."""
        ...

    def close(self) -> None:
        """Free what `configure` took."""


class RoutePredicate(Protocol):
    """What a `Predicate` may state in addition: that it asks for a record's topic, its headers' names and whether there is a value only.

    So it can be asked once for all rows of a route.
    """

    asks_for_route_only: ClassVar[bool]
