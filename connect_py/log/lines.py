"""Write what the worker and its tasks log on standard error: one line an event, quiet at INFO, in Connect's default pattern.

    [2026-03-01 14:03:07,512] INFO Connector inventory runs with 1 task(s) (connect_py.host.connectors:163)
    [2026-03-01 14:03:07,900] INFO [inventory|task-0] Snapshot finished: 1024 rows in 0.2 s (connectors.postgres.snapshot.snapshot:196)

Time (local, milliseconds), level, context (`util/LoggingContext.java`: connector and scope; nothing for the worker itself), message, logger
and line. Further lines of an event are indented, so a line that starts with a bracket starts an event. With ``CONNECT_PY_LOG_FORMAT=json``
each event is one JSON object instead. Secrets are taken out by `connect_py.log.redact` before anything is written, and warnings that
repeat are thinned out by `connect_py.log.repeats`.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from connect_py.log.redact import MIN_LENGTH, PROVIDED, Redactor, readable, redactor, scrub
from connect_py.log.repeats import RepeatFilter

#: ``text`` or ``json``; a task's process inherits it.
FORMAT_VARIABLE = "CONNECT_PY_LOG_FORMAT"

#: The connector and scope that the present work belongs to, such as ``inventory|worker``.
context: contextvars.ContextVar[str] = contextvars.ContextVar("connect_py_log_context", default="")

#: Secrets of the connectors that this process runs.
SECRETS = Redactor()

#: Takes out the secrets of the request that the present work belongs to.
_of_request: contextvars.ContextVar[Callable[[str], str]] = contextvars.ContextVar("connect_py_log_secrets", default=lambda text: text)

_LEVEL_NAMES = {"WARNING": "WARN", "CRITICAL": "FATAL", "Level 5": "TRACE", "Level 1": "TRACE"}

#: Libraries whose INFO is about themselves.
_QUIET = ("py4j", "asyncio", "urllib3", "uvicorn.access", "uvicorn.error", "aiokafka", "rest_api.middleware")

#: Loggers that speak of a task's offsets, in Connect a scope of its own.
_OF_OFFSETS = frozenset({"connect_py.task.offsets", "connect_py.task.sink_commit", "offsets.offset_store"})

_CONTEXT = re.compile(r"(?P<connector>.*?)\|(?P<scope>task-(?P<task>\d+)|worker|validate)(?P<offsets>\|offsets)?", re.DOTALL)


class LineFormatter(logging.Formatter):
    """Formats a record as above.

    Attributes:
        redact: takes out the secrets that are known so far.
    """

    def __init__(self, redact: Callable[[str], str] = lambda text: text, default_context: str = "") -> None:
        super().__init__()
        self.redact = redact
        self._context = default_context

    def format(self, record: logging.LogRecord) -> str:
        """Return one event as text."""
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        who = self.context_of(record)
        text = f"{f'[{who}] ' if who else ''}{self.clean(record.getMessage())} ({record.name}:{record.lineno})"
        if record.exc_info:
            text += "\n" + self.clean(self.formatException(record.exc_info))
        return f"[{clock},{int(record.msecs):03d}] {level_name(record)} " + text.rstrip().replace("\n", "\n    ")

    def clean(self, text: str) -> str:
        """Return a text without secrets."""
        return readable(scrub(SECRETS(PROVIDED(_of_request.get()(self.redact(text))))))

    def context_of(self, record: logging.LogRecord) -> str:
        """Connector and scope of an event."""
        who = context.get() or self._context
        return who + "|offsets" if "|task-" in who and record.name in _OF_OFFSETS else who


class JsonFormatter(LineFormatter):
    """Formats a record as one JSON object: timestamp (UTC), level, logger, line, thread, message, and where they apply connector, task,
    scope and exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one event as JSON."""
        event: dict[str, Any] = {
            "timestamp": _timestamp(record.created),
            "level": level_name(record),
            "logger": record.name,
            "line": record.lineno,
            "thread": record.threadName,
            "message": self.clean(record.getMessage()),
            **_context_fields(self.context_of(record)),
        }
        if record.exc_info:
            event["exception"] = self.clean(self.formatException(record.exc_info))
        return orjson.dumps(event).decode()


def configure(level: str | int = "INFO", *, default_context: str = "", environ: Mapping[str, str] = os.environ) -> LineFormatter:
    """Send the log to standard error in this module's form. Returns the formatter, whose `redact` can be set once secrets are known."""
    made = JsonFormatter if _is_json(environ) else LineFormatter
    formatter = made(default_context=default_context)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    handler.addFilter(RepeatFilter(handler.handle))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_level(root, level if isinstance(level, int) else level_number(level))
    for name in _QUIET:
        set_level(logging.getLogger(name), logging.WARNING)
    return formatter


