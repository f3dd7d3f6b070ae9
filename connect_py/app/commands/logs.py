"""`logs`: the last lines that a connector's tasks have logged, from the memory of the workers that run them.

It is what the page /ui shows, and no request of Kafka Connect's: a worker in Java has none, nor has one with `rest.ui=off`.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from connect_py.app.client.rest import ConnectClient
from connect_py.app.client.text import RED, YELLOW, coloured
from connect_py.app.commands.command import OK, Command
from connect_py.app.commands.connection import add_worker_options, client_of, say, say_json, say_note, shows_colour
from connect_py.errors import ConfigError, RetriableError
from connect_py.log.levels import LEVELS
from connect_py.log.redact import readable

#: Between two looks of `--follow`.
_FOLLOW_SECONDS = 1.0

#: The text form has the level after the time, the JSON form in a field.
_LEVEL = re.compile(r'\[[^\]]+\] ([A-Z]+) |.*?"level": ?"([A-Z]+)"')
_COLOURS = {"WARN": YELLOW, "ERROR": RED, "FATAL": RED}

Line = tuple[int, int, str]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the connector")
    parser.add_argument("-f", "--follow", action="store_true", help="show new lines as they come, until Ctrl-C")
    parser.add_argument("-n", "--count", type=int, metavar="N", help="only the last N lines of those that the worker still has (500)")
    parser.add_argument(
        "--level",
        choices=["debug", "info", "warn", "error"],
        metavar="LEVEL",
        help="only lines of this level (debug, info, warn, error) and worse, traces included",
    )
    parser.add_argument("--task", type=int, metavar="N", help="only lines of this task")
    add_worker_options(parser)


class Filter:
    """Chooses lines. The lines of a trace have the level of the line of their task that they follow."""

    def __init__(self, level: str | None, task: int | None) -> None:
        self._least, self._task = LEVELS[(level or "trace").upper()], task
        self._levels: dict[int, str] = {}

    def chosen(self, lines: Iterable[Line]) -> list[tuple[Line, str]]:
        """Return the chosen ones with their levels; further calls continue where the last one ended."""
        found = []
        for line in lines:
            _, task, text = line
            if match := _LEVEL.match(text):
                self._levels[task] = match[1] or match[2]
            level = self._levels.get(task, "INFO")
            if LEVELS.get(level, LEVELS["INFO"]) >= self._least and self._task in (None, task):
                found.append((line, level))
        return found


def _logs(chosen: argparse.Namespace, *, pause: Callable[[float], None] = time.sleep) -> int:
    if chosen.count is not None and chosen.count < 1:
        raise ConfigError("--count needs a number of 1 or more")
    client = client_of(chosen)
    status = client.status(chosen.name)
    wanted = Filter(chosen.level, chosen.task)
    lines, following = client.log_lines(chosen.name)
    shown = wanted.chosen(lines)
    _print(chosen, shown[-chosen.count :] if chosen.count else shown)
    if not lines and not chosen.follow:
        say_note(f"{client.url} has no lines of {chosen.name}. {_where(status)}")
    while chosen.follow:
        pause(_FOLLOW_SECONDS)
        following = _print_newer(chosen, client, wanted, following)
    return OK


def _print_newer(chosen: argparse.Namespace, client: ConnectClient, wanted: Filter, since: str) -> str:
    """Print what has come; returns what to ask for next. A worker that does not answer is asked again: numbers grow over its restarts."""
    try:
        lines, following = client.log_lines(chosen.name, since)
    except RetriableError as error:
        say_note(f"{error}; asking again")
        return since
    _print(chosen, wanted.chosen(lines))
    return following


def _where(status: Mapping[str, Any]) -> str:
    workers = sorted({str(task["worker_id"]) for task in status["tasks"] if task.get("worker_id")})
    if not workers:
        return "It has no tasks, so nothing of it runs."
    return (
        f"A worker has the lines of its tasks since its start, and these run on {', '.join(workers)}. If that worker cannot be reached by "
        "this one, give its address with --worker."
    )


def _print(chosen: argparse.Namespace, lines: Sequence[tuple[Line, str]]) -> None:
    if chosen.json:
        for (number, task, text), level in lines:
            say_json({"number": number, "task": task, "level": level, "line": text})
        return
    colour = shows_colour()
    for (_, _, text), level in lines:
        line = readable(text.expandtabs(4))
        say([coloured(line, _COLOURS[level], colour) if level in _COLOURS else line])


COMMANDS = (
    Command(
        "logs",
        "Look",
        "the last lines that a connector's tasks have logged",
        _options,
        _logs,
        about=(
            "Each worker keeps 500 lines of each connector, for the tasks that it runs, since its start; you may ask any worker of the "
            "group. The lines have no secrets. It needs this project's worker."
        ),
        examples=("logs inventory", "logs inventory --level warn -n 20", "logs inventory --follow --worker http://worker-2:8083"),
    ),
)
