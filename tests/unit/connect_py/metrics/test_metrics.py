"""Figures: how they are computed, how they travel, and the names under which they are shown."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import orjson
import pytest
import yaml
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from connect_py.api import MetricGroup, TopicPartition
from connect_py.errors import ConfigError
from connect_py.kafka.client_statistics import ClientStatistics
from connect_py.metrics.exposition import Names, render
from connect_py.metrics.task import MetricSettings, Sampled, SinkMetrics, SourceMetrics
from connect_py.metrics.worker import ConnectorKind, WorkerMetrics
from connectors.engine.metrics import SnapshotMetrics, StreamingMetrics
from connectors.mysql.figures import HistoryFigures, LogFigures, bean
from spark_sink.figures import Backlog, Counts, SinkFigures
from spark_sink.routing import TableName
from spark_sink.tables.base import Extent
from spark_sink.tables.upkeep import Activity, StatsSchedule, activity_of_metrics, activity_of_snapshots
from tests.paths import ROOT

DOCS = ROOT / "docs"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def shown(groups: list[MetricGroup], names: Names = Names.KAFKA) -> dict[str, float]:
    """Series as Prometheus reads them, such as `name{a="b"}`."""
    text = render(groups, names=names)[0].decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def of(metrics: SourceMetrics | SinkMetrics, type_: str) -> dict[str, Any]:
    """A group of the task's message, as it arrives at the worker."""
    message = orjson.loads(orjson.dumps(metrics.message()))
    return next(values for _, kind, _, values in message["groups"] if kind == type_)


# -- windows (the expectations are worked out from Rate.java and SampledStat.java) ---------------------------------------------------------


def test_a_rate_in_its_first_second_is_no_peak(clock: Clock) -> None:
    sampled = Sampled(MetricSettings(), clock)
    sampled.record(300)
    clock.now += 1
    assert sampled.rate == 300 / 31


def test_a_rate_covers_the_last_two_samples_and_falls_to_nothing(clock: Clock) -> None:
    sampled = Sampled(MetricSettings(), clock)
    for _ in range(90):
        sampled.record(10)
        clock.now += 1
    assert sampled.rate == pytest.approx(10, rel=0.02)
    clock.now += 31
    assert sampled.rate == pytest.approx(300 / 61)
    clock.now += 30
    assert sampled.rate == 0.0


def test_averages_and_extremes_forget_what_is_older_than_the_window(clock: Clock) -> None:
    sampled = Sampled(MetricSettings(10, 2), clock)
    assert math.isnan(sampled.average) and math.isnan(sampled.maximum) and math.isnan(sampled.minimum)
    sampled.record(100)
    clock.now += 10
    sampled.record(1)
    sampled.record(3)
    assert (sampled.minimum, sampled.average, sampled.maximum) == (1, 104 / 3, 100)
    clock.now += 10
    assert (sampled.minimum, sampled.average, sampled.maximum) == (1, 2, 3)


def test_windows_are_the_workers() -> None:
    assert MetricSettings.of({"metrics.sample.window.ms": "500", "metrics.num.samples": "4"}) == MetricSettings(0.5, 4)
    with pytest.raises(ConfigError, match=r"metrics\.num\.samples"):
        MetricSettings.of({"metrics.num.samples": "0"})


# -- tasks ---------------------------------------------------------------------------------------------------------------------------------


def test_a_source_counts_what_it_polls_writes_and_commits(clock: Clock) -> None:
    metrics = SourceMetrics(clock=clock)
    active = iter([7, 3, 3])
    metrics.active = lambda: next(active)
    metrics.state("RUNNING")
    metrics.polled(10, 0.5)
    metrics.written(8)
    metrics.polled(2, 0.1)
    metrics.written(2)
    metrics.commit(0.25, succeeded=True)
    metrics.commit(1.0, succeeded=False)
    clock.now += 30
    metrics.state("PAUSED")
    clock.now += 10
    values = of(metrics, "source-task-metrics")
    assert (values["source-record-poll-total"], values["source-record-write-total"]) == (12, 10)
    assert (values["source-record-active-count-max"], values["source-record-active-count"]) == (7, 3)
    assert (values["poll-batch-max-time-ms"], values["poll-batch-avg-time-ms"]) == (500, 300)
    assert "transaction-size-avg" not in values, "only a source with transactions has them"
    metrics.active = lambda: 0
    common = of(metrics, "connector-task-metrics")
    assert (common["running-ratio"], common["pause-ratio"]) == (0.75, 0.25)
    assert (common["offset-commit-max-time-ms"], common["offset-commit-success-percentage"]) == (250, 0.5)
    assert (common["batch-size-max"], common["batch-size-avg"]) == (10, 6)


