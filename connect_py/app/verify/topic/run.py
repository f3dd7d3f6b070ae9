"""All topics of a source connector: which tables they have rows of, whether they are whole, and what comes of each."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from connect_py.app.verify.choice import EVERYTHING, ChangedKeys, Choice
from connect_py.app.verify.compare import await_side
from connect_py.app.verify.history.database import parse_source
from connect_py.app.verify.layout import NotComparableError
from connect_py.app.verify.progress import Progress
from connect_py.app.verify.report import Patience, TopicOutcome
from connect_py.app.verify.source import SourceRow, SourceTables
from connect_py.app.verify.topic.compare import TopicComparison, columns_of, is_document
from connect_py.app.verify.topic.form import Form, States, said_by
from connect_py.converters.json_read import row_reader
from connect_py.data import Struct
from connect_py.errors import DataError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.topic_reader import TopicReader
from connect_py.plugins.registry import Plugins

#: A connector follows its database by less than a second; the rest is for one that is busy.
_WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Brokers:
    """How Kafka is reached.

    Attributes:
        worker: the worker's properties, for its converters; empty where they are not known.
        properties: of a client.
    """

    worker: Mapping[str, str]
    properties: Mapping[str, str]


def verify_topics(
    config: Mapping[str, str],
    brokers: Brokers,
    patterns: Sequence[str],
    *,
    wait: float | None = None,
    shown: int = 20,
    choice: Choice = EVERYTHING,
    changed: dict[str, ChangedKeys] | None = None,
    read_by: Sequence[re.Pattern[str]] | None = None,
    progress: Progress | None = None,
    closing: contextlib.ExitStack | None = None,
) -> Iterator[TopicOutcome]:
    """Compare the topics of a source connector with its tables, one after the other.

    Args:
        patterns: regular expressions over whole names of topics or of tables of the source; none means all.
        wait: seconds that differences may take to settle.
        changed: receives the keys that have changed, by the source's table, where `choice` has a moment; read them before `closing` is
            closed.
        read_by: patterns of topics that a sink reads; None: all topics count.

    Raises:
        ConfigError: a configuration cannot be used.
        ConnectError: one of the sides cannot be read.
    """
    patience = Patience(wait=_WAIT_SECONDS if wait is None else wait, pause=_PAUSE_SECONDS, shown=shown)
    form = Form(Plugins.discover(), brokers.worker, config)
    facts = _facts_of(config)
    with contextlib.ExitStack() as stack:
        tables = SourceTables(config, {})
        stack.callback(tables.close)
        admin = stack.enter_context(contextlib.closing(KafkaAdmin(brokers.properties)))
        kept = closing or stack
        for topic, (names, row) in _topics(tables).items():
            if read_by is not None and not any(pattern.fullmatch(topic) for pattern in read_by):
                continue
            if patterns and not any(re.fullmatch(pattern, name) for pattern in patterns for name in (topic, *names)):
                continue
            began = time.monotonic()
            outcome = TopicOutcome(topic, names, undeleted=facts.undeleted(tables))
            try:
                _verify_topic(outcome, row, tables, brokers, admin, form, facts, patience, choice, changed, progress or Progress(), kept)
            except NotComparableError as error:
                outcome.problem = str(error)
            outcome.seconds = time.monotonic() - began
            yield outcome


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a source connector's configuration says of its topics."""

    unavailable: str | None
    snapshot_mode: str | None
    skips_deletes: bool
    has_partial_updates: bool

    def undeleted(self, tables: SourceTables) -> str | None:
        """Return why topics keep rows that the source has deleted; None: they do not."""
        if self.skips_deletes:
            return "skipped.operations leaves deletes out"
        return "a transform drops deletes" if tables.drops_deletes else None


