"""How values of columns are shown: the handling modes that a configuration chooses. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connect_py.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ValueOptions:
    """How values are shown.

    Attributes:
        decimal_mode: `decimal.handling.mode`.
        time_mode: `time.precision.mode`.
        binary_mode: `binary.handling.mode`.
        bigint_mode: `bigint.unsigned.handling.mode`.
        placeholder: `unavailable.value.placeholder`.
        adjusts_years: `enable.time.adjuster`: dates of the years 1 to 99 are shown as of 1970 to 2069.
        unified: `value.consistency=unified` (ours): snapshots show values as the log does, where Debezium distinguishes them.
    """

    decimal_mode: str = "precise"
    time_mode: str = "adaptive_time_microseconds"
    binary_mode: str = "bytes"
    bigint_mode: str = "long"
    placeholder: str = "__debezium_unavailable_value"
    unified: bool = False
    adjusts_years: bool = False

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> ValueOptions:
        """Parse a connector's properties. Raises ConfigError: a mode is unknown."""
        return cls(
            _mode(config, "decimal.handling.mode", "precise", "string", "double"),
            _mode(config, "time.precision.mode", "adaptive_time_microseconds", "isostring", "microseconds", "nanoseconds", "connect"),
            _mode(config, "binary.handling.mode", "bytes", "base64", "base64-url-safe", "hex"),
            _mode(config, "bigint.unsigned.handling.mode", "long", "precise"),
            _placeholder(config.get("unavailable.value.placeholder", cls().placeholder)),
            _mode(config, "value.consistency", "reference", "unified") == "unified",
            config.get("enable.time.adjuster", "true").strip().lower() == "true",
        )


def _placeholder(text: str) -> str:
    """Return octets after `hex:` as the characters that they are in UTF-8."""
    if not text.startswith("hex:"):
        return text
    try:
        return bytes.fromhex(text[4:]).decode("utf-8", "replace")
    except ValueError:
        raise ConfigError(f"unavailable.value.placeholder={text}: behind hex: only pairs of hexadecimal digits can stand") from None


def _mode(config: Mapping[str, str], name: str, *values: str) -> str:
    """Return one of the values; the first is the default."""
    value = config.get(name, values[0]).strip().lower()
    if value not in values:
        raise ConfigError(f"{name}={value} is not supported; choose one of {', '.join(values)}")
    return value