def test_without_a_commit_both_percentages_are_0_as_in_kafka() -> None:
    common = of(SourceMetrics(), "connector-task-metrics")
    assert (common["offset-commit-success-percentage"], common["offset-commit-failure-percentage"]) == (0, 0)
    assert common["offset-commit-max-time-ms"] is None, "what JSON cannot say is nothing"


def test_a_sink_counts_what_it_reads_puts_and_commits(clock: Clock) -> None:
    metrics = SinkMetrics(clock=clock)
    metrics.partitions, metrics.active = (lambda: 3), (lambda: 5)
    metrics.read(10)
    metrics.put(9, 0.2)
    metrics.commit_begun()
    metrics.commit(0.1, succeeded=True)
    metrics.commit_begun()
    metrics.commit_skipped()
    values = of(metrics, "sink-task-metrics")
    assert (values["sink-record-read-total"], values["sink-record-send-total"]) == (10, 9)
    assert (values["partition-count"], values["sink-record-active-count"]) == (3, 5)
    assert (values["offset-commit-seq-no"], values["offset-commit-completion-total"], values["offset-commit-skip-total"]) == (2, 1, 1)
    assert values["put-batch-max-time-ms"] == 200


def test_a_report_is_due_every_two_seconds_and_less_often_without_news(clock: Clock) -> None:
    metrics = SourceMetrics(clock=clock)
    due = []
    for second in range(40):
        if second < 5:
            metrics.polled(1, 0.1)
        if metrics.is_due():
            due.append(second)
        clock.now += 1.0
    assert due == [0, 2, 4, 19, 34]


@pytest.mark.parametrize("news", ["polled", "commit"])
def test_news_are_reported_at_once_after_a_rest(clock: Clock, news: str) -> None:
    metrics = SourceMetrics(clock=clock)
    assert metrics.is_due()
    clock.now += 3.0
    metrics.polled(0, 0.1)
    assert not metrics.is_due()
    if news == "polled":
        metrics.polled(1, 0.1)
    else:
        metrics.commit(0.1, succeeded=False)
    assert metrics.is_due()


def test_a_plugin_that_cannot_tell_its_figures_does_not_fail_its_task() -> None:
    metrics = SourceMetrics()
    metrics.add_source(lambda: [][0])
    metrics.add_source(lambda: [MetricGroup("x", "y", {}, {"z": 1})])
    assert of(metrics, "y") == {"z": 1}


# -- the worker ----------------------------------------------------------------------------------------------------------------------------

TASK = ("inventory", 0)
KINDS = {"inventory": ConnectorKind("source", "io.debezium.connector.postgresql.PostgresConnector", "3.6.1")}


def report(**values: Any) -> dict[str, Any]:
    return {"type": "metrics", "groups": [["kafka.connect", "source-task-metrics", {}, values]]}


def running() -> WorkerMetrics:
    worker = WorkerMetrics()
    worker.connector_startup(True)
    worker.connector_state("inventory", "RUNNING")
    worker.task_launched(TASK, None)
    worker.task_state(TASK, "RUNNING")
    worker.task_reported(TASK, report(**{"source-record-poll-total": 7}))
    return worker


def test_the_worker_shows_connectors_and_tasks_under_the_names_of_confluents_and_debeziums_rules() -> None:
    series = shown(running().groups(KINDS, "4.3.1", "h:8083"))
    assert series["kafka_connect_worker_metrics_connector_count"] == 1
    assert series["kafka_connect_connect_worker_metrics_connector_count"] == 1
    assert series["kafka_connect_worker_metrics_task_startup_success_total"] == 1
    assert series['kafka_connect_worker_metrics_connector_running_task_count{connector="inventory"}'] == 1
    assert series['kafka_connect_source_task_metrics_source_record_poll_total{connector="inventory",task="0"}'] == 7
    assert series['kafka_connect_connector_task_metrics_status{connector="inventory",status="running",task="0"}'] == 1
    began = int(series['kafka_connect_app_info_start_time_ms{client_id="h:8083"}'])
    for name in ("kafka_connect_app_info", "kafka_connect_app"):
        assert series[f'{name}{{client_id="h:8083",commit_id="unknown",start_time_ms="{began}",version="4.3.1"}}'] == 1
    assert series['kafka_connect_connector_metrics_status_info{connector="inventory",status="running"}'] == 1
    assert series['kafka_connect_connector_task_metrics_status_info{connector="inventory",status="running",task="0"}'] == 1
    assert series['kafka_connect_connector_metrics_connector_type_info{connector="inventory",connector_type="source"}'] == 1
    about = {name for name in series if name.startswith("kafka_connect_connector_metrics{")}
    assert about == {
        'kafka_connect_connector_metrics{connector="inventory",connector_class="io.debezium.connector.postgresql.PostgresConnector",'
        'connector_type="source",connector_version="3.6.1",status="running"}'
    }


