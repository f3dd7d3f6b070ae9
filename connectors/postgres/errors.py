"""From the server's error codes to this project's error classes: one table, the first match wins.

The class is the decision: a retriable error makes the task connect again and continue from its last position, a fatal one ends it.
Debezium repeats every SQL error for ever; here an error that repeating cannot mend ends the task and says what to run instead.
"""

from __future__ import annotations

from typing import Final

from connect_py.errors import ConnectError, FatalTaskError, RetriableError

#: SQLSTATE, or the first characters of it → class. Codes: PostgreSQL's manual, appendix A.
CLASSES: Final[tuple[tuple[str, type[ConnectError]], ...]] = (
    ("08", RetriableError),  # connection failures
    ("25006", RetriableError),  # read-only transaction: a fail-over is under way
    ("28", FatalTaskError),  # wrong user, password, pg_hba.conf
    ("40", RetriableError),  # serialisation failure, deadlock
    ("53400", FatalTaskError),  # configuration limit exceeded: no free slot or walsender
    ("53", RetriableError),  # out of memory, disk, connections
    ("55006", RetriableError),  # object in use: a dying predecessor still holds the slot
    ("55P03", RetriableError),  # lock not available
    ("57014", RetriableError),  # canceled by statement_timeout
    ("57P04", FatalTaskError),  # database dropped
    ("57", RetriableError),  # shutdown, crash, starting up
    ("58P01", FatalTaskError),  # undefined file: the WAL segment is gone
    ("58", RetriableError),  # I/O error outside of the database
    ("XX", RetriableError),  # internal error
    ("", FatalTaskError),  # everything else is about the statement itself
)

#: What to do, by SQLSTATE prefix; {user} and {database} are filled in.
ADVICE: Final[tuple[tuple[str, str], ...]] = (
    ("28", "Check database.user and database.password, and that pg_hba.conf on the server lets this host reach the database '{database}'."),
    ("3D000", "Create the database or correct database.dbname."),
    ("42501", "Ask the owner for the privilege, for example: GRANT USAGE ON SCHEMA <schema> TO {user}; GRANT SELECT ON <table> TO {user};"),
    (
        "53400",
        "Raise max_replication_slots and max_wal_senders on the server and restart it, or drop a slot that nobody needs: "
        "SELECT pg_drop_replication_slot('<slot>') for one with active = false in pg_replication_slots.",
    ),
    (
        "42704",
        "If it is the publication: it must have existed before the first change that is read. Create it again, drop the slot and take a "
        "new snapshot (snapshot.mode=when_needed, or delete the connector's offsets).",
    ),
    (
        "55000",
        "If the slot was invalidated, drop it (SELECT pg_drop_replication_slot('<slot>');) and take a new snapshot: "
        "snapshot.mode=when_needed, or delete the connector's offsets.",
    ),
    (
        "58P01",
        "The offset to start reading from has been removed from the database write-ahead log. Take a new snapshot "
        "(snapshot.mode=when_needed, or delete the connector's offsets) and consider raising wal_keep_size or max_slot_wal_keep_size on "
        "the server.",
    ),
)


class ServerError(Exception):
    """What the server or libpq answered.

    Attributes:
        sqlstate: five characters, ``08006`` when the connection itself failed.
        message: the primary message, one line.
    """

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message


def class_of(sqlstate: str) -> type[ConnectError]:
    """Return the class that a SQLSTATE stands for."""
    return next(found for prefix, found in CLASSES if sqlstate.startswith(prefix))


def translate(error: ServerError, what: str, *, user: str = "", database: str = "") -> ConnectError:
    """Return the error to raise.

    Args:
        what: what was being done, as the beginning of a sentence: ``Cannot read the table public.t``.
    """
    advice = next((text for prefix, text in ADVICE if error.sqlstate.startswith(prefix)), "")
    text = f"{what}: {error.message} (SQLSTATE {error.sqlstate})"
    if advice:
        text += ". " + advice.format(user=user, database=database)
    return class_of(error.sqlstate)(text)


#: libpq reports no SQLSTATE when a connection cannot be opened; these parts of its (English) text stand for one.
_CONNECT_TEXTS: Final[tuple[tuple[str, str], ...]] = (
    ("password authentication failed", "28P01"),
    ("no password supplied", "28P01"),
    ("authentication failed", "28000"),
    ("no pg_hba.conf entry", "28000"),
    ("pg_hba.conf rejects", "28000"),
    ("is not permitted to log in", "28000"),
    ("must be superuser or replication role", "42501"),
    ("permission denied", "42501"),
    ("too many connections", "53300"),
    ("remaining connection slots are reserved", "53300"),
    ("number of requested standby connections exceeds max_wal_senders", "53300"),
    ("the database system is", "57P03"),
)


def connect_error(message: str) -> ServerError:
    """Return the error of a connection that could not be opened, from libpq's text."""
    lines = message.strip().splitlines() or ["the connection was closed"]
    # one line for each address that was tried, and for a refusal a question below it
    line = next((line for line in reversed(lines) if " failed: " in line), lines[-1])
    _, _, tail = line.partition(" failed: ")
    text = " ".join((tail or line).split())
    if text.startswith("FATAL: ") and "role " in text and "does not exist" in text:
        return ServerError("28000", text)
    if text.startswith("FATAL: ") and "database " in text and "does not exist" in text:
        return ServerError("3D000", text)
    return ServerError(next((code for part, code in _CONNECT_TEXTS if part in text), "08001"), text)
