"""Definitions of properties, and their validation (`org.apache.kafka.common.config.ConfigDef`, `Password.java`).

Definitions are data, so that `PUT /connector-plugins/{class}/config/validate` can show every key's type, default, importance,
documentation and errors.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from connect_py.data.java_map import in_java_order
from connect_py.errors import ConfigError

#: Marks a key without default; None is a default of its own.
REQUIRED: Any = object()

_INTEGER = re.compile(r"[+-]?[0-9]+")


class ConfigType(enum.Enum):
    """Types of values, by the names that validation answers show."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 (a type name)


class Importance(enum.Enum):
    """How likely a user is to set a key."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(enum.Enum):
    """How wide a form should show a key."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class Password:
    """A secret. It has no text form: str, repr and format show `[hidden]`; `reveal` gives the secret to the one who needs it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the secret itself; never log what this returns."""
        return self._value

    def __repr__(self) -> str:
        return "[hidden]"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format("[hidden]", spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> Any:
        raise TypeError("a Password is not pickled")


#: (key, parsed value) → None, or raises ConfigError.
Validator = Callable[[str, Any], None]


@dataclass(frozen=True)
class ConfigKey:
    """One property. The attributes are those of ConfigKeyInfo in Connect's REST answers."""

    name: str
    type: ConfigType = ConfigType.STRING
    default: Any = REQUIRED
    importance: Importance = Importance.MEDIUM
    documentation: str = ""
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display_name: str = ""
    validator: Validator | None = None
    dependents: tuple[str, ...] = ()
    #: recommended values, given the other properties
    recommender: Callable[[str, Mapping[str, Any]], Sequence[Any]] | None = None
    internal: bool = False
    #: (key, text) → value, or raises ConfigError; in place of the type's own reading
    parser: Callable[[str, str], Any] | None = None
    #: whether a form should show the key (`ConfigDef.Recommender.visible`)
    visible: bool = True

    def parse(self, value: Any) -> Any:
        """Return a value of this key from what a configuration holds. Raises ConfigError."""
        if self.parser is not None and isinstance(value, str):
            return self.parser(self.name, value)
        return parse_value(self.name, value, self.type)

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.default is REQUIRED


class DeferredValues(Sequence[Any]):
    """Values that are made when they are first looked at.

    Args:
        make: may take long, as importing all that is installed does.
    """

    def __init__(self, make: Callable[[], Iterable[Any]]) -> None:
        self._make = make

    @functools.cached_property
    def _values(self) -> list[Any]:
        return list(self._make())

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)


@dataclass
class ConfigValue:
    """What validation found of one key (`org.apache.kafka.common.config.ConfigValue`).

    Attributes:
        value: the parsed value, None when it is missing or malformed.
    """

    name: str
    value: Any = None
    recommended_values: Sequence[Any] = ()
    errors: list[str] = field(default_factory=list)
    visible: bool = True


