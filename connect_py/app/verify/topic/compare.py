"""Compare one topic with its source, while data flows.

The topic is read to its end, and its records are folded by key (`fold`). Then the source is read, a range of keys at a time. What the topic
has otherwise is only suspected: the connector follows the database by a moment. So the records that have come since are folded too, again
and again, as `KeyedComparison` says; only these are read, not the whole topic. A key that changes more often than that is settled when its
records have gone through any state that the source has been seen in, and the source has been seen in another one since.

Memory holds a range of the source, 4 MiB of records, and the suspects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from connect_py.app.verify.choice import Chosen, Sample
from connect_py.app.verify.compare import KeyedComparison
from connect_py.app.verify.layout import NotComparableError
from connect_py.app.verify.normal import digest
from connect_py.app.verify.report import Difference, Patience, TopicOutcome
from connect_py.app.verify.source import SourceRow, SourceTables
from connect_py.app.verify.topic.fold import Change, Fold
from connect_py.app.verify.topic.form import Form, Row, Said, States, is_same, key_values, said_by
from connect_py.errors import ConnectError, DataError
from connect_py.kafka.consumer import ConsumedRecord

T = TypeVar("T")

#: States that are remembered of a suspect: more than most keys have in a pause between two looks.
_MOST_STATES = 1000


class Records(Protocol):
    """The records of one topic (`connect_py.kafka.topic_reader.TopicReader`). Methods raise ConnectError."""

    def read_to_end(self) -> Iterator[list[ConsumedRecord]]:
        """Yield what comes next, up to the current end."""
        ...

    def record_at(self, topic: str, partition: int, offset: int) -> ConsumedRecord | None:
        """Return one record again; None: it is gone."""
        ...


class TopicComparison(KeyedComparison):
    """One run over one topic.

    Args:
        records: of the topic, from its beginning or from the moment since which keys are compared.
        states: of the source's rows.
        partitions: how many the topic has.
        is_document: whether rows are MongoDB's documents as texts.
        sample: the part of the keys that is compared; None: all.
        missing_count: whether rows of the source that the topic lacks are differences.
        keeps_keys: whether the keys' bytes are kept for `raw_keys`.
        more: of `KeyedComparison`.
    """

    def __init__(
        self,
        outcome: TopicOutcome,
        sources: SourceTables,
        records: Records,
        form: Form,
        states: States,
        patience: Patience,
        *,
        partitions: int = 1,
        is_document: bool = False,
        sample: Sample | None = None,
        missing_count: bool = True,
        keeps_keys: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(outcome, sources, patience, **more)
        self._topic_outcome = outcome
        self._records = records
        self._form = form
        self._states = states
        self._partitions = partitions
        self._is_document = is_document
        self._sample = sample
        self._missing_count = missing_count
        self._keeps_keys = keeps_keys
        self._fold = Fold()
        self._passed: dict[bytes, dict[bytes | None, None]] = {}  # states that the records of suspects have left since the first look

    def raw_keys(self) -> Iterator[bytes]:
        """Yield the bytes of all keys that there were records of, with `keeps_keys`."""
        return self._fold.raw_keys()

    def close(self) -> None:
        """Remove what was noted."""
        self._fold.close()

    def look(self) -> None:
        if self._sample is not None:
            self.chosen = self._sample.chosen(None)
        self._advance(lambda count: self.progress.read("topic", count))
        rows = self.outcome.table_rows = self._fold.rows()
        self.progress.expect(rows)
        if self._sample is not None and self.chosen is None:
            self.chosen = self._sample.chosen(rows)
        self.look_at_source(self._differing)
        if self.extras_count:
            for key in self._fold.unseen():
                self.suspect(key, None, None)
        self._topic_outcome.unknown = self._fold.unknown()

    def look_again(self) -> None:
        self._advance()
        for key, state in self._present().items():
            self._pass(key, state)
        self.settle(self._present())
        self._passed = {key: states for key, states in self._passed.items() if key in self.suspects}

    def is_settled(self, key: bytes, present: bytes | None, states: Collection[bytes | None]) -> bool:
        if super().is_settled(key, present, states):
            return True
        passed = self._passed.get(key, {})
        return len(states) > 1 and any(is_same(state, seen) for state in passed for seen in states)

    def _pass(self, key: bytes, state: bytes | None) -> None:
        if key in self.suspects:
            passed = self._passed.setdefault(key, {})
            passed[state] = None
            if len(passed) > _MOST_STATES:
                del passed[next(iter(passed))]

    def key_of(self, row: SourceRow) -> bytes:
        if row.topic != self.outcome.table:
            raise NotComparableError(f"its source's rows go to several topics, {row.topic} among them")
        return digest(key_values(self._key(row)))

    def state_of(self, row: SourceRow) -> bytes:
        return self._states.of(self._form.row(row))

    def is_same(self, present: bytes | None, state: bytes | None) -> bool:
        return is_same(present, state)

    def last_states(self, shown: frozenset[bytes]) -> Mapping[bytes, bytes]:
        self._advance()
        return {key: state for key, state in self._present().items() if state is not None}

    def difference(self, key: bytes, row: SourceRow | None) -> Difference | None:
        last = self._fold.last(key)
        place, there, named = None, None, None
        if last is not None:
            place = f"{self.outcome.table}-{last.place}@{last.offset}"
            record = self._records.record_at(self.outcome.table, last.place, last.offset)
            if record is not None and (said := self._said(record)) is not None:
                named, there = said.key, None if last.row is None else said.row
        here = None if row is None else self._compared(self._form.row(row))
        if row is not None:
            named = self._key(row)
        # a row that the topic still has and whose record is gone by now is shown as one without values
        there = {} if there is None and last is not None and last.row is not None else there
        if here is None and there is None:
            return None
        return Difference(dict(named or {}), here, None if there is None else self._compared(there), place=place)

    # -- inside ------------------------------------------------------------------------------------------------------------------------

    def _key(self, row: SourceRow) -> Row:
        return self._form.key(row)

    def _compared(self, row: Row) -> dict[str, Any]:
        names = row if self._states.names is None else self._states.names
        return {name: row.get(name) for name in names}

    def _differing(self, states: dict[bytes, bytes]) -> Iterable[bytes]:
        found = self._fold.seen([*states])
        for key, state in states.items():
            if key not in found:
                if self._missing_count:
                    yield key
            elif not is_same(found[key], state):
                yield key

    def _present(self) -> dict[bytes, bytes | None]:
        lasts = ((key, self._fold.last(key)) for key in self.suspects)
        return {key: None if last is None else last.row for key, last in lasts}

    def _advance(self, told: Callable[[int], None] = lambda _: None) -> None:
        for records in self._records.read_to_end():
            self._topic_outcome.records += len(records)
            changes: list[Change] = []
            for record in records:
                change = self._change(record, self.chosen)
                if change is None:
                    continue
                if not isinstance(change, Change):  # all rows are gone
                    self._fold.add(changes, self._pass)
                    changes = []
                    self._truncate()
                    continue
                changes.append(change)
            self._fold.add(changes, self._pass if self.suspects else None)
            told(len(records))

    def _truncate(self) -> None:
        if self._partitions > 1:
            raise NotComparableError("it has several partitions and a truncate, and which records of others were before it is not known")
        if len(self.outcome.sources) > 1:
            raise NotComparableError("it has rows of several tables and a truncate of one of them")
        self._fold.truncate()

    def _change(self, record: ConsumedRecord, chosen: Chosen | None) -> Change | Said | None:
        """Return a record as a change, a truncate as what it says; None: it says nothing of a chosen key."""
        hashed: bytes | None = None
        if chosen is not None and record.key is not None:
            key = self._read(record, lambda: self._form.read_key(record.topic, record.key))
            found = said_by(key, None, is_document=self._is_document)
            if found is not None and found.key is not None:
                hashed = digest(key_values(found.key))
                if not chosen(hashed):
                    return None
        said = self._said(record)
        if said is None or said.is_truncate:
            return said
        if said.key is None:
            raise NotComparableError("its records have no key")
        if hashed is None:
            hashed = digest(key_values(said.key))
        row = self._states.unknown if not said.is_known else None if said.row is None else self._states.of(said.row)
        raw = record.key if self._keeps_keys else None
        return Change(hashed, record.partition, record.offset, record.timestamp or 0, row, raw)

    def _said(self, record: ConsumedRecord) -> Said | None:
        def read() -> Said | None:
            key, value = self._form.read_key(record.topic, record.key), self._form.read_value(record.topic, record.value)
            return said_by(key, value, is_document=self._is_document)

        return self._read(record, read)

    def _read(self, record: ConsumedRecord, read: Callable[[], T]) -> T:
        try:
            return read()
        except NotComparableError:
            raise
        except (ConnectError, ValueError) as error:
            where = f"{record.topic}-{record.partition}@{record.offset}"
            raise DataError(f"{where} is not what the connector's converters write: {error}") from error


def columns_of(row: SourceRow | None, tables: SourceTables) -> Sequence[str] | None:
    """Return the columns that are compared; None: rows have different ones, or there is none."""
    if row is None or (tables.columns_vary and not is_document(row, tables)):
        return None
    return [field.name for field in row.row.schema.fields if field.name not in tables.added_fields]


def is_document(row: SourceRow | None, tables: SourceTables) -> bool:
    """Return whether a table's rows are MongoDB's documents as texts."""
    return row is not None and tables.columns_vary and [field.name for field in row.row.schema.fields] == ["document"]
