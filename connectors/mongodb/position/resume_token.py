"""Resume tokens as offsets hold them: Base64 of the token's BSON document (mongodb.md §5; `ResumeTokens.java`)."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import bson
from bson.errors import BSONError

from connect_py.errors import ConfigError

#: What a token's `_data` begins with: KeyString's type byte of a timestamp, then eight bytes, big-endian.
_TIMESTAMP = 0x82


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """A place in the change stream, known to the server only.

    Attributes:
        raw: the token's BSON document.
    """

    raw: bytes

    @classmethod
    def parse(cls, text: str) -> ResumeToken:
        """From an offset: Base64, or the bare `_data` of releases before 2.6.

        Raises:
            ConfigError: it is no text of a token.
        """
        try:
            raw = base64.b64decode(text, validate=True)
            bson.decode(raw)
            return cls(raw)
        except (binascii.Error, ValueError, BSONError):
            pass
        if not text or any(letter not in "0123456789abcdefABCDEF" for letter in text):
            raise ConfigError(
                "The field 'resume_token' of the stored offset is no resume token. Nothing was read. Set the offset anew (PATCH offsets "
                "while the connector is stopped), or delete it to begin with a snapshot."
            )
        return cls(bson.encode({"_data": text}))

    @classmethod
    def of(cls, document: Any) -> ResumeToken:
        """From what the driver gives: a decoded or a raw document."""
        raw = getattr(document, "raw", None)
        return cls(bson.encode(document) if raw is None else bytes(raw))

    def __str__(self) -> str:
        return base64.b64encode(self.raw).decode("ascii")

    @property
    def document(self) -> dict[str, Any]:
        """As commands take it."""
        return bson.decode(self.raw)

    @property
    def time(self) -> tuple[int, int] | None:
        """Seconds and increment of the cluster time inside; None where the token does not have the known form."""
        data = self.document.get("_data")
        try:
            octets = bytes.fromhex(data) if isinstance(data, str) else bytes(data or b"")
        except ValueError:
            return None
        if len(octets) < 9 or octets[0] != _TIMESTAMP:
            return None
        return int.from_bytes(octets[1:5], "big"), int.from_bytes(octets[5:9], "big")
