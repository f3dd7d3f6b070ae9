"""The sink loop over a twin consumer: what is put, when offsets are committed, how failures and rebalances end."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from connect_py.api import SinkRecord, SinkTask, TopicPartition
from connect_py.errors import DataError, FatalTaskError, RetriableError
from connect_py.kafka.consumer import ConsumedRecord
from connect_py.log.traces import trace_of
from connect_py.metrics.task import SinkMetrics
from connect_py.plugins.registry import Plugins
from connect_py.task.chain import SinkChain
from connect_py.task.control import SinkContext, TaskControl
from connect_py.task.dead_letters import DeadLetterQueue, context_headers, create_dead_letter_topic
from connect_py.task.failed_records import SinkErrorReporter, Tolerance
from connect_py.task.sink import SinkTaskLoop
from connect_py.task.sink_commit import SinkOffsets
from tests.waiting import eventually

JSON = "org.apache.kafka.connect.json.JsonConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
DROPS = "test.Drops"
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Drops:
    """A transform that drops ``drop`` and refuses ``bad``."""

    java_name = DROPS
    version = "1"

    def configure(self, config: Mapping[str, str]) -> None: ...

    def apply(self, record: SinkRecord) -> SinkRecord | None:
        if record.value == "bad":
            raise DataError("bad is refused")
        return None if record.value == "drop" else record

    def close(self) -> None: ...


def plugins() -> Plugins:
    return Plugins(
        {JSON: "connect_py.converters.json_converter:JsonConverter", TEXT: "connect_py.converters.primitive:StringConverter", DROPS: Drops}
    )


def raw(offset: int, value: bytes | None = b"v", partition: int = 0, **more: Any) -> ConsumedRecord:
    return ConsumedRecord("t", partition, offset, 1_000 + offset, "CreateTime", more.get("key"), value, more.get("headers", ()))


class TwinConsumer:
    """A consumer whose polls are given: lists of records, or calls of the listener. After the last one it stops the task."""

    def __init__(self, control: TaskControl, polls: Sequence[Any], positions: Mapping[TopicPartition, int]) -> None:
        self.control = control
        self.polls = [lambda: self.assign(positions), *polls]
        self.assigned: set[TopicPartition] = set()
        self.paused: set[TopicPartition] = set()
        self.seeks: list[tuple[TopicPartition, int]] = []
        self.commits: list[dict[TopicPartition, int]] = []
        self.refusals: list[Exception] = []
        self.answers: list[Callable[[], None]] = []
        self.holds_answers = False
        self.is_closed = False

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self.assigned)

    def subscribe(self, listener: Any) -> None:
        self.listener = listener

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self.assigned |= set(positions)
        self.listener.on_assigned(positions)

    def revoke(self, *partitions: TopicPartition) -> None:
        self.listener.on_revoked(partitions)
        self.assigned -= set(partitions)

    def lose(self, *partitions: TopicPartition) -> None:
        self.listener.on_lost(partitions)
        self.assigned -= set(partitions)

    def poll(self, timeout_seconds: float) -> list[ConsumedRecord]:
        if not self.holds_answers:
            for answer in self.answers:
                answer()
            self.answers.clear()
        if self.paused and self.polls and isinstance(self.polls[0], list):
            return []
        if not self.polls:
            self.control.stop(5)
            return []
        step = self.polls.pop(0)
        if callable(step):
            step()
            return []
        return list(step)

    def pause(self, partitions: Any) -> None:
        self.paused |= set(partitions)

    def resume(self, partitions: Any) -> None:
        self.paused -= set(partitions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.seeks.append((partition, offset))

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.commits.append(dict(offsets))

    def commit_async(self, offsets: Mapping[TopicPartition, int], done: Callable[[Exception | None], None]) -> None:
        self.commits.append(dict(offsets))
        problem = self.refusals.pop(0) if self.refusals else None
        self.answers.append(lambda: done(problem))

    def close(self) -> None:
        self.is_closed = True


class Sink(SinkTask):
    """Notes every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.put_failures: list[Exception] = []
        self.commit_failures: list[Exception] = []
        self.accepts: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]] = lambda offsets: offsets
        self.on_put: Callable[[Sequence[SinkRecord]], None] = lambda records: None

    def start(self, config: Mapping[str, str], context: Any) -> None:
        self.context = context
        self.calls.append(("start", None))

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.calls.append(("put", [record.value for record in records]))
        self.on_put(records)
        if self.put_failures and records:
            raise self.put_failures.pop(0)

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("open", list(partitions)))

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("close", list(partitions)))

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self.calls.append(("pre_commit", dict(offsets)))
        if self.commit_failures:
            raise self.commit_failures.pop(0)
        return self.accepts(offsets)

    def stop(self) -> None:
        self.calls.append(("stop", None))

    def puts(self) -> list[Any]:
        return [what for name, what in self.calls if name == "put" and what]


