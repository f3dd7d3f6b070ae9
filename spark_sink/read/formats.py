"""Ways to cut records into schema and payload: what the sink asks of each, and the one for JSON with schemas.

A *number* stands for the schemas of keys or values that are alike; None for a key or value that is not there. Code that reads a batch knows
only numbers; for each new one the driver reads one whole record.

Most of a record of JSON with schemas is its schema, and nearly all records of a batch have one of a few. A text that begins with the bytes
of a known schema is cut at its known length, in the JVM; only others are searched for the seam and get a fingerprint of their own. On
records of 3.6 kB that takes 13 µs instead of 149 (with the reading from Kafka; two cores, the JVM's first compiler only).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from connect_py.api.task import LogRecord
from spark_sink.types.columns import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


#: Number of values that cannot be read; each record's `problem` says why.
PROBLEM = -1


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Identifies records of one topic with the same schemas; None stands for an absent key or value."""

    topic: str
    key: int | None
    value: int | None


class CutRecord(NamedTuple):
    """A record that the driver has cut; names and meanings are those of the columns of `RecordFormat.rows`.

    Attributes:
        timestamp: epoch milliseconds, -1 when there is none.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    kfp: int | None
    vfp: int | None
    key: bytes | None
    value: bytes | None
    problem: str | None = None


class RecordFormat(Protocol):
    """One way to read records. The task's thread is the only caller.

    Attributes:
        needs_headers: whether the frames given must have Kafka's headers.
        peeks: whether it is quicker on schemas that it has learned, so that reading one record pays before a large batch.
        numeric_decimals: whether decimals are JSON numbers in the texts that it gives, not base64.
    """

    needs_headers: bool
    peeks: bool
    numeric_decimals: bool

    def rows(self, kafka: DataFrame) -> DataFrame:
        """Return Kafka's records, cut.

        Columns: topic, partition, offset, timestamp, kfp, vfp (the numbers), key, value (JSON texts of the payloads), headers if the frame
        had any, and problem (why the record cannot be read, else null).
        """
        ...

    def cut(self, records: Sequence[LogRecord]) -> list[CutRecord] | None:
        """Return records, cut, without Spark: those that `rows` returns, without headers. None if one of them is for `rows`."""
        ...

    def whole(self, kafka: DataFrame) -> DataFrame:
        """Return Kafka's records, whole.

        Columns: topic, partition, offset, timestamp, key, value (bytes as JsonConverter writes them), khead, vhead (their text up to the
        payload), routed (the topic to which a transform has moved the record) and problem.
        """
        ...

    def learn(self, fingerprint: Fingerprint, record: Row | None) -> None:
        """Learn from a record of `whole` with the numbers given, or None when there is none."""
        ...

    def counted(self, records: Mapping[Fingerprint, int]) -> None:
        """Note how many records of each a batch had."""
        ...


def number_of(schema: bytes) -> int:
    """Return a number of a schema. It is never `PROBLEM`."""
    return int.from_bytes(hashlib.blake2b(schema, digest_size=8).digest(), "big") >> 1


#: What JsonConverter writes between a schema and its value.
_SEAM = ',"payload":'
_SEAM_BYTES = _SEAM.encode()

#: More known beginnings than this would make the expression too large for the JVM's compiler; the rarer ones are searched.
_MAX_KNOWN = 12


class SchemaPrefixes:
    """Beginnings of keys and values up to their payload, by their hash; which of them a batch is searched for first."""

    def __init__(self) -> None:
        self._texts: dict[int, bytes] = {}
        self._keys: list[int] = []
        self._values: list[int] = []
        self._numbers: dict[bytes, int] = {}  # by head

    def learn(self, fingerprint: Fingerprint, record: Row | None) -> None:
        """Remember the beginnings of a record that `split` of an empty instance has cut; one without the seam is none."""
        if record is None:
            return
        for number, head, whole in (
            (fingerprint.key, record["khead"], record["key"]),
            (fingerprint.value, record["vhead"], record["value"]),
        ):
            if number is not None and whole is not None:
                beginning = (head + _SEAM).encode()
                if bytes(whole).startswith(beginning):
                    self._texts[number] = beginning
                    self._numbers[head.encode()] = number

    def counted(self, records: Mapping[Fingerprint, int]) -> None:
        """Note how many records of each a batch had; the next one is assumed to be alike. A topic's rare schemas keep what room is left."""
        keys: Counter[int] = Counter()
        values: Counter[int] = Counter()
        for fingerprint, count in records.items():
            keys.update({fingerprint.key: count} if fingerprint.key in self._texts and fingerprint.key is not None else {})
            values.update({fingerprint.value: count} if fingerprint.value in self._texts and fingerprint.value is not None else {})
        self._keys = [*_most_frequent(keys), *(number for number in self._keys if number not in keys)][:_MAX_KNOWN]
        self._values = [*_most_frequent(values), *(number for number in self._values if number not in values)][:_MAX_KNOWN]

    def cut(self, records: Sequence[LogRecord]) -> list[CutRecord] | None:
        """Cut records as `split` says, if all of them have the seam. Schemas that have not been learned get numbers of their own."""
        found: list[CutRecord] = []
        for record in records:
            key, value = self._cut(record.key), self._cut(record.value)
            if key is None or value is None:
                return None
            timestamp = -1 if record.timestamp is None else record.timestamp
            found.append(CutRecord(record.topic, record.partition, record.offset, timestamp, key[0], value[0], key[1], value[1]))
        return found

    def _cut(self, text: bytes | None) -> tuple[int | None, bytes | None] | None:
        """Return a text's number and payload; None if it has no seam."""
        if text is None:
            return None, None
        head, seam, payload = text.partition(_SEAM_BYTES)
        if not seam:
            return None
        if (number := self._numbers.get(head)) is None:
            number = self._numbers[head] = number_of(head)
        return number, payload[:-1]

    def split(self) -> list[list[str]]:
        """Return select lists, to be applied one after the other to Kafka's columns.

        The last one's columns are topic, partition, offset, timestamp, kfp and vfp (the hashes of the beginnings, null without a key or
        value), and key and value, the payloads' texts. A known beginning is compared once, in a step of its own, since each comparison
        reads some three thousand bytes.
        """
        keys, values = ([(number, self._texts[number]) for number in numbers] for numbers in (self._keys, self._values))
        known = [*_POSITION, "key", "value", _known("key", keys, "kfp"), _known("value", values, "vfp")]
        heads = [*_POSITION, "key", "value", "kfp", "vfp", _head("key", "kfp", "khead"), _head("value", "vfp", "vhead")]
        payloads = [
            *_POSITION,
            _hash("key", "kfp", "khead"),
            _hash("value", "vfp", "vhead"),
            _payload("key", keys, "kfp", "khead"),
            _payload("value", values, "vfp", "vhead"),
        ]
        return [known, heads, payloads]