def _facts_of(config: Mapping[str, str]) -> _Facts:
    from connectors.engine.config import skipped_operations
    from connectors.engine.snapshot.modes import StoredPosition

    source = parse_source(config)
    parsed = source.config
    return _Facts(
        parsed.raw["unavailable.value.placeholder"] if source.database == "postgres" else None,
        None if parsed.snapshot_mode.reads_data(StoredPosition.NONE) else parsed.raw["snapshot.mode"],
        "d" in skipped_operations(parsed.raw),
        source.database == "mongodb" and "full" not in parsed.raw["capture.mode"],
    )


def _topics(tables: SourceTables) -> dict[str, tuple[list[str], SourceRow | None]]:
    """Return tables by the topic that has their rows, with any row of these."""
    found: dict[str, tuple[list[str], SourceRow | None]] = {}
    for name in tables.names():
        row = tables.first(name)
        topic = tables.topic(name) if row is None else row.topic
        names, known = found.get(topic, ([], None))
        found[topic] = [*names, name], known or row
    return found


def _verify_topic(
    outcome: TopicOutcome,
    row: SourceRow | None,
    tables: SourceTables,
    brokers: Brokers,
    admin: KafkaAdmin,
    form: Form,
    facts: _Facts,
    patience: Patience,
    choice: Choice,
    changed: dict[str, ChangedKeys] | None,
    progress: Progress,
    kept: contextlib.ExitStack,
) -> None:
    topic = outcome.table
    if any(map(tables.is_keyless, outcome.sources)) or (row is not None and row.key is None):
        raise NotComparableError("its records have no key")
    document = is_document(row, tables)
    if facts.has_partial_updates and not document:
        raise NotComparableError("its updates have only the fields that have changed (capture.mode)")
    ends = await_side(lambda: admin.log_offsets([topic]), patience, is_due=row is not None)
    if not ends:
        if row is None:
            return
        raise NotComparableError("it does not exist, and its source has rows")
    outcome.chosen = choice.words()
    if choice.since is not None:
        outcome.incomplete = "records from before are not read"
    elif any(begin for begin, _ in ends.values()):
        outcome.incomplete = "its oldest records are gone (retention.ms, retention.bytes, or records that somebody has deleted)"
    elif facts.snapshot_mode:
        outcome.incomplete = f"the connector has read no rows that were there before it began (snapshot.mode={facts.snapshot_mode})"
    reader = TopicReader(brokers.properties, since=choice.since)
    with contextlib.closing(reader):
        reader.add([topic])
        comparison = TopicComparison(
            outcome,
            tables,
            reader,
            form,
            States(columns_of(row, tables), facts.unavailable),
            patience,
            partitions=len(ends),
            is_document=document,
            sample=choice.sample,
            missing_count=outcome.incomplete is None,
            keeps_keys=choice.since is not None and changed is not None,
            extras_count=outcome.undeleted is None,
            progress=progress,
        )
        progress.begin(topic, sum(end - begin for begin, end in ends.values()))
        try:
            comparison.run()
        finally:
            progress.end()
            if choice.since is not None and changed is not None:
                keys = _ChangedKeys(topic, comparison, form, row, document)
                changed.update(dict.fromkeys(outcome.sources, keys))
                kept.callback(comparison.close)
            else:
                comparison.close()


class _ChangedKeys:
    """Keys of a topic's records in the schema of the source's, whatever converter has written them (`ChangedKeys`)."""

    def __init__(self, topic: str, comparison: TopicComparison, form: Form, row: SourceRow | None, document: bool) -> None:
        self._topic = topic
        self._comparison = comparison
        self._form = form
        self._row = row
        self._document = document

    def __call__(self) -> Iterable[Struct]:
        if self._row is None or self._row.key is None:
            raise NotComparableError("its source has no rows, from which its key would be known (--since)")
        read = row_reader(self._row.key.schema)
        for raw in self._comparison.raw_keys():
            said = said_by(self._form.read_key(self._topic, raw), None, is_document=self._document)
            try:
                yield read(None if said is None else said.key)
            except DataError as error:
                raise NotComparableError(f"the key of a record is not that of the source's rows (--since): {error}") from error
