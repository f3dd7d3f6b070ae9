"""The producer of an exactly-once source task, and how those of its predecessors are fenced (KIP-98, KIP-618).

A transaction begins with the first record after the last one ended. It is committed by a thread of its own, so that the task reads and
encodes the next batch meanwhile; a record that comes too early waits for the commit. Nothing else is produced by that thread.

Initialising a transactional id ends what the last producer of that id had open, and whatever that one still sends is refused by the broker:
so a task that was thought dead cannot write once its successor has begun.

Threads: as `Producer`; callbacks of refused records may run on the committing thread as well.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from confluent_kafka import KafkaError, KafkaException

from connect_py.errors import ConnectError, FatalTaskError, RetriableError, noted
from connect_py.kafka.client import connector_admin_properties, transactional_id
from connect_py.kafka.producer import DeliveryCallback, Producer, error_text, java_class

#: How long one call of the client waits; it is repeated while the error is one that passes.
_CALL_SECONDS = 5.0

#: How often somebody who waits for a commit is let keep its source alive.
_KEEP_SECONDS = 1.0

#: KafkaAdminClient's limit of one round of fencing, and the number of ids that are initialised at a time.
FENCE_SECONDS = 90.0
_FENCED_AT_A_TIME = 8

#: What is asked for so that a broker is connected. Everybody who uses transactions needs this topic, which brokers make themselves.
_STATE_TOPIC = "__transaction_state"

_FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})


class TransactionalProducer(Producer):
    """A producer whose records become visible to readers of committed records together, or not at all.

    Args:
        properties: Java producer properties with a ``transactional.id``.
        on_statistics, only_errors: as of `Producer`.

    Raises:
        ConfigError: a property that cannot be used.
    """

    def __init__(
        self, properties: Mapping[str, str], *, on_statistics: Callable[[str], None] | None = None, only_errors: bool = False
    ) -> None:
        super().__init__(properties, on_statistics=on_statistics, only_errors=only_errors)
        self.holds_back = False  # a commit sends what waits
        self.transactional_id = properties["transactional.id"]
        self.is_open = False
        self._commit: Future[None] | None = None
        self._commits: queue.SimpleQueue[Future[None]] = queue.SimpleQueue()
        self._commits_thread: threading.Thread | None = None

    def begin(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Initialise the id, which fences its last producer and ends its transaction; to be called once, before anything is sent.

        Args:
            goes_on: whether to try again when Kafka does not answer.

        Raises:
            RetriableError: Kafka did not answer, and `goes_on` gave False.
            FatalTaskError: Kafka refuses.
        """
        # a client that has no connection yet looks for its coordinator again only after half a second
        with contextlib.suppress(KafkaException):
            self._client.list_topics(_STATE_TOPIC, _CALL_SECONDS)
        while True:
            try:
                self._client.init_transactions(_CALL_SECONDS)
                return
            except KafkaException as error:
                problem = error.args[0]
                if not _passes(problem):
                    raise self._failure("could not be initialised", problem) from error
                if not goes_on():
                    raise RetriableError(f"Transactional id {self.transactional_id} was not initialised: {problem.str()}") from error

    def release(self) -> bool:
        """Keep the client while the source rests: another one would have to initialise the id again, which fences. Returns True."""
        return True

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        on_delivery: DeliveryCallback | None = None,
        *,
        partition: int = -1,
        timestamp: int = 0,
        while_waiting: Callable[[], None] | None = None,
    ) -> None:
        """As `Producer.produce`; begins a transaction if none is open, after the running commit.

        Raises:
            FatalTaskError: the transaction cannot be committed any more, or another producer has this one's id.
        """
        self.open(while_waiting)
        try:
            super().produce(topic, value, key, headers, on_delivery, partition=partition, timestamp=timestamp, while_waiting=while_waiting)
        except ConnectError as error:
            problem = error.__cause__.args[0] if isinstance(error.__cause__, KafkaException) else None
            if problem is not None and (problem.code() in _FENCED or problem.code() == KafkaError._STATE or problem.fatal()):
                raise self._failure("does not accept records", problem) from error
            raise

    def open(self, while_waiting: Callable[[], None] | None = None) -> None:
        """Begin a transaction if none is open, after the running commit; to be called before `send`. Raises as `produce`.

        Until the commit's thread has called the client, this would take records of the next batch into the transaction, whose offsets are
        written already.
        """
        if self.is_open:
            return
        self.await_commit(while_waiting)
        try:
            self._client.begin_transaction()
        except KafkaException as error:
            raise self._failure("could not begin", error.args[0]) from error
        self.is_open = True

    # -- ending a transaction

    def start_commit(self) -> Future[None]:
        """Commit the open transaction, in the background. The future raises what `produce` raises."""
        if self._commits_thread is None:
            self._commits_thread = threading.Thread(target=self._run_commits, name="commit", daemon=True)
            self._commits_thread.start()
        self.is_open = False
        self._commit = Future()
        self._commits.put(self._commit)
        return self._commit

    def commit(self, deadline: float) -> None:
        """Commit the open transaction on the caller's thread. Raises what `produce` raises; RetriableError after `deadline`."""
        self.is_open = False
        self._commit_now(deadline)

    def await_commit(self, while_waiting: Callable[[], None] | None = None, deadline: float = float("inf")) -> None:
        """Wait for the running commit, if there is one. Raises what it raises; RetriableError after `deadline`."""
        while self._commit is not None:
            try:
                self._commit.result(max(0.0, min(_KEEP_SECONDS, deadline - time.monotonic())))
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise RetriableError("A transaction was not committed in time.") from None
                if while_waiting is not None:
                    while_waiting()
            except ConnectError:
                self._commit = None
                raise
            else:
                self._commit = None

    def abort(self, deadline: float) -> None:
        """Drop the open transaction, if there is one. Raises RetriableError, FatalTaskError: the broker drops it later."""
        if not self.is_open:
            return
        self.is_open = False
        while True:
            try:
                self._client.abort_transaction(max(0.1, min(_CALL_SECONDS, deadline - time.monotonic())))
                return
            except KafkaException as error:
                if not _passes(error.args[0]):
                    raise self._failure("could not be aborted", error.args[0]) from error
                if time.monotonic() >= deadline:
                    raise RetriableError(f"The transaction was not aborted: {error_text(error)}") from error

    def _run_commits(self) -> None:
        while True:
            commit = self._commits.get()
            try:
                self._commit_now()
            except BaseException as error:  # noqa: BLE001  # for the caller that waits
                commit.set_exception(error)
            else:
                commit.set_result(None)

    def _commit_now(self, deadline: float = float("inf")) -> None:
        while True:
            try:
                self._client.commit_transaction(max(0.1, min(_CALL_SECONDS, deadline - time.monotonic())))
                return
            except KafkaException as error:
                problem = error.args[0]
                if _passes(problem):
                    if time.monotonic() >= deadline:
                        raise RetriableError(f"The transaction was not committed in time: {error_text(error)}") from error
                    continue
                if problem.txn_requires_abort():
                    with contextlib.suppress(KafkaException):  # else the broker does it after transaction.timeout.ms
                        self._client.abort_transaction(_CALL_SECONDS)
                raise self._failure("could not be committed", problem) from error

    def _failure(self, what: str, problem: KafkaError) -> FatalTaskError:
        error = FatalTaskError(f"The transaction of {self.transactional_id} {what}: {problem.str()} ({problem.name()}).")
        error.java_name = java_class(problem)
        if problem.code() in _FENCED:
            return noted(
                error,
                "Another producer has this transactional id: a later start of this task, on this worker or on another one. What this one "
                "had open is not visible to readers of committed records.",
            )
        return noted(error, "Nothing of it is visible to readers of committed records, and no offset was stored.")


