"""`connect-py verify`: holds the tables of a lakehouse sink against the tables of the database that they follow.

Exit codes: 0 equal, 1 bad usage, 2 one of the sides cannot be read, or a table cannot be compared, 3 something differs.
"""

from __future__ import annotations

import argparse
import json

from connect_py.app.client.rest import ConnectClient, Target
from connect_py.app.commands.command import Command
from connect_py.errors import ConfigError


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="the source connector: a .json or .properties file, or with --worker its name")
    parser.add_argument("sink", help="the lakehouse sink, likewise")
    parser.add_argument("--worker", metavar="URL", help="ask this worker for the two configurations")
    parser.add_argument("--table", action="append", default=[], metavar="REGEX", help="only lakehouse tables of this name; repeatable")
    parser.add_argument(
        "--wait", type=float, metavar="SECONDS", help="time for differences to settle (twice the commit interval, 30 at least)"
    )
    parser.add_argument("--show", type=int, default=20, metavar="N", help="differences that are shown of each table (20)")
    parser.add_argument("--json", action="store_true", help="one JSON object a table")


def verify(chosen: argparse.Namespace) -> int:
    """Compare. Returns the exit code."""
    try:
        from connect_py.app.verify.report import Patience, as_json, as_text
        from connect_py.app.verify.run import verify as outcomes
    except ImportError as error:
        raise ConfigError(f"verify needs the package {error.name}: pip install 'connect-py-worker[verify]'") from error

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
        examples=("verify source.json sink.json", "verify inventory lake --worker http://localhost:8083 --json"),
        exits={0: "equal", 2: "a side cannot be read, or a table cannot be compared", 3: "something differs"},
    ),
)
