"""The property that every converter has (`org.apache.kafka.connect.storage.ConverterConfig`)."""

from __future__ import annotations

from connect_py.api.config import ConfigKey, ConfigType, Importance, one_of

#: The runtime sets it; no user has to.
CONVERTER_TYPE = ConfigKey(
    "converter.type",
    ConfigType.STRING,
    importance=Importance.LOW,
    documentation="How this converter will be used.",
    display_name="converter.type",
    validator=one_of("key", "value", "header"),
)
