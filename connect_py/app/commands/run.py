"""`pause`, `resume`, `stop` and `restart`: what connectors do just now."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from connect_py.app.client.diff import select
from connect_py.app.client.watch import Watch, traces
from connect_py.app.commands.apply import add_wait_options
from connect_py.app.commands.command import OK, WRONG, Command
from connect_py.app.commands.connection import add_worker_options, client_of, say, say_json, wait_settled
from connect_py.errors import ConfigError

#: Verb → the state that tasks have then.
_STATES = {"pause": "PAUSED", "resume": "RUNNING", "stop": "STOPPED"}


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="connectors, or globs such as 'shop-*'")
    add_wait_options(parser)
    add_worker_options(parser)


def _restart_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--failed", action="store_true", help="restart what is FAILED, and nothing else")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--no-tasks", action="store_true", help="the connector alone, without its tasks")
    which.add_argument("--task", type=int, metavar="N", help="one task alone")
    _options(parser)


def _run(verb: str) -> Callable[[argparse.Namespace], int]:
    def run(chosen: argparse.Namespace) -> int:
        client = client_of(chosen)
        found = client.connectors()
        names = select(found, chosen.names)
        failed = {name: traces(found[name]["status"]) for name in names}
        if verb == "restart" and chosen.failed and chosen.task is None:
            names = [name for name in names if failed[name]]
        for name in names:
            if verb != "restart":
                client.set_state(name, verb)
            elif chosen.task is not None:
                if not chosen.failed or f"task {chosen.task}" in failed[name]:
                    client.restart_task(name, chosen.task)
            else:
                client.restart(name, tasks=not chosen.no_tasks, only_failed=chosen.failed)
        watches = {
            name: Watch.after_change(found[name]["status"]) if verb == "restart" else Watch(failed[name], _STATES[verb]) for name in names
        }
        failures = wait_settled(client, watches, chosen.timeout) if chosen.wait else {}
        if chosen.json:
            say_json([{"name": name, "action": verb, "failure": failures.get(name)} for name in names])
        else:
            say([f"{name}: {verb}" for name in names] or ["Nothing has failed."])
            say(line for name, failure in failures.items() for line in f"! {name}: {failure}".splitlines())
        return WRONG if failures else OK

    return run


def _require_task(chosen: argparse.Namespace) -> int:
    if chosen.task is not None and chosen.task < 0:
        raise ConfigError("--task needs the number of a task: 0 or more")
    return _run("restart")(chosen)


_WAIT = "The request is accepted at once, and carried out a moment later: `--wait` ends when it is."

COMMANDS = (
    Command(
        "pause",
        "Run",
        "stop reading and writing; tasks and connections stay",
        _options,
        _run("pause"),
        about=_WAIT,
        examples=("pause inventory", "pause 'shop-*' --wait"),
    ),
    Command(
        "resume", "Run", "let paused or stopped connectors run again", _options, _run("resume"), about=_WAIT, examples=("resume inventory",)
    ),
    Command(
        "stop",
        "Run",
        "end the tasks; the connector stays, and its offsets can be changed",
        _options,
        _run("stop"),
        about=f"{_WAIT} A stopped PostgreSQL source keeps its replication slot, which keeps WAL on the server's disk.",
        examples=("stop inventory --wait",),
    ),
    Command(
        "restart",
        "Run",
        "restart connectors and their tasks, or only what failed",
        _restart_options,
        _require_task,
        about=_WAIT,
        examples=("restart inventory", "restart --failed '*' --wait", "restart inventory --task 0"),
    ),
)
