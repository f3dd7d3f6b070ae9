"""`connect-py doctor`: everything that a connector's configuration and its servers lack, at once, each with what to run and who can.

Exit codes: 0 nothing was found, 1 something was found, or bad usage, 3 not everything could be looked at.

The answer has one form, that of ``POST /connector-plugins/{class}/doctor``: with ``--worker`` it is the worker's, else it is made here.
"""

from __future__ import annotations

import argparse
import json
import textwrap
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from connect_py.app.commands.common import ask, post, read_connector_file, run
from connect_py.errors import BadRequestError, ConfigError

#: Whose findings come first, and the heading of each.
_PEOPLE = {"dba": "For the database administrator", "kafka-admin": "For the Kafka administrator", "you": "For you"}
_WIDTH = 110
#: How long a worker's answer may take (`connect_py.herder.doctor.SECONDS`), and a bit.
_ANSWER_SECONDS = 40


def doctor(arguments: Sequence[str], _usage: str) -> int:
    """Look, and print what was found. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="connect-py doctor",
        description="Show everything that a connector's servers lack, at once: what, why, the statement to run, and who can. "
        "Nothing is changed on any server.",
        epilog="Exit code: 0 nothing found, 1 something found (or bad usage), 3 not everything could be looked at.",
    )
    parser.add_argument("connector", nargs="?", help="a .json or .properties file, or with --worker the name of a connector")
    parser.add_argument("--worker", metavar="URL", help="have this worker look, from its machine and with its config providers")
    parser.add_argument("--worker-properties", metavar="FILE", help="a worker's properties: its Kafka is looked at, too")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--sql", action="store_true", help="print one script for the database administrator")
    form.add_argument("--json", action="store_true", help="print one JSON object")
    code = run(parser, arguments, _run)
    return 3 if code == 2 else code


def _run(chosen: argparse.Namespace) -> int:
    if chosen.worker and chosen.worker_properties:
        raise ConfigError("--worker has its own properties; leave --worker-properties out")
    if not chosen.connector and not chosen.worker_properties:
        raise ConfigError("name a connector's file, a connector of --worker URL, or --worker-properties FILE")
    answer = _asked(chosen.worker, chosen.connector) if chosen.worker else _looked(chosen.connector, chosen.worker_properties)
    if chosen.json:
        print(json.dumps(answer, ensure_ascii=False))
    else:
        print("\n".join(script(answer) if chosen.sql else report(answer)))
    return int(answer["code"])


def _asked(worker: str, connector: str | None) -> Mapping[str, Any]:
    """Return a worker's answer."""
    if not connector:
        raise ConfigError("--worker needs the name of a connector, or its file")
    if Path(connector).is_file():
        config: Mapping[str, Any] = read_connector_file(connector).config
    else:
        config = ask(worker, connector, "config", called="the configuration")
    java_class = str(config.get("connector.class") or "")
    if not java_class:
        raise ConfigError(f"{connector} has no connector.class")
    return post(worker, f"connector-plugins/{urllib.parse.quote(java_class, safe='')}/doctor", config, seconds=_ANSWER_SECONDS)


def _looked(connector: str | None, properties: str | None) -> Mapping[str, Any]:
    """Return what this process finds."""
    from connect_py.api.config import ConfigType, parse_value
    from connect_py.api.doctor import merged
    from connect_py.app.commands.worker import plugins_of, read_properties, resolved_properties
    from connect_py.config.worker import DISTRIBUTED, STANDALONE
    from connect_py.herder.doctor import diagnose, diagnose_worker
    from connect_py.providers.resolver import Resolver
    from rest_api.models import diagnosis

    worker: Mapping[str, str] = {}
    if properties:
        worker = read_properties(properties)
        worker = resolved_properties(worker, DISTRIBUTED if "group.id" in worker else STANDALONE)
    plugins = plugins_of(tuple(parse_value("plugin.path", worker.get("plugin.path"), ConfigType.LIST) or ()))
    found = [diagnose_worker(worker, whole=connector is None)] if properties else []
    if connector is not None:
        config: dict[str, str | None] = dict(read_connector_file(connector).config)
        try:
            found.append(diagnose(plugins, worker if properties else None, config, Resolver.from_worker(worker, plugins.load)))
        except BadRequestError as error:
            raise ConfigError(str(error)) from error
    return diagnosis(merged(found))


def report(answer: Mapping[str, Any]) -> Iterator[str]:
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


def script(answer: Mapping[str, Any]) -> Iterator[str]:
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
