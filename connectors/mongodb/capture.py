"""What is captured (`io.debezium.connector.mongodb.Filters`), and how a change stream is opened for it (`ChangeStreamPipelineFactory`).

The stages that the server gets are a coarse filter: whatever the exact one (`NamespaceFilter`) accepts passes them, and the exact one is
applied to every event again. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from connect_py.errors import ConfigError
from connectors.engine.relational.tables import NameFilter, compile_java_regex, parse_regexes

#: The server's own databases are never captured, whatever lists say.
SYSTEM_DATABASES: Final = frozenset({"admin", "config", "local"})

_KINDS = ("database", "collection")


def split_namespace(namespace: str) -> tuple[str, str]:
    """Return database and collection; a collection's name may hold dots."""
    database, _, collection = namespace.partition(".")
    return database, collection


@dataclass(frozen=True)
class NamespaceFilter:
    """What is captured.

    Attributes:
        literal: ``filters.match.mode=literal``: names are compared as they are, trimmed, otherwise as regexes; both in any case.
        texts: the lists as they were given, by property, for the server's own stage.
        forced: the signal collection, which is captured whatever lists say.
    """

    databases: NameFilter
    collections: NameFilter
    snapshot: NameFilter
    literal: bool
    texts: Mapping[str, str]
    forced: str | None = None

    @classmethod
    def parse(cls, raw: Mapping[str, str], forced: str | None) -> NamespaceFilter:
        """Parse the properties of a valid configuration. Raises ConfigError."""
        literal = raw.get("filters.match.mode", "regex").strip().lower() == "literal"
        texts = {name: text for kind in _KINDS for side in ("include", "exclude") if (text := raw.get(name := f"{kind}.{side}.list", ""))}
        read = _names if literal else parse_regexes
        databases, collections = (
            NameFilter(tuple(read(texts.get(f"{kind}.include.list"))), tuple(read(texts.get(f"{kind}.exclude.list")))) for kind in _KINDS
        )
        snapshot = NameFilter.parse(raw.get("snapshot.include.collection.list"), None)
        return cls(databases, collections, snapshot, literal, texts, forced)

    def is_captured(self, namespace: str) -> bool:
        """Return whether changes of a collection become records."""
        if namespace == self.forced:
            return True
        database = split_namespace(namespace)[0]
        return database not in SYSTEM_DATABASES and self.databases(database) and self.collections(namespace)

    def is_snapshotted(self, namespace: str, only: list[str] | None = None) -> bool:
        """Return whether a snapshot reads a captured collection.

        Args:
            only: regexes of what a signal asks for, instead of `snapshot.include.collection.list`.
        """
        if not self.is_captured(namespace):
            return False
        if only is None:
            return self.snapshot(namespace)
        return any(compile_java_regex(pattern).fullmatch(namespace) for pattern in only)


def _names(text: str | None) -> list[re.Pattern[str]]:
    # in any case: the server's stage is exact, so that only a snapshot shows the difference
    return [re.compile(re.escape(part.strip()), re.IGNORECASE) for part in (text or "").split(",") if part.strip()]


Stage = dict[str, Any]

#: Operations that become records, with the codes of `skipped.operations` that leave them out.
_OPERATIONS: Final = {"insert": "c", "update": "u", "replace": "u", "delete": "d"}


