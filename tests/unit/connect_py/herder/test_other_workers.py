"""What the page shows of the tasks that other workers run: who is asked and believed, and how their answers become one."""

import json
import threading
import time

import pytest

from connect_py.errors import BadRequestError
from connect_py.group.peers import Answer, UnsentError
from connect_py.herder.other_workers import merged_connector, merged_entry, merged_history, read_question
from connect_py.herder.session_key import InternalSignature, SessionKeySettings, check, new_key
from tests.canary import within
from tests.unit.connect_py.herder.test_page import WORKER, Site

SETTINGS = SessionKeySettings()
KEY = new_key(SETTINGS)
OTHER = "other:8083"


class Network:
    """Other workers by their ids: sites that answer, or what they do instead."""

    def __init__(self):
        self.workers = {}
        self.asked = []
        self.answers = []
        self.headers = []

    def send(self, method, url, body, headers, seconds):
        assert (method, url.partition("/ui/")[2]) == ("POST", "api/group")
        worker = url.removeprefix("http://").partition("/")[0]
        self.asked.append((worker, *json.loads(body)["ask"]))
        self.headers.append(dict(headers))
        there = self.workers[worker]
        if isinstance(there, Exception):
            raise there
        if isinstance(there, Answer):
            return there
        if callable(there):
            there()
            raise UnsentError("connection refused")
        signature = InternalSignature.of_headers(headers["X-Connect-Request-Signature-Algorithm"], headers["X-Connect-Authorization"], body)
        check(signature, there.configs.snapshot().session_key, SETTINGS)
        self.answers.append(there.page.answer(body))
        return Answer(200, "application/json", json.dumps(self.answers[-1]).encode())


@pytest.fixture
def network():
    return Network()


@pytest.fixture
def site(network):
    made = new_site(network)
    yield made
    made.others.close()


def new_site(network, worker=WORKER):
    made = Site(worker)
    made.applier.peers = network
    made.configs.put_session_key(KEY, "HmacSHA256", int(time.time() * 1000))
    return made


def other_of(site, network, name="far", **entry):
    """A worker that runs a task of a connector, of which the site knows the states."""
    other = new_site(network, OTHER)
    other.add(name, worker=OTHER, **entry)
    site.add(name, worker=OTHER, here=False)
    network.workers[OTHER] = other
    other.report(name, 10)
    other.applier.metrics.task_reported((name, 0), {"groups": []})
    other.others.close()
    return other


def test_a_list_has_the_figures_of_other_workers(site, network):
    site.add("near")
    other_of(site, network)
    entry = site.state()["connectors"]["far"]
    theirs = network.answers[-1]["far"]  # asked for once more, it may have another rate
    assert not entry["here"]
    assert {name: entry[name] for name in ("verdict", "reason", "behind", "rate")} == {
        name: theirs[name] for name in ("verdict", "reason", "behind", "rate")
    }
    assert site.state()["connectors"]["near"]["here"]
    assert {question[1] for question in network.asked} == {"list"}


def test_one_connector_has_the_tasks_histories_and_lines_of_other_workers(site, network):
    other = other_of(site, network)
    site.applier.recent_lines.keeper("far", 0, len)("before the task moved")
    other.applier.recent_lines.keeper("far", 0, len)("one")
    detail = site.page.connector("far")
    assert detail["silent"] == []
    assert detail["task_list"][0]["here"]
    assert detail["source"] == json.loads(json.dumps(other.page.connector("far")["source"]))
    assert list(site.page.history("far", 600)["tasks"]) == ["0"]
    answer = site.page.log("far", "0")
    assert [line[2] for line in answer["lines"]] == ["before the task moved", "one"]
    other.applier.recent_lines.keeper("far", 0, len)("two")
    again = site.page.log("far", answer["next"])
    assert [line[2] for line in again["lines"]] == ["two"]
    assert site.page.log("far", again["next"])["lines"] == []
    with pytest.raises(BadRequestError, match="since is a number"):
        site.page.log("far", "yesterday")


