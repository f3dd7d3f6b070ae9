"""The source loop over a fake source and a fake producer: what is sent, when offsets are committed, how failures end."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from connect_py.api import EncodedBatch, Header, RecordMetadata, Route, SourceRecord, SourceTask
from connect_py.clock import SystemClock
from connect_py.data.schema import STRING
from connect_py.errors import ConnectError, DataError, FatalTaskError, RetriableError
from connect_py.kafka.producer import RECORD_TOO_LARGE
from connect_py.plugins.registry import Plugins
from connect_py.task.chain import Chain
from connect_py.task.control import SourceContext, TaskControl
from connect_py.task.failed_records import SendErrorHandler, SourceErrorReporter, Tolerance
from connect_py.task.offsets import OffsetCommitter, SubmittedRecords, commits_records
from connect_py.task.producing import RELEASE_AFTER_SECONDS
from connect_py.task.source import SourceTaskLoop
from tests.waiting import eventually

JSON = "org.apache.kafka.connect.json.JsonConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
DROPS = "test.Drops"
WORKER = {"key.converter": JSON, "value.converter": JSON, "header.converter": TEXT}
PARTITION = {"server": "a"}


class Drops:
    """A transform that drops ``drop`` and refuses ``bad``."""

    java_name = DROPS
    version = "1"

    def configure(self, config: Mapping[str, str]) -> None: ...

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        if record.value == "bad":
            raise DataError("bad is refused")
        return None if record.value == "drop" else record

    def close(self) -> None: ...


PLUGINS = Plugins(
    {DROPS: Drops, JSON: "connect_py.converters.json_converter:JsonConverter", TEXT: "connect_py.converters.primitive:StringConverter"}
)


class Message:
    def __init__(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        self._topic, self._key, self._value = topic, key, value

    def topic(self) -> str:
        return self._topic

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 40

    def timestamp(self) -> tuple[int, int]:
        return 1, 1700000000000

    def __len__(self) -> int:
        return 7


class HastyClock(SystemClock):
    """The machine's, but that waits for Kafka's answers are over at once."""

    passed = 0.0

    def now(self) -> float:
        return super().now() + self.passed


class FakeProducer:
    """Acknowledges at the next `poll`, unless told otherwise."""

    holds_back = True

    def __init__(self, clock: HastyClock) -> None:
        self.clock = clock
        self.sent: list[tuple[str, bytes | None, bytes | None, Any]] = []
        self.waiting: list[tuple[Message, Callable[..., None]]] = []
        self.is_away = False
        self.full_times = 0
        self.failures: list[Exception] = []
        self.times: list[int] = []
        self.refusal: object = None
        self.refuses: Callable[[Message], bool] = lambda message: True
        self.hurried: list[int] = []
        self.released: list[int] = []
        self.only_errors = True

    def send(self, topic, value, key, partition, callback, on_delivery, timestamp, headers) -> None:
        if self.full_times:
            self.full_times -= 1
            raise BufferError
        if self.failures:
            raise self.failures.pop()
        self.times.append(timestamp)
        self.sent.append((topic, key, value, headers))
        self.waiting.append((Message(topic, key, value), callback))

    def produce(self, topic, value, key=None, headers=None, on_delivery=None, *, partition=-1, timestamp=0, while_waiting=None) -> None:
        while True:
            try:
                return self.send(topic, value, key, partition, on_delivery, None, timestamp, headers)
            except BufferError:
                while_waiting()

    def __len__(self) -> int:
        return len(self.waiting)

    def poll(self, timeout_seconds: float = 0.0) -> int:
        if self.is_away:
            return 0
        ready, self.waiting = self.waiting, []
        for message, callback in ready:
            if self.refusal is not None and self.refuses(message):
                callback(self.refusal, message)
            elif not self.only_errors:
                callback(None, message)
        return len(ready)

    def flush(self, timeout_seconds: float) -> int:
        self.poll(timeout_seconds)
        if self.waiting:
            self.clock.passed += timeout_seconds
        return len(self.waiting)

    def send_now(self) -> None:
        self.hurried.append(len(self.sent))

    def release(self) -> bool:
        self.released.append(len(self.sent))
        return not self.waiting


class MemoryWriter:
    def __init__(self) -> None:
        self.stored: list[tuple[Any, Any]] = []
        self.failures = 0
        self.released = 0
        self._done: list[tuple[Any, Any]] = []

    def write(self, offsets, done) -> None:
        self._done.append((offsets, done))

    def serve(self, timeout: float = 0.0) -> None:
        ready, self._done = self._done, []
        for offsets, done in ready:
            if self.failures:
                self.failures -= 1
                done(RetriableError("the broker is away"))
            else:
                self.stored += offsets
                done(None)

    def release(self) -> None:
        self.released += 1

    def close(self, timeout: float) -> None:
        pass


class ScriptedTask(SourceTask):
    """Gives what the script says; an exception in it is raised; after its end the task is asked to stop."""

    heard: list[tuple[Any, RecordMetadata | None]]

    def __init__(self, script: Sequence[Any], at_end: Callable[[], None]) -> None:
        self.script = list(script)
        self.at_end = at_end
        self.committed: list[Any] = []
        self.closed = 0
        self.kept_alive = 0

    def start(self, config, context) -> None:
        self.context = context

    def poll(self):
        if not self.script:
            self.at_end()
            return None
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        return step() if callable(step) else step

    def offsets_committed(self, offsets) -> None:
        self.committed += offsets

    def keep_alive(self) -> None:
        self.kept_alive += 1

    def close(self) -> None:
        self.closed += 1


class CommittingTask(ScriptedTask):
    """Remembers what it hears of its records; fails for ``odd``."""

    def __init__(self, script: Sequence[Any], at_end: Callable[[], None]) -> None:
        super().__init__(script, at_end)
        self.heard = []

    def commit_record(self, record, metadata) -> None:
        self.heard.append((record.value, metadata))
        if record.value == "odd":
            raise ValueError("the queue is away")


class Run:
    def __init__(
        self,
        *script: Any,
        config: dict[str, str] | None = None,
        paused: bool = False,
        interval: float = 1000.0,
        kind: type[ScriptedTask] = ScriptedTask,
        delivery_error: Callable[..., ConnectError] = lambda error, topic, size: ConnectError(f"{error} ({topic}, {size})"),
    ) -> None:
        clock = HastyClock()
        self.control = TaskControl(paused=paused, clock=clock)
        self.task = kind(script, lambda: self.control.stop(1.0))
        self.producer, self.writer, self.reports = FakeProducer(clock), MemoryWriter(), []
        self.producer.only_errors = not commits_records(self.task)
        config = config or {}
        errors = SourceErrorReporter("c", 0, config)
        tolerance = Tolerance(config, self.control.wait, errors)
        chain = Chain(PLUGINS, WORKER, config, tolerance, errors)
        submitted = SubmittedRecords()
        self.chain = chain
        self.loop = SourceTaskLoop(
            self.task,
            chain,
            self.producer,
            submitted,
            OffsetCommitter(self.task, submitted, self.writer, interval),
            self.control,
            self.reports.append,
            SendErrorHandler(tolerance, errors),
            delivery_error=delivery_error,
            flush_timeout_seconds=0.2,
            clock=clock.now,
        )

    def __call__(self) -> "Run":
        self.loop.run({}, SourceContext("c", 0, self.chain.encoding, []))
        return self

    @property
    def states(self) -> list[str]:
        return [report["state"] for report in self.reports if report["type"] == "state"]


def batch(position: int, rows: int = 2, route: Route | None = None) -> EncodedBatch:
    route = route or Route("t", STRING, STRING, headers=(("h", "x"),))
    return EncodedBatch([(route, b'"%d"' % i, b'"v%d"' % i) for i in range(rows)], PARTITION, {"pos": position})


def test_encoded_rows_go_out_untouched_and_their_offset_is_committed_at_the_end() -> None:
    run = Run(batch(1), batch(2))()
    assert [sent[1:3] for sent in run.producer.sent] == [(b'"0"', b'"v0"'), (b'"1"', b'"v1"')] * 2
    assert run.producer.sent[0][3] == [("h", b"x")]
    assert run.writer.stored == [(PARTITION, {"pos": 2})]
    assert run.task.committed == [(PARTITION, {"pos": 2})]
    assert run.task.closed == 1
    assert run.states == ["RUNNING"]
    assert {"type": "topic", "topic": "t"} in run.reports


def test_records_of_other_topics_wait_for_the_first_ones_of_a_new_topic() -> None:
    run = Run(batch(1), EncodedBatch([(Route(name, None, STRING), None, b'"v"') for name in ("t", "new", "t")], PARTITION, {"pos": 2}))
    under_way: list[tuple[str, int]] = []
    send = run.producer.send

    def sending(topic: str, *more: Any) -> None:
        under_way.append((topic, len(run.producer)))
        send(topic, *more)

    run.producer.send = sending
    run()
    assert under_way == [("t", 0), ("t", 1), ("t", 0), ("new", 1), ("t", 0)]


def test_records_are_converted() -> None:
    record = SourceRecord(PARTITION, {"pos": 1}, "t", value_schema=STRING, value="one")
    run = Run([record])()
    assert run.producer.sent == [("t", None, b'{"schema":{"type":"string","optional":false},"payload":"one"}', None)]
    assert run.writer.stored == [(PARTITION, {"pos": 1})]


def test_another_converter_gets_decoded_rows() -> None:
    run = Run(batch(1, rows=1), config={"value.converter": TEXT})
    assert not run.chain.encoding.value_schemas
    run()
    assert run.producer.sent[0][2] == b"v0"


def test_rows_before_one_that_fails_are_sent_and_the_batchs_offset_is_not_committed() -> None:
    route = Route("t", STRING, STRING)
    failing = EncodedBatch([(route, None, value) for value in (b'"one"', b'"bad"', b'"two"')], PARTITION, {"pos": 2})
    run = Run(batch(1), None, failing, config={"transforms": "d", "transforms.d.type": DROPS})
    with pytest.raises(FatalTaskError, match="Tolerance exceeded"):
        run()
    assert [b"one" in sent[2] for sent in run.producer.sent] == [False, False, True]
    assert run.writer.stored == [(PARTITION, {"pos": 1})]


def test_a_batch_without_rows_moves_the_offset() -> None:
    assert Run(batch(1), batch(5, rows=0))().writer.stored == [(PARTITION, {"pos": 5})]


def test_what_kafka_did_not_acknowledge_is_not_committed() -> None:
    run = Run(batch(1), None, lambda: setattr(run.producer, "is_away", True), batch(2))
    run()
    assert run.writer.stored == [(PARTITION, {"pos": 1})]


def test_a_milestones_offset_is_committed_once_kafka_holds_its_rows() -> None:
    stored: list[list[Any]] = []
    away = batch(2)
    away.is_milestone = True
    run = Run(batch(1), lambda: setattr(run.producer, "is_away", True), away, None, lambda: stored.append(list(run.writer.stored)))

    def come_back() -> None:
        stored.append(list(run.writer.stored))
        run.producer.is_away = False

    run.task.keep_alive = come_back
    run()
    assert stored == [[], [(PARTITION, {"pos": 2})]], "the regular commit is a thousand seconds away"


def test_a_stop_ends_the_wait_for_a_commit() -> None:
    run = Run(batch(1), lambda: setattr(run.producer, "is_away", True), batch(2), None, interval=0.0)
    run.task.keep_alive = lambda: run.control.stop(0.1)
    run()
    assert run.writer.stored == [(PARTITION, {"pos": 1})]
    assert run.task.closed == 1


def test_a_writer_without_work_is_let_go_once_and_again_after_the_next_write() -> None:
    now = 0.0
    submitted, writer = SubmittedRecords(), MemoryWriter()
    committer = OffsetCommitter(ScriptedTask([], lambda: None), submitted, writer, 60.0, clock=lambda: now)

    def passes(seconds: float) -> int:
        nonlocal now
        for _ in range(int(seconds)):
            now += 1.0
            committer.serve()
        return writer.released

    assert passes(80) == 0
    submitted.submit(PARTITION, {"pos": 1}).held -= 1
    submitted.delivered()
    committer.commit()
    assert passes(80) == 0
    assert writer.stored == [(PARTITION, {"pos": 1})]
    assert passes(1000) == 1


def test_the_client_of_a_source_at_rest_is_closed_once_kafka_holds_everything() -> None:
    run = Run()

    def passes(seconds: float, *, is_away: bool = False) -> None:
        run.producer.clock.passed += seconds
        run.producer.is_away = is_away

    long = RELEASE_AFTER_SECONDS + 1
    run.task.script = [batch(1), None, lambda: passes(long - 2), lambda: passes(2), None]
    run.task.script += [lambda: passes(0, is_away=True), batch(2), None, lambda: passes(long, is_away=True), lambda: passes(0), None]
    run.task.script += [lambda: passes(long), None, batch(3)]
    run()
    assert run.producer.released == [2, 4]
    assert len(run.producer.sent) == 6
    assert run.writer.stored == [(PARTITION, {"pos": 3})]


def test_the_client_of_a_paused_source_is_closed_too() -> None:
    run = Run()

    def pause() -> None:
        run.control.pause(True)
        run.producer.clock.passed += RELEASE_AFTER_SECONDS + 1

    run.task.script = [batch(1), None, pause, batch(2)]
    run.task.keep_alive = lambda: run.control.pause(False)
    run()
    assert run.producer.released == [2]
    assert run.states == ["RUNNING", "PAUSED", "RUNNING"]
    assert len(run.producer.sent) == 4


@pytest.mark.parametrize("ask", [lambda control: control.pause(True), lambda control: control.ask({"id": "1"})])
def test_a_task_is_interrupted_when_something_is_asked_of_it(ask: Callable[[TaskControl], None]) -> None:
    control, calls = TaskControl(), []
    control.on_asked(lambda: calls.append(control.is_paused or control.take_asked()))
    ask(control)
    assert len(calls) == 1
    assert calls[0], "what is asked for can be seen by then"


def test_while_a_producer_that_is_never_empty_is_served_commits_wait_for_a_moment_at_which_it_is() -> None:
    run = Run(batch(1), batch(2), batch(3), interval=0.0)
    polled = run.producer.poll

    def half(timeout_seconds: float = 0.0) -> int:
        """One record a call."""
        later, run.producer.waiting = run.producer.waiting[1:], run.producer.waiting[:1]
        count = polled()
        run.producer.waiting = later
        return count

    run.producer.poll = half
    run()
    assert [offset["pos"] for _, offset in run.task.committed] == [1, 2, 3]


def test_no_offset_is_committed_of_a_batch_that_is_half_sent() -> None:
    run = Run(batch(1), batch(2, rows=4), interval=0.0)

    def full() -> None:
        """The queue is full after the second batch's first rows, and empty when the loop looks again."""
        if len(run.producer.sent) == 4:
            run.producer.full_times = 1

    run.task.keep_alive = lambda: (run.producer.poll(), run.control.stop(0.1))
    send = run.producer.send

    def sending(*arguments: Any) -> None:
        full()
        send(*arguments)

    run.producer.send = sending
    run()
    assert run.writer.stored == [(PARTITION, {"pos": 1})]