class ConfigDef:
    """An ordered set of keys.

    Args:
        keys: in the order that answers show.
    """

    def __init__(self, keys: Iterable[ConfigKey] = ()) -> None:
        self.keys: dict[str, ConfigKey] = {}
        for key in keys:
            self.define(key)

    def define(self, key: ConfigKey) -> ConfigDef:
        """Add a key. Raises ConfigError when it exists or its default breaks its own rules."""
        if key.name in self.keys:
            raise ConfigError(f"Configuration {key.name} is defined twice.")
        if not key.required and key.default is not None and key.validator and key.parser is None:  # a parser may ask the world outside
            key.validator(key.name, parse_value(key.name, key.default, key.type))
        self.keys[key.name] = key
        return self

    def merged(self, other: ConfigDef) -> ConfigDef:
        """Return a new definition with the other's keys after these; these win."""
        return ConfigDef([*self.keys.values(), *(k for n, k in other.keys.items() if n not in self.keys)])

    def groups(self) -> list[str]:
        """Return groups in order of first appearance."""
        return list(dict.fromkeys(key.group for key in self.keys.values() if key.group))

    def parse(self, config: Mapping[str, str | None]) -> dict[str, Any]:
        """Return every key's parsed value.

        Raises:
            ConfigError: with the first problem.
        """
        return {name: self._parse_key(key, config) for name, key in self.keys.items()}

    def _parse_key(self, key: ConfigKey, config: Mapping[str, str | None]) -> Any:
        if key.name in config:
            value = key.parse(config[key.name])
        elif key.required:
            raise ConfigError(f'Missing required configuration "{key.name}" which has no default value.')
        else:
            value = key.parse(key.default)
        if key.validator:
            key.validator(key.name, value)
        return value

    def validate(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Every key's value and all its errors, in the definition's order. As in Java, a value that is missing or cannot be parsed is
        None and the validator still sees that None, so a malformed number with a range has two errors."""
        found: list[ConfigValue] = []
        parsed: dict[str, Any] = {}
        for name, key in self.keys.items():
            result = ConfigValue(name, visible=key.visible)
            if name in config:
                try:
                    result.value = key.parse(config[name])
                except ConfigError as error:
                    result.errors.append(str(error))
            elif key.required:
                result.errors.append(f'Missing required configuration "{name}" which has no default value.')
            else:
                result.value = key.parse(key.default)
            if key.validator:
                try:
                    key.validator(name, result.value)
                except ConfigError as error:
                    result.errors.append(str(error))
            parsed[name] = result.value
            found.append(result)
        for result in found:
            recommender = self.keys[result.name].recommender
            if recommender:
                result.recommended_values = recommender(result.name, parsed)
        return found


_RANGES = {
    ConfigType.INT: (-(2**31), 2**31 - 1),
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.LONG: (-(2**63), 2**63 - 1),
}


def parse_value(name: str, value: Any, type_: ConfigType) -> Any:
    """Turn text into a typed value (`ConfigDef.parseType`). None stays None; a value that is typed already is returned as it is.

    Returns:
        bool, str, int, float, list[str], Password, or for CLASS the class name as str.

    Raises:
        ConfigError: the text is not of the type.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        return Password(value.reveal()) if isinstance(value, Password) else value
    if type_ is ConfigType.PASSWORD:
        return Password(value.strip())
    text = value.strip()
    match type_:
        case ConfigType.BOOLEAN:
            if text.lower() in ("true", "false"):
                return text.lower() == "true"
            raise invalid(name, value, "Expected value to be either true or false")
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            low, high = _RANGES[type_]
            if not _INTEGER.fullmatch(text) or not low <= int(text) <= high:
                raise invalid(name, value, f"Not a number of type {type_.value}")
            return int(text)
        case ConfigType.DOUBLE:
            try:
                return float(text)
            except ValueError:
                raise invalid(name, value, "Not a number of type DOUBLE") from None
        case ConfigType.LIST:
            return re.split(r"\s*,\s*", text) if text else []
        case _:
            return text


def text_of(value: Any, type_: ConfigType) -> str | None:
    """Return a typed value as validation answers show it (`ConfigDef.convertToString`)."""
    if value is None or value is REQUIRED:
        return None
    if type_ is ConfigType.PASSWORD:
        return "[hidden]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def invalid(name: str, value: Any, why: str | None = None) -> ConfigError:
    """Return the error that Java's ConfigException(name, value, why) is."""
    shown = "[" + ", ".join(map(str, value)) + "]" if isinstance(value, list) else "null" if value is None else value
    return ConfigError(f"Invalid value {shown} for configuration {name}" + (f": {why}" if why else ""))


# -- validators ------------------------------------------------------------------------------------------------------------------


def between(low: float | None = None, high: float | None = None) -> Validator:
    """Accept a number within bounds, both inclusive."""

    def check(name: str, value: Any) -> None:
        if value is None:
            raise invalid(name, None, "Value must be non-null")
        if low is not None and value < low:
            raise invalid(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            raise invalid(name, value, f"Value must be no more than {high}")

    return check


def valid_partitions(name: str, value: Any) -> None:
    """Accept a number of partitions of a new topic: positive, or -1 (`TopicCreationConfig.java`). Raises ConfigError."""
    if value < 1 and value != -1:
        raise invalid(name, value, "Number of partitions must be positive, or -1 to use the broker's default")


def valid_replicas(name: str, value: Any) -> None:
    """Accept a replication factor of a new topic: positive, or -1 (`TopicCreationConfig.java`). Raises ConfigError."""
    if value < 1 and value != -1:
        why = "Replication factor must be positive and not larger than the number of brokers in the Kafka cluster"
        raise invalid(name, value, f"{why}, or -1 to use the broker's default")


def one_of(*options: str) -> Validator:
    """Accept one of the texts."""

    def check(name: str, value: Any) -> None:
        if value not in options:
            raise invalid(name, value, f"String must be one of: {', '.join(options)}")

    return check


def one_of_ignoring_case(*options: str) -> Validator:
    """Accept one of the texts in any case."""

    def check(name: str, value: Any) -> None:
        if value is None or str(value).upper() not in {o.upper() for o in options}:
            listed = ", ".join(in_java_order({option.upper(): None for option in options}))
            raise invalid(name, value, f"String must be one of (case insensitive): {listed}")

    return check


def non_empty(name: str, value: Any) -> None:
    """A text that is given must not be empty."""
    if value is not None and not value:
        raise invalid(name, value, "String must be non-empty")


def non_empty_without_control_characters(name: str, value: Any) -> None:
    """Rule of a connector's name (`ConfigDef.NonEmptyStringWithoutControlChars`); that it is missing is said elsewhere."""
    if value is None:
        return
    if not value:
        raise invalid(name, value, "String may not be empty")
    found = [str(ord(c)) for c in value if ord(c) < 32 or 127 <= ord(c) <= 159]
    if found:
        raise invalid(name, value, f"String may not contain control sequences but had the following ASCII chars: {', '.join(found)}")


def all_of(*validators: Validator) -> Validator:
    """Accept what every one accepts."""

    def check(name: str, value: Any) -> None:
        for validator in validators:
            validator(name, value)

    return check
