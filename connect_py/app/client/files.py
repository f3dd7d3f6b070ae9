"""Read from files which connectors a user wants.

A file may be:

- JSON as posted to ``/connectors`` (``{"name", "config", "initial_state"}``), as a ``GET`` of a connector answers it, or an array of these;
- JSON, YAML or Java properties with the configuration alone, as put to ``/connectors/NAME/config``;
- YAML of one or several documents, each of a form above, or Strimzi's ``KafkaConnector``; other kinds of Kubernetes are passed over.

A value of YAML is the text that stands there: ``on``, ``010`` and ``1_000`` reach the worker as they were written, while YAML 1.1 would
make them true, 8 and 1000. Only null, ``~`` and nothing are null, which leaves a property out.

Pure, but for `read_paths` and `read_connector_file`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from connect_py.api.storage import TargetState
from connect_py.data.java_properties import parse_properties
from connect_py.errors import ConfigError
from connect_py.extras import install_command

if TYPE_CHECKING:
    import yaml

SUFFIXES = (".json", ".properties", ".yaml", ".yml")

_STATES = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}

#: ``${NAME}`` and its escape ``$${NAME}``. Capitals only: ``${topic}`` of a transform and ``${file:…}`` of a config provider stay.
_VARIABLE = re.compile(r"\$(?P<escape>\$)?\{(?P<name>[A-Z_][A-Z0-9_]*)\}")


@dataclass(frozen=True)
class ConnectorFile:
    """What a file asks for.

    Attributes:
        config: with ``name``.
        state: the target state that the file names.
        keeps_state: whether `state` is wanted for good, as Strimzi's ``spec.state``; else it is that of a new connector (KIP-980).
        source: the file, and the document's number where it has several.
        notes: what the file says that cannot be carried out, in sentences.
    """

    name: str
    config: dict[str, str]
    state: TargetState | None
    keeps_state: bool = False
    source: str = ""
    notes: tuple[str, ...] = field(default=())


def read_connector_file(path: str) -> ConnectorFile:
    """Read a file of a standalone worker's command line (`cli/ConnectStandalone.java`): JSON or Java properties that hold a name.

    Raises:
        ConfigError: it cannot be read, or has no name.
    """
    text = _read(path)
    try:
        found: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = parse_properties(text)
    if not isinstance(found, dict):
        raise ConfigError(f"{path} is neither a JSON object nor a properties file.")
    return _connector(path, found, default_name="")


def read_paths(paths: Sequence[str], *, recursive: bool = False, environ: Mapping[str, str] | None = None) -> list[ConnectorFile]:
    """Return the connectors of files and folders, in the order in which they were named; ``-`` is standard input.

    Args:
        recursive: whether folders within folders count.
        environ: values for ``${NAME}``; None leaves these texts as they are.

    Raises:
        ConfigError: a file cannot be read or holds something else; two of them have the same connector; a variable is not set.
    """
    wanted: dict[str, ConnectorFile] = {}
    for source, name, text in _texts(paths, recursive):
        for each in parse(source, text, default_name=name):
            if each.name in wanted:
                raise ConfigError(f"{each.source} and {wanted[each.name].source} both hold the connector {each.name}")
            wanted[each.name] = each if environ is None else _with_variables(each, environ)
    return list(wanted.values())


def _texts(paths: Sequence[str], recursive: bool) -> Iterator[tuple[str, str, str]]:
    """Yield (what to call it, name of a connector without one, text) of each file."""
    for given in paths:
        if given == "-":
            yield "standard input", "", sys.stdin.read()
            continue
        path = Path(given)
        if not path.is_dir():
            yield given, path.stem, _read(given)
            continue
        inside = sorted(each for each in path.glob("**/*" if recursive else "*") if each.suffix in SUFFIXES and each.is_file())
        if not inside:
            raise ConfigError(f"{given} has no file that ends in {', '.join(SUFFIXES)}")
        for each in inside:
            yield str(each), each.stem, _read(str(each))


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def parse(source: str, text: str, *, default_name: str = "") -> list[ConnectorFile]:
    """Return the connectors of one file's text.

    Args:
        source: what to call it; a name that ends in ``.properties``, ``.yaml`` or ``.yml`` decides the format.
        default_name: of a configuration without a name.

    Raises:
        ConfigError: it holds no connector, or one that cannot be understood; or it is YAML, and PyYAML is not installed.
    """
    if source.endswith(".properties"):
        return [_connector(source, parse_properties(text), default_name)]
    if source.endswith((".yaml", ".yml")):
        return _of_yaml(source, text, default_name)
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if source.endswith(".json") or text.lstrip()[:1] in ("{", "["):
            raise ConfigError(f"{source} is no JSON: {error}") from error
        # of standard input and files without an ending: a line with = before any colon is one of properties
        first = next((line for line in text.splitlines() if line.strip() and line.strip()[0] not in "#!-"), "")
        if re.match(r"[^:]*=", first):
            return [_connector(source, parse_properties(text), default_name)]
        return _of_yaml(source, text, default_name)
    entries = found if isinstance(found, list) else [found]
    numbered = len(entries) > 1
    return [
        _connector(f"{source}, entry {number}" if numbered else source, each, "" if numbered else default_name)
        for number, each in enumerate(entries, 1)
    ]


def _of_yaml(source: str, text: str, default_name: str) -> list[ConnectorFile]:
    documents = list(_yaml_documents(source, text))
    numbered = len(documents) > 1
    found = []
    for number, document in enumerate(documents, 1):
        if document is None:
            continue
        called = f"{source}, document {number}" if numbered else source
        if isinstance(document, dict) and "kind" in document and "apiVersion" in document:
            if document["kind"] == "KafkaConnector":
                found.append(_of_strimzi(called, document))
            continue
        found.append(_connector(called, document, "" if numbered else default_name))
    if not found and not documents:
        raise ConfigError(f"{source} is empty")
    return found


def _yaml_documents(source: str, text: str) -> Iterable[Any]:
    try:
        import yaml
    except ImportError as error:
        raise ConfigError(f"{source} is YAML, and PyYAML is not installed: {install_command('cli')}, or write JSON") from error
    try:
        return list(yaml.load_all(text, Loader=_text_loader(yaml.SafeLoader)))  # a SafeLoader, below
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is no YAML: {' '.join(str(error).split())}") from error


def _text_loader(base: type[yaml.SafeLoader]) -> type[yaml.SafeLoader]:
    """Return a loader for which every scalar but null is a text."""
    kept = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
    resolvers = {first: [(tag, pattern) for tag, pattern in found if tag in kept] for first, found in base.yaml_implicit_resolvers.items()}
    return type("TextLoader", (base,), {"yaml_implicit_resolvers": resolvers})


def _of_strimzi(source: str, document: Mapping[str, Any]) -> ConnectorFile:
    """Return what Strimzi's operator makes of a resource (`AbstractConnectOperator`): the configuration, its class, tasks and version."""
    metadata, spec = document.get("metadata"), document.get("spec")
    if not isinstance(metadata, dict) or not metadata.get("name") or not isinstance(spec, dict):
        raise ConfigError(f"{source}: a KafkaConnector needs metadata.name and spec")
    name = str(metadata["name"])
    config = spec.get("config") or {}
    if not isinstance(config, dict):
        raise ConfigError(f"{source}: spec.config must be a mapping")
    more = {"connector.class": "class", "tasks.max": "tasksMax", "connector.plugin.version": "version"}
    config = {**config, **{key: spec[field] for key, field in more.items() if spec.get(field) is not None}, "name": name}
    wanted = str(spec.get("state") or ("paused" if str(spec.get("pause", "")).lower() == "true" else "running")).upper()
    notes = []
    if isinstance(spec.get("autoRestart"), dict) and str(spec["autoRestart"].get("enabled", "")).lower() == "true":
        notes.append("spec.autoRestart is Strimzi's operator's work; task.restart.policy=on-failure does it on this project's worker")
    if "listOffsets" in spec or "alterOffsets" in spec:
        notes.append("spec.listOffsets and spec.alterOffsets are Strimzi's operator's work")
    return ConnectorFile(name, _values(source, config), _state(source, wanted, "spec.state"), True, source, tuple(notes))