def test_a_refused_record_fails_the_task_and_no_offset_beyond_it_is_committed() -> None:
    run = Run(batch(1), None, lambda: setattr(run.producer, "refusal", "too large"), batch(2), None, None)
    with pytest.raises(FatalTaskError, match="Unrecoverable exception from producer send callback") as failure:
        run()
    assert str(failure.value.__cause__) == "too large (t, 7)"
    assert run.writer.stored == [(PARTITION, {"pos": 1})]
    assert run.task.closed == 1


def test_a_refused_record_is_skipped_with_tolerance_all() -> None:
    run = Run(lambda: setattr(run.producer, "refusal", "too large"), batch(2), config={"errors.tolerance": "all"})
    assert run().writer.stored == [(PARTITION, {"pos": 2})]


def test_a_record_that_is_too_large_leaves_a_letter_with_its_key_and_size() -> None:
    def refuse(error: object, topic: str, size: int) -> ConnectError:
        cause = ConnectError("too large")
        cause.java_name = RECORD_TOO_LARGE
        return cause

    config = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
    run = Run(lambda: setattr(run.producer, "refusal", "too large"), batch(2, rows=1), config=config, delivery_error=refuse)
    run.producer.refuses = lambda message: len(message.value() or b"") > 1
    run()
    assert run.producer.sent[1] == ("dead", b'"0"', None, [("__connect.errors.value.bytes", b"4")])
    assert run.writer.stored == [(PARTITION, {"pos": 2})]


