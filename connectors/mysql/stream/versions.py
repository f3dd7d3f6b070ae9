"""Rows of MariaDB's system-versioned tables (`WITH SYSTEM VERSIONING`) that name no columns for it (mysql.md §21).

The log has two columns behind those of the statement, from when and until when a row is the present one, and keeps each version that ends
as an inserted row of its own; a row that goes is updated to have an end. Debezium's task fails at such rows. Here they are what the table's
readers see: the present rows and their changes.
"""

from __future__ import annotations

from dataclasses import replace

from connectors.engine.encode.texts import UNCHANGED, Text
from connectors.mysql.binlog.bodies import Rows
from connectors.mysql.binlog.rows import Reader

#: The end of a present row: the greatest `TIMESTAMP(6)`, of 32 bits with a sign or, since MariaDB 11.5, without.
_NEVER = ("2038-01-19 03:14:07.999999", "2106-02-07 06:28:15.999999", UNCHANGED)


def present_rows(event: Rows, read: Reader, read_after: Reader) -> list[tuple[Rows, int]]:
    """An event without the rows of old versions, in parts of one kind each, with their numbers of rows.

    Args:
        read: reads an image with all columns of the log.
        read_after: the same for the second images of updates.

    Raises:
        MalformedEventError: the event holds no such rows.
    """
    parts: list[tuple[Rows, int]] = []
    at, body = 0, event.body
    while at < len(body):
        begin = at
        texts, at = read(body, at)
        was_present = _is_present(texts)
        kind, end = event.kind, at
        if kind == "u":
            texts, at = read_after(body, at)
            if _is_present(texts):
                end = at
            else:
                kind = "d"
        if not was_present:
            continue
        if parts and parts[-1][0].kind == kind:
            part, count = parts[-1]
            parts[-1] = (replace(part, body=part.body + body[begin:end]), count + 1)
        else:
            parts.append((replace(event, kind=kind, body=body[begin:end]), 1))
    return parts


def _is_present(texts: list[Text]) -> bool:
    return texts[-1] in _NEVER
