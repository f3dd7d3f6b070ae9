"""Run a task's process from the inside.

The worker starts it (`connect_py.host.process`), sends one ``start`` message on its standard input and then commands; the process
answers on what was its standard output. Both are JSON, one message a line:

    worker → task   start · pause · resume · stop {timeout} · forget_topics · log_level {logger, level} · offsets_written {id, error} ·
                    signal {id, signal} · lease {until} · answered {error | offsets}
    task → worker   state {state} · failed {trace} · stopped · topic {topic} · metrics {…} · offsets {id, offsets} ·
                    answer {id, problem} · signal_done {id} · notification {notification} · fence · admit

Standard output is moved aside before any plugin runs, so that nothing a library prints can be taken for a message.

A source of a worker that has a group runs as long as it has a lease, and is killed by the kernel when that is over
(`connect_py.task.lease`).

An exactly-once source has its connector's zombies fenced (``fence``), initialises its transactional id, and only then asks whether it is
still wanted and where to begin (``admit``): offsets that were read earlier could lack what a zombie was about to commit.

When standard input ends, the worker is gone: the process kills its whole process group at once, itself included, because two tasks
writing the same offsets would be worse than an unfinished batch. What was under way is read again after the restart.

Threads: the main thread runs the task; one daemon thread reads messages.
"""

from __future__ import annotations

import functools
import gc
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import orjson

from connect_py.api.config import ConfigType, parse_value
from connect_py.api.permissions import permit
from connect_py.api.storage import OffsetWriter
from connect_py.config.connector import secrets_of
from connect_py.errors import ConfigError, FatalTaskError
from connect_py.log import lines as line_logging
from connect_py.log.redact import redactor, secret_values
from connect_py.log.traces import headline, trace_of
from connect_py.metrics.task import MetricSettings, SinkMetrics, SourceMetrics, TaskMetrics
from connect_py.plugins.registry import Plugins
from connect_py.providers.resolver import Resolver
from connect_py.task.control import Report, TaskControl, TaskStopped
from connect_py.task.fork_server import show_name
from connect_py.task.lease import LeaseTimer
from connect_py.task.offsets import PipeOffsetWriter

if TYPE_CHECKING:
    from connect_py.api import SourceTask
    from connect_py.kafka.transactions import TransactionalProducer
    from connect_py.task.exactly_once import OffsetCopies, OffsetsToRecords, TransactionCommitter
    from connect_py.task.offsets import SubmittedRecords
    from connect_py.task.transaction_boundary import TransactionRequests

log = logging.getLogger(__name__)

#: How soon a task that waits for its first lease sees that it is asked to stop.
_LEASE_WAIT_SECONDS = 0.2

#: How long copies of offsets, which nobody relies on, may hold up the end of a task.
_COPIES_SECONDS = 1.0

#: (worker properties, connector, task, the connector's configuration) → a writer of source offsets.
OffsetWriterFactory = Callable[[Mapping[str, str], str, int, Mapping[str, str]], OffsetWriter]


class OffsetTopic(NamedTuple):
    """Where an exactly-once source keeps its offsets.

    Attributes:
        name: of the topic.
        to_records: makes records of offsets.
        copies: writes to the worker's topic what is committed in one of the connector's own; None where that is the same.
    """

    name: str
    to_records: OffsetsToRecords
    copies: OffsetCopies | None


#: Compares lakehouse tables with their sources: (start message, plugins, what resolves a configuration, report, what describes an error).
Compare = Callable[
    [
        Mapping[str, Any],
        Plugins,
        Callable[[Mapping[str, str]], Mapping[str, str]],
        Callable[[Mapping[str, Any]], None],
        Callable[[Exception], str],
    ],
    None,
]

#: (worker properties, connector, task, the connector's configuration) → where an exactly-once source keeps its offsets.
OffsetTopicFactory = Callable[[Mapping[str, str], str, int, Mapping[str, str]], OffsetTopic]


