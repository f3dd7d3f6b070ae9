"""The rule that an offset never runs ahead of what Kafka holds."""

from hypothesis import given
from hypothesis import strategies as st

from connect_py.task.offsets import SubmittedRecords


def test_a_batch_counts_only_when_all_its_rows_are_delivered() -> None:
    submitted = SubmittedRecords()
    batch = submitted.submit({"server": "a"}, {"pos": 1})
    submitted.delivered()
    assert submitted.committable() == [], "not all of it is handed over"
    batch.held -= 1
    assert submitted.committable() == [], "it is under way"
    assert not submitted.is_idle()
    submitted.delivered()
    assert submitted.committable() == [({"server": "a"}, {"pos": 1})]
    assert submitted.committable() == []
    assert submitted.is_idle()


def test_what_is_held_back_or_failed_holds_back_its_own_partition_only() -> None:
    submitted = SubmittedRecords()
    first, second = submitted.submit({"p": 1}, {"pos": 1}), submitted.submit({"p": 1}, {"pos": 2})
    other, failed = submitted.submit({"p": 2}, {"pos": 9}), submitted.submit({"p": 2}, {"pos": 10})
    second.held = other.held = failed.held = 0
    failed.failed = True
    submitted.delivered()
    assert submitted.committable() == [({"p": 2}, {"pos": 9})]
    first.held = 0
    submitted.delivered()
    assert submitted.committable() == [({"p": 1}, {"pos": 2})]
    assert not submitted.is_idle()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(0, 2)),
        st.tuples(st.just("hand over"), st.integers(0, 50)),
        st.tuples(st.just("fail"), st.integers(0, 50)),
        st.tuples(st.just("deliver"), st.just(0)),
        st.tuples(st.just("commit"), st.just(0)),
    )
)


@given(STEPS)
def test_whatever_is_held_back_the_offset_is_that_of_the_contiguous_prefix(steps: list[tuple[str, int]]) -> None:
    submitted = SubmittedRecords()
    model: dict[int, list] = {0: [], 1: [], 2: []}  # all submissions of a partition, in order
    committed = {0: -1, 1: -1, 2: -1}
    delivered = {0: -1, 1: -1, 2: -1}
    held = []
    for what, number in steps:
        if what == "submit":
            submission = submitted.submit({"p": number}, {"pos": len(model[number])})
            model[number].append(submission)
            held.append(submission)
        elif what == "hand over" and held:
            held.pop(number % len(held)).held -= 1
        elif what == "fail" and held:
            held[number % len(held)].failed = True
        elif what == "deliver":
            submitted.delivered()
            for partition, submissions in model.items():
                delivered[partition] = next((i for i, s in enumerate(submissions) if s.held or s.failed), len(submissions)) - 1
        elif what == "commit":
            for partition, offset in submitted.committable():
                assert offset["pos"] > committed[partition["p"]], "an offset never goes back"
                committed[partition["p"]] = offset["pos"]
            assert committed == delivered