def set_level(logger: logging.Logger, level: int) -> None:
    """Set a level that differs: a new one has every logger of the process forget what it knows, half a megabyte that a forked task shares
    with its server until then."""
    if logger.level != level:
        logger.setLevel(level)


def clean(text: str) -> str:
    """Return a text without the secrets that this process knows, for what leaves it on another way than the log."""
    handlers = logging.getLogger().handlers
    formatter = handlers[0].formatter if handlers else None
    return formatter.clean(text) if isinstance(formatter, LineFormatter) else scrub(PROVIDED(text))


@contextlib.contextmanager
def scope(connector: str, name: str) -> Iterator[None]:
    """What is logged inside concerns a connector: ``[inventory|validate]``."""
    token = context.set(f"{connector}|{name}")
    try:
        yield
    finally:
        context.reset(token)


@contextlib.contextmanager
def hiding(secrets: Iterable[str]) -> Iterator[None]:
    """What is logged inside, by this thread, has these secrets taken out as well."""
    outer, own = _of_request.get(), redactor(secret for secret in secrets if len(secret) >= MIN_LENGTH)
    token = _of_request.set(lambda text: outer(own(text)))
    try:
        yield
    finally:
        _of_request.reset(token)


def forwarder(context_name: str, environ: Mapping[str, str] = os.environ) -> Callable[[str], None]:
    """Return what passes on the lines of a task's process, secrets taken out before.

    The process's own events have their form already. What its children or its libraries print (a JVM's log) has none: among JSON it is
    made an event of the logger ``stderr``.

    Args:
        context_name: connector and scope, such as ``inventory|task-0``.
    """
    wraps = _is_json(environ)

    def forward(line: str) -> None:
        if wraps and not line.startswith('{"timestamp":'):
            fields = {"timestamp": _timestamp(time.time()), "level": "INFO", "logger": "stderr", "message": line}
            line = orjson.dumps(fields | _context_fields(context_name)).decode()
        print(line, file=sys.stderr, flush=True)

    return forward


def level_name(record: logging.LogRecord) -> str:
    """log4j's name of a record's level."""
    return _LEVEL_NAMES.get(record.levelname, record.levelname)


def level_number(level: str) -> int:
    """Return Connect's names of levels (TRACE, WARN, FATAL, OFF, ALL too) as Python's numbers; INFO for an unknown name."""
    names = {"TRACE": 5, "ALL": 1, "WARN": logging.WARNING, "FATAL": logging.CRITICAL, "OFF": logging.CRITICAL + 10}
    name = level.upper()
    return names.get(name, logging.getLevelNamesMapping().get(name, logging.INFO))


def _is_json(environ: Mapping[str, str]) -> bool:
    return environ.get(FORMAT_VARIABLE, "text").strip().lower() == "json"


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _context_fields(who: str) -> dict[str, Any]:
    found = _CONTEXT.fullmatch(who)
    if found is None:
        return {"connector": who} if who else {}
    fields: dict[str, Any] = {"connector": found["connector"]}
    if found["task"]:
        fields["task"] = int(found["task"])
    fields["scope"] = "offsets" if found["offsets"] else found["scope"].partition("-")[0]
    return fields
