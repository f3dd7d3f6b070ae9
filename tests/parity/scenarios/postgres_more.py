"""More PostgreSQL source scenarios: keys of every type, names, parts of snapshots, messages, replica identities, publications."""

import time

from parity import Run, scenario


def note(run: Run, name: str, value) -> None:
    run.out.setdefault("notes", {})[name] = value


def start(run: Run, setup: str, **variants: dict):
    """A database, and one connector a variant, each with its own prefix, slot and publication; a row of `fence` shows when it streams."""
    db = run.postgres("CREATE TABLE public.fence (id bigint PRIMARY KEY); INSERT INTO public.fence VALUES (1);" + setup)
    for variant, more in variants.items():
        run.create(variant, run.postgres_config(**{"topic_prefix": f"{variant}_{run.tag}", "slot_name": f"{variant}_{run.tag}",
                                                   "publication_name": f"{variant}_{run.tag}", **more}))
    fence(run, db, *variants)
    return db


def topic(run: Run, table: str, variant: str = "pg") -> str:
    return f"{variant}_{run.tag}.{table}"


def fence(run: Run, db, *variants: str) -> None:
    """Insert rows until one of them has come through each variant: all that was committed before the last has come too."""
    marks = []

    def seen(variant: str) -> bool:
        marks.append(time.time_ns())
        db.execute(f"INSERT INTO public.fence VALUES ({marks[-1]})")
        keys = [record["key"] or b"" for record in run.read(topic(run, "public.fence", variant))]
        return any(b"%d" % mark in key for key in keys for mark in marks)

    for variant in variants:
        marks.clear()
        run.until(lambda variant=variant: seen(variant), 60, f"the fence's row through {variant}")


@scenario
def pg_key_types(run: Run):
    """Keys of many types, keys out of unique indexes, keys by expression, changes of keys, replica identity FULL and by index."""
    keys = {"k_num": ("numeric(6,2)", "1.50", "2.50"), "k_any": ("numeric", "1.5", "2"), "k_uuid": ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"),
            "k_ts": ("timestamp", "'2020-01-01 00:00:00.5'", "'2020-01-02'"), "k_tz": ("timestamptz(3)", "'2020-01-01 00:00:00.5+02'", "'2020-01-02 00:00:00+00'"),
            "k_date": ("date", "'2020-01-01'", "'2020-01-02'"), "k_bytes": ("bytea", "'\\x01ff'", "'\\x02'"), "k_enum": ("mood", "'sad'", "'happy'"),
            "k_ci": ("citext", "'AbC'", "'x'"), "k_inet": ("inet", "'10.0.0.1'", "'10.0.0.2'"), "k_bool": ("boolean", "true", "false"), "k_bit": ("bit(9)", "B'000000101'", "B'100000000'"),
            "k_char": ("char(4)", "'a'", "'b'"), "k_time": ("time(3)", "'10:00:00.5'", "'11:00:00'"), "k_iv": ("interval", "'1 day'", "'2 days'"), "k_real": ("real", "1.5", "2.5"),
            "k_small": ("smallint", "1", "2"), "k_array": ("integer[]", "'{1,2}'", "'{3}'"), "k_json": ("jsonb", "'{\"a\": 1}'", "'{}'"), "k_dom": ("code", "'d1'", "'d2'")}
    setup = "".join(f"CREATE TABLE {name} (k {type_} PRIMARY KEY, v integer DEFAULT 1); INSERT INTO {name} VALUES ({one});" for name, (type_, one, _) in keys.items())
    db = start(run, "CREATE EXTENSION IF NOT EXISTS citext; CREATE TYPE mood AS ENUM ('sad','happy'); CREATE DOMAIN code AS varchar(5);" + setup + """
        CREATE TABLE uniq (a integer, b integer NOT NULL, c integer NOT NULL, CONSTRAINT n UNIQUE (a), CONSTRAINT bc UNIQUE (b, c), CONSTRAINT cc UNIQUE (c));
        ALTER TABLE uniq REPLICA IDENTITY FULL; INSERT INTO uniq VALUES (1,2,3);
        CREATE TABLE pair (a integer, b text, v integer, PRIMARY KEY (b, a)); ALTER TABLE pair REPLICA IDENTITY FULL; INSERT INTO pair VALUES (1,'x',1);
        CREATE TABLE chosen (id integer PRIMARY KEY, region text, v integer); ALTER TABLE chosen REPLICA IDENTITY FULL; INSERT INTO chosen VALUES (1,'eu',1)""",
        pg={}, own={"message_key_columns": r"public.chosen:region,id;(.*).pair:v"})
    for name, (_, _, two) in keys.items():
        db.execute(f"UPDATE {name} SET v = 2; UPDATE {name} SET k = {two}; DELETE FROM {name}")
    db.execute("UPDATE uniq SET a = 4; UPDATE uniq SET c = 5; UPDATE uniq SET a = NULL; DELETE FROM uniq")
    db.execute("UPDATE pair SET v = 2; UPDATE pair SET b = 'y'; DELETE FROM pair; UPDATE chosen SET v = 2; UPDATE chosen SET region = 'us'; DELETE FROM chosen")
    fence(run, db, "pg", "own")
    run.record_topics(*(topic(run, f"public.{name}") for name in (*keys, "uniq", "pair", "chosen")), *(topic(run, f"public.{name}", "own") for name in ("pair", "chosen")))