class WorkerChannel:
    """Messages to the worker; any thread may report."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def report(self, message: Mapping[str, Any]) -> None:
        """Send one message. A worker that is gone is noticed by the reader."""
        try:
            line = orjson.dumps(message, default=str) + b"\n"
        except TypeError:  # half a character, as in names that are no UTF-8: a message with "?" is better than none
            line = json.dumps(message, default=str, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self._lock:
            self._stream.write(line)
            self._stream.flush()


def main(offset_writer: OffsetWriterFactory, *, offset_topic: OffsetTopicFactory, compare: Compare, is_forked: bool = False) -> int:
    """Run the task that the worker describes on standard input; returns the exit code of the process.

    Args:
        offset_topic: of exactly-once sources, which write offsets themselves.
        compare: what a process does that the worker asks to compare tables.
        is_forked: whether the process's command line is that of the server it was forked from.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the worker, which then asks this process to stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    channel = WorkerChannel(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    commands = os.fdopen(0, "rb", closefd=False)
    first = commands.readline()
    if not first:
        return 1
    start: dict[str, Any] = orjson.loads(first)
    if is_forked:
        show_name(f"{start['connector']}-{start['task']}")
    formatter = line_logging.configure(start["log_level"], default_context=f"{start['connector']}|task-{start['task']}")
    for name, level in start["log_levels"].items():
        line_logging.set_level(logging.getLogger(name), level)
    formatter.redact = redactor(secret_values(start["worker"]) | secret_values(start["config"]))
    if start.get("type") == "facts":
        return _read_facts(start, commands, channel, formatter)
    if start.get("type") == "verification":
        return _verify(start, commands, channel, formatter, compare)
    control = TaskControl(paused=start["paused"])
    pipe_writer = PipeOffsetWriter(channel.report)
    lease = LeaseTimer()
    threading.Thread(target=_read_commands, args=(commands, control, pipe_writer, lease), name="commands", daemon=True).start()
    try:
        plugins = Plugins.from_message(start["plugins"])
        permit(start["worker"])
        start = _with_values(plugins, start)
        formatter.redact = redactor(_all_secrets(plugins, start))
        while start.get("leased") and not lease.is_armed and not control.is_stopping:
            lease.wait(_LEASE_WAIT_SECONDS)
        _run(start, plugins, control, channel, pipe_writer if start["offsets_by_pipe"] else offset_writer, offset_topic)
    except TaskStopped:
        pass
    except Exception as error:  # noqa: BLE001  # the last line of defence: whatever a plugin raises becomes a FAILED task with a trace
        trace = formatter.clean(trace_of(error))
        log.error("Task failed: %s", headline(trace))
        channel.report({"type": "failed", "trace": trace})
        return 1
    channel.report({"type": "stopped"})
    return 0


def _read_facts(start: Mapping[str, Any], commands: BinaryIO, channel: WorkerChannel, formatter: Any) -> int:
    """Be the process that asks the sources of a worker's connectors for the state of their logs (`connect_py.task.facts`)."""
    from connect_py.task.facts import serve

    plugins = Plugins.from_message(start["plugins"])
    permit(start["worker"])
    serve(start, commands, plugins, _resolving(start["worker"], plugins, formatter), channel.report, _describing(formatter))
    return 0


def _verify(start: Mapping[str, Any], commands: BinaryIO, channel: WorkerChannel, formatter: Any, compare: Compare) -> int:
    """Be the process that compares lakehouse tables with their sources. Returns the exit code."""
    unused = TaskControl(), PipeOffsetWriter(channel.report), LeaseTimer()
    threading.Thread(target=_read_commands, args=(commands, *unused), name="commands", daemon=True).start()
    plugins = Plugins.from_message(start["plugins"])
    permit(start["worker"])
    compare(start, plugins, _resolving(start["worker"], plugins, formatter), channel.report, _describing(formatter))
    return 0