def test_more_is_logged_where_the_tasks_run_and_their_states_are_told(site, network):
    other = other_of(site, network)
    site.page.log_more("far", 600)
    until = other.applier.logs_more_until("far")
    assert until is not None
    detail = site.page.connector("far")
    assert detail["debug_until"] == pytest.approx(until, abs=5)
    assert [event["state"] for event in detail["task_list"][0]["events"]] == ["RUNNING"]
    site.page.log_more("far", 0)
    assert other.applier.logs_more_until("far") is None
    assert site.page.connector("far")["debug_until"] is None


def test_no_password_and_no_cookie_goes_to_another_worker(site, network):
    other_of(site, network)
    site.state()
    assert {*network.headers[0]} == {"Content-Type", "Accept", "X-Connect-Authorization", "X-Connect-Request-Signature-Algorithm"}


@pytest.mark.parametrize(
    "instead",
    [UnsentError("connection refused"), Answer(404, None, b"{}"), Answer(503, None, b""), Answer(200, None, b"no JSON")],
    ids=["refused", "java", "starting", "garbled"],
)
def test_a_worker_that_does_not_answer_is_named_and_left_alone_for_a_while(site, network, instead):
    other = other_of(site, network)
    network.workers[OTHER] = instead
    assert site.page.connector("far")["silent"] == [OTHER]
    assert site.state()["connectors"]["far"]["reason"] == f"its figures are on worker {OTHER}"
    assert site.page.log("far", "0")["lines"] == []
    assert len(network.asked) == 1
    network.workers[OTHER] = other
    site.now += 100
    assert site.page.connector("far")["silent"] == []


def test_a_worker_that_hangs_holds_up_the_first_list_only_for_a_moment(site, network):
    site.add("near")
    other_of(site, network)
    ends = threading.Event()
    network.workers[OTHER] = lambda: ends.wait(20)
    with within(3, "a list waits for a second"):
        assert site.state()["connectors"]["near"]["here"]
    ends.set()


def test_a_second_page_asks_nobody_and_a_worker_that_is_gone_is_forgotten(site, network):
    other_of(site, network)
    assert site.state()["connectors"]["far"]["reason"] != f"its figures are on worker {OTHER}"
    site.page.state(None)
    assert network.asked == [(OTHER, "list")]
    site.add("far", worker="third:8083", here=False)
    assert site.others.ids() == ["third:8083"]
    network.workers["third:8083"] = UnsentError("connection refused")
    assert site.state()["connectors"]["far"]["reason"] == "its figures are on worker third:8083"
    assert site.others.lists() == {}


def test_a_closed_one_asks_nobody(site, network):
    other_of(site, network)
    site.others.close()
    assert site.page.connector("far")["silent"] == [OTHER]
    assert not site.state()["connectors"]["far"]["here"]
    assert network.asked == []


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({}, "must be a question"),
        ([], "must be a question"),
        ({"to": "w:1", "at": 0, "ask": ["list"]}, "is for the worker w:1"),
        ({"to": WORKER, "at": 0, "ask": ["list"]}, "of another time"),
        ({"to": WORKER, "at": "now", "ask": ["list"]}, "of another time"),
        ({"to": WORKER, "at": 1_000_000, "ask": "list"}, "must be a question"),
        ({"to": WORKER, "at": 1_000_000, "ask": []}, "must be a question"),
        ({"to": WORKER, "at": 1_000_000, "ask": [None]}, "must be a question"),
    ],
)
def test_a_question_for_somebody_else_or_of_another_day_is_refused(asked, problem):
    with pytest.raises(BadRequestError, match=problem):
        read_question(json.dumps(asked).encode(), WORKER, 1_000_500)


def test_a_question_of_a_newer_version_is_refused_and_one_about_nothing_has_no_answer(site):
    def ask(*question):
        return site.page.answer(json.dumps({"to": WORKER, "at": int(time.time() * 1000), "ask": question}).encode())

    assert ask("connector", "none") is None
    assert ask("list") == {}
    assert ask("log", "none", 0) == []
    with pytest.raises(BadRequestError, match="older version"):
        ask("figures")


