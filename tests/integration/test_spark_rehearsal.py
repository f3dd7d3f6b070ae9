"""A sink's work on tables that nobody sees (`spark_sink.rehearsal`): it is the whole work, and needs no broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

from spark_sink.rehearsal import rehearse

pytestmark = [pytest.mark.services, pytest.mark.spark, pytest.mark.long]


def test_each_kind_of_table_gets_every_batch_and_is_tidied_up(held_spark: Any, tmp_path: Path) -> None:
    rehearse(held_spark, tmp_path)
    iceberg = StaticTable.from_metadata(str(tmp_path / "0" / "public" / "t"))
    directly, by_statements = (DeltaTable(str(tmp_path / str(number) / "public" / "t")) for number in (1, 2))
    rows = [sorted(row["id"] for row in iceberg.scan().to_arrow().to_pylist())]
    for table in (directly, by_statements):
        operations = [commit["operation"] for commit in table.history()]
        assert operations.count("MERGE") == 3
        assert "OPTIMIZE" in operations
        found = pyarrow.table(QueryBuilder().register("t", table).execute("SELECT id FROM t").read_all())
        rows.append(sorted(found["id"].to_pylist()))
    assert rows[0] == rows[1] == rows[2]
    assert len(rows[0]) > 1_000
