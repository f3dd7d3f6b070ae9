"""Whatever a client can see of a scenario must be what Kafka Connect 4.3.1 with Debezium 3.6.1 showed (`golden/*.json`).

The scenarios of the selected tests run ahead of them, several at a time (`lane.py`); each test waits for its own. To hold one more
scenario, add its name to SCENARIOS and its golden to `golden/`. How to run one by hand, against any worker: README.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from connect_py.app.services.worker import Worker
from tests.fix_kafka import Kafka
from tests.parity.comparing import compare_recordings
from tests.parity.lane import Case, Lane
from tests.parity.servers import Servers

# what drivers warn of is no matter here; it would be an error in whichever scenario runs then
pytestmark = [pytest.mark.services, pytest.mark.filterwarnings("ignore")]

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


MARIADB = "io.debezium.connector.mariadb.MariaDbConnector"


def server_of(golden: str, scenario: str) -> str:
    """The fixture of the database server that a scenario needs."""
    if golden == "golden_mariadb":
        return "mariadb"
    if scenario.startswith(("mongo_", "mysql_")):
        return scenario.partition("_")[0]
    return "postgres_with_extensions" if scenario.startswith(NEED_EXTENSIONS) else "postgres"


def case_of(golden: str, scenario: str, worker: Worker, kafka: Kafka, address: Any) -> Case:
    """A scenario with the servers' addresses; the golden holds those of the servers it was recorded with."""
    kind = server_of(golden, scenario)
    env = {"CONNECT_URL": worker.url, "BOOTSTRAP": kafka.bootstrap}
    env |= {f"{each.upper()}_TOPIC": worker.topic(each) for each in ("config", "offset", "status")}
    if kind == "mongo":
        theirs, env["MONGO_URI"] = "37017", address.uri
    elif kind in ("mysql", "mariadb"):
        theirs = "13306" if kind == "mysql" else "18291"
        env |= {"MYSQL_HOST": address.host, "MYSQL_PORT": str(address.port)}
        env |= {"MYSQL_CONNECTOR": MARIADB} if kind == "mariadb" else {}
    else:
        theirs = "15432"
        env |= {"PG_HOST": address.host, "PG_PORT": str(address.port), "PG_USER": address.user, "PG_PASSWORD": address.password}
    names = {f"{worker.group}-": "connect-"}
    for ours, reference in ((str(address.port), theirs), (kafka.bootstrap.rpartition(":")[2], "19092")):
        names |= {form.format(ours): form.format(reference) for form in ('"{}"', '\\"{}\\"', ":{}", "port {}")}
    return Case(golden, scenario, Servers.from_environment(env), names, kind)


@pytest.fixture(scope="module")
def lane(request: pytest.FixtureRequest, worker: Worker, kafka: Kafka) -> Iterator[Lane]:
    """The selected tests' scenarios, which begin to run as soon as their server does; without a server their tests skip themselves."""
    wanted: dict[str, list[Mapping[str, Any]]] = {}
    for item in request.session.items:
        marks: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        if item.path == Path(__file__) and "scenario" in marks:
            wanted.setdefault(server_of(marks["golden"], marks["scenario"]), []).append(marks)
    running = Lane(kafka.bootstrap)
    for kind, some in wanted.items():
        with contextlib.suppress(pytest.skip.Exception):
            address = request.getfixturevalue(kind)
            running.start([case_of(marks["golden"], marks["scenario"], worker, kafka, address) for marks in some])
    yield running
    running.close()


@pytest.mark.parametrize(
    ("golden", "scenario"),
    [pytest.param("golden", name, id=name) for name in SCENARIOS]
    + [pytest.param("golden_mariadb", name, id=f"mariadb-{name}") for name in MARIADB_SCENARIOS],
)
def test_a_client_sees_what_the_reference_showed(
    golden: str, scenario: str, lane: Lane, worker: Worker, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(server_of(golden, scenario))
    outcome = lane.outcome(golden, scenario)
    request.node.user_properties.append(("seconds", round(outcome.seconds, 1)))
    if outcome.error:
        pytest.fail(f"{outcome.error}\n\n{worker_log(worker, outcome.tag)}", pytrace=False)
    comparison = compare_recordings(Case(golden, scenario, None, {}).load_golden(), outcome.recording, 20)
    if comparison.good < comparison.count or outcome.late:
        head = f"{scenario}: {comparison.good}/{comparison.count} points equal"
        late = [f"    came after it was recorded: {line}" for line in outcome.late]
        pytest.fail("\n".join([head, *comparison.lines, *late, "", worker_log(worker, outcome.tag)]), pytrace=False)


def worker_log(worker: Worker, tag: str) -> str:
    """The end of the worker's log, and of what it says of one scenario: others run at the same time."""
    lines = worker.log.read_text(errors="replace").splitlines()
    own = [line for line in lines if tag in line][-40:]
    return "\n".join(["The worker's log of this scenario:", *own, "", "The end of the worker's log:", *lines[-20:]])
