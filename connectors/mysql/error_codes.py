"""The server's and driver's error numbers that decide something (mysql.md §18)."""

from __future__ import annotations

ACCESS_DENIED = 1045
SPECIFIC_ACCESS_DENIED = 1227
SOURCE_FATAL_ERROR_READING_BINLOG = 1236
NO_SUCH_TABLE = 1146
UNKNOWN_DATABASE = 1049
UNKNOWN_COLUMN = 1054
LOCK_WAIT_TIMEOUT = 1205

#: What is asked for is gone: a table, or its database too.
GONE = frozenset({NO_SUCH_TABLE, UNKNOWN_DATABASE})

#: A right is missing: to a database, at all, to a table, of an administrator.
DENIED = frozenset({1044, ACCESS_DENIED, 1142, SPECIFIC_ACCESS_DENIED})

#: Connection refused or lost, server shutting down, too many connections, killed, lock wait timeout, deadlock, a table that changed
#: under a transaction.
LOST = frozenset({2002, 2003, 2006, 2013, 2026, 2055, 1053, 1040, 1152, 1158, 1159, 1160, 1161, 1205, 1213, 1317, 1412, 1927, 4031})
