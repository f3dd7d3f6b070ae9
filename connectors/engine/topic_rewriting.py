"""Topics named by a regular expression, and the field of keys that goes with it (`AbstractRegexTopicNamingStrategy`). Pure."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from connect_py.data.java_regex import compile_java_regex, java_replacement
from connect_py.errors import ConfigError

log = logging.getLogger(__name__)

_Replaced = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What `topic.regex` and its kin say.

    Attributes:
        field: `topic.key.field.name`; empty where keys are left alone (``topic.key.enforce.uniqueness=false``).
        identifier: makes the field's text of the name that a topic had; None for that name itself.
    """

    regex: _Replaced
    field: str = "__dbz__physicalTableIdentifier"
    identifier: _Replaced | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> Rewriting:
        """Take a connector's properties. Raises ConfigError: one is missing or malformed."""
        regex = _replaced(config, "topic.regex", "topic.replacement")
        if regex is None:
            raise ConfigError("topic.regex and topic.replacement are missing, by which topic.naming.strategy makes names")
        marks = config.get("topic.key.enforce.uniqueness", "true").strip().lower() != "false"
        field = config.get("topic.key.field.name", "__dbz__physicalTableIdentifier") if marks else ""
        return cls(regex, field, _replaced(config, "topic.key.field.regex", "topic.key.field.replacement"))

    def topic(self, name: str) -> str:
        """The new name; the old one where the regex does not match all of it, or nothing would be left."""
        new = _rewritten(self.regex, name)
        if not new:
            log.warning("topic.regex and topic.replacement leave nothing of the topic %s, which keeps its name", name)
        return new or name

    def key_mark(self, name: str) -> tuple[str, str] | None:
        """The field's name and text for the topic that would have had this name."""
        if not self.field:
            return None
        return self.field, name if self.identifier is None else _rewritten(self.identifier, name)


def _replaced(config: Mapping[str, str], regex: str, replacement: str) -> _Replaced | None:
    text = config.get(regex, "")
    if not text.strip():
        return None
    if not config.get(replacement, "").strip():
        raise ConfigError(f"{replacement} must be non-empty if {regex} is set.")
    pattern = compile_java_regex(text)
    return pattern, java_replacement(pattern, config[replacement])


def _rewritten(rule: _Replaced, name: str) -> str:
    pattern, replace = rule
    match = pattern.fullmatch(name)
    return name if match is None else replace(match)
