"""What the worker and its tasks say on standard error: one line an event, quiet at INFO.

    2026-03-01 14:03:07.512 INFO  Connector inventory runs with 1 task(s)
    2026-03-01 14:03:07.900 INFO  inventory-0  Snapshot finished: 1024 rows in 0.2 s

Time (local, milliseconds; with the date, since a worker runs for months), level, context (the connector, the task, or nothing for the
worker), message. Further lines of a message are indented, so a line that starts with a digit starts an event. Secrets are taken out by
`connect_py.runtime.redact` before anything is written.
"""

from __future__ import annotations

import contextvars
import logging
import sys
import time
from collections.abc import Callable

from connect_py.runtime.redact import PROVIDED

#: The connector or task that the present work belongs to.
context: contextvars.ContextVar[str] = contextvars.ContextVar("connect_py_log_context", default="")

_LEVEL_NAMES = {"WARNING": "WARN", "CRITICAL": "FATAL"}

#: Libraries whose INFO is about themselves.
_QUIET = ("py4j", "asyncio", "urllib3", "uvicorn.access", "uvicorn.error", "aiokafka", "rest_api.access")


class LineFormatter(logging.Formatter):
    """Formats a record as above."""

    def __init__(self, redact: Callable[[str], str] = lambda text: text, default_context: str = "") -> None:
        super().__init__()
        self.redact = redact
        self._context = default_context

    def format(self, record: logging.LogRecord) -> str:
        """One event as text."""
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        level = _LEVEL_NAMES.get(record.levelname, record.levelname)
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        text = PROVIDED(self.redact(text)).rstrip().replace("\n", "\n    ")
        who = context.get() or self._context
        return f"{clock}.{int(record.msecs):03d} {level:<5} {who + '  ' if who else ''}{text}"


def configure(level: str | int = "INFO", *, default_context: str = "") -> LineFormatter:
    """Send the log to standard error in this module's form. Returns the formatter, whose `redact` can be set once secrets are known."""
    formatter = LineFormatter(default_context=default_context)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level if isinstance(level, int) else level_number(level))
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    return formatter


def level_number(level: str) -> int:
    """Connect's names of levels (TRACE, WARN, FATAL, OFF, ALL too) as Python's numbers; INFO for an unknown name."""
    names = {"TRACE": 5, "ALL": 1, "WARN": logging.WARNING, "FATAL": logging.CRITICAL, "OFF": logging.CRITICAL + 10}
    name = level.upper()
    return names.get(name, logging.getLevelNamesMapping().get(name, logging.INFO))
