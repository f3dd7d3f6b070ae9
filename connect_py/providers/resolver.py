"""Replace the variables of configurations, ``${provider:[path:]key}``, by the values of providers.

After `ConfigTransformer.java`, `WorkerConfigTransformer.java` and KIP-297.

This happens in three places only: the worker's own properties when it starts; a connector's in memory, to check it and to start its
instance in the worker; and again inside each task's process. What is stored, shown and logged has the variables. Every value that a
provider gave for a stored configuration is learned by `connect_py.log.redact.PROVIDED`, so no log line of this process and no trace
repeats it.

`Reloads` restarts connectors whose values expire (`WorkerConfigTransformer.scheduleReload`, ``config.action.reload``). Connect restarts
only the connector's instance, whose tasks then keep their old values; here the tasks are restarted too, since they are what uses a
password. The herder's thread owns a `Reloads`; `resolve` alone may be called from others.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from connect_py.api.config import ConfigType, parse_value
from connect_py.api.provider import ConfigProvider
from connect_py.errors import ConfigError
from connect_py.log.redact import PROVIDED

log = logging.getLogger(__name__)


#: ConfigTransformer.DEFAULT_PATTERN: provider, then a path that may be missing, then a key, which alone may hold colons. It finds what that
#: finds, but has one way to do so: Java's takes minutes for a short value of many colons.
_VARIABLE = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}]*)\}")


#: Properties of connectors in which no variable is replaced: their values are classes, or become parts of other properties' names, and
#: both are shown in answers. Kafka Connect replaces them there too.
_SHOWN = re.compile(r"(?:.*\.)?(?:class|type)|transforms|predicates|converters|post\.processors|topic\.creation\.groups")


def takes_variables(name: str) -> bool:
    """Return whether variables are replaced in a connector's property."""
    return _SHOWN.fullmatch(name) is None


class Variable(NamedTuple):
    """One variable; the path is "" when it has none."""

    provider: str
    path: str
    key: str
    text: str


def variables_in(value: str | None) -> list[Variable]:
    """Return the variables of a value, in order."""
    return [_variable(found) for found in _VARIABLE.finditer(value)] if value else []


def replace_variables(value: str, look_up: Callable[[Variable], str | None]) -> str:
    """Return a value with its variables replaced. One that is not found (None) stays as it is written; what is found is not read again."""

    def text_of(found: re.Match[str]) -> str:
        replacement = look_up(_variable(found))
        return found[0] if replacement is None else replacement

    return _VARIABLE.sub(text_of, value)


def with_variables_kept(made: Mapping[str, str], written: Mapping[str, str]) -> dict[str, str]:
    """Return a task's configuration as it may be stored: where the connector's own one has a variable, so has this (`reverseTransform`).

    Args:
        made: what the connector made of its resolved configuration.
        written: the connector's configuration as its owner wrote it.
    """
    return {key: written[key] if variables_in(written.get(key)) else value for key, value in made.items()}


def _variable(found: re.Match[str]) -> Variable:
    return Variable(found[1], found[2] or "", found[3], found[0])


PROVIDERS = "config.providers"


@dataclass(frozen=True)
class Resolved:
    """A configuration with its variables replaced.

    Attributes:
        values: the configuration; a variable without a value stays as it is written.
        secrets: the values that providers gave.
        ttl_ms: the shortest time for which these hold, None for ever.
        missing: (property, variable) of what was not found.
    """

    values: dict[str, Any]
    secrets: frozenset[str] = frozenset()
    ttl_ms: int | None = None
    missing: tuple[tuple[str, Variable], ...] = ()


