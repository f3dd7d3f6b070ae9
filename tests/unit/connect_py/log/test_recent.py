"""The last lines of each connector's log."""

from connect_py.log.recent import KEPT_LINES, RecentLines


def test_the_last_lines_are_kept_in_order_and_passed_on():
    recent, seen = RecentLines(), []
    keep = recent.keeper("c", 3, seen.append)
    for number in range(KEPT_LINES + 7):
        keep(f"line {number}")
    found = recent.of("c")
    assert len(found) == KEPT_LINES == 500
    assert [found[0][1:], found[-1][1:]] == [(3, "line 7"), (3, f"line {KEPT_LINES + 6}")]
    assert len(seen) == KEPT_LINES + 7
    assert [line for _, _, line in recent.of("c", since=found[-3][0])] == [f"line {KEPT_LINES + 5}", f"line {KEPT_LINES + 6}"]


def test_numbers_grow_over_a_restart_and_other_connectors_are_apart():
    first = RecentLines()
    first.keeper("c", 0, lambda line: None)("before")
    again = RecentLines()
    again.keeper("c", 0, lambda line: None)("x" * 10_000)
    assert again.of("c")[0][0] > first.of("c")[0][0]
    assert len(again.of("c")[0][2]) == 2000
    assert again.of("other") == []
    again.forget("c")
    assert again.of("c") == []
