"""Read extended JSON as typed values: what `BsonDocument.parse` makes of the texts in MongoDB's change events.

Documents are dicts, arrays lists, every other value a `Bson`. All forms that a connector writes are read (strict, canonical, relaxed); the
shell's own syntax is not. No driver is needed: a worker that only transforms does not have one.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from connect_py.data.java_text import double_text, escaped
from connect_py.errors import DataError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INT32 = range(-(2**31), 2**31)


class Bson(NamedTuple):
    """One value.

    Attributes:
        kind: the type, as `org.bson.BsonType` names it.
        value: DATE_TIME: milliseconds; TIMESTAMP: (seconds, increment); BINARY: (subtype, bytes); REGULAR_EXPRESSION: (pattern, options);
            OBJECT_ID, DECIMAL128: text; JAVASCRIPT_WITH_SCOPE: (code, document); None where the type says it all.
    """

    kind: str
    value: Any = None


Document = dict[str, Any]


def parse_document(text: str) -> Document:
    """Return the document of a text. Raises DataError: it is no extended JSON, or no document."""
    found = parse_value(text)
    if not isinstance(found, dict):
        raise DataError(f"A document is expected, found {kind_of(found)}")
    return found


def parse_value(text: str) -> Any:
    """Return one value of any type. Raises DataError: it is no extended JSON."""
    try:
        return _typed(json.loads(text, object_pairs_hook=_object))
    except (ValueError, RecursionError, Base64Error) as error:
        raise DataError(f"JSON reader could not read the document: {error}") from error


def kind_of(value: Any) -> str:
    """Return the name of a value's type."""
    if isinstance(value, dict):
        return "DOCUMENT"
    return "ARRAY" if isinstance(value, list) else str(value.kind)


def _object(pairs: list[tuple[str, Any]]) -> Any:
    if pairs and pairs[0][0].startswith("$"):
        special = _SPECIAL.get(pairs[0][0])
        if special is not None:
            found = special(dict(pairs))
            if found is not None:
                return found
    return {name: _typed(value) for name, value in pairs}


def _typed(value: Any) -> Any:
    """JSON's own values with their BSON types; what `_object` made stays."""
    if isinstance(value, (dict, Bson)):
        return value
    if isinstance(value, list):
        return [_typed(item) for item in value]
    if isinstance(value, str):
        return Bson("STRING", value)
    if value is None:
        return Bson("NULL")
    if isinstance(value, bool):
        return Bson("BOOLEAN", value)
    if isinstance(value, float):
        return Bson("DOUBLE", value)
    return Bson("INT32" if value in _INT32 else "INT64", value)


def _text(name: str, kind: str, read: Callable[[str], Any]) -> tuple[str, Callable[[Document], Bson | None]]:
    def special(parts: Document) -> Bson | None:
        text = parts[name]
        return Bson(kind, read(text)) if len(parts) == 1 and isinstance(text, str) else None

    return name, special


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Bson) else value


def _date(parts: Document) -> Bson | None:
    value = _plain(parts["$date"])
    if len(parts) != 1 or isinstance(value, (bool, dict, list)):
        return None
    if isinstance(value, str):
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        value = (moment - _EPOCH) // timedelta(milliseconds=1)
    return Bson("DATE_TIME", int(value))


def _timestamp(parts: Document) -> Bson | None:
    value = parts["$timestamp"]
    if not isinstance(value, dict) or value.keys() != {"t", "i"}:
        return None
    return Bson("TIMESTAMP", (int(value["t"].value), int(value["i"].value)))


def _binary(parts: Document) -> Bson | None:
    value = parts["$binary"]
    if isinstance(value, dict) and value.keys() == {"base64", "subType"}:
        return Bson("BINARY", (int(value["subType"].value, 16), b64decode(value["base64"].value)))
    if parts.keys() == {"$binary", "$type"} and isinstance(value, str):
        subtype = _plain(parts["$type"])
        return Bson("BINARY", (int(subtype, 16) if isinstance(subtype, str) else int(subtype), b64decode(value)))
    return None


def _regex(parts: Document) -> Bson | None:
    if parts.keys() != {"$regex", "$options"} or not all(isinstance(part, str) for part in parts.values()):
        return None
    return Bson("REGULAR_EXPRESSION", (parts["$regex"], "".join(sorted(parts["$options"]))))


def _regular_expression(parts: Document) -> Bson | None:
    value = parts["$regularExpression"]
    if not isinstance(value, dict) or value.keys() != {"pattern", "options"}:
        return None
    return Bson("REGULAR_EXPRESSION", (value["pattern"].value, "".join(sorted(value["options"].value))))


