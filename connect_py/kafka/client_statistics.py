"""librdkafka's statistics, as the figures by which Java clients are watched
(`clients/producer/internals/SenderMetricsRegistry.java`, `consumer/internals/FetchMetricsRegistry.java`, `common/network/Selector.java`;
librdkafka's STATISTICS.md). What librdkafka does not know (buffer pool waits, compression rates) is left out.

A client reports every `INTERVAL_MS`, on the thread that polls it; rates are over the time between two reports.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from connect_py.api.task import MetricGroup, MetricValue
from connect_py.kafka.client_log import BrokerWatch

INTERVAL_MS = 5000

#: librdkafka's name of a counter of one client → Java's, without "-total"; each has a rate, too.
_COUNTERS = {"tx": "request", "rx": "response", "tx_bytes": "outgoing-byte", "rx_bytes": "incoming-byte"}
_BROKER_COUNTERS = {"tx": "request", "rx": "response", "txbytes": "outgoing-byte", "rxbytes": "incoming-byte"}

_Values = dict[str, MetricValue]

#: What a closed client's figures keep; the others are 0.
_KEPT = re.compile(r".*-total|buffer-.*|start-time-ms")


def statistics_config(take: Callable[[str], None] | None) -> dict[str, object]:
    """Return settings of a client whose statistics are wanted; none without a reader."""
    return {} if take is None else {"statistics.interval.ms": INTERVAL_MS, "stats_cb": take}


class ClientStatistics:
    """The last figures of one client, or of several one after the other, whose totals are added up. Owned by the thread that polls them."""

    def __init__(self) -> None:
        self._groups: list[MetricGroup] = []
        self._closed: dict[tuple[object, ...], MetricGroup] = {}
        self._watch = BrokerWatch()
        self._before: Mapping[str, Any] = {}
        self._began_ms = int(time.time() * 1000)

    def groups(self) -> list[MetricGroup]:
        """As of the last report; none before the first."""
        return self._groups

    @property
    def awaits_broker(self) -> bool:
        """Whether the log says that a broker cannot be reached, which the client's reports may say the end of."""
        return self._watch.awaits_broker

    def client_closed(self) -> None:
        """Take the end of the client: totals stay, and those of the next one are added to them."""
        self._closed = {_key(group): _at_rest(group) for group in self._groups}
        self._groups, self._before = list(self._closed.values()), {}
        self._watch.client_closed()

    def take(self, report: str) -> None:
        """Take a report of librdkafka."""
        now: Mapping[str, Any] = orjson.loads(report)
        self._watch.take(now)
        elapsed = (now["ts"] - self._before["ts"]) / 1e6 if self._before else 0.0
        kind = now["type"]
        domain, tags = f"kafka.{kind}", {"client-id": now["client_id"]}
        brokers = [broker for broker in now["brokers"].values() if broker["nodeid"] >= 0 and broker["source"] == "learned"]
        groups = [MetricGroup(domain, f"{kind}-metrics", tags, self._client(now, elapsed, brokers))]
        groups += [
            MetricGroup(domain, f"{kind}-node-metrics", {**tags, "node-id": f"node-{broker['nodeid']}"}, _node(broker))
            for broker in brokers
        ]
        groups += _producer_topics(now, tags) if kind == "producer" else self._consumer(now, elapsed, tags)
        groups.append(MetricGroup(domain, "app-info", tags, {"start-time-ms": self._began_ms}))
        self._groups, self._before = self._with_closed(groups) if self._closed else groups, now

    def _with_closed(self, groups: list[MetricGroup]) -> list[MetricGroup]:
        """Return groups with the totals of closed clients, and what only these had."""
        left = dict(self._closed)
        return [_added(group, left.pop(_key(group), None)) for group in groups] + list(left.values())

    def _rate(self, now: Mapping[str, Any], name: str, elapsed: float) -> float:
        return (now[name] - self._before[name]) / elapsed if elapsed > 0 else 0.0

    def _client(self, now: Mapping[str, Any], elapsed: float, brokers: list[Mapping[str, Any]]) -> _Values:
        every = now["brokers"].values()
        values: _Values = {
            "connection-count": sum(broker["state"] == "UP" for broker in every),
            "connection-creation-total": sum(broker["connects"] for broker in every),
            "connection-close-total": sum(broker["disconnects"] for broker in every),
            "requests-in-flight": sum(broker["waitresp_cnt"] for broker in every),
            **_latency(brokers),
        }
        for theirs, ours in _COUNTERS.items():
            values[f"{ours}-total"] = now[theirs]
            values[f"{ours}-rate"] = self._rate(now, theirs, elapsed)
        if now["type"] == "producer":
            sizes = [topic["batchsize"] for topic in now["topics"].values()]
            values |= {
                "record-send-total": now["txmsgs"],
                "record-send-rate": self._rate(now, "txmsgs", elapsed),
                "record-retry-total": sum(broker["txretries"] for broker in every),
                "record-queue-time-avg": _mean((broker["int_latency"] for broker in brokers), 1000),
                "record-queue-time-max": max((broker["int_latency"]["max"] for broker in brokers), default=0) / 1000,
                "batch-size-avg": _mean(sizes),
                "batch-size-max": max((size["max"] for size in sizes), default=0),
                "records-per-request-avg": _mean(topic["batchcnt"] for topic in now["topics"].values()),
                "buffer-total-bytes": now["msg_size_max"],
                "buffer-available-bytes": max(0, now["msg_size_max"] - now["msg_size"]),
            }
        return values

    def _consumer(self, now: Mapping[str, Any], elapsed: float, tags: Mapping[str, str]) -> list[MetricGroup]:
        domain, type_ = "kafka.consumer", "consumer-fetch-manager-metrics"
        groups, lags = [], []
        for topic, number, partition in _partitions(now):
            if partition.get("fetch_state") in (None, "none"):
                continue
            values: _Values = {"records-consumed-total": partition["rxmsgs"], "bytes-consumed-total": partition["rxbytes"]}
            if partition["consumer_lag"] >= 0:
                lags.append(partition["consumer_lag"])
                values["records-lag"] = partition["consumer_lag"]
            groups.append(MetricGroup(domain, type_, {**tags, "topic": topic, "partition": number}, values))
        whole: _Values = {
            "records-consumed-total": now["rxmsgs"],
            "records-consumed-rate": self._rate(now, "rxmsgs", elapsed),
            "bytes-consumed-total": now["rxmsg_bytes"],
            "bytes-consumed-rate": self._rate(now, "rxmsg_bytes", elapsed),
            "records-lag-max": max(lags, default=0),
        }
        groups.append(MetricGroup(domain, type_, tags, whole))
        group = now.get("cgrp")
        if group is not None:
            member: _Values = {
                "assigned-partitions": group["assignment_size"],
                "rebalance-total": group["rebalance_cnt"],
                "last-rebalance-seconds-ago": group["rebalance_age"] / 1000 if group["rebalance_cnt"] else -1,
            }
            groups.append(MetricGroup(domain, "consumer-coordinator-metrics", tags, member))
        return groups