@dataclass
class Resolver:
    """The providers of a worker, by their names in ``config.providers``. Any thread may use it."""

    providers: Mapping[str, ConfigProvider] = field(default_factory=dict)

    @classmethod
    def from_worker(cls, properties: Mapping[str, str], load: Callable[[str], type[Any]]) -> Resolver:
        """Return the providers that a worker's properties name.

        Args:
            load: the class of a plugin's Java class name (`connect_py.plugins.registry.Plugins.load`).

        Raises:
            ConfigError: a provider has no class, is not installed, or refuses its parameters.
        """
        names = dict.fromkeys(name for name in parse_value(PROVIDERS, properties.get(PROVIDERS, ""), ConfigType.LIST) if name)
        return cls({name: _provider(name, properties, load) for name in names})

    def resolve(
        self, config: Mapping[str, str | None], *, shown: Collection[str] = (), owner: str | None = "", of_worker: bool = False
    ) -> Resolved:
        """Replace the variables of a configuration.

        Args:
            of_worker: these are the worker's own properties, of which nothing is shown; see `takes_variables`.
            owner: whose secrets the values are from now on, a connector's name, or "" for the process's own; None for what is only asked
                about, whose answer the caller redacts.
            shown: properties that hold no secret, so what only these take from a provider may stand in the log.

        Raises:
            ConfigError: a provider cannot read what it is asked for. Nothing was changed.
        """
        wanted = {key: found for key, value in config.items() if (found := variables_in(value)) and (of_worker or takes_variables(key))}
        if not wanted:
            return Resolved(dict(config))
        values, ttl_ms = self._ask({variable for found in wanted.values() for variable in found})
        hidden = {variable[:3] for key, found in wanted.items() if key not in shown for variable in found}
        secrets = frozenset(value for variable, value in values.items() if variable in hidden)
        if owner is not None:
            PROVIDED.learn(secrets, owner)
        resolved = {
            key: replace_variables(value, lambda variable: values.get(variable[:3])) if key in wanted and value is not None else value
            for key, value in config.items()
        }
        missing = tuple((key, variable) for key, found in wanted.items() for variable in found if variable[:3] not in values)
        return Resolved(resolved, secrets, ttl_ms, missing)

    def explain_missing(self, missing: Variable) -> str:
        """Return why a variable stayed as it was, and what to do."""
        if missing.provider not in self.providers:
            known = ", ".join(self.providers) or "none"
            return f"this worker has no config provider '{missing.provider}' ({PROVIDERS}: {known})"
        place = f" at {missing.path}" if missing.path else ""
        return f"the config provider '{missing.provider}' has no value of '{missing.key}'{place}, or may not read it"

    def close(self) -> None:
        """Close every provider."""
        for provider in self.providers.values():
            provider.close()

    def _ask(self, variables: set[Variable]) -> tuple[dict[tuple[str, ...], str], int | None]:
        """(provider, path, key) → value, and the shortest time to live; one question for each provider and path."""
        questions: dict[tuple[str, str], set[str]] = {}
        for variable in variables:
            questions.setdefault((variable.provider, variable.path), set()).add(variable.key)
        values: dict[tuple[str, ...], str] = {}
        ttls: list[int] = []
        for (name, path), keys in questions.items():
            provider = self.providers.get(name)
            if provider is None:
                continue
            data = _answer(name, provider, path, keys)
            values |= {(name, path, key): data.values[key] for key in keys if key in data.values}
            if data.ttl_ms is not None and data.ttl_ms >= 0:
                ttls.append(data.ttl_ms)
        return values, min(ttls, default=None)


def resolve_worker_properties(
    properties: Mapping[str, str], load: Callable[[str], type[Any]], *, shown: Collection[str] = ()
) -> dict[str, str]:
    """A worker's own properties with their variables replaced by its own providers, as Kafka's clients and workers do at their start.

    Args:
        shown: see `Resolver.resolve`.

    Raises:
        ConfigError: see `Resolver.from_worker` and `Resolver.resolve`.
    """
    resolver = Resolver.from_worker(properties, load)
    try:
        resolved = resolver.resolve(properties, shown=shown, of_worker=True)
        for key, variable in resolved.missing if resolver.providers else ():
            log.warning("%s in the worker's property %s stays as it is: %s", variable.text, key, resolver.explain_missing(variable))
        return {key: value for key, value in resolved.values.items() if value is not None}
    finally:
        resolver.close()


def _provider(name: str, properties: Mapping[str, str], load: Callable[[str], type[Any]]) -> ConfigProvider:
    prefix = f"{PROVIDERS}.{name}."
    class_name = properties.get(f"{prefix}class", "").strip()
    if not class_name:
        raise ConfigError(f"{PROVIDERS} names '{name}', but {prefix}class is not set. Set it to the class of the provider.")
    try:
        made = load(class_name)
    except ConfigError as error:
        raise ConfigError(f"Invalid value {class_name} for configuration {prefix}class: {error}") from error
    if not (isinstance(made, type) and issubclass(made, ConfigProvider)):
        raise ConfigError(f"Invalid value {class_name} for configuration {prefix}class: it is no config provider.")
    provider = made()
    start = f"{prefix}param."
    try:
        provider.configure({key.removeprefix(start): value for key, value in properties.items() if key.startswith(start)})
    except ConfigError as error:
        raise ConfigError(f"The config provider '{name}' ({class_name}) refuses its parameters ({start}*): {error}") from error
    return provider


def _answer(name: str, provider: ConfigProvider, path: str, keys: set[str]) -> Any:
    try:
        return provider.get(path, frozenset(keys))
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001  # a provider of somebody else may raise anything, and put what it read into the text
        log.error("The config provider '%s' failed with %s", name, type(error).__name__)
        raise ConfigError(f"The config provider '{name}' could not read {path or 'its values'}: {type(error).__name__}") from None


class Later(Protocol):
    """What runs the herder's work (`connect_py.herder.thread.HerderThread`)."""

    def post(self, work: Callable[[], None]) -> None: ...
    def post_later(self, seconds: float, work: Callable[[], None]) -> None: ...


class Reloads:
    """Plans the restarts of connectors whose values expire.

    Args:
        reload: (connector, the configuration that was resolved) → restarts it, if that is still its configuration.
    """

    def __init__(self, resolver: Resolver, thread: Later, reload: Callable[[str, Mapping[str, str]], None]) -> None:
        self._resolver = resolver
        self._thread = thread
        self._reload = reload
        self._latest: dict[str, object] = {}

    def resolve(self, name: str, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return a connector's configuration for its start, with the values of its variables; its reload is planned when these expire.

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
