"""Signals, snapshots on demand, heartbeats and notifications of the PostgreSQL source, beyond what scenarios/postgres.py has."""
import json

from parity import Run, scenario

SIGNAL = "CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))"


def start(run: Run, setup: str, **more) -> tuple:
    db = run.postgres(f"{SIGNAL}; {setup}")
    notes = f"notes_{run.tag}"
    config = run.postgres_config(**{
        "schema_include_list": "public", "signal_data_collection": "public.signals", "notification_enabled_channels": "sink",
        "notification_sink_topic_name": notes, "snapshot_mode": "no_data", "incremental_snapshot_chunk_size": 2, **more})
    name = run.create("signals", config)
    run.settle(5)

    def signal(id_: str, type_: str, **data) -> None:
        db.execute("INSERT INTO signals VALUES (%s,%s,%s)", (id_, type_, json.dumps({k.replace("_", "-"): v for k, v in data.items()})))
    return db, name, notes, signal


@scenario
def pg_incremental_life(run: Run):
    """Keyless, empty, unknown and refused tables; a surrogate key; conditions; regexes; pause, resume, add, stop, in one transaction each."""
    db, name, notes, signal = start(run, """
        CREATE TABLE a (id integer PRIMARY KEY, v text); INSERT INTO a VALUES (1,'a'),(2,'b'),(3,'c');
        CREATE TABLE a2 (x text, y integer, PRIMARY KEY (x, y)); INSERT INTO a2 VALUES ('p',1),('p',2),('q',1);
        CREATE TABLE bare (n integer, v text); INSERT INTO bare VALUES (1,'x'),(2,'y');
        CREATE TABLE empty (id integer PRIMARY KEY);
        CREATE TABLE s (id integer PRIMARY KEY, seq integer); INSERT INTO s VALUES (1,30),(2,20),(3,10)""")
    topic = f"pg_{run.tag}.public"
    signal("many", "execute-snapshot", data_collections=["public.bare", "public.empty", "public.gone", r"public\.a.*"], type="incremental",
           additional_conditions=[{"data-collection": "public.a", "filter": "id>1"}])
    run.wait_records(f"{topic}.a2", 3)
    run.settle(2)
    signal("seq", "execute-snapshot", data_collections=["public.s"], surrogate_key="seq")
    run.wait_records(f"{topic}.s", 3)
    run.settle(2)
    with db.transaction():
        signal("first", "execute-snapshot", data_collections=["public.a"])
        signal("pause", "pause-snapshot")
        signal("second", "execute-snapshot", data_collections=["public.s"])
    run.settle(3)
    signal("resume", "resume-snapshot")
    run.wait_records(f"{topic}.s", 6)
    run.settle(2)
    with db.transaction():
        signal("third", "execute-snapshot", data_collections=["public.a", "public.s", "public.a2"])
        signal("stop some", "stop-snapshot", data_collections=["public.s"], type="incremental")
    run.wait_records(f"{topic}.a2", 6)
    run.settle(2)
    with db.transaction():
        signal("fourth", "execute-snapshot", data_collections=["public.a", "public.s"])
        signal("stop all", "stop-snapshot", type="incremental")
    run.settle(3)
    run.rest("offsets", "GET", f"/connectors/{name}/offsets")
    run.record_topics(f"{topic}.a", f"{topic}.a2", f"{topic}.s", f"{topic}.signals", notes)


@scenario
def pg_incremental_insert_delete(run: Run):
    """The watermarking strategy insert_delete."""
    db, name, notes, signal = start(run, "CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t VALUES (1),(2),(3)",
                                    incremental_snapshot_watermarking_strategy="insert_delete")
    topic = f"pg_{run.tag}.public"
    signal("go", "execute-snapshot", data_collections=["public.t"])
    run.wait_records(f"{topic}.t", 3)
    run.settle(3)
    run.record_topics(f"{topic}.t", f"{topic}.signals", notes)


