"""`field.exclude.list` and `field.renames` (mongodb.md §4.6; `FieldSelector.java`): what documents and descriptions of
updates look like without, or with other, fields. Pure.

A document that rules apply to is decoded, changed, and encoded again; other collections' documents stay bytes. Decoding keeps what BSON
distinguishes (64-bit numbers, codes, binary subtypes), since the driver has a class for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from connect_py.errors import DataError

_FORM: Final = "<databaseName>.<collectionName>.<fieldName>.<nestedFieldName>"
_PATH = r"[^.]+(?:\.[^.]+)*"
_EXCLUDE = re.compile(rf"([^.]+)\.([^.]+)\.({_PATH})")
_RENAME = re.compile(r"([^.]+)\.([^.]+)\.([^.:]+(?:\.[^.:]+)*):([^.:]+)")

Document = dict[str, Any]


def exclude_problems(text: str | None) -> list[str]:
    """What is wrong with each entry of `field.exclude.list`."""
    return [f"{entry} has invalid format (expecting {_FORM})" for entry in _entries(text) if not _EXCLUDE.fullmatch(entry)]


def rename_problems(text: str | None) -> list[str]:
    """What is wrong with each entry of `field.renames`."""
    return [
        f"{entry} has invalid format (expecting {_FORM}:<newNestedFieldName>)" for entry in _entries(text) if not _RENAME.fullmatch(entry)
    ]


def _entries(text: str | None) -> list[str]:
    return [] if text is None else [entry.strip() for entry in text.split(",")]


@dataclass(frozen=True)
class _Rule:
    """`new` is the last node's new name; None excludes the field."""

    namespace: re.Pattern[str]
    path: tuple[str, ...]
    new: str | None = None


@dataclass(frozen=True)
class FieldRules:
    """All rules, excludes first, in the order in which they apply."""

    rules: tuple[_Rule, ...] = ()

    @classmethod
    def parse(cls, excludes: str | None, renames: str | None) -> FieldRules:
        """From the two properties, which are valid."""
        found = [_Rule(_namespace(m[1], m[2]), tuple(m[3].split("."))) for entry in _entries(excludes) if (m := _EXCLUDE.fullmatch(entry))]
        found += [
            _Rule(_namespace(m[1], m[2]), tuple(m[3].split(".")), m[4]) for entry in _entries(renames) if (m := _RENAME.fullmatch(entry))
        ]
        return cls(tuple(found))

    def of(self, namespace: str) -> FieldChanges | None:
        """What applies to a collection; None for nothing."""
        chosen = tuple(rule for rule in self.rules if rule.namespace.fullmatch(namespace))
        return FieldChanges(chosen) if chosen else None


def _namespace(database: str, collection: str) -> re.Pattern[str]:
    parts = [".*" if part == "*" else re.escape(part).replace(r"\*", ".*") for part in (database, collection)]
    return re.compile(r"\.".join(parts), re.IGNORECASE)


class FieldChanges:
    """The rules of one collection."""

    def __init__(self, rules: tuple[_Rule, ...]) -> None:
        self._rules = rules

    def document(self, document: Document) -> Document:
        """Change a whole document, in place. Raises DataError: a new name is already there."""
        for rule in self._rules:
            _apply(document, rule.path, rule.new)
        return document

    def updated_fields(self, fields: Document) -> Document:
        """Change the updated fields of a description, whose names are paths. Raises DataError."""
        for rule in self._rules:
            for name in list(fields):
                parts = _without_indexes(name)
                if parts is None:
                    continue
                common = min(len(parts), len(rule.path))
                if tuple(parts[:common]) != rule.path[:common]:
                    continue
                if len(parts) < len(rule.path):
                    _descend(fields[name], rule.path[len(parts) :], rule.new)
                elif rule.new is None:
                    del fields[name]
                else:
                    _move(fields, name, _renamed(name, len(rule.path), rule.new))
        return fields

    def names(self, names: Iterable[str]) -> list[str]:
        """Change the names of removed fields or truncated arrays, which are paths; those of excluded fields are left out."""
        found = list(names)
        for rule in self._rules:
            found = [changed for name in found if (changed := _name(name, rule)) is not None]
        return found

    def kept(self, name: str) -> str | None:
        """One such name; None when it is left out."""
        return next(iter(self.names([name])), None)


def _name(name: str, rule: _Rule) -> str | None:
    parts = _without_indexes(name)
    if parts is None or tuple(parts[: len(rule.path)]) != rule.path:
        return name
    return None if rule.new is None else _renamed(name, len(rule.path), rule.new)


def _without_indexes(name: str) -> list[str] | None:
    """The parts of a dotted name without the array indexes; None when two indexes follow one another (an array of arrays)."""
    found: list[str] = []
    index = False
    for part in name.split("."):
        if part.isdecimal():
            if index:
                return None
            index = True
        else:
            found.append(part)
            index = False
    return found


def _renamed(name: str, depth: int, new: str) -> str:
    """A dotted name with another part at a depth that does not count array indexes."""
    parts = name.split(".")
    seen = 0
    for place, part in enumerate(parts):
        seen += not part.isdecimal()
        if seen == depth:
            parts[place] = new
            break
    return ".".join(parts)


def _apply(document: Document, path: tuple[str, ...], new: str | None) -> None:
    head = path[0]
    if head not in document:
        return
    if len(path) > 1:
        _descend(document[head], path[1:], new)
    elif new is None:
        del document[head]
    else:
        _move(document, head, new)


def _descend(value: Any, path: tuple[str, ...], new: str | None) -> None:
    if isinstance(value, dict):
        _apply(value, path, new)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                _apply(item, path, new)


def _move(document: Document, old: str, new: str) -> None:
    """Give a field another name; it becomes the last one, as in the reference."""
    if new in document:
        raise DataError(f"Document already contains field : {new}")
    document[new] = document.pop(old)


#: Changes of a namespace, None without any.
ChangesOf = Callable[[str], FieldChanges | None]
