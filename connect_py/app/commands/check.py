"""`check`: read connector and worker files as a worker would, and say what it would refuse, ignore or not know. No server is asked.

Meant for the files of a Java worker before a migration, and for a pipeline that checks what it will apply.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from connect_py.api.permissions import FILE_PATHS, permit
from connect_py.app.client.files import SUFFIXES, ConnectorFile, read_paths
from connect_py.app.client.text import GREEN, RED, YELLOW, coloured
from connect_py.app.commands.command import OK, WRONG, Command
from connect_py.app.commands.connection import say, say_json, shows_colour
from connect_py.data.java_properties import parse_properties
from connect_py.errors import BadRequestError, ConfigError, ConnectError
from connect_py.log.redact import readable

if TYPE_CHECKING:
    from connect_py.plugins.registry import Plugins

#: Properties that a worker's file has and no connector.
_OF_WORKERS = ("bootstrap.servers", "group.id", "offset.storage.topic", "offset.storage.file.filename", "config.storage.topic")

#: How alike the simple names of two classes must be to be taken for one another: S3SinkConnector is not JdbcSinkConnector (0.81).
_ALIKE = 0.9

#: What the registry says of a class that is not there.
_NO_CLASS = re.compile(r"Class (?P<name>[\w.$]+) could not be found|which name matches (?P<alias>[\w.$]+),")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: ``refused`` (the worker does not take the file), ``unknown`` or ``ignored`` (it does, and nothing reads the property).
        property: empty where it is not one property's.
    """

    file: str
    kind: str
    property: str
    text: str

    def as_json(self) -> dict[str, str]:
        """Return it for --json."""
        return {"file": self.file, "kind": self.kind, "property": self.property, "text": self.text}


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="connector or worker files, or folders of connector files")
    parser.add_argument("--worker-properties", metavar="FILE", help="the worker's file: its converters and its policy for overrides apply")
    parser.add_argument("--env", action="store_true", help="put environment variables in place of ${NAME}, capitals only")
    parser.add_argument("--strict", action="store_true", help="exit code 3 for unknown and ignored properties too")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _check(chosen: argparse.Namespace) -> int:
    from connect_py.plugins.registry import Plugins

    worker = _properties(chosen.worker_properties) if chosen.worker_properties else {}
    permit(worker or {FILE_PATHS: "/"})  # which files a connector may name is the worker's to say, and without its file nobody knows
    plugins = Plugins.discover()
    findings: list[Finding] = []
    looked_at: list[str] = []
    for path in chosen.files:
        if (properties := _worker_file(path)) is not None:
            looked_at.append(f"{path} (worker)")
            findings += worker_findings(path, properties, plugins)
            continue
        for each in read_paths([path], environ=os.environ if chosen.env else None):
            looked_at.append(f"{each.source} ({each.name})")
            findings += connector_findings(each, worker, plugins)
    if chosen.json:
        say_json([finding.as_json() for finding in findings])
    else:
        _show(looked_at, findings)
    counted = findings if chosen.strict else [finding for finding in findings if finding.kind == "refused"]
    return WRONG if counted else OK


def _show(looked_at: list[str], findings: list[Finding]) -> None:
    colour = shows_colour()
    marks = {"refused": (RED, "✗"), "unknown": (YELLOW, "?"), "ignored": (YELLOW, "·")}
    for finding in findings:
        code, mark = marks[finding.kind]
        say([f"{coloured(mark, code, colour)} {finding.file}: {finding.kind}: {readable(finding.text)}"])
    counts = {kind: sum(finding.kind == kind for finding in findings) for kind in marks}
    rest = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    say(
        [
            f"{coloured('✓', GREEN, colour)} {', '.join(looked_at)}: nothing is wrong"
            if not findings
            else f"{len(looked_at)} looked at: {rest}"
        ]
    )


def _properties(path: str) -> dict[str, str]:
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _worker_file(path: str) -> dict[str, str] | None:
    """Return the properties of a worker's file; None for anything else."""
    if (Path(path).suffix in SUFFIXES and Path(path).suffix != ".properties") or not Path(path).is_file():
        return None
    found = _properties(path)
    return found if "connector.class" not in found and any(name in found for name in _OF_WORKERS) else None


# -- a connector ---------------------------------------------------------------------------------------------------------------------


