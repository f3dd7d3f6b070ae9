"""Run a source task: poll, transform and convert, produce, note what was submitted, commit offsets.

After `runtime/AbstractWorkerSourceTask.java`, with two differences. Rows that the connector has serialised itself (`EncodedBatch`) go to
the producer untouched when the chain allows it; that loop is this project's hot path, and everything in it is a local name because each
attribute look-up costs 20 ns a row. And a retriable failure of `poll` is repeated with a growing delay up to 5 s, because a database
that is unavailable need not be asked a thousand times a second.

The task's thread runs everything here, delivery callbacks too (they run inside the producer's `poll`).
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from connect_py.api import EncodedBatch, RecordMetadata, SourceRecord, SourceTask
from connect_py.errors import ConnectError, RetriableError
from connect_py.kafka.producer import RefusedRecordError, was_given_up
from connect_py.metrics.task import SourceMetrics
from connect_py.task.chain import Chain
from connect_py.task.control import Report, SourceContext, TaskControl, TaskStopped, take_signals
from connect_py.task.failed_records import SendErrorHandler
from connect_py.task.offsets import Submission, SubmittedRecords, commits_records
from connect_py.task.producing import FlushPolicy, HoldingProducer, Produced, RecordProducer

log = logging.getLogger(__name__)

_LONGEST_RETRY_SECONDS = 5.0

#: How often a source that has to wait is asked to answer its server's pings.
_KEEP_ALIVE_SECONDS = 1.0

#: AbstractWorkerSourceTask.SEND_FAILED_BACKOFF_MS.
_SEND_RETRY_SECONDS = 0.1

#: How long records of other topics wait for the first ones of a new topic, which the cluster may have to make. Kafka's client would send
#: them first; Java's waits too.
_NEW_TOPIC_SECONDS = 2.0


class SourceProducer(RecordProducer, HoldingProducer, Protocol):
    """`send` is the raw way of the hot path; `produce` the patient one; the length is what is under way. Callbacks run for refused records
    only."""

    send: Callable[..., None]

    def __len__(self) -> int: ...
    def flush(self, timeout_seconds: float) -> int: ...


class OffsetCommits(Protocol):
    """What the loop asks of `connect_py.task.offsets.OffsetCommitter`, and of the `TransactionCommitter` of an exactly-once task."""

    @property
    def settles_first(self) -> bool: ...
    @property
    def is_settled(self) -> bool: ...
    def commit_soon(self) -> None: ...
    def before_rows(self, while_waiting: Callable[[], None]) -> None: ...
    def after_record(self, record: SourceRecord) -> None: ...
    def after_batch(self, rows: int) -> None: ...
    def at_pause(self) -> None: ...
    def confirm(self, confirmation: Callable[[], None]) -> None: ...
    def is_due(self) -> bool: ...
    def commit(self) -> None: ...
    def serve(self) -> None: ...
    def finish(self, deadline: float, *, failed: bool = False) -> bool: ...


class SourceTaskLoop:
    """Runs one source task to its end.

    Args:
        ensure_topic: called before the first record of each topic; may create it.
        delivery_error: turns what a delivery callback got, with topic and size, into an error.
        send_errors: decides about records that Kafka refuses.
        flush_timeout_seconds: how long the last commit of a failed task may take.
        metrics: where polls and writes are counted.
        clock: monotonic seconds; those of the control's deadline.
    """

    def __init__(
        self,
        task: SourceTask,
        chain: Chain,
        producer: SourceProducer,
        submitted: SubmittedRecords,
        offsets: OffsetCommits,
        control: TaskControl,
        report: Report,
        send_errors: SendErrorHandler,
        *,
        ensure_topic: Callable[[str], None] = lambda topic: None,
        delivery_error: Callable[[Any, str, int], ConnectError],
        flush_timeout_seconds: float = 5.0,
        metrics: SourceMetrics | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._task = task
        self._chain = chain
        self._producer = producer
        self._submitted = submitted
        self._offsets = offsets
        self._control = control
        self._report = report
        self._ensure_topic = ensure_topic
        self._delivery_error = delivery_error
        self._flush_timeout = flush_timeout_seconds
        self._send_errors = send_errors
        self._is_over = False
        self._commits_records = commits_records(task)
        self._retry_delay = 0.0
        self._topics: set[str] = set()
        self._unreported: list[tuple[str, Submission]] = []
        self._await_until = 0.0
        self._metrics = metrics or SourceMetrics(clock=clock)
        self._flush_policy = FlushPolicy(task, producer, clock)

    def run(self, config: Mapping[str, str], context: SourceContext) -> None:
        """Start the task, run it until it is asked to stop, commit, close.

        Raises:
            ConnectError: the task failed; what Kafka holds is committed nevertheless.
        """
        if not self._control.wait_for_start(self._report):
            return
        self._control.on_stop(self._task.stop)
        self._control.on_asked(self._task.interrupt)
        try:
            self._task.start(config, context)
            self._report({"type": "state", "state": "RUNNING"})
            while not self._control.is_stopping:
                if self._control.is_paused:
                    self._rest()
                    continue
                self._turn()
            self._drain(self._control.deadline)
        except TaskStopped:
            self._drain(self._control.deadline)
        except BaseException:
            self._drain(min(self._control.deadline, self._clock() + self._flush_timeout), failed=True)
            raise
        finally:
            self._is_over = True
            self._task.close()
            self._chain.close()

    def _turn(self) -> None:
        self._serve()
        batch = self._poll()
        if batch is None:
            self._on_idle()
            self._offsets.after_batch(0)
            return
        if isinstance(batch, EncodedBatch):
            encoded = self._chain.encoded(batch)
            if encoded is None:
                self._send_decoded(batch)
            else:
                self._send_encoded(encoded)
        else:
            self._metrics.written(sum(map(self._send_record, batch)))
        self._flush_policy.sent(batch)
        self._offsets.after_batch(len(batch.rows if isinstance(batch, EncodedBatch) else batch))
        if self._unreported:
            self._await_new_topics()

    def _on_idle(self) -> None:
        self._flush_policy.on_idle(is_settled=self._submitted.is_idle() and self._offsets.is_settled)

    def _poll(self) -> Sequence[SourceRecord] | EncodedBatch | None:
        began = self._clock()
        try:
            batch = self._task.poll()
        except RetriableError as error:
            if not self._retry_delay:
                log.warning("The source cannot be read just now; it is tried again until it can: %s", error)
            self._retry_delay = min(_LONGEST_RETRY_SECONDS, self._retry_delay * 2 or 0.1)
            self._control.wait(self._retry_delay)
            return None
        if self._retry_delay:
            log.info("The source can be read again.")
            self._retry_delay = 0.0
        if batch is not None:
            records, took = len(batch.rows if isinstance(batch, EncodedBatch) else batch), self._clock() - began
            self._metrics.polled(records, took)
            if records:  # an empty batch has a position only
                log.debug("Read %d records in %.0f ms", records, took * 1000)
        return batch

    def _serve(self) -> None:
        """Run callbacks, commit when due, report what is new. Raises what a delivery failed with."""
        self._producer.poll(0.0)
        self._send_letters()
        self._raise_failure()
        self._offsets.serve()
        if self._offsets.is_due():
            if self._offsets.settles_first:
                self._settle()
            self._offsets.commit()
        elif not len(self._producer):
            self._delivered()
        take_signals(self._control, self._task, self._report)
        self._report_metrics()

    def _settle(self) -> None:
        """Wait until Kafka has taken or refused all that was sent: for a moment, if it answers. Raises what a delivery failed with."""
        waited = self._clock()

        def goes_on() -> bool:
            nonlocal waited
            self._raise_failure()
            if self._clock() - waited >= _KEEP_ALIVE_SECONDS:
                self._while_waiting()
                waited = self._clock()
            return not self._control.is_stopping

        self._empty(goes_on)
        self._raise_failure()

    def _empty(self, goes_on: Callable[[], bool]) -> None:
        """Run callbacks until nothing is under way, or as long as it `goes_on`."""
        while len(self._producer) and goes_on():
            self._producer.flush(0.05)
            self._send_letters()
        if not len(self._producer):
            self._delivered()

    def _delivered(self) -> None:
        self._submitted.delivered()
        if self._unreported:
            self._report_topics()

    def _report_metrics(self) -> None:
        if self._metrics.is_due():
            self._report(self._metrics.message())

    # -- sending

    def _send_encoded(self, batch: EncodedBatch) -> None:
        """The hot path: about 2 us a row, all in."""
        rows = batch.rows
        if rows:
            self._offsets.before_rows(self._while_waiting)
        submission = self._submitted.submit(batch.source_partition, batch.source_offset)
        refused = self._callback(submission)
        send = self._producer.send
        current = None
        topic, partition, headers = "", -1, None
        for route, key, value in rows:
            if route is not current:
                current = route
                topic, headers = route.topic, self._chain.headers_of(route)
                partition = -1 if route.partition is None else route.partition
                self._note_topic(topic, submission)
            try:
                send(topic, value, key, partition, refused, None, 0, headers)
            except Exception:  # noqa: BLE001  # the patient way waits for room, or says what is wrong with the record
                self._produce(Produced(topic, route.partition, None, key, value, headers), submission)
        submission.held -= 1
        self._metrics.written(len(rows))
        if batch.is_milestone:
            self._offsets.commit_soon()

    def _send_decoded(self, batch: EncodedBatch) -> None:
        """Rows through transforms and other converters. When all of them are dropped the offset still advances: nothing is left to
        wait for, and a slot must be able to move on past tables that a filter drops. What comes before a row that fails is sent."""
        submission = self._submitted.submit(batch.source_partition, batch.source_offset)
        written = 0
        try:
            for produced in map(self._chain.convert, self._chain.records(batch)):
                if produced is not None:
                    self._produce(produced, submission)
                    written += 1
        except BaseException:
            submission.failed = True
            raise
        finally:
            submission.held -= 1
            self._metrics.written(written)
        if batch.is_milestone:
            self._offsets.commit_soon()

    def _send_record(self, record: SourceRecord) -> bool:
        """Send one generic record; returns whether there was something to send. A dropped one leaves the offset to the next record, as in
        Connect."""
        produced = self._chain.convert(record)
        if produced is None:
            self._commit_record(record, None)
            self._offsets.after_record(record)
            return False
        submission = self._submitted.submit(record.source_partition, record.source_offset)
        self._produce(produced, submission, record)
        submission.held -= 1
        self._offsets.after_record(record)
        return True

    def _produce(self, produced: Produced, submission: Submission, record: SourceRecord | None = None) -> None:
        """The patient way. Raises what the task fails with when Kafka refuses the record at once."""
        if not produced.is_dead_letter:
            self._note_topic(produced.topic, submission)
        refused = self._callback(submission, record, is_dead_letter=produced.is_dead_letter)
        while True:
            try:
                self._producer.produce(
                    produced.topic,
                    produced.value,
                    produced.key,
                    produced.headers,
                    refused,
                    partition=-1 if produced.partition is None else produced.partition,
                    timestamp=0 if produced.timestamp is None else produced.timestamp,
                    while_waiting=self._while_waiting,
                )
                return
            except RefusedRecordError as error:
                if self._send_errors.handle(error, submission, produced, record) and record is not None:
                    self._commit_record(record, None)
                self._raise_failure()
                return
            except RetriableError as error:
                log.warning("A record for topic %s could not be sent and is tried again: %s", produced.topic, error)
                self._control.wait(_SEND_RETRY_SECONDS)
                self._while_waiting()

    def _send_letters(self) -> None:
        while self._send_errors.letters:
            letter, submission, record = self._send_errors.letters.popleft()
            self._produce(letter, submission, record)
            submission.held -= 1

    def _callback(self, submission: Submission, record: SourceRecord | None = None, *, is_dead_letter: bool = False) -> Callable[..., None]:
        def refused(error: Any, message: Any) -> None:
            if not self._is_over and not was_given_up(error):
                topic, key, value = message.topic(), message.key(), message.value()
                cause = self._delivery_error(error, topic, len(message))
                skipped = self._send_errors.handle(cause, submission, Produced(topic, None, None, key, value, None, is_dead_letter), record)
                if skipped and record is not None:
                    self._commit_record(record, None)

        def reported(error: Any, message: Any) -> None:
            if error is not None:
                refused(error, message)
            elif record is not None and not self._is_over:
                self._commit_record(record, None if is_dead_letter else _metadata(message))

        return reported if self._commits_records else refused

    def _commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """As `AbstractWorkerSourceTask.commitTaskRecord`: what the task raises is logged, because Kafka has the record already."""
        if self._commits_records:
            self._offsets.confirm(functools.partial(self._confirm_record, record, metadata))

    def _confirm_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        try:
            self._task.commit_record(record, metadata)
        except Exception:
            log.exception("The task's commit_record failed; the record's offset is committed nevertheless")

    def _raise_failure(self) -> None:
        if self._send_errors.failure is not None:
            raise self._send_errors.failure

    def _while_waiting(self) -> None:
        """Called about once a second while the producer has no room. Raises what ended the wait."""
        self._raise_failure()
        if self._control.is_stopping:
            raise TaskStopped
        self._offsets.serve()
        take_signals(self._control, self._task, self._report)
        self._report_metrics()
        self._task.keep_alive()

    # -- resting and ending

    def _rest(self) -> None:
        self._offsets.at_pause()
        self._report({"type": "state", "state": "PAUSED"})
        while self._control.is_paused and not self._control.is_stopping:
            self._serve()
            self._on_idle()
            self._task.keep_alive()
            self._control.wait_while_paused(_KEEP_ALIVE_SECONDS)
        if not self._control.is_stopping:
            self._report({"type": "state", "state": "RUNNING"})

    def _drain(self, deadline: float, *, failed: bool = False) -> None:
        """Wait for acknowledgements, then commit what Kafka holds; a quarter of the time is kept for the commit. A failure here never hides
        the one that ended the task."""
        now = self._clock()
        acknowledged_by = now + (deadline - now) * 0.75
        try:
            self._empty(lambda: self._clock() < acknowledged_by)
            stored = self._offsets.finish(deadline, failed=failed)
            self._report(self._metrics.message())
        except Exception:
            if not failed:
                raise
            log.exception("The last commit failed; the offsets stay where they were")
            return
        if not failed and self._send_errors.failure is None and not (stored and self._submitted.is_idle()):
            log.warning("Not everything was acknowledged in time: what Kafka did not confirm is read again after the restart.")
        if not failed:
            self._raise_failure()

    # -- reports

    def _note_topic(self, topic: str, submission: Submission) -> None:
        """Called before records of another topic than the last ones'."""
        if self._unreported and self._unreported[-1][0] != topic:
            self._await_new_topics()
        if self._control.take_forget_topics():
            self._topics.clear()
        if topic not in self._topics:
            self._make_sure_of(topic)
            self._topics.add(topic)
            self._unreported.append((topic, submission))
            self._await_until = self._clock() + _NEW_TOPIC_SECONDS

    def _make_sure_of(self, topic: str) -> None:
        """Wait for a topic as for room in the producer's queue: a cluster that does not answer is no failure."""
        while True:
            try:
                self._ensure_topic(topic)
                return
            except RetriableError as error:
                log.warning("Topic %s could not be looked up or created and is tried again: %s", topic, error)
                self._while_waiting()
                self._control.wait(_KEEP_ALIVE_SECONDS)

    def _report_topics(self) -> None:
        """A topic is in use once Kafka holds a record of it."""
        for topic, submission in self._unreported:
            if not submission.failed:
                self._report({"type": "topic", "topic": topic})
        self._unreported = []

    def _await_new_topics(self) -> None:
        self._empty(lambda: self._send_errors.failure is None and self._clock() < self._await_until and not self._control.is_stopping)


def _metadata(message: Any) -> RecordMetadata:
    kind, timestamp = message.timestamp()
    return RecordMetadata(message.topic(), message.partition(), message.offset(), timestamp if kind else None)
