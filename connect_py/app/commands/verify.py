"""`connect-py verify`: compares the tables of a source's database with its topics, and with the tables of lakehouse sinks that read these.

With `--history` it tests the topics of a source connector by a journal of all changes in its database.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from connect_py.app.client.events import start_milliseconds
from connect_py.app.client.files import read_connector_file
from connect_py.app.client.rest import ConnectClient
from connect_py.app.commands.command import OK, UNREACHABLE, WRONG, Command
from connect_py.app.commands.connection import (
    add_broker_options,
    add_worker_options,
    client_of,
    require_values,
    say,
    say_note,
    settings_of,
)
from connect_py.errors import ConfigError, ConnectError, RestError, RetriableError
from connect_py.extras import install_command

if TYPE_CHECKING:
    from connect_py.app.verify.choice import ChangedKeys, Choice
    from connect_py.app.verify.pairs import Connector, Pair, Result, Topics
    from connect_py.app.verify.progress import Progress
    from connect_py.app.verify.topic.run import Brokers

#: Seconds that a connector has to catch up, in a test of its history.
_HISTORY_WAIT = 60.0
_SUFFIXES = (".json", ".properties")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="?", metavar="NAME", help="the source connector: its name at a worker, or a .json or .properties file"
    )
    parser.add_argument(
        "sink",
        nargs="?",
        metavar="SINK",
        help="the lakehouse sink, likewise; without it NAME is a source or a sink, and the worker's connectors that belong to it are found",
    )
    parser.add_argument("--all", action="store_true", help="all connectors of the worker that can be compared, instead of NAME")
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="REGEX",
        help="only lakehouse tables, topics and tables of the source of this name; repeatable",
    )
    parser.add_argument(
        "--sample", metavar="N%|N", help="only a share of the keys, such as 1%%, or about N of each table; all sides choose the same ones"
    )
    parser.add_argument(
        "--since", metavar="WHEN", help="only rows with a record in the topics since then: 10m (s, m, h, d) or 2026-01-31T10:00:00"
    )
    add_broker_options(parser, "the worker's file: brokers, their security, and converters of connectors that name none")
    parser.add_argument(
        "--wait",
        type=float,
        metavar="SECONDS",
        help=f"time for differences to settle (30; of tables twice the commit interval, 30 at least; with --history {_HISTORY_WAIT:.0f})",
    )
    parser.add_argument("--show", type=int, default=20, metavar="N", help="differences that are shown of each table, or findings (20)")
    parser.add_argument("--watch", type=float, metavar="SECONDS", help="compare again and again, so many seconds apart, until Ctrl-C")
    parser.add_argument("--html", metavar="FILE", help="write the outcome as a page, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object a topic or table; with --history one object")
    add_worker_options(parser, has_json=False)
    history = parser.add_argument_group("topics against a journal of all changes")
    history.add_argument("--history", action="store_true", help="test the topics of the source NAME, not a sink")
    history.add_argument("--prepare", metavar="TABLE:KEY,…", help="print the statements that make the journal and its triggers, and end")
    history.add_argument("--journal", metavar="TABLE", help="the journal, if it has another name than connect_py_journal")
    history.add_argument("--sequence", metavar="COLUMN", help="the column that counts a key's changes (version)")
    history.add_argument(
        "--digest", action="append", default=[], metavar="TABLE:COLUMN,…", help="compare these columns' values; repeatable"
    )
    history.add_argument("--offsets-topic", metavar="TOPIC", help="test the stored offsets, too; else the topic of --worker-properties")
    history.add_argument("--start", type=int, metavar="LINE", help="the stream has every change after this line of the journal")
    history.add_argument("--restarts", type=int, metavar="N", help="how often the task has started again; without it any number")
    history.add_argument("--exactly-once", action="store_true", help="each change must be there once, for readers of committed records")


#: What a history has no use for.
_NOT_OF_HISTORY = ("all", "table", "sample", "since", "watch", "html")

#: What only a history needs.
_OF_HISTORY = (
    "prepare",
    "journal",
    "sequence",
    "digest",
    "offsets_topic",
    "start",
    "restarts",
    "exactly_once",
)


def verify(chosen: argparse.Namespace) -> int:
    """Compare. Returns the exit code."""
    _check(chosen)
    try:
        if chosen.history:
            return _print_statements(chosen) if chosen.prepare else _verify_history(chosen)
        return _watch(chosen) if chosen.watch is not None else _verify_sides(chosen)
    except ImportError as error:
        raise ConfigError(f"verify needs the package {error.name}: {install_command('verify')}") from error


def _check(chosen: argparse.Namespace) -> None:
    """Raise ConfigError for options that do not go together."""

    def given(names: tuple[str, ...]) -> str:
        found = (f"--{name.replace('_', '-')}" for name in names if getattr(chosen, name) not in (None, False, []))
        return ", ".join(found)

    if chosen.show < 0:
        raise ConfigError("--show needs a number of 0 or more")
    for name in ("wait", "watch"):
        if getattr(chosen, name) is not None and not getattr(chosen, name) >= 0:
            raise ConfigError(f"--{name} needs a number of seconds, 0 or more")
    if chosen.all and chosen.source is not None:
        raise ConfigError(f"--all compares all connectors: leave out {chosen.source}.")
    if chosen.source is None and not chosen.all:
        raise ConfigError("Name a connector, or give --all.")
    if chosen.history:
        if chosen.sink is not None:
            raise ConfigError(f"--history tests the topics of a source alone: leave out {chosen.sink}.")
        if without := given(_NOT_OF_HISTORY):
            raise ConfigError(f"{without}: only without --history")
    elif alone := given(_OF_HISTORY):
        raise ConfigError(f"{alone}: only with --history")


# -- topics and tables


@dataclass(frozen=True)
class _Work:
    """What is compared: topics of sources where Kafka's address is known, and tables of pairs."""

    sources: Sequence[Topics]
    pairs: Sequence[Pair]
    brokers: Brokers | None
    left_out: Sequence[str] = ()


