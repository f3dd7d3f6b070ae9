"""Names as Avro and Protobuf accept them: what connectors adjust (`io.debezium.schema.SchemaNameAdjuster`; `schema.name.adjustment.mode`,
`field.name.adjustment.mode`) and what converters scrub (`AvroData.doScrubName`, `ProtobufData.doScrubName`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote_plus


def _unchanged(name: str, more: str) -> str:
    return name


def _avro(name: str, more: str) -> str:
    """Letters, digits, `_` and what `more` allows; a leading digit is kept after `_`."""
    text = "".join(c if c.isascii() and (c.isalnum() or c == "_" or (c in more and i > 0)) else "_" for i, c in enumerate(name))
    return "_" + text if text[:1].isdigit() else text


def _avro_unicode(name: str, more: str) -> str:
    """As `_avro`, each other character and `_` itself as `_u` and its code unit in hexadecimal; the first must be a letter."""
    return "".join(
        c if c.isascii() and (c.isalpha() or (i > 0 and (c.isdigit() or c in more))) else "".join(_unit(u) for u in _units(c))
        for i, c in enumerate(name)
    )


def escaped(character: str) -> str:
    """Return a character as its code units in hexadecimal, each after `_u`."""
    return "".join(map(_unit, _units(character)))


def _units(character: str) -> list[int]:
    data = character.encode("utf-16-be")
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]


def _unit(unit: int) -> str:
    return f"_u{unit:04x}" if unit <= 0xFF else f"_u{unit:x}"


#: Mode → function of a name and the punctuation that may follow its first character ("." in full names, none in names of fields).
ADJUSTMENTS: Mapping[str, Callable[[str, str], str]] = {"none": _unchanged, "avro": _avro, "avro_unicode": _avro_unicode}


_VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALID_WITHOUT_UNDERSCORE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def scrub_name(name: str, *, underscore_first: bool = True) -> str:
    """Return a simple name whose other characters are URL-encoded, with underscores for the percent signs; an x before a leading digit.

    Args:
        underscore_first: whether a name may begin with an underscore.
    """
    valid = _VALID if underscore_first else _VALID_WITHOUT_UNDERSCORE
    if not name or valid.fullmatch(name):
        return name
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    if encoded[0].isdigit() or (encoded[0] == "_" and not underscore_first):
        encoded = "x" + encoded
    return re.sub(r"[^A-Za-z0-9_]", "_", encoded)


def split_name(name: str, *, scrub: bool = False, underscore_first: bool = True) -> tuple[str | None, str]:
    """A full name as namespace and simple name; each part is scrubbed if that is asked for. Trailing dots are dropped, as Java does."""
    parts = name.rstrip(".").split(".") if name else [name]
    if scrub:
        parts = [scrub_name(part, underscore_first=underscore_first) for part in parts]
    return (".".join(parts[:-1]) if len(parts) > 1 else None), parts[-1]


def full_name(name: str, *, scrub: bool) -> str:
    """Return a full name, scrubbed part by part if that is asked for."""
    namespace, simple = split_name(name, scrub=scrub)
    return simple if namespace is None else f"{namespace}.{simple}"
