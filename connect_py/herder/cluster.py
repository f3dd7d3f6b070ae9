"""Answer what the workers of a cluster ask of each other, and keep the key that signs it (KIP-507, KIP-618).

The leader keeps a session key on the configuration topic. It answers signed requests only: a Java worker that follows finds here what a
Java leader would give it, and no one else can have tasks of their own making started.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from connect_py.api.storage import TargetState
from connect_py.config.connector import CONNECTOR_CLASS
from connect_py.errors import BadRequestError, ConnectError, NotFoundError, RestError
from connect_py.group.protocol import GroupProtocol
from connect_py.herder import session_key
from connect_py.herder.applier import Applier
from connect_py.herder.base import MisdirectedError
from connect_py.herder.session_key import InternalSignature, SessionKeySettings
from connect_py.plugins.registry import kinds_of

log = logging.getLogger(__name__)

#: How soon a key is stored again that could not be; and how often it is looked at in any case, however soon it is too old.
_KEY_RETRY_MS, _MIN_KEY_CHECK_MS = 5_000, 100

#: `DistributedHerder`'s pause between two attempts to become the writer.
_CLAIM_RETRY_SECONDS = 0.25

#: How often a leader looks whether a write has failed since.
_CLAIM_SECONDS = 1.0


class ClusterRequests:
    """Answers the requests of other workers, and keeps the session key while this worker leads."""

    def __init__(self, applier: Applier) -> None:
        self._worker, self._plugins = applier.worker, applier.plugins
        self._configs, self._thread, self._fencing = applier.configs, applier.thread, applier.fencing
        self._assignment, self._after_rounds = applier.assignment, applier.after_rounds
        self._check = self._claims = 0
        self._is_transactional = applier.worker.exactly_once.has_transactional_leader

    def begin(self) -> None:
        """Have the session key written, when this worker leads and whenever the key has become too old."""
        self._after_rounds(self._claim)
        self._after_rounds(self._keep_session_key)

    def put_task_configs(
        self, name: str, configs: Callable[[], Sequence[Mapping[str, str | None]]], signature: InternalSignature | None
    ) -> None:
        """Store a connector's task configurations. Raises RestError, NotFoundError."""
        self._check_signature(signature)
        kept = [{key: value for key, value in config.items() if value is not None} for config in configs()]

        def work() -> None:
            snapshot = self._configs.snapshot()
            if not self._assignment.is_leader:
                raise MisdirectedError(lambda: self._assignment.leader_url, "the leader")
            if name not in snapshot.connectors:
                raise NotFoundError(f"Connector {name} not found")
            if kept and snapshot.target_state(name) is TargetState.STOPPED:
                raise BadRequestError(f"Cannot submit non-empty set of task configs for stopped connector {name}")
            self._configs.put_task_configs(name, kept)

        self._thread.call(work, doing=f"writing the tasks of connector {name}")

    def fence_zombies(self, name: str, signature: InternalSignature | None) -> None:
        """Fence what is left of earlier tasks of an exactly-once source. Raises RestError, NotFoundError, BadRequestError.

        A leader that is ``preparing`` does it too: the first workers that are ``enabled`` ask it.
        """
        self._check_signature(signature)
        if self._is_transactional:
            if not self._assignment.is_leader:
                raise MisdirectedError(lambda: self._assignment.leader_url, "the leader")
            self._fencing.fence(name)
            return
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

    def require_signature(self, signature: InternalSignature | None) -> None:
        """Let only a worker of this group ask. Raises RestError, BadRequestError."""
        if not self._signs:
            raise RestError("Workers of this group do not sign their requests: connect.protocol is not sessioned on all of them.", 403)
        self._check_signature(signature)

    def _check_signature(self, signature: InternalSignature | None) -> None:
        if self._signs:
            session_key.check(signature, self._configs.snapshot().session_key, self._session_keys)

    @property
    def _signs(self) -> bool:
        """Workers of the protocols before `sessioned` do not sign, and one such worker is enough for a group not to."""
        return self._assignment.protocol is GroupProtocol.SESSIONED

    @property
    def _session_keys(self) -> SessionKeySettings:
        return SessionKeySettings.parse(self._worker.raw)

    def _claim(self) -> None:
        """On the herder's thread, after each round and now and then: a leader fences the one before, again after a write has failed."""
        self._claims += 1
        if not self._is_transactional:
            return
        if not self._assignment.is_leader:
            self._configs.release()
            return
        claims, seconds = self._claims, _CLAIM_SECONDS
        try:
            self._configs.claim()
        except ConnectError as error:
            log.warning("This worker leads the group and cannot write to the configuration topic yet; tried again soon: %s", error)
            seconds = _CLAIM_RETRY_SECONDS
        self._thread.post_later(seconds, lambda: self._claim() if self._claims == claims else None)

    def _keep_session_key(self) -> None:
        """On the herder's thread, after each round of the group and when the key has become too old."""
        self._check += 1
        if not self._signs or not self._assignment.is_leader:
            return
        settings, now = self._session_keys, int(time.time() * 1000)
        stored = self._configs.snapshot().session_key
        left = session_key.milliseconds_left(stored, settings, now)
        if session_key.is_outdated(stored, settings, now):
            left = settings.ttl_ms or None
            try:
                self._configs.put_session_key(session_key.new_key(settings), settings.algorithm, now)
            except ConnectError as error:
                log.warning("The key that signs requests of workers to each other could not be stored; tried again soon: %s", error)
                left = _KEY_RETRY_MS
        if left is not None:
            check = self._check
            self._thread.post_later(max(left, _MIN_KEY_CHECK_MS) / 1000, lambda: self._keep_session_key() if self._check == check else None)
