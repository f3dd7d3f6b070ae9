"""JAAS, by which a Java worker learns where its users are: the extension's class in `rest.extension.classes`, and the entry `KafkaConnect`
of a file whose path is the system property `java.security.auth.login.config`, in `KAFKA_OPTS` or an environment variable of that name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect_py.errors import ConfigError

EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
LOGIN_MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
EXTENSION_CLASSES = "rest.extension.classes"
#: This project's own property, for workers without a JAAS file.
FILE_PROPERTY = "rest.basic.auth.file"

_JAAS_PROPERTY = "java.security.auth.login.config"
_OPTIONS = re.compile(rf"-D{re.escape(_JAAS_PROPERTY)}=(\"[^\"]*\"|'[^']*'|\S+)")
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\s+|("(?:[^"\\]|\\.)*"|[{};=]|[^\s{};="]+)', re.DOTALL)


def users_file(environment: Mapping[str, str]) -> str:
    """Return the users' file that the JAAS file names. Raises ConfigError."""
    path = jaas_path(environment)
    if not path:
        raise ConfigError(
            f"{EXTENSION_CLASSES} asks for basic authentication, and nothing says where the users are: set {FILE_PROPERTY} to a file of "
            f"user=password lines, or KAFKA_OPTS to -D{_JAAS_PROPERTY}=<a JAAS file with an entry KafkaConnect>."
        )
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The JAAS file {path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}.") from error
    modules = parse_jaas(text, path).get("KafkaConnect", ())
    options = next((options for module, options in modules if module == LOGIN_MODULE), None)
    if options is None:
        raise ConfigError(f"The JAAS file {path} has no entry KafkaConnect with {LOGIN_MODULE}, the one login module that this worker has.")
    if not options.get("file", "").strip():
        raise ConfigError(f'The JAAS file {path} names no file of users: add file="…" to the entry KafkaConnect.')
    return options["file"].strip()


def jaas_path(environment: Mapping[str, str]) -> str:
    """Return the JAAS file that Java's options or an environment variable name; empty when none does."""
    for variable in ("KAFKA_OPTS", "EXTRA_ARGS", "JAVA_TOOL_OPTIONS"):
        found = _OPTIONS.findall(environment.get(variable, ""))
        if found:
            return str(found[-1]).strip("\"'")
    return environment.get(_JAAS_PROPERTY, "").strip()


def parse_jaas(text: str, where: str) -> dict[str, Sequence[tuple[str, Mapping[str, str]]]]:
    """Entries of a JAAS file: for each name its login modules with their options.

    Raises:
        ConfigError: it has another form.
    """
    tokens = [found[1] for found in _TOKEN.finditer(text) if found[1] is not None]
    entries: dict[str, Sequence[tuple[str, Mapping[str, str]]]] = {}
    try:
        at = 0
        while at < len(tokens):
            name, at = _unquoted(tokens[at]), _expect(tokens, at + 1, "{")
            modules = []
            while tokens[at] != "}":
                module, at = tokens[at], at + 2  # the flag (required, sufficient …) has no say with one module
                options = {}
                while tokens[at] != ";":
                    key, at = tokens[at], _expect(tokens, at + 1, "=")
                    options[key], at = _unquoted(tokens[at]), at + 1
                modules.append((module, options))
                at += 1
            entries[name], at = modules, _expect(tokens, at + 1, ";")
    except (IndexError, ValueError):
        raise ConfigError(f"The JAAS file {where} is not of the form: Name {{ module flag option=value … ; }};") from None
    return entries


def _expect(tokens: Sequence[str], at: int, wanted: str) -> int:
    if tokens[at] != wanted:
        raise ValueError(wanted)
    return at + 1


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1]) if token.startswith('"') else token