def _code(parts: Document) -> Bson | None:
    if parts.keys() == {"$code"}:
        return Bson("JAVASCRIPT", parts["$code"])
    return Bson("JAVASCRIPT_WITH_SCOPE", (parts["$code"], parts["$scope"])) if parts.keys() == {"$code", "$scope"} else None


def _pointer(parts: Document) -> Bson | None:
    value = parts["$dbPointer"]
    if not isinstance(value, dict) or value.keys() != {"$ref", "$id"}:
        return None
    return Bson("DB_POINTER", (value["$ref"].value, value["$id"].value))


_SPECIAL: dict[str, Callable[[Document], Bson | None]] = dict(
    (
        _text("$oid", "OBJECT_ID", str),
        _text("$numberLong", "INT64", int),
        _text("$numberInt", "INT32", int),
        _text("$numberDouble", "DOUBLE", float),
        _text("$numberDecimal", "DECIMAL128", str),
        _text("$symbol", "SYMBOL", str),
        ("$date", _date),
        ("$timestamp", _timestamp),
        ("$binary", _binary),
        ("$regex", _regex),
        ("$regularExpression", _regular_expression),
        ("$code", _code),
        ("$dbPointer", _pointer),
        ("$undefined", lambda parts: Bson("UNDEFINED")),
        ("$minKey", lambda parts: Bson("MIN_KEY")),
        ("$maxKey", lambda parts: Bson("MAX_KEY")),
    )
)


# -- as Java shows them --------------------------------------------------------------------------------------------------------------


def java_shown(value: Any) -> str:
    """`toString` of a value, as error messages have it."""
    if isinstance(value, list):
        return f"[{', '.join(map(java_shown, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}={java_shown(item)}' for name, item in value.items())}}}"
    kind, content = value
    if kind == "NULL":
        return "BsonNull"
    if kind == "TIMESTAMP":
        return f"Timestamp{{value={content[0] << 32 | content[1]}, seconds={content[0]}, inc={content[1]}}}"
    if kind == "BINARY":
        signed = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in content[1])
        return f"BsonBinary{{type={content[0] - 256 if content[0] > 127 else content[0]}, data=[{signed}]}}"
    if kind == "REGULAR_EXPRESSION":
        return f"BsonRegularExpression{{pattern='{content[0]}', options='{content[1]}'}}"
    if kind == "STRING":
        return f"BsonString{{value='{content}'}}"
    if kind == "JAVASCRIPT":
        return f"BsonJavaScript{{code='{content}'}}"
    if kind == "DOUBLE":
        return f"BsonDouble{{value={double_text(content)}}}"
    if kind == "BOOLEAN":
        return f"BsonBoolean{{value={str(content).lower()}}}"
    name = "".join(part.capitalize() for part in kind.split("_"))
    return f"Bson{name}{{value={content}}}"


# -- as canonical JSON ---------------------------------------------------------------------------------------------------------------


def indented_text(document: Document) -> str:
    """Return the canonical form over several lines, as `JsonWriter` indents it."""
    return escaped(json.dumps(_canonical(document), indent=2, ensure_ascii=False, separators=(",", ": ")))


def _canonical(value: Any) -> Any:
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {name: _canonical(item) for name, item in value.items()}
    kind, content = value
    if kind in ("STRING", "BOOLEAN", "NULL"):
        return content
    return _CANONICAL[kind](content)


_CANONICAL: dict[str, Callable[[Any], Document]] = {
    "INT32": lambda value: {"$numberInt": str(value)},
    "INT64": lambda value: {"$numberLong": str(value)},
    "DOUBLE": lambda value: {"$numberDouble": double_text(value)},
    "DECIMAL128": lambda value: {"$numberDecimal": value},
    "OBJECT_ID": lambda value: {"$oid": value},
    "SYMBOL": lambda value: {"$symbol": value},
    "JAVASCRIPT": lambda value: {"$code": value},
    "JAVASCRIPT_WITH_SCOPE": lambda value: {"$code": value[0], "$scope": _canonical(value[1])},
    "DATE_TIME": lambda value: {"$date": {"$numberLong": str(value)}},
    "TIMESTAMP": lambda value: {"$timestamp": {"t": value[0], "i": value[1]}},
    "BINARY": lambda value: {"$binary": {"base64": b64encode(value[1]).decode(), "subType": f"{value[0]:02X}"}},
    "REGULAR_EXPRESSION": lambda value: {"$regularExpression": {"pattern": value[0], "options": value[1]}},
    "DB_POINTER": lambda value: {"$dbPointer": {"$ref": value[0], "$id": {"$oid": value[1]}}},
    "UNDEFINED": lambda value: {"$undefined": True},
    "MIN_KEY": lambda value: {"$minKey": 1},
    "MAX_KEY": lambda value: {"$maxKey": 1},
}
