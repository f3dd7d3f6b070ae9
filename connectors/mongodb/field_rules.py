"""`field.exclude.list` and `field.renames` (`FieldSelector`): documents and descriptions of updates without fields, or with other names.

Pure.

A document that rules apply to is taken apart, changed, and put together again (`bson_tree`); other collections' documents stay bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from connect_py.errors import DataError

_FORM: Final = "<databaseName>.<collectionName>.<fieldName>.<nestedFieldName>"
_PATH = r"[^.]+(?:\.[^.]+)*"
_EXCLUDE = re.compile(rf"([^.]+)\.([^.]+)\.({_PATH})")
_RENAME = re.compile(r"([^.]+)\.([^.]+)\.([^.:]+(?:\.[^.:]+)*):([^.:]+)")

Document = dict[str, Any]


def exclude_problems(text: str | None) -> list[str]:
    """Return what is wrong with each entry of `field.exclude.list`."""
    return [f"{entry} has invalid format (expecting {_FORM})" for entry in _entries(text) if not _EXCLUDE.fullmatch(entry)]


def rename_problems(text: str | None) -> list[str]:
    """Return what is wrong with each entry of `field.renames`."""
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
        """Parse the two properties, which are valid."""
        found = [_Rule(_namespace(m[1], m[2]), tuple(m[3].split("."))) for entry in _entries(excludes) if (m := _EXCLUDE.fullmatch(entry))]
        found += [
            _Rule(_namespace(m[1], m[2]), tuple(m[3].split(".")), m[4]) for entry in _entries(renames) if (m := _RENAME.fullmatch(entry))
        ]
        return cls(tuple(found))

    def of(self, namespace: str) -> FieldChanges | None:
        """Return what applies to a collection; None for nothing."""
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
            _apply_to_paths(fields, rule)
        return fields

    def names(self, names: Iterable[str]) -> list[str]:
        """Change the names of removed fields or truncated arrays, which are paths; those of excluded fields are left out."""
        return [kept for name in names if (kept := self.kept(name)) is not None]

    def kept(self, name: str) -> str | None:
        """One such name; None when it is left out.

        The first rule counts that names the field or something inside of it: a removed document goes with an excluded field in it, while
        a name below an excluded field stays, as in the reference.
        """
        parts = _without_indexes(name)
        for rule in self._rules:
            if rule.path[: len(parts)] == parts:
                return None if rule.new is None else _renamed(name, len(rule.path), rule.new)
        return name


def _apply_to_paths(fields: Document, rule: _Rule) -> None:
    """Apply one rule to fields whose names are paths: for a rename the path itself decides alone; else paths below it and above it.

    A rename changes only the first path above it, as in the reference; there an exclusion does so too, which shows the excluded values of
    further elements of an array.
    """
    exact = ".".join(rule.path)
    if exact in fields:
        if rule.new is not None:
            _move(fields, exact, ".".join((*rule.path[:-1], rule.new)))
            return
        del fields[exact]
    moved: Document = {}
    for name in list(fields):
        parts = _without_indexes(name)
        common = min(len(parts), len(rule.path))
        if parts[:common] != rule.path[:common]:
            continue
        if len(parts) < len(rule.path):
            _descend(fields[name], rule.path[len(parts) :], rule.new)
            if rule.new is not None:
                break
            continue
        value = fields.pop(name)
        if rule.new is not None:
            moved[_renamed(name, len(rule.path), rule.new)] = value
    for name, value in moved.items():
        if name in fields:
            raise DataError(f"Document already contains field : {name}")
        fields[name] = value


def _without_indexes(name: str) -> tuple[str, ...]:
    """Return a dotted name's parts without the array indexes; with them when two follow one another (an array of arrays), and a name that
    is a number stays."""
    parts = tuple(name.split("."))
    if len(parts) == 1 or any(one.isdecimal() and two.isdecimal() for one, two in pairwise(parts)):
        return parts
    return tuple(part for part in parts if not part.isdecimal())


def _renamed(name: str, depth: int, new: str) -> str:
    """Return a dotted name with another part at a depth that does not count array indexes."""
    parts = name.split(".")
    seen = 0
    for index, part in enumerate(parts):
        if part.isdecimal():
            continue
        seen += 1
        if seen == depth:
            parts[index] = new
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
