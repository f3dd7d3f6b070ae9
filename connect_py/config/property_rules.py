"""How the tables of Connect's own properties are written, and the rules that their values keep. Pure."""

from __future__ import annotations

from typing import Any

from connect_py.api.config import ConfigKey, ConfigType, Importance, Validator, Width, between, invalid
from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError


def key(
    name: str,
    type_: ConfigType,
    default: Any,
    importance: Importance,
    width: Width,
    group: str | None,
    order: int,
    display_name: str,
    documentation: str,
    validator: Validator | None = None,
) -> ConfigKey:
    """A definition, its parts in the order that reads best in a table."""
    return ConfigKey(name, type_, default, importance, documentation, group, order, width, display_name, validator)


def unique_aliases(name: str, value: Any) -> None:
    """Aliases of transforms, predicates or topic groups: each once."""
    if value is None:
        raise invalid(name, value, "entry must be non null")
    if len(set(value)) < len(value):
        raise invalid(name, value, "Duplicate alias provided.")


def distinct_values(name: str, value: Any) -> None:
    """`ConfigDef.ValidList.anyNonDuplicateValues`."""
    if value is None:
        raise ConfigError(f"Configuration '{name}' values must not be null.")
    if len(set(value)) < len(value):
        raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
    if "" in value:
        raise ConfigError(f"Configuration '{name}' values must not be empty.")


def java_regex(name: str, value: Any) -> None:
    """A regex that java.util.regex takes."""
    try:
        compile_java_regex(value or "")
    except ConfigError as error:
        raise invalid(name, value, f"Invalid regex: {error}") from None


def at_least_zero(name: str, value: Any) -> None:
    """A number that is given is not negative."""
    if value is not None:
        between(0)(name, value)
