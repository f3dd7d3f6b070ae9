"""What a trace's reader needs first: the statement to run, and the cause without its class."""

import pytest

from connect_py.log.traces import cause_of, statement_of


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ('no slot. Run as a superuser: ALTER ROLE "weak" WITH REPLICATION; then restart this task.', 'ALTER ROLE "weak" WITH REPLICATION;'),
        (
            "Run as the table's owner: GRANT USAGE ON SCHEMA a TO b; GRANT SELECT ON a.t TO b; then restart this connector.\n\tat x.y(z:1)",
            "GRANT USAGE ON SCHEMA a TO b; GRANT SELECT ON a.t TO b;",
        ),
        (
            "Run as a superuser: ALTER SYSTEM SET wal_level = 'logical'; then restart the server and this task.",
            "ALTER SYSTEM SET wal_level = 'logical';",
        ),
        (
            'Run as the owner of the tables: GRANT USAGE ON SCHEMA "s" TO "a"; GRANT SELECT ON "s"."t" TO "a"; Or leave them out by '
            "table.exclude.list. Then restart this task.",
            'GRANT USAGE ON SCHEMA "s" TO "a"; GRANT SELECT ON "s"."t" TO "a";',
        ),
        ('Run as a superuser: CREATE USER "a;b"; Set database.user to it.', 'CREATE USER "a;b";'),
        ("Run as its owner: GRANT SELECT ON t TO u. Then restart this task.", "GRANT SELECT ON t TO u;"),
        ("Run on the primary: rs.initiate()", "rs.initiate();"),
        ("Run: SELECT pg_drop_replication_slot('a')", "SELECT pg_drop_replication_slot('a');"),
        ("The task ran into a wall: ALTER is no word here", None),
        ("It may run as long as it likes: nothing happens.", None),
    ],
)
def test_the_statement_that_an_error_asks_for_is_found(text, statement):
    assert statement_of(f"org.apache.kafka.connect.errors.ConnectException: {text}\n") == statement


def test_the_cause_is_the_first_line_that_says_more_than_its_class():
    assert cause_of("a.b.ConnectException: It broke: badly\n\tat x\n") == "It broke: badly"
    assert cause_of("a.b.ConnectException\n\tat x\nCaused by: c.D: why\n") == "why"
    assert cause_of("only words\n") == "only words"
