"""Providers of configuration values that live elsewhere (KIP-297; `org.apache.kafka.common.config.provider.ConfigProvider`).

A property such as ``database.password=${vault:secret/db:password}`` names a provider, a path and a key. The worker asks the provider for
the value where the property is used, and keeps only the variable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class ConfigData:
    """What a provider found.

    Attributes:
        values: key → value; keys that are not there are left out.
        ttl_ms: how long the values hold, None for ever. The connector is restarted after that time, so that it sees new ones
            (`config.action.reload`).
    """

    values: Mapping[str, str]
    ttl_ms: int | None = None


class ConfigProvider(ABC):
    """A source of values. Made once a process and asked from several threads at a time.

    An entry point of the group ``connect_py.plugins`` makes one known, as for every plugin; ``config.providers.NAME.class`` names it.
    """

    java_name: ClassVar[str]
    version: ClassVar[str | None] = None

    def configure(self, parameters: Mapping[str, str]) -> None:  # noqa: B027  # most providers need none
        """Take the properties below ``config.providers.NAME.param.``. Raises ConfigError."""

    @abstractmethod
    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        """Return the values of some keys.

        Args:
            path: what stands between the provider's name and the key, "" when there is nothing.

        Raises:
            ConfigError: they cannot be read; the text names path or key, never a value.
        """

    def close(self) -> None:  # noqa: B027
        """Free what `configure` took."""
