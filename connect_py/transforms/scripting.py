"""Filter and route records by expressions (`io.debezium.transforms.{Filter,ContentBasedRouter}`).

Debezium evaluates Groovy, JavaScript or WebAssembly. Running a program out of a configuration is what this worker never does; the one
language here is CEL (`language=cel`), whose expressions look much the same. An error about an expression in Groovy or JavaScript shows what
common conditions are in CEL; that text is only shown, never run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from connect_py.api import ConfigKey, ConfigType, Importance, Width
from connect_py.api.config import REQUIRED, invalid
from connect_py.data.java_regex import compile_java_regex
from connect_py.data.values import to_text
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.base import AnyRecord, valid_regex
from connect_py.transforms.cel_condition import Expression
from connect_py.transforms.debezium import DEBEZIUM, DebeziumTransform

_REWRITES = (
    (re.compile(r"==="), "=="),
    (re.compile(r"!=="), "!="),
    (re.compile(r"\.get(?:String|Int8|Int16|Int32|Int64|Boolean|Float32|Float64|Struct)?\(\s*(['\"])(\w+)\1\s*\)"), r".\2"),
    (re.compile(r"(['\"][^'\"]*['\"])\.equals\(\s*([\w.]+)\s*\)"), r"\2 == \1"),
    (re.compile(r"([\w.]+)\.equals\(\s*([^()]+?)\s*\)"), r"\1 == \2"),
    (re.compile(r"([\w.]+)\s*==~\s*/((?:\\.|[^/])*)/"), r"\1.matches('^(?:\2)$')"),
    (re.compile(r"([\w.]+)\s*=~\s*/((?:\\.|[^/])*)/"), r"\1.matches('\2')"),
    (re.compile(r"\.(?:length\(\)|length\b(?!\()|size\(\))"), ".size()"),
    (re.compile(r"\.toLowerCase\(\)"), ".lowerAscii()"),
    (re.compile(r"\.toUpperCase\(\)"), ".upperAscii()"),
    (re.compile(r"\breturn\s+"), ""),
    (re.compile(r";\s*\Z"), ""),
)
_SAFE = re.compile(r"((?:\w+\.)*\w+)\?\.((?:\w+\??\.)*\w+)((?:\s*(?:==|!=|<=?|>=?)\s*(?:'[^']*'|\"[^\"]*\"|[\w.-]+)))?")


def to_cel(script: str) -> str:
    """Return a script with what differs rewritten: `?.`, `.equals(…)`, `=~ /…/`, `===`, `.getString('a')`, `.length()`."""
    text = script.strip()
    for _ in range(script.count("?.")):
        text = _SAFE.sub(_guarded, text, count=1)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text


def _guarded(found: re.Match[str]) -> str:
    """`a?.b == 1` as `(a != null && a.b == 1)`."""
    return f"({found[1]} != null && {found[1]}.{found[2]}{found[3] or ''})"


_NULLS = ("drop", "keep", "evaluate")


def _is_cel(name: str, value: Any) -> None:
    if value is None or value.strip().lower() == "cel":
        return
    if value.strip().lower().startswith(("jsr223.", "wasm.")):
        raise invalid(
            name,
            value,
            "this worker runs no scripts; set it to cel and write the expression in CEL. Most conditions in Groovy are CEL as they are: "
            "value.op == 'u' && value.before.id == 2 (docs/transforms.md shows what differs)",
        )
    raise invalid(name, value, "the language is cel")


def _compiles(name: str, value: Any) -> None:
    if value is None:
        return
    try:
        Expression(value)
    except ConfigError as error:
        raise invalid(name, value, f"{error}{_suggestion(value)}") from None


#: Rewriting takes time that grows with the third power of the length, and a validation runs in the worker: 8,000 characters took minutes.
_EASY_LENGTH = 300


def _suggestion(script: str) -> str:
    """Return the expression in CEL where it is a script that is easily rewritten."""
    if len(script) > _EASY_LENGTH:
        return ""
    rewritten = to_cel(script)
    if rewritten == script.strip():
        return ""
    try:
        Expression(rewritten)
    except ConfigError:
        return ""
    return f". In CEL this is: {rewritten}"


def _known_mode(name: str, value: Any) -> None:
    if value is None or value.strip().lower() not in _NULLS:
        raise invalid(name, value, f"Value must be one of {', '.join(_NULLS)}")


def _keys(expression: str, title: str, text: str) -> tuple[ConfigKey, ...]:
    def one(name: str, default: Any, level: Importance, width: Width, shown: str, doc: str, check: Callable[[str, Any], None]) -> ConfigKey:
        return ConfigKey(name, ConfigType.STRING, default, level, doc, None, 1, width, shown, check)

    return (
        one(
            "topic.regex",
            None,
            Importance.LOW,
            Width.LONG,
            "Topic regex",
            "Records of topics that it does not match as a whole are left alone.",
            lambda name, value: None if value is None else valid_regex(name, value),
        ),
        one(
            "language",
            REQUIRED,
            Importance.HIGH,
            Width.MEDIUM,
            "Expression language",
            "cel, the Common Expression Language.",
            _is_cel,
        ),
        one(expression, REQUIRED, Importance.HIGH, Width.MEDIUM, title, text, _compiles),
        one(
            "null.handling.mode",
            "keep",
            Importance.LOW,
            Width.SHORT,
            "Handle null records",
            "What becomes of records with a null value: keep - they pass, drop - they are removed, evaluate - the expression decides.",
            _known_mode,
        ),
    )


class _Scripted(DebeziumTransform):
    """Class attributes: EXPRESSION is the property with the expression."""

    EXPRESSION: ClassVar[str]

    def use(self, config: Mapping[str, Any]) -> None:
        self._expression = Expression(config[self.EXPRESSION])
        self._nulls: str = config["null.handling.mode"].strip().lower()
        self._topics = compile_java_regex(config["topic.regex"]) if config["topic.regex"] else None

    def apply(self, record: AnyRecord) -> AnyRecord | None:
        """Return what the expression decides; other topics, and nulls unless they are to be evaluated, are not its business.

        Raises:
            DataError: the expression fails for the record, or gives a value of another type.
        """
        if self._topics is not None and not self._topics.fullmatch(record.topic):
            return record
        if record.value is None and self._nulls != "evaluate":
            return record if self._nulls == "keep" else None
        return self.decided(record, self._expression.evaluate(record))

    def decided(self, record: AnyRecord, result: Any) -> AnyRecord | None:
        """Return the record after the expression gave a result."""
        raise NotImplementedError

    def unfit(self, result: Any, wanted: str) -> DataError:
        """Return the error of a result of another type."""
        shown = to_text(None, result) if isinstance(result, str | int | float | bool | None) else type(result).__name__
        return DataError(f"Value '{shown}' returned by the expression is not a {wanted}: {self._expression.text}")


class Filter(_Scripted):
    """Keeps the records for which a condition is true."""

    java_name = f"{DEBEZIUM}Filter"
    EXPRESSION = "condition"
    KEYS = _keys("condition", "Filtering condition", "The condition, in CEL; records for which it is true are kept, others are dropped.")

    def decided(self, record: AnyRecord, result: Any) -> AnyRecord | None:
        """Return the record, or None."""
        if not isinstance(result, bool):
            raise self.unfit(result, "Boolean")
        return record if result else None


class ContentBasedRouter(_Scripted):
    """Sends records to the topic that an expression names."""

    java_name = f"{DEBEZIUM}ContentBasedRouter"
    EXPRESSION = "topic.expression"
    KEYS = _keys("topic.expression", "Topic name expression", "The topic, in CEL; a record for which it is null keeps its own.")

    def decided(self, record: AnyRecord, result: Any) -> AnyRecord | None:
        """Return the record in its topic."""
        if result is None:
            return record
        if not isinstance(result, str):
            raise self.unfit(result, "String")
        return replace(record, topic=result)
