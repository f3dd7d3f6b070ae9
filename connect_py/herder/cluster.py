"""Answer what the workers of a cluster ask of each other, and keep the key that signs it (KIP-507, KIP-618).

The leader keeps a session key on the configuration topic. It answers signed requests only: a Java worker that follows finds here what a
Java leader would give it, and no one else can have tasks of their own making started.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from connect_py.config.connector import CONNECTOR_CLASS
from connect_py.errors import BadRequestError, ConnectError, NotFoundError, RestError
from connect_py.herder import session_key
from connect_py.herder.applier import Applier
from connect_py.herder.session_key import InternalSignature, SessionKeySettings
from connect_py.plugins.registry import kinds_of

log = logging.getLogger(__name__)

#: How often the leader looks whether the key has become too old.
_KEY_CHECK_SECONDS = 60.0


class ClusterRequests:
    """Answers the requests of other workers, and keeps the session key while this worker leads."""

    def __init__(self, applier: Applier) -> None:
        self._worker, self._plugins = applier.worker, applier.plugins
        self._configs, self._thread = applier.configs, applier.thread
        self._assignment = applier.assignment

    def begin(self) -> None:
        """Write the session key, now and whenever it has become too old. Called when the herder's thread runs."""
        self._thread.post(self._keep_session_key, "writing the session key")

    def put_task_configs(
        self, name: str, configs: Callable[[], Sequence[Mapping[str, str | None]]], signature: InternalSignature | None
    ) -> None:
        """Store a connector's task configurations. Raises RestError, NotFoundError."""
        self._check_signature(signature)
        kept = [{key: value for key, value in config.items() if value is not None} for config in configs()]

        def work() -> None:
            if name not in self._configs.snapshot().connectors:
                raise NotFoundError(f"Connector {name} not found")
            self._configs.put_task_configs(name, kept)

        self._thread.call(work, doing=f"writing the tasks of connector {name}")

    def fence_zombies(self, name: str, signature: InternalSignature | None) -> None:
        """Exactly-once sources need it, and this worker has none. Raises RestError, NotFoundError, BadRequestError."""
        self._check_signature(signature)
        config = self._configs.snapshot().connectors.get(name)
        if config is None:
            raise NotFoundError(f"Connector {name} not found")
        if not self._is_source(config):
            raise BadRequestError(f"Connector {name} is not a source connector")
        raise RestError(
            f"Nothing was fenced for connector {name}: this worker has no support for exactly-once source connectors. Set "
            "exactly.once.source.support=disabled on all workers of the cluster.",
            500,
        )

    def _is_source(self, config: Mapping[str, str]) -> bool:
        try:
            return "source" in kinds_of(self._plugins.connector(config.get(CONNECTOR_CLASS, "")))
        except ConnectError:
            return False

    def _check_signature(self, signature: InternalSignature | None) -> None:
        if self._signs:
            session_key.check(signature, self._configs.snapshot().session_key, self._session_keys)

    @property
    def _signs(self) -> bool:
        """Workers of the protocols before `sessioned` do not sign."""
        return self._worker.raw.get("connect.protocol", "sessioned").strip().lower() == "sessioned"

    @property
    def _session_keys(self) -> SessionKeySettings:
        return SessionKeySettings.parse(self._worker.raw)

    def _keep_session_key(self) -> None:
        """On the herder's thread, now and then."""
        settings, now = self._session_keys, int(time.time() * 1000)
        stored = self._configs.snapshot().session_key
        if self._signs and self._assignment.is_leader and session_key.is_outdated(stored, settings, now):
            try:
                self._configs.put_session_key(session_key.new_key(settings), settings.algorithm, now)
            except ConnectError as error:
                log.warning("The key that signs requests of workers to each other could not be stored; tried again soon: %s", error)
        self._thread.post_later(_KEY_CHECK_SECONDS, self._keep_session_key)
