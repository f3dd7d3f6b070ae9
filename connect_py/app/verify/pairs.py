"""Pairs of a source connector and a lakehouse sink: which ones belong together, and what comes of comparing them.

A worker says of each connector its configuration and the topics that it has used (KIP-558). A sink belongs to a source if it reads one of
the source's topics. Of a source whose topics are not known, because it has not run yet or the worker does not note them, its
`topic.prefix` decides; that may find a pair which has no table in common, so such a pair is only noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from connect_py.api.config import ConfigType, parse_value
from connect_py.app.verify.choice import EVERYTHING, Choice
from connect_py.app.verify.progress import Progress
from connect_py.app.verify.report import Outcome, Patience
from connect_py.app.verify.run import NoCommonTopicError, verify
from connect_py.app.verify.source import database_of
from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError
from connect_py.plugins.registry import Plugins

_LAKEHOUSE = "io.github.connectpy.spark.SparkLakehouseSink"

#: The sink's commit interval, by its names.
_INTERVALS = ("lakehouse.control.commit.interval-ms", "iceberg.control.commit.interval-ms")

#: Where the part of a regex ends that stands for itself.
_SPECIAL = re.compile(r"[\[\](){}.*+?^$]|\\[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector of a worker.

    Attributes:
        topics: that it has used; empty when the worker does not say it.
    """

    name: str
    config: Mapping[str, str]
    topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pair:
    """A source, and a sink that reads its topics."""

    source: Connector
    sink: Connector

    @property
    def names(self) -> Mapping[str, str]:
        """The connectors' names, by what they are."""
        return {"source": self.source.name, "sink": self.sink.name}

    def __str__(self) -> str:
        return f"{self.source.name} → {self.sink.name}"


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a source.

    Attributes:
        sinks: read the topics that count; none: all topics do.
    """

    source: Connector
    sinks: Sequence[Connector] = ()

    @property
    def names(self) -> Mapping[str, str]:
        """The connector's name."""
        return {"source": self.source.name}

    @property
    def read_by(self) -> list[re.Pattern[str]] | None:
        """Patterns of the topics that count; None: all do. Raises ConfigError."""
        if not self.sinks:
            return None
        listed = [re.compile(re.escape(topic)) for sink in self.sinks for topic in _listed(sink)]
        patterns = (sink.config.get("topics.regex", "").strip() for sink in self.sinks)
        return [*listed, *(compile_java_regex(pattern) for pattern in patterns if pattern)]

    def __str__(self) -> str:
        return f"{self.source.name} → topics"


def _listed(sink: Connector) -> set[str]:
    return {topic.strip() for topic in sink.config.get("topics", "").split(",") if topic.strip()}


def all_of(connectors: Sequence[Connector], plugins: Plugins) -> tuple[list[Connector], list[Pair]]:
    """Return all sources that can be compared, and all pairs of them with lakehouse sinks; by their names."""
    sources = sorted((each for each in connectors if database_of(each.config, plugins)), key=lambda each: each.name)
    sinks = sorted((each for each in connectors if is_lakehouse_sink(each.config, plugins)), key=lambda each: each.name)
    return sources, [Pair(source, sink) for source in sources for sink in sinks if feeds(source, sink)]


def pairs_of(name: str, connectors: Sequence[Connector], plugins: Plugins, *, alone: bool = False) -> list[Pair]:
    """Return the pairs that a connector is a part of, as a source or as a sink, by the names of the other ones.

    Args:
        alone: whether a source may have no sink.

    Raises:
        ConfigError: there is no such connector, it is none that can be compared, or there is nothing to compare it with.
    """
    chosen = next((each for each in connectors if each.name == name), None)
    if chosen is None:
        raise ConfigError(f"There is no connector {name}. There are {', '.join(each.name for each in connectors) or 'none'}.")
    sources = sorted((each for each in connectors if database_of(each.config, plugins)), key=lambda each: each.name)
    sinks = sorted((each for each in connectors if is_lakehouse_sink(each.config, plugins)), key=lambda each: each.name)
    if chosen in sources:
        found = [Pair(chosen, sink) for sink in sinks if feeds(chosen, sink)]
        others, what = sinks, f"No lakehouse sink of this worker reads topics of {name} (topic.prefix={prefix_of(chosen.config)})"
    elif chosen in sinks:
        found = [Pair(source, chosen) for source in sources if feeds(source, chosen)]
        read = chosen.config.get("topics") or chosen.config.get("topics.regex")
        others, what = sources, f"No source of this worker writes topics that {name} reads ({read})"
    else:
        given = chosen.config.get("connector.class")
        raise ConfigError(
            f"{name} is {given}: verify compares sources of PostgreSQL, MySQL, MariaDB and MongoDB with lakehouse sinks ({_LAKEHOUSE})."
        )
    if not found and not (alone and chosen in sources):
        raise ConfigError(f"{what}. Looked at: {', '.join(each.name for each in others) or 'none'}. Name both connectors to compare them.")
    return found