def _resolving(worker: Mapping[str, str], plugins: Plugins, formatter: Any) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    """Return what gives a configuration the values of its variables, and has the log hide its secrets."""
    resolver = Resolver.from_worker(worker, plugins.load)
    secrets = secret_values(worker)

    def resolve(config: Mapping[str, str]) -> Mapping[str, str]:
        values = resolver.resolve(config).values
        secrets.update(secrets_of(plugins, values))
        formatter.redact = redactor(secrets)
        return values

    return resolve


def _describing(formatter: Any) -> Callable[[Exception], str]:
    return lambda error: formatter.clean(str(error) or type(error).__name__)


def _read_commands(commands: BinaryIO, control: TaskControl, pipe_writer: PipeOffsetWriter, lease: LeaseTimer) -> None:
    """Hand on what the worker asks for until it is gone. Whatever ends the reading ends the process: the end of the input is the only way
    to learn of the worker's death."""
    try:
        for line in commands:
            if not line.endswith(b"\n"):
                break  # the worker was killed while it wrote
            _run_command(orjson.loads(line), control, pipe_writer, lease)
    except Exception:
        log.exception("The worker's commands cannot be read any longer; the task's process ends, and the worker starts another")
    finally:
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)


def _run_command(message: Mapping[str, Any], control: TaskControl, pipe_writer: PipeOffsetWriter, lease: LeaseTimer) -> None:
    match message["type"]:
        case "pause":
            control.pause(True)
        case "resume":
            control.pause(False)
        case "stop":
            control.stop(message["timeout"])
        case "forget_topics":
            control.forget_topics()
        case "log_level":
            logging.getLogger(message["logger"]).setLevel(message["level"])
        case "offsets_written":
            pipe_writer.answer(message["id"], message["error"])
        case "signal":
            control.ask(message)
        case "answered":
            control.answer(message)
        case "lease":
            lease.extend(message["until"])


def _with_values(plugins: Plugins, start: Mapping[str, Any]) -> dict[str, Any]:
    """Return the start message with the values of the variables in its configurations. Raises ConfigError."""
    resolver = Resolver.from_worker(start["worker"], plugins.load)
    try:
        return {**start, **{part: resolver.resolve(start[part]).values for part in ("config", "task_config")}}
    finally:
        resolver.close()


def _all_secrets(plugins: Plugins, start: Mapping[str, Any]) -> set[str]:
    definition = plugins.load(start["class"]).config_def()
    return secret_values(start["worker"]) | secrets_of(plugins, start["config"]) | secret_values(start["task_config"], definition)


def _run(
    start: Mapping[str, Any],
    plugins: Plugins,
    control: TaskControl,
    channel: WorkerChannel,
    offset_writer: PipeOffsetWriter | OffsetWriterFactory,
    offset_topic: OffsetTopicFactory,
) -> None:
    from connect_py.api import BatchSinkTask, SinkTask, SourceTask
    from connect_py.config.client_overrides import clients_of, require_allowed
    from connect_py.kafka.settings import ClientKind

    connector = plugins.load(start["class"])()
    task_class = connector.task_class()
    used = clients_of(type(connector), start["worker"], start["config"])
    kinds = [*used, ClientKind.ADMIN] if issubclass(task_class, BatchSinkTask) else used
    require_allowed(start["worker"], start["config"], kinds, connector.client_prefixes)
    if issubclass(task_class, SourceTask):
        _run_source(start, plugins, control, channel, offset_writer, offset_topic, task_class())
    elif issubclass(task_class, BatchSinkTask):
        _run_batch_sink(start, plugins, control, channel, task_class())
    elif issubclass(task_class, SinkTask):
        _run_sink(start, plugins, control, channel, task_class())
    else:
        raise ConfigError(
            f"{start['class']} has tasks of class {task_class.__name__}, which is no SourceTask, SinkTask or BatchSinkTask. "
            "Nothing was read or written."
        )