class FakeProducer:
    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self.waiting: list[Callable[..., None]] = []
        self.refusal: Any = None

    def produce(self, topic, value, key=None, headers=None, on_delivery=None, *, partition=-1, timestamp=0, while_waiting=None) -> None:
        self.sent.append((topic, key, value, headers, timestamp))
        self.waiting.append(on_delivery)

    def poll(self, timeout_seconds: float = 0.0) -> int:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback(self.refusal, None)
        return len(waiting)


class Rig:
    """A loop with everything around it."""

    def __init__(
        self,
        polls: Sequence[Any],
        positions: Mapping[TopicPartition, int] | None = None,
        *,
        interval: float = 60,
        timeout: float = 0.2,
        paused=False,
        **config: str,
    ) -> None:
        self.control = TaskControl(paused=paused)
        self.reports: list[Any] = []
        self.consumer = TwinConsumer(self.control, polls, {P0: 0} if positions is None else positions)
        self.task = Sink()
        self.context, self.metrics = SinkContext("c", 0, self.consumer), SinkMetrics()
        self.producer = FakeProducer()
        queue = DeadLetterQueue("dead", self.producer, has_context=True) if config.pop("queue", "") else None
        self.errors = SinkErrorReporter("c", 0, config, queue)
        tolerance = Tolerance(config, self.control.wait, self.errors)
        worker = {"key.converter": TEXT, "value.converter": TEXT, "header.converter": TEXT}
        if queue or "drop" in str(polls):
            config |= {"transforms": "d", "transforms.d.type": DROPS}
        self.loop = SinkTaskLoop(
            self.task,
            SinkChain(plugins(), worker, config, tolerance, self.errors),
            self.errors,
            self.consumer,
            self.control,
            self.reports.append,
            self.context,
            skip=tolerance.failed,
            commit_interval_seconds=interval,
            commit_timeout_seconds=timeout,
            metrics=self.metrics,
        )

    def run(self) -> None:
        self.loop.run({})

    def states(self) -> list[str]:
        return [report["state"] for report in self.reports if report["type"] == "state"]


def test_records_are_put_and_their_offsets_committed_before_the_partition_goes() -> None:
    rig = Rig([[raw(0, b"a"), raw(1, b"b")], [raw(2, b"c")]])
    rig.run()
    assert rig.task.puts() == [["a", "b"], ["c"]]
    assert rig.consumer.commits == [{P0: 3}]
    names = [name for name, _ in rig.task.calls]
    assert names[:2] == ["start", "open"] and names[-3:] == ["pre_commit", "close", "stop"]
    assert rig.consumer.is_closed
    assert [report["topic"] for report in rig.reports if report["type"] == "topic"] == ["t"]


def test_put_is_called_with_nothing_when_there_is_nothing() -> None:
    rig = Rig([[], []], interval=0.0)
    rig.run()
    assert ("put", []) in rig.task.calls
    assert rig.consumer.commits == [], "nothing was consumed, so nothing is committed"


