"""What the doctor finds on a sink's machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_sink.doctor.diagnose import Facts, findings, read_facts

WELL = Facts(None, (Path("/cache"), True), (Path("/tmp"), 10 << 30), None)


def test_each_fault_of_the_machine_has_its_finding() -> None:
    assert list(findings(WELL)) == []
    ill = Facts("No Java was found.", (Path("/cache"), False), (Path("/full"), 5 << 20), (Path("/warehouse"), "/ is no folder"))
    assert [finding.check for finding in findings(ill)] == ["sink.java", "sink.jars", "sink.disk", "sink.warehouse"]
    assert "5 MB are free in /full" in list(findings(ill))[2].what
    more = replace(WELL, missing_jars=("/no.jar",), renames_in_s3=True)
    assert [finding.check for finding in findings(more)] == ["sink.jars.missing", "sink.catalog.hadoop"]


def test_the_facts_are_those_of_the_configurations_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECT_PY_CACHE", str(tmp_path / "cache"))
    config = {
        "name": "n",
        "topics": "t",
        "lakehouse.catalog.type": "hadoop",
        "lakehouse.catalog.warehouse": f"file://{tmp_path}/lake/house",
    }
    facts = read_facts(config)
    assert facts.jars is not None and facts.jars[0].is_relative_to(tmp_path / "cache") and not facts.jars[1]
    assert facts.tables == (tmp_path / "lake/house", "")
    s3 = read_facts(config | {"lakehouse.catalog.warehouse": "s3a://bucket/lake"})
    assert s3.tables is None and s3.renames_in_s3
    monkeypatch.setenv("CONNECT_PY_SPARK_SETTINGS", "spark.jars")
    assert read_facts(config | {"lakehouse.spark.jars": f"{tmp_path}/a.jar,{__file__}"}).missing_jars == (f"{tmp_path}/a.jar",)


def test_a_folder_of_tables_that_cannot_be_made_is_found_in_either_format(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = f"{tmp_path}/file/lake"
    for config in (
        {"lakehouse.format": "delta", "lakehouse.delta.root": folder},
        {"lakehouse.format": "delta", "lakehouse.delta.root": f"file://{folder}"},
        {"lakehouse.catalog.type": "hadoop", "lakehouse.catalog.warehouse": folder},
        {"lakehouse.catalog.catalog-impl": "org.apache.iceberg.hadoop.HadoopCatalog", "lakehouse.catalog.warehouse": folder},
    ):
        (finding,) = [each for each in findings(read_facts({"topics": "t", **config})) if each.check == "sink.warehouse"]
        assert finding.what == f"The tables cannot be in {folder}: {tmp_path}/file is no folder."


def test_folders_of_other_machines_are_not_looked_for_here(tmp_path: Path) -> None:
    config = {"topics": "t", "lakehouse.format": "delta", "lakehouse.delta.root": str(tmp_path)}
    assert read_facts(config).tables == (tmp_path, "")
    for elsewhere in ({"lakehouse.spark.remote": "sc://spark:15002"}, {"lakehouse.hadoop.fs.defaultFS": "hdfs://name:8020"}):
        assert read_facts(config | elsewhere).tables is None
