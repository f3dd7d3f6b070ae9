"""Find properties that nothing reads, and what was probably meant. Pure.

Connect takes an unknown property without a word, so that one slip of the pen (``tabel.include.list``) changes what a connector does. Here
it is a warning, never an error: connectors of others read properties that they do not define.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

from connect_py.api import BatchSinkTask, Connector, SinkConnector
from connect_py.config.client_overrides import override_prefix
from connect_py.config.connector import CONVERTERS
from connect_py.kafka.settings import CLIENT_NO_EFFECT, ClientKind, client_definitions

#: How alike two names must be to be taken for one another; two slips in a name of average length.
_ALIKE = 0.8

#: Properties of Debezium's connectors that list aliases, below which any name may stand.
_ALIAS_LISTS = ("converters", "post.processors")

Config = Mapping[str, str | None]


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant, None when none is near."""
    found = get_close_matches(name, list(known), n=1, cutoff=_ALIKE)
    return found[0] if found else None


def unknown_sentence(what: str, name: str, known: Iterable[str]) -> str:
    """Return one warning, such as ``The property 'a' is not known … Did you mean 'b'?``."""
    meant = closest(name, known)
    return f"{what} '{name}' is not known" + (f". Did you mean '{meant}'?" if meant else " and probably has no effect.")


#: Each takes half a millisecond to find the name that was meant, and a line in the log.
_MAX_WARNINGS = 100


def unknown_properties(connector: type[Connector], config: Config, known: Collection[str]) -> list[str]:
    """Return a sentence for each property of a connector's configuration that nothing reads.

    Args:
        known: the names that the worker and the connector define for this configuration, those of its transforms and converters included.
    """
    names = {*known, *(name for key in CONVERTERS for name in (key, f"{key}.plugin.version"))}
    aliases = [alias.strip() for key in _ALIAS_LISTS if key in known for alias in (config.get(key) or "").split(",")]
    open_prefixes = (*connector.open_prefixes, *(f"{alias}." for alias in aliases if alias))
    # Debezium's definitions have regexes as names; nothing that a client wrote may become one
    patterns = [re.compile(name.replace("(d+)", r"(\d+)")) for name in connector.config_def().keys if "(" in name]
    sentences: list[str] = []
    for name in config:
        if len(sentences) >= _MAX_WARNINGS:
            sentences.append(f"No more names are looked at: {_MAX_WARNINGS} properties are not known.")
            break
        if name in names or name.startswith(open_prefixes) or any(pattern.fullmatch(name) for pattern in patterns):
            continue
        sentence = _of_override(name) if ".override." in name else _of_family(connector, name, config, names)
        if sentence:
            sentences.append(sentence)
    return sentences


def _of_override(name: str) -> str | None:
    for kind in ClientKind:
        prefix = override_prefix(kind)
        if name.startswith(prefix):
            known = client_definitions(kind)
            setting = name.removeprefix(prefix)
            if setting in CLIENT_NO_EFFECT:
                return f"The property '{name}' has no effect: {CLIENT_NO_EFFECT[setting]}."
            return None if setting in known else unknown_sentence(f"The {kind.value} setting of {prefix}*,", setting, known)
    kinds = ", ".join(override_prefix(kind) + "*" for kind in ClientKind)
    return f"The property '{name}' is not known: overrides are {kinds}."


def _of_family(connector: type[Connector], name: str, config: Config, known: Collection[str]) -> str | None:
    """Judge names made of a prefix, an alias and a rest, and everything else."""
    converter = next((key for key in CONVERTERS if name.startswith(f"{key}.")), None)
    if converter is not None and not config.get(converter):
        return None if _reads_in_spark(connector) else _without_converter(name, converter)
    for family, listed_in in (("transforms.", "transforms"), ("predicates.", "predicates"), ("topic.creation.", "topic.creation.groups")):
        if not name.startswith(family) or "." not in name.removeprefix(family):
            continue
        alias = name.removeprefix(family).partition(".")[0]
        listed = [each.strip() for each in (config.get(listed_in) or "").split(",")]
        is_group = listed_in == "topic.creation.groups"
        if alias not in listed and not (is_group and alias == "default"):
            meant = closest(alias, listed)
            return f"The property '{name}' has no effect: '{listed_in}' does not list '{alias}'" + (f" but '{meant}'." if meant else ".")
        if is_group or not any(
            other.startswith(f"{family}{alias}.") and not other.endswith((".type", ".plugin.version")) for other in known
        ):
            return None  # any topic setting may stand there; or the class has errors of its own, and its properties are not known
    return unknown_sentence("The property", name, known)


def _without_converter(name: str, converter: str) -> str:
    return (
        f"The property '{name}' has no effect: the connector names no {converter} of its own, and the worker's converter has the worker's "
        f"properties. Set {converter} too."
    )


def _reads_in_spark(connector: type[Connector]) -> bool:
    """A sink of whole batches converts by itself and reads these properties."""
    if not issubclass(connector, SinkConnector):
        return False
    try:
        return issubclass(connector().task_class(), BatchSinkTask)
    except Exception:  # noqa: BLE001  # a warning is not worth a failed request
        return True