def test_a_retriable_failure_brings_the_same_records_again_while_partitions_rest() -> None:
    rig = Rig([[raw(0, b"a"), raw(1, b"b")], [raw(2, b"c")]])
    rig.task.put_failures = [RetriableError("away"), RetriableError("away")]
    seen: list[tuple[int, bool]] = []

    def on_put(records: Sequence[SinkRecord]) -> None:
        rig.task.context.retry_after(0.01)
        if records:
            seen.append((len(records), bool(rig.consumer.paused)))

    rig.task.on_put = on_put
    rig.run()
    assert rig.task.puts() == [["a", "b"], ["a", "b"], ["a", "b"], ["c"]]
    assert seen == [(2, False), (2, True), (2, True), (1, False)]
    assert rig.consumer.commits == [{P0: 3}]


def test_offsets_of_a_batch_that_is_not_taken_are_not_committed() -> None:
    rig = Rig([[raw(0)], [raw(1)]])
    rig.task.on_put = lambda records: rig.task.put_failures.append(ValueError("broken")) if records and records[0].offset == 1 else None
    with pytest.raises(FatalTaskError, match="Exiting WorkerSinkTask due to unrecoverable exception") as failure:
        rig.run()
    assert repr(failure.value.__cause__) == "ValueError('broken')"
    assert rig.consumer.commits == [{P0: 1}]
    assert rig.consumer.is_closed and rig.task.calls[-1] == ("stop", None)


def test_pre_commit_may_hold_offsets_back_but_never_push_them_ahead() -> None:
    offsets = SinkOffsets()
    offsets.assign({P0: 5, P1: 7})
    offsets.take({P0: 9, P1: 8})
    offered = offsets.of([P0, P1])
    assert offered == {P0: 9, P1: 8}
    assert offsets.committable(offered, {P0: 6, P1: 9}) == {P0: 6, P1: 7}, "all partitions of the offer, as soon as one moves"
    assert offsets.committable(offered, {P0: 5}) == {}, "unchanged"
    assert offsets.committable({P0: 9}, {P1: 8}) == {}, "not offered"
    assert offsets.committable(offered, {TopicPartition("t", 9): 1}) == {}, "not assigned"
    offsets.forget([P1])
    offsets.take({P1: 20})
    assert offsets.of([P0, P1]) == {P0: 9}


def test_offsets_of_dropped_records_advance() -> None:
    rig = Rig([[raw(0, b"drop"), raw(1, b"drop")]])
    rig.run()
    assert rig.task.puts() == []
    assert rig.consumer.commits == [{P0: 2}]


def test_a_failed_pre_commit_goes_back_to_the_committed_offsets() -> None:
    rig = Rig([[raw(4)], [raw(4)]], {P0: 4}, interval=0.0)
    rig.task.commit_failures = [ValueError("disk"), ValueError("disk")]
    rig.run()
    assert (P0, 4) in rig.consumer.seeks
    assert rig.consumer.commits == [{P0: 5}]


def test_a_fatal_pre_commit_fails_the_task() -> None:
    rig = Rig([[raw(0)], []], interval=0.0)
    rig.task.commit_failures = [FatalTaskError("disk is gone")] * 5
    with pytest.raises(FatalTaskError, match="disk is gone"):
        rig.run()
    assert rig.consumer.commits == []


def test_a_refused_commit_is_made_again_with_the_next_one() -> None:
    rig = Rig([[raw(0)], [], [], []], interval=0.0)
    rig.consumer.refusals = [RetriableError("rebalancing")]
    rig.run()
    assert rig.consumer.commits[:2] == [{P0: 1}, {P0: 1}]
    assert len(rig.consumer.commits) == 2, "an accepted commit is not repeated"


