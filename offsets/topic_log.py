"""An internal topic and its log, opened and closed together; what the three stores on Kafka have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from connect_py.errors import ConnectError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.client import internal_properties
from connect_py.kafka.shared_log import KafkaLog, LogRecord
from offsets.topics import InternalTopic

#: READ_WRITE_TOTAL_TIMEOUT_MS of KafkaConfigBackingStore: what one request may spend on a topic, so that a client gets an answer.
READ_WRITE_SECONDS = 30.0


class TopicLog:
    """An internal topic that is created when it is missing.

    Args:
        worker: worker properties.
        topic: which of the topics.
        suffix: of the clients' ids.
        take: called by the reader thread for each record.
        admin: to be shared; one is made otherwise, and closed with the log.
        read_committed: read committed transactions only.

    Raises:
        ConfigError: the topic isn't named, or a client property cannot be used.
    """

    def __init__(
        self,
        worker: Mapping[str, str],
        topic: InternalTopic,
        suffix: str,
        take: Callable[[LogRecord], None],
        admin: KafkaAdmin | None,
        *,
        read_committed: bool = False,
    ) -> None:
        properties = internal_properties(worker, suffix)
        self._worker = dict(worker)
        self._topic = topic
        self._shared = admin is not None
        self._admin = admin or KafkaAdmin(properties)
        self._log = KafkaLog(
            topic.name(worker), properties, self._admin, take, read_committed=read_committed, write_timeout=READ_WRITE_SECONDS
        )
        self.send = self._log.send
        self.read_to_end = self._log.read_to_end
        self.flush = self._log.flush

    def start(self) -> None:
        """Create or check the topic, read it to its end, then follow it. Raises ConfigError, RetriableError."""
        self._topic.ensure(self._worker, self._admin)
        self._log.start()

    def stop(self) -> None:
        """Stop following."""
        self._log.stop()
        if not self._shared:
            self._admin.close()

    def write(self, records: Sequence[tuple[bytes, bytes | None]], failure: str) -> None:
        """Write in order and read back.

        Raises:
            ConnectError: with the text `failure`, which is Connect's; the cause says more.
        """
        try:
            self._log.write(records, READ_WRITE_SECONDS)
        except ConnectError as error:
            raise ConnectError(f"{failure}: {error}") from error
