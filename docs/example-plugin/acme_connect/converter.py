"""A converter for lines of logfmt: ``id=7 note="two words"``. Flat, and every value is a text when it is read back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from connect_py.api import ConfigDef, ConfigKey, ConfigType, Converter, Importance
from connect_py.data import Schema, Struct
from connect_py.errors import DataError

SORT = "sort.keys"

_KEY = re.compile(r'[^\s="]+')
_PAIR = re.compile(r'\s*([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)')


class LogfmtConverter(Converter):
    """Structs and dicts of plain values."""

    java_name = "com.acme.connect.LogfmtConverter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Properties."""
        return ConfigDef([ConfigKey(SORT, ConfigType.BOOLEAN, False, Importance.LOW, "Whether keys are written in alphabetical order.")])

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Take properties."""
        self._sorted = self.config_def().parse(config)[SORT]

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """One line; a null in it is left out."""
        if value is None:
            return None
        pairs = _pairs(value)
        return " ".join(f"{key}={_shown(key, part)}" for key, part in (sorted(pairs) if self._sorted else pairs)).encode()

    def to_connect_data(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """A dict of texts, without a schema."""
        if data is None:
            return None, None
        try:
            line = data.decode()
            found = list(_PAIR.finditer(line))
            if "".join(match.group() for match in found) != line.rstrip():
                raise ValueError("there is something between two pairs")
            return None, {match[1]: json.loads(match[2]) if match[2].startswith('"') else match[2] for match in found}
        except ValueError as error:
            raise DataError(f"A record of {topic} is not logfmt: {error}") from error


def _pairs(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Struct):
        pairs = [(field.name, part) for field, part in zip(value.schema.fields, value.values, strict=True)]
    elif isinstance(value, dict):
        pairs = list(value.items())
    else:
        raise DataError(f"logfmt holds structs and maps, not a {type(value).__name__}")
    return [(key, part) for key, part in pairs if part is not None]


def _shown(key: str, value: Any) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key) or not isinstance(value, str | int | float | bool):
        raise DataError(f"logfmt cannot hold {key!r} with a {type(value).__name__}")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if re.fullmatch(r'[^\s"=]+', text) else json.dumps(text, ensure_ascii=False)
