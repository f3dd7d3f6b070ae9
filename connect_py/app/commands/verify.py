"""`connect-py verify`: compares the tables of a lakehouse sink with the tables of the database that they follow.

With `--history` it tests the topics of a source connector by a journal of all changes in its database.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from connect_py.app.client.files import read_connector_file
from connect_py.app.client.rest import ConnectClient
from connect_py.app.commands.command import OK, UNREACHABLE, WRONG, Command
from connect_py.app.commands.connection import add_worker_options, client_of, require_values, settings_of
from connect_py.errors import ConfigError, ConnectError, RestError
from connect_py.extras import install_command

if TYPE_CHECKING:
    from connect_py.app.verify.pairs import Connector, Pair, Result

#: Seconds that a connector has to catch up, in a test of its history.
_HISTORY_WAIT = 60.0
_SUFFIXES = (".json", ".properties")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="NAME", help="the source connector: its name at a worker, or a .json or .properties file")
    parser.add_argument(
        "sink",
        nargs="?",
        metavar="SINK",
        help="the lakehouse sink, likewise; without it NAME is a source or a sink, and the worker's connectors that belong to it are found",
    )
    parser.add_argument("--table", action="append", default=[], metavar="REGEX", help="only lakehouse tables of this name; repeatable")
    parser.add_argument(
        "--wait",
        type=float,
        metavar="SECONDS",
        help=f"time for differences to settle (twice the commit interval, 30 at least; with --history {_HISTORY_WAIT:.0f})",
    )
    parser.add_argument("--show", type=int, default=20, metavar="N", help="differences that are shown of each table, or findings (20)")
    parser.add_argument("--html", metavar="FILE", help="write the outcome as a page, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object a table; with --history one object")
    add_worker_options(parser, has_json=False)
    history = parser.add_argument_group("topics against a journal of all changes")
    history.add_argument("--history", action="store_true", help="test the topics of the source NAME, not a sink")
    history.add_argument("--prepare", metavar="TABLE:KEY,…", help="print the statements that make the journal and its triggers, and end")
    history.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT", help="Kafka's brokers; else those of --worker-properties or of the context"
    )
    history.add_argument(
        "--worker-properties", metavar="FILE", help="the worker's file: brokers, their security, converters, offsets topic"
    )
    history.add_argument("--journal", metavar="TABLE", help="the journal, if it has another name than connect_py_journal")
    history.add_argument("--sequence", metavar="COLUMN", help="the column that counts a key's changes (version)")
    history.add_argument(
        "--digest", action="append", default=[], metavar="TABLE:COLUMN,…", help="compare these columns' values; repeatable"
    )
    history.add_argument("--offsets-topic", metavar="TOPIC", help="test the stored offsets, too; else the topic of --worker-properties")
    history.add_argument("--start", type=int, metavar="LINE", help="the stream has every change after this line of the journal")
    history.add_argument("--restarts", type=int, metavar="N", help="how often the task has started again; without it any number")
    history.add_argument("--exactly-once", action="store_true", help="each change must be there once, for readers of committed records")


#: What only a history needs.
_OF_HISTORY = (
    "prepare",
    "bootstrap_servers",
    "worker_properties",
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
        return _verify_tables(chosen)
    except ImportError as error:
        raise ConfigError(f"verify needs the package {error.name}: {install_command('verify')}") from error


def _check(chosen: argparse.Namespace) -> None:
    """Raise ConfigError for options that do not go together."""

    def given(names: tuple[str, ...]) -> str:
        found = (f"--{name.replace('_', '-')}" for name in names if getattr(chosen, name) not in (None, False, []))
        return ", ".join(found)

    if chosen.show < 0:
        raise ConfigError("--show needs a number of 0 or more")
    if chosen.wait is not None and not chosen.wait >= 0:
        raise ConfigError("--wait needs a number of seconds, 0 or more")
    if chosen.history:
        if chosen.sink is not None:
            raise ConfigError(f"--history tests the topics of a source alone: leave out {chosen.sink}.")
        if without := given(("table", "html")):
            raise ConfigError(f"{without}: only without --history")
    elif alone := given(_OF_HISTORY):
        raise ConfigError(f"{alone}: only with --history")


# -- tables


def _verify_tables(chosen: argparse.Namespace) -> int:
    from connect_py.app.verify.pairs import verify_pairs
    from connect_py.app.verify.progress import Progress, ProgressLine

    if chosen.html and not Path(chosen.html).absolute().parent.is_dir():
        raise ConfigError(f"--html {chosen.html}: there is no such folder")
    pairs = _pairs(chosen)
    progress = ProgressLine(sys.stderr, width=shutil.get_terminal_size().columns - 1) if sys.stderr.isatty() else Progress()
    results: list[Result] = []
    began, start = datetime.datetime.now(datetime.UTC), time.monotonic()
    failure: ConnectError | None = None
    try:
        for result in verify_pairs(pairs, chosen.table, wait=chosen.wait, shown=chosen.show, progress=progress):
            results.append(result)
            _print(result, chosen, several=len(pairs) > 1)
    except ConnectError as error:
        failure = error
    if chosen.html:
        _write_page(chosen.html, results, began, time.monotonic() - start, failure)
    if failure is not None:
        raise failure
    outcomes = [result.outcome for result in results if result.outcome is not None]
    if any(not outcome.equal and not outcome.problem for outcome in outcomes):
        return WRONG
    return UNREACHABLE if any(outcome.problem for outcome in outcomes) else OK


def _print(result: Result, chosen: argparse.Namespace, *, several: bool) -> None:
    from connect_py.app.verify.report import as_json, as_text

    pair, outcome = result.pair, result.outcome
    if chosen.json:
        if outcome is not None:
            print(json.dumps({"source": pair.source.name, "sink": pair.sink.name, **as_json(outcome)}), flush=True)
        return
    text = "no table in common" if outcome is None else as_text(outcome)
    print(f"{pair}: {text}" if several else text, flush=True)


def _write_page(file: str, results: list[Result], began: datetime.datetime, seconds: float, failure: ConnectError | None) -> None:
    from connect_py.app.verify.html import page

    text = page(results, began, seconds=seconds, error=None if failure is None else str(failure))
    try:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ConfigError(f"--html {file} cannot be written: {error.strerror}. The comparison itself has ended.") from error


def _pairs(chosen: argparse.Namespace) -> list[Pair]:
    from connect_py.app.verify.pairs import Connector, Pair, pairs_of
    from connect_py.plugins.registry import Plugins

    if chosen.sink is not None:
        source, sink = (Connector(_label(name), _config(name, chosen)) for name in (chosen.source, chosen.sink))
        return [Pair(source, sink)]
    if _is_file(chosen.source, chosen):
        raise ConfigError(f"{chosen.source} is a file: name the sink's file after it, or give the name of a worker's connector.")
    pairs = pairs_of(chosen.source, list(_connectors(client_of(chosen))), Plugins.discover())
    for connector in {each.name: each for pair in pairs for each in (pair.source, pair.sink)}.values():
        require_values(connector.name, connector.config)
    return pairs


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
        "compare lakehouse tables with their source, key by key, while data flows",
        _options,
        verify,
        about=(
            "NAME alone is a source or a sink of the worker: what belongs to it is found, and all pairs are compared. "
            "With --history, it tests the topics of a source by a journal of what its database has committed."
        ),
        examples=(
            "verify lake --worker http://localhost:8083 --html result.html",
            "verify inventory lake --worker http://localhost:8083 --json",
            "verify source.json sink.json",
            "verify --history source.json --prepare public.item:id",
            "verify --history inventory --worker http://localhost:8083 --bootstrap-servers localhost:9092",
        ),
        exits={0: "equal", 2: "a side cannot be read, or a table cannot be compared", 3: "something differs"},
    ),
)
