"""Figures that a task reports of itself, in addition to those that the runtime counts for every task (KIP-877 is Connect's way)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: A number; a boolean, shown as 1 or 0; a text, shown as a label; or numbers by key (rows by table). None: not known now.
MetricValue = int | float | bool | str | Mapping[str, int | float] | None


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Figures that belong together: one JMX bean of a Java worker.

    Attributes:
        domain: such as ``kafka.connect`` or ``debezium.postgres``; begins the names.
        type: such as ``source-task-metrics``.
        tags: what the figures are about. The runtime adds connector and task to those that a task gives.
        values: by attribute, spelt as in JMX.
    """

    domain: str
    type: str
    tags: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, MetricValue] = field(default_factory=dict)
