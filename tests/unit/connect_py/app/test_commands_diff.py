"""What `apply` and `diff` would do, which connectors a name or glob means, and when a change has settled: rules without a worker."""

from __future__ import annotations

from typing import Any

import pytest

from connect_py.api.storage import TargetState
from connect_py.app.client.diff import Action, plan, plan_for, select
from connect_py.app.client.files import ConnectorFile
from connect_py.app.client.watch import Watch, snapshot_text, state_text, tasks_text
from connect_py.errors import NotFoundError


def wanted(name: str = "a", state: TargetState | None = None, keeps_state: bool = False, **config: str) -> ConnectorFile:
    return ConnectorFile(name, {**{key.replace("_", "."): value for key, value in config.items()}, "name": name}, state, keeps_state)


def current(state: str = "RUNNING", **config: str | None) -> dict[str, Any]:
    properties = {key.replace("_", "."): value for key, value in config.items()}
    return {"info": {"config": {**properties, "name": "a"}}, "status": status(state)}


def status(state: str = "RUNNING", *tasks: str, trace: str = "boom") -> dict[str, Any]:
    def part(state: str) -> dict[str, Any]:
        return {"state": state, "worker_id": "w:1", **({"trace": trace} if state == "FAILED" else {})}

    return {"connector": part(state), "tasks": [{"id": number, **part(each)} for number, each in enumerate(tasks)]}


def lines(found: Any) -> list[str]:
    return [line.strip() for line in found.lines]


def test_what_is_equal_has_nothing_to_be_done() -> None:
    found = plan_for(wanted(x="1"), current(x="1", gone=None))
    assert (found.action, found.changes) == (Action.NONE, ())


def test_added_changed_and_removed_properties_are_told_apart() -> None:
    found = plan_for(wanted(x="2", new="n"), current(x="1", old="o"))
    assert found.action is Action.CHANGE
    assert lines(found) == ["~ a: change", "+ new: n", "- old: o", "~ x: 1 → 2"]


def test_secrets_are_never_shown() -> None:
    found = plan_for(wanted(database_password="new", url="http://u:pw@h"), current(database_password="old"))
    assert lines(found) == ["~ a: change", "~ database.password: [hidden] → [hidden]", "+ url: http://u:[hidden]@h"]
    assert "new" not in str(found.as_json())


def test_a_value_that_the_worker_hides_is_no_difference_and_counted() -> None:
    found = plan_for(wanted(database_password="new"), current(database_password="[hidden]"))
    assert (found.action, found.hidden) == (Action.NONE, 1)
    assert lines(found) == ["= a: unchanged, 1 hidden by the worker and not compared"]
    found = plan_for(wanted(), current(database_password="[hidden]"))
    assert lines(found) == ["~ a: change", "- database.password: [hidden]"], "it is to go, which can be known"


def test_only_strimzis_state_is_wanted_for_good() -> None:
    paused = TargetState.PAUSED
    assert plan_for(wanted(state=paused), current("RUNNING")).action is Action.NONE
    found = plan_for(wanted(state=paused, keeps_state=True), current("RUNNING"))
    assert (found.new_state, found.changes_config, lines(found)[1]) == (paused, False, "~ (state): RUNNING → PAUSED")
    assert plan_for(wanted(state=TargetState.STARTED, keeps_state=True), current("FAILED")).action is Action.NONE
    assert plan_for(wanted(state=TargetState.STARTED, keeps_state=True), current("STOPPED")).new_state is TargetState.STARTED


def test_prune_deletes_what_no_file_holds_and_comes_last() -> None:
    have = {"a": current(), "b": current(), "z": current()}
    assert [(each.name, each.action) for each in plan([wanted("new"), wanted("a")], have)] == [("new", "create"), ("a", "unchanged")]
    pruned = plan([wanted("new"), wanted("a")], have, prune=True)
    assert [(each.name, each.action) for each in pruned[2:]] == [("b", "delete"), ("z", "delete")]


NAMES = ["shop-orders", "shop-users", "lake", "odd[1]"]


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["lake"], ["lake"]),
        (["shop-*"], ["shop-orders", "shop-users"]),
        (["*"], ["lake", "odd[1]", "shop-orders", "shop-users"]),
        (["odd[1]"], ["odd[1]"]),
        (["lake", "l?ke", "shop-o*"], ["lake", "shop-orders"]),
    ],
)
def test_names_and_globs_select_connectors(patterns: list[str], found: list[str]) -> None:
    assert select(NAMES, patterns) == found


