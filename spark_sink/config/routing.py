"""Which tables records go to."""

from __future__ import annotations

import re
from typing import Any

from connect_py.api.config import ConfigType, non_empty, one_of
from connect_py.errors import ConfigError
from spark_sink.config.key import key

_PLACEHOLDERS = ("topic", "prefix", "db", "schema", "table")


def _route_pattern(name: str, value: Any) -> None:
    unknown = [p for p in re.findall(r"\{(.*?)\}", value or "") if p not in _PLACEHOLDERS and not re.fullmatch(r"[1-9]", p)]
    if unknown or not value:
        known = ", ".join("{" + p + "}" for p in (*_PLACEHOLDERS, "1", "2")) + " …"
        raise ConfigError(f"Invalid value {value} for configuration {name}: placeholders are {known}")


KEYS = (
    key(
        "tables",
        None,
        "Static destinations: tables by name. Every record goes to all of them, or, with lakehouse.tables.route-field, to those whose "
        "lakehouse.table.<name>.route-regex matches the whole value of that field.",
        ConfigType.LIST,
        group="Routing",
    ),
    key(
        "tables.route-field",
        None,
        "Dotted path of the value that routes a record, within the row (of change events: after, else before). Also __topic, "
        "__source.<field> of the event's source block, and __header.<name>.",
        validator=non_empty,
        group="Routing",
    ),
    key(
        "tables.dynamic-enabled",
        False,
        "The value of lakehouse.tables.route-field is the table's name.",
        ConfigType.BOOLEAN,
        group="Routing",
    ),
    key(
        "tables.unrouted",
        "fail",
        "Records that no rule gives a table: fail stops the task, skip passes over and counts them, dlq treats them as bad records.",
        validator=one_of("fail", "skip", "dlq"),
        group="Routing",
    ),
    key("tables.include.list", None, "Regexes; tables whose whole name matches none are passed over.", ConfigType.LIST, group="Routing"),
    key("tables.exclude.list", None, "Regexes; tables whose whole name matches one are passed over.", ConfigType.LIST, group="Routing"),
    key(
        "tables.route-topic-regex",
        None,
        "Regex over the whole name of the topic, whose groups are {1}, {2} … of lakehouse.tables.route-pattern.",
        group="Routing",
    ),
    key(
        "tables.route-pattern",
        "{schema}.{table}",
        "Name of a record's table, from the event's source block or, where that is silent, from the parts of the topic's name. "
        "Placeholders: {topic} {prefix} {db} {schema} {table}, and {1} … of lakehouse.tables.route-topic-regex.",
        validator=_route_pattern,
        group="Routing",
    ),
    key("tables.namespace", None, "Namespace put before the table's name.", validator=non_empty, group="Routing"),
    key("tables.prefix", "", "Text put before the last part of the table's name.", group="Routing"),
    key("tables.name-case", "lower", "Case of tables' names.", validator=one_of("lower", "upper", "keep"), group="Routing"),
)
