"""Compute rates, averages and extremes over a moving window, as Kafka's metrics do
(`common/metrics/stats/{SampledStat,Rate,Avg,Max}.java`). Pure but for the clock that it is given.

A window of ``metrics.sample.window.ms`` × ``metrics.num.samples`` (30 s × 2) is kept in that many samples; one falls out as a whole, when
its last event is older than the window.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from connect_py.errors import ConfigError

_DEFAULT_WINDOW_MS = 30_000
_DEFAULT_SAMPLES = 2


@dataclass(frozen=True, slots=True)
class MetricSettings:
    """How windows are cut.

    Attributes:
        window_seconds: length of one sample.
        samples: how many are kept.
    """

    window_seconds: float = _DEFAULT_WINDOW_MS / 1000
    samples: int = _DEFAULT_SAMPLES

    @classmethod
    def of(cls, worker: Mapping[str, str]) -> MetricSettings:
        """From the worker's properties. Raises ConfigError."""

        def number(name: str, default: int) -> int:
            text = worker.get(name, str(default)).strip()
            if not text.isdigit() or int(text) < 1:
                raise ConfigError(f"Invalid value {text} for configuration {name}: it must be a whole number of at least 1.")
            return int(text)

        return cls(number("metrics.sample.window.ms", _DEFAULT_WINDOW_MS) / 1000, number("metrics.num.samples", _DEFAULT_SAMPLES))


class _Sample:
    __slots__ = ("count", "last", "maximum", "minimum", "started", "total")

    def __init__(self, started: float) -> None:
        self.started = self.last = started
        self.total = 0.0
        self.count = 0
        self.minimum = math.inf
        self.maximum = -math.inf


class Sampled:
    """A series of measurements. Owned by one thread."""

    __slots__ = ("_clock", "_samples", "_settings")

    def __init__(self, settings: MetricSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        # one more than are counted: the oldest may reach into the window
        self._samples: deque[_Sample] = deque(maxlen=settings.samples + 1)

    def record(self, value: float) -> None:
        """Take one measurement."""
        now = self._clock()
        if not self._samples or now - self._samples[-1].started >= self._settings.window_seconds:
            self._samples.append(_Sample(now))
        sample = self._samples[-1]
        sample.last = now
        sample.total += value
        sample.count += 1
        sample.minimum = min(sample.minimum, value)
        sample.maximum = max(sample.maximum, value)

    @property
    def rate(self) -> float:
        """The sum for each second. A window that has only begun counts as if all but its last sample had passed, so that the first second
        is no peak."""
        now = self._clock()
        live = self._live(now)
        if not live:
            return 0.0
        window, full = self._settings.window_seconds, self._settings.samples - 1
        elapsed = now - live[0].started
        elapsed += max(0, full - int(elapsed / window)) * window
        return sum(sample.total for sample in live) / (elapsed or window)

    @property
    def average(self) -> float:
        """NaN when nothing was measured."""
        live = self._live(self._clock())
        count = sum(sample.count for sample in live)
        return sum(sample.total for sample in live) / count if count else math.nan

    @property
    def maximum(self) -> float:
        """NaN when nothing was measured."""
        return max((sample.maximum for sample in self._live(self._clock())), default=math.nan)

    @property
    def minimum(self) -> float:
        """NaN when nothing was measured."""
        return min((sample.minimum for sample in self._live(self._clock())), default=math.nan)

    def _live(self, now: float) -> list[_Sample]:
        oldest = now - self._settings.window_seconds * self._settings.samples
        return [sample for sample in self._samples if sample.last > oldest]
