"""The part of a source offset that says how far an incremental snapshot is: Debezium's fields, so that either side goes on from the other's
(debezium-common §11.1; `AbstractIncrementalSnapshotContext.store`).

It is there while a snapshot runs and names: the collections that are left, the current one first; the key of the last row that was *sent*
of it; the largest key it had when its snapshot began. Whether the snapshot is paused and what window is open is not stored: a start reads
the chunk behind the last sent key anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from connect_py.errors import ConfigError
from connectors.engine.snapshot.incremental.java_object import JavaValue, decode_key, encode_key

PREFIX = "incremental_snapshot_"
_SENT, _MAXIMUM = f"{PREFIX}primary_key", f"{PREFIX}maximum_key"
_COLLECTIONS, _CORRELATION = f"{PREFIX}collections", f"{PREFIX}correlation_id"
_ID, _CONDITION = f"{_COLLECTIONS}_id", f"{_COLLECTIONS}_additional_condition"
_SURROGATE = f"{_COLLECTIONS}_surrogate_key"

#: Parts of a key with their Java classes.
StoredKey = tuple[JavaValue | None, ...]


@dataclass(frozen=True, slots=True)
class WantedCollection:
    """One entry of the queue.

    Attributes:
        id: as signals and offsets name it: ``schema.table``, ``database.collection``.
        condition: in the database's language, without the parentheses around it.
        surrogate_key: a column to cut chunks by instead of the key.
    """

    id: str
    condition: str | None = None
    surrogate_key: str | None = None


@dataclass(frozen=True, slots=True)
class IncrementalOffset:
    """See the module; no collections: no snapshot runs."""

    collections: tuple[WantedCollection, ...] = ()
    sent: StoredKey | None = None
    maximum: StoredKey | None = None
    correlation_id: str | None = None

    def dump(self) -> dict[str, str | None]:
        """The fields, none without a snapshot."""
        if not self.collections:
            return {}
        listed = [
            {
                _ID: wanted.id,
                # Debezium puts one pair of parentheses around what it stores, and again around what it reads
                _CONDITION: f"({wanted.condition})" if wanted.condition else None,
                _SURROGATE: wanted.surrogate_key,
            }
            for wanted in self.collections
        ]
        return {
            _SENT: encode_key(self.sent),
            _MAXIMUM: encode_key(self.maximum),
            _COLLECTIONS: json.dumps(listed, ensure_ascii=False, separators=(",", ":")),
            _CORRELATION: self.correlation_id,
        }

    @classmethod
    def load(cls, offset: Mapping[str, object]) -> IncrementalOffset:
        """From a whole offset.

        Raises:
            ConfigError: a field cannot be read.
        """
        text = offset.get(_COLLECTIONS)
        if text is None:
            return cls()
        try:
            listed = json.loads(str(text))
            collections = tuple(
                WantedCollection(str(entry[_ID]), _bare(entry.get(_CONDITION)), entry.get(_SURROGATE) or None) for entry in listed
            )
        except (ValueError, TypeError, LookupError, AttributeError):
            raise ConfigError(
                f"The field '{_COLLECTIONS}' of the stored offset is not the list of an incremental snapshot: {text!r}. Nothing was read."
            ) from None
        correlation = offset.get(_CORRELATION)
        return cls(collections, _key(offset, _SENT), _key(offset, _MAXIMUM), None if correlation is None else str(correlation))


def _key(offset: Mapping[str, object], name: str) -> StoredKey | None:
    text = offset.get(name)
    found = None if text is None else decode_key(str(text))
    return None if found is None else tuple(found)


def _bare(condition: str | None) -> str | None:
    """A condition without the parentheses that enclose it as a whole."""
    text = (condition or "").strip()
    while text.startswith("(") and text.endswith(")") and _encloses(text):
        text = text[1:-1].strip()
    return text or None


def _encloses(text: str) -> bool:
    """Whether the first parenthesis is closed by the last character. Quoted texts may hold parentheses."""
    depth = 0
    quote = ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                return place == len(text) - 1
    return False
