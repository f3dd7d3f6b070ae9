"""What a statement of the log is, and what a start reads in each snapshot mode."""

from __future__ import annotations

import pytest

from connect_py.errors import FatalTaskError
from connectors.engine.snapshot.modes import StoredPosition
from connectors.mysql.config.config import MODES, configuration_based
from connectors.mysql.ddl.statement_text import Kind, kind_of

NONE, UNFINISHED, STREAMING = StoredPosition.NONE, StoredPosition.UNFINISHED_SNAPSHOT, StoredPosition.STREAMING


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("BEGIN", Kind.BEGIN),
        ("COMMIT", Kind.COMMIT),
        ("ROLLBACK", Kind.COMMIT),
        ("SAVEPOINT `s1`", Kind.IGNORED),
        ("ROLLBACK TO `s1`", Kind.IGNORED),
        ("XA START X'78',X'',1", Kind.XA_BEGIN),
        ("XA END X'78',X'',1", Kind.IGNORED),
        ("XA COMMIT X'78',X'',1", Kind.XA_END),
        ("CREATE DEFINER=`root`@`localhost` PROCEDURE `p`()\nSELECT 1", Kind.IGNORED),
        ("create or replace algorithm=merge definer=`a`@`%` sql security invoker view v as select 1", Kind.IGNORED),
        ("ANALYZE TABLE t", Kind.IGNORED),
        ("OPTIMIZE NO_WRITE_TO_BINLOG TABLE t", Kind.IGNORED),
        ("GRANT SELECT ON *.* TO u", Kind.IGNORED),
        ("INSERT INTO t VALUES (1)", Kind.ROWS),
        ("SET STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD v INT", Kind.DDL),
        ("CREATE TABLE views (id INT)", Kind.DDL),
        ("DROP TABLE trigger_log", Kind.DDL),
        ("TRUNCATE TABLE t", Kind.DDL),
        ("ALTER DATABASE d CHARACTER SET utf8mb4", Kind.DDL),
        ("FLUSH PRIVILEGES", Kind.IGNORED),
        ("flush relay logs for channel 'c'", Kind.IGNORED),
        ("flush privileges", Kind.DDL),
        ("FLUSH STATUS", Kind.DDL),
    ],
)
def test_a_statement_is_what_its_beginning_says(sql: str, kind: Kind) -> None:
    assert kind_of(sql) is kind


@pytest.mark.parametrize(
    ("mode", "data", "schema"),
    [
        ("always", {NONE, UNFINISHED, STREAMING}, {NONE, UNFINISHED, STREAMING}),
        ("initial", {NONE, UNFINISHED}, {NONE, UNFINISHED}),
        ("initial_only", {NONE, UNFINISHED}, {NONE, UNFINISHED}),
        ("when_needed", {NONE, UNFINISHED}, {NONE, UNFINISHED}),
        ("no_data", set(), {NONE, UNFINISHED}),
        ("recovery", set(), {NONE, UNFINISHED, STREAMING}),
    ],
)
def test_a_mode_reads_rows_and_structures_when_the_stored_position_asks_for_it(
    mode: str, data: set[StoredPosition], schema: set[StoredPosition]
) -> None:
    assert {stored for stored in StoredPosition if MODES[mode].reads_data(stored)} == data
    assert {stored for stored in StoredPosition if MODES[mode].reads_schema(stored)} == schema


def test_a_configuration_that_reads_nothing_refuses_an_unfinished_snapshot() -> None:
    mode = configuration_based({"snapshot.mode.configuration.based.start.stream": "true"})
    assert mode.streams and not mode.reads_schema(NONE) and not mode.reads_schema(STREAMING)
    with pytest.raises(FatalTaskError, match="configured to never allow snapshots"):
        mode.reads_schema(UNFINISHED)
