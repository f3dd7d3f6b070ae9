"""From the databases' errors to this project's classes: one table a database.

The class is the decision: `RetriableError` makes the runtime bring the same records again, `DataError` is about one record, which
``errors.tolerance`` may skip, `FatalTaskError` ends the task. `StaleTableError` says that a table is not what it was when it was looked at.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from connect_py.errors import ConnectError, DataError, FatalTaskError, RetriableError


class StaleTableError(RetriableError):
    """A table or column is gone; the tables are looked at again."""


class BusyError(RetriableError):
    """A lock was not given, or a deadlock resolved; ``flush.max.retries`` counts these."""


#: SQLSTATE, or its first characters → class; the first match counts. PostgreSQL's manual, appendix A.
POSTGRES: Final[tuple[tuple[str, type[ConnectError]], ...]] = (
    ("08", RetriableError),  # connection failures
    ("22", DataError),  # a value that its type does not have
    ("23", DataError),  # constraints
    ("25006", RetriableError),  # read-only: a fail-over is under way
    ("40", BusyError),  # serialisation failure, deadlock
    ("42P01", StaleTableError),
    ("42703", StaleTableError),
    ("42804", DataError),  # the column is of another type
    ("53", RetriableError),  # out of memory, disk, connections
    ("55P03", BusyError),  # lock not available
    ("55006", RetriableError),
    ("57P04", FatalTaskError),  # database dropped
    ("57", RetriableError),  # shutdown, starting up, canceled by statement_timeout
    ("58", RetriableError),  # I/O error
    ("XX", RetriableError),
    ("", FatalTaskError),
)

#: Error numbers of MySQL and MariaDB → class.
MYSQL: Final[dict[int, type[ConnectError]]] = {
    **dict.fromkeys((1040, 1053, 1152, 1158, 1159, 1160, 1161, 1290, 1317, 1836, 1927, 2002, 2003, 2006, 2013, 2055, 4031), RetriableError),
    **dict.fromkeys((1205, 1213, 3572, 1412), BusyError),
    **dict.fromkeys((1146, 1054), StaleTableError),
    **dict.fromkeys((1048, 1062, 1136, 1169, 1216, 1217, 1451, 1452, 1586, 3819, 4025), DataError),  # constraints
    **dict.fromkeys((1264, 1265, 1292, 1366, 1367, 1406, 1411, 1416, 1441, 1690, 3037, 3140, 3141, 3143, 1210, 1301), DataError),  # values
}

_ADVICE: Final = {
    "28": "Check connection.username and connection.password.",
    "42501": "Grant the user the privilege; schema.evolution=basic needs that of creating and altering tables.",
    "1045": "Check connection.username and connection.password.",
    "1044": "Grant the user the privileges on the database.",
    "1142": "Grant the user the privilege; schema.evolution=basic needs that of creating and altering tables.",
    "1298": "Load the time zones' tables into the server (mysql_tzinfo_to_sql), or set use.time.zone=UTC.",
}


def database_error(error: Exception, what: str) -> ConnectError:
    """Return the error of this project for one of a driver's or of SQLAlchemy's.

    Args:
        what: what failed and is still true, for the text, such as ``PostgreSQL at host:5432 could not take rows``.
    """
    if isinstance(error, ConnectError):
        return error
    if isinstance(error, PoolTimeoutError):
        return RetriableError(f"{what}: no connection of the pool is free")
    original: Any = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    text = f"{what}: {' '.join(str(part) for part in getattr(original, 'args', ()) or (original,))}".strip()
    sort, code = _sort(original)
    if isinstance(error, DBAPIError) and error.connection_invalidated and not issubclass(sort, RetriableError):
        sort = RetriableError
    advice = next((note for prefix, note in _ADVICE.items() if code.startswith(prefix)), None)
    return sort(f"{text} {advice}" if advice else text)


def _sort(error: Any) -> tuple[type[ConnectError], str]:
    driver = type(error).__module__.partition(".")[0]
    if driver == "psycopg":
        return _postgres(error)
    if driver == "pymysql":
        return _mysql(error)
    if driver == "sqlite3":
        return _sqlite(error)
    if isinstance(error, OSError):
        return RetriableError, ""
    is_value = isinstance(error, OverflowError | ValueError | TypeError)
    return (DataError if is_value else FatalTaskError), ""


def _postgres(error: Any) -> tuple[type[ConnectError], str]:
    state = getattr(error, "sqlstate", None)
    if state is None:
        kind = type(error).__name__
        return (RetriableError if kind in ("OperationalError", "InterfaceError", "ConnectionTimeout") else DataError), ""
    return next(sort for prefix, sort in POSTGRES if state.startswith(prefix)), state


def _mysql(error: Any) -> tuple[type[ConnectError], str]:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    if code in MYSQL:
        return MYSQL[code], str(code)
    kind = type(error).__name__
    if kind == "InterfaceError" or (kind == "OperationalError" and code in (0, 2026)):
        return RetriableError, str(code)
    return (DataError if kind in ("DataError", "IntegrityError") or code == 0 else FatalTaskError), str(code)


def _sqlite(error: Any) -> tuple[type[ConnectError], str]:
    text, kind = str(error), type(error).__name__
    if "locked" in text or "busy" in text:
        return BusyError, ""
    if text.startswith(("no such table", "no such column")) or "has no column named" in text:
        return StaleTableError, ""
    return (DataError if kind in ("IntegrityError", "DataError", "InterfaceError", "ProgrammingError") else FatalTaskError), ""
