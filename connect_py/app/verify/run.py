"""All tables of one pair of connectors: which are held against which, and what comes of each."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from connect_py.app.verify.changelog import Changelog
from connect_py.app.verify.choice import EVERYTHING, Choice, Chosen, KeySet
from connect_py.app.verify.compare import Comparison, KeylessComparison, await_side
from connect_py.app.verify.lake import open_lake_table
from connect_py.app.verify.layout import Layout, NotComparableError
from connect_py.app.verify.normal import digest
from connect_py.app.verify.progress import Progress
from connect_py.app.verify.report import Outcome, Patience
from connect_py.app.verify.source import SourceRow, SourceTables
from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError, DataError

if TYPE_CHECKING:
    from spark_sink.config.sink_config import SinkConfig
    from spark_sink.routing import TableName


class NoCommonTopicError(ConfigError):
    """The sink reads no topic that the source writes."""


def verify(
    source: Mapping[str, str],
    sink: Mapping[str, str],
    patterns: Sequence[str],
    patience: Patience,
    progress: Progress | None = None,
    choice: Choice = EVERYTHING,
) -> Iterator[Outcome]:
    """Compare the tables of a sink with those of the source that it gets its events from, one after the other.

    Args:
        source: the source connector's configuration.
        sink: the sink's.
        patterns: regular expressions over whole names of lakehouse tables; none means all.

    Raises:
        NoCommonTopicError: they have no topic in common.
        ConfigError: a configuration cannot be used.
        ConnectError: one of the sides cannot be read.
    """
    from spark_sink import routing
    from spark_sink.config import sink_config as configuration

    config = configuration.parse(sink)
    if routing.by_value(config) and not config["tables.route-field"].startswith("__source."):
        raise ConfigError("lakehouse.tables.route-field sends each row where its own value says; verify compares whole tables only.")
    tables = SourceTables(source, sink)
    try:
        for name, names in _pairs(tables, config).items():
            if not patterns or any(re.fullmatch(pattern, str(name)) for pattern in patterns):
                yield _verify_table(name, names, tables, config.of_table(str(name)), patience, progress or Progress(), choice)
    finally:
        tables.close()


def _pairs(tables: SourceTables, config: SinkConfig) -> dict[TableName, list[str]]:
    """Return tables of the source by the lakehouse table that has their rows."""
    from spark_sink import routing

    found: dict[TableName, list[str]] = {}
    pattern = compile_java_regex(config.pattern) if config.pattern else None
    for name in tables.names():
        row = tables.first(name)
        topic = tables.topic(name) if row is None else row.topic
        if topic not in config.topics and not (pattern and pattern.fullmatch(topic)):
            continue
        source = tables.source(name)
        by = config["tables.route-field"] or ""
        value = source.get(by.removeprefix("__source.")) if by.startswith("__source.") else None
        try:
            destinations = routing.destinations(topic, routing.parts_of_source(topic, source), value, config) or ()
        except DataError:  # such records are bad, and are in no table
            continue
        for table in destinations:
            found.setdefault(table, []).append(name)
    if not found:
        raise NoCommonTopicError(
            "The sink reads no topic that the source writes: compare topics, topics.regex and lakehouse.tables.* with topic.prefix."
        )
    return found


def _verify_table(
    name: TableName, names: list[str], tables: SourceTables, config: SinkConfig, patience: Patience, progress: Progress, choice: Choice
) -> Outcome:
    began = time.monotonic()
    outcome = Outcome(str(name), names)
    lake = open_lake_table(name, config)
    row = next((row for table in names if (row := tables.first(table)) is not None), None)
    if not await_side(lake.refresh, patience, is_due=row is not None):
        outcome.problem = None if row is None else "it does not exist, and its source has rows"
        return outcome
    keyless = any(map(tables.is_keyless, names)) if row is None else row.key is None
    appends = config["tables.write-mode"] == "append"
    layout = Layout(
        lake.columns(),
        row,
        config,
        fills_nulls=tables.fills_nulls,
        columns_vary=tables.columns_vary,
        added_fields=tables.added_fields,
        every_row=appends or keyless,
    )
    outcome.lacking, outcome.not_compared = layout.lacking, layout.not_compared
    ignores = not appends and "ignore" in (config["tables.delete-mode"], config["tables.truncate-mode"])
    progress.begin(str(name), lake.row_estimate())
    try:
        if keyless and config["tables.default-id-columns"]:
            raise NotComparableError("its records have no key, and which rows of the source share their id-columns is not looked for")
        if keyless and choice.since is not None:
            raise NotComparableError("its records have no key, by which those of the time since then would be known (--since)")
        if keyless:
            KeylessComparison(
                outcome, tables, lake, layout, patience, keeps_truncates=appends, extras_count=not ignores, progress=progress
            ).run()
        elif appends and row is None:
            raise NotComparableError("its source has no rows, from which its key would be known (write-mode=append)")
        else:
            outcome.chosen = choice.words()
            with contextlib.ExitStack() as stack:
                Comparison(
                    outcome,
                    tables,
                    lake,
                    layout,
                    patience,
                    extras_count=not ignores,
                    changes=Changelog(lake, layout) if appends else None,
                    sample=choice.sample,
                    chosen=None if choice.since is None else _changed(stack, names, row, layout, choice),
                    progress=progress,
                ).run()
    except NotComparableError as error:
        outcome.problem = str(error)
    finally:
        progress.end()
    outcome.seconds = time.monotonic() - began
    return outcome


def _changed(stack: contextlib.ExitStack, names: list[str], row: SourceRow | None, layout: Layout, choice: Choice) -> Chosen:
    """Return which keys have changed since the moment, by the topics. Raises NotComparableError: that is not known."""
    if row is None or row.key is None:
        raise NotComparableError("its source has no rows, from which its key would be known (--since)")
    if any(name not in choice.changed for name in names):
        raise NotComparableError("which of its keys have changed is not known, since its topic was not compared (--since)")

    fields = {field.name for field in row.key.schema.fields}

    def keys() -> Iterator[bytes]:
        for name in names:
            for key in choice.changed[name]():
                if {field.name for field in key.schema.fields} != fields:
                    raise NotComparableError("a transform of the sink changes its keys (--since)")
                yield digest(layout.key_of_source(SourceRow(row.topic, key, row.row)))

    found = KeySet(keys())
    stack.callback(found.close)
    sample = None if choice.sample is None else choice.sample.chosen(len(found))
    return (lambda key: key in found) if sample is None else (lambda key: sample(key) and key in found)