def test_a_skipped_record_leaves_a_letter_and_its_offset_waits_for_it() -> None:
    config = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dead",
        "errors.deadletterqueue.context.headers.enable": "true",
        "transforms": "d",
        "transforms.d.type": DROPS,
    }
    record = SourceRecord(PARTITION, {"pos": 1}, "t", STRING, "k", STRING, "bad", timestamp=5, headers=[Header("own", "h", STRING)])
    run = Run([record], None, lambda: setattr(run.producer, "is_away", True), [record], config=config)
    run()
    topic, key, value, headers = run.producer.sent[0]
    assert (topic, key) == ("dead", b'{"schema":{"type":"string","optional":false},"payload":"k"}')
    assert value == b'{"schema":{"type":"string","optional":false},"payload":"bad"}'
    names = "topic connector.name task.id stage class.name exception.class.name exception.message exception.stacktrace"
    assert [name for name, _ in headers] == [
        "own",
        *(f"__connect.errors.{name}" for name in names.split()),
        *("__connect.errors.source.partition", "__connect.errors.source.offset"),
    ]
    assert [headers[at][1] for at in (1, 4, 7, 9, 10)] == [b"t", b"TRANSFORMATION", b"bad is refused", b'{"server":"a"}', b'{"pos":1}']
    assert run.writer.stored == [(PARTITION, {"pos": 1})], "the second letter was not acknowledged"
    assert not any(report["type"] == "topic" for report in run.reports), "the queue is no topic of the connector"