ENTRY = {
    "state": "RUNNING", "worker": WORKER, "here": True, "verdict": "running", "reason": "", "rate": None, "behind": None, "snapshot": None,
    "trend": [], "tasks_here": 1,
}  # fmt: skip


def test_tasks_of_several_workers_are_added_up_and_the_one_furthest_behind_counts():
    own = {**ENTRY, "rate": 10.5, "trend": [1.0, 2.0], "behind": {"seconds": 2.0, "records": 5}}
    one = {**ENTRY, "rate": 1.5, "trend": [10.0, 20.0], "behind": {"seconds": 9.0}, "verdict": "behind", "reason": "9 s behind"}
    two = {**ENTRY, "snapshot": {"rows": 7}}
    merged = merged_entry(own, {"b": one, "c": two})
    assert merged == {
        **own,
        "rate": 12.0,
        "trend": [11.0, 22.0],
        "behind": {"seconds": 9.0, "records": 5},
        "snapshot": {"rows": 7},
        "verdict": "behind",
        "reason": "9 s behind",
    }
    assert merged_entry(own, {}) is own


def entry(verdict, tasks=1, **more):
    return {**ENTRY, "verdict": verdict, "reason": f"{verdict}, it says", "tasks_here": tasks, **more}


@pytest.mark.parametrize(
    ("own", "others", "verdict"),
    [
        (entry("paused"), [entry("streaming")], "paused"),
        (entry("failed"), [entry("running")], "failed"),
        (entry("running", 0, here=False), [entry("streaming")], "streaming"),
        (entry("behind", 0), [entry("snapshotting")], "snapshotting"),  # who runs the task knows
        (entry("idle"), [entry("behind", 0)], "idle"),
        (entry("streaming", 0), [entry("unknown")], "streaming"),  # who asked the database knows more than who knows nothing
        (entry("unknown", 0), [entry("unknown")], "unknown"),
        (entry("running"), [entry("running"), entry("behind")], "behind"),  # one of a sink's tasks
    ],
)
def test_the_verdict_is_that_of_who_knows_most(own, others, verdict):
    merged = merged_entry(own, {str(number): other for number, other in enumerate(others)})
    assert (merged["verdict"], merged["reason"]) == (verdict, f"{verdict}, it says")


def test_a_list_that_is_a_second_old_does_not_say_what_states_say():
    away = {**ENTRY, "here": False, "tasks_here": 0, "reason": "its figures are on worker b"}
    merged = merged_entry(away, {"b": entry("starting")})
    assert (merged["verdict"], merged["reason"]) == ("running", "")


def test_tables_of_all_tasks_are_shown():
    def detail(table, here):
        task = {"task": 0, "here": here, "latest": {"cpu": 1} if here else {}, "errors": {}}
        return {
            **ENTRY,
            "here": here,
            "task_list": [task],
            "source": {"facts": {"log": 1} if here else {}},
            "snapshots": {},
            "sink": {},
            "tables": [table] if here else [],
        }

    merged = merged_connector(detail("none", False), {"b": detail("t", True)})
    assert merged["tables"] == ["t"]
    assert merged["source"] == {"facts": {"log": 1}}
    assert merged["task_list"] == [{"task": 0, "here": True, "latest": {"cpu": 1}, "errors": {}}]


def test_the_series_of_a_task_that_moved_are_one():
    def history(start, values, began=5):
        return {"tasks": {"0": {"start": start, "step": 2, "series": {"cpu": values}}}, "began": began}

    merged = merged_history(history(100, [1.0, 2.0, None, None]), {"b": history(102, [None, 3.0, 4.0, 5.0], began=3)})
    assert merged == {"tasks": {"0": {"start": 100, "step": 2, "series": {"cpu": [1.0, 2.0, 3.0, 4.0]}}}, "began": 3}
    assert merged_history({"tasks": {}, "began": 9}, {"b": history(102, [1.0], began=3)})["began"] == 3
    assert merged_history({"tasks": {}, "began": 9}, {}) == {"tasks": {}, "began": 9}