@scenario
def pg_names(run: Run):
    """Odd names of tables and columns, adjustment of names for Avro, another delimiter and other topics."""
    db = start(run, """CREATE SCHEMA "s-1"; CREATE TABLE "s-1"."odd.name" ("the id" integer PRIMARY KEY, "a-b" integer, "9lives" integer, "ünï" integer, "q""uote" integer, "UPPER" integer);
        INSERT INTO "s-1"."odd.name" VALUES (1,2,3,4,5,6); CREATE TABLE "sel$ect" (id integer PRIMARY KEY, "order" text); INSERT INTO "sel$ect" VALUES (1,'o')""",
        pg={}, avro={"schema_name_adjustment_mode": "avro", "field_name_adjustment_mode": "avro"},
        unicode={"schema_name_adjustment_mode": "avro_unicode", "field_name_adjustment_mode": "avro_unicode"})
    dash = run.create("dash", run.postgres_config(topic_prefix=f"dash_{run.tag}", slot_name=f"dash_{run.tag}", publication_name=f"dash_{run.tag}", topic_delimiter="-",
                                                  extended_headers_enabled="false", heartbeat_interval_ms="500", topic_heartbeat_prefix=f"beat_{run.tag}",
                                                  provide_transaction_metadata="true", topic_transaction="tx", tombstones_on_delete="false"))
    run.wait_state(dash, "RUNNING")
    run.settle(4)
    db.execute("""UPDATE "s-1"."odd.name" SET "a-b" = 9; INSERT INTO "sel$ect" VALUES (2,'p'); DELETE FROM "sel$ect" WHERE id = 1""")
    fence(run, db, "pg", "avro", "unicode")
    run.settle(3)
    names = sorted({name.replace(run.tag, "TAG") for prefix in ("pg", "avro", "unicode", "dash", "beat") for name in run.topics(f"{prefix}_{run.tag}")})
    note(run, "topics", names)
    run.record_topics(*(name.replace("TAG", run.tag) for name in names if "fence" not in name and "-tx" not in name and ".tx" not in name and "beat" not in name))


