"""Which committed transactions a snapshot of PostgreSQL does not see, by their 32-bit ids of the log."""

import pytest

from connectors.postgres.server.visibility import unseen

EPOCH = 3 << 32


@pytest.mark.parametrize(
    ("snapshot", "not_seen"),
    [
        ("100:100:", {100, 101}),
        ("99:102:99,101", {99, 101}),
        ("99:100:99", {99, 100, 101}),
        (f"{EPOCH + 99}:{EPOCH + 101}:{EPOCH + 99}", {99, 101}),
        (f"{EPOCH - 3}:{EPOCH - 3}:", {99, 100, 101}),
        (f"{EPOCH + 102}:{EPOCH + 102}:", set()),
    ],
)
def test_what_runs_or_began_after_a_snapshots_end_is_not_seen(snapshot: str, not_seen: set[int]) -> None:
    assert unseen(snapshot, [2**32 - 9, 99, 100, 101]) == not_seen