def test_the_names_of_strimzis_rules_are_there_for_the_asking() -> None:
    series = shown(running().groups(KINDS, "4.3.1", "h:8083"), Names.STRIMZI)
    assert series["kafka_connect_worker_connector_count"] == 1
    assert series['kafka_connect_source_task_source_record_poll_total{connector="inventory",task="0"}'] == 7
    assert series['kafka_connect_connector_status{connector="inventory",status="running"}'] == 1
    assert series['kafka_connect_connector_task_status{connector="inventory",status="running",task="0"}'] == 1
    assert 'kafka_connect_start_time_ms{clientid="h:8083"}' in series
    clients = [
        MetricGroup("kafka.producer", "producer-metrics", {"client-id": "p"}, {"outgoing-byte-total": 1}),
        MetricGroup("kafka.producer", "producer-topic-metrics", {"client-id": "p", "topic": "t"}, {"byte-total": 2}),
        MetricGroup("kafka.consumer", "consumer-fetch-manager-metrics", {"client-id": "c"}, {"records-lag-max": 3}),
    ]
    assert shown(clients, Names.STRIMZI) == {
        'kafka_producer_outgoing_byte_total{clientid="p"}': 1,
        'kafka_producer_topic_byte_total{clientid="p",topic="t"}': 2,
        'kafka_consumer_fetch_manager_records_lag_max{clientid="c"}': 3,
    }


def test_traffic_of_the_groups_client_is_shown_for_all_nodes_and_for_each() -> None:
    traffic = {"": {"incoming-byte-rate": 10.0, "connection-count": 2.0}, "node-1": {"request-rate": 3.0}}
    worker = WorkerMetrics(lambda: {"completed-rebalances-total": 4}, traffic=lambda: traffic)
    series = shown(worker.groups({}, "4.3.1", "w"))
    for prefix in ("kafka_connect_", "kafka_connect_connect_"):
        assert series[f'{prefix}metrics_incoming_byte_rate{{client_id="w"}}'] == 10
        assert series[f'{prefix}node_metrics_request_rate{{client_id="w",node_id="node-1"}}'] == 3
        assert series[f"{prefix}worker_rebalance_metrics_completed_rebalances"] == 4, "newer rules drop _total"
        assert series[f"{prefix}worker_rebalance_metrics_completed_rebalances_total"] == 4
    assert shown(worker.groups({}, "4.3.1", "w"), Names.STRIMZI)['kafka_connect_connection_count{clientid="w"}'] == 2


def test_figures_vanish_with_their_task_and_connector() -> None:
    worker = running()
    worker.task_state(TASK, "RESTARTING")
    gone = shown(worker.groups(KINDS, "4.3.1", "h:8083"))
    assert not [name for name in gone if name.startswith("kafka_connect_source_task_metrics")], "the process died: what it told is void"
    assert gone['kafka_connect_worker_metrics_connector_restarting_task_count{connector="inventory"}'] == 1
    worker.task_gone(TASK)
    worker.task_reported(TASK, report(**{"source-record-poll-total": 8}))
    worker.connector_gone("inventory")
    assert not [name for name in shown(worker.groups(KINDS, "4.3.1", "h:8083")) if "inventory" in name]


def test_a_task_that_fails_before_it_runs_is_a_failed_start_and_one_that_fails_later_is_none() -> None:
    worker = running()
    worker.task_state(TASK, "FAILED")
    worker.task_launched(TASK)
    worker.task_state(TASK, "FAILED")
    series = shown(worker.groups(KINDS, "4.3.1", "h:8083"))
    assert series["kafka_connect_worker_metrics_task_startup_attempts_total"] == 2
    assert series["kafka_connect_worker_metrics_task_startup_failure_total"] == 1
    assert series["kafka_connect_worker_metrics_task_startup_failure_percentage"] == 0.5


def test_two_connectors_with_one_client_id_do_not_make_the_scrape_invalid() -> None:
    twice = [MetricGroup("kafka.producer", "producer-metrics", {"client-id": "p"}, {"request-total": number}) for number in (1, 2)]
    assert shown(twice) == {'kafka_producer_producer_metrics_request_total{client_id="p"}': 1}


