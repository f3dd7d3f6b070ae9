"""JSON over several lines as Jackson's `DefaultPrettyPrinter` writes it, the form of the schema history (`DocumentWriter.java`)."""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any

import orjson

_WORDS = {None: "null", True: "true", False: "false"}


def pretty_json(value: Mapping[str, Any]) -> bytes:
    """An object's text: two blanks a level of objects, elements of lists on one line. Raises TypeError: a value has no JSON form."""
    return _written(dict(value), "\n").encode()


def _written(value: Any, line: str) -> str:
    """Args:
    line: the line break with the indentation of the object around.
    """
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, dict):
        if not value:
            return "{ }"
        deeper = line + "  "
        fields = [f"{encode_basestring(name)} : {_written(item, deeper)}" for name, item in value.items()]
        return "{" + deeper + ("," + deeper).join(fields) + line + "}"
    if isinstance(value, list | tuple):
        return "[ " + ", ".join([_written(item, line) for item in value]) + " ]" if value else "[ ]"
    return orjson.dumps(value).decode()
