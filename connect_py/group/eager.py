"""Share the work out as groups of the protocol `eager` do: all of it, in each round (`EagerAssignor.java`)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from connect_py.group.protocol import Allocation, Item


def deal_everything(members: Iterable[str], configured: Allocation) -> dict[str, Allocation]:
    """Deal all connectors, then all tasks, to the members in turn; who had what before plays no part."""
    dealt: dict[str, list[Item]] = {member: [] for member in sorted(members)}
    everything: list[Item] = [*sorted(configured.connectors), *sorted(configured.tasks)]
    for items, item in zip(cycle(dealt.values()), everything, strict=False):
        items.append(item)
    return {member: Allocation.of(items) for member, items in dealt.items()}