def _watch(chosen: argparse.Namespace) -> int:
    """Compare again and again, until Ctrl-C."""
    while True:
        began = datetime.datetime.now().astimezone()
        if not chosen.json:
            say([f"{began:%Y-%m-%d %H:%M:%S}"])
        try:
            _verify_sides(chosen)
        except RetriableError as error:
            say_note(str(error))
        time.sleep(chosen.watch)


def _verify_sides(chosen: argparse.Namespace) -> int:
    from connect_py.app.verify.progress import Progress, ProgressLine

    if chosen.html and not Path(chosen.html).absolute().parent.is_dir():
        raise ConfigError(f"--html {chosen.html}: there is no such folder")
    choice = _choice(chosen)
    work = _work(chosen)
    if choice.since is not None and work.brokers is None:
        raise ConfigError(f"--since asks the topics which rows have changed. {_NO_BROKERS}")
    if work.brokers is None and not chosen.json and not chosen.history:
        say_note(f"only tables are compared, not the topics in between. {_NO_BROKERS}")
    progress = ProgressLine(sys.stderr, width=shutil.get_terminal_size().columns - 1) if sys.stderr.isatty() else Progress()
    results: list[Result] = []
    began, start = datetime.datetime.now(datetime.UTC), time.monotonic()
    failure: ConnectError | None = None
    several = len(work.pairs) + (len(work.sources) if work.brokers is not None else 0) > 1
    try:
        for result in _results(chosen, work, choice, progress):
            results.append(result)
            _print(result, chosen, several=several)
    except ConnectError as error:
        failure = error
    if chosen.html:
        _write_page(chosen.html, results, began, time.monotonic() - start, failure)
    if failure is not None:
        raise failure
    for note in work.left_out:
        say_note(note)
    outcomes = [result.outcome for result in results if result.outcome is not None]
    if any(not outcome.equal and not outcome.problem for outcome in outcomes):
        return WRONG
    return UNREACHABLE if work.left_out or any(outcome.problem for outcome in outcomes) else OK