def _run_source(
    start: Mapping[str, Any],
    plugins: Plugins,
    control: TaskControl,
    channel: WorkerChannel,
    offset_writer: PipeOffsetWriter | OffsetWriterFactory,
    offset_topic: OffsetTopicFactory,
    task: Any,
) -> None:
    from connect_py.kafka.admin import KafkaAdmin
    from connect_py.kafka.client import connector_admin_properties, source_producer_properties
    from connect_py.kafka.producer import Producer, delivery_error
    from connect_py.kafka.resting_producer import RestingProducer
    from connect_py.task.chain import Chain
    from connect_py.task.control import SourceContext
    from connect_py.task.failed_records import SendErrorHandler, SourceErrorReporter, Tolerance
    from connect_py.task.offsets import OffsetCommitter, SubmittedRecords, commits_records
    from connect_py.task.source import OffsetCommits, SourceTaskLoop
    from connect_py.task.topics import TopicCreator, topic_groups

    name, number, worker, config = start["connector"], start["task"], start["worker"], start["config"]
    metrics = SourceMetrics(MetricSettings.of(worker))
    errors = SourceErrorReporter(name, number, config, metrics.errors)
    tolerance = Tolerance(config, control.wait, errors, metrics.errors)
    chain = Chain(plugins, worker, config, tolerance, errors)
    _make_dead_letter_topic(start)
    statistics, only_errors = _clients(metrics), not commits_records(task)
    submitted = SubmittedRecords()
    writer: OffsetWriter | None = None
    producer: TransactionalProducer | RestingProducer
    committer: OffsetCommits
    stored, transactions = start["offsets"], None
    kept: OffsetTopic | None = None
    if start.get("exactly_once"):
        kept = offset_topic(worker, name, number, config)
        transactional, stored = _admit(start, control, channel, statistics.take, only_errors=only_errors)
        producer = transactional
        committer, transactions = _transactions(start, task, submitted, transactional, kept, metrics)
    else:
        properties = source_producer_properties(worker, name, number, config)
        producer = RestingProducer(lambda: Producer(properties, on_statistics=statistics.take, only_errors=only_errors), statistics)
        writer = offset_writer if isinstance(offset_writer, PipeOffsetWriter) else offset_writer(worker, name, number, config)
        committer = OffsetCommitter(task, submitted, writer, start["flush_interval"], metrics)
    metrics.active = producer.__len__
    metrics.add_source(task.metrics)
    groups = topic_groups(config) if start["topic_creation"] else []
    admin = KafkaAdmin(connector_admin_properties(worker, name, number, config)) if groups else None
    ensure: Callable[[str], None] = TopicCreator(groups, admin).ensure if admin else lambda topic: None
    loop = SourceTaskLoop(
        task,
        chain,
        producer,
        submitted,
        committer,
        control,
        _with_states(channel.report, metrics),
        SendErrorHandler(tolerance, errors),
        ensure_topic=ensure if kept is None else _but_not(kept.name, ensure),
        delivery_error=delivery_error,
        flush_timeout_seconds=start["flush_timeout"],
        metrics=metrics,
    )
    offsets = [(partition, offset) for partition, offset in stored]
    context = SourceContext(name, number, chain.encoding, offsets, channel.report, start["task_config"], transactions)
    _collect_garbage()
    try:
        loop.run(start["task_config"], context)
    finally:
        if writer is not None:
            writer.close(0.0)
        producer.close(0.0)
        if kept is not None and kept.copies is not None:
            kept.copies.close(_COPIES_SECONDS)
        if admin is not None:
            admin.close()


