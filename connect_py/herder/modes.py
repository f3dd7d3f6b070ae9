"""Put the herders of the two modes together (`distributed/DistributedHerder.java`, `standalone/StandaloneHerder.java`).

Each has an `Applier`, which runs what the configuration topic says, and answers clients' requests from the same stores. A distributed
worker answers other workers, too. A standalone one differs in a few answers: a request that creates or changes a connector waits for its
tasks, and some refusals have other texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from connect_py.api.storage import TargetState
from connect_py.errors import NotFoundError, RestError
from connect_py.herder.applier import Applier
from connect_py.herder.base import ConnectorInfo
from connect_py.herder.cluster import ClusterRequests
from connect_py.herder.requests import ClientRequests
from connect_py.herder.session_key import InternalSignature

#: How long a request waits for the connector's tasks before it answers without them.
_TASKS_SECONDS = 10.0


class DistributedHerder(ClientRequests):
    """The herder of a worker that keeps everything in Kafka topics."""

    def __init__(self, applier: Applier, *, modify_seconds: float | None = None) -> None:
        super().__init__(applier, modify_seconds=modify_seconds)
        self._cluster = ClusterRequests(applier)

    def start(self) -> None:
        self._cluster.begin()
        super().start()

    def put_task_configs(
        self, name: str, configs: Callable[[], Sequence[Mapping[str, str | None]]], signature: InternalSignature | None
    ) -> None:
        """Store a connector's task configurations. Raises RestError, NotFoundError."""
        self._cluster.put_task_configs(name, configs, signature)

    def fence_zombies(self, name: str, signature: InternalSignature | None) -> None:
        """Exactly-once sources need it, and this worker has none. Raises RestError, NotFoundError, BadRequestError."""
        self._cluster.fence_zombies(name, signature)

    def answer_worker(self, question: bytes, signature: InternalSignature | None) -> object:
        """Tell what only this worker knows. Raises RestError, BadRequestError."""
        self._cluster.require_signature(signature)
        return self._page.answer(question)


class StandaloneHerder(ClientRequests):
    """The herder of a standalone worker, which has its stores in memory and no other workers."""

    def put_connector(
        self, name: str, config: Mapping[str, str | None], *, may_replace: bool, state: TargetState | None = None
    ) -> tuple[bool, ConnectorInfo]:
        """As in distributed mode, but the answer has the tasks. Raises as there."""
        created, info = super().put_connector(name, config, may_replace=may_replace, state=state)
        deadline = time.monotonic() + _TASKS_SECONDS
        while time.monotonic() < deadline and self._has_tasks_to_come(name):
            time.sleep(0.01)
        status = self._statuses.connector(name)
        if status is not None and status.state == "FAILED" and self._configs.snapshot().target_state(name) is TargetState.STARTED:
            raise RestError(f"Failed to transition connector {name} to state STARTED", 500)
        return created, replace(info, tasks=self._configs.snapshot().tasks(name))

    def restart_connector(self, name: str) -> None:
        """Raises NotFoundError, RestError."""
        self.connector_info(name)
        super().restart_connector(name)

    def restart_task(self, name: str, task: int) -> None:
        """Raises NotFoundError."""
        if task not in self.connector_info(name).tasks:
            raise NotFoundError(f"Task {name}-{task} not found")
        super().restart_task(name, task)

    def put_task_configs(
        self, name: str, configs: Callable[[], Sequence[Mapping[str, str | None]]], signature: InternalSignature | None
    ) -> None:
        """Raises RestError: there is no other worker."""
        raise RestError("Kafka Connect in standalone mode does not support externally setting task configurations.", 500)

    def fence_zombies(self, name: str, signature: InternalSignature | None) -> None:
        """Raises RestError: there is no other worker."""
        raise RestError("Kafka Connect in standalone mode does not support exactly-once source connectors.", 500)

    def answer_worker(self, question: bytes, signature: InternalSignature | None) -> object:
        """Raises RestError: there is no other worker."""
        raise RestError("A standalone worker has no other workers.", 500)

    def set_target_state(self, name: str, state: TargetState) -> None:
        """Raises NotFoundError, RestError."""
        if state is TargetState.STOPPED and name not in self._configs.snapshot().connectors:
            raise RestError(f"No connector `{name}` configured", 500)
        super().set_target_state(name, state)

    def _has_tasks_to_come(self, name: str) -> bool:
        snapshot = self._configs.snapshot()
        if snapshot.target_state(name) is not TargetState.STARTED or name not in snapshot.connectors:
            return False
        status = self._statuses.connector(name)
        failed = status is not None and status.state == "FAILED"
        return not failed and dict(snapshot.applied.get(name, {})) != dict(snapshot.connectors[name])
