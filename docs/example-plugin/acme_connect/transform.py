"""A transform that adds a fingerprint of the value as a header, so that consumers can tell a change from a repetition."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect_py.api import ConfigDef, ConfigKey, ConfigType, Header, Importance, Transform, between, non_empty
from connect_py.api.transform import Record
from connect_py.data import STRING, Struct
from connect_py.errors import DataError

HEADER, LENGTH = "header", "length"


class Fingerprint(Transform):
    """The first digits of the value's SHA-256; a record without a value gets none."""

    java_name = "com.acme.connect.Fingerprint"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Properties."""
        return ConfigDef(
            [
                ConfigKey(HEADER, ConfigType.STRING, "fingerprint", Importance.MEDIUM, "Name of the header.", validator=non_empty),
                ConfigKey(LENGTH, ConfigType.INT, 12, Importance.LOW, "How many hexadecimal digits.", validator=between(4, 64)),
            ]
        )

    def configure(self, config: Mapping[str, str]) -> None:
        """Take properties."""
        values = self.config_def().parse(config)
        self._header, self._length = values[HEADER], values[LENGTH]

    def apply(self, record: Record) -> Record | None:
        """A new record with one header more."""
        if record.value is None:
            return record
        try:
            text = json.dumps(record.value, sort_keys=True, default=_plain)
        except (TypeError, ValueError) as error:
            raise DataError(f"The value has no fingerprint: {error}") from error
        digits = hashlib.sha256(text.encode()).hexdigest()[: self._length]
        return replace(record, headers=[*record.headers, Header(self._header, digits, STRING)])


def _plain(value: Any) -> Any:
    return value.values if isinstance(value, Struct) else str(value)