def is_lakehouse_sink(config: Mapping[str, str], plugins: Plugins) -> bool:
    """Return whether a connector writes lakehouse tables."""
    return plugins.resolve(config.get("connector.class", "").strip()) == _LAKEHOUSE


def prefix_of(config: Mapping[str, str]) -> str:
    """Return a source's `topic.prefix`, or the same by its name of Debezium 1."""
    return (config.get("topic.prefix") or config.get("database.server.name") or "").strip()


def feeds(source: Connector, sink: Connector) -> bool:
    """Return whether a sink reads a topic of a source, or may do so where the source's topics are not known.

    Raises:
        ConfigError: the sink's `topics.regex` is none.
    """
    listed = _listed(sink)
    pattern = sink.config.get("topics.regex", "").strip()
    if listed & source.topics or (pattern and any(map(compile_java_regex(pattern).fullmatch, source.topics))):
        return True
    start = prefix_of(source.config) + (source.config.get("topic.delimiter") or ".")
    if any(topic.startswith(start) for topic in listed):
        return True
    return bool(pattern) and not source.topics and _may_match(pattern, start)


def _may_match(pattern: str, start: str) -> bool:
    """Return whether a regex may match a topic that begins so: the part of the regex that stands for itself does not contradict it."""
    if "|" in pattern:
        return True
    special = _SPECIAL.search(re.sub(r"\\[^A-Za-z0-9]", "__", pattern))
    head = pattern[: special.start()] if special else pattern
    head = re.sub(r"\\([^A-Za-z0-9])", r"\1", head)
    if special and special.group() in "*?{":
        head = head[:-1]  # a character that need not be there
    return head.startswith(start) or start.startswith(head)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a pair's table, or of a source's topic; None: the pair has no table in common."""

    pair: Pair | Topics
    outcome: Outcome | None


def check_patterns(patterns: Sequence[str]) -> None:
    """Raise ConfigError for what is no regular expression."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"--table {pattern} is no regular expression: {error}. Nothing was compared.") from None


def verify_pairs(
    pairs: Sequence[Pair],
    patterns: Sequence[str],
    *,
    wait: float | None = None,
    shown: int = 20,
    progress: Progress | None = None,
    choice: Choice = EVERYTHING,
    may_be_none: bool = False,
    compare: Callable[..., Iterator[Outcome]] = verify,
) -> Iterator[Result]:
    """Compare the tables of all pairs, one after the other.

    Args:
        patterns: regular expressions over whole names of lakehouse tables; none means all.
        wait: seconds that differences may take to settle; None: twice the sink's commit interval, 30 at least.
        shown: differences that are kept of each table.
        choice: which keys are compared.
        may_be_none: whether it is no error that there is no table to compare.
        compare: compares one pair.

    Raises:
        ConfigError: a configuration cannot be used, or there is no table to compare.
        ConnectError: one of the sides cannot be read.
    """
    check_patterns(patterns)
    compared = 0
    problem: NoCommonTopicError | None = None
    for pair in pairs:
        patience = patience_of(pair.sink.config, wait, shown)
        try:
            for outcome in compare(pair.source.config, pair.sink.config, patterns, patience, progress or Progress(), choice):
                compared += 1
                yield Result(pair, outcome)
        except NoCommonTopicError as error:
            problem = error
            if len(pairs) > 1 or may_be_none:
                yield Result(pair, None)
    if not compared and not may_be_none:
        raise problem or ConfigError(f"No lakehouse table is called {' or '.join(patterns)}, so nothing was compared.")


def patience_of(sink: Mapping[str, str], wait: float | None, shown: int) -> Patience:
    """Return how long differences may take to settle: by default twice the sink's commit interval, 30 seconds at least.

    Raises:
        ConfigError: the interval is no number.
    """
    name = next((name for name in _INTERVALS if sink.get(name)), None)
    commits = (parse_value(name, sink[name], ConfigType.INT) if name else 60_000) / 1000
    return Patience(wait=max(30.0, 2 * commits) if wait is None else wait, pause=min(5.0, max(0.5, commits / 2)), shown=shown)
