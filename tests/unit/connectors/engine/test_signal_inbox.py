"""A channel is told that its signals are done when the offsets topic holds their effect, and not before."""

from __future__ import annotations

from connectors.engine.signal.channels import SignalInbox
from connectors.engine.signal.records import SignalRecord


class Channel:
    def __init__(self) -> None:
        self.new: list[SignalRecord] = []
        self.commits = 0

    def send(self, *ids: str) -> None:
        self.new += [SignalRecord(id_, "log", None, "test") for id_ in ids]

    def read(self) -> list[SignalRecord]:
        found, self.new = self.new, []
        return found

    def committed(self) -> None:
        self.commits += 1

    def close(self) -> None:
        pass


def carried_out(inbox: SignalInbox) -> list[str]:
    found = []
    while (record := inbox.poll()) is not None:
        found.append(record.id)
        inbox.done()
    return found


def test_an_offset_that_was_on_its_way_says_nothing_of_a_signal() -> None:
    channel = Channel()
    inbox = SignalInbox([channel], 0.0)
    assert not inbox.made({"at": 1})
    channel.send("a", "b")
    assert carried_out(inbox) == ["a", "b"]
    inbox.committed({"at": 1})
    assert channel.commits == 0, "the batch was made before the signals were carried out"
    assert inbox.made({"at": 2, "snapshot": "of t"}), "to be stored at once"
    assert not inbox.made({"at": 3, "snapshot": "of t"})
    inbox.committed({"at": 1})
    assert channel.commits == 0
    inbox.committed({"at": 3, "snapshot": "of t"})
    assert channel.commits == 1, "a later batch has the effect, too"
    inbox.committed({"at": 3, "snapshot": "of t"})
    assert channel.commits == 1


def test_a_signal_that_follows_has_to_be_stored_as_well() -> None:
    channel = Channel()
    inbox = SignalInbox([channel], 0.0)
    channel.send("a")
    carried_out(inbox)
    inbox.made({"at": 1})
    channel.send("b")
    carried_out(inbox)
    inbox.committed({"at": 1})
    assert channel.commits == 0, "b would be lost"
    inbox.made({"at": 2})
    inbox.committed({"at": 2})
    assert channel.commits == 1


def test_a_signal_that_could_not_be_carried_out_is_given_again() -> None:
    channel = Channel()
    inbox = SignalInbox([channel], 0.0)
    channel.send("a")
    first = inbox.poll()
    assert first is inbox.poll()
    inbox.made({"at": 1})
    inbox.committed({"at": 1})
    assert channel.commits == 0


def test_a_signal_that_is_handed_over_waits_its_turn_and_is_done_when_its_effect_is_stored() -> None:
    inbox, done = SignalInbox([], 60.0), []
    for id_ in ("a", "b"):
        inbox.put(SignalRecord(id_, "log", None, "rest"), lambda id_=id_: done.append(id_))
    assert carried_out(inbox) == ["a", "b"]
    assert done == []
    inbox.made({"at": 1})
    inbox.committed({"at": 1})
    inbox.committed({"at": 1})
    assert done == ["a", "b"]


def test_a_signal_without_an_effect_is_done_at_once() -> None:
    inbox, done = SignalInbox([], 60.0), []
    inbox.put(SignalRecord("a", "log", None, "rest"), lambda: done.append("a"))
    assert inbox.poll() is not None
    inbox.done(has_effect=False)
    assert done == ["a"]


def test_a_signal_of_which_no_batch_was_made_is_carried_out_again_by_a_task_that_resumes() -> None:
    """Its effect was in memory only. Once it counted as done with the next offset that was stored, which did not have it."""
    inbox, done = SignalInbox([], 60.0), []
    for id_ in ("a", "b"):
        inbox.put(SignalRecord(id_, "execute-snapshot", None, "rest"), lambda id_=id_: done.append(id_))
    assert carried_out(inbox) == ["a", "b"]
    inbox.resumed()
    inbox.made({"at": 1})
    inbox.committed({"at": 1})
    assert done == []
    assert carried_out(inbox) == ["a", "b"]
    inbox.made({"at": 2})
    inbox.resumed()
    assert carried_out(inbox) == [], "the last batch has their effect"
    inbox.committed({"at": 2})
    assert done == ["a", "b"]


def test_a_signal_whose_effect_the_task_remembers_is_not_carried_out_twice() -> None:
    inbox, done = SignalInbox([], 60.0), []
    inbox.put(SignalRecord("a", "execute-snapshot", None, "rest"), lambda: done.append("a"))
    assert inbox.poll() is not None
    inbox.done(outlasts_failures=True)
    inbox.resumed()
    assert inbox.poll() is None
    inbox.made({"at": 1})
    inbox.committed({"at": 1})
    assert done == ["a"]


def test_it_says_when_it_wants_to_be_polled_again() -> None:
    now = 100.0
    inbox = SignalInbox([Channel()], 5.0, lambda: now)
    assert inbox.seconds_left == 0.0, "never polled"
    inbox.poll()
    assert inbox.seconds_left == 5.0
    now += 4.5
    assert inbox.poll() is None and inbox.seconds_left == 0.5
    now += 1.0
    assert inbox.seconds_left == 0.0
