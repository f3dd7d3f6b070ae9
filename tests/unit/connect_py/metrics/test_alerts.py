"""The alerts of docs/monitoring, as Prometheus evaluates them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.paths import ROOT

MONITORING = ROOT / "docs" / "monitoring"


def test_every_alert_says_how_bad_it_is_and_where_to_read_on() -> None:
    rules = [rule for group in yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
    page = (ROOT / "docs" / "metrics.md").read_text()
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning"), rule["alert"]
        path, _, heading = rule["annotations"]["runbook_url"].partition("#")
        assert path == "docs/troubleshooting.md"
        assert heading in {line.strip("# ").lower().replace(" ", "-") for line in (ROOT / path).read_text().splitlines() if line[:1] == "#"}
        assert f"`{rule['alert']}`" in page


def test_every_alert_is_seen_to_fire() -> None:
    rules = [rule["alert"] for group in yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
    tested = (MONITORING / "alerts_test.yml").read_text()
    assert [name for name in rules if f'alertname="{name}"' not in tested] == []


def test_alerts_fire_for_connectors_that_are_down_and_only_for_these() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("NO ALERT WAS TESTED: promtool is missing (apt-get install prometheus)")
    done = subprocess.run([promtool, "test", "rules", str(Path("alerts_test.yml"))], cwd=MONITORING, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
