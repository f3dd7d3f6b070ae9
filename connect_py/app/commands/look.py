"""`get`, `describe` and `status`: what a worker has and how it is, by Kafka Connect's own requests, so that a Java worker answers too."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from connect_py.app.client.diff import select
from connect_py.app.client.rest import ConnectClient
from connect_py.app.client.text import RED, coloured, first_line, shortened, table_lines
from connect_py.app.client.watch import snapshot_text, state_text, tasks_text, traces
from connect_py.app.commands.command import OK, WRONG, Command
from connect_py.app.commands.connection import add_worker_options, client_of, say, say_json, shows_colour, width
from connect_py.errors import ConfigError, RestError, RetriableError
from connect_py.log.redact import HIDDEN, is_secret_name, readable, scrub

_CONFIG_VALUE_WIDTH = 100


# -- get -----------------------------------------------------------------------------------------------------------------------------


def _get_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["connectors", "plugins", "offsets", "loggers"], help="what to list")
    parser.add_argument("name", nargs="?", metavar="NAME", help="with offsets: the connector")
    parser.add_argument("--names", action="store_true", help="with connectors: names alone, one a line")
    parser.add_argument("--all", action="store_true", help="with plugins: converters, transforms and predicates too")
    add_worker_options(parser)


def _get(chosen: argparse.Namespace) -> int:
    if chosen.what == "offsets" and not chosen.name:
        raise ConfigError("Name the connector: connect-py get offsets NAME")
    if chosen.what != "offsets" and chosen.name:
        raise ConfigError(f"get {chosen.what} takes no name; for one connector there is: connect-py describe {chosen.name}")
    client = client_of(chosen)
    if chosen.what == "plugins":
        found = client.plugins(connectors_only=not chosen.all)
        rows = [(each.get("class"), each.get("type"), each.get("version")) for each in found]
        _show(chosen, found, ("CLASS", "TYPE", "VERSION"), rows)
    elif chosen.what == "loggers":
        levels = client.loggers()
        _show(chosen, levels, ("LOGGER", "LEVEL"), [(name, level.get("level")) for name, level in sorted(levels.items())])
    elif chosen.what == "offsets":
        offsets = client.offsets(chosen.name)
        _show(chosen, offsets, ("PARTITION", "OFFSET"), [(_compact(each["partition"]), _compact(each["offset"])) for each in offsets])
    elif chosen.names:
        say(client.names())
    else:
        _get_connectors(chosen, client)
    return OK


def _get_connectors(chosen: argparse.Namespace, client: ConnectClient) -> None:
    rows, listed = [], []
    for name, each in client.connectors().items():
        config, status = each["info"]["config"], each["status"]
        row = (name, each["info"].get("type"), config.get("connector.class"), state_text(status), tasks_text(status))
        rows.append(row)
        listed.append(dict(zip(("name", "type", "class", "state", "tasks"), row, strict=True)))
    _show(chosen, listed, ("NAME", "TYPE", "CLASS", "STATE", "TASKS"), rows)


def _show(chosen: argparse.Namespace, found: object, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    if chosen.json:
        say_json(found)
    else:
        say(table_lines(columns, rows, colour=shows_colour()))


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# -- describe ------------------------------------------------------------------------------------------------------------------------


def _describe_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the connector")
    add_worker_options(parser)


def _describe(chosen: argparse.Namespace) -> int:
    client = client_of(chosen)
    name = chosen.name
    info, status = client.info(name), client.status(name)
    topics, offsets = _where_offered(lambda: client.topics(name)), _where_offered(lambda: client.offsets(name))
    if chosen.json:
        say_json({"info": _without_secrets(info), "status": status, "topics": topics, "offsets": offsets})
        return OK
    lines = [f"Name:     {name}", f"Type:     {info.get('type')}", f"State:    {state_text(status)}", "", "Configuration:"]
    lines += [f"  {key} = {shortened(_shown(key, value), _CONFIG_VALUE_WIDTH)}" for key, value in sorted(info["config"].items())]
    lines += ["", "Tasks:", *_task_lines(status, whole_trace=True)]
    if topics is not None:
        lines += ["", "Topics:", *(f"  {topic}" for topic in topics or ["none yet"])]
    if offsets is not None:
        shown = [f"  {_compact(each['partition'])} → {_compact(each['offset'])}" for each in offsets]
        lines += ["", "Offsets:", *(shown or ["  none yet"])]
    say(lines)
    return OK


def _where_offered(ask: Any) -> Any:
    """Return None where a worker is older than the request, or has it turned off (``topic.tracking.enable``)."""
    try:
        return ask()
    except RestError as error:
        if error.status not in (400, 403, 404, 405, 500):
            raise
        return None


def _shown(name: str, value: str | None) -> str:
    return "null" if value is None else HIDDEN if is_secret_name(name) and "${" not in value else scrub(value)


def _without_secrets(info: Mapping[str, Any]) -> dict[str, Any]:
    config = {name: value if value is None else _shown(name, value) for name, value in info["config"].items()}
    return {**{key: value for key, value in info.items() if key != "tasks"}, "config": config}


def _task_lines(status: Mapping[str, Any], *, whole_trace: bool) -> list[str]:
    """Return a line for the connector and each task, with what failed below it."""
    failures, colour = traces(status), shows_colour()
    lines = []
    for where, part in (("connector", status["connector"]), *((f"task {task['id']}", task) for task in status["tasks"])):
        more = snapshot_text(part)
        restarts = part.get("restarts")
        if isinstance(restarts, dict) and restarts.get("count"):
            more += f"{', ' if more else ''}restarted {restarts['count']} times"
        lines.append(f"  {where:<10} {part['state']:<10} {part.get('worker_id', '')}  {more}".rstrip())
        if where in failures:
            text = failures[where].rstrip().splitlines() if whole_trace else [shortened(first_line(failures[where]), max(0, width() - 6))]
            lines += [coloured(f"      {readable(line)}", RED, colour) for line in text]
    return lines


# -- status --------------------------------------------------------------------------------------------------------------------------


def _status_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="connectors, or globs such as 'shop-*'; without any, all")
    parser.add_argument("--watch", nargs="?", type=float, const=2.0, metavar="SECONDS", help="show it again every 2 s, until Ctrl-C")
    parser.add_argument("--trace", action="store_true", help="whole traces, not their first lines")
    add_worker_options(parser)


def _status(chosen: argparse.Namespace) -> int:
    if chosen.watch is not None and chosen.watch <= 0:
        raise ConfigError("--watch needs a number of seconds above 0")
    client = client_of(chosen)
    if chosen.watch is None:
        return _show_status(chosen, client)
    code = OK
    try:
        while True:
            if sys.stdout.isatty() and not chosen.json:
                print("\033[H\033[2J", end="")
            try:
                code = _show_status(chosen, client)
            except RetriableError as error:
                print(f"{time.strftime('%H:%M:%S')} {error}", flush=True)
            time.sleep(chosen.watch)
    except KeyboardInterrupt:
        return code


def _show_status(chosen: argparse.Namespace, client: ConnectClient) -> int:
    """Print once; returns `WRONG` when something has failed."""
    found = client.connectors()
    names = select(found, chosen.names) if chosen.names else list(found)
    statuses = {name: found[name]["status"] for name in names}
    failed = [name for name, status in statuses.items() if traces(status)]
    if chosen.json:
        say_json([statuses[name] for name in names])
        return WRONG if failed else OK
    rows = []
    for name, status in statuses.items():
        workers = {str(part.get("worker_id")) for part in (status["connector"], *status["tasks"])}
        snapshot = next(filter(None, map(snapshot_text, status["tasks"])), "")
        kind = found[name]["info"].get("type")
        rows.append((name, kind, state_text(status), tasks_text(status), ", ".join(sorted(workers)), snapshot))
    say(table_lines(("NAME", "TYPE", "STATE", "TASKS", "WORKER", ""), rows, colour=shows_colour()))
    lone = len(names) == 1 and bool(chosen.names)
    for name in names if lone else failed:
        say(["", f"{name}:", *_task_lines(statuses[name], whole_trace=chosen.trace)])
    if not lone:
        say(["", f"{len(names)} connector{'' if len(names) == 1 else 's'}, {len(failed)} failed"])
    return WRONG if failed else OK


# -- the commands --------------------------------------------------------------------------------------------------------------------

COMMANDS = (
    Command(
        "get",
        "Look",
        "list connectors, plugins, offsets or log levels",
        _get_options,
        _get,
        examples=("get connectors", "get plugins --all", "get offsets inventory --json", "get loggers"),
    ),
    Command(
        "describe",
        "Look",
        "everything about one connector: configuration, tasks with traces, topics, offsets",
        _describe_options,
        _describe,
        about="Values of secrets are shown as [hidden].",
        examples=("describe inventory",),
    ),
    Command(
        "status",
        "Look",
        "how connectors and tasks are; exit code 3 when something has failed",
        _status_options,
        _status,
        about="Of a connector that you name alone, each task is shown. Of several, only those that failed.",
        examples=("status", "status inventory", "status 'shop-*' --watch", "status --json"),
        exits={3: "a connector or task is FAILED"},
    ),
)
