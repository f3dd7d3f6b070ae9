"""`apply`, `diff`, `edit` and `patch`: bring a worker's connectors to what files say, or one of them to what you type."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect_py.api.storage import TargetState
from connect_py.app.client.diff import STATE_NAMES, Action, Plan, config_changes, plan
from connect_py.app.client.files import read_paths
from connect_py.app.client.rest import ConnectClient
from connect_py.app.client.watch import Status, Watch, traces
from connect_py.app.commands.command import OK, UNREACHABLE, USAGE, WRONG, Command
from connect_py.app.commands.connection import add_worker_options, client_of, confirm, say, say_json, say_note, wait_settled
from connect_py.errors import ConfigError, ConnectError, RestError

#: Wanted state → the request that brings a connector there.
_VERBS = {TargetState.STARTED: "resume", TargetState.PAUSED: "pause", TargetState.STOPPED: "stop"}


def add_wait_options(parser: argparse.ArgumentParser) -> None:
    """Add --wait and --timeout."""
    parser.add_argument(
        "--wait", action="store_true", help="until every task runs, or the first one fails: its trace is shown, and the exit code is 3"
    )
    parser.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS", help="how long --wait waits (120)")


def _file_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--file", action="append", required=True, metavar="FILE|DIR", help="a file, a folder, or - for standard input; repeatable"
    )
    parser.add_argument("-R", "--recursive", action="store_true", help="folders within folders too")
    parser.add_argument(
        "--env", action="store_true", help="put environment variables in place of ${NAME}, capitals only; $${NAME} stays ${NAME}"
    )
    parser.add_argument("--prune", action="store_true", help="delete connectors that are in none of the files")


def _plans(chosen: argparse.Namespace, client: ConnectClient) -> list[Plan]:
    wanted = read_paths(chosen.file, recursive=chosen.recursive, environ=os.environ if chosen.env else None)
    for each in wanted:
        for note in each.notes:
            say_note(f"{each.source}: {note}")
    if not wanted:
        raise ConfigError("The files hold no connectors")
    return plan(wanted, client.connectors(), prune=chosen.prune)


# -- apply and diff ------------------------------------------------------------------------------------------------------------------


def _apply_options(parser: argparse.ArgumentParser) -> None:
    _file_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and do nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask before connectors are deleted")
    parser.add_argument(
        "--force", action="store_true", help="send configurations that look unchanged too, as when the worker hides a new password"
    )
    add_wait_options(parser)
    add_worker_options(parser)


def _apply(chosen: argparse.Namespace) -> int:
    client = client_of(chosen)
    plans = _plans(chosen, client)
    doomed = [each.name for each in plans if each.action is Action.DELETE]
    if chosen.dry_run:
        _show_plans(chosen, plans)
        return OK
    if doomed and not confirm(f"Delete {', '.join(doomed)}? Their offsets and topics stay.", yes=chosen.yes):
        say_note("Nothing was changed.")
        return USAGE
    before = {name: each["status"] for name, each in client.connectors().items()} if chosen.wait else {}
    refused: dict[str, str] = {}
    for each in plans:
        if not chosen.json:
            say(each.lines)
        try:
            _carry_out(client, each, force=chosen.force)
        except RestError as error:
            refused[each.name] = str(error)
            if not chosen.json:
                say([f"    refused: {line}" if number == 0 else f"    {line}" for number, line in enumerate(str(error).splitlines())])
    failures = _wait(chosen, client, [each for each in plans if each.name not in refused], before) if chosen.wait else {}
    if chosen.json:
        say_json([each.as_json() | {"refused": refused.get(each.name), "failure": failures.get(each.name)} for each in plans])
    else:
        say(line for name, failure in failures.items() for line in (f"! {name}: {failure}".splitlines()))
    return UNREACHABLE if refused else WRONG if failures else OK


def _carry_out(client: ConnectClient, each: Plan, *, force: bool) -> None:
    if each.action is Action.DELETE:
        client.delete(each.name)
        return
    assert each.wanted is not None
    if each.action is Action.CREATE:
        state = each.wanted.state
        if state is None or state is TargetState.STARTED:
            client.put_config(each.name, each.wanted.config)
        else:
            client.create(each.name, each.wanted.config, STATE_NAMES[state])
        return
    if each.changes_config or force:
        client.put_config(each.name, each.wanted.config)
    if each.new_state is not None:
        client.set_state(each.name, _VERBS[each.new_state])


def _wait(chosen: argparse.Namespace, client: ConnectClient, plans: Sequence[Plan], before: Mapping[str, Status]) -> dict[str, str]:
    watches = {}
    for each in plans:
        if each.wanted is None:
            continue
        status = before.get(each.name)
        if status is None or each.wanted.keeps_state:
            state = STATE_NAMES[each.wanted.state or TargetState.STARTED]
            watches[each.name] = Watch(traces(status) if status else {}, state)
        else:
            watches[each.name] = Watch.after_change(status)
    return wait_settled(client, watches, chosen.timeout)


def _diff_options(parser: argparse.ArgumentParser) -> None:
    _file_options(parser)
    add_worker_options(parser)


def _diff(chosen: argparse.Namespace) -> int:
    plans = _plans(chosen, client_of(chosen))
    _show_plans(chosen, plans)
    return WRONG if any(each.action is not Action.NONE for each in plans) else OK


def _show_plans(chosen: argparse.Namespace, plans: Sequence[Plan]) -> None:
    differing = [each for each in plans if each.action is not Action.NONE]
    if chosen.json:
        say_json([each.as_json() for each in differing])
        return
    for each in plans:
        if each in differing or each.hidden:
            say(each.lines)


# -- edit and patch ------------------------------------------------------------------------------------------------------------------


def _edit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the connector")
    add_wait_options(parser)
    add_worker_options(parser, has_json=False)


def _edit(chosen: argparse.Namespace) -> int:
    client = client_of(chosen)
    name = chosen.name
    original = client.config(name)
    descriptor, path = tempfile.mkstemp(prefix=f"connect-py-{_file_name(name)}-", suffix=".json")  # only its owner may read it
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(dict(sorted(original.items())), file, indent=2, ensure_ascii=False)
        file.write("\n")
    try:
        wanted = _edited(path, name)
        if wanted == original:
            Path(path).unlink()
            say([f"= {name}: unchanged"])
            return OK
        if client.config(name) != original:
            raise ConfigError(f"{name} was changed by somebody else while you edited it. Nothing was sent.")
        watches = {name: Watch.after_change(client.status(name))} if chosen.wait else {}
        client.put_config(name, wanted)
    except ConnectError as error:
        say_note(f"your text is still in {path}; it may hold secrets. Send it with: connect-py apply -f {path}")
        raise error
    Path(path).unlink()
    changes, _ = config_changes(original, wanted)
    say([f"~ {name}: change", *(f"    {change.line}" for change in changes)])
    return _waited(client, watches, chosen)


def _file_name(name: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in name)[:40]


def _edited(path: str, name: str) -> dict[str, str]:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(editor), path], check=False).returncode
    except OSError as error:
        raise ConfigError(f"The editor {editor} cannot be started: {error.strerror}. Set EDITOR. Nothing was sent.") from error
    if code != 0:
        raise ConfigError(f"The editor {editor} ended with exit code {code}. Nothing was sent.")
    (found,) = read_paths([path])
    if found.config["name"] not in (name, Path(path).stem):
        raise ConfigError(f"The name of a connector cannot be changed: {name} became {found.config['name']}. Nothing was sent.")
    return {**found.config, "name": name}


def _patch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the connector")
    parser.add_argument("changes", nargs="*", metavar="PROPERTY=VALUE", help="properties to set")
    parser.add_argument("--unset", action="append", default=[], metavar="PROPERTY", help="a property to remove; repeatable")
    add_wait_options(parser)
    add_worker_options(parser, has_json=False)


def _patch(chosen: argparse.Namespace) -> int:
    wanted: dict[str, str | None] = dict.fromkeys(chosen.unset)
    for change in chosen.changes:
        key, equals, value = change.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"'{change}' is no PROPERTY=VALUE")
        wanted[key.strip()] = value
    if not wanted:
        raise ConfigError("There is nothing to change: give PROPERTY=VALUE or --unset PROPERTY")
    client = client_of(chosen)
    name = chosen.name
    current = client.config(name)
    after = {key: value for key, value in (current | wanted).items() if value is not None}
    changes, _ = config_changes(current, after)
    watches = {name: Watch.after_change(client.status(name))} if chosen.wait else {}
    client.patch_config(name, wanted)
    say([f"~ {name}: change" if changes else f"= {name}: unchanged", *(f"    {change.line}" for change in changes)])
    return _waited(client, watches, chosen)


def _waited(client: ConnectClient, watches: Mapping[str, Watch], chosen: argparse.Namespace) -> int:
    """Wait, print the failures, and return the exit code."""
    failures = wait_settled(client, watches, chosen.timeout)
    say(line for name, failure in failures.items() for line in f"! {name}: {failure}".splitlines())
    return WRONG if failures else OK


_FORMS = (
    "A file is JSON as posted to /connectors, JSON, YAML or properties with the configuration alone, or YAML of several documents with any "
    "of these and Strimzi's KafkaConnector. A configuration without a name has the file's."
)

COMMANDS = (
    Command(
        "apply",
        "Change",
        "create and change connectors until they are as files say",
        _apply_options,
        _apply,
        about=f"{_FORMS} A configuration that is equal already is not sent, so you can repeat the command.",
        examples=(
            "apply -f connectors/",
            "apply -f inventory.json --wait",
            "apply -f connectors/ --prune --dry-run",
            "apply -f - < inventory.yaml",
        ),
        exits={
            2: "the worker does not answer, or refused a connector; the others were applied",
            3: "with --wait: a connector failed, or took too long",
        },
    ),
    Command(
        "diff",
        "Change",
        "show what `apply` would do; exit code 3 when there is a difference",
        _diff_options,
        _diff,
        about=f"{_FORMS} Values of secrets are shown as [hidden].",
        examples=("diff -f connectors/", "diff -f connectors/ --prune --json"),
        exits={0: "there is no difference", 3: "there is a difference"},
    ),
    Command(
        "edit",
        "Change",
        "change a connector's configuration in your editor",
        _edit_options,
        _edit,
        about="The editor is $VISUAL, $EDITOR or vi. The file is JSON, and only you may read it.",
        examples=("edit inventory --wait",),
    ),
    Command(
        "patch",
        "Change",
        "set or remove single properties of a connector",
        _patch_options,
        _patch,
        examples=("patch inventory tasks.max=2", "patch inventory --unset snapshot.mode --wait"),
    ),
)
