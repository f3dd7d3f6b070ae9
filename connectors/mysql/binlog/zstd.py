"""Compressed transactions (``binlog_transaction_compression``)."""

from __future__ import annotations

import zstandard

from connectors.mysql.binlog.errors import MalformedEventError
from connectors.mysql.binlog.events import TransactionPayload


def unpack_transaction(payload: TransactionPayload) -> bytes:
    """The events inside. Raises MalformedEventError: the frame is damaged or unpacks to another size than it says."""
    if not payload.compressed:
        return payload.payload
    try:
        with zstandard.ZstdDecompressor().stream_reader(payload.payload) as reader:
            found = reader.read(payload.size + 1)
    except (zstandard.ZstdError, MemoryError) as error:
        raise MalformedEventError(f"a compressed transaction cannot be unpacked: {error}") from error
    if len(found) != payload.size:
        raise MalformedEventError(f"a compressed transaction unpacks to other than {payload.size} bytes")
    return found
