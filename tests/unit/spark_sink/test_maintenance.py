"""Compaction that a client asks for: which tables, in which order, and what is told of it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from connect_py.errors import ConfigError, FatalTaskError, RetriableError
from spark_sink.config.sink_config import parse
from spark_sink.figures import SinkFigures
from spark_sink.maintenance import Maintenance
from spark_sink.routing import TableName
from spark_sink.spark.lanes import Aside, OwnThreadLane
from spark_sink.tables.base import Compaction, Extent, Tables
from tests.unit.spark_sink.test_lanes import ThreadLane
from tests.waiting import eventually

BASE = {"topics": "t", "lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": "/w"}
A, B, C = TableName(("public", "a")), TableName(("public", "b")), TableName(("other", "c"))


class Kept:
    """Tables of so many files; compaction leaves one.

    Attributes:
        writing: what a compaction that is not done at once does before its commit; None if all are.
    """

    def __init__(self) -> None:
        self.files = {A: 7, B: 5}
        self.compacted: list[TableName] = []
        self.cleaned: list[tuple[TableName, bool]] = []
        self.writing: Callable[[TableName], None] | None = None
        self.before: Callable[[TableName], None] = lambda table: None
        self.before_cleaning: Callable[[TableName], None] = lambda table: None

    def load(self, name: TableName) -> object | None:
        return self.files.get(name)

    def compact(self, name: TableName, policy: object, *, thoroughly: bool) -> Compaction | None:
        def commit() -> None:
            self.before(name)
            self.compacted.append(name)
            self.files[name] = 1

        if self.writing is None or thoroughly:
            return commit()
        return Compaction(functools.partial(self.writing, name), commit)

    def clean(self, name: TableName, policy: object, *, thoroughly: bool) -> None:
        self.before_cleaning(name)
        self.cleaned.append((name, thoroughly))

    def extent(self, name: TableName, target_file_size: int) -> Extent:
        return Extent(0, self.files[name], 1000 * self.files[name])

    def forget(self) -> None:
        pass


class Site:
    """Maintenance of three tables, of which one does not exist yet."""

    def __init__(self, has_looked: bool = True, /, **more: str) -> None:
        self.kept, self.notes, self.done = Kept(), list[Mapping[str, Any]](), list[str]()
        config = parse(BASE | {f"lakehouse.maintenance.{name}": value for name, value in more.items()})
        self.now = 0.0
        self.maintenance = Maintenance(config, "lake", self.notes.append, SinkFigures(), clock=lambda: self.now)
        self.aside = Aside(OwnThreadLane)
        if has_looked:
            self.look()

    def look(self) -> None:
        for table in (A, B, C):
            self.maintenance.reads(table)
        self.maintenance.has_looked()

    def ask(self, id_: str = "s", type_: str = "compact", **data: object) -> None:
        self.maintenance.take_signal({"id": id_, "type": type_, "data": data}, lambda: self.done.append(id_))

    def run(self) -> TableName | None:
        return self.maintenance.run(cast(Tables, self.kept), self.aside)

    def told(self) -> list[tuple[str, str, Any]]:
        return [(note["id"], note["type"], note["additional_data"].get("table")) for note in self.notes]


def test_all_tables_have_their_turn_one_between_two_batches_and_the_end_is_told() -> None:
    site = Site(enabled="false")
    site.ask()
    assert (site.run(), site.done) == (None, []), "the first by its name does not exist yet"
    assert (site.run(), site.done) == (A, [])
    assert (site.run(), site.done) == (B, ["s"])
    assert site.run() is None
    assert site.kept.compacted == [A, B]
    tables = [("s", "TABLE_SKIPPED", "other.c"), ("s", "TABLE_COMPLETED", "public.a"), ("s", "TABLE_COMPLETED", "public.b")]
    assert site.told() == [("s", "STARTED", None), *tables, ("s", "COMPLETED", None)]
    data = site.notes[2]["additional_data"]
    assert {name: data[name] for name in data if name != "seconds"} == {
        "connector_name": "lake",
        "table": "public.a",
        "files_before": "7",
        "bytes_before": "7000",
        "files_after": "1",
        "bytes_after": "1000",
    }
    assert {note["aggregate_type"] for note in site.notes} == {"Table Maintenance"}


def test_names_and_regexes_of_whole_names_choose_tables_and_requests_follow_each_other() -> None:
    site = Site()
    site.ask("first", tables=["public.b"])
    site.ask("second", tables=["public\\..*", "public.a"])
    assert [site.run() for _ in range(4)] == [B, A, B, None]
    assert site.done == ["first", "second"]


def test_what_is_asked_for_comes_before_the_schedule_and_is_not_a_turn_of_it() -> None:
    site = Site(**{"compact.every-commits": "1"})
    site.kept.files[B] = 9
    site.maintenance.committed(A)
    site.ask(tables=["public.b"])
    assert [site.run() for _ in range(3)] == [B, A, None]
    assert [note["type"] for note in site.notes] == ["STARTED", "TABLE_COMPLETED", "COMPLETED", "TABLE_COMPLETED"]


def test_a_failure_is_told_and_the_other_tables_have_their_turn() -> None:
    site = Site()

    def fail(table: TableName) -> None:
        if table == A:
            raise RetriableError("the bucket does not answer")

    site.kept.before = fail
    site.ask(tables=["public.a", "public.b"])
    assert [site.run(), site.run()] == [None, B]
    assert site.done == ["s"]
    assert "the bucket does not answer" in site.notes[1]["additional_data"]["error"]


def test_what_a_task_could_not_end_is_done_by_the_next_one() -> None:
    site = Site()

    def fail(table: TableName) -> None:
        raise FatalTaskError("a younger task writes the table")

    site.kept.before = fail
    site.ask(tables=["public.a"])
    with pytest.raises(FatalTaskError):
        site.run()
    assert site.done == [], "the worker gives the signal to the next task"


def test_a_clean_up_goes_on_next_to_batches_and_the_next_turn_waits_for_it() -> None:
    site = Site(**{"compact.every-commits": "1"})
    site.aside = Aside(ThreadLane)
    goes_on = threading.Event()

    def wait(table: TableName) -> None:
        assert goes_on.wait(60), "nobody lets the clean-up go on"

    site.kept.before_cleaning = wait
    site.maintenance.committed(A)
    assert site.run() == A
    site.ask(tables=["public.b"])
    assert [site.run(), site.run()] == [None, None]
    assert (site.kept.compacted, site.notes) == ([A], []), "one table at a time, and the first one's turn has not ended"
    goes_on.set()
    eventually(lambda: site.run() == B, "the next table's turn", 20)
    eventually(lambda: site.run() is None and site.done == ["s"], "its end", 20)
    assert site.kept.cleaned == [(A, False), (B, True)]


def test_what_a_compaction_writes_is_written_next_to_batches_and_committed_between_two() -> None:
    site = Site(**{"compact.every-commits": "1"})
    site.aside = Aside(ThreadLane)
    goes_on = threading.Event()

    def write(table: TableName) -> None:
        assert goes_on.wait(60), "nobody lets the writing go on"

    site.kept.writing = write
    site.maintenance.committed(A)
    assert [site.run(), site.run()] == [None, None]
    assert site.kept.compacted == []
    goes_on.set()
    eventually(lambda: site.run() == A, "the commit", 20)
    eventually(lambda: site.run() is None and site.notes, "the end of the clean-up", 20)
    assert (site.kept.cleaned, [note["type"] for note in site.notes]) == ([(A, False)], ["TABLE_COMPLETED"])


@pytest.mark.parametrize("part", ["the writing", "the commit"])
def test_a_compaction_that_fails_in_any_part_costs_nothing_but_the_turn(part: str) -> None:
    site = Site(**{"compact.every-commits": "1"})
    fails = [True]

    def fail(table: TableName) -> None:
        if fails:
            fails.clear()
            raise RetriableError("the bucket does not answer")

    site.kept.writing = fail if part == "the writing" else lambda table: None
    site.kept.before = fail if part == "the commit" else lambda table: None
    site.maintenance.committed(A)
    assert site.run() is None
    assert [(note["type"], note["additional_data"]["error"]) for note in site.notes] == [("TABLE_FAILED", "the bucket does not answer")]
    assert site.kept.cleaned == []
    site.maintenance.committed(A)
    assert site.run() == A


def test_turns_of_the_schedule_take_a_fifth_of_the_time_and_those_of_clients_none_of_it() -> None:
    site = Site(**{"compact.every-commits": "1"})

    def take(table: TableName) -> None:
        site.now += 3.0

    site.kept.before = take
    for table in (A, B):
        site.maintenance.committed(table)
    assert [site.run(), site.run()] == [A, None]
    site.ask(tables=["public.a"])
    assert site.run() == A
    site.now = 14.9
    assert site.run() is None
    site.now = 15.0
    assert site.run() == B


def test_a_turn_that_fails_takes_its_part_of_the_time_too() -> None:
    site = Site(**{"compact.every-commits": "1"})

    def take(table: TableName) -> None:
        site.now += 3.0
        if table == A:
            raise RetriableError("the bucket does not answer")

    site.kept.before = take
    for table in (A, B):
        site.maintenance.committed(table)
    assert [site.run(), site.run()] == [None, None]
    assert site.told()[0][1:] == ("TABLE_FAILED", "public.a")
    site.now = 14.9
    assert site.run() is None
    site.now = 15.0
    assert site.run() == B


def test_a_clean_up_that_fails_is_told_and_costs_nothing_but_the_turn() -> None:
    site = Site(**{"compact.every-commits": "1"})

    def fail(table: TableName) -> None:
        raise RetriableError("the bucket does not answer")

    site.kept.before_cleaning = fail
    site.maintenance.committed(A)
    assert site.run() == A, "its files are few now"
    assert [(note["type"], note["additional_data"]["error"]) for note in site.notes] == [("TABLE_FAILED", "the bucket does not answer")]


def test_files_that_nothing_references_are_looked_for_once_an_hour_but_not_at_once_or_when_a_client_asks() -> None:
    site = Site(**{"compact.every-commits": "1"})
    expected = []
    for now, thoroughly in ((0, False), (599, False), (600, True), (4199, False), (4200, True), (4201, False)):
        site.now = now
        site.maintenance.committed(A)
        assert site.run() == A
        expected.append((A, thoroughly))
    site.ask(tables=["public.a"])
    assert site.run() == A
    assert site.kept.cleaned == [*expected, (A, True)]


def test_a_request_that_means_no_table_by_now_is_done() -> None:
    site = Site(False)
    site.ask(tables=["nothing.*"])
    site.look()
    assert (site.run(), site.done) == (None, ["s"])


@pytest.mark.parametrize(
    ("type_", "data", "text"),
    [
        ("execute-snapshot", {}, "no signal of the type 'execute-snapshot' for this connector; it takes 'compact'"),
        ("compact", {"table": "public.a"}, "has no table; it takes tables"),
        ("compact", {"tables": []}, "must be a list of names"),
        ("compact", {"tables": "public.a"}, "must be a list of names"),
        ("compact", {"tables": [1]}, "must be a list of names"),
        ("compact", {"tables": ["public.a", "public.x"]}, "has no table public.x; nothing was compacted.* other.c, public.a, public.b"),
        ("compact", {"tables": ["public.("]}, "near index"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_can(type_: str, data: dict[str, object], text: str) -> None:
    site = Site()
    with pytest.raises(ConfigError, match=text):
        site.ask("s", type_, **data)
    assert site.run() is None
    assert site.notes == []


def test_a_task_that_is_just_starting_takes_a_signal_and_looks_for_the_tables_when_it_knows_them() -> None:
    site = Site(False)
    site.ask(tables=["public.b"])
    assert site.run() is None
    site.look()
    assert (site.run(), site.done) == (B, ["s"])
