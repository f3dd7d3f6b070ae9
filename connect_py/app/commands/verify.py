"""`connect-py verify`: holds the tables of a lakehouse sink against the tables of the database that they follow.

With `--history` it holds the topics of a source connector against a journal of all changes in its database.

Exit codes: 0 equal, 1 bad usage, 2 one of the sides cannot be read, or a table cannot be compared, 3 something differs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from connect_py.app.client.rest import ConnectClient, Target
from connect_py.app.commands.command import Command
from connect_py.errors import ConfigError


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="the source connector: a .json or .properties file, or with --worker its name")
    parser.add_argument("sink", nargs="?", help="the lakehouse sink, likewise; with --history there is none")
    parser.add_argument("--worker", metavar="URL", help="ask this worker for the configurations")
    parser.add_argument("--table", action="append", default=[], metavar="REGEX", help="only lakehouse tables of this name; repeatable")
    parser.add_argument(
        "--wait",
        type=float,
        metavar="SECONDS",
        help="time for differences to settle (twice the commit interval, 30 at least; with --history 60)",
    )
    parser.add_argument("--show", type=int, default=20, metavar="N", help="differences that are shown of each table, or findings (20)")
    parser.add_argument("--json", action="store_true", help="one JSON object a table; with --history one object")
    history = parser.add_argument_group("topics against a journal of all changes")
    history.add_argument("--history", action="store_true", help="test the topics of the source, not a sink")
    history.add_argument("--prepare", metavar="TABLE:KEY,…", help="print the statements that make the journal and its triggers, and end")
    history.add_argument("--kafka", metavar="SERVERS", help="bootstrap servers, or the worker's .properties file")
    history.add_argument("--journal", default="connect_py_journal", metavar="TABLE", help="the journal; DATABASE.TABLE but in PostgreSQL")
    history.add_argument("--sequence", default="version", metavar="COLUMN", help="the column that counts a key's changes (version)")
    history.add_argument(
        "--digest", action="append", default=[], metavar="TABLE:COLUMN,…", help="compare these columns' values; repeatable"
    )
    history.add_argument("--offsets-topic", metavar="TOPIC", help="test the stored offsets, too")
    history.add_argument("--start", type=int, metavar="LINE", help="the stream has every change after this line of the journal")
    history.add_argument("--restarts", type=int, metavar="N", help="how often the task has begun again; without it any number")
    history.add_argument("--exactly-once", action="store_true", help="each change must be there once, for readers of committed records")


def verify(chosen: argparse.Namespace) -> int:
    """Compare. Returns the exit code."""
    try:
        if chosen.history and chosen.sink is not None:
            raise ConfigError(f"--history tests the topics of a source alone: leave out {chosen.sink}.")
        if chosen.history:
            return _print_statements(chosen) if chosen.prepare else _verify_history(chosen)
        if chosen.sink is None:
            raise ConfigError("Name the lakehouse sink after the source, or add --history to test the source's topics.")
        return _verify_tables(chosen)
    except ImportError as error:
        raise ConfigError(f"verify needs the package {error.name}: pip install 'connect-py-worker[verify]'") from error


def _verify_tables(chosen: argparse.Namespace) -> int:
    from connect_py.app.verify.report import Patience, as_json, as_text
    from connect_py.app.verify.run import verify as outcomes

    source, sink = _config(chosen.source, chosen.worker), _config(chosen.sink, chosen.worker)
    commits = int(sink.get("lakehouse.control.commit.interval-ms") or sink.get("iceberg.control.commit.interval-ms") or 60_000) / 1000
    wait = chosen.wait if chosen.wait is not None else max(30.0, 2 * commits)
    patience = Patience(wait=wait, pause=min(5.0, max(0.5, commits / 2)), shown=chosen.show)
    code = 0
    for outcome in outcomes(source, sink, chosen.table, patience):
        print(json.dumps(as_json(outcome)) if chosen.json else as_text(outcome), flush=True)
        if not outcome.equal:
            code = max(code, 2 if outcome.problem else 3)
    return code


def _print_statements(chosen: argparse.Namespace) -> int:
    from connect_py.app.verify.history.journal import Journalled, mysql_script, postgres_script

    config = _config(chosen.source, chosen.worker)
    name, keys = _columns(chosen.prepare, "--prepare")
    schema, _, table = name.rpartition(".")
    digest = dict(_columns(text, "--digest") for text in chosen.digest)
    journalled = Journalled(schema, table, keys, chosen.sequence, digest.get(name, []))
    script = postgres_script if "postgres" in config.get("connector.class", "").lower() else mysql_script
    print(script(journalled, chosen.journal.rpartition(".")[2]))
    return 0


def _verify_history(chosen: argparse.Namespace) -> int:
    from connect_py.app.verify.history.records import Promise
    from connect_py.app.verify.history.run import Plan, as_json, as_text, verify_history

    config = _config(chosen.source, chosen.worker)
    promise = Promise(
        start=chosen.start,
        restarts=chosen.restarts,
        exactly_once=chosen.exactly_once,
        snapshot=config.get("snapshot.mode", "initial") not in ("no_data", "never"),
        tombstones=config.get("tombstones.on.delete", "true").strip().lower() == "true",
        initial_rows_lag="mongodb" in config.get("connector.class", "").lower(),
    )
    plan = Plan(
        config=config,
        kafka=_kafka(chosen.kafka),
        journal=chosen.journal,
        sequence=chosen.sequence,
        digest=dict(_columns(text, "--digest") for text in chosen.digest),
        offsets_topic=chosen.offsets_topic,
        promise=promise,
        wait=60.0 if chosen.wait is None else chosen.wait,
    )
    history, findings = verify_history(plan)
    print(json.dumps(as_json(history, findings)) if chosen.json else as_text(history, findings, chosen.show))
    return 3 if findings else 0


def _columns(text: str, option: str) -> tuple[str, list[str]]:
    table, _, columns = text.partition(":")
    if "." not in table or not columns:
        raise ConfigError(f"{option} {text}: write SCHEMA.TABLE:COLUMN,COLUMN")
    return table, columns.split(",")


def _kafka(text: str | None) -> dict[str, str]:
    from connect_py.data.java_properties import parse_properties

    if not text:
        raise ConfigError("--kafka is missing: bootstrap servers, or the worker's .properties file")
    if not text.endswith(".properties"):
        return {"bootstrap.servers": text}
    try:
        return parse_properties(Path(text).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{text} cannot be read: {error}") from error


def _config(name: str, worker: str | None) -> dict[str, str]:
    from connect_py.app.client.files import read_connector_file

    if worker is None:
        found = read_connector_file(name).config
    else:
        config = ConnectClient(Target(worker)).config(name)
        found = {key: str(value) for key, value in config.items() if value is not None}
    # a reference is the worker's to resolve: it has the providers, and their files are on its machine
    if references := sorted(key for key, value in found.items() if "${" in value):
        raise ConfigError(f"{name}: {', '.join(references)} refer to a config provider; put their values into a file of your own.")
    return found


COMMANDS = (
    Command(
        "verify",
        "Data",
        "compare lakehouse tables with their source, key by key, while data flows",
        _options,
        verify,
        about="With --history, it tests the topics of a source by a journal of what its database has committed.",
        examples=(
            "verify source.json sink.json",
            "verify inventory lake --worker http://localhost:8083 --json",
            "verify --history source.json --prepare public.item:id",
            "verify --history inventory --worker http://localhost:8083 --kafka localhost:9092",
        ),
        exits={0: "equal", 2: "a side cannot be read, or a table cannot be compared", 3: "something differs"},
    ),
)