def test_unusual_names_are_escaped_and_openmetrics_is_given_to_who_asks() -> None:
    groups = [MetricGroup("kafka.connect", "source-task-metrics", {"connector": 'a"\\\n{é}', "task": "0"}, {"source-record-poll-total": 1})]
    (name,) = shown(groups)
    assert name == 'kafka_connect_source_task_metrics_source_record_poll_total{connector="a"\\\n{é}",task="0"}'
    body, content_type = render(groups, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert content_type.startswith("application/openmetrics-text") and body.endswith(b"# EOF\n")
    assert b"# TYPE kafka_connect_source_task_metrics_source_record_poll counter" in body


class Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


@pytest.mark.parametrize("accept", ["", "text/plain;version=1.0.0;escaping=values", "application/openmetrics-text;version=1.0.0"])
@pytest.mark.parametrize("names", Names)
def test_what_prometheus_reads_is_written_by_its_own_library_in_the_same_bytes(accept: str, names: Names) -> None:
    worker = running()
    worker.rebalances = lambda: {"completed-rebalances-total": 4}
    worker.task_reported(TASK, report(**{"source-record-poll-total": 8, "odd": None, "much": 12345678.5, "none": math.inf, "on": True}))
    beans = [
        MetricGroup("debezium.postgres", "snapshot", {"context": 'a"\\\n{é}'}, {"RowsScanned": {"a\\b": 3, "c": 0.5}, "Paused": False})
    ]
    body, content_type = render([*worker.groups(KINDS, "4.3.1", "h:8083"), *beans], accept, names, (GC_COLLECTOR, PLATFORM_COLLECTOR))
    is_open_metrics = content_type.startswith("application/openmetrics-text")
    families = list((parse_openmetrics if is_open_metrics else text_string_to_metric_families)(body.decode()))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Families(families))
    assert choose_encoder(accept)[0](registry) == body
    assert {"counter", "gauge"} <= {family.type for family in families}
    assert len({family.name for family in families}) == len(families)


# -- Debezium's beans ---------------------------------------------------------------------------------------------------------------------


def test_a_snapshots_progress_is_shown_as_debeziums_example_labels_it(clock: Clock) -> None:
    snapshot = SnapshotMetrics("postgres", "shop", 8192, clock)
    snapshot.begin(2)
    snapshot.scanned("public.a", 100)
    snapshot.events(100)
    snapshot.table_done()
    clock.now += 5
    base = 'context="snapshot",name="shop",plugin="postgres"'
    series = shown([snapshot.group()])
    assert series[f"debezium_metrics_SnapshotRunning{{{base}}}"] == 1
    assert series[f"debezium_metrics_RemainingTableCount{{{base}}}"] == 1
    assert series[f'debezium_metrics_RowsScanned{{{base},table="public.a"}}'] == 100
    assert series[f"debezium_metrics_MilliSecondsSinceLastEvent{{{base}}}"] == 5000
    snapshot.end("completed")
    snapshot.interrupted()
    clock.now += 60
    series = shown([snapshot.group()])
    assert series[f"debezium_metrics_SnapshotCompleted{{{base}}}"] == 1, "a connection lost later does not abort it"
    assert series[f"debezium_metrics_SnapshotAborted{{{base}}}"] == 0
    assert series[f"debezium_metrics_SnapshotDurationInSeconds{{{base}}}"] == 5


def test_a_stream_shows_its_lag_and_minus_one_before_the_first_event(clock: Clock) -> None:
    stream = StreamingMetrics("postgres", "shop", 8192, clock)
    base = 'context="streaming",name="shop",plugin="postgres"'
    first = shown([stream.group()])
    for name in ("MilliSecondsBehindSource", "MilliSecondsSinceLastEvent", "NumberOfUnchangedEventsSkipped", "MilliSecondsBehindSourceP99"):
        assert first[f"debezium_metrics_{name}{{{base}}}"] == -1
    for lag in range(1, 101):
        stream.behind(lag)
    stream.events(5, created=3, updated=1, deleted=1)
    stream.position, stream.last_transaction = {"lsn": 42}, 7
    series = shown([stream.group()])
    assert [series[f"debezium_metrics_MilliSecondsBehindSource{which}{{{base}}}"] for which in ("", "MinValue", "P50", "P95", "P99")] == [
        100,
        1,
        50,
        95,
        99,
    ]
    assert series[f"debezium_metrics_TotalNumberOfCreateEventsSeen{{{base}}}"] == 3
    assert series[f"debezium_metrics_SourceEventPosition{{{base.replace(',name', ',key=' + chr(34) + 'lsn' + chr(34) + ',name')}}}"] == 42


def test_mysqls_beans_show_the_log_and_the_history_and_nothing_that_is_not_known(clock: Clock) -> None:
    log, history = LogFigures(), HistoryFigures(clock, lambda: 1_700_000_000.5)
    unknown = shown([bean("mysql", "shop", "streaming", log.values(None))])
    assert not [name for name in unknown if "Gtid" in name or "BinlogPosition" in name]
    log.has_gtids, log.disconnects = True, 2
    streaming = 'context="streaming",name="shop",plugin="mysql"'
    known = shown([bean("mysql", "shop", "streaming", log.values(157))])
    assert known[f"debezium_metrics_IsGtidModeEnabled{{{streaming}}}"] == 1
    assert known[f"debezium_metrics_BinlogPosition{{{streaming}}}"] == 157
    assert known[f"debezium_metrics_NumberOfDisconnects{{{streaming}}}"] == 2
    base = 'context="schema-history",name="shop",plugin="mysql"'
    never = shown([bean("mysql", "shop", "schema-history", history.values())])
    assert {name: value for name, value in never.items() if value != -1} == {
        f"debezium_metrics_ChangesRecovered{{{base}}}": 0,
        f"debezium_metrics_ChangesApplied{{{base}}}": 0,
    }
    history.begin()
    history.took()
    clock.now += 2
    history.wrote()
    clock.now += 1
    series = shown([bean("mysql", "shop", "schema-history", history.values())])
    assert series[f"debezium_metrics_RecoveryStartTime{{{base}}}"] == 1_700_000_000
    assert (series[f"debezium_metrics_ChangesRecovered{{{base}}}"], series[f"debezium_metrics_ChangesApplied{{{base}}}"]) == (1, 2)
    assert series[f"debezium_metrics_MilliSecondsSinceLastRecoveredChange{{{base}}}"] == 3000
    assert series[f"debezium_metrics_MilliSecondsSinceLastAppliedChange{{{base}}}"] == 1000


