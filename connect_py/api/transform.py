"""Single message transforms and predicates (`org.apache.kafka.connect.transforms`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol, TypeVar

from connect_py.api.config import ConfigDef
from connect_py.api.record import SinkRecord, SourceRecord

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