def test_a_commit_without_an_answer_counts_as_failed_and_its_late_answer_is_ignored() -> None:
    rig = Rig([[raw(0)], [], [], []], interval=0.0, timeout=0.0)
    rig.consumer.holds_answers = True
    rig.run()
    assert rig.consumer.commits[:2] == [{P0: 1}, {P0: 1}]
    common = next(values for _, kind, _, values in rig.metrics.message()["groups"] if kind == "connector-task-metrics")
    assert common["offset-commit-failure-percentage"] > 0
    assert rig.consumer.is_closed, "the last commit was not waited for beyond its time"
    rig.consumer.answers[0]()
    own = next(values for _, kind, _, values in rig.metrics.message()["groups"] if kind == "sink-task-metrics")
    assert own["offset-commit-completion-total"] == 0, "no commit that still counted was answered"


def test_a_revoked_partition_is_committed_and_a_lost_one_is_not() -> None:
    rig = Rig([[raw(0), raw(0, partition=1)], lambda: rig.consumer.revoke(P0), lambda: rig.consumer.lose(P1)], {P0: 0, P1: 0})
    rig.run()
    assert rig.consumer.commits == [{P0: 1}]
    assert [what for name, what in rig.task.calls if name == "close"] == [[P0], [P1]]


def test_records_of_a_revoked_partition_leave_the_batch_that_waits() -> None:
    rig = Rig([[raw(0, b"a"), raw(0, b"b", partition=1)], lambda: rig.consumer.revoke(P0)], {P0: 0, P1: 0})
    rig.task.put_failures = [RetriableError("away")]
    rig.task.on_put = lambda records: rig.task.context.retry_after(0.01)
    rig.run()
    assert rig.task.puts() == [["a", "b"], ["b"]]
    assert rig.consumer.commits == [{P1: 1}]


def test_a_failure_in_open_fails_the_task_and_leaves_the_group() -> None:
    rig = Rig([[raw(0)]])
    rig.task.open = lambda partitions: (_ for _ in ()).throw(ValueError("cannot open"))  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="cannot open"):
        rig.run()
    assert rig.consumer.is_closed and rig.consumer.commits == []


def test_a_paused_task_stays_in_the_group_and_reads_nothing() -> None:
    resting: list[set[TopicPartition]] = []

    def resume() -> None:
        resting.append(set(rig.consumer.paused))
        rig.control.pause(False)

    rig = Rig([lambda: rig.control.pause(True), resume, [raw(0)]])
    rig.run()
    assert resting == [{P0}] and rig.task.puts() == [["v"]]
    assert rig.states() == ["RUNNING", "PAUSED", "RUNNING"]


def test_a_task_that_begins_paused_is_started_when_it_is_resumed() -> None:
    rig = Rig([[raw(0)]], paused=True)
    thread = threading.Thread(target=rig.run)
    thread.start()
    eventually(lambda: rig.states(), "reported state", 5, pause=0.005)
    assert rig.states() == ["PAUSED"] and rig.task.calls == []
    rig.control.pause(False)
    thread.join(60)
    assert rig.task.puts() == [["v"]] and rig.states() == ["PAUSED", "RUNNING"]


def test_a_seek_while_partitions_come_holds_for_their_first_record() -> None:
    rig = Rig([[raw(7)]])
    sought: list[Any] = []
    rig.task.open = lambda partitions: rig.task.context.seek({P0: 7})  # type: ignore[method-assign]
    rig.task.on_put = lambda records: sought.append(list(rig.consumer.seeks)) if records else None
    rig.run()
    assert sought == [[(P0, 7)]]
    assert rig.consumer.commits == [{P0: 8}]


def test_a_pause_commits_what_was_put() -> None:
    rig = Rig([[raw(0)], lambda: rig.control.pause(True), lambda: None, lambda: commits.extend(rig.consumer.commits)])
    commits: list[Any] = []
    rig.run()
    assert commits == [{P0: 1}]