def _admit(
    start: Mapping[str, Any], control: TaskControl, channel: WorkerChannel, statistics: Callable[[str], None], *, only_errors: bool
) -> tuple[TransactionalProducer, list[Any]]:
    """Return the producer of an exactly-once task and the offsets from which it reads on. Raises TaskStopped, ConnectError."""
    from connect_py.kafka.client import transactional_producer_properties
    from connect_py.kafka.transactions import TransactionalProducer

    properties = transactional_producer_properties(start["worker"], start["connector"], start["task"], start["config"])
    channel.report({"type": "fence"})
    producer = TransactionalProducer(properties, on_statistics=statistics, only_errors=only_errors)  # which connects meanwhile
    control.await_answer()
    producer.begin(lambda: not control.is_stopping)
    channel.report({"type": "admit"})
    return producer, control.await_answer()["offsets"]


def _transactions(
    start: Mapping[str, Any],
    task: SourceTask,
    submitted: SubmittedRecords,
    producer: TransactionalProducer,
    topic: OffsetTopic,
    metrics: SourceMetrics,
) -> tuple[TransactionCommitter, TransactionRequests | None]:
    """Return what ends an exactly-once task's transactions, and what the connector asks of it. Raises ConfigError."""
    from connect_py.task.exactly_once import TransactionCommitter
    from connect_py.task.transaction_boundary import TransactionBoundary, TransactionRequests, boundary_rule

    config = start["config"]
    boundary = TransactionBoundary.of_property(config.get("transaction.boundary", "poll"))
    interval = config.get("transaction.boundary.interval.ms", "").strip()
    interval_ms = int(parse_value("transaction.boundary.interval.ms", interval, ConfigType.LONG)) if interval else None
    requests = TransactionRequests() if boundary is TransactionBoundary.CONNECTOR else None
    rule = boundary_rule(
        boundary, interval_ms=int(start["flush_interval"] * 1000) if interval_ms is None else interval_ms, requests=requests
    )
    committer = TransactionCommitter(
        task, submitted, producer, topic.name, topic.to_records, rule, start["flush_interval"], metrics, copies=topic.copies
    )
    return committer, requests


def _but_not(own: str, ensure: Callable[[str], None]) -> Callable[[str], None]:
    """Return `ensure`, but for the topic of offsets: a task's own records among them would be taken for offsets."""

    def checked(topic: str) -> None:
        if topic == own:
            raise FatalTaskError("Source tasks may not produce to their own offsets topics when exactly-once support is enabled")
        ensure(topic)

    return checked


def _run_sink(start: Mapping[str, Any], plugins: Plugins, control: TaskControl, channel: WorkerChannel, task: Any) -> None:
    from connect_py.config.connector import TOPICS, TOPICS_REGEX
    from connect_py.kafka.client import sink_consumer_properties
    from connect_py.kafka.consumer import GroupConsumer
    from connect_py.task.chain import SinkChain
    from connect_py.task.control import SinkContext
    from connect_py.task.failed_records import SinkErrorReporter, Tolerance
    from connect_py.task.sink import SinkTaskLoop

    name, number, worker, config = start["connector"], start["task"], start["worker"], start["config"]
    queue, close_queue = _dead_letters(start)
    try:
        metrics = SinkMetrics(MetricSettings.of(worker))
        metrics.add_source(task.metrics)
        errors = SinkErrorReporter(name, number, config, queue, metrics.errors)
        tolerance = Tolerance(config, control.wait, errors, metrics.errors)
        chain = SinkChain(plugins, worker, config, tolerance, errors)
        topics = [topic for topic in parse_value(TOPICS, config.get(TOPICS, ""), ConfigType.LIST) if topic]
        consumer = GroupConsumer(
            sink_consumer_properties(worker, name, number, config),
            topics,
            config.get(TOPICS_REGEX, "").strip() or None,
            on_statistics=_clients(metrics).take,
        )
        _collect_garbage()
        SinkTaskLoop(
            task,
            chain,
            errors,
            consumer,
            control,
            _with_states(channel.report, metrics),
            SinkContext(name, number, consumer, start["task_config"]),
            skip=tolerance.failed,
            commit_interval_seconds=start["flush_interval"],
            commit_timeout_seconds=start["flush_timeout"],
            metrics=metrics,
        ).run(start["task_config"])
    finally:
        close_queue()