def connector_findings(wanted: ConnectorFile, worker: Mapping[str, str], plugins: Plugins) -> Iterator[Finding]:
    """Yield what is wrong with a connector's configuration. A property whose value a config provider supplies is not checked."""
    from connect_py.herder.validation import validate
    from connect_py.providers.resolver import variables_in

    file = wanted.source
    try:
        infos = validate(plugins, worker, wanted.config, connects=False)
        connector = plugins.connector(wanted.config["connector.class"].strip())
    except BadRequestError as error:
        yield Finding(file, "refused", "connector.class", _with_meant(str(error), plugins))
        return
    known = {key.name: key for key, _ in infos.configs if key is not None}
    for _, value in infos.configs:
        if not variables_in(wanted.config.get(value.name)):
            for text in dict.fromkeys(value.errors):
                said = _with_meant(text, plugins)
                yield Finding(file, "refused", value.name, said if value.name in said else f"{value.name}: {said}")
    for warning in infos.warnings:
        quoted = re.search(r"'([^']+)'", warning)
        name = quoted[1] if quoted else ""
        if name not in connector.without_effect:  # of which there is more to say
            yield Finding(file, "unknown", name, warning)
    for listed, why in connector.without_effect.items():
        for name in (name for name in wanted.config if name == listed or (listed.endswith(".") and name.startswith(listed))):
            default = known[name].default if name in known else None
            if wanted.config[name].strip().lower() != str("" if default is None else default).lower():
                yield Finding(file, "ignored", name, f"The property '{name}' has no effect: {why}.")
    for note in wanted.notes:
        yield Finding(file, "ignored", "", f"{note}.")


def _with_meant(text: str, plugins: Plugins) -> str:
    """Add to a sentence about a missing class the installed one that was probably meant."""
    missing = _NO_CLASS.search(text)
    if missing is None:
        return text
    name = missing["name"] or missing["alias"]
    if missing["alias"]:
        text = f"Class {name} could not be found."
    by_simple_name = {java.rpartition(".")[2].lower(): java for java in plugins.references}
    meant = get_close_matches(name.rpartition(".")[2].lower(), by_simple_name, n=1, cutoff=_ALIKE)
    return (
        f"{text} Did you mean {by_simple_name[meant[0]]}?"
        if meant
        else f"{text} This worker has no such plugin; Java archives cannot be loaded."
    )


# -- a worker ------------------------------------------------------------------------------------------------------------------------


def worker_findings(file: str, properties: Mapping[str, str], plugins: Plugins) -> Iterator[Finding]:
    """Yield what is wrong with a worker's properties."""
    from connect_py.config.worker import DISTRIBUTED, STANDALONE, WorkerConfig, worker_warnings
    from connect_py.providers.resolver import variables_in
    from rest_api.jaas import EXTENSION, EXTENSION_CLASSES

    definition = STANDALONE if "offset.storage.file.filename" in properties and "group.id" not in properties else DISTRIBUTED
    refused = False
    for value in definition.validate(properties):
        if not variables_in(properties.get(value.name)):
            for text in dict.fromkeys(value.errors):
                refused = True
                yield Finding(file, "refused", value.name, text if value.name in text else f"{value.name}: {text}")
    if not refused and not any(variables_in(value) for value in properties.values()):
        try:
            WorkerConfig.parse(properties, definition)
        except ConnectError as error:
            yield Finding(file, "refused", "", str(error))
    foreign = [name.strip() for name in properties.get(EXTENSION_CLASSES, "").split(",") if name.strip() not in ("", EXTENSION)]
    if foreign:
        yield Finding(
            file, "refused", EXTENSION_CLASSES, f"{EXTENSION_CLASSES} names {', '.join(foreign)}: a Java extension cannot run here."
        )
    for key in ("key.converter", "value.converter", "header.converter"):
        name = properties.get(key, "").strip()
        if name and not variables_in(name) and plugins.resolve(name) is None:
            text = f"Invalid value {name} for configuration {key}: Class {name} could not be found."
            yield Finding(file, "refused", key, _with_meant(text, plugins))
    for warning in worker_warnings(properties, definition):
        quoted = re.search(r"property '([^']+)'", warning)
        kind = "ignored" if "has no effect" in warning and "probably" not in warning else "unknown"
        if quoted or "not known" in warning:
            yield Finding(file, kind, quoted[1] if quoted else "", warning)


COMMANDS = (
    Command(
        "check",
        "Look",
        "check connector and worker files without any server",
        _options,
        _check,
        about=(
            "It says what a worker would refuse, what it would ignore, and what nothing reads, with the name that you probably meant. Use "
            "it on the files of a Java worker before you move. A value of a config provider, such as ${file:…}, is not checked."
        ),
        examples=(
            "check inventory.json",
            "check connectors/ worker.properties --strict",
            "check inventory.json --worker-properties worker.properties",
        ),
        exits={0: "nothing would be refused", 3: "something would be refused; with --strict also: is unknown or ignored"},
    ),
)
