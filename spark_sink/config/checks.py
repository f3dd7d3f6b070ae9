"""Choices that do not go together, or that this sink cannot follow. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from connect_py.errors import ConfigError
from spark_sink.config.key import PREFIX
from spark_sink.config.layout import parse_partitions
from spark_sink.types.trees import Array, Map, Struct, Type, parse_type

#: Parts of a table's name become directories, out of which these would lead.
_NOT_IN_A_NAME = re.compile(r"[/\\:\x00-\x1f\x7f-\x9f]")


def is_part_of_a_name(text: str) -> bool:
    """Whether a text can be a part of a table's name: a table of such parts is always within its warehouse."""
    return text not in ("", ".", "..") and not _NOT_IN_A_NAME.search(text)


def check_routing(values: Mapping[str, Any], of_tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Choices of routing that go together. Raises ConfigError."""
    static, dynamic, by = values["tables"], values["tables.dynamic-enabled"], values["tables.route-field"]
    if dynamic and static:
        raise ConfigError(f"{PREFIX}tables and {PREFIX}tables.dynamic-enabled exclude each other: tables are named here or by the records.")
    if dynamic and not by:
        raise ConfigError(f"{PREFIX}tables.route-field is missing: with {PREFIX}tables.dynamic-enabled its value names the table.")
    if by and not (dynamic or static):
        raise ConfigError(f"{PREFIX}tables.route-field needs {PREFIX}tables, or {PREFIX}tables.dynamic-enabled=true.")
    if static and by and (lacking := [name for name in static if "route-regex" not in of_tables.get(name, {})]):
        raise ConfigError(f"{PREFIX}table.{lacking[0]}.route-regex is missing: it says which records go to the table.")
    for name in (*(static or ()), *([values["tables.namespace"]] if values["tables.namespace"] else ())):
        if not all(map(is_part_of_a_name, name.split("."))):
            raise ConfigError(f"{name} cannot be a table's name or namespace: a part is empty, or has a slash, a backslash or a colon.")
    patterns = [*(values["tables.include.list"] or ()), *(values["tables.exclude.list"] or ()), values["tables.route-topic-regex"] or ""]
    for pattern in (*patterns, *(own["route-regex"] for own in of_tables.values() if "route-regex" in own)):
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"The regular expression {pattern} of the routing is not valid: {error}.") from None


def check_delta(values: Mapping[str, Any], catalog: Mapping[str, str], spark_conf: Mapping[str, str]) -> None:
    """A place for Delta tables that outlives the process. Raises ConfigError."""
    if values["delta.root"] is not None:
        if catalog:
            raise ConfigError(f"{PREFIX}delta.root and {PREFIX}catalog.* exclude each other: tables have a directory or a catalog.")
    elif not catalog and spark_conf.get("spark.sql.catalogImplementation") != "hive":
        raise ConfigError(
            f"{PREFIX}delta.root is missing: the directory or URI under which the Delta tables live. With a metastore set "
            f"{PREFIX}spark.conf.spark.sql.catalogImplementation=hive and its address instead, or a catalog as {PREFIX}catalog.*."
        )


def check_batches(values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Where Spark runs, and what the driver of batches needs of it.

    Args:
        given: the properties that were set.

    Raises:
        ConfigError: they do not go together.
    """
    if values["spark.remote"] is not None:
        if not values["spark.remote"].reveal().startswith("sc://"):
            raise ConfigError(f"{PREFIX}spark.remote must begin with sc://: it is the address of a Spark Connect server.")
        for name in ("spark.master", "spark.jars"):
            if given.get(PREFIX + name):
                raise ConfigError(f"{PREFIX}spark.remote and {PREFIX}{name} exclude each other: Spark runs on that server, with its jars.")
        if values["source.mode"] == "stream":
            raise ConfigError(
                f"{PREFIX}source.mode=stream cannot be had with {PREFIX}spark.remote: the stream's function would run on the server. "
                "Use loop, which gives the same tables."
            )
    if values["source.mode"] == "stream" and not values["checkpoint.location"]:
        raise ConfigError(
            f"{PREFIX}checkpoint.location is missing: with {PREFIX}source.mode=stream it names a directory or URI for its checkpoint."
        )


def check_table(values: Mapping[str, Any]) -> None:
    """What is set for one table: a way of writing that has the ordering, a layout that the format has. Raises ConfigError."""
    parse_column_types(values.get("column-types") or "")
    if values["tables.write-mode"] == "scd2" and values["tables.ordering"] != "log":
        raise ConfigError(f"{PREFIX}tables.ordering must be log for tables of versions ({PREFIX}tables.write-mode=scd2).")
    if values["format"] != "delta":
        return
    if any(partition.transform for partition in parse_partitions(values["tables.default-partition-by"] or "")):
        raise ConfigError(f"Delta is partitioned by columns as they are; {values['tables.default-partition-by']} has a transform of one.")
    if values["tables.default-partition-by"] and values["tables.cluster-by"]:
        raise ConfigError("Delta takes partitions or clustering columns, not both: set partition-by or cluster-by.")
    if values["tables.default-commit-branch"]:
        raise ConfigError("Delta has no branches; unset commit-branch, or write Iceberg tables.")


def check_reconcile(values: Mapping[str, Any], *, tolerates: bool) -> None:
    """That a snapshot shows which rows are gone. Raises ConfigError.

    Args:
        tolerates: whether bad records are passed over.
    """
    if not values["snapshot.reconcile"]:
        return
    name = f"{PREFIX}snapshot.reconcile"
    for other, wanted, why in (
        ("tables.write-mode", "upsert", "the others keep what was"),
        ("tables.ordering", "log", "a row that a snapshot shows, but that is not newer, would be taken for one that it did not"),
        ("fail-on-data-loss", True, "rows whose records are missing would be deleted"),
        ("tables.dynamic-enabled", False, "the rows of a topic must be one table's"),
    ):
        if values[other] != wanted:
            raise ConfigError(f"{name} needs {PREFIX}{other}={str(wanted).lower()}: {why}.")
    if values["tables.delete-mode"] == "ignore":
        raise ConfigError(f"{name} deletes rows, and {PREFIX}tables.delete-mode=ignore keeps them; set one of them otherwise.")
    if values["tables"]:
        raise ConfigError(f"{name} cannot be had with {PREFIX}tables: the rows of a topic must be one table's.")
    if tolerates:
        raise ConfigError(f"{name} cannot be had with errors.tolerance=all: a row whose record is bad would be deleted.")


def parse_column_types(text: str) -> dict[str, str]:
    """``column:type`` pairs, separated by commas outside of parentheses and angle brackets.

    Raises:
        ConfigError: a pair has no type.
    """
    found: dict[str, str] = {}
    for pair in _pieces(text):
        name, colon, type_ = pair.partition(":")
        if not (colon and name.strip() and type_.strip()):
            raise ConfigError(
                f"Invalid value {text} for column-types: pairs of a column and its type are expected, as price:decimal(10,2)."
            )
        if not _is_type(type_.strip()):  # it becomes a part of SQL, in which a function could call any method of the JVM
            raise ConfigError(f"Invalid type {type_.strip()} of column {name.strip()} for column-types.")
        found[name.strip()] = type_.strip()
    return found


_PLAIN = re.compile(r"[A-Za-z_][\w.]*(\(\s*\d+\s*(,\s*\d+\s*)?\))?")


def _is_type(text: str) -> bool:
    """Whether it is a type of Spark's, or the name of a logical type."""
    if _PLAIN.fullmatch(text):
        return True
    try:
        return _is_plain(parse_type(text))
    except ValueError:
        return False


def _is_plain(type_: Type) -> bool:
    match type_:
        case Struct(fields):
            return all(map(_is_plain, fields.values()))
        case Array(element):
            return _is_plain(element)
        case Map(key, value):
            return _is_plain(key) and _is_plain(value)
        case str():
            return _PLAIN.fullmatch(type_) is not None


def _pieces(text: str) -> list[str]:
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces if piece.strip()]