def test_a_sink_that_fails_to_close_keeps_its_old_offsets() -> None:
    rig = Rig([[raw(0)]])
    rig.task.close = lambda partitions: (_ for _ in ()).throw(ValueError("half written"))  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="half written"):
        rig.run()
    assert rig.consumer.commits == []
    assert rig.consumer.is_closed


def test_a_task_may_seek_pause_and_ask_for_a_commit() -> None:
    rig = Rig([[raw(0)], lambda: rig.task.context.resume(P0), [raw(7)]])

    def on_put(records: Sequence[SinkRecord]) -> None:
        if records and records[0].offset == 0:
            rig.task.context.seek({P0: 7})
            rig.task.context.request_commit()
            rig.task.context.pause(P0)

    rig.task.on_put = on_put
    rig.run()
    assert rig.consumer.seeks == [(P0, 7)]
    assert rig.consumer.commits[-1] == {P0: 8}
    assert len(rig.consumer.commits) == 2


def test_a_poison_record_fails_the_task_after_it_is_in_the_dead_letter_queue() -> None:
    rig = Rig([[raw(0, b"a")], [raw(1, b"b"), raw(2, b"bad", key=b"k", headers=[("own", b"h")])]], queue="dead")
    with pytest.raises(FatalTaskError, match="Tolerance exceeded in error handler") as failure:
        rig.run()
    assert trace_of(failure.value).splitlines()[:2] == [
        "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler",
        "\tStage TRANSFORMATION, class test.Drops, topic t, partition 0, offset 2. No offset beyond it is committed; "
        "errors.tolerance=all would skip the record.",
    ]
    assert "\nCaused by: org.apache.kafka.connect.errors.DataException: bad is refused\n\tat " in trace_of(failure.value)
    assert rig.task.puts() == [["a"]]
    assert rig.consumer.commits == [{P0: 1}]
    [(topic, key, value, headers, timestamp)] = rig.producer.sent
    assert (topic, key, value, timestamp) == ("dead", b"k", b"bad", 1_002)
    names = "topic partition offset connector.name task.id stage class.name exception.class.name exception.message exception.stacktrace"
    assert [name for name, _ in headers] == ["own", *(f"__connect.errors.{name}" for name in names.split())]
    assert [value for _, value in headers][:-1] == [
        *(b"h", b"t", b"0", b"2", b"c", b"0", b"TRANSFORMATION", b"test.Drops"),
        *(b"org.apache.kafka.connect.errors.DataException", b"bad is refused"),
    ]
    assert headers[-1][1].startswith(b"org.apache.kafka.connect.errors.DataException: bad is refused\n")


def test_tolerated_records_go_to_the_queue_and_their_offsets_advance_once_it_holds_them() -> None:
    rig = Rig([[raw(0, b"bad"), raw(1, b"a")]], queue="dead", **{"errors.tolerance": "all"})
    rig.run()
    assert rig.task.puts() == [["a"]] and rig.consumer.commits == [{P0: 2}] and len(rig.producer.sent) == 1


def test_no_offset_passes_a_dead_letter_that_kafka_refused() -> None:
    class Refusal:
        def str(self) -> str:
            return "not authorised"

    rig = Rig([[raw(0, b"bad"), raw(1, b"a")]], queue="dead", **{"errors.tolerance": "all"})
    rig.producer.refusal = Refusal()
    with pytest.raises(FatalTaskError, match=r"Could not produce message to dead letter queue. topic=dead: not authorised"):
        rig.run()
    assert rig.consumer.commits == []


def test_a_task_hands_single_records_to_the_queue() -> None:
    rig = Rig([[raw(0, b"a"), raw(1, b"b")]], queue="dead", **{"errors.tolerance": "all"})
    rig.task.on_put = lambda records: [rig.task.context.report_errant_record(r, ValueError("no")) for r in records if r.value == "b"]
    rig.run()
    [(_, _, value, headers, _)] = rig.producer.sent
    assert value == b"b" and ("__connect.errors.stage", b"TASK_PUT") in headers
    assert ("__connect.errors.exception.class.name", b"ValueError") in headers
    assert Rig([]).context.report_errant_record is None, "without queue and log there is nowhere to report to"


