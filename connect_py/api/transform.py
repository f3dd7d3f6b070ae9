"""Single message transforms and predicates (`org.apache.kafka.connect.transforms`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol, TypeVar

from connect_py.api.config import ConfigDef
from connect_py.api.record import SinkRecord, SourceRecord

Record = TypeVar("Record", SourceRecord, SinkRecord)


class Transform(Protocol):
    """Changes one record at a time.

    Class attributes:
        java_name: the class name that configurations use, such as ``org.apache.kafka.connect.transforms.InsertField$Value``.
    """

    java_name: ClassVar[str]
    version: ClassVar[str]

    @classmethod
    def config_def(cls) -> ConfigDef: ...

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties, prefix stripped. Raises ConfigError."""
        ...

    def apply(self, record: Record) -> Record | None:
        """A changed record, the same one, or None to drop it. Raises DataError."""
        ...

    def close(self) -> None: ...


class Predicate(Protocol):
    """Decides whether a transform sees a record; the methods mirror `Transform`."""

    java_name: ClassVar[str]
    version: ClassVar[str]

    @classmethod
    def config_def(cls) -> ConfigDef: ...

    def configure(self, config: Mapping[str, str]) -> None: ...

    def test(self, record: SourceRecord | SinkRecord) -> bool: ...

    def close(self) -> None: ...
