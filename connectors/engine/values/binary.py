"""Bytes by `binary.handling.mode` (debezium-common.md §6.3)."""

from __future__ import annotations

import base64
from collections.abc import Callable

from connectors.engine.encode.numbers import base64_of_bytes

#: Mode → text, without quotes, of bytes.
TEXT_OF_BYTES: dict[str, Callable[[bytes], str]] = {
    "bytes": base64_of_bytes,
    "base64": base64_of_bytes,
    "base64-url-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
    "hex": bytes.hex,
}
