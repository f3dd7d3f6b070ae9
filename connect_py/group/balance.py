"""Share items among members so that their numbers differ by one at most. Connectors and tasks are balanced apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def surplus(loads: Mapping[str, Sequence[T]], total: int) -> dict[str, Sequence[T]]:
    """Return what members have to give up, so that the others can have their share (`loadBalancingRevocations`).

    Args:
        loads: what each member keeps; their order says who may keep one more than others.
        total: number of items once everything is handed out.

    Returns:
        The members that have too much, with what they give up: the first items of theirs.
    """
    minimum, extras = divmod(total, len(loads))
    sizes = [len(items) for items in loads.values()]
    if sizes.count(minimum + 1) == extras and sizes.count(minimum) == len(loads) - extras:
        return {}
    excess: dict[str, Sequence[T]] = {}
    for member, items in loads.items():
        kept = minimum
        if len(items) > minimum and extras:
            extras -= 1
            kept += 1
        if len(items) > kept:
            excess[member] = items[: len(items) - kept]
    return excess


def hand_out(loads: Mapping[str, list[T]], items: Iterable[T]) -> None:
    """Add items to the members' loads, each to one that has the fewest; ties go by member id (`assignTasks`)."""
    by_load = sorted(loads, key=lambda member: (len(loads[member]), member))
    remaining = list(reversed([*items]))
    while remaining:
        level = len(loads[by_load[0]])
        lowest = [member for member in by_load if len(loads[member]) == level]
        for member in lowest[: len(remaining)]:
            loads[member].append(remaining.pop())


def deal(loads: Mapping[str, list[T]], receivers: Sequence[str], items: Iterable[T]) -> None:
    """Add items to the loads of the receivers, one each in turn, whatever they have."""
    for number, item in enumerate(items):
        loads[receivers[number % len(receivers)]].append(item)
