"""Which databases and collections are captured (mongodb.md §1.2; `io.debezium.connector.mongodb.Filters`). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from connectors.engine.relational.filters import NameFilter, compile_java_regex, parse_regexes

#: The server's own databases are never captured, whatever lists say.
SYSTEM_DATABASES: Final = frozenset({"admin", "config", "local"})

_KINDS = ("database", "collection")


def split_namespace(namespace: str) -> tuple[str, str]:
    """Database and collection; a collection's name may hold dots."""
    database, _, collection = namespace.partition(".")
    return database, collection


@dataclass(frozen=True)
class NamespaceFilter:
    """What is captured.

    Attributes:
        literal: ``filters.match.mode=literal``: names are compared as they are, trimmed, otherwise as regexes; both in any case.
        texts: the lists as they were given, by property, for the server's own stage.
        forced: the signal collection, which is captured whatever lists say.
    """

    databases: NameFilter
    collections: NameFilter
    snapshot: NameFilter
    literal: bool
    texts: Mapping[str, str]
    forced: str | None = None

    @classmethod
    def parse(cls, raw: Mapping[str, str], forced: str | None) -> NamespaceFilter:
        """From the properties of a valid configuration. Raises ConfigError."""
        literal = raw.get("filters.match.mode", "regex").strip().lower() == "literal"
        texts = {name: text for kind in _KINDS for side in ("include", "exclude") if (text := raw.get(name := f"{kind}.{side}.list", ""))}
        read = _names if literal else parse_regexes
        databases, collections = (
            NameFilter(tuple(read(texts.get(f"{kind}.include.list"))), tuple(read(texts.get(f"{kind}.exclude.list")))) for kind in _KINDS
        )
        snapshot = NameFilter.parse(raw.get("snapshot.include.collection.list"), None)
        return cls(databases, collections, snapshot, literal, texts, forced)

    def is_captured(self, namespace: str) -> bool:
        """Whether changes of a collection become records."""
        if namespace == self.forced:
            return True
        database = split_namespace(namespace)[0]
        return database not in SYSTEM_DATABASES and self.databases(database) and self.collections(namespace)

    def is_snapshotted(self, namespace: str, only: list[str] | None = None) -> bool:
        """Whether a snapshot reads a captured collection.

        Args:
            only: regexes of what a signal asks for, in place of `snapshot.include.collection.list`.
        """
        if not self.is_captured(namespace):
            return False
        if only is None:
            return self.snapshot(namespace)
        return any(compile_java_regex(pattern).fullmatch(namespace) for pattern in only)


def _names(text: str | None) -> list[re.Pattern[str]]:
    # in any case: the server's stage is exact, so that only a snapshot shows the difference
    return [re.compile(re.escape(part.strip()), re.IGNORECASE) for part in (text or "").split(",") if part.strip()]