def test_a_letter_that_kafka_refuses_fails_the_task_and_no_offset_passes_it() -> None:
    config = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead", "transforms": "d", "transforms.d.type": DROPS}
    good, bad = (SourceRecord(PARTITION, {"pos": n}, "t", None, None, STRING, value) for n, value in ((1, "good"), (2, "bad")))
    run = Run(lambda: setattr(run.producer, "refusal", "not allowed"), [good, bad], None, None, config=config)
    run.producer.refuses = lambda message: message.topic() == "dead"
    with pytest.raises(FatalTaskError, match="Could not produce message to dead letter queue"):
        run()
    assert run.writer.stored == [(PARTITION, {"pos": 1})]


@pytest.mark.parametrize(("given", "sent"), [(None, 0), (-1, 0), (5, 5)])
def test_a_time_of_minus_one_is_none(given: int | None, sent: int) -> None:
    run = Run([SourceRecord(PARTITION, {"pos": 1}, "t", value_schema=STRING, value="x", timestamp=given)])()
    assert run.producer.times == [sent]


def test_a_time_before_1970_fails_the_task_whatever_the_tolerance() -> None:
    record = SourceRecord(PARTITION, {"pos": 1}, "t", value_schema=STRING, value="x", timestamp=-5)
    with pytest.raises(FatalTaskError, match="Invalid record timestamp -5"):
        Run([record], config={"errors.tolerance": "all"})()