@scenario
def pg_snapshot_parts(run: Run):
    """Statements that choose rows, tables that are left out, isolation and locks, a table without rows at the end."""
    db = start(run, """CREATE TABLE a (id integer PRIMARY KEY, gone boolean); INSERT INTO a VALUES (1,false),(2,true),(3,false);
        CREATE TABLE b (id integer PRIMARY KEY, v integer); INSERT INTO b VALUES (1,5),(2,6); CREATE TABLE c (id integer PRIMARY KEY); INSERT INTO c VALUES (1);
        CREATE TABLE z_empty (id integer PRIMARY KEY)""",
        chosen={"snapshot_select_statement_overrides": "public.a,public.b", "snapshot.select.statement.overrides.public.a": "SELECT * FROM public.a WHERE NOT gone ORDER BY id DESC",
                "snapshot.select.statement.overrides.public.b": "SELECT * FROM public.b WHERE v > 5"},
        few={"snapshot_include_collection_list": "public.c,public.fence"}, locked={"snapshot_locking_mode": "shared", "snapshot_isolation_mode": "repeatable_read"},
        uncommitted={"snapshot_isolation_mode": "read_committed", "table_exclude_list": "public.b"}, listed={"schema_include_list": "pub.*", "column_include_list": "public.(a|b|c|fence).id"})
    db.execute("INSERT INTO a VALUES (4,true); UPDATE b SET v = 0 WHERE id = 2; INSERT INTO c VALUES (2); INSERT INTO z_empty VALUES (1)")
    variants = ("chosen", "few", "locked", "uncommitted", "listed")
    fence(run, db, *variants)
    run.record_topics(*(name for variant in variants for name in run.topics(f"{variant}_{run.tag}") if "fence" not in name))


@scenario
def pg_messages(run: Run):
    """Logical messages, in and outside of transactions, by prefix; their bytes in every handling mode; a truncate of several tables."""
    db = start(run, "CREATE TABLE t (id integer PRIMARY KEY); CREATE TABLE u (id integer PRIMARY KEY REFERENCES t); INSERT INTO t VALUES (1)",
               pg={"skipped_operations": "none"}, some={"message_prefix_include_list": "app.*,other", "binary_handling_mode": "base64"},
               rest={"message_prefix_exclude_list": "app", "binary_handling_mode": "hex", "provide_transaction_metadata": "true", "skipped_operations": "t"})
    db.execute("BEGIN; INSERT INTO u VALUES (1); SELECT pg_logical_emit_message(true, 'app', 'in transaction'); SELECT pg_logical_emit_message(true, 'application', '\\xdeadbeef'::bytea); COMMIT")
    db.execute("SELECT pg_logical_emit_message(false, 'other', 'žluť'); SELECT pg_logical_emit_message(true, '', ''); SELECT pg_logical_emit_message(true, 'app', repeat('x', 3000))")
    db.execute("BEGIN; SELECT pg_logical_emit_message(true, 'app', 'never'); SELECT pg_logical_emit_message(false, 'app', 'yet'); ROLLBACK")
    db.execute("TRUNCATE t CASCADE; INSERT INTO t VALUES (2); TRUNCATE t, u RESTART IDENTITY")
    variants = ("pg", "some", "rest")
    fence(run, db, *variants)
    run.record_topics(*(name for variant in variants for name in run.topics(f"{variant}_{run.tag}") if "fence" not in name and not name.endswith(".transaction")))


@scenario
def pg_replica_identities(run: Run):
    """Replica identities that the connector sets: full, default, nothing, by an index; what before shows; values out of line."""
    big = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 400) i)"
    db = start(run, "".join(f"CREATE TABLE {name} (id integer PRIMARY KEY, code integer NOT NULL, small text, big text); CREATE UNIQUE INDEX {name}_code ON {name} (code);"
                            f"ALTER TABLE {name} ALTER big SET STORAGE EXTERNAL; INSERT INTO {name} VALUES (1, 10, 's', {big});" for name in ("f", "d", "i", "plain")),
               pg={"replica_identity_autoset_values": "public.f:FULL,public.d:DEFAULT,public.i:INDEX i_code"})
    run.until(lambda: db.execute("SELECT relreplident::text FROM pg_class WHERE relname IN ('f', 'i') ORDER BY relname").fetchall() == [("f",), ("i",)],
              30, "the replica identities")
    fence(run, db, "pg")
    for name in ("f", "d", "i", "plain"):
        db.execute(f"UPDATE {name} SET small = 't'; UPDATE {name} SET code = 20; UPDATE {name} SET id = 2; DELETE FROM {name}")
    fence(run, db, "pg")
    note(run, "identities", db.execute("SELECT relname, relreplident::text FROM pg_class WHERE relname IN ('f','d','i','plain') ORDER BY 1").fetchall())
    run.record_topics(*(topic(run, f"public.{name}") for name in ("f", "d", "i", "plain")))


