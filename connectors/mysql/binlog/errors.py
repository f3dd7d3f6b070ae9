"""What goes wrong in a binlog's bytes."""

from __future__ import annotations

from connect_py.errors import DataError


class MalformedEventError(DataError):
    """Bytes that are no event, or an event that contradicts itself. The only error that leaves this package."""
