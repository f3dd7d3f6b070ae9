"""Which of the stored offset and the slot's own position a start trusts where they differ (`offset.mismatch.strategy`; postgres.md
§9.1)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from connectors.postgres.position.lsn import format_lsn
from connectors.postgres.position.offset import PostgresOffset
from connectors.postgres.server.connection import Connection, quote_literal

log = logging.getLogger(__name__)

TRUST_OFFSET: Final = "trust_offset"
TRUST_SLOT: Final = "trust_slot"
TRUST_GREATER: Final = "trust_greater_lsn"


def settle(
    general: Connection, slot: str, confirmed_lsn: int, position: PostgresOffset, strategy: str, *, confirms: bool
) -> PostgresOffset:
    """The position to stream from.

    Args:
        confirmed_lsn: the slot's.
        position: what is stored, of a stream.
        strategy: one of the names above; any other trusts the offset and leaves the slot alone.
        confirms: whether we may move the slot (`lsn.flush.mode` other than manual).

    Raises:
        ServerError: the slot cannot be moved.
    """
    stored = position.start_lsn
    if strategy not in (TRUST_OFFSET, TRUST_SLOT, TRUST_GREATER) or stored == confirmed_lsn or not stored:
        return position
    behind = stored < confirmed_lsn
    if strategy == TRUST_SLOT or (behind and strategy == TRUST_GREATER):
        if behind:
            log.warning(
                "offset.mismatch.strategy=%s: the stored offset %s lies before the slot's position %s; changes between them are not read",
                strategy,
                format_lsn(stored),
                format_lsn(confirmed_lsn),
            )
        else:
            log.warning(
                "offset.mismatch.strategy=%s: the stored offset %s lies behind the slot's position %s; changes since there come again",
                strategy,
                format_lsn(stored),
                format_lsn(confirmed_lsn),
            )
        return replace(position, lsn=confirmed_lsn, lsn_proc=confirmed_lsn, lsn_commit=confirmed_lsn, message_type=None, events_processed=0)
    if behind:
        return position
    if not confirms:
        log.warning("offset.mismatch.strategy=%s: the slot is left where it is, since lsn.flush.mode is manual", strategy)
        return position
    general.query(f"SELECT pg_replication_slot_advance({quote_literal(slot)}, {quote_literal(format_lsn(stored))})")
    log.info("offset.mismatch.strategy=%s: the slot '%s' was advanced to the stored offset %s", strategy, slot, format_lsn(stored))
    return position