def _connector(source: str, found: Any, default_name: str) -> ConnectorFile:
    if not isinstance(found, dict):
        raise ConfigError(f"{source} holds no configuration of a connector")
    state = None
    if isinstance(found.get("config"), dict):
        if found.get("initial_state"):
            state = _state(source, str(found["initial_state"]).upper(), "initial_state")
        config = _values(source, found["config"])
        outer = str(found["name"]) if found.get("name") else ""
        if outer and config.get("name", outer) != outer:
            raise ConfigError(f"{source}: the connector is called {outer}, but its configuration says name={config['name']}")
        config |= {"name": outer} if outer else {}
    else:
        config = _values(source, found)
    name = config.get("name") or default_name
    if not name:
        raise ConfigError(f"{source} has no name for its connector.")
    return ConnectorFile(name, {**config, "name": name}, state, source=source)


def _state(source: str, wanted: str, what: str) -> TargetState:
    if wanted not in _STATES:
        raise ConfigError(f"{source}: {what} is {wanted}, but must be one of {', '.join(_STATES)}.")
    return _STATES[wanted]


def _values(source: str, values: Mapping[Any, Any]) -> dict[str, str]:
    """Return scalars as the texts that a configuration holds; JSON booleans are written as in JSON, null leaves a property out."""
    found = {}
    for key, value in values.items():
        if isinstance(value, dict | list):
            kind = "an object" if isinstance(value, dict) else "a list"
            raise ConfigError(f"{source}: '{key}' holds {kind}, but the value of a property is a text, a number or a boolean")
        if value is not None:
            found[str(key)] = value if isinstance(value, str) else orjson.dumps(value).decode()
    return found


def _with_variables(wanted: ConnectorFile, environ: Mapping[str, str]) -> ConnectorFile:
    def value(found: re.Match[str]) -> str:
        name = found["name"]
        if found["escape"]:
            return f"${{{name}}}"
        if name not in environ:
            raise ConfigError(f"{wanted.source}: the environment variable {name} is not set (write $${{{name}}} for the text itself)")
        return environ[name]

    return replace(wanted, config={key: _VARIABLE.sub(value, text) for key, text in wanted.config.items()})
