"""An encoder that lets somebody fill in the values that a row of the stream does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connectors.engine.encode.slow import Encoded
from connectors.engine.encode.texts import Text
from connectors.engine.plugins.reselect import Fill
from connectors.postgres.encode.table import PostgresEncoder
from connectors.postgres.encode.tuples import read_tuple

_NEW = 0x4E


class FillingEncoder(PostgresEncoder):
    """See `PostgresEncoder`. Rows of snapshots and deleted rows are left as they are.

    Attributes:
        fill: asked for the texts of each new row in which some are missing.
    """

    fill: Fill

    def __init__(self, *args: Any, fill: Fill, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fill = fill

    def insert(self, message: bytes, position: int, source: bytes, tail: bytes) -> Encoded:
        """As `PostgresEncoder.insert`; raises what `fill` raises."""
        texts = self.fill(self._select(read_tuple(message, position + 1, self._width)[0]))
        if texts is None:
            return super().insert(message, position, source, tail)
        key, row = self._row(texts)
        return key, self.value(None, row, source, tail)

    def update(self, message: bytes, position: int, source: bytes, tail: bytes) -> tuple[bytes | None, bytes, bytes | None]:
        """As `PostgresEncoder.update`; raises what `fill` raises."""
        if message[position] == _NEW:
            return (*self.insert(message, position, source, tail), None)
        return super().update(message, position, source, tail)

    def _old_and_new(self, message: bytes, position: int) -> tuple[bytes | None, bytes, bytes | None, bytes]:
        old, new = self._both_texts(message, position)
        filled: Sequence[Text] | None = self.fill(new)
        return (*self._row(old), *self._row(new if filled is None else filled))
