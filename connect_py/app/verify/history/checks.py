"""Run all tests of a history, in an order in which the first finding is the most telling one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from connect_py.app.verify.history import delivery, positions, state
from connect_py.app.verify.history.records import Finding, History
from connect_py.app.verify.history.trail import Trail, follow

Check = Callable[[Trail], Iterator[Finding]]

#: What holds at any time, also of a task that has failed as it had to.
ALWAYS: tuple[Check, ...] = (
    state.journal_and_source,
    delivery.phantoms,
    delivery.disorder,
    delivery.stale_rows,
    delivery.wrong_values,
    delivery.excess_replays,
    delivery.repeated,
    positions.early_acknowledgements,
    positions.offsets_that_went_back,
    positions.two_owners,
    positions.quiet_failures,
)
#: What holds when the connector has caught up with a quiet source.
AT_REST: tuple[Check, ...] = (
    delivery.lost,
    state.folded_topic,
    delivery.missing_tombstones,
    delivery.open_transactions,
    positions.torn_transactions,
    positions.uncounted,
    positions.incomplete_schema_history,
    state.lakehouse,
)


def check(history: History, *, at_rest: bool = True) -> list[Finding]:
    """Return everything that is wrong with a history; nothing: it is as promised.

    Args:
        at_rest: whether the connector has caught up with a quiet source. Of one that has not, or that had to fail, only what must hold at
            any time is tested.
    """
    trail = follow(history)
    checks = ALWAYS + (AT_REST if at_rest and history.promise.failure is None else ())
    return [finding for each in checks for finding in each(trail)]
