"""Restarts connectors whose values from providers expire (`WorkerConfigTransformer.scheduleReload`, ``config.action.reload``).

Connect starts only the connector's instance again, whose tasks then keep their old values; here the tasks are started again too, since they
are what uses a password. The herder's thread owns a `Reloads`; `resolve` alone may be called from others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from connect_py.providers.resolver import Resolver

log = logging.getLogger(__name__)


class Later(Protocol):
    """What runs the herder's work (`connect_py.herder.thread.HerderThread`)."""

    def post(self, work: Callable[[], None]) -> None: ...
    def post_later(self, seconds: float, work: Callable[[], None]) -> None: ...


class Reloads:
    """See the module.

    Args:
        reload: (connector, the configuration that was resolved) → starts it anew, if that is still its configuration.
    """

    def __init__(self, resolver: Resolver, thread: Later, reload: Callable[[str, Mapping[str, str]], None]) -> None:
        self._resolver = resolver
        self._thread = thread
        self._reload = reload
        self._latest: dict[str, object] = {}

    def resolve(self, name: str, config: Mapping[str, str]) -> Mapping[str, str]:
        """A connector's configuration for its start, with the values behind its variables; its reload is planned when these expire.

        Raises:
            ConfigError: a provider cannot read what it is asked for.
        """
        resolved = self._resolver.resolve(config, owner=name)
        for key, variable in resolved.missing:
            log.warning("%s in the property %s stays as it is: %s", variable.text, key, self._resolver.explain_missing(variable))
        if resolved.ttl_ms is not None and (config.get("config.action.reload") or "restart").strip() != "none":
            seconds = resolved.ttl_ms / 1000
            self._thread.post(lambda: self._plan(name, config, seconds))
        return resolved.values

    def _plan(self, name: str, config: Mapping[str, str], seconds: float) -> None:
        mark = self._latest[name] = object()
        log.info("Scheduling a restart of connector %s in %d ms", name, seconds * 1000)

        def expire() -> None:
            if self._latest.get(name) is mark:  # otherwise it has been started meanwhile, with a plan of its own
                del self._latest[name]
                self._reload(name, config)

        self._thread.post_later(seconds, expire)
