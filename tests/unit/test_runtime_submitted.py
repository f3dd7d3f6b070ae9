"""The rule that an offset never runs ahead of what Kafka holds."""

from hypothesis import given
from hypothesis import strategies as st

from connect_py.runtime.submitted import SubmittedRecords


def test_a_batch_counts_only_when_all_its_rows_are_acknowledged() -> None:
    submitted = SubmittedRecords()
    batch = submitted.submit({"server": "a"}, {"pos": 1}, rows=2)
    batch.outstanding -= 1
    assert submitted.committable() == []
    assert not submitted.is_idle()
    batch.outstanding -= 1
    assert submitted.committable() == [({"server": "a"}, {"pos": 1})]
    assert submitted.committable() == []
    assert submitted.is_idle()


def test_an_unacknowledged_record_holds_back_its_own_partition_only() -> None:
    submitted = SubmittedRecords()
    first, second = submitted.submit({"p": 1}, {"pos": 1}), submitted.submit({"p": 1}, {"pos": 2})
    other = submitted.submit({"p": 2}, {"pos": 9})
    second.outstanding = other.outstanding = 0
    assert submitted.committable() == [({"p": 2}, {"pos": 9})]
    first.outstanding = 0
    assert submitted.committable() == [({"p": 1}, {"pos": 2})]


def test_a_batch_without_rows_moves_the_offset_once_all_before_it_is_acknowledged() -> None:
    submitted = SubmittedRecords()
    before = submitted.submit({"p": 1}, {"pos": 1})
    submitted.submit({"p": 1}, {"pos": 2}, rows=0)
    assert submitted.committable() == []
    before.outstanding = 0
    assert submitted.committable() == [({"p": 1}, {"pos": 2})]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(0, 2), st.integers(0, 3)),
        st.tuples(st.just("acknowledge"), st.integers(0, 50), st.just(0)),
        st.tuples(st.just("commit"), st.just(0), st.just(0)),
    )
)


@given(STEPS)
def test_in_any_order_of_acknowledgements_the_offset_is_that_of_the_contiguous_prefix(steps: list[tuple[str, int, int]]) -> None:
    submitted = SubmittedRecords()
    model: dict[int, list] = {0: [], 1: [], 2: []}  # all submissions of a partition, in order
    committed = {0: -1, 1: -1, 2: -1}
    open_rows = []
    for what, number, rows in steps:
        if what == "submit":
            submission = submitted.submit({"p": number}, {"pos": len(model[number])}, rows)
            model[number].append(submission)
            open_rows += [submission] * rows
        elif what == "acknowledge" and open_rows:
            open_rows.pop(number % len(open_rows)).outstanding -= 1
        elif what == "commit":
            for partition, offset in submitted.committable():
                assert offset["pos"] > committed[partition["p"]], "an offset never goes back"
                committed[partition["p"]] = offset["pos"]
            for partition, submissions in model.items():
                prefix = next((i for i, s in enumerate(submissions) if s.outstanding), len(submissions))
                assert committed[partition] == prefix - 1
    assert submitted.outstanding() == len(open_rows)