# -- clients -------------------------------------------------------------------------------------------------------------------------------


def statistics(kind: str, seconds: int) -> dict[str, Any]:
    """A report of librdkafka, cut down to what is read of it; after 10 s everything is tenfold."""
    window = {"min": 1, "max": 4000, "avg": 2000, "sum": 0, "cnt": 2}
    broker = {
        "nodeid": 1,
        "nodename": "h:9092",
        "name": "h:9092/1",
        "source": "learned",
        "state": "UP",
        "connects": 1,
        "disconnects": 0,
        "waitresp_cnt": 0,
        "txretries": 0,
        "tx": 5 * seconds,
        "rx": 5 * seconds,
        "txbytes": 500 * seconds,
        "rxbytes": 50 * seconds,
        "rtt": window,
        "int_latency": window,
    }
    bootstrap = broker | {"nodeid": -1, "nodename": "", "source": "configured", "state": "INIT", "connects": 0}
    partition = {
        "txmsgs": seconds,
        "txbytes": 9 * seconds,
        "rxmsgs": seconds,
        "rxbytes": 9 * seconds,
        "fetch_state": "active",
        "consumer_lag": 7,
    }
    whole = {"tx": 5, "rx": 5, "tx_bytes": 500, "rx_bytes": 50, "txmsgs": 1, "rxmsgs": 1, "rxmsg_bytes": 9}
    return {
        "type": kind,
        "client_id": "c",
        "ts": seconds * 1_000_000,
        "msg_size": 100,
        "msg_size_max": 1000,
        **{name: value * seconds for name, value in whole.items()},
        "brokers": {"h:9092/1": broker, "h:9092/bootstrap": bootstrap},
        "topics": {
            "t": {"batchsize": window, "batchcnt": window, "partitions": {"0": partition, "-1": partition | {"fetch_state": "none"}}}
        },
        "cgrp": {"assignment_size": 1, "rebalance_cnt": 1, "rebalance_age": 3000},
    }


@pytest.mark.parametrize("kind", ["producer", "consumer"])
def test_librdkafkas_statistics_have_the_names_of_javas_clients(kind: str) -> None:
    client = ClientStatistics()
    assert client.groups() == []
    for seconds in (1, 10):
        client.take(json.dumps(statistics(kind, seconds)))
    series = shown(client.groups())
    prefix = f"kafka_{kind}_{kind}"
    assert series[f'{prefix}_metrics_outgoing_byte_total{{client_id="c"}}'] == 5000
    assert series[f'{prefix}_metrics_outgoing_byte_rate{{client_id="c"}}'] == 500
    assert series[f'{prefix}_metrics_connection_count{{client_id="c"}}'] == 1
    assert series[f'{prefix}_metrics_request_latency_avg{{client_id="c"}}'] == 2, "ms, not us"
    assert series[f'{prefix}_node_metrics_request_total{{client_id="c",node_id="node-1"}}'] == 50
    if kind == "producer":
        assert series['kafka_producer_producer_topic_metrics_record_send_total{client_id="c",topic="t"}'] == 10
        assert series['kafka_producer_producer_metrics_buffer_available_bytes{client_id="c"}'] == 900
    else:
        assert series['kafka_consumer_consumer_fetch_manager_metrics_records_lag{client_id="c",partition="0",topic="t"}'] == 7
        assert series['kafka_consumer_consumer_coordinator_metrics_assigned_partitions{client_id="c"}'] == 1


