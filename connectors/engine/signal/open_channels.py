"""The channels of a connector's `signal.enabled.channels`, opened."""

from __future__ import annotations

import logging
from pathlib import Path

from connect_py.errors import ConfigError
from connectors.engine.config import ParsedConfig
from connectors.engine.signal.channels import FileChannel, InProcessChannel, SignalChannel

log = logging.getLogger(__name__)


def open_channels(config: ParsedConfig, connector: str) -> list[SignalChannel]:
    """Every channel but `source`, which the stream is. Code of the same process can always send.

    Raises:
        ConfigError: there is no such channel.
    """
    found: list[SignalChannel] = [InProcessChannel(connector)]
    for name in config.names("signal.enabled.channels"):
        if name == "file":
            found.append(FileChannel(Path(config.raw.get("signal.file") or "file-signals.txt")))
        elif name == "kafka":
            # the client is loaded only where it is wanted
            from connectors.engine.signal.kafka_channel import KafkaChannel

            found.append(KafkaChannel(config.raw, config.topic_prefix))
        elif name == "jmx":
            log.warning("signal.enabled.channels: there is no JMX here; use the channel kafka, file or source instead of jmx")
        elif name not in ("source", "in-process"):
            raise ConfigError(f"signal.enabled.channels: there is no channel '{name}'; choose of source, kafka, file, in-process")
    return found
