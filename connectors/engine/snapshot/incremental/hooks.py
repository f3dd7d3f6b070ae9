"""Places at which tests put races."""

from __future__ import annotations


class SnapshotHooks:
    """Places of an incremental snapshot at which a test puts a race (`SnapshotPhaseHooks` of flink-cdc); does nothing by itself."""

    def reached(self, phase: str) -> None:
        """Called at before_low, after_low, before_chunk, after_chunk, before_high and after_high."""