@scenario
def pg_incremental_read_only(run: Run):
    """Nothing is written to the database: signals come through a Kafka topic. Another table's traffic, which the reference needs to get on."""
    db = run.postgres("""CREATE TABLE t (id integer PRIMARY KEY, v text); INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 7) g;
        CREATE TABLE u (a text, b integer, PRIMARY KEY (a, b)); INSERT INTO u VALUES ('x',1),('x',2),('y',1);
        CREATE TABLE touched (id serial PRIMARY KEY)""")
    signals, topic = f"signals_{run.tag}", f"pg_{run.tag}.public"
    run.create_topic(signals)
    name = run.create("signals", run.postgres_config(
        schema_include_list="public", snapshot_mode="no_data", read_only="true", signal_enabled_channels="kafka", signal_kafka_topic=signals,
        signal_kafka_bootstrap_servers=run.bootstrap, signal_poll_interval_ms=300, incremental_snapshot_chunk_size=3))
    run.settle_streaming(5)

    def send(key: str, **data) -> None:
        run.produce(signals, {"type": "execute-snapshot", "data": {"type": "INCREMENTAL", **data}}, key=key)

    def has(table: str, count: int) -> bool:
        db.execute("INSERT INTO touched DEFAULT VALUES")
        return len(run.read(f"{topic}.{table}")) >= count
    db.execute("UPDATE t SET v='streamed' WHERE id=1")
    run.wait_records(f"{topic}.t", 1)
    send("another_prefix", **{"data-collections": ["public.t"]})
    send(f"pg_{run.tag}", **{"data-collections": ["public.t", "public.u"]})
    run.until(lambda: has("t", 8) and has("u", 3), 90, "both tables")
    db.execute("UPDATE t SET v='later' WHERE id=2")
    run.wait_records(f"{topic}.t", 9)
    send(f"pg_{run.tag}", **{"data-collections": ["public.t"], "additional-conditions": [{"data-collection": "public.t", "filter": "id > 5"}]})
    run.until(lambda: has("t", 11), 90, "the chosen rows")
    run.settle(3)
    db.execute("UPDATE t SET v='last' WHERE id=7")
    run.wait_records(f"{topic}.t", 12)
    run.settle(3)
    run.rest("offsets", "GET", f"/connectors/{name}/offsets")
    run.record_topics(f"{topic}.t", f"{topic}.u")


@scenario
def pg_blocking_snapshot(run: Run):
    """Blocking snapshots: a statement in a table's place, two tables, a name that matches nothing; streaming around them."""
    db, name, notes, signal = start(run, """CREATE TABLE t (id integer PRIMARY KEY, v text); INSERT INTO t VALUES (1,'a'),(2,'b'),(3,'c');
        CREATE TABLE u (id integer PRIMARY KEY); INSERT INTO u VALUES (7)""")
    topic = f"pg_{run.tag}.public"
    db.execute("INSERT INTO t VALUES (4,'streamed')")
    run.wait_records(f"{topic}.t", 1)
    signal("one", "execute-snapshot", data_collections=["public.T"], type="blocking",
           additional_conditions=[{"data-collection": "public.t", "filter": "SELECT * FROM public.t WHERE id<3"}])
    run.wait_records(f"{topic}.t", 3)
    run.settle(2)
    signal("two", "execute-snapshot", data_collections=["public.t", "public.u"], type="BLOCKING")
    run.wait_records(f"{topic}.t", 7)
    run.wait_records(f"{topic}.u", 1)
    run.settle(2)
    signal("none", "execute-snapshot", data_collections=["public.nothing"], type="blocking")
    run.settle(3)
    db.execute("INSERT INTO t VALUES (5,'streamed')")
    run.wait_records(f"{topic}.t", 8)
    run.settle(4)
    run.rest("offsets", "GET", f"/connectors/{name}/offsets")
    run.record_topics(f"{topic}.t", f"{topic}.u", notes)


