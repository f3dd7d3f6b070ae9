"""The last commits of a lakehouse sink's tables, by its reports."""

from connect_py.api import MetricGroup
from connect_py.metrics.commits import TableCommits
from connect_py.metrics.worker import WorkerMetrics


def report(commits, records, seconds, at, table="s.t"):
    values = {
        "commits-total": commits,
        "records-applied-total": records,
        "apply-seconds-total": seconds,
        "last-commit-timestamp-seconds": at,
    }
    by_operation = MetricGroup("connect.py", "lakehouse-table", {"table": table, "op": "c"}, {"records-applied-by-op-total": records})
    return [MetricGroup("connect.py", "lakehouse-table", {"table": table}, values), by_operation]


def test_each_report_with_another_commit_is_an_entry():
    commits = TableCommits()
    for values in ((0, 0, 0.0, 0.0), (1, 100, 2.0, 10.0), (1, 100, 2.0, 10.0), (3, 250, 5.0, 14.0)):
        commits.note(report(*values))
    assert commits.shown() == {
        "s.t": [
            {"at": 10.0, "commits": 1, "records": 100, "seconds": 2.0},
            {"at": 14.0, "commits": 2, "records": 150, "seconds": 3.0},
        ]
    }


def test_a_process_that_starts_over_counts_from_zero_and_keeps_what_was():
    commits = TableCommits()
    for values in ((4, 400, 8.0, 10.0), (1, 30, 1.0, 20.0)):
        commits.note(report(*values))
    assert [entry["records"] for entry in commits.shown()["s.t"]] == [400, 30]


def past(*entries, table="s.t"):
    return [MetricGroup("connect.py.notes", "lakehouse-commit", {"table": table, "number": str(n)}, each) for n, each in enumerate(entries)]


def test_what_a_tables_own_history_says_counts_where_nothing_is_known():
    commits = TableCommits()
    told = past({"at": 9.0, "records": 5}, {"at": 8.0})
    for values in ((0, 0, 0.0, 0.0), (1, 100, 2.0, 20.0)):
        commits.note([*report(*values), *told])
    assert commits.shown() == {"s.t": [{"at": 8.0}, {"at": 9.0, "records": 5}, {"at": 20.0, "commits": 1, "records": 100, "seconds": 2.0}]}
    other = TableCommits()
    for groups in (report(1, 100, 2.0, 20.0), told):
        other.note(groups)
    assert [entry["at"] for entry in other.shown()["s.t"]] == [20.0]


def test_the_last_ten_are_shown():
    commits = TableCommits()
    for number in range(1, 101):
        commits.note(report(number, number, number, number))
    assert [entry["at"] for entry in commits.shown()["s.t"]] == list(range(91, 101))


def test_a_worker_keeps_them_by_connector_until_that_is_deleted():
    worker = WorkerMetrics()
    worker.task_launched(("c", 0))
    worker.task_reported(("c", 0), {"groups": [(g.domain, g.type, g.tags, g.values) for g in report(1, 5, 1.0, 10.0)]})
    worker.task_gone(("c", 0))
    assert worker.commits("c")["s.t"][0]["records"] == 5
    assert worker.commits("other") == {}
    worker.forget(["other"])
    assert worker.commits("c") == {}
