"""Properties of the PostgreSQL connector that change single events: re-selected columns, unchanged rows, comments (which never show)."""

from __future__ import annotations


from parity import Run, scenario


@scenario
def pg_reselect(run: Run):
    """Large values that an update does not touch, and NULLs, read again from the table; keys that change; a row that is gone."""
    db = run.postgres(
        "CREATE TABLE t (pk integer PRIMARY KEY, n integer, big text, raw bytea, doc jsonb, list integer[], d text DEFAULT 'dflt', s text);"
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL, ALTER raw SET STORAGE EXTERNAL, ALTER doc SET STORAGE EXTERNAL, ALTER list SET STORAGE EXTERNAL;"
        "CREATE TABLE keyless (id integer NOT NULL, big text, v text); ALTER TABLE keyless REPLICA IDENTITY FULL;"
        "INSERT INTO t SELECT i, 0, repeat('x', 3000), decode(repeat('ab', 3000), 'hex'), to_jsonb(repeat('j', 3000)), array(SELECT generate_series(1, 900)) FROM generate_series(1, 4) i"
    )
    config = run.postgres_config(
        table_include_list="public.t,public.keyless",
        **{
            "post.processors": "again",
            "post.processors.again.type": "io.debezium.processors.reselect.ReselectColumnsPostProcessor",
            "post.processors.again.reselect.columns.exclude.list": "public.t:s",
        },
    )
    run.create("reselect", config)
    topic = f"pg_{run.tag}.public.t"
    run.wait_records(topic, 4)
    run.settle(3)
    db.execute("UPDATE t SET n = 1 WHERE pk = 1")
    db.execute("UPDATE t SET pk = 20 WHERE pk = 2")
    db.execute("BEGIN; INSERT INTO t (pk, d, s) VALUES (5, NULL, NULL); UPDATE t SET n = 7, d = 'set', s = 'set' WHERE pk = 5; COMMIT")
    db.execute("BEGIN; UPDATE t SET n = 3 WHERE pk = 3; DELETE FROM t WHERE pk = 3; COMMIT")
    db.execute("BEGIN; INSERT INTO keyless VALUES (1, NULL, NULL); UPDATE keyless SET v = 'later'; COMMIT")
    run.wait_records(topic, 4 + 1 + 3 + 2 + 3)
    run.wait_records(f"pg_{run.tag}.public.keyless", 2)
    run.record_topics(topic, f"pg_{run.tag}.public.keyless")


@scenario
def pg_unchanged(run: Run):
    """skip.messages.without.change with a hidden column, and comments, which never show."""
    db = run.postgres(
        "CREATE TABLE t (pk integer PRIMARY KEY, v text, hidden text, big text); ALTER TABLE t REPLICA IDENTITY FULL;"
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL;"
        "COMMENT ON TABLE t IS 'a table'; COMMENT ON COLUMN t.v IS 'what it is'; COMMENT ON COLUMN t.pk IS 'its key';"
        "CREATE TABLE partial (pk integer PRIMARY KEY, v text);"
        "INSERT INTO t VALUES (1, 'x', 'y', repeat('b', 3000)); INSERT INTO partial VALUES (1, 'x')"
    )
    config = run.postgres_config(
        table_include_list="public.t,public.partial",
        column_exclude_list="public.t.hidden",
        include_schema_comments="true",
        provide_transaction_metadata="true",
        skip_messages_without_change="true",
    )
    run.create("unchanged", config)
    topics = [f"pg_{run.tag}.public.t", f"pg_{run.tag}.public.partial", f"pg_{run.tag}.transaction"]
    run.wait_records(topics[0], 1)
    run.wait_records(topics[1], 1)
    run.settle(3)
    db.execute("BEGIN; UPDATE t SET hidden = 'z'; UPDATE t SET v = 'x'; UPDATE t SET v = 'w'; UPDATE t SET pk = 2; UPDATE partial SET v = v; COMMIT")
    db.execute("UPDATE t SET hidden = 'again'")
    db.execute("UPDATE t SET v = NULL; UPDATE t SET v = NULL")
    run.wait_records(topics[0], 1 + 1 + 3 + 1)
    run.wait_records(topics[1], 2)
    run.settle(3)
    run.record_topics(*topics)


@scenario
def pg_numeric_defaults(run: Run):
    """Defaults of numbers with and without digits, which fit and which do not, in each mode of decimals."""
    numbers = ("1", "0.0", "1.005", "-1.025", "'2.5'", "1e2", "12345.678", "(1+1)", "-0.0", "abs(-1.5)")
    kinds = ("numeric(7,2)", "numeric(12,0)", "numeric", "numeric(19,4)", "decimal(30,10)")
    db = run.postgres("CREATE TABLE fence (id int primary key); INSERT INTO fence VALUES (1)")
    for i, kind in enumerate(kinds):
        columns = ", ".join(f"c{place} {kind} DEFAULT {number}, r{place} {kind} NOT NULL DEFAULT {number}" for place, number in enumerate(numbers))
        db.execute(f"CREATE TABLE n{i} (id int primary key, {columns})")
        db.execute(f"INSERT INTO n{i} (id) VALUES (1)")
    modes = ("precise", "string", "double")
    for mode in modes:
        name = f"{mode}_{run.tag}"
        own = {"topic.prefix": name, "slot.name": name, "publication.name": name, "decimal.handling.mode": mode}
        run.create(mode, run.postgres_config(**own), running=False)
    for mode in modes:
        run.wait_records(f"{mode}_{run.tag}.public.fence", 1)
        run.wait_state(run.name_of(mode), "RUNNING")
    for i in range(len(kinds)):
        db.execute(f"INSERT INTO n{i} (id) VALUES (2)")
    db.execute("INSERT INTO fence VALUES (2)")
    for mode in modes:
        run.wait_records(f"{mode}_{run.tag}.public.fence", 2)
    run.record_topics(*(f"{mode}_{run.tag}.public.n{i}" for mode in modes for i in range(len(kinds))))
