"""MongoDB's own change events as rows: the columns that the sink makes of them, from the events' texts.

An `_id` is a text in the table: an ObjectId's 24 digits, a text as it is, anything else in extended JSON, and so is a text that would read
as one of these. Nothing of this shares code with the sink.
"""

from __future__ import annotations

import json
import re
from typing import Any

from connect_py.data import Struct
from connect_py.data.schema import OPTIONAL_STRING, STRING, struct

_KEY = struct([("_id", STRING)])
_ROW = struct([("document", OPTIONAL_STRING)])

_DIGITS = re.compile("[0-9a-f]{24}")


def id_of(key: Struct) -> Struct:
    """The key of a row, from that of an event, whose `id` is extended JSON."""
    return Struct(_KEY, [_plain(str(key.without_default("id")))])


def document_of(text: Any) -> Struct:
    """The row beside the key."""
    return Struct(_ROW, [text])


def _plain(text: str) -> str:
    value = json.loads(text)
    if isinstance(value, dict) and list(value) == ["$oid"]:
        return str(value["$oid"])
    return value if isinstance(value, str) and not _reads_as_something_else(value) else text


def _reads_as_something_else(text: str) -> bool:
    return not text or text[0] in '-0123456789{["' or text in ("true", "false", "null") or bool(_DIGITS.fullmatch(text))