def test_totals_of_a_client_that_was_closed_at_rest_stay_and_grow_with_the_next_one() -> None:
    client, prefix = ClientStatistics(), "kafka_producer_producer"
    for seconds in (1, 10):
        client.take(json.dumps(statistics("producer", seconds)))
    client.client_closed()
    series = shown(client.groups())
    assert series[f'{prefix}_metrics_outgoing_byte_total{{client_id="c"}}'] == 5000
    assert series[f'{prefix}_node_metrics_request_total{{client_id="c",node_id="node-1"}}'] == 50
    assert series[f'{prefix}_metrics_connection_close_total{{client_id="c"}}'] == 1
    for name in "outgoing_byte_rate", "connection_count", "request_latency_avg", "requests_in_flight":
        assert series[f'{prefix}_metrics_{name}{{client_id="c"}}'] == 0
    assert series[f'{prefix}_metrics_buffer_available_bytes{{client_id="c"}}'] == 900
    fresh = statistics("producer", 2)
    fresh["topics"] = {"u": fresh["topics"]["t"]}
    client.take(json.dumps(fresh))
    series = shown(client.groups())
    assert series[f'{prefix}_metrics_outgoing_byte_total{{client_id="c"}}'] == 6000
    assert series[f'{prefix}_metrics_outgoing_byte_rate{{client_id="c"}}'] == 0, "the other client's counters say nothing of it"
    assert series[f'{prefix}_metrics_connection_count{{client_id="c"}}'] == 1
    assert series[f'{prefix}_topic_metrics_record_send_total{{client_id="c",topic="t"}}'] == 10
    assert series[f'{prefix}_topic_metrics_record_send_total{{client_id="c",topic="u"}}'] == 2
    client.client_closed()
    assert shown(client.groups())[f'{prefix}_metrics_connection_close_total{{client_id="c"}}'] == 2


# -- the lakehouse sink ------------------------------------------------------------------------------------------------------------------


def test_the_lakehouse_sink_shows_its_lag_and_what_each_table_took() -> None:
    figures = SinkFigures()
    log = {TopicPartition("t", 0): (100, 150), TopicPartition("t", 1): (0, 10)}
    figures.looked({TopicPartition("t", 0): 120}, log)
    assert shown(figures.groups())["connect_py_lakehouse_sink_lag_offsets"] == 40
    figures.applied("public.a", 30, 0.5, was_new=True)
    figures.applied("public.a", 30, 0.1, was_new=False)
    figures.batch(3)
    figures.looked({TopicPartition("t", 0): 150, TopicPartition("t", 1): 10}, log)
    series = shown(figures.groups())
    assert series["connect_py_lakehouse_sink_lag_offsets"] == 0
    assert series["connect_py_lakehouse_sink_records_passed_over_total"] == 3
    assert series['connect_py_lakehouse_table_records_applied_total{table="public.a"}'] == 30
    assert series['connect_py_lakehouse_table_batches_skipped_already_committed_total{table="public.a"}'] == 1


def test_each_table_of_the_lakehouse_sink_shows_its_own_lag_operations_and_changes() -> None:
    clock = [1000.0]
    figures, a, b = SinkFigures(lambda: clock[0]), TopicPartition("a", 0), TopicPartition("b", 0)
    figures.reads("public.a", [a])
    figures.reads("public.b", [b])
    figures.looked({a: 0, b: 5}, {a: (0, 10), b: (0, 5)})
    clock[0] += 2
    figures.looked({a: 0, b: 5}, {a: (0, 30), b: (0, 5)})
    clock[0] += 1
    lag = 'connect_py_lakehouse_table_lag_{}{{table="public.{}"}}'
    series = shown(figures.groups())
    assert [series[lag.format(*of)] for of in (("offsets", "a"), ("ms", "a"), ("offsets", "b"), ("ms", "b"))] == [30, 3000, 0, 0]
    assert series["connect_py_lakehouse_sink_lag_ms"] == 3000

    counts = Counts({"c": 6, "u": 3, "t": 1}, keys=7, changes={"add.column": 2})
    figures.applied("public.a", 12, 0.5, was_new=True, counts=counts, ends={a: 12})
    figures.applied("public.a", 12, 0.1, was_new=False, ends={a: 12})
    series = shown(figures.groups())
    assert [series[lag.format(*of)] for of in (("offsets", "a"), ("ms", "a"))] == [18, 1000], "the batch's other tables may still wait"
    assert series['connect_py_lakehouse_table_records_applied_by_op_total{op="u",table="public.a"}'] == 3
    assert series['connect_py_lakehouse_table_records_applied_total{table="public.a"}'] == 10
    assert series['connect_py_lakehouse_table_records_deduplicated_total{table="public.a"}'] == 2
    assert series['connect_py_lakehouse_table_schema_changes_total{kind="add.column",table="public.a"}'] == 2
    figures.looked({a: 30, b: 5}, {a: (0, 30), b: (0, 5)})
    assert shown(figures.groups())[lag.format("ms", "a")] == 0
    figures.looked({a: 10, b: 5}, {a: (0, 30), b: (0, 5)})
    assert shown(figures.groups())["connect_py_lakehouse_sink_lag_offsets"] == 20, "a table that was set back"


