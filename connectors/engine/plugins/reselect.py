"""Columns that are read again from the table because an event does not have their value (`ReselectColumnsPostProcessor.java`).

Which columns, and of which rows: pure. How a row is asked for is the connector's. It is done on the database's texts, before they are
encoded, so that a value that was read again has the form that it would have had in the event, rules that hide values included.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from connect_py.errors import ConfigError, ConnectError, FatalTaskError
from connectors.engine.encode.plan import ColumnPlan
from connectors.engine.encode.texts import UNCHANGED, Text
from connectors.engine.plugins.post_processors import RESELECT, configured
from connectors.engine.relational.filters import matches_any, parse_regexes

log = logging.getLogger(__name__)

#: Texts of one row with its missing values filled in; None when none is missing.
Fill = Callable[[Sequence[Text]], "Sequence[Text] | None"]

#: Asks for the columns at some places of the row that has these texts at the places of its key; two rows at most. Raises NotReadError.
Read = Callable[[Sequence[int], Sequence[tuple[int, str]]], Sequence[Sequence[Text]]]


class NotReadError(ConnectError):
    """The database refused; asking again would not help."""


@dataclass(frozen=True, slots=True)
class Reselect:
    """The options of one post-processor.

    Attributes:
        include: regexes of ``schema.table:column``; `exclude` counts only without them.
        unavailable: whether values that the database did not send are asked for; `nulls` whether NULLs are.
        by_event_key: whether the record's key finds the row, not the table's own.
        fails: whether a row that is not found, or cannot be asked for, fails the task.
    """

    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()
    unavailable: bool = True
    nulls: bool = True
    by_event_key: bool = False
    fails: bool = False

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> Reselect | None:
        """From a connector's properties; None when nothing is read again.

        Raises:
            ConfigError: a property is wrong.
        """
        found = [each.properties for each in configured(config) if each.type == RESELECT]
        if not found:
            return None
        if len(found) > 1:
            raise ConfigError(f"post.processors has {RESELECT} {len(found)} times; one with all columns does the same")
        properties = found[0]
        mode = properties.get("reselect.error.handling.mode", "warn").strip().lower()
        if mode not in ("warn", "fail"):
            raise ConfigError(f"reselect.error.handling.mode={mode}: it must be warn or fail")
        if _flag(properties, "reselect.cache.enabled", False):
            log.warning("reselect.cache.enabled has no effect: every value that is missing is read from the table")
        return cls(
            tuple(parse_regexes(properties.get("reselect.columns.include.list"))),
            tuple(parse_regexes(properties.get("reselect.columns.exclude.list"))),
            _flag(properties, "reselect.unavailable.values", True),
            _flag(properties, "reselect.null.values", True),
            _flag(properties, "reselect.use.event.key", False),
            mode == "fail",
        )

    def is_selected(self, table: str, column: str) -> bool:
        """Whether a column's missing values are read again."""
        name = f"{table}:{column}"
        return matches_any(self.include, name) if self.include else not matches_any(self.exclude, name)

    def missing(self, table: str, columns: Sequence[ColumnPlan]) -> Callable[[Sequence[Text]], list[int]]:
        """A function that gives the places of a row's texts that are to be read again. A NULL with a default shows as that: it is none."""
        selected = [place for place, plan in enumerate(columns) if not plan.constant and self.is_selected(table, plan.name)]
        nulls = frozenset(place for place in selected if self.nulls and columns[place].schema.default is None and not columns[place].null)
        unavailable = self.unavailable

        def places(texts: Sequence[Text]) -> list[int]:
            return [place for place in selected if (texts[place] is None and place in nulls) or (texts[place] is UNCHANGED and unavailable)]

        return places

    def filler(self, table: str, columns: Sequence[ColumnPlan], key: Sequence[str], event_key: Sequence[str], read: Read) -> Fill | None:
        """The function for the rows of a table; None where a row cannot be found again.

        Args:
            key: of the table; `event_key` that of records, without which nothing is read again.
            read: the connector's; what else it raises is raised.
        """
        places = {plan.name: place for place, plan in enumerate(columns)}
        wanted = event_key if self.by_event_key else key
        if not event_key or not wanted or any(name not in places for name in wanted):
            return None
        missing = self.missing(table, columns)
        shown = ", ".join(wanted)

        def fill(texts: Sequence[Text]) -> Sequence[Text] | None:
            gone = missing(texts)
            keys = [(places[name], texts[places[name]]) for name in wanted]
            if not gone or not all(isinstance(text, str) for _, text in keys):
                return None
            try:
                rows = read(gone, [(place, str(text)) for place, text in keys])
            except NotReadError as error:
                self._failed(f"Failed to re-select columns for table {table} by its key ({shown}): {error}")
                return None
            if not rows:
                self._failed(f"Failed to find row in table {table} by its key ({shown}): it was deleted since")
                return None
            if len(rows) > 1:
                log.warning("Re-selection detected multiple rows for the same key in table %s, using first.", table)
            filled = list(texts)
            for place, text in zip(gone, rows[0], strict=True):
                filled[place] = text
            return filled

        return fill

    def _failed(self, text: str) -> None:
        if self.fails:
            raise FatalTaskError(f"{text}. reselect.error.handling.mode is fail; the event was not sent, and comes again after a restart")
        log.warning("%s. The event goes without the values", text)


def _flag(properties: Mapping[str, str], name: str, default: bool) -> bool:
    text = properties.get(name, "").strip().lower()
    return text == "true" if text else default
