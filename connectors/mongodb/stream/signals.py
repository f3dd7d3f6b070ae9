"""Signal documents, and the watermarks that are ones (mongodb.md §10.1, §10.2)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import bson
from bson.codec_options import CodecOptions, DatetimeConversion

from connectors.engine.snapshot.incremental.contract import CLOSE, OPEN, Watermarks
from connectors.mongodb.namespaces import split_namespace
from connectors.mongodb.server.connection import Client
from connectors.mongodb.server.errors import translated
from connectors.mongodb.values.bson_forms import Form
from connectors.mongodb.values.bson_json import bson_json

log = logging.getLogger(__name__)

_FIELDS: Final = 3
_OPTIONS: Final[CodecOptions[dict[str, Any]]] = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_MS, unicode_decode_error_handler="replace"
)
_text = bson_json(Form.RELAXED).document


def signal_of(raw: bytes) -> tuple[str, str, str] | None:
    """Id, type and data (JSON text, perhaps empty) of a signal document; None, with a warning, for another document."""
    document = bson.decode(raw, _OPTIONS)
    if len(document) != _FIELDS:
        log.warning("The signal event '%s' should have %d fields but has %d", _text(raw), _FIELDS, len(document))
        return None
    id_, type_, data = (_shown(value) for value in document.values())
    return id_, type_, data


def _shown(value: Any) -> str:
    return _text(bson.encode(value)) if isinstance(value, dict) else "" if value is None else str(value)


class SignalCollection(Watermarks):
    """Documents of the signal collection as watermarks.

    Args:
        client: of now.
        deletes: ``incremental.snapshot.watermarking.strategy=insert_delete``: the end of a window deletes the document of its begin. The
            stream cannot be asked for that deletion where the user's pipeline or `skipped.operations` hides deletes, so that the window
            closes after the stream's next answer, as it does in the reference. It is open from the moment the chunk is there; see
            `connectors.engine.snapshot.incremental.contract`.
    """

    def __init__(self, client: Callable[[], Client], namespace: str, *, deletes: bool) -> None:
        self._client = client
        self._namespace = namespace
        self._deletes = deletes
        self._passed = ""
        self.open_at_once = deletes

    def low(self, chunk: str) -> None:
        """See `Watermarks`."""
        self._passed = ""
        self._insert(f"{chunk}-open", OPEN)

    def high(self, chunk: str) -> None:
        """See `Watermarks`."""
        if not self._deletes:
            self._insert(f"{chunk}-close", CLOSE)
            return
        database, collection = split_namespace(self._namespace)
        with translated(f"Cannot write to the signal collection {self._namespace}"):
            self._client()[database][collection].delete_one({"_id": f"{chunk}-open"})
        self._passed = chunk

    def passed(self) -> str:
        """See `Watermarks`."""
        chunk, self._passed = self._passed, ""
        return chunk

    def _insert(self, id_: str, type_: str) -> None:
        database, collection = split_namespace(self._namespace)
        with translated(f"Cannot write to the signal collection {self._namespace}"):
            self._client()[database][collection].insert_one({"_id": id_, "type": type_, "payload": ""})
