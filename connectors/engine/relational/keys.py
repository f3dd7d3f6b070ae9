"""Which columns make a record's key (debezium-common §5.2; `io.debezium.relational.Key.CustomKeyMapper`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from connect_py.errors import ConfigError
from connectors.engine.relational.filters import compile_java_regex
from connectors.engine.relational.table import C, Table

#: As Debezium's error shows it.
ENTRY = r"^\s*([^:]+):([^:,]+(,[^:,]+)*)\s*$"
#: The same with one way to match: the other takes minutes for a long value of blanks.
_ENTRY = re.compile(r"([^:]+):([^:,]+(?:,[^:,]+)*)")


@dataclass(frozen=True)
class KeyRules:
    """`message.key.columns`: for tables that match, these columns in this order instead of the primary key."""

    rules: tuple[tuple[re.Pattern[str], str], ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> KeyRules:
        """From ``<table regex>:<column>,<column>;<table regex>:<column>``. Raises ConfigError."""
        if text is None:
            return cls()
        if not text.strip():
            raise ConfigError("Must not be empty")
        return cls(tuple(rule for entry in text.split(";") for rule in cls.parse_entry(entry)))

    @staticmethod
    def parse_entry(entry: str) -> list[tuple[re.Pattern[str], str]]:
        """One ``<table regex>:<column>,<column>``. Raises ConfigError."""
        found = _ENTRY.fullmatch(entry)
        if not found:
            raise ConfigError(f"{entry} has an invalid format (expecting '{ENTRY}')")
        table = found[1].lstrip() or found[1][-1]
        # Debezium joins table and column into one regex, so that a `.` between them is any character
        return [(compile_java_regex(f"{table}.{column.strip()}"), column) for column in found[2].strip().split(",")]

    def columns(self, table: Table[C]) -> tuple[str, ...]:
        """Names of the key's columns in key order; empty when records have no key."""
        chosen: list[str] = []
        for pattern, _ in self.rules:
            chosen += [c.name for c in table.columns if c.name not in chosen and pattern.fullmatch(f"{table.id}.{c.name}")]
        return tuple(chosen) or table.key
