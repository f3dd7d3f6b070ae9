"""How panels of dashboards are counted, and that ours links to where it should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.dashboards import count, has_data, panels, selectors, series_of
from tests.paths import ROOT

SERIES = series_of(
    '# TYPE a gauge\na{connector="x",status="running"} 1\n# TYPE b_total counter\nb_total{connector="x"} 1\n# TYPE c gauge\nc 1\n'
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("c", True),
        ('sum(a{job="j",env="$env",connector=~"$connector"}) by (status)', True),
        ('a{status="failed"}', False),
        ('a{status=~"run.*",connector!=""}', True),
        ('a{status!~"run.*"}', False),
        ('rate(b_total{instance=~"$i"}[5m])', True),
        ('sum(a{} * on(connector) group_left(status) b_total{connector="y"}) by (connector)', False),
        ("sum(a * on (connector) group_left(status) b_total) >= 0", True),
        ('label_replace(a, "c", "{$1}", "connector", "(.*)")', True),
        ("a / missing", False),
    ],
)
def test_a_query_has_data_if_each_of_its_selectors_has(query: str, expected: bool) -> None:
    assert has_data(query, SERIES) is expected


def test_variables_and_labels_of_prometheus_match_everything() -> None:
    assert selectors('a{job="j",connector="$c",status="running"}') == [("a", [("status", "=", "running")])]


def test_panels_in_rows_count_and_those_of_the_jvm_do_not(tmp_path: Path) -> None:
    def panel(title: str, *queries: str) -> dict[str, object]:
        return {"title": title, "targets": [{"expr": query} for query in queries]}

    file = tmp_path / "dashboard.json"
    row = {"type": "row", "panels": [panel("two", "missing", "c"), panel("memory", "jvm_memory_used_bytes")]}
    file.write_text(json.dumps({"panels": [panel("one", "missing"), row, {"type": "text"}], "rows": [{"panels": [panel("three", "a")]}]}))
    found = count(file, SERIES)
    assert (found.total, found.of_the_jvm, found.filled) == (4, 1, 2)
    assert [each.title for each in found.empty] == ["one"]


def test_panels_of_ours_stand_in_rows_and_show_the_slot_of_a_connector_that_is_down() -> None:
    ours = json.loads((ROOT / "docs" / "monitoring" / "grafana-dashboard.json").read_text())
    places = [(each["gridPos"]["y"], each["gridPos"]["x"]) for each in ours["panels"]]
    assert places == sorted(set(places)) and ours["panels"][0]["type"] == "row"
    assert len({each["id"] for each in ours["panels"]}) == len(places)
    queries = [query for each in panels(ours) for query in each.queries]
    assert any("connect_py_postgres_slot_retained_bytes" in query for query in queries)
    assert not [query for query in queries if "unconfirmed" in query], "only a task that runs has it"
    assert [each["url"] for each in ours["links"]] == ["${worker}/ui/"]
