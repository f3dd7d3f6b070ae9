"""The channels of a connector's `signal.enabled.channels`, opened."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connect_py.api.permissions import allowed_file
from connect_py.errors import ConfigError
from connectors.engine.config import ParsedConfig
from connectors.engine.plugins.extensions import extensions
from connectors.engine.signal.channels import FileChannel, InProcessChannel, SignalChannel
from connectors.engine.signal.records import SignalRecord, parse_document

log = logging.getLogger(__name__)

#: Entry points of packages that add channels: the name is the channel's, the value a function of the connector's properties and name that
#: opens one: `read` gives signals as objects ``{"id": …, "type": …, "data": {…}, "additional-data": {…}}``, `committed` and `close` are
#: those of `SignalChannel`.
ENTRY_POINTS = "connect_py.signal_channels"
#: Channels that need nothing to be opened: the stream itself, code of this process, the worker's REST API.
_OPEN = ("source", "in-process", "rest")


def takes_rest(config: ParsedConfig) -> bool:
    """Whether signals may come by the worker's REST API: when the list names `rest`, and when nobody chose channels at all."""
    names = config.names("signal.enabled.channels")
    return "rest" in names or names == ["source"]


def open_channels(config: ParsedConfig, connector: str) -> list[SignalChannel]:
    """Every channel that has to be polled. Code of the same process can always send.

    Raises:
        ConfigError: there is no such channel, or it cannot be opened.
    """
    found: list[SignalChannel] = [InProcessChannel(connector)]
    for name in config.names("signal.enabled.channels"):
        if name in _OPEN:
            continue
        if name == "file":
            # the channel empties the file, and what is no signal in it goes to the log
            found.append(FileChannel(Path(allowed_file("signal.file", config.raw.get("signal.file") or "file-signals.txt"))))
        elif name == "kafka":
            # the client is loaded only where it is wanted
            from connectors.engine.signal.kafka_channel import KafkaChannel

            found.append(KafkaChannel(config.raw, config.topic_prefix))
        elif name == "jmx":
            log.warning("signal.enabled.channels: there is no JMX here; use the channel rest, kafka, file or source instead of jmx")
        else:
            found.append(_custom(name, config, connector))
    return found


def _custom(name: str, config: ParsedConfig, connector: str) -> SignalChannel:
    for entry in extensions(ENTRY_POINTS):
        if entry.name.lower() == name:
            return _Foreign(name, entry.load()(dict(config.raw), connector))
    raise ConfigError(
        f"signal.enabled.channels: there is no channel '{name}'; choose of source, kafka, file, rest, in-process, or install the package "
        f"that adds it ({ENTRY_POINTS})"
    )


class _Foreign:
    """A package's channel. What it raises is logged: it keeps neither other channels nor the source from going on."""

    def __init__(self, name: str, channel: Any) -> None:
        self._name = name
        self._channel = channel

    def read(self) -> list[SignalRecord]:
        return [record for signal in self._call("read") or () if (record := self._record(signal)) is not None]

    def committed(self) -> None:
        self._call("committed")

    def close(self) -> None:
        self._call("close")

    def _call(self, method: str) -> Any:
        try:
            return getattr(self._channel, method)()
        except Exception:
            log.exception("The signal channel '%s' failed", self._name)
            return None

    def _record(self, signal: Mapping[str, Any]) -> SignalRecord | None:
        try:
            return parse_document(json.dumps(dict(signal)), self._name, default_id="")
        except (ValueError, TypeError) as error:
            log.warning("Skipped a signal of the channel '%s': %s", self._name, error)
            return None