def _key(group: MetricGroup) -> tuple[object, ...]:
    return group.domain, group.type, *group.tags.items()


def _at_rest(group: MetricGroup) -> MetricGroup:
    """Return the figures of a client that is closed, and its connections with it."""
    values: _Values = {name: value if _KEPT.fullmatch(name) else 0 for name, value in group.values.items()}
    if "connection-close-total" in values:
        values["connection-close-total"] = _number(values["connection-close-total"]) + _number(group.values["connection-count"])
    return replace(group, values=values)


def _added(group: MetricGroup, closed: MetricGroup | None) -> MetricGroup:
    """Return figures whose totals are those of the closed clients too."""
    if closed is None:
        return group
    totals = {name: _number(value) + _number(closed.values.get(name, 0)) for name, value in group.values.items() if name.endswith("-total")}
    return replace(group, values={**group.values, **totals})


def _number(value: MetricValue) -> float:
    return value if isinstance(value, int | float) else 0


def _partitions(now: Mapping[str, Any]) -> Iterable[tuple[str, str, Mapping[str, Any]]]:
    for topic, about in now["topics"].items():
        for number, partition in about["partitions"].items():
            if int(number) >= 0:
                yield topic, number, partition


def _producer_topics(now: Mapping[str, Any], tags: Mapping[str, str]) -> list[MetricGroup]:
    found: dict[str, list[int]] = {}
    for topic, _, partition in _partitions(now):
        sums = found.setdefault(topic, [0, 0])
        sums[0] += partition["txmsgs"]
        sums[1] += partition["txbytes"]
    return [
        MetricGroup(
            "kafka.producer", "producer-topic-metrics", {**tags, "topic": topic}, {"record-send-total": records, "byte-total": size}
        )
        for topic, (records, size) in found.items()
    ]


def _node(broker: Mapping[str, Any]) -> _Values:
    return {f"{ours}-total": broker[theirs] for theirs, ours in _BROKER_COUNTERS.items()} | _latency([broker])


def _latency(brokers: list[Mapping[str, Any]]) -> _Values:
    return {
        "request-latency-avg": _mean((broker["rtt"] for broker in brokers), 1000),
        "request-latency-max": max((broker["rtt"]["max"] for broker in brokers), default=0) / 1000,
    }


def _mean(windows: Iterable[Mapping[str, Any]], divisor: int = 1) -> float:
    """Return the average of several of librdkafka's windows, each of which has an average and a count."""
    total = count = 0
    for window in windows:
        total += window["avg"] * window["cnt"]
        count += window["cnt"]
    return total / count / divisor if count else 0.0
