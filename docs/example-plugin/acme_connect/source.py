"""A source that polls a JSON feed over HTTP.

The feed answers ``GET <url>?after=<id>`` with an array of objects, oldest first, each with a whole number in the field ``feed.id.field``
that grows from object to object. The source partition is the feed's URL, the source offset the last object's number: a restart asks for
what comes after it.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from connect_py.api import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConfigValue,
    Importance,
    SourceConnector,
    SourceRecord,
    SourceTask,
    SourceTaskContext,
    between,
    non_empty,
)
from connect_py.data import INT64
from connect_py.errors import FatalTaskError, RetriableError

URL, TOPIC, ID_FIELD, TOKEN, INTERVAL = "feed.url", "topic", "feed.id.field", "feed.token", "feed.interval.ms"

DEFINITION = ConfigDef(
    [
        ConfigKey(URL, ConfigType.STRING, REQUIRED, Importance.HIGH, "Address of the feed, http or https.", validator=non_empty),
        ConfigKey(TOPIC, ConfigType.STRING, REQUIRED, Importance.HIGH, "Topic to write to.", validator=non_empty),
        ConfigKey(ID_FIELD, ConfigType.STRING, "id", Importance.MEDIUM, "Field with the number that grows.", validator=non_empty),
        ConfigKey(TOKEN, ConfigType.PASSWORD, None, Importance.MEDIUM, "Bearer token, where the feed wants one."),
        ConfigKey(INTERVAL, ConfigType.LONG, 1000, Importance.LOW, "Pause between two requests that found nothing.", validator=between(1)),
    ]
)


class HttpFeedSourceConnector(SourceConnector):
    """One feed, one task."""

    java_name = "com.acme.connect.HttpFeedSourceConnector"
    java_task_name = "com.acme.connect.HttpFeedSourceTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Properties."""
        return DEFINITION

    def validate(self, config: Mapping[str, str | None]) -> list[ConfigValue]:
        """Every property by itself, and that the address is one of the web."""
        values = DEFINITION.validate(config)
        for value in values:
            if value.name == URL and value.value and urllib.parse.urlsplit(value.value).scheme not in ("http", "https"):
                value.errors.append(f"{URL} must begin with http:// or https://")
        return values

    def start(self, config: Mapping[str, str]) -> None:
        """Keep the configuration for the task."""
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """A feed has one order, so there is one task however many are allowed."""
        return [self._config]

    def task_class(self) -> type[SourceTask]:
        """The class of its task."""
        return HttpFeedSourceTask


class HttpFeedSourceTask(SourceTask):
    """Asks the feed again and again."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Go on after the last object that Kafka holds."""
        values = DEFINITION.parse(config)
        self._url, self._topic, self._field = values[URL], values[TOPIC], values[ID_FIELD]
        self._pause = min(values[INTERVAL] / 1000, 0.5)  # a poll returns within about half a second, so that a stop is quick
        self._headers = {"Accept": "application/json"}
        if values[TOKEN] is not None:
            self._headers["Authorization"] = f"Bearer {values[TOKEN].reveal()}"
        self._partition = {"url": self._url}
        self._after = int((context.offset(self._partition) or {}).get("id") or 0)

    def poll(self) -> Sequence[SourceRecord] | None:
        """The objects that came since the last one."""
        found = self._ask()
        if not found:
            self._stopped.wait(self._pause)
            return None
        records = [self._record(each) for each in found]
        self._after = max(int(record.source_offset["id"] or 0) for record in records)
        return records

    def stop(self) -> None:
        """Make a waiting poll return."""
        self._stopped.set()

    def _record(self, found: dict[str, Any]) -> SourceRecord:
        number = found.get(self._field) if isinstance(found, dict) else None
        if not isinstance(number, int):
            raise FatalTaskError(f"An object of the feed {self._url} has no whole number in {self._field}. Records before it are in Kafka.")
        return SourceRecord(self._partition, {"id": number}, self._topic, INT64, number, None, found)

    def _ask(self) -> list[dict[str, Any]]:
        request = urllib.request.Request(f"{self._url}?after={self._after}", headers=self._headers)  # noqa: S310  # validated
        try:
            with urllib.request.urlopen(request, timeout=4) as answer:  # noqa: S310
                found: list[dict[str, Any]] = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise FatalTaskError(f"The feed {self._url} refuses with status {error.code}. Check {URL} and {TOKEN}.") from error
            raise self._later(str(error.code)) from error
        except OSError as error:
            raise self._later(str(error)) from error
        except ValueError as error:
            raise FatalTaskError(f"The feed {self._url} did not answer JSON.") from error
        return found

    def _later(self, why: str) -> RetriableError:
        self._stopped.wait(self._pause)
        return RetriableError(f"The feed {self._url} does not answer now ({why}); it is asked again.")