def test_a_record_that_is_not_tolerated_fails_the_task_also_when_the_sink_goes_on() -> None:
    rig = Rig([[raw(0, b"a")]], queue="dead")

    def on_put(records: Sequence[SinkRecord]) -> None:
        for record in records:
            with contextlib.suppress(Exception):
                rig.task.context.report_errant_record(record, ValueError("no"))

    rig.task.on_put = on_put
    with pytest.raises(FatalTaskError) as failure:
        rig.run()
    causes = [line for line in trace_of(failure.value).splitlines() if not line.startswith("\t")]
    assert causes == [
        "org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.",
        "Caused by: org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler",
        "Caused by: ValueError: no",
    ]
    assert rig.consumer.commits == []
    assert ("__connect.errors.class.name", b"org.apache.kafka.connect.sink.SinkTask") in rig.producer.sent[0][3]


def test_the_log_names_the_stage_and_the_record(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig([], **{"errors.log.enable": "true", "errors.log.include.messages": "true"})
    rig.errors.record = raw(5)
    rig.errors.report("VALUE_CONVERTER", "X", DataError("d"))
    assert caplog.messages == [
        "Error encountered in task c-0. Executing stage 'VALUE_CONVERTER' with class 'X', where consumed record is "
        "{topic='t', partition=0, offset=5, timestamp=1005, timestampType=CreateTime}.\n"
        "org.apache.kafka.connect.errors.DataException: d"
    ]


def test_a_message_is_without_its_causes_and_none_when_there_is_none() -> None:
    try:
        try:
            raise ValueError("line 1")
        except ValueError as cause:
            raise DataError(f"cannot read: {cause}") from cause
    except DataError as error:
        headers = dict(context_headers("t", 0, 0, "c", 1, "VALUE_CONVERTER", "X", error))
    assert headers["__connect.errors.exception.message"] == b"cannot read: "
    assert b"ValueError: line 1" in (headers["__connect.errors.exception.stacktrace"] or b"")
    assert dict(context_headers("t", 0, 0, "c", 1, "S", "X", ValueError()))["__connect.errors.exception.message"] is None


def test_a_dead_letter_topic_that_cannot_be_created_fails_the_task() -> None:
    def refuse(name: str, partitions: int, replication: int) -> bool:
        raise RetriableError(f"{partitions} {replication}")

    with pytest.raises(FatalTaskError, match="Could not initialize dead letter queue with topic=dead") as failure:
        create_dead_letter_topic(refuse, "dead", {})
    assert "errors.deadletterqueue.topic.replication.factor (now 3)" in trace_of(failure.value)
    assert "\nCaused by: org.apache.kafka.connect.errors.RetriableException: 1 3\n" in trace_of(failure.value)


def test_what_a_task_resumes_while_its_connector_is_paused_comes_after_that() -> None:
    rig = Rig([[], [], []], {P0: 0, P1: 0})
    consumer, context = rig.consumer, rig.context

    def on_put(records: Sequence[SinkRecord]) -> None:
        context.pause(P0)

    rig.task.on_put = on_put
    rig.run()
    held = [True]
    context.is_held = lambda: held[0]
    consumer.pause([P0, P1])
    context.resume(P0)
    assert consumer.paused == {P0, P1} and not context.resting
    context.pause(P1)
    held[0] = False
    context.resume(P0)
    assert consumer.paused == {P1} and context.resting == {P1}


def test_a_topic_of_which_nothing_can_be_read_is_not_noted() -> None:
    for polls, topics in (([[raw(0, b"\xff")]], []), ([[raw(0, b"\xff")], [raw(1, b"b")]], ["t"])):
        rig = Rig(polls, **{"errors.tolerance": "all"})
        rig.run()
        assert [report["topic"] for report in rig.reports if report["type"] == "topic"] == topics