_POSITION = ("topic", "partition", "offset", "timestamp")


def _most_frequent(counter: Counter[int]) -> list[int]:
    return [number for number, _ in counter.most_common(_MAX_KNOWN)]


def _known(column: str, known: list[tuple[int, bytes]], name: str) -> str:
    """Return SQL: the number of the known beginning that a text has, or null."""
    cases = " ".join(f"WHEN startswith(`{column}`, X'{beginning.hex()}') THEN {number}L" for number, beginning in known)
    return f"CASE {cases} END {name}" if known else f"CAST(NULL AS BIGINT) {name}"


def _searched(column: str) -> str:
    """Return SQL: a text before its payload; without a payload its first characters, for the error that follows."""
    text = f"CAST(`{column}` AS STRING)"
    found = f"locate({literal(_SEAM)}, {text})"
    return f"IF({found} > 0, substring({text}, 1, {found} - 1), left({text}, 80))"


def whole_and_heads() -> list[str]:
    """Return a select list of Kafka's columns, and khead and vhead, the texts of keys and values up to their payloads."""
    return [*_POSITION, "key", "value", f"{_searched('key')} khead", f"{_searched('value')} vhead"]


def _head(column: str, number: str, name: str) -> str:
    return f"IF({number} IS NULL, {_searched(column)}, NULL) {name}"


def _hash(column: str, number: str, head: str) -> str:
    return f"CASE WHEN {number} IS NOT NULL THEN {number} WHEN `{column}` IS NOT NULL THEN xxhash64({head}) END {number}"


def _payload(column: str, known: list[tuple[int, bytes]], number: str, head: str) -> str:
    text = f"CAST(`{column}` AS STRING)"
    cut = f"substring({text}, length({head}) + {len(_SEAM) + 1}, length({text}) - length({head}) - {len(_SEAM) + 1})"
    cases = " ".join(
        f"WHEN {number} = {of}L THEN CAST(substring(`{column}`, {len(beginning) + 1}, "
        f"octet_length(`{column}`) - {len(beginning) + 1}) AS STRING)"
        for of, beginning in known
    )
    return f"CASE {cases} ELSE {cut} END `{column}`" if known else f"{cut} `{column}`"


_NOTHING_WRONG = "CAST(NULL AS STRING) problem"


class PlainRecords:
    """JSON with schemas, and no transforms: cut in the JVM, by the bytes that records begin with."""

    needs_headers = False
    peeks = True

    def __init__(self, *, numeric_decimals: bool = False) -> None:
        self._prefixes = SchemaPrefixes()
        self.numeric_decimals = numeric_decimals

    def rows(self, kafka: DataFrame) -> DataFrame:
        headers = ["headers"] if "headers" in kafka.columns else []
        for step in self._prefixes.split():
            kafka = kafka.selectExpr(*step, *headers)
        return kafka.selectExpr("*", _NOTHING_WRONG)

    def cut(self, records: Sequence[LogRecord]) -> list[CutRecord] | None:
        return self._prefixes.cut(records)

    def whole(self, kafka: DataFrame) -> DataFrame:
        return kafka.selectExpr(*whole_and_heads(), "CAST(NULL AS STRING) routed", _NOTHING_WRONG)

    def learn(self, fingerprint: Fingerprint, record: Row | None) -> None:
        self._prefixes.learn(fingerprint, record)

    def counted(self, records: Mapping[Fingerprint, int]) -> None:
        self._prefixes.counted(records)