def test_what_a_table_consists_of_is_shown_when_it_has_been_looked_at() -> None:
    figures = SinkFigures()
    figures.applied("public.a", 3, 0.1, was_new=True, counts=Counts({"u": 3}, keys=2, unavailable=5))
    figures.table_failed("public.a")
    figures.table_failed("public.a", by_conflict=True)
    prefix, of = "connect_py_lakehouse_table_", '{table="public.a"}'
    series = shown(figures.groups())
    assert f"{prefix}data_files{of}" not in series, "nobody has looked yet"
    assert [series[f"{prefix}{name}_total{of}"] for name in ("unavailable_values", "failures", "commit_conflicts")] == [5, 2, 1]
    figures.found("public.a", Extent(2, 7, 12345))
    series = shown(figures.groups())
    assert [series[f"{prefix}{name}{of}"] for name in ("generation", "data_files", "size_bytes")] == [2, 7, 12345]
    assert f"{prefix}snapshots{of}" not in series, "a format that does not count them"
    figures.found("public.a", Extent(2, 7, 12345, delete_files=0, snapshots=4))
    assert [shown(figures.groups())[f"{prefix}{name}{of}"] for name in ("delete_files", "snapshots")] == [0, 4]


def test_a_table_has_all_that_was_there_at_the_last_look_that_found_nothing_more() -> None:
    clock = [1000.0]
    figures, one, other = SinkFigures(lambda: clock[0], lambda: clock[0] + 5000), TopicPartition("t", 0), TopicPartition("t", 1)
    figures.reads("public.t", [one, other])

    def at(seconds: float, positions: tuple[int, int], ends: tuple[int, int]) -> float | None:
        clock[0] = 1000.0 + seconds
        figures.looked(dict(zip((one, other), positions, strict=True)), {one: (0, ends[0]), other: (0, ends[1])})
        shown_ = shown(figures.groups()).get('connect_py_lakehouse_table_valid_through_timestamp_seconds{table="public.t"}')
        return None if shown_ is None else shown_ - 6000

    assert at(0, (0, 5), (10, 5)) is None, "nobody knows since when the first records wait"
    assert at(1, (10, 5), (10, 5)) == 1
    assert at(3, (10, 5), (14, 5)) == 1, "the record may have come at any time since"
    assert at(4, (10, 5), (14, 9)) == 1
    assert at(5, (12, 5), (14, 9)) == 1
    assert at(6, (14, 5), (14, 9)) == 3
    figures.applied("public.t", 4, 0.1, was_new=True, ends={other: 9})
    assert at(7, (14, 5), (14, 9)) == 7, "the other tables of the batch may still wait"
    assert at(8, (2, 5), (14, 9)) is None, "it was rolled back"
    assert at(9, (14, 9), (14, 9)) == 9


def test_a_commit_that_comes_after_a_failure_is_a_retry_and_rows_that_were_not_put_are_stale() -> None:
    figures, prefix, of = SinkFigures(), "connect_py_lakehouse_table_", '{table="a"}'
    figures.applied("a", 3, 0.1, was_new=True, counts=Counts({"u": 3}, keys=3, puts=3))
    figures.table_failed("a")
    figures.table_failed("a", by_conflict=True)
    figures.applied("a", 3, 0.1, was_new=True, counts=Counts({"u": 3}, keys=3, puts=2))
    figures.table_failed("a")
    figures.applied("a", 3, 0.1, was_new=False)
    figures.applied("a", 3, 0.1, was_new=True, counts=Counts({"u": 1}))
    series = shown(figures.groups())
    assert series[f"{prefix}commit_retries_total{of}"] == 2, "it had been committed the third time"
    assert f"{prefix}records_stale_total{of}" not in series
    figures.found("a", Extent(0, 1, 1, small_files=1, activity=Activity(4, 3, 2)))
    series = shown(figures.groups())
    assert [
        series[f"{prefix}{name}{of}"] for name in ("records_stale_total", "small_files", "files_added_total", "files_removed_total")
    ] == [
        3,
        1,
        4,
        3,
    ]


def test_what_commits_did_is_counted_once_and_only_of_those_that_the_table_comes_from() -> None:
    def summary(added: int, removed: int = 0, put: int = 0, epoch: int = 7) -> dict[str, str]:
        found = {"added-data-files": str(added), "deleted-data-files": str(removed), "kafka.connect.task-epoch": str(epoch)}
        return found | {"spark.merge-into.num-target-rows-inserted": str(put), "spark.merge-into.num-target-rows-matched-updated": "1"}

    snapshots = {1: (None, summary(1)), 2: (1, summary(2, 1, 5)), 3: (2, summary(4, 3, 9, epoch=6)), 4: (2, summary(100))}
    assert activity_of_snapshots(3, snapshots, {1}, 7) == Activity(6, 4, 6), "4 was given up; the rows of 3 are another task's"
    assert activity_of_snapshots(3, snapshots, {1, 2, 3}, 7) == Activity()
    assert activity_of_snapshots(None, {}, (), 7) == Activity()
    merge = {"numTargetFilesAdded": "2", "numTargetFilesRemoved": "1", "numTargetRowsInserted": "3", "numTargetRowsMatchedUpdated": "4"}
    assert activity_of_metrics(merge, is_ours=True) == Activity(2, 1, 7)
    assert activity_of_metrics(merge, is_ours=False) == Activity(2, 1, 0)
    assert activity_of_metrics({"numFiles": "3", "numRemovedFiles": "2"}, is_ours=True) == Activity(3, 2)
    assert activity_of_metrics({}, is_ours=True) == Activity()


