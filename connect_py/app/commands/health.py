"""`connect-py health`: ask the worker of this machine whether it is healthy, for a container's or a supervisor's check.

It reads the worker's own properties, from the same file or the same environment, so the check follows a change of port, TLS or login. It
asks the first of `health.listeners`, else the first of `listeners`. No password is ever sent: a check that a password keeps out says which
property opens a door for it.

The server's certificate is not verified. The check speaks to this machine only, sends nothing that is secret, and a certificate that has
expired is no reason to kill a worker.
"""

from __future__ import annotations

import argparse
import http.client
import json
import ssl
import sys
from collections.abc import Mapping

from connect_py.app.commands.command import Command
from connect_py.errors import ConfigError

#: Beyond this a probe has failed; containers' own time-outs are longer.
TIMEOUT_SECONDS = 5.0

_ANY = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # what a listener on every interface is called by


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("properties", nargs="?", metavar="worker.properties", help="the worker's file; else its environment variables")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_SECONDS, metavar="SECONDS", help="(default: %(default)g)")


def health(chosen: argparse.Namespace) -> int:
    """Ask, and return 0 when the worker is ready; 1 when it starts, is stuck or does not answer."""
    from connect_py.app.commands.worker import read_properties

    problem = find_problem(read_properties(chosen.properties), chosen.timeout)
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


def find_problem(properties: Mapping[str, str], timeout: float = TIMEOUT_SECONDS) -> str | None:
    """Return why the worker with these properties is not healthy; None when it is.

    Args:
        timeout: seconds for the whole answer.

    Raises:
        ConfigError: the address to ask is no listener's.
    """
    from rest_api.listeners import listed, split_listener

    own = listed(properties.get("health.listeners"))
    scheme, host, port = split_listener((own or listed(properties.get("listeners")) or ("http://:8083",))[0])
    host = _ANY.get(host, host)
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/health"
    connection = (
        http.client.HTTPSConnection(host, port, timeout=timeout, context=_tls(properties))
        if scheme == "https"
        else http.client.HTTPConnection(host, port, timeout=timeout)
    )
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        status, body = answer.status, answer.read(2000)
    except (OSError, http.client.HTTPException) as error:
        return f"No answer from {url}: {error or type(error).__name__}"
    finally:
        connection.close()
    if status == 200:
        return None
    if status in (401, 403):
        return (
            f"{url} asks for a login, and a health check has none. Set the worker's property health.listeners, "
            "for example to http://127.0.0.1:8085: these listeners answer /health alone, without a password."
        )
    return f"{url} answered {status}: {_message(body)}"


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context that workers use for each other, with their own certificate where listeners ask for one; see the module's text
    for what it does not verify."""
    from rest_api.listeners import client_context

    context = None
    if properties.get("ssl.client.auth", properties.get("listeners.https.ssl.client.auth", "none")).strip().lower() == "required":
        try:
            context = client_context({"listeners": "https://", **properties})
        except ConfigError as error:
            raise ConfigError(
                f"The worker's listeners ask for a client certificate, and the worker's own cannot be read: {error}"
            ) from error
    context = context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


COMMANDS = (
    Command(
        "health",
        "Run a worker",
        "ask the worker of this machine whether it is healthy, for a container's check",
        _options,
        health,
        about="It reads the worker's own properties, so it follows its ports and TLS. No password is sent.",
        examples=("health", "health worker.properties --timeout 2"),
        exits={0: "the worker is ready", 1: "it starts, is stuck, does not answer, or the command line is wrong", 2: "", 3: ""},
    ),
)
