"""Which worker and which brokers a command talks to: its options, and the clients that they make. Also how it asks and waits."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from connect_py.app.client.contexts import WORKER_VARIABLE, choose, contexts_path, read_contexts
from connect_py.app.client.rest import ConnectClient, Target, password_from_file
from connect_py.app.client.text import has_colour
from connect_py.app.client.watch import Watch
from connect_py.data.java_properties import parse_properties
from connect_py.errors import ConfigError, NotFoundError, RetriableError
from connect_py.log.redact import HIDDEN

_LOOPBACK = ("localhost", "127.0.0.1", "::1")

#: Between two looks at a status that is waited for: a request costs a worker a millisecond.
_LOOK_SECONDS = 0.3


def add_worker_options(parser: argparse.ArgumentParser, *, has_json: bool = True) -> None:
    """Add the options that say which worker is meant, and --json."""
    group = parser.add_argument_group("worker")
    group.add_argument(
        "--worker", metavar="URL", help=f"address of the REST API; else ${WORKER_VARIABLE}, the current context, localhost:8083"
    )
    group.add_argument("--context", metavar="NAME", help="a worker that you have named with `connect-py context set`")
    group.add_argument("--user", metavar="NAME", help="user for basic authentication")
    group.add_argument("--password-file", metavar="FILE", help="the password is its first line; without it a terminal asks")
    group.add_argument("--ca-file", metavar="FILE", help="PEM of the authorities to trust for https")
    if has_json:
        parser.add_argument("--json", action="store_true", help="print JSON")


def settings_of(chosen: argparse.Namespace) -> dict[str, str]:
    """Return the settings of the worker that is meant; options replace those of a context. Raises ConfigError."""
    settings = choose(read_contexts(contexts_path()), chosen.worker, chosen.context)
    given = {"user": chosen.user, "password-file": chosen.password_file, "ca-file": chosen.ca_file}
    if chosen.user and not chosen.password_file:
        settings.pop("password-file", None)  # it is another user's
    return settings | {name: value for name, value in given.items() if value}


def client_of(chosen: argparse.Namespace) -> ConnectClient:
    """Return a client for the worker that is meant. Raises ConfigError."""
    settings = settings_of(chosen)
    user, url = settings.get("user", ""), settings["worker"]
    Target(url)  # refuses what is no address, before anybody is asked for a password
    password = ""
    if user:
        password = password_from_file(settings["password-file"]) if settings.get("password-file") else _asked(user, url)
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            say_note(f"the password travels to {parts.hostname} unencrypted: use https")
    files = {name: settings.get(f"{name.replace('_', '-')}", "") for name in ("ca_file", "cert_file", "key_file")}
    return ConnectClient(Target(url, user, password, **files))


def _asked(user: str, url: str) -> str:
    if not sys.stdin.isatty():
        raise ConfigError(f"There is no password for the user {user}: give --password-file")
    return getpass.getpass(f"Password of {user} at {url}: ")


def add_broker_options(parser: argparse.ArgumentParser, worker_properties: str) -> None:
    """Add --bootstrap-servers and --worker-properties, whose help is given."""
    parser.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT", help="Kafka's brokers; else those of --worker-properties or of the context"
    )
    parser.add_argument("--worker-properties", metavar="FILE", help=worker_properties)


def broker_properties(chosen: argparse.Namespace, client: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the worker's properties, empty without a file, and those of a Kafka client with this name.

    Raises:
        ConfigError: nobody says where Kafka is, or the file cannot be read.
    """
    from connect_py.kafka.client import internal_properties

    settings = settings_of(chosen)
    worker = _worker_properties(chosen.worker_properties or settings.get("worker-properties", ""))
    brokers = chosen.bootstrap_servers or settings.get("bootstrap-servers") or worker.get("bootstrap.servers")
    if not brokers:
        raise ConfigError(
            "Kafka's address is needed, which no worker tells: give --bootstrap-servers HOST:PORT, --worker-properties FILE, or put one of "
            "the two into a context"
        )
    properties = internal_properties(worker, client) if worker else {"client.id": f"connect-py-{client}"}
    return worker, {**properties, "bootstrap.servers": brokers}


def _worker_properties(path: str) -> dict[str, str]:
    if not path:
        return {}
    try:
        return parse_properties(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The worker's properties cannot be read from {path}: {error}") from error


def require_values(name: str, config: Mapping[str, str]) -> None:
    """Refuse a configuration with values that only its worker knows. Raises ConfigError."""
    # a reference is the worker's to resolve: it has the providers, and their files are on its machine
    if references := sorted(key for key, value in config.items() if "${" in value):
        raise ConfigError(f"{name}: {', '.join(references)} refer to a config provider; put their values into a file of your own.")
    if hidden := sorted(key for key, value in config.items() if value == HIDDEN):
        raise ConfigError(f"{name}: the worker does not show {', '.join(hidden)} (rest.redact.secrets); use a file of your own.")


def say_note(text: str) -> None:
    """Print an aside, which is no part of the output."""
    print(f"connect-py: {text}", file=sys.stderr)


def say(lines: Iterable[str]) -> None:
    """Print lines."""
    for line in lines:
        print(line)
    sys.stdout.flush()


def say_json(value: object) -> None:
    """Print an object on one or several lines, as a terminal or a program reads it."""
    print(json.dumps(value, indent=2 if sys.stdout.isatty() else None, ensure_ascii=False), flush=True)


def shows_colour() -> bool:
    """Return whether standard output shows colours."""
    return has_colour(sys.stdout)


def width() -> int:
    """Return the characters of a terminal's line; 0 where the output is no terminal."""
    if not sys.stdout.isatty():
        return 0
    try:
        return os.get_terminal_size().columns
    except OSError:
        return 0


def confirm(question: str, *, yes: bool) -> bool:
    """Ask for a yes.

    Args:
        yes: --yes was given; nothing is asked.

    Raises:
        ConfigError: there is nobody to ask.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError(f"{question} There is no terminal to ask at: give --yes. Nothing was changed.")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def wait_settled(
    client: ConnectClient,
    watches: Mapping[str, Watch],
    seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, str]:
    """Wait until connectors have settled; return the failures: connector → what failed, or what it still waits for. Ends with the first.

    A worker that does not answer meanwhile is asked again.
    """
    deadline = clock() + seconds
    left = dict(watches)
    last: dict[str, Any] = {}
    while left:
        for name, watch in list(left.items()):
            try:
                last[name] = client.status(name)
            except NotFoundError:
                last[name] = None  # a Java worker learns of a new connector a moment after it has accepted it
            except RetriableError:
                if clock() > deadline:
                    raise
                continue
            is_over, failure = watch.look(last[name], clock())
            if failure:
                return {name: failure}
            if is_over:
                del left[name]
        if left and clock() > deadline:
            return {name: f"after {seconds:g} s {_still(last.get(name), watch.state)}" for name, watch in left.items()}
        if left:
            pause(_LOOK_SECONDS)
    return {}


def _still(status: Mapping[str, Any] | None, wanted: str) -> str:
    if status is None:
        return "it has no status"
    states = [str(task["state"]) for task in status["tasks"]]
    return f"it is not {wanted}: the connector is {status['connector']['state']}, its tasks {', '.join(states) or 'not there'}"
