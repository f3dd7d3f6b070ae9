"""`connect-py doctor`: everything that a connector's configuration and its servers lack, at once, each with what to run and who can.

Exit codes: 0 nothing was found, 1 something was found, or bad usage, 3 not everything could be looked at.

The answer has one form, that of ``POST /connector-plugins/{class}/doctor``: with ``--worker`` it is the worker's, else it is made here.
Several connectors are looked at at the same time, and have one answer.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from connect_py.api.doctor import exit_code
from connect_py.app.client.files import read_connector_file
from connect_py.app.client.rest import ConnectClient
from connect_py.app.commands.command import WRONG, Command
from connect_py.app.commands.connection import add_worker_options, client_of
from connect_py.errors import BadRequestError, ConfigError, ConnectError, NotFoundError, RestError

#: Whose findings come first, and the heading of each.
_PEOPLE = {"dba": "For the database administrator", "kafka-admin": "For the Kafka administrator", "you": "For you"}
_WIDTH = 110
#: Connectors that are looked at at the same time.
_AT_ONCE = 8
#: Beginnings of the names of checks that are of no single connector.
_SHARED = ("kafka.", "worker.")

#: As `rest_api.models.Diagnosis`.
Answer = Mapping[str, Any]


def _options(parser: argparse.ArgumentParser) -> None:
    about = "a connector's .json or .properties file, or its name at the worker of --worker; several for one answer"
    parser.add_argument("connectors", nargs="*", metavar="connector", help=about)
    parser.add_argument("--worker-properties", metavar="FILE", help="a worker's properties: its Kafka is looked at, too")
    add_worker_options(parser, has_json=False)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--sql", action="store_true", help="print one script for the database administrator")
    form.add_argument("--json", action="store_true", help="print one JSON object")


def doctor(chosen: argparse.Namespace) -> int:
    """Look, and print what was found. Returns the exit code."""
    try:
        return _run(chosen)
    except ConfigError:
        raise
    except ConnectError as error:
        print(f"connect-py doctor: {error}", file=sys.stderr)
        return WRONG


def _run(chosen: argparse.Namespace) -> int:
    asks = bool(chosen.worker or chosen.context)
    if asks and chosen.worker_properties:
        raise ConfigError("--worker has its own properties; leave --worker-properties out")
    if not chosen.connectors and not chosen.worker_properties:
        raise ConfigError("name a connector's file, a connector of --worker URL, or --worker-properties FILE")
    if asks and not chosen.connectors:
        raise ConfigError("name a connector of the worker, or its file")
    answer = _asked(client_of(chosen), chosen.connectors) if asks else _looked(chosen.connectors, chosen.worker_properties)
    if chosen.json:
        print(json.dumps(answer, ensure_ascii=False))
    else:
        print("\n".join(script(answer) if chosen.sql else report(answer)))
    return int(answer["code"])


def _asked(client: ConnectClient, connectors: Sequence[str]) -> Answer:
    """Return a worker's answer."""

    def ask(connector: str) -> tuple[str, Answer]:
        config = read_connector_file(connector).config if Path(connector).is_file() else client.config(connector)
        java_class = str(config.get("connector.class") or "")
        if not java_class:
            raise ConfigError(f"{connector} has no connector.class")
        try:
            return str(config.get("name") or connector), client.doctor(java_class, config)
        except NotFoundError:
            raise
        except RestError as error:
            raise ConfigError(f"The worker refuses the request: {error}") from error

    return joined(_at_once(ask, connectors))


def _looked(connectors: Sequence[str], properties: str | None) -> Answer:
    """Return what this process finds."""
    from connect_py.api.config import ConfigType, parse_value
    from connect_py.app.commands.worker import plugins_of, read_properties, resolved_properties
    from connect_py.config.worker import DISTRIBUTED, STANDALONE
    from connect_py.herder.doctor.diagnose import diagnose, diagnose_worker
    from connect_py.providers.resolver import Resolver
    from rest_api.models import diagnosis

    worker: Mapping[str, str] = {}
    if properties:
        worker = read_properties(properties)
        worker = resolved_properties(worker, DISTRIBUTED if "group.id" in worker else STANDALONE)
    plugins = plugins_of(tuple(parse_value("plugin.path", worker.get("plugin.path"), ConfigType.LIST) or ()))
    variables = Resolver.from_worker(worker, plugins.load)

    def look(connector: str) -> tuple[str, Answer]:
        wanted = read_connector_file(connector)
        try:
            return wanted.name, diagnosis(diagnose(plugins, worker if properties else None, dict(wanted.config), variables))
        except BadRequestError as error:
            raise ConfigError(str(error)) from error

    own = [("", diagnosis(diagnose_worker(worker, whole=not connectors)))] if properties else []
    return joined([*own, *_at_once(look, connectors)])


