"""Choose which records a transform sees (`org.apache.kafka.connect.transforms.predicates`), and drop records (`…transforms.Filter`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_py.api import ConfigType, Importance, Route
from connect_py.api.config import REQUIRED, all_of, non_empty
from connect_py.api.transform import RowChange
from connect_py.data.java_regex import compile_java_regex
from connect_py.transforms.base import KAFKA, AnyRecord, Plugin, key, valid_regex


class HasHeaderKey(Plugin):
    """Records with at least one header of a name."""

    java_name = f"{KAFKA}predicates.HasHeaderKey"
    asks_for_route_only = True
    KEYS = (key("name", ConfigType.STRING, REQUIRED, Importance.MEDIUM, "The header name.", non_empty),)

    def use(self, config: Mapping[str, Any]) -> None:
        self._name = config["name"]

    def test(self, record: AnyRecord) -> bool:
        """Return whether the header is there."""
        return any(header.name == self._name for header in record.headers)


class RecordIsTombstone(Plugin):
    """Records whose value is null, whatever their schema."""

    java_name = f"{KAFKA}predicates.RecordIsTombstone"
    asks_for_route_only = True

    def test(self, record: AnyRecord) -> bool:
        """Return whether there is no value."""
        return record.value is None


class TopicNameMatches(Plugin):
    """Records whose whole topic name matches a regex."""

    java_name = f"{KAFKA}predicates.TopicNameMatches"
    asks_for_route_only = True
    KEYS = (
        key(
            "pattern",
            ConfigType.STRING,
            REQUIRED,
            Importance.MEDIUM,
            "A Java regular expression for matching against the name of a record's topic.",
            all_of(non_empty, valid_regex),
        ),
    )

    def use(self, config: Mapping[str, Any]) -> None:
        self._pattern = compile_java_regex(config["pattern"])

    def test(self, record: AnyRecord) -> bool:
        """Return whether the topic matches."""
        return self._pattern.fullmatch(record.topic) is not None


class Filter(Plugin):
    """Drops every record that it sees; a predicate decides which these are."""

    java_name = f"{KAFKA}Filter"

    handles_rows = True

    def apply(self, record: AnyRecord) -> AnyRecord | None:
        """Nothing is left."""
        return None

    def row_change(self, route: Route) -> RowChange:
        """Nothing is left of a row either."""
        return lambda key, value: None