def _collect_garbage() -> None:
    """Begin to look for garbage (the command left it off), but not among what was imported, which stays, and not several times a batch: its
    rows are up to 2,000 tuples."""
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


def _dead_letters(start: Mapping[str, Any]) -> tuple[Any, Callable[[], object]]:
    """Return the dead letter queue of a sink, its topic made sure of, and what closes its producer; (None, nothing) without one."""
    from connect_py.kafka.client import dead_letter_producer_properties
    from connect_py.kafka.producer import Producer
    from connect_py.task.dead_letters import DeadLetterQueue, has_context_headers

    name, number, worker, config = start["connector"], start["task"], start["worker"], start["config"]
    topic = _make_dead_letter_topic(start)
    if topic is None:
        return None, lambda: None
    producer = Producer(dead_letter_producer_properties(worker, name, number, config))
    queue = DeadLetterQueue(topic, producer, has_context=has_context_headers(config))
    return queue, lambda: producer.close(start["flush_timeout"])


def _make_dead_letter_topic(start: Mapping[str, Any]) -> str | None:
    """Make sure of a connector's dead letter queue; None when it has none. Raises FatalTaskError."""
    from connect_py.kafka.admin import KafkaAdmin
    from connect_py.kafka.client import dead_letter_admin_properties
    from connect_py.task.dead_letters import create_dead_letter_topic, dead_letter_topic

    topic = dead_letter_topic(start["config"])
    if topic is not None:
        admin = KafkaAdmin(dead_letter_admin_properties(start["worker"], start["connector"], start["task"], start["config"]))
        try:
            create_dead_letter_topic(admin.create_topic, topic, start["config"])
        finally:
            admin.close()
    return topic


def _run_batch_sink(start: Mapping[str, Any], plugins: Plugins, control: TaskControl, channel: WorkerChannel, task: Any) -> None:
    from connect_py.kafka.admin import KafkaAdmin
    from connect_py.kafka.client import connector_admin_properties, sink_consumer_properties
    from connect_py.kafka.consumer import GroupCommitter
    from connect_py.kafka.range_reader import RangeReader
    from connect_py.task.batch_sink import BatchSinkTaskLoop, SinkContext
    from connect_py.task.chain import WorkerConversion
    from connect_py.task.failed_records import SinkErrorReporter

    name, number, worker, config = start["connector"], start["task"], start["worker"], start["config"]
    conversion = functools.cache(lambda: WorkerConversion.of(plugins, worker, config))
    queue, close_queue = _dead_letters(start)
    options = sink_consumer_properties(worker, name, number, config)
    group = options["group.id"]
    admin = KafkaAdmin(connector_admin_properties(worker, name, number, config))
    committer = GroupCommitter(options, group)
    ranges = RangeReader(options)
    try:
        metrics = SinkMetrics(MetricSettings.of(worker))
        metrics.add_source(task.metrics)
        errors = SinkErrorReporter(name, number, config, queue, metrics.errors)
        _collect_garbage()
        context = SinkContext(name, number, options, group, admin, ranges, errors, metrics.errors, conversion, channel.report)
        BatchSinkTaskLoop(task, committer, control, _with_states(channel.report, metrics), metrics).run(start["task_config"], context)
    finally:
        close_queue()
        ranges.close()
        committer.close()
        admin.close()


def _clients(metrics: TaskMetrics) -> Any:
    from connect_py.kafka.client_statistics import ClientStatistics

    clients = ClientStatistics()
    metrics.add_source(clients.groups)
    return clients


def _with_states(report: Report, metrics: TaskMetrics) -> Report:
    """Return a way to the worker that counts the time in each state on the way."""

    def reporting(message: Mapping[str, Any]) -> None:
        if message["type"] == "state":
            metrics.state(message["state"])
        report(message)

    return reporting


if sys.platform == "win32":
    raise ConfigError("The worker runs on Linux and macOS: it needs process groups.")
