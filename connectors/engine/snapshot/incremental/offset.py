"""What an incremental snapshot has to read and how far it is, in memory (`IncrementalQueue`) and in the source offset.

The offset has Debezium's fields (`AbstractIncrementalSnapshotContext.store`), so that either side can resume from the other's. They are
there while a snapshot runs and name: the collections that are left, the current one first; the key of the last row that was *sent* of it;
the largest key that it had when its snapshot began. Whether the snapshot is paused and which window is open is not stored: a start reads
the chunk after the last sent key again. Pure.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError
from connectors.engine.java_object import StoredKey, decode_key, encode_key

PREFIX = "incremental_snapshot_"
_SENT, _MAXIMUM = f"{PREFIX}primary_key", f"{PREFIX}maximum_key"
_COLLECTIONS, _CORRELATION = f"{PREFIX}collections", f"{PREFIX}correlation_id"
_ID, _CONDITION = f"{_COLLECTIONS}_id", f"{_COLLECTIONS}_additional_condition"
_SURROGATE = f"{_COLLECTIONS}_surrogate_key"


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
    """The fields of the source offset; no collections: no snapshot runs."""

    collections: tuple[WantedCollection, ...] = ()
    sent: StoredKey | None = None
    maximum: StoredKey | None = None
    correlation_id: str | None = None

    def dump(self) -> dict[str, str | None]:
        """Return the fields, none without a snapshot."""
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
        """Read a whole offset.

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
    """Return a condition without the parentheses that enclose it as a whole."""
    text = (condition or "").strip()
    while text.startswith("(") and text.endswith(")") and _encloses(text):
        text = text[1:-1].strip()
    return text or None


def _encloses(text: str) -> bool:
    """Return whether the first parenthesis is closed by the last character. Quoted texts may hold parentheses."""
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


#: The offset is a record of the offsets topic, whose limit is 1 MB by default (`max.message.bytes`); a character takes up to four bytes.
MAX_CHARACTERS = 200_000


class IncrementalQueue:
    """The collections that are left to read; the first one is the one that is read. Owned by `IncrementalSnapshot`.

    Args:
        names: the collections that are captured, as signals name them. Raises ConnectError.

    Attributes:
        sent: chunk key of the last row of the first collection that was sent.
        end: of the last row that was read; ahead of `sent` while a window waits.
        correlation: id of the signal that asked for a snapshot last.
        scanned: rows of the first collection that were read.
    """

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names
        self._wanted: deque[WantedCollection] = deque()
        self._stops: list[str] = []
        self._maximum: StoredKey | None = None
        self._offset: Mapping[str, str | None] = {}
        self.sent: StoredKey | None = None
        self.end: StoredKey | None = None
        self.correlation: str | None = None
        self.scanned = 0

    def __bool__(self) -> bool:
        return bool(self._wanted)

    @property
    def first(self) -> WantedCollection:
        """The collection that is read now."""
        return self._wanted[0]

    @property
    def ids(self) -> list[str]:
        """What is left, the current one first."""
        return [wanted.id for wanted in self._wanted]

    @property
    def maximum(self) -> StoredKey | None:
        """The largest key that the first collection had when its snapshot began; None before that is known."""
        return self._maximum

    @maximum.setter
    def maximum(self, key: StoredKey | None) -> None:
        self._maximum = key
        self._note()

    # -- the offset --------------------------------------------------------------------------------------------------------------------

    def offset(self) -> Mapping[str, str | None]:
        """Return the fields of the source offset; empty when nothing is left."""
        return self._offset

    def restore(self, stored: Mapping[str, object]) -> None:
        """Resume from an offset. Raises ConfigError: the fields cannot be read."""
        found = IncrementalOffset.load(stored)
        self._wanted = deque(found.collections)
        self.sent = self.end = found.sent
        self._maximum = found.maximum
        self.correlation = found.correlation_id
        self._stops.clear()
        self._note()

    def _note(self) -> None:
        self._offset = IncrementalOffset(tuple(self._wanted), self.sent, self._maximum, self.correlation).dump()

    # -- reading -----------------------------------------------------------------------------------------------------------------------

    def sent_all(self) -> None:
        """Note that everything that was read was sent."""
        self.sent = self.end
        self._note()

    def next(self) -> None:
        """Remove the first collection, which is done."""
        self._wanted.popleft()
        self._begin()
        if not self._wanted:
            self.correlation = None
        self._note()

    def _begin(self) -> None:
        self.sent = self.end = self._maximum = None
        self.scanned = 0

    # -- signals -----------------------------------------------------------------------------------------------------------------------

    def add(
        self, signal: str, collections: Sequence[str], conditions: Sequence[tuple[str, str]], surrogate_key: str | None
    ) -> Sequence[WantedCollection]:
        """Append collections; see `IncrementalSnapshot.begin`. Returns what was appended."""
        rules = [(compile_java_regex(f"(?i){name}"), condition) for name, condition in conditions]
        added = []
        for name in self.expanded(collections):
            condition = next((condition for pattern, condition in rules if pattern.fullmatch(name)), None)
            added.append(WantedCollection(name, condition or None, surrogate_key or None))
        size = sum(len(str(text)) for text in IncrementalOffset((*self._wanted, *added)).dump().values())
        if size > MAX_CHARACTERS:
            raise ConfigError(
                f"the collections and conditions that are left to read would make the source offset {size} characters long, and Kafka "
                f"refuses records of about a million; {MAX_CHARACTERS} are allowed. Name fewer collections in one signal"
            )
        if not self._wanted:
            self._begin()
        self._wanted += added
        self.correlation = signal or None
        self._note()
        return added

    @property
    def has_stops(self) -> bool:
        """Whether collections wait to be taken out."""
        return bool(self._stops)

    def want_stop(self, collections: Sequence[str]) -> None:
        """Note the collections to take out.

        Args:
            collections: regexes of their names; none stands for all collections.

        Raises:
            ConfigError: a regex is malformed; nothing is noted.
            ConnectError: the names cannot be looked up; nothing is noted.
        """
        self._stops += self.expanded(collections or [".*"])

    def apply_stops(self) -> list[str]:
        """Take out what was to be taken out, and return the names. Never fails: the signal was checked when it came."""
        named, self._stops = list(dict.fromkeys(self._stops)), []
        current, stopped = self.first.id, [name for name in named if name in self.ids]
        self._wanted = deque(wanted for wanted in self._wanted if wanted.id == current or wanted.id not in stopped)
        if current in stopped:
            # the one that is read comes last, as in Debezium's notification
            stopped = [*(name for name in stopped if name != current), current]
        self._note()
        return stopped

    def expanded(self, patterns: Iterable[str]) -> list[str]:
        """Return the names that match regexes; a regex that matches none is taken as a name, which may be quoted. Raises ConfigError: one
        is malformed."""
        names = self._names()
        found: dict[str, None] = {}
        for text in patterns:
            try:
                pattern = compile_java_regex(text)
            except ConfigError as error:
                raise ConfigError(f"'{text}' in data-collections is no regular expression: {error}") from None
            bare = text.replace('"', "").replace("`", "")
            found.update(dict.fromkeys([name for name in names if pattern.fullmatch(name)] or [bare if bare in names else text]))
        return list(found)
