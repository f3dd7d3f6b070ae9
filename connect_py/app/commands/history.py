"""`connect-py history`: checks the schema history of a MySQL or MariaDB connector against its server, and repairs it.

Exit codes: 0 nothing is wrong (any more), 1 bad usage, 2 Kafka, the server or the worker cannot be asked, 3 something is wrong.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from connect_py.app.commands.command import Command
from connect_py.app.commands.connection import add_worker_options, client_of
from connect_py.errors import ConfigError

if TYPE_CHECKING:
    from connectors.mysql.position.offset import MySqlOffset

_MARIADB = "io.debezium.connector.mariadb.MariaDbConnector"


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["verify", "repair"], help="say what is missing, or put it into the history too")
    parser.add_argument("file", help="the connector's configuration, .json or .properties")
    parser.add_argument(
        "--offset",
        metavar="JSON",
        help="the connector's offset; else that at --worker or --context, stopped there for a repair; else that of the last record",
    )
    add_worker_options(parser, has_json=False)


def history(chosen: argparse.Namespace) -> int:
    """Verify or repair. Returns the exit code."""
    from connect_py.app.client.files import read_connector_file
    from connectors.mysql.config.config import parse_config
    from connectors.mysql.schema.verify import HistoryCheck

    file = read_connector_file(chosen.file)
    connector = "mariadb" if file.config.get("connector.class") == _MARIADB else "mysql"
    config = parse_config(file.config, connector)
    check = HistoryCheck(config, _offset(chosen, file.name, config.topic_prefix))
    findings = check.run()
    print(f"{check.records} records tell of {check.tables} captured tables; {len(findings) or 'nothing'} wrong")
    for finding in findings:
        print(f"- {finding.text}")
    if not findings or chosen.action == "verify":
        return 3 if findings else 0
    left = check.repair()
    done = [finding for finding in findings if finding.table is not None and finding not in left]
    print(f"Repaired: {', '.join(str(finding.table) for finding in done) or 'nothing'}")
    for finding in left:
        print(
            f"- not repaired, since the server cannot tell it: {finding.table}. Signal its structure (schema-changes), or snapshot it anew"
        )
    return 3 if left else 0


def _offset(chosen: argparse.Namespace, name: str, prefix: str) -> MySqlOffset | None:
    from connectors.mysql.position.offset import MySqlOffset

    asks = bool(chosen.worker or chosen.context)
    if chosen.offset and asks:
        raise ConfigError("--offset takes the place of the worker's: leave out one of them")
    if chosen.offset:
        try:
            stored = json.loads(chosen.offset)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"--offset is no JSON: {error}") from error
        if not isinstance(stored, dict):
            raise ConfigError('--offset is no JSON object such as {"file": "binlog.000001", "pos": 4}')
        return MySqlOffset.load(stored)
    if not asks:
        return None
    worker = client_of(chosen)
    if chosen.action == "repair":
        states = [task["state"] for task in worker.status(name).get("tasks", ())]
        if states:
            raise ConfigError(f"The connector '{name}' is not stopped, and would not see a repair: stop it first (PUT …/stop)")
    for entry in worker.offsets(name):
        if entry.get("partition") == {"server": prefix} and entry.get("offset"):
            return MySqlOffset.load(entry["offset"])
    raise ConfigError(f"The worker holds no offset of the connector '{name}': there is nothing that its history must tell")


COMMANDS = (
    Command(
        "history",
        "Data",
        "check or repair the schema history of a MySQL or MariaDB connector",
        _options,
        history,
        about="The history is compared with the structures that the server has.",
        examples=("history verify inventory.json", "history repair inventory.json --worker http://localhost:8083"),
        exits={0: "nothing is wrong, or not any more", 3: "something is wrong"},
    ),
)
