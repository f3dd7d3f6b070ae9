"""The custom converters that come with Debezium's MySQL connector, and updates that change nothing."""

from __future__ import annotations


from parity import Run, scenario


@scenario
def mysql_custom_converters(run: Run):
    """TinyIntOneToBooleanConverter and JdbcSinkDataTypesConverter over snapshot and stream; skip.messages.without.change."""
    db = run.mysql(
        """CREATE TABLE t (id INT PRIMARY KEY, flag TINYINT(1), needed TINYINT(1) NOT NULL DEFAULT 1, small TINYINT, b BOOLEAN DEFAULT FALSE, r FLOAT,
           d DOUBLE NOT NULL, s VARCHAR(20) CHARACTER SET latin1 DEFAULT 'dflt', hidden INT, other TINYINT(1))""",
        """INSERT INTO t VALUES (1, 1, 0, 5, TRUE, 1.5, 2.25, 'snapshot', 1, 7), (2, NULL, -1, NULL, NULL, NULL, 0, NULL, NULL, NULL)"""
    )
    name = f"db_{run.tag}"
    config = run.mysql_config(
        column_exclude_list=f"{name}.t.hidden",
        skip_messages_without_change="true",
        **{
            "converters": "flags,types",
            "flags.type": "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter",
            "flags.selector": f"{name}.t.(flag|needed|b)",
            "types.type": "io.debezium.connector.mysql.converters.JdbcSinkDataTypesConverter",
            "types.selector.boolean": f"{name}.t.other",
            "types.selector.real": f"{name}.t.[rd]",
            "types.selector.string": f"{name}.t.s",
        },
    )
    run.create("converters", config)
    topic = f"my_{run.tag}.{name}.t"
    run.wait_records(topic, 2)
    run.settle(3)
    cursor = db.cursor()
    for statement in (
        "INSERT INTO t VALUES (3, 0, 1, 1, 0, 0.25, 1e10, 'streamed', 1, 1), (4, NULL, 0, NULL, NULL, NULL, -1, NULL, NULL, NULL)",
        "UPDATE t SET hidden = 9 WHERE id = 1",
        "UPDATE t SET flag = 0, s = NULL, other = 0 WHERE id = 1",
        "UPDATE t SET hidden = 10, id = 20 WHERE id = 2",
        "DELETE FROM t WHERE id = 3",
    ):
        cursor.execute(statement)
    db.commit()
    run.wait_records(topic, 2 + 2 + 1 + 3 + 2)
    run.record_topics(topic)
