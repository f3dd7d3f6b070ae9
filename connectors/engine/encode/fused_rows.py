"""The functions of `fused.py` at work: which of them is tried, and whether what it gave can be used."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from connect_py.api import Route
from connect_py.api.record import EncodedRow
from connectors.engine.encode.fused import UNUSUAL
from connectors.engine.encode.slow import Encoded, plain_size

#: Where texts needed escapes, those of the next batches are escaped at once.
_ESCAPED_BATCHES = 64


class FusedRows:
    """Rows of one table in one form of bytes.

    Args:
        make: compiles the functions `records` and `images`, whose texts are escaped or not.
    """

    def __init__(self, make: Callable[[bool], tuple[Callable[..., int], Callable[..., int]]]) -> None:
        self._make = make
        self._made: dict[bool, tuple[Callable[..., int], Callable[..., int]]] = {}
        self._escaped = 0

    def records(self, data: bytes, route: Route, mid: str, close: bytes, *, text: str | None = None) -> list[EncodedRow] | None:
        """Records of the rows from a place up to the end of the bytes.

        Args:
            mid: text behind a row's object, up to its number where the stream shows one.
            close: what follows.
            text: the bytes as characters U+0000 to U+00FF, where they are at hand.

        Returns:
            None where a row is unusual, or is none: nothing was given out, the careful way says which.
        """
        characters = data.decode("latin-1") if text is None else text

        def call(functions: tuple[Callable[..., int], Callable[..., int]], out: list[EncodedRow], texts: list[str]) -> int:
            return functions[0](data, characters, 0, len(data), route, mid, close, 0, out.append, texts.append)

        return self._read(call, len(data))

    def images(self, data: bytes) -> list[Encoded] | None:
        """Keys and objects of the rows; see `records`."""
        characters = data.decode("latin-1")

        def call(functions: tuple[Callable[..., int], Callable[..., int]], out: list[Encoded], texts: list[str]) -> int:
            return functions[1](data, characters, 0, len(data), out.append, texts.append)

        return self._read(call, len(data))

    def _read(self, call: Callable[..., int], end: int) -> list | None:  # type: ignore[type-arg]  # of what the call makes
        out: list = []  # type: ignore[type-arg]
        try:
            if not self._escaped:
                texts: list[str] = []
                if call(self._functions(False), out, texts) != end:
                    return None
                joined = "".join(texts)
                if len(orjson.dumps(joined)) == (len(joined) if joined.isascii() else plain_size(joined)) + 2:
                    return out
                out = []
                self._escaped = _ESCAPED_BATCHES
            self._escaped -= 1
            return out if call(self._functions(True), out, []) == end else None
        except UNUSUAL:
            return None

    def _functions(self, escape: bool) -> tuple[Callable[..., int], Callable[..., int]]:
        found = self._made.get(escape)
        if found is None:
            found = self._made[escape] = self._make(escape)
        return found
