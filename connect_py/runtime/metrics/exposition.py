"""Metric groups as Prometheus' text, under the names that dashboards of Java workers look for. Pure.

There are two families of names, made by the two usual sets of rules for the JMX exporter:

- `kafka` (the default): Confluent's and Debezium's. ``kafka_connect_source_task_metrics_source_record_poll_total{connector,task}``,
  ``kafka_connect_worker_metrics_connector_count``, ``debezium_metrics_MilliSecondsBehindSource{context,name,plugin}``. The worker's own
  groups begin with ``connect-``, and some dashboards (Confluent's, those for Strimzi's metrics reporter) write that twice:
  ``kafka_connect_connect_worker_metrics_connector_count``. They are few figures, so both spellings are given.
- `strimzi`: Strimzi's and the JMX exporter's own example. ``kafka_connect_source_task_source_record_poll_total``,
  ``kafka_connect_worker_connector_count``, ``kafka_connect_connector_status{connector,status}``; Debezium's are the same.

A text is a label of a series of value 1.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from connect_py.api.metrics import MetricGroup, MetricValue

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_]")


class Names(enum.Enum):
    """See the module."""

    KAFKA = "kafka"
    STRIMZI = "strimzi"


class _Series(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


def render(
    groups: Iterable[MetricGroup], accept: str = "", names: Names = Names.KAFKA, process: Iterable[Collector] = ()
) -> tuple[bytes, str]:
    """A scrape's answer and its content type.

    Args:
        accept: the request's ``Accept`` header: OpenMetrics is given to who asks for it.
        process: further collectors of prometheus-client, such as those of this process.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Groups(groups, names))
    for collector in process:
        registry.register(collector)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Groups(Collector):
    def __init__(self, groups: Iterable[MetricGroup], names: Names) -> None:
        self._groups = groups
        self._names = names

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
        for group in self._groups:
            for series in _series(group, self._names):
                # two connectors may share a topic.prefix or a client id; a scrape with a series given twice is refused as a whole
                key = series.name, tuple(sorted(series.labels.items()))
                if key not in seen:
                    seen.add(key)
                    metric = found.get(series.name) or found.setdefault(series.name, _metric(series.name, group))
                    metric.add_sample(series.name, dict(series.labels), series.value)
        yield from found.values()


def _metric(name: str, group: MetricGroup) -> Metric:
    about = f"{group.domain}:type={group.type}"
    return Metric(name.removesuffix("_total"), about, "counter") if name.endswith("_total") else Metric(name, about, "gauge")


def _series(group: MetricGroup, names: Names) -> Iterator[_Series]:
    labels = _labels(group, names)
    texts = {_clean(name): value for name, value in group.values.items() if isinstance(value, str)}
    for prefix in _prefixes(group, names):
        for attribute, value in group.values.items():
            name = prefix + _clean(attribute)
            if isinstance(value, str):
                if group.type != "app-info":
                    yield _Series(name, {**labels, _clean(attribute): value}, 1)
            elif isinstance(value, Mapping):
                for key, number in value.items():
                    yield _Series(name, {**labels, _key_label(attribute): str(key)}, _number(number))
            else:
                yield _Series(name, labels, _number(value))
        if texts and group.type in ("connector-metrics", "app-info") and names is Names.KAFKA:
            yield _Series(prefix.rstrip("_"), {**labels, **texts}, 1)


def _prefixes(group: MetricGroup, names: Names) -> list[str]:
    if group.domain.startswith("debezium."):
        return ["debezium_metrics_"]
    domain, type_ = _clean(group.domain), group.type
    if group.domain not in ("kafka.connect", "kafka.producer", "kafka.consumer"):
        return [f"{domain}_{_clean(type_)}_"]
    if names is Names.STRIMZI:
        # the client's name is the beginning of its groups' names, and not repeated
        short = type_.removesuffix("-metrics") if type_ != "app-info" else ""
        short = short.removeprefix("connect-" if group.domain == "kafka.connect" else domain.removeprefix("kafka_"))
        return ["_".join(part for part in (domain, _clean(short).strip("_"), "") if part) + "_"]
    short = type_.removeprefix("connect-")
    return [f"{domain}_{_clean(short)}_"] + ([f"{domain}_{_clean(type_)}_"] if short != type_ else [])


def _labels(group: MetricGroup, names: Names) -> dict[str, str]:
    """Debezium's beans are labelled by its own example's rules: `name` is the server, `plugin` the connector's kind."""
    if group.domain.startswith("debezium."):
        own = {"server": "name"}
        return {"plugin": group.domain.partition(".")[2]} | {own.get(name, _clean(name)): value for name, value in group.tags.items()}
    joiner = "" if names is Names.STRIMZI else "_"
    return {_clean(name.replace("-", joiner)): value for name, value in group.tags.items()}


def _key_label(attribute: str) -> str:
    """What a map's keys are. Debezium's example calls those of RowsScanned tables."""
    return "table" if attribute == "RowsScanned" or attribute.startswith("Table") else "key"


def _number(value: MetricValue) -> float:
    """What the pipe from the task could not carry (NaN) came as None."""
    return float(value) if isinstance(value, int | float) else math.nan


def _clean(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", name)