def _at_once(look: Callable[[str], tuple[str, Answer]], connectors: Sequence[str]) -> list[tuple[str, Answer]]:
    if len(connectors) < 2:
        return [look(connector) for connector in connectors]
    with ThreadPoolExecutor(_AT_ONCE, "doctor") as pool:
        return list(pool.map(look, connectors))


def joined(answers: Sequence[tuple[str, Answer]]) -> Answer:
    """Return the answers for several connectors, by their names, as one.

    What is found of the worker and of Kafka concerns all of them and is there once. Before every other finding stands whose it is.
    """
    is_alone = sum(bool(name) for name, _ in answers) < 2
    findings: list[Mapping[str, Any]] = []
    looked_at: dict[str, None] = {}
    unseen: dict[str, None] = {}
    for name, answer in answers:
        for finding in answer["findings"]:
            is_shared = is_alone or finding["check"].startswith(_SHARED)
            told = finding if is_shared else {**finding, "what": f"{name}: {finding['what']}"}
            if told not in findings:
                findings.append(told)
        looked_at |= dict.fromkeys(answer["looked_at"])
        unseen |= dict.fromkeys(answer["unseen"])
    code = exit_code(found=bool(findings), unseen=bool(unseen))
    return {"code": code, "findings": findings, "looked_at": list(looked_at), "unseen": list(unseen)}


def report(answer: Answer) -> Iterator[str]:
    """Yield the lines of an answer for people."""
    findings = answer["findings"]
    for text in answer["looked_at"]:
        yield f"looked at: {text}"
    for text in answer["unseen"]:
        yield f"not looked at: {text}"
    if not findings:
        yield "Nothing is wrong." if not answer["unseen"] else "Nothing else was found."
    for who, heading in _PEOPLE.items():
        theirs = [finding for finding in findings if finding["who"] == who]
        if theirs:
            yield ""
            yield f"{heading} ({len(theirs)})"
        for finding in theirs:
            yield ""
            yield from _wrapped("✗ " if finding["severity"] == "problem" else "! ", finding["what"])
            yield from _wrapped("  why: ", finding["why"])
            if finding["statements"]:
                yield f"  run{' as ' + finding['role'] if finding['role'] else ''}:"
                yield from (f"    {statement}" for statement in finding["statements"])
            if finding["advice"]:
                yield from _wrapped("  then: " if finding["statements"] else "  do: ", finding["advice"])
    if findings:
        problems = sum(finding["severity"] == "problem" for finding in findings)
        yield ""
        yield f"{len(findings)} findings: {problems} problems (✗), {len(findings) - problems} risks (!). Nothing was changed."


def _wrapped(mark: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark), break_long_words=False, break_on_hyphens=False
    )


def script(answer: Answer) -> Iterator[str]:
    """Yield one script for the database administrator: the statements, and as comments what each is for."""
    theirs = [finding for finding in answer["findings"] if finding["who"] == "dba"]
    yield f"-- connect-py doctor: {len(theirs)} findings for the database administrator"
    for text in answer["looked_at"]:
        yield from _comment(text)
    for text in answer["unseen"]:
        yield from _comment(f"not looked at: {text}")
    for finding in theirs:
        yield ""
        yield from _comment(f"{finding['what']} {finding['why']}")
        if finding["role"]:
            yield from _comment(f"Run as {finding['role']}.")
        yield from finding["statements"]
        if finding["advice"]:
            yield from _comment(finding["advice"])


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="-- ", subsequent_indent="-- ", break_long_words=False, break_on_hyphens=False)


COMMANDS = (
    Command(
        "doctor",
        "Look",
        "show everything that a connector's servers lack, each with the statement to run",
        _options,
        doctor,
        about="It says what is wrong, why it matters, what to run, and who can run it. Nothing is changed on any server. "
        "With --worker or --context the worker looks, from its machine and with its config providers.",
        examples=(
            "doctor inventory.json",
            "doctor inventory --worker http://localhost:8083",
            "doctor inventory.json --sql > for-the-dba.sql",
            "doctor connectors/*.json --worker-properties worker.properties",
        ),
        exits={
            0: "nothing was found",
            1: "something was found, or the command line is wrong",
            2: "",
            3: "not everything could be looked at",
        },
    ),
)
