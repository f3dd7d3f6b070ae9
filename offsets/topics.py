"""The three internal topics: how they are created and checked (`KafkaTopicBasedBackingStore.java`, `DistributedConfig.java`), and the log
of one, which the stores on Kafka read and write.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from connect_py.api.config import ConfigType, parse_value, valid_partitions, valid_replicas
from connect_py.errors import ConfigError, ConnectError, RetriableError
from connect_py.kafka.admin import KafkaAdmin
from connect_py.kafka.checks import CONFIGS, OFFSETS, START_CHECKS, STATUSES, TopicFacts, TopicRole, internal_topic_findings
from connect_py.kafka.client import internal_properties
from connect_py.kafka.shared_log import KafkaLog, LogRecord

log = logging.getLogger(__name__)


#: AdminClient's default.api.timeout.ms, for which Connect repeats an attempt to create a topic.
CREATE_SECONDS = 60.0

#: How often a minute of attempts is spoken of.
_LINE_SECONDS = 15.0

_OWN_SETTINGS = frozenset({"topic", "partitions", "replication.factor", "cleanup.policy"})


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """One of the worker's topics.

    Attributes:
        role: what it is for, and what it must be like.
        missing: the message when the worker properties don't name it.
        partitions: when the worker properties don't say.
    """

    role: TopicRole
    missing: str
    partitions: int

    @property
    def prefix(self) -> str:
        """Of the worker properties that describe it, `config.storage.` …"""
        return self.role.prefix

    def name(self, worker: Mapping[str, str]) -> str:
        """Return the topic's name. Raises ConfigError when there is none."""
        found = worker.get(self.prefix + "topic", "").strip()
        if not found:
            raise ConfigError(self.missing)
        return found

    def ensure(self, worker: Mapping[str, str], admin: KafkaAdmin, timeout: float = CREATE_SECONDS) -> str:
        """Create the topic if it is missing and check that it keeps everything; returns its name.

        Raises:
            ConfigError: it exists with other partitions or another cleanup policy; nothing was changed.
            RetriableError: it could not be created within `timeout` seconds.
        """
        name = self.name(worker)
        if name not in admin.describe_topics([name]) and self._create(name, worker, admin, timeout):
            return name
        settings = admin.topic_settings(name)
        if not settings.get("cleanup.policy"):
            log.info("Unable to use admin client to verify the cleanup policy of '%s' topic is 'compact'", name)
        count, replicas = admin.topic_layouts([name]).get(name, (0, 0))
        servers = worker.get("bootstrap.servers", "")
        for finding in internal_topic_findings(self.role, name, TopicFacts(count, replicas, settings), servers):
            if finding.check in START_CHECKS:
                raise ConfigError(f"{finding.what} {finding.why} {finding.remedy}")
        return name

    def _create(self, name: str, worker: Mapping[str, str], admin: KafkaAdmin, timeout: float) -> bool:
        partitions = 1 if self.role.single else self._number(worker, "partitions", self.partitions)
        replication = self._number(worker, "replication.factor", 3)
        settings = {
            key[len(self.prefix) :]: value
            for key, value in worker.items()
            if key.startswith(self.prefix) and key[len(self.prefix) :] not in _OWN_SETTINGS
        }
        # offset.storage.file.filename belongs to standalone workers
        settings.pop("file.filename", None)
        deadline = time.monotonic() + timeout
        next_line = 0.0
        while True:
            try:
                return admin.create_topic(name, partitions, replication, {**settings, "cleanup.policy": "compact"})
            except RetriableError as error:
                said = str(error)
                if replication > 1:  # Kafka's default is 3, and the first broker that anybody tries is alone
                    setting = f"{self.prefix}replication.factor"
                    said += f" {setting} is {replication}{'' if setting in worker else ' by default'}: "
                    said += "with fewer brokers, set it to their number in the worker's properties."
                now = time.monotonic()
                if now > deadline:
                    raise RetriableError(said) from error
                if now >= next_line:
                    log.warning("%s Trying again for %.0f s.", said, deadline - now)
                    next_line = now + _LINE_SECONDS
                time.sleep(0.5)

    def _number(self, worker: Mapping[str, str], suffix: str, default: int) -> int:
        name = self.prefix + suffix
        found = int(parse_value(name, worker.get(name, "").strip() or str(default), ConfigType.INT))
        (valid_partitions if suffix == "partitions" else valid_replicas)(name, found)
        return found


CONFIG_TOPIC = InternalTopic(CONFIGS, "Must specify topic for connector configuration.", 1)
OFFSET_TOPIC = InternalTopic(OFFSETS, "Offset storage topic must be specified", 25)
STATUS_TOPIC = InternalTopic(STATUSES, "Must specify topic for connector status.", 5)


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
        write_seconds: what one request may spend on the topic.

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
        write_seconds: float = READ_WRITE_SECONDS,
    ) -> None:
        properties = internal_properties(worker, suffix)
        self._worker = dict(worker)
        self._topic = topic
        self._shared = admin is not None
        self.write_seconds = write_seconds
        self._admin = admin or KafkaAdmin(properties)
        self._log = KafkaLog(topic.name(worker), properties, self._admin, take, read_committed=read_committed, write_timeout=write_seconds)
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
            self._log.write(records, self.write_seconds)
        except ConnectError as error:
            raise ConnectError(f"{failure}: {error}") from error
