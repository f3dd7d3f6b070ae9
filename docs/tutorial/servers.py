"""Start and stop the tutorial's servers on this machine, with the rows of the tutorial in them.

    python docs/tutorial/servers.py start FOLDER kafka postgres [mysql] [mongodb]
    python docs/tutorial/servers.py stop FOLDER

They listen on free ports of the loopback interface and keep running when the command ends. `FOLDER/env` has their addresses: source it in
each terminal. `start` may be called again for further servers.

PostgreSQL comes with `make install`; Kafka is fetched once (44 MB); MySQL is `mysqld` of the path, or fetched on Debian (60 MB); MongoDB is
`mongod` of the path, or a stand-in in memory (7 MB).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from connect_py.app.services.guard import send, started_at
from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.mongo import MongoServer
from connect_py.app.services.mysql import MySqlServer
from connect_py.app.services.postgres import PostgresServer, find_binaries
from connect_py.app.services.process import Service
from connect_py.errors import ConnectError

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 15.0

CUSTOMERS = [
    (1001, "Sally", "Thomas", "sally.thomas@acme.com"),
    (1002, "George", "Bailey", "gbailey@foobar.com"),
    (1003, "Edward", "Walker", "ed@walker.com"),
    (1004, "Anne", "Kretchmar", "annek@noanswer.org"),
]


def kafka(folder: Path) -> tuple[Service, dict[str, Any]]:
    """Start the broker."""
    broker = KafkaBroker(folder, print)
    print(f"Kafka at {broker.bootstrap}")
    return broker.service, {"KAFKA": broker.bootstrap}


def postgres(folder: Path) -> tuple[Service, dict[str, Any]]:
    """Start PostgreSQL and load the inventory."""
    server = PostgresServer(folder)
    with server.connect() as admin:
        admin.execute("CREATE DATABASE inventory")
    with server.connect("inventory") as connection:
        connection.execute((ROOT / "docker/postgres/inventory.sql").read_text())
    print(f"PostgreSQL at 127.0.0.1:{server.port}, database inventory, user and password postgres")
    names = {"PGHOST": server.host, "PGPORT": server.port, "PGUSER": server.user, "PGPASSWORD": server.password, "PGDATABASE": "inventory"}
    return server.service, {**names, "PATH": f"$PATH:{find_binaries()}"}


def mysql(folder: Path) -> tuple[Service, dict[str, Any]]:
    """Start MySQL and load the inventory."""
    server = MySqlServer(folder)
    text = (ROOT / "docker/mysql/inventory.sql").read_text().partition("-- What a connector needs")[0]
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE inventory")
        cursor.execute("USE inventory")
        for statement in filter(str.strip, "\n".join(lines).split(";\n")):
            cursor.execute(statement)
    print(f"MySQL at 127.0.0.1:{server.port}, database inventory, user debezium, password dbz")
    return server.service, {"MYSQL_HOST": server.host, "MYSQL_PORT": server.port}


def mongodb(folder: Path) -> tuple[Service, dict[str, Any]]:
    """Start MongoDB and load the customers."""
    server = MongoServer(folder, print)
    with server.connect() as client:
        fields = ("_id", "first_name", "last_name", "email")
        client.inventory.customers.insert_many([dict(zip(fields, row, strict=True)) for row in CUSTOMERS])
    print(f"MongoDB at {server.uri}, database inventory" + ("" if server.is_real else " (a stand-in in memory)"))
    return server.service, {"MONGODB": server.uri}


#: By the word on the command line: what starts the server, and the signal that stops it at once.
SERVERS = {
    "kafka": (kafka, signal.SIGTERM),
    "postgres": (postgres, signal.SIGINT),
    "mysql": (mysql, signal.SIGKILL),
    "mongodb": (mongodb, signal.SIGTERM),
}


def start(folder: Path, names: list[str]) -> None:
    """Start servers; their addresses are added to `FOLDER/env`, their process ids to `FOLDER/servers.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        function, with_signal = SERVERS[name]
        service, variables = function(folder / name)
        with (folder / "env").open("a") as file:
            file.writelines(f'export {variable}="{value}"\n' for variable, value in variables.items())
        with (folder / "servers.json").open("a") as file:
            file.write(json.dumps({"name": name, "pid": service.pid, "began": started_at(service.pid), "signal": with_signal}) + "\n")
        service.leave_running()
    print(f"Their addresses are in {folder / 'env'}")


def stop(folder: Path) -> None:
    """Stop what was started, the last first."""
    for line in reversed((folder / "servers.json").read_text().splitlines()):
        server = json.loads(line)
        pid, began = server["pid"], server["began"]
        deadline = time.monotonic() + STOP_SECONDS
        send(pid, began, server["signal"])
        while send(pid, began, 0):
            if time.monotonic() > deadline:
                send(pid, began, signal.SIGKILL)
            time.sleep(0.1)  # noqa: TID251 - a process that is not our child
        print(f"{server['name']} is stopped")
    os.remove(folder / "servers.json")
    os.remove(folder / "env")


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    match arguments:
        case ["start", folder, *names] if names and set(names) <= set(SERVERS):
            try:
                start(Path(folder), names)
            except ConnectError as error:
                print(error, file=sys.stderr)
                return 1
        case ["stop", folder]:
            stop(Path(folder))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