def _results(chosen: argparse.Namespace, work: _Work, choice: Choice, progress: Progress) -> Iterator[Result]:
    """Compare the topics first: they say which rows have changed, and whether a table that differs was told the right thing."""
    from connect_py.app.verify.pairs import Result, check_patterns, verify_pairs
    from connect_py.app.verify.topic.run import verify_topics

    check_patterns(chosen.table)
    is_named = False
    of_topics: dict[tuple[str, str], bool] = {}
    changed: dict[str, dict[str, ChangedKeys]] = {}
    with contextlib.ExitStack() as closing:
        brokers = work.brokers
        for topics in work.sources if brokers is not None else ():
            assert brokers is not None
            found = verify_topics(
                topics.source.config,
                brokers,
                chosen.table,
                wait=chosen.wait,
                shown=chosen.show,
                choice=choice,
                changed=changed.setdefault(topics.source.name, {}),
                read_by=topics.read_by,
                progress=progress,
                closing=closing,
            )
            for outcome in found:
                is_named = True
                if not outcome.problem:
                    of_topics.update({(topics.source.name, name): outcome.equal for name in outcome.sources})
                yield Result(topics, outcome)
        if work.brokers is not None and not is_named and not work.pairs and chosen.table:
            raise ConfigError(f"No topic and no table is called {' or '.join(chosen.table)}, so nothing was compared.")
        for pair in work.pairs:
            its = replace(choice, changed=changed.get(pair.source.name, {}))
            may_be_none = len(work.pairs) > 1 or bool(of_topics)
            for result in verify_pairs(
                [pair], chosen.table, wait=chosen.wait, shown=chosen.show, progress=progress, choice=its, may_be_none=may_be_none
            ):
                if result.outcome is not None:
                    known = [of_topics.get((pair.source.name, name)) for name in result.outcome.sources]
                    result.outcome.topic = None if None in known or not known else all(known)
                yield result


def _choice(chosen: argparse.Namespace) -> Choice:
    from connect_py.app.verify.choice import Choice, parse_sample

    sample = None if chosen.sample is None else parse_sample(chosen.sample)
    since = None if chosen.since is None else start_milliseconds(chosen.since, int(time.time() * 1000), option="--since")
    return Choice(sample, since)


_NO_BROKERS = "For these, give --bootstrap-servers HOST:PORT or --worker-properties FILE, or put one of them into a context."


def _brokers(chosen: argparse.Namespace) -> Brokers | None:
    """Return how Kafka is reached; None: nobody says it."""
    from connect_py.app.verify.topic.run import Brokers
    from connect_py.kafka.client import internal_properties

    settings = settings_of(chosen)
    given = (chosen.bootstrap_servers, chosen.worker_properties, settings.get("worker-properties"), settings.get("bootstrap-servers"))
    if not any(given):
        return None
    worker = _worker(chosen)
    return Brokers(worker, internal_properties(worker, "verify"))


def _print(result: Result, chosen: argparse.Namespace, *, several: bool) -> None:
    from connect_py.app.verify.report import as_json, as_text

    outcome = result.outcome
    if chosen.json:
        if outcome is not None:
            print(json.dumps({**result.pair.names, **as_json(outcome)}), flush=True)
        return
    text = "no table in common" if outcome is None else as_text(outcome)
    print(f"{result.pair}: {text}" if several else text, flush=True)


def _write_page(file: str, results: list[Result], began: datetime.datetime, seconds: float, failure: ConnectError | None) -> None:
    from connect_py.app.verify.html import page

    text = page(results, began, seconds=seconds, error=None if failure is None else str(failure))
    try:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ConfigError(f"--html {file} cannot be written: {error.strerror}. The comparison itself has ended.") from error