@scenario
def pg_publications(run: Run):
    """What the connector makes of publications in each mode, and which rows of them come."""
    setup = "CREATE TABLE a (id integer PRIMARY KEY); CREATE TABLE b (id integer PRIMARY KEY); INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)"
    db = start(run, setup + f"; CREATE PUBLICATION ready_{run.tag} FOR TABLE a, public.fence WITH (publish = 'insert')",
               every={"publication_autocreate_mode": "all_tables", "table_include_list": "public.a,public.fence"},
               some={"publication_autocreate_mode": "filtered", "table_include_list": "public.a,public.fence"},
               ready={"publication_autocreate_mode": "disabled"})
    db.execute("INSERT INTO a VALUES (2); INSERT INTO b VALUES (2); DELETE FROM a WHERE id = 2; CREATE TABLE later (id integer PRIMARY KEY); INSERT INTO later VALUES (1)")
    variants = ("every", "some", "ready")
    fence(run, db, *variants)
    rows = db.execute("SELECT pubname, puballtables, pubinsert, pubupdate, pubdelete, pubtruncate FROM pg_publication ORDER BY 1").fetchall()
    note(run, "publications", [[row[0].replace(run.tag, "TAG"), *row[1:]] for row in rows])
    note(run, "tables", [[row[0].replace(run.tag, "TAG"), *row[1:]] for row in db.execute(
        "SELECT pubname, schemaname, tablename FROM pg_publication_tables WHERE pubname NOT LIKE 'every%' ORDER BY 1, 2, 3").fetchall()])
    run.record_topics(*(name for variant in variants for name in run.topics(f"{variant}_{run.tag}") if "fence" not in name))


@scenario
def pg_excluded_keys(run: Run):
    """Columns of keys that are left out of values: one of two, the only one, all columns."""
    db = start(run, """CREATE TABLE one (id integer PRIMARY KEY, v integer); CREATE TABLE two (a integer, b text, v integer, PRIMARY KEY (a, b));
        CREATE TABLE bare (id integer PRIMARY KEY); INSERT INTO bare VALUES (1); CREATE TABLE whole (id integer PRIMARY KEY, v integer);
        ALTER TABLE whole REPLICA IDENTITY FULL""",
        pg={"column_exclude_list": "public.one.id,public.two.a,public.bare.id,public.whole.id"}, kept={"column_include_list": "public.one.v,public.two.b,public.fence.id"})
    # in its snapshot the reference writes zeros for them
    db.execute("INSERT INTO one VALUES (1,1); INSERT INTO two VALUES (1,'x',1); INSERT INTO whole VALUES (1,1)")
    for name in ("one", "two", "whole"):
        db.execute(f"UPDATE {name} SET v = 2; DELETE FROM {name}")
    db.execute("INSERT INTO one VALUES (5,5); UPDATE one SET id = 6; INSERT INTO bare VALUES (2); DELETE FROM bare; INSERT INTO two VALUES (7,'y',7); UPDATE two SET a = 8")
    fence(run, db, "pg", "kept")
    run.record_topics(*(name for variant in ("pg", "kept") for name in run.topics(f"{variant}_{run.tag}") if "fence" not in name))
