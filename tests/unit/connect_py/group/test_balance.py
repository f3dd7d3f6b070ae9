"""Shares of items, whatever they are."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from connect_py.group.balance import deal, hand_out, surplus


def lists(**sizes: int) -> dict[str, list[str]]:
    return {member: [f"{member}{number}" for number in range(size)] for member, size in sizes.items()}


def test_equal_shares_give_nothing_up_whoever_has_the_extras() -> None:
    assert surplus(lists(a=2, b=2, c=2), 6) == {}
    assert surplus(lists(a=2, b=3, c=2), 7) == {}
    assert surplus(lists(a=3, b=2, c=3), 8) == {}


def test_members_with_too_much_give_up_the_front_of_their_lists() -> None:
    assert surplus(lists(a=4, b=0), 4) == {"a": ["a0", "a1"]}
    assert surplus(lists(a=1, b=5, c=3), 9) == {"b": ["b0", "b1"]}


def test_the_first_members_in_order_keep_one_more_while_there_are_extras() -> None:
    assert surplus(lists(b=4, a=3, c=0), 7) == {"b": ["b0"], "a": ["a0"]}
    assert surplus(lists(a=3, b=4, c=0), 7) == {"b": ["b0", "b1"]}


def test_items_that_are_not_handed_out_yet_count_for_the_shares() -> None:
    assert surplus(lists(a=2, b=0), 4) == {}
    assert surplus(lists(a=3, b=0), 4) == {"a": ["a0"]}


def test_items_go_to_members_with_the_fewest_by_their_ids_level_by_level() -> None:
    loads = lists(c=1, b=0, a=2)
    hand_out(loads, ["1", "2", "3", "4", "5"])
    assert loads == {"b": ["1", "2", "4"], "c": ["c0", "3", "5"], "a": ["a0", "a1"]}
    tied = lists(b=1, a=1)
    hand_out(tied, ["1"])
    assert tied == {"b": ["b0"], "a": ["a0", "1"]}


def test_dealing_looks_at_turns_only() -> None:
    loads = lists(a=3, b=0, c=1)
    deal(loads, ["c", "a"], ["1", "2", "3"])
    assert loads == {"a": ["a0", "a1", "a2", "2"], "b": [], "c": ["c0", "1", "3"]}


SIZES = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.integers(0, 12), min_size=1, max_size=8)


@given(SIZES, st.integers(0, 20))
def test_giving_up_and_handing_out_makes_shares_equal_with_the_fewest_moves(sizes: dict[str, int], created: int) -> None:
    loads = lists(**sizes)
    total = sum(sizes.values()) + created
    given_up = {member: list(items) for member, items in surplus(loads, total).items()}
    for member, items in given_up.items():
        assert loads[member][: len(items)] == items
        del loads[member][: len(items)]
    kept = Counter({member: len(items) for member, items in loads.items()})
    minimum, extras = divmod(total, len(loads))
    fewest = sum(max(0, size - minimum) for size in sizes.values()) - min(extras, sum(size > minimum for size in sizes.values()))
    assert sum(map(len, given_up.values())) == fewest
    hand_out(loads, [item for items in given_up.values() for item in items])
    hand_out(loads, [f"new{number}" for number in range(created)])
    assert sum(map(len, loads.values())) == total
    assert max(map(len, loads.values())) - min(map(len, loads.values())) <= 1
    assert all(len(loads[member]) >= count for member, count in kept.items())