def test_a_passing_failure_to_send_is_repeated() -> None:
    run = Run([SourceRecord(PARTITION, {"pos": 1}, "t", value_schema=STRING, value="x")])
    run.producer.failures = [RetriableError("away"), RetriableError("away")]
    run()
    assert len(run.producer.sent) == 1
    assert run.writer.stored == [(PARTITION, {"pos": 1})]


def test_a_dropped_record_leaves_no_letter() -> None:
    config = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead", "transforms": "d", "transforms.d.type": DROPS}
    assert Run([SourceRecord(PARTITION, {"pos": 1}, "t", value_schema=STRING, value="drop")], config=config)().producer.sent == []


def test_the_error_log_shows_the_record_as_the_reference_does(caplog: pytest.LogCaptureFixture) -> None:
    config = {"errors.tolerance": "all", "errors.log.enable": "true", "errors.log.include.messages": "true"}
    config |= {"transforms": "d", "transforms.d.type": DROPS}
    record = SourceRecord(PARTITION, {"pos": 1}, "t", None, None, STRING, "bad", timestamp=5, headers=[Header("own", "h", STRING)])
    Run([record], config=config)()
    [line, trace, *_] = caplog.messages[0].splitlines()
    assert line == (
        "Error encountered in task c-0. Executing stage 'TRANSFORMATION' with class 'test.Drops', where source record is = "
        "SourceRecord{sourcePartition={server=a}, sourceOffset={pos=1}} ConnectRecord{topic='t', kafkaPartition=null, key=null, "
        "keySchema=null, value=bad, valueSchema=Schema{STRING}, timestamp=5, "
        "headers=ConnectHeaders(headers=[ConnectHeader(key=own, value=h, schema=Schema{STRING})])}."
    )
    assert trace == "org.apache.kafka.connect.errors.DataException: bad is refused"


def test_a_retriable_poll_is_repeated_and_any_other_failure_ends_the_task_after_a_last_commit() -> None:
    run = Run(batch(1), RetriableError("away"), batch(2), ConnectError("broken"))
    with pytest.raises(ConnectError, match="broken"):
        run()
    assert run.writer.stored == [(PARTITION, {"pos": 2})]
    assert run.task.closed == 1