def fence(properties: Mapping[str, str], ids: Sequence[str], seconds: float = FENCE_SECONDS) -> None:
    """Fence the producers of transactional ids, and end their transactions (`Admin.fenceProducers`).

    Args:
        properties: Java properties of a client.

    Raises:
        ConfigError: a property that cannot be used.
        ConnectError: not all are fenced.
    """
    deadline = time.monotonic() + seconds

    def fence_one(transactional_id: str) -> None:
        producer = TransactionalProducer({**properties, "transactional.id": transactional_id})
        producer.begin(lambda: time.monotonic() < deadline)

    with ThreadPoolExecutor(_FENCED_AT_A_TIME, "fence") as pool:
        for done in [pool.submit(fence_one, each) for each in ids]:
            done.result()


def fence_tasks(worker: Mapping[str, str], connector: str, tasks: Iterable[int], config: Mapping[str, str]) -> None:
    """Fence the producers of tasks of an exactly-once source. Raises as `fence`."""
    properties = {**connector_admin_properties(worker, connector, 0, config), "client.id": f"connector-fencing-{connector}"}
    fence(properties, [transactional_id(worker, connector, task) for task in tasks])


def _passes(error: KafkaError) -> bool:
    return bool(error.retriable()) or error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.CONCURRENT_TRANSACTIONS)