@pytest.mark.parametrize(
    ("pattern", "says"),
    [("shop-order", "no connector shop-order. Did you mean shop-orders?"), ("x*", "No connector fits x*"), ("SHOP-*", "No connector fits")],
)
def test_what_fits_no_connector_is_refused(pattern: str, says: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        select(NAMES, ["lake", pattern])
    assert says in str(caught.value)


# -- waiting -------------------------------------------------------------------------------------------------------------------------


def test_a_connector_has_settled_when_all_of_it_has_run_for_a_while() -> None:
    watch = Watch()
    assert watch.look(None, 0) == (False, "")
    assert watch.look(status("RUNNING"), 1) == (False, "")
    assert watch.look(status("RUNNING", "UNASSIGNED"), 4.5) == (False, "")
    assert watch.look(status("RUNNING", "RUNNING"), 5) == (False, "")
    assert watch.look(status("RUNNING", "RUNNING"), 7.9) == (False, "")
    assert watch.look(status("RUNNING", "RUNNING"), 8) == (True, "")


def test_a_new_failure_counts_at_once_and_an_old_one_when_it_stays() -> None:
    failed = status("RUNNING", "FAILED", trace="old")
    watch = Watch({"task 0": "old"})
    assert watch.look(failed, 0) == (False, ""), "the status may be from before the change"
    assert watch.look(status("RUNNING", "FAILED", trace="new"), 1) == (True, "task 0: new")
    again = Watch({"task 0": "old"})
    assert [again.look(failed, second) for second in (0, 14.9, 15)] == [(False, ""), (False, ""), (True, "task 0: old")]
    twice = Watch({"task 0": "old"})
    states = (failed, status("RUNNING", "RESTARTING"), failed)
    assert [twice.look(each, second) for second, each in enumerate(states)] == [(False, ""), (False, ""), (True, "task 0: old")]
    mended = Watch({"task 0": "old"})
    seen = [
        mended.look(each, second) for each, second in ((failed, 0), (status("RUNNING", "RUNNING"), 1), (status("RUNNING", "RUNNING"), 4))
    ]
    assert seen == [(False, ""), (False, ""), (True, "")]


def test_a_stop_has_settled_when_there_are_no_tasks() -> None:
    watch = Watch(state="STOPPED", settle_seconds=0)
    assert watch.look(status("RUNNING", "RUNNING"), 1) == (False, "")
    assert watch.look(status("STOPPED", "RUNNING"), 2) == (False, "")
    assert watch.look(status("STOPPED"), 3) == (True, "")


def test_a_connector_that_was_created_paused_has_no_tasks_yet() -> None:
    assert Watch(state="PAUSED", settle_seconds=0).look(status("PAUSED"), 1) == (True, "")
    assert Watch(state="PAUSED", settle_seconds=0).look(status("PAUSED", "RUNNING"), 1) == (False, "")
    assert Watch(settle_seconds=0).look(status("RUNNING"), 1) == (False, "")


@pytest.mark.parametrize(
    ("found", "state", "tasks"),
    [
        (status("RUNNING", "RUNNING", "RUNNING"), "RUNNING", "2/2"),
        (status("RUNNING", "RUNNING", "FAILED"), "FAILED", "1/2"),
        (status("RUNNING", "UNASSIGNED"), "UNASSIGNED", "0/1"),
        (status("STOPPED"), "STOPPED", "-"),
        (status("FAILED"), "FAILED", "-"),
    ],
)
def test_a_connectors_state_is_one_word(found: dict[str, Any], state: str, tasks: str) -> None:
    assert (state_text(found), tasks_text(found)) == (state, tasks)


def test_a_snapshot_under_way_is_told_in_rows() -> None:
    tables = [{"table": "a", "state": "RUNNING", "rows": 5, "seconds_left": 7}, {"table": "b", "state": "PENDING", "rows": 0}]
    assert snapshot_text({"snapshot": {"state": "RUNNING", "rows": 1500, "estimated_rows": 6000, "tables": tables}}) == (
        "snapshot 1,500 rows, 25 %, 7 s left"
    )
    assert snapshot_text({"snapshot": {"state": "RUNNING", "rows": 3, "tables": []}}) == "snapshot 3 rows"
    assert snapshot_text({"snapshot": {"state": "COMPLETED", "rows": 3, "tables": []}}) == ""
    assert snapshot_text({}) == ""
