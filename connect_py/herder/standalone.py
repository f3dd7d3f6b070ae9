"""The standalone herder (`standalone/StandaloneHerder.java`): the distributed one over stores in memory.

Its answers differ in a few places: a request that creates or changes a connector waits for its tasks, and some refusals have other texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from connect_py.api.storage import TargetState
from connect_py.errors import NotFoundError, RestError
from connect_py.herder.base import ConnectorInfo
from connect_py.herder.distributed import DistributedHerder
from connect_py.herder.session_key import InternalSignature

#: How long a request waits for the connector's tasks before it answers without them.
_TASKS_SECONDS = 10.0


class StandaloneHerder(DistributedHerder):
    """The herder of a standalone worker."""

    def put_connector(
        self, name: str, config: Mapping[str, str | None], *, may_replace: bool, state: TargetState | None = None
    ) -> tuple[bool, ConnectorInfo]:
        """As in distributed mode, but the answer has the tasks. Raises as there."""
        created, info = super().put_connector(name, config, may_replace=may_replace, state=state)
        deadline = time.monotonic() + _TASKS_SECONDS
        while time.monotonic() < deadline and self._has_tasks_to_come(name):
            time.sleep(0.01)
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

    def _keep_session_key(self) -> None:
        """Do nothing: there is no other worker whose requests are signed."""

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