@dataclass(frozen=True)
class Capture:
    """What `capture.*` and `cursor.*` ask for.

    Attributes:
        database: of the scopes `database` and `collection`, else None.
        collection: of the scope `collection`, else None.
        stages: what follows `$changeStream`.
        options: options of `$changeStream` itself: which documents come with an event.
        start_at: `capture.start.op.time`: seconds and increment; None without.
        splits: whether the server splits large events.
    """

    database: str | None = None
    collection: str | None = None
    stages: tuple[Stage, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    start_at: tuple[int, int] | None = None
    splits: bool = False

    @property
    def shown_target(self) -> str:
        """What is watched, for logs."""
        return ".".join(part for part in (self.database, self.collection) if part) or "the whole deployment"


def capture_of(raw: Mapping[str, str], namespaces: NamespaceFilter, skipped: frozenset[str]) -> Capture:
    """Parse the properties.

    Raises:
        ConfigError: the user's pipeline, the threshold of oversize events or the target is missing or malformed.
    """
    database, collection = _target(raw)
    mode = raw["capture.mode"].strip().lower()
    options = {}
    if "update_full" in mode:
        post_image = raw["capture.mode.full.update.type"].strip().lower() == "post_image"
        options["fullDocument"] = "whenAvailable" if post_image else "updateLookup"
    if mode.endswith("pre_image"):
        options["fullDocumentBeforeChange"] = "whenAvailable"
    oversize = raw["cursor.oversize.handling.mode"].strip().lower()
    stages = [_skip_stage(raw)] if oversize == "skip" else []
    internal = _internal_stages(namespaces, [name for name, letter in _OPERATIONS.items() if letter not in skipped])
    user = _user_stages(raw.get("cursor.pipeline"))
    order = raw["cursor.pipeline.order"].strip().lower()
    stages += {"internal_first": internal + user, "user_first": user + internal}.get(order, user)
    splits = oversize == "split"
    if splits:
        stages.append({"$changeStreamSplitLargeEvent": {}})
    return Capture(database, collection, tuple(stages), options, _start(raw.get("capture.start.op.time")), splits)


def _target(raw: Mapping[str, str]) -> tuple[str | None, str | None]:
    scope, target = raw["capture.scope"].strip().lower(), (raw.get("capture.target") or "").strip()
    if scope == "deployment":
        return None, None
    if not target:
        raise ConfigError(f"capture.target is missing: with capture.scope={scope} it names the {scope} to watch")
    if scope == "database":
        return target, None
    database, collection = split_namespace(target)
    if not collection:
        raise ConfigError(f"capture.target={target} is no collection: with capture.scope=collection it is <database>.<collection>")
    return database, collection


def _start(text: str | None) -> tuple[int, int] | None:
    if text is None or text.strip() == "-1":
        return None
    if not re.fullmatch(r"\d+", text.strip()) or int(text) >= 1 << 64:
        raise ConfigError(f"capture.start.op.time={text} is no BSON timestamp: it is seconds << 32 | increment, as one number")
    return int(text) >> 32, int(text) & 0xFFFFFFFF


def _skip_stage(raw: Mapping[str, str]) -> Stage:
    text = raw["cursor.oversize.skip.threshold"].strip()
    if not re.fullmatch(r"\d+", text) or int(text) <= 0:
        raise ConfigError("Invalid threshold value for skipped document size: cursor.oversize.skip.threshold must be more than 0 bytes")
    sizes = [{"$expr": {"$lte": [{"$bsonSize": name}, int(text)]}} for name in ("$fullDocument", "$fullDocumentBeforeChange")]
    return {"$match": {"$and": sizes}}


def _user_stages(text: str | None) -> list[Stage]:
    if not text or not text.strip():
        return []
    # the driver is loaded where there is a pipeline only
    from connectors.mongodb.shell_notation import parse_notation

    try:
        found = parse_notation(text)
    except ValueError as error:
        raise ConfigError(f"Change stream pipeline JSON is invalid: {error}") from None
    if not isinstance(found, list) or not all(isinstance(stage, dict) for stage in found):
        raise ConfigError(f"Change stream pipeline JSON is invalid: it is no array of stages: {json.dumps(text)[:200]}")
    return found


def _internal_stages(namespaces: NamespaceFilter, operations: list[str]) -> list[Stage]:
    """Return a coarse filter by name and operation; inserts into the signal collection pass in any case, since they are signals."""
    wanted = {"operationType": {"$in": operations}}
    signals = None
    if namespaces.forced is not None:
        name = dict(zip(("db", "coll"), split_namespace(namespaces.forced), strict=True))
        signals = {"ns": name, "operationType": {"$in": sorted({*operations, "insert"})}}
    if namespaces.literal:
        return [{"$match": _or_signals([*_literal(namespaces), wanted], signals)}]
    conditions = _patterns(namespaces)
    if not conditions:
        return [{"$match": _or_signals([wanted], signals)}]
    event = {f"event.{name}": value for name, value in signals.items()} if signals else None
    return [
        {"$replaceRoot": {"newRoot": {"namespace": {"$concat": ["$ns.db", ".", "$ns.coll"]}, "event": "$$ROOT"}}},
        {"$match": _or_signals([*conditions, {"event.operationType": {"$in": operations}}], event)},
        {"$replaceRoot": {"newRoot": "$event"}},
    ]


def _or_signals(conditions: list[Stage], signals: Stage | None) -> Stage:
    found = conditions[0] if len(conditions) == 1 else {"$and": conditions}
    return found if signals is None else {"$or": [found, signals]}


def _literal(namespaces: NamespaceFilter) -> list[Stage]:
    found: list[Stage] = []
    for name, text in namespaces.texts.items():
        names = [part.strip() for part in text.split(",") if part.strip()]
        operator = "$in" if ".include." in name else "$nin"
        if name.startswith("database"):
            found.append({"ns.db": {operator: names}})
        else:
            values = [dict(zip(("db", "coll"), split_namespace(part), strict=True)) for part in names]
            found.append({"ns": {operator: values}})
    return found


def _patterns(namespaces: NamespaceFilter) -> list[Stage]:
    """Use include lists only: the server cannot apply an exclude list without dropping what the exact filter accepts."""
    found: list[Stage] = []
    for kind, subject in (("database", "event.ns.db"), ("collection", "namespace")):
        text = namespaces.texts.get(f"{kind}.include.list")
        parts = [part.strip().replace("\\,", ",") for part in re.split(r"(?<!\\),", text or "") if part.strip()]
        if parts:
            found.append({subject: {"$regex": "|".join(parts), "$options": "i"}})
    return found