def _work(chosen: argparse.Namespace) -> _Work:
    from connect_py.app.verify.pairs import Connector, Pair, Topics, all_of, pairs_of
    from connect_py.plugins.registry import Plugins

    brokers = _brokers(chosen)
    if chosen.sink is not None:
        source, sink = (Connector(_label(name), _config(name, chosen)) for name in (chosen.source, chosen.sink))
        return _Work([Topics(source, [sink])], [Pair(source, sink)], brokers)
    if chosen.source is not None and _is_file(chosen.source, chosen):
        if brokers is not None:
            return _Work([Topics(Connector(_label(chosen.source), _config(chosen.source, chosen)))], [], brokers)
        raise ConfigError(
            f"{chosen.source} is a file: name the sink's file after it, or give the name of a worker's connector. To compare the topics of "
            "a source alone, give --bootstrap-servers or --worker-properties."
        )
    known = list(_connectors(client_of(chosen)))
    if chosen.all:
        sources, pairs = all_of(known, Plugins.discover())
        return _readable(_Work([Topics(source) for source in sources], pairs, brokers))
    pairs = pairs_of(chosen.source, known, Plugins.discover(), alone=brokers is not None)
    for connector in {each.name: each for pair in pairs for each in (pair.source, pair.sink)}.values():
        require_values(connector.name, connector.config)
    named = next(each for each in known if each.name == chosen.source)
    if any(pair.sink.name == named.name for pair in pairs):
        return _Work([Topics(pair.source, [named]) for pair in pairs], pairs, brokers)
    require_values(named.name, named.config)
    return _Work([Topics(named)], pairs, brokers)


def _readable(work: _Work) -> _Work:
    """Return the work without connectors whose values only the worker knows, with a note on each. Raises ConfigError: nothing is left."""
    notes: dict[str, str] = {}
    for connector in [*(each.source for each in work.sources), *(pair.sink for pair in work.pairs)]:
        try:
            require_values(connector.name, connector.config)
        except ConfigError as error:
            notes[connector.name] = f"not compared: {error}"
    sources = [each for each in work.sources if each.source.name not in notes]
    pairs = [pair for pair in work.pairs if not {pair.source.name, pair.sink.name} & notes.keys()]
    if not pairs and (work.brokers is None or not sources):
        raise ConfigError(" ".join(["Nothing can be compared.", *notes.values(), *([_NO_BROKERS] if work.brokers is None else [])]))
    return replace(work, sources=sources, pairs=pairs, left_out=list(notes.values()))


def _connectors(client: ConnectClient) -> Iterator[Connector]:
    from connect_py.app.verify.pairs import Connector

    for name, found in client.connectors().items():
        config = _texts(found["info"]["config"])
        try:
            topics = client.topics(name)
        except RestError:  # the worker does not note them (topic.tracking.enable=false), or the connector is just being deleted
            topics = []
        yield Connector(name, config, frozenset(topics))


def _is_file(name: str, chosen: argparse.Namespace) -> bool:
    """Return whether a name is that of a file: with --worker or --context it never is."""
    return not (chosen.worker or chosen.context) and (Path(name).is_file() or name.endswith(_SUFFIXES))


def _label(name: str) -> str:
    return Path(name).stem if name.endswith(_SUFFIXES) else name


def _config(name: str, chosen: argparse.Namespace) -> dict[str, str]:
    found = dict(read_connector_file(name).config) if _is_file(name, chosen) else _texts(client_of(chosen).config(name))
    require_values(name, found)
    return found