@scenario
def pg_heartbeat_transactions(run: Run):
    """Transaction metadata with a filtered table, a key change and a truncate; the offset afterwards; the first heartbeat."""
    db, name, notes, signal = start(run, "CREATE TABLE t (id integer PRIMARY KEY, v text); CREATE TABLE hidden (id integer PRIMARY KEY)",
                                    table_exclude_list="public.hidden", provide_transaction_metadata="true",
                                    skipped_operations="none", heartbeat_interval_ms=600000)
    topic = f"pg_{run.tag}.public"
    db.execute("BEGIN; INSERT INTO t VALUES (1,'a'),(2,'b'); INSERT INTO hidden VALUES (1); UPDATE t SET id=3 WHERE id=1; "
               "UPDATE t SET v='c' WHERE id=2; DELETE FROM t WHERE id=2; COMMIT")
    db.execute("BEGIN; INSERT INTO hidden VALUES (2); COMMIT")
    db.execute("BEGIN; TRUNCATE t; INSERT INTO t VALUES (9,'last'); COMMIT")
    run.wait_records(f"{topic}.t", 10)
    run.wait_records(f"pg_{run.tag}.transaction", 6)
    run.settle(4)
    run.rest("offsets", "GET", f"/connectors/{name}/offsets")
    run.record_topics(f"{topic}.t", f"pg_{run.tag}.transaction")


@scenario
def pg_signals_odd(run: Run):
    """Signals with wrong data, of other collections, twice the same; stops of what is not there; pauses of nothing."""
    db, name, notes, signal = start(run, """
        CREATE TABLE a (id integer PRIMARY KEY, v text); INSERT INTO a VALUES (1,'a'),(2,'b'),(3,'c');
        CREATE TABLE b (id integer PRIMARY KEY); INSERT INTO b VALUES (1),(2);
        CREATE TABLE n (id integer, v text, UNIQUE (id)); INSERT INTO n VALUES (1,'x'),(NULL,'y'),(3,'z');
        CREATE TABLE hidden (id integer PRIMARY KEY); INSERT INTO hidden VALUES (1);
        CREATE TABLE "Camel Case" ("Id" integer PRIMARY KEY, "V v" text); INSERT INTO "Camel Case" VALUES (1,'x'),(2,'y'),(3,'z')""",
        table_exclude_list="public.hidden")
    topic = f"pg_{run.tag}.public"
    raw = lambda id_, type_, data: db.execute("INSERT INTO signals VALUES (%s,%s,%s)", (id_, type_, data))
    signal("p0", "pause-snapshot"); signal("r0", "resume-snapshot"); signal("s0", "stop-snapshot", data_collections=["public.a"], type="incremental")
    raw("w1", "execute-snapshot", "not json"); raw("w2", "execute-snapshot", None); raw("w3", "execute-snapshot", "{}")
    raw("w4", "execute-snapshot", '{"data-collections": []}'); raw("w5", "execute-snapshot", '{"data-collections": ["public.a"], "type": "other"}')
    raw("w6", "execute-snapshot", '{"data-collections": "public.a"}')
    run.settle(3)
    signal("hidden", "execute-snapshot", data_collections=["public.hidden"])
    run.settle(3)
    signal("twice", "execute-snapshot", data_collections=["public.a", "public.b", "public.a"])
    run.wait_records(f"{topic}.b", 2)
    run.settle(4)
    signal("quoted", "execute-snapshot", data_collections=['"public"."Camel Case"'])
    run.settle(4)
    signal("nullable", "execute-snapshot", data_collections=["public.n"])
    run.settle(4)
    signal("case", "execute-snapshot", data_collections=["PUBLIC.A"])
    run.settle(4)
    signal("cond", "execute-snapshot", data_collections=["public.a"], additional_conditions=[{"data-collection": "public.a", "filter": "no_such_column = 1"}])
    run.settle(4)
    signal("cond2", "execute-snapshot", data_collections=["public.a", "public.b"], additional_conditions=[{"data-collection": "public.*", "filter": "id = 1"}])
    run.settle(4)
    signal("surrogate", "execute-snapshot", data_collections=["public.a"], surrogate_key="nothing")
    run.settle(4)
    signal("after", "execute-snapshot", data_collections=["public.b"])
    run.settle(4)
    run.rest("offsets", "GET", f"/connectors/{name}/offsets")
    present = [t for t in ("a", "b", "n", "hidden", "Camel_Case") if f"{topic}.{t}" in run.topics(topic)]
    run.record_topics(*(f"{topic}.{t}" for t in present), notes)


