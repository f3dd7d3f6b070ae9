"""The signal `set-binlog-position`: streaming resumes at another position of the log (`SetBinlogPositionSignal.java`).

Its data is `{"binlog_filename": …, "binlog_position": …}` or `{"gtid_set": …}`, the transactions that count as read. Debezium only stores
the position, which counts after a restart unless a transaction comes before it; here it is checked and stored, and streaming resumes from
it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from connect_py.errors import ConfigError, DataError
from connectors.mysql.config.config import MySqlConfig
from connectors.mysql.position.gtid import MariadbGtidSet, parse_transactions
from connectors.mysql.position.offset import MySqlOffset
from connectors.mysql.server import queries
from connectors.mysql.server.connection import Connection

NAME = "set-binlog-position"
_FILE = re.compile(r"[A-Za-z0-9_-]+\.\d{6}", re.ASCII)
#: COM_BINLOG_DUMP has four bytes for it.
_LAST_POSITION = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Target:
    """The requested position: a file and a position in it, or the transactions before it."""

    file: str = ""
    position: int = 0
    gtids: str = ""


def target_of(data: Mapping[str, Any]) -> Target:
    """Return the position that a signal's data names. Raises ConfigError, in Debezium's words."""
    file, position, gtids = (data.get(name) for name in ("binlog_filename", "binlog_position", "gtid_set"))
    names_place = bool(file) or position is not None
    if names_place and gtids:
        raise ConfigError("Cannot specify both binlog file/position and GTID set")
    if gtids:
        return Target(gtids=_checked(str(gtids)))
    if not names_place:
        raise ConfigError("Must specify either binlog file/position or GTID set")
    if not file:
        raise ConfigError("Binlog filename must be specified when position is provided")
    if not isinstance(position, int) or isinstance(position, bool):
        raise ConfigError("Binlog position must be specified when filename is provided")
    if position < 0:
        raise ConfigError("Binlog position must be non-negative")
    if position > _LAST_POSITION:
        raise ConfigError(f"Binlog position must be at most {_LAST_POSITION}, which is all that a server can be asked for")
    if not _FILE.fullmatch(str(file)):
        raise ConfigError(f"Invalid binlog filename format: {file}")
    return Target(str(file), position)


def _checked(gtids: str) -> str:
    try:
        return str(parse_transactions(gtids))
    except DataError as error:
        raise ConfigError(f"Invalid GTID set format: {gtids}") from error


def offset_at(connection: Connection, config: MySqlConfig, target: Target, now: MySqlOffset) -> MySqlOffset:
    """Return the offset of a position from which reading can begin.

    Args:
        now: that of the last batch; the state of the services around the stream is kept.

    Raises:
        ConfigError: the server's log does not have the position, or cannot be read by it.
        ServerError: the server cannot be asked.
    """
    by_gtids = queries.has_gtids(connection, config) and not config.flag("gtid.ignore.on.recovery")
    if target.gtids and not by_gtids:
        raise ConfigError("The log is read by file and position here: name binlog_filename and binlog_position. Nothing was changed.")
    if target.gtids and isinstance(parse_transactions(target.gtids), MariadbGtidSet) != queries.is_mariadb(config):
        raise ConfigError(f"Invalid GTID set format: {target.gtids}")
    gtids = target.gtids or None
    if target.file:
        gtids = _gtids_at(connection, config, target, by_gtids=by_gtids)
    more = {name: value for name, value in now.more.items() if not name.startswith("transaction_")}
    found = replace(now, gtids=gtids, event=0, row=0, snapshot=None, progress=None, more=more)
    if target.file:
        found = replace(found, file=target.file, pos=target.position)
    if not queries.is_available(connection, config, found):
        raise ConfigError(
            f"The server's log does not have everything behind {target.gtids or target.file}: it has not come so far, or what follows was "
            "thrown away. Nothing was changed."
        )
    return found


def _gtids_at(connection: Connection, config: MySqlConfig, target: Target, *, by_gtids: bool) -> str | None:
    """Return the transactions before a position, where there are GTIDs."""
    sizes = {row[0]: int(row[1]) for row in connection.texts("SHOW BINARY LOGS")}
    if target.position > sizes.get(target.file, -1):
        raise ConfigError(f"The server's log has no position {target.position} in a file {target.file}. Nothing was changed.")
    if not by_gtids:
        return None
    if not queries.is_mariadb(config):
        raise ConfigError(
            "The log is read by GTIDs here, which a position does not tell: name gtid_set, the transactions that count as read "
            f"(SHOW BINLOG EVENTS IN '{target.file}' shows them). Nothing was changed."
        )
    return queries.gtids_at(connection, target.file, target.position)