def test_tables_are_looked_at_in_turn_and_for_a_fiftieth_of_the_time() -> None:
    looks, a, b = StatsSchedule(), TableName(("a",)), TableName(("b",))
    assert looks.due(100.0) is None
    for table in (a, b, a):
        looks.committed(table)
    assert looks.due(100.0) == a
    looks.took(0.5, 100.5)
    looks.committed(a)
    assert looks.due(124.0) is None
    assert looks.due(125.1) == b
    looks.took(0.0, 125.1)
    assert [looks.due(126.0), looks.due(126.0)] == [a, None]


def test_a_long_backlog_is_remembered_in_bounds_and_never_told_too_young() -> None:
    backlog = Backlog()
    for number in range(5000):
        backlog.looked(number + 1, float(number))
    assert len(backlog.looks) <= 600
    assert backlog.looks[-1][0] == 5000
    assert backlog.since(4999) == backlog.looks[-1][1] >= backlog.looks[0][1]


# -- cost, and the page ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [lambda metrics: (metrics.polled(2000, 0.01), metrics.written(2000))])
def test_a_batch_is_counted_in_a_fraction_of_what_one_row_costs(step: Callable[[SourceMetrics], object]) -> None:
    """A row costs 3 us and more, a batch has 2,000: 60 us a batch would be 1 %. Measured are about 5; a loaded machine is given time."""
    import timeit

    metrics = SourceMetrics()
    best = min(timeit.repeat(lambda: step(metrics), number=200, repeat=20)) / 200
    assert best < 60e-6


def everything() -> list[MetricGroup]:
    """A group of every kind, as a worker with a PostgreSQL source, a sink and a lakehouse sink has them."""
    worker = running()
    worker.traffic = lambda: {"": {"incoming-byte-rate": 1.0, "outgoing-byte-rate": 1.0}, "node-1": {"request-rate": 1.0}}
    worker.rebalances = lambda: {"leader-name": "x", "connect-protocol": "x", "epoch": 1, "completed-rebalances-total": 1, "rebalancing": 0}
    groups = worker.groups(KINDS, "4.3.1", "h:8083")
    for metrics in (SourceMetrics(), SinkMetrics()):
        groups += [MetricGroup(domain, type_, tags, values) for domain, type_, tags, values in metrics.message()["groups"]]
    snapshot = SnapshotMetrics("postgres", "x")
    snapshot.scanned("public.a", 1)
    groups += [snapshot.group(), StreamingMetrics("postgres", "x").group()]
    sink = SinkFigures()
    sink.applied("t", 1, 1, was_new=True, counts=Counts({"c": 1}, changes={"add.column": 1}))
    sink.found("t", Extent(0, 1, 1, 0, 1))
    for kind in ("producer", "consumer"):
        client = ClientStatistics()
        client.take(json.dumps(statistics(kind, 1)))
        groups += client.groups()
    return groups + sink.groups()


def test_every_figure_is_on_the_page() -> None:
    page = (DOCS / "metrics.md").read_text()
    for group in everything():
        for attribute in group.values:
            assert re.search(rf"`[^`]*\b{re.escape(attribute)}\b[^`]*`", page), f"{group.type}: {attribute}"


#: What connectors and tables say; tests/integration/test_source_facts.py and test_spark_figures.py see it.
FACTS = (
    "connect_py_snapshot_progress_",
    "connect_py_lakehouse_table_",
    "connect_py_task_process_",
    "connect_py_postgres_slot_",
    "connect_py_mysql_binlog_",
    "connect_py_mongodb_oplog_",
    "connect_py_source_",
)


@pytest.mark.parametrize("file", ["alerts.yml", "grafana-dashboard.json"])
def test_alerts_and_dashboard_ask_for_series_that_exist(file: str) -> None:
    text = (DOCS / "monitoring" / file).read_text()
    assert yaml.safe_load(text)
    known = {name.partition("{")[0] for name in shown(everything())}
    asked = set(re.findall(r"\b(?:kafka_|debezium_metrics_|connect_py_)\w+", text))
    elsewhere = {name for name in asked if name.startswith(FACTS)}
    assert len(asked) > 8
    assert asked - elsewhere - known == set()