@scenario
def pg_signals_pauses(run: Run):
    """Pauses, resumes and stops: in the middle, twice, while paused; another signal meanwhile; a restart while paused."""
    db, name, notes, signal = start(run, """
        CREATE TABLE a (id integer PRIMARY KEY, v text); INSERT INTO a SELECT g, 'v' FROM generate_series(1, 7) g;
        CREATE TABLE b (id integer PRIMARY KEY); INSERT INTO b VALUES (1),(2)""")
    topic = f"pg_{run.tag}.public"
    with db.transaction():
        signal("one", "execute-snapshot", data_collections=["public.a", "public.b"])
        signal("p1", "pause-snapshot")
        signal("p2", "pause-snapshot")
    run.settle(4)
    with db.transaction():
        signal("s1", "stop-snapshot", data_collections=["public.b"], type="incremental")
        signal("r1", "resume-snapshot")
        signal("r2", "resume-snapshot")
    run.wait_records(f"{topic}.a", 7)
    run.settle(4)
    with db.transaction():
        signal("two", "execute-snapshot", data_collections=["public.a"])
        signal("p3", "pause-snapshot")
    run.settle(4)
    run.rest("offsets while paused", "GET", f"/connectors/{name}/offsets")
    run.rest("restart", "POST", f"/connectors/{name}/restart?includeTasks=true")
    run.wait_records(f"{topic}.a", 14)
    run.settle(4)
    with db.transaction():
        signal("three", "execute-snapshot", data_collections=["public.a"])
        signal("s2", "stop-snapshot", data_collections=["public.nothing"], type="incremental")
        signal("s3", "stop-snapshot", data_collections=["public.a"])
    run.settle(5)
    run.rest("offsets", "GET", f"/connectors/{name}/offsets")
    run.record_topics(f"{topic}.a", notes)


#: Types of keys whose Java forms differ. The reference never ends a snapshot by timestamps or times.
KEYS = {
    "k_uuid": ("uuid", ["'3f333df6-90a4-4fda-8dd3-9485d27cee36'", "'0e37df36-f698-11e6-8dd4-cb9ced3df976'"]),
    "k_text": ("text", ["'ä'", "'b''c'"]),
    "k_numeric": ("numeric(10,2)", ["1.50", "-3"]),
    "k_date": ("date", ["'2020-02-29'", "'1969-12-31'"]),
    "k_bool": ("boolean", ["true", "false"]),
    "k_double": ("double precision", ["1.5", "1e10"]),
}


@scenario
def pg_incremental_key_types(run: Run):
    """Keys of many types: each table's first chunk is read, then the snapshot is paused; the offset holds the key in Java's form."""
    tables = "; ".join(f"CREATE TABLE {t} (id {type_} PRIMARY KEY, n integer); " + "; ".join(
        f"INSERT INTO {t} VALUES ({v}, {i})" for i, v in enumerate(values)) for t, (type_, values) in KEYS.items())
    db, name, notes, signal = start(
        run, f"{tables}; CREATE TABLE pair (a varchar(10), b bigint, PRIMARY KEY (b, a)); INSERT INTO pair VALUES ('x',1),('y',1)",
        incremental_snapshot_chunk_size=1)
    topic = f"pg_{run.tag}.public"
    for table in [*KEYS, "pair"]:
        with db.transaction():
            signal(f"go {table}", "execute-snapshot", data_collections=[f"public.{table}"])
            signal(f"pause {table}", "pause-snapshot")
        run.until(lambda: len(run.read(f"{topic}.{table}")) >= 1, 30, f"the first row of {table}")
        run.settle(3)
        run.rest(f"offsets in {table}", "GET", f"/connectors/{name}/offsets")
        signal(f"resume {table}", "resume-snapshot")
        run.wait_records(f"{topic}.{table}", 2)
        run.settle(1)
    run.record_topics(*(f"{topic}.{t}" for t in [*KEYS, "pair"]), notes)