def test_a_failure_in_start_still_closes_the_task() -> None:
    run = Run()
    run.task.start = lambda config, context: (_ for _ in ()).throw(ConnectError("no route to host"))
    with pytest.raises(ConnectError, match="no route"):
        run()
    assert run.task.closed == 1
    assert run.states == []


def test_a_failed_offset_write_is_tried_again_and_does_not_fail_the_task() -> None:
    run = Run(batch(1), None, batch(2), None, interval=0.0)
    run.writer.failures = 1
    run()
    assert run.writer.stored[-1] == (PARTITION, {"pos": 2})
    assert run.task.committed == run.writer.stored


def test_a_full_queue_keeps_the_source_alive_and_a_stop_ends_the_wait() -> None:
    run = Run(batch(1), batch(2))
    run.producer.full_times = 3
    run()
    assert run.task.kept_alive == 2
    assert len(run.producer.sent) == 4

    stuck = Run(batch(1), batch(2))
    stuck.producer.full_times = 10**9
    stuck.task.keep_alive = lambda: stuck.control.stop(0.1)
    stuck()
    assert stuck.writer.stored == []
    assert stuck.task.closed == 1


def test_a_task_that_begins_paused_is_started_when_it_is_resumed() -> None:
    run = Run(batch(1), paused=True)
    thread = threading.Thread(target=run)
    thread.start()
    eventually(lambda: run.states == ["PAUSED"], "reported state", 5, pause=0.005)
    assert run.states == ["PAUSED"]
    assert not hasattr(run.task, "context")
    run.control.pause(False)
    thread.join(60)
    assert run.states == ["PAUSED", "RUNNING"]
    assert run.writer.stored == [(PARTITION, {"pos": 1})]


def test_a_paused_task_goes_on_where_it_was() -> None:
    def pause() -> None:
        run.control.pause(True)
        threading.Timer(0.05, run.control.pause, [False]).start()

    run = Run(batch(1), pause, batch(2))
    run()
    assert run.states == ["RUNNING", "PAUSED", "RUNNING"]
    assert run.task.kept_alive >= 1
    assert run.writer.stored[-1] == (PARTITION, {"pos": 2})


def test_the_context_finds_offsets_whatever_the_order_of_the_partitions_keys() -> None:
    context = SourceContext("c", 0, Run().chain.encoding, [({"a": 1, "b": 2}, {"pos": 3})])
    assert context.offset({"b": 2, "a": 1}) == {"pos": 3}
    assert context.offset({"a": 1}) is None


WHERE = RecordMetadata("t", 3, 40, 1700000000000)


def texts(*values: str) -> list[SourceRecord]:
    return [SourceRecord(PARTITION, {"pos": number}, "t", value_schema=STRING, value=value) for number, value in enumerate(values)]


def test_a_task_that_wants_to_hears_of_each_record_that_kafka_took_or_a_transform_dropped() -> None:
    run = Run(texts("one", "drop", "odd", "two"), config={"transforms": "d", "transforms.d.type": DROPS}, kind=CommittingTask)()
    assert run.task.heard == [("drop", None), ("one", WHERE), ("odd", WHERE), ("two", WHERE)]
    assert run.writer.stored == [(PARTITION, {"pos": 3})]


def test_a_task_hears_of_records_that_were_skipped() -> None:
    tolerant = {"errors.tolerance": "all", "transforms": "d", "transforms.d.type": DROPS}
    run = Run(texts("bad", "one", "two"), config=tolerant, kind=CommittingTask)
    run.producer.refusal, run.producer.refuses = "too odd", lambda message: b"two" in message.value()
    run()
    assert run.task.heard == [("bad", None), ("one", WHERE), ("two", None)]


def test_a_task_hears_of_a_skipped_record_once_kafka_has_its_dead_letter() -> None:
    tolerant = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dlq", "transforms": "d", "transforms.d.type": DROPS}
    heard: list[list[Any]] = []
    run = Run(texts("bad"), lambda: heard.append(list(run.task.heard)), config=tolerant, kind=CommittingTask)
    run.producer.is_away = True
    run.task.script.append(lambda: setattr(run.producer, "is_away", False))
    run()
    assert (heard, run.task.heard, run.producer.sent[0][0]) == ([[]], [("bad", None)], "dlq")


def test_a_task_hears_nothing_of_a_record_that_failed_it() -> None:
    run = Run(texts("one"), None, kind=CommittingTask)
    run.producer.refusal = "too odd"
    with pytest.raises(FatalTaskError):
        run()
    assert run.task.heard == []
