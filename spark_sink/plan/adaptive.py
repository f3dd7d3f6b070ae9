"""How large a batch may be: `lakehouse.max-offsets-per-trigger`; with `lakehouse.batch.adaptive` less, once that was too much. Pure."""

from __future__ import annotations

import logging

from spark_sink.config.sink_config import SinkConfig

_log = logging.getLogger("io.github.connectpy.spark.SparkLakehouseSinkTask")

#: A batch is never made smaller than this: what fails then does so for another reason.
_LEAST = 100


class Bound:
    """Halved when a batch was too large, grown by a quarter while batches take less than half of the interval between two."""

    def __init__(self, config: SinkConfig) -> None:
        self._most: int = config["max-offsets-per-trigger"]
        self._adaptive: bool = config["batch.adaptive"]
        self._half_interval_s: float = config["control.commit.interval-ms"] / 2000
        self.offsets = self._most

    def too_large(self) -> None:
        """A batch of this bound ran out of memory or time."""
        if self._adaptive and self.offsets > _LEAST:
            self.offsets = max(self.offsets // 2, _LEAST)
            _log.warning("A batch was too large; the next ones have at most %d offsets", self.offsets)

    def applied(self, seconds: float) -> None:
        """A batch of this bound has been applied."""
        if self.offsets < self._most and seconds < self._half_interval_s:
            self.offsets = min(self.offsets + max(self.offsets // 4, 1), self._most)