def _texts(config: Mapping[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in config.items() if value is not None}


# -- topics


def _print_statements(chosen: argparse.Namespace) -> int:
    from connect_py.app.verify.history.journal import JOURNAL, Journalled, mysql_script, postgres_script
    from connect_py.app.verify.source import require_database
    from connect_py.plugins.registry import Plugins

    database = require_database(_config(chosen.source, chosen), Plugins.discover())
    if database == "mongodb":
        raise ConfigError("MongoDB has no triggers: docs/sinks/history.md says what your program has to write into the journal.")
    name, keys = _columns(chosen.prepare, "--prepare")
    digest = _digest(chosen)
    if other := sorted(digest.keys() - {name}):
        raise ConfigError(f"--digest {', '.join(other)}: --prepare is for {name}")
    schema, _, table = name.partition(".")
    journalled = Journalled(schema, table, keys, chosen.sequence or "version", digest.get(name, []))
    print((postgres_script if database == "postgres" else mysql_script)(journalled, chosen.journal or JOURNAL))
    return OK


def _verify_history(chosen: argparse.Namespace) -> int:
    from connect_py.app.verify.history.journal import JOURNAL
    from connect_py.app.verify.history.run import Plan, as_json, as_text, promise_of, verify_history

    config, worker = _config(chosen.source, chosen), _worker(chosen)
    plan = Plan(
        config=config,
        worker=worker,
        journal=chosen.journal or JOURNAL,
        sequence=chosen.sequence or "version",
        digest=_digest(chosen),
        offsets_topic=chosen.offsets_topic or config.get("offsets.storage.topic") or worker.get("offset.storage.topic"),
        promise=promise_of(config, start=chosen.start, restarts=chosen.restarts, exactly_once=chosen.exactly_once),
        wait=_HISTORY_WAIT if chosen.wait is None else chosen.wait,
    )
    report = verify_history(plan)
    print(json.dumps(as_json(report)) if chosen.json else as_text(report, chosen.show))
    return WRONG if report.findings else OK


def _digest(chosen: argparse.Namespace) -> dict[str, list[str]]:
    return dict(_columns(text, "--digest") for text in chosen.digest)


def _columns(text: str, option: str) -> tuple[str, list[str]]:
    """Return a table and columns. Raises ConfigError."""
    table, _, columns = text.partition(":")
    names = [column.strip() for column in columns.split(",")]
    if "." not in table.strip(".") or not all(names):
        raise ConfigError(f"{option} {text}: write SCHEMA.TABLE:COLUMN,COLUMN")
    return table.strip(), names


def _worker(chosen: argparse.Namespace) -> dict[str, str]:
    """Return the worker's properties, at least Kafka's address. Raises ConfigError."""
    from connect_py.app.commands.worker import read_properties, resolved_properties
    from connect_py.config.worker import DISTRIBUTED, STANDALONE

    settings = settings_of(chosen)
    file = chosen.worker_properties or settings.get("worker-properties", "")
    found = read_properties(str(Path(file).expanduser())) if file else {}
    found = dict(resolved_properties(found, DISTRIBUTED if "group.id" in found else STANDALONE))
    if brokers := chosen.bootstrap_servers or settings.get("bootstrap-servers"):
        found["bootstrap.servers"] = brokers
    if not found.get("bootstrap.servers"):
        raise ConfigError(
            "Kafka's address is needed to read the topics: give --bootstrap-servers HOST:PORT or --worker-properties FILE, or put one of "
            "them into a context."
        )
    return found


COMMANDS = (
    Command(
        "verify",
        "Data",
        "compare the rows of a source with its topics and lakehouse tables, key by key, while data flows",
        _options,
        verify,
        about=(
            "NAME alone is a source or a sink of the worker: what belongs to it is found, and all of its topics and tables are compared. "
            "Topics are read where Kafka's address is known. "
            "With --history, it tests the topics of a source by a journal of what its database has committed."
        ),
        examples=(
            "verify lake --worker http://localhost:8083 --html result.html",
            "verify inventory --worker http://localhost:8083 --bootstrap-servers localhost:9092",
            "verify --all --worker http://localhost:8083 --bootstrap-servers localhost:9092 --sample 1%",
            "verify inventory --worker http://localhost:8083 --bootstrap-servers localhost:9092 --since 1h",
            "verify inventory lake --worker http://localhost:8083 --json",
            "verify source.json sink.json",
            "verify --history source.json --prepare public.item:id",
            "verify --history inventory --worker http://localhost:8083 --bootstrap-servers localhost:9092",
        ),
        exits={0: "equal", 2: "a side cannot be read, or something cannot be compared", 3: "something differs"},
    ),
)
