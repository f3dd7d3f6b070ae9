"""MySQL servers that follow each other, in the words of their versions (replication was renamed in 8.0.23, the log's statements in 8.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from connect_py.app.services.mysql import MySqlAddress
from tests.waiting import eventually


def await_(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Poll until something holds; fails after a while."""
    eventually(condition, what, seconds)


def run(server: MySqlAddress, *statements: str) -> Any:
    """The rows of the last statement."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall()


def version(server: MySqlAddress) -> tuple[int, ...]:
    """Such as (8, 0, 15)."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", run(server, "SELECT VERSION()")[0][0])
    assert found is not None
    return tuple(map(int, found.groups()))


def status_statement(server: MySqlAddress) -> str:
    """The statement that shows where the log ends."""
    text = run(server, "SELECT VERSION()")[0][0]
    return "SHOW MASTER STATUS" if "MariaDB" in text or version(server) < (8, 2) else "SHOW BINARY LOG STATUS"


def follow(replica: MySqlAddress, source: MySqlAddress, *, anew: bool = True) -> None:
    """Make a server a replica by GTIDs.

    Args:
        anew: whether it forgets what it logged itself.
    """
    known = version(replica)
    options = {"HOST": f"'{source.host}'", "PORT": source.port, "USER": f"'{source.user}'", "PASSWORD": f"'{source.password}'"}
    options |= {"AUTO_POSITION": 1, "CONNECT_RETRY": 1, "SSL": 0}
    new = known >= (8, 0, 23)
    word, statement, start = ("SOURCE", "CHANGE REPLICATION SOURCE TO", "REPLICA") if new else ("MASTER", "CHANGE MASTER TO", "SLAVE")
    settings = ", ".join(f"{word}_{name}={value}" for name, value in options.items())
    key = f", GET_{'SOURCE' if new else 'MASTER'}_PUBLIC_KEY=1"
    reset = ["RESET BINARY LOGS AND GTIDS" if known >= (8, 2) else "RESET MASTER"] if anew else []
    run(replica, f"STOP {start}", *reset, f"{statement} {settings}{key}", f"START {start}")


def stop_following(replica: MySqlAddress) -> None:
    """Leave the source alone."""
    run(replica, "STOP REPLICA" if version(replica) >= (8, 0, 22) else "STOP SLAVE")


def await_level(source: MySqlAddress, replica: MySqlAddress) -> None:
    """Wait until a replica has all that its source has now."""
    wanted = run(source, "SELECT @@global.gtid_executed")[0][0].replace("\n", "")
    await_(lambda: run(replica, f"SELECT GTID_SUBSET('{wanted}', @@global.gtid_executed)")[0][0], "the replica")


def purge(server: MySqlAddress) -> None:
    """Throw away all of the log but a new, empty file. A file stays while a session that ended a moment ago reads it."""
    statement = status_statement(server)
    run(server, "FLUSH BINARY LOGS")

    def purged() -> bool:
        file = run(server, statement)[0][0]
        return len(run(server, f"PURGE BINARY LOGS TO '{file}'", "SHOW BINARY LOGS")) == 1

    await_(purged, "the log to be thrown away")
