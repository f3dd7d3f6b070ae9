"""Names as Avro takes them (`io.debezium.schema.SchemaNameAdjuster`; `schema.name.adjustment.mode`, `field.name.adjustment.mode`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping


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
