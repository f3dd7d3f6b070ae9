"""Whatever a client can see of a scenario must be what Kafka Connect 4.3.1 with Debezium 3.6.1 showed (`golden/*.json`).

`parity.py` drives a worker through `scenarios/*.py`, records REST answers, topics and internal topics, and compares recordings point by
point. To hold one more scenario, add its name to SCENARIOS. By hand, against any worker:

    CONNECT_URL=http://127.0.0.1:8083 BOOTSTRAP=127.0.0.1:9092 CONFIG_TOPIC=… OFFSET_TOPIC=… STATUS_TOPIC=… \\
        python tests/parity/parity.py record --out recording pg_tutorial
    python tests/parity/parity.py compare tests/parity/golden recording pg_tutorial
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from connect_py.testing.services.mongo import MongoAddress
from connect_py.testing.services.mysql import MySqlAddress
from connect_py.testing.services.postgres import PostgresAddress
from connect_py.testing.services.worker import Worker
from tests.fix_kafka import Kafka

pytestmark = pytest.mark.services

HERE = Path(__file__).parent

SCENARIOS = [
    "rest_lifecycle",
    "rest_errors",
    "rest_offsets",
    "rest_edges",
    "rest_offset_edges",
    "rest_internal_topics",
    "rest_plugin_versions",
    "rest_plugins",
    "rest_validate_overrides",
    "rest_validate_common",
    "rest_validate_plugins",
    "rest_validate_postgres",
    "rest_validate_values_mysql",
    "rest_validate_values_postgres",
    "rest_validate_values_files",
    "rest_validate_values_transforms",
    "rest_validate_values_converters",
    "rest_sink_offsets",
    "rest_failed_tasks",
    "rest_loggers",
    "sink_converters",
    "file_source",
    "file_source_batches",
    "file_sink",
    "file_sink_lines",
    "sink_bad_record",
    "sink_task_failures",
    "sink_dead_letters",
    "sink_dead_letters_mixed",
    "sink_commits",
    "sink_overrides",
    "source_errors",
    "sink_topics_regex",
    "smt_fields",
    "smt_types",
    "smt_keys_headers_topics",
    "smt_predicates",
    "smt_converters",
    "smt_errors",
    "smt_topic_creation",
    "smt_unwrap_deletes",
    "smt_unwrap_headers",
    "smt_unwrap_route",
    "smt_logical_router",
    "smt_router_names",
    "smt_outbox",
    "smt_outbox_columns",
    "smt_changed_columns",
    "smt_time_zones",
    "smt_partitions",
    "smt_source_schema",
    "smt_messages",
    "smt_timescale",
    "smt_record_size",
    "smt_debezium_sink",
    "smt_debezium_errors",
    "pg_tutorial",
    "pg_errors",
    "pg_changes",
    "pg_restart",
    "pg_schema_change",
    "pg_reselect",
    "pg_unchanged",
    "pg_partitioned",
    "pg_key_types",
    "pg_names",
    "pg_snapshot_parts",
    "pg_messages",
    "pg_replica_identities",
    "pg_publications",
    "pg_excluded_keys",
    "pg_naming_strategies",
    "pg_offsets",
    "pg_converters",
    "pg_chains",
    "pg_types",
    "pg_types_connect",
    "pg_types_double",
    "pg_types_iso",
    "pg_types_nano",
    "pg_types_more",
    "pg_types_odd_arrays",
    "pg_toasted_types",
    "pg_toasted_types_text",
    "pg_propagate_types",
    "pg_column_rules",
    "pg_columns",
    "pg_mode_initial",
    "pg_mode_initial_only",
    "pg_mode_no_data",
    "pg_mode_when_needed",
    "pg_mode_always",
    "pg_mode_configuration_based",
    "pg_incremental_snapshot",
    "pg_signals",
    "pg_transactions",
    "pg_incremental_life",
    "pg_incremental_insert_delete",
    "pg_incremental_read_only",
    "pg_incremental_key_types",
    "pg_signals_odd",
    "pg_signals_pauses",
    "pg_blocking_snapshot",
    "pg_snapshot_markers",
    "pg_heartbeat_transactions",
    "mongo_tutorial",
    "mongo_types",
    "mongo_ids",
    "mongo_capture_modes",
    "mongo_filters",
    "mongo_fields",
    "mongo_incremental_snapshot",
    "mongo_incremental_kafka_signal",
    "mongo_pause_resume_snapshot",
    "mongo_stop_and_resume",
    "mongo_snapshot_modes",
    "mongo_transactions",
    "mongo_stream_options",
    "mongo_validation",
    "mongo_changes",
    "mongo_names",
    "mongo_lists",
    "mongo_signals",
    "mongo_blocking_snapshot",
    "mongo_snapshot_options",
    "mongo_extract_new_document_state",
    "mongo_sink",
    "mongo_sink_names",
    "mongo_heartbeats",
    "mongo_incremental_insert_delete",
    "mongo_scopes",
    "mongo_task_errors",
    "mysql_tutorial",
    "mysql_custom_converters",
    "mysql_config_errors",
    "mysql_types_numbers",
    "mysql_types_time",
    "mysql_types_text",
    "mysql_types_json_geometry",
    "mysql_zero_dates",
    "mysql_ddl",
    "mysql_keys",
    "mysql_columns",
    "mysql_query",
    "mysql_restart",
    "mysql_snapshot_modes",
    "mysql_lost_history",
    "mysql_limited_user",
    "mysql_transactions",
    "mysql_compressed_transactions",
    "mysql_time_modes",
    "mysql_current_time_defaults",
    "mysql_column_rules",
    "mysql_propagate_types",
    "mysql_names",
    "mysql_key_types",
    "mysql_topic_names",
    "mysql_snapshot_parts",
    "mysql_snapshot_markers",
    "mysql_excluded_keys",
    "mysql_changed_keys",
    "mysql_blocking_snapshot",
    "mysql_blocking_structures",
    "mysql_no_data_structures",
    "mysql_renamed_tables",
    "mysql_more_ddl",
    "mysql_unparseable",
    "mysql_type_spellings",
    "mysql_ddl_comments",
    "mysql_modes_of_values",
    "mysql_adjusted_years",
    "mysql_naming_strategies",
    "mysql_offsets",
    "mysql_converters",
    "mysql_chains",
    "mysql_incremental_snapshot",
    "mysql_incremental_read_only",
    "mysql_incremental_life",
    "mysql_incremental_insert_delete",
    "mysql_incremental_key_types",
    "mysql_signals_odd",
    "mysql_signals_pauses",
    "mysql_notifications",
    "mysql_heartbeats",
    "mysql_reselect",
    "mysql_early_years",
    "mysql_types_in_stream",
    "mysql_session_modes",
    "mysql_other_schemas",
    "mysql_altered_columns",
    "mysql_partitioned",
    "rest_states",
    "pg_edge_values",
    "pg_signal_channels",
    "mysql_made_from_others",
    "mysql_default_spellings",
    "pg_numeric_defaults",
    "mysql_zero_date_fallback",
    "mysql_default_moments",
    "mysql_charset_spellings",
    "mysql_comments_and_rules",
]
#: Held against a MariaDB server and `golden_mariadb`, recorded with Debezium 3.5.0, the last one that its archive has for MariaDB.
MARIADB_SCENARIOS = [
    "mysql_tutorial",
    "mysql_ddl",
    "mysql_restart",
    "mysql_lost_history",
    "mariadb_types",
    "mariadb_ddl",
    "mariadb_query",
]
#: Their tables have columns of extensions' types.
NEED_EXTENSIONS = ("pg_key_types", "pg_edge_values", "pg_types", "pg_toasted", "pg_propagate_types", "pg_column_rules")


def run_kit(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "parity.py"), *arguments]
    return subprocess.run(command, env={**os.environ, **env}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def give_reference_names(recording: Path, worker: Worker, kafka: Kafka, database: int, theirs: str) -> None:
    """The goldens hold the names and addresses of the servers they were recorded with: put these in place of ours."""
    text = recording.read_text()
    text = text.replace(f"{worker.group}-", "connect-")
    for port, reference in ((str(database), theirs), (kafka.bootstrap.rpartition(":")[2], "19092")):
        for form in ('"{}"', ":{}", "port {}"):
            text = text.replace(form.format(port), form.format(reference))
    recording.write_text(text)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_client_sees_what_the_reference_showed(
    scenario: str, worker: Worker, kafka: Kafka, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if scenario.startswith("mongo_"):
        mongo: MongoAddress = request.getfixturevalue("mongo")
        port, theirs = mongo.port, "37017"
        login = {"MONGO_URI": mongo.uri}
    elif scenario.startswith("mysql_"):
        mysql: MySqlAddress = request.getfixturevalue("mysql")
        port, theirs = mysql.port, "13306"
        login = {"MYSQL_HOST": mysql.host, "MYSQL_PORT": str(mysql.port)}
    else:
        server = "postgres_with_extensions" if scenario.startswith(NEED_EXTENSIONS) else "postgres"
        postgres: PostgresAddress = request.getfixturevalue(server)
        port, theirs = postgres.port, "15432"
        login = {"PG_HOST": postgres.host, "PG_PORT": str(port), "PG_USER": postgres.user, "PG_PASSWORD": postgres.password}
    topics = {f"{kind.upper()}_TOPIC": worker.topic(kind) for kind in ("config", "offset", "status")}
    record = run_kit("record", "--out", str(tmp_path), scenario, CONNECT_URL=worker.url, BOOTSTRAP=kafka.bootstrap, **topics, **login)
    assert record.returncode == 0, f"{record.stdout}\n\nThe end of the worker's log:\n{worker.service.log_tail(40)}"
    give_reference_names(tmp_path / f"{scenario}.json", worker, kafka, port, theirs)
    comparison = run_kit("compare", "--show", "20", str(HERE / "golden"), str(tmp_path), scenario)
    assert comparison.returncode == 0, comparison.stdout


@pytest.mark.parametrize("scenario", MARIADB_SCENARIOS)
def test_mariadb_gives_what_the_reference_showed(
    scenario: str, worker: Worker, kafka: Kafka, mariadb: MySqlAddress, tmp_path: Path
) -> None:
    server = {
        "MYSQL_HOST": mariadb.host,
        "MYSQL_PORT": str(mariadb.port),
        "MYSQL_CONNECTOR": "io.debezium.connector.mariadb.MariaDbConnector",
    }
    topics = {f"{kind.upper()}_TOPIC": worker.topic(kind) for kind in ("config", "offset", "status")}
    record = run_kit("record", "--out", str(tmp_path), scenario, CONNECT_URL=worker.url, BOOTSTRAP=kafka.bootstrap, **topics, **server)
    assert record.returncode == 0, f"{record.stdout}\n\nThe end of the worker's log:\n{worker.service.log_tail(40)}"
    give_reference_names(tmp_path / f"{scenario}.json", worker, kafka, mariadb.port, "18291")
    comparison = run_kit("compare", "--show", "20", str(HERE / "golden_mariadb"), str(tmp_path), scenario)
    assert comparison.returncode == 0, comparison.stdout
