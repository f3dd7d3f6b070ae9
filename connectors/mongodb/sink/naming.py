"""Names of collections (`io.debezium.sink.naming.*CollectionNamingStrategy`). Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from connect_py.api import SinkRecord
from connect_py.data import Struct
from connect_py.errors import DataError

PASSTHROUGH: Final = "io.debezium.sink.naming.PassthroughCollectionNamingStrategy"
_SOURCE = re.compile(r"\$\{source\.(.*?)\}")


class CollectionName:
    """Names the collection of a record.

    Args:
        form: the name, with ``${topic}`` and ``${source.field}``.
        is_passthrough: whether the topic's name keeps its dots, and the source is not looked at.
    """

    def __init__(self, form: str, *, is_passthrough: bool = False) -> None:
        self._form = form.strip() or "${topic}" if is_passthrough else form
        self._is_passthrough = is_passthrough
        self._has_source = not is_passthrough and "${source." in form
        self._names: dict[str, str] = {}

    def of(self, record: SinkRecord) -> str | None:
        """The name; None where it takes a source and the record has none. Raises DataError: the source has no such text."""
        name = self._names.get(record.topic)
        if name is None:
            topic = record.topic if self._is_passthrough else record.topic.replace(".", "_")
            name = self._names[record.topic] = self._form.replace("${topic}", topic)
        if not self._has_source:
            return name
        source = _member(record.value, "source")
        if source is None:
            return None
        return _SOURCE.sub(lambda found: self._text(source, found[1]), name)

    def _text(self, source: Any, field: str) -> str:
        found = _member(source, field)
        if not isinstance(found, str):
            raise DataError(f"{self._form} names no collection: the record's source has no text {field}")
        return found


def _member(value: Any, name: str) -> Any:
    if isinstance(value, Struct):
        return value[name] if value.schema.field(name) else None
    return value.get(name) if isinstance(value, dict) else None
