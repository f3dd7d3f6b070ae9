"""Signals, snapshots on demand, heartbeats and notifications of the MySQL source."""
import contextlib

from mysql import FENCE, SIGNALS, config, execute, fence, note, record_tables, signal, topic
from parity import Run, scenario


def begin(run: Run, *setup: str, knock: bool = True, **more) -> tuple:
    """A connector that reads signals from a table and tells what it does in a topic of its own."""
    db = run.mysql(*FENCE, SIGNALS, *setup)
    notes = f"notes_{run.tag}"
    name = run.create("my", config(run, **{
        "snapshot.mode": "no_data", "signal.data.collection": f"db_{run.tag}.dbz_signal", "incremental.snapshot.chunk.size": 2,
        "notification.enabled.channels": "sink", "notification.sink.topic.name": notes, **more}))
    fence(run, db, knock=knock)
    return db, name, notes


def at(run: Run, *tables: str) -> list[str]:
    return [f"db_{run.tag}.{table}" for table in tables]


def record_notes(run: Run, notes: str) -> None:
    """Record the notifications; they list tables in no fixed order."""
    run.record_topics(notes)
    for record in run.out["topics"][notes]:
        more = record["value"]["payload"].get("additional_data") or {}
        for key, value in more.items():
            more[key] = value.replace(run.tag.upper(), run.tag)
        for key in ("data_collections",):
            if key in more:
                more[key] = ",".join(sorted(more[key].split(",")))


def without_threads(run: Run, *topics: str) -> None:
    """Take out of snapshot rows who wrote last: which of two threads of the reference is first, is not fixed."""
    for topic in topics:
        for record in run.out["topics"][topic]:
            if record["value"]:
                record["value"]["payload"]["source"]["thread"] = None


def together(db, *signals) -> None:
    """Send several signals in one transaction."""
    execute(db, "BEGIN")
    for kind, id_, data in signals:
        signal(db, kind, id=id_, **data)
    execute(db, "COMMIT")


@scenario
def mysql_incremental_life(run: Run):
    """Keyless, empty, unknown tables; a surrogate key; conditions; regexes; pause, resume, add, stop, in one transaction each."""
    db, name, notes = begin(
        run, "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO a VALUES (1,'a'),(2,'b'),(3,'c')",
        "CREATE TABLE a2 (x VARCHAR(9), y INT, PRIMARY KEY (x, y))", "INSERT INTO a2 VALUES ('p',1),('p',2),('q',1)",
        "CREATE TABLE bare (n INT, v VARCHAR(9))", "INSERT INTO bare VALUES (1,'x'),(2,'y')", "CREATE TABLE `void` (id INT PRIMARY KEY)",
        "CREATE TABLE s (id INT PRIMARY KEY, seq INT)", "INSERT INTO s VALUES (1,30),(2,20),(3,10)")
    db_name = f"db_{run.tag}"
    signal(db, "execute-snapshot", id="many", **{"data-collections": [*at(run, "bare", "void", "gone"), rf"{db_name}\.a2.?"], "type": "incremental",
                                                 "additional-conditions": [{"data-collection": f"{db_name}.a2", "filter": "y>1"}]})
    run.wait_records(topic(run, "a2"), 1)
    run.settle(1.2)
    signal(db, "execute-snapshot", id="seq", **{"data-collections": at(run, "s"), "surrogate-key": "seq"})
    run.wait_records(topic(run, "s"), 3)
    run.settle(1.2)
    together(db, ("execute-snapshot", "first", {"data-collections": at(run, "a")}), ("pause-snapshot", "pause", {}),
             ("execute-snapshot", "second", {"data-collections": at(run, "s")}))
    run.settle(1.9)
    signal(db, "resume-snapshot", id="resume")
    run.wait_records(topic(run, "s"), 6)
    run.settle(1.2)
    together(db, ("execute-snapshot", "third", {"data-collections": at(run, "a", "s", "a2")}),
             ("stop-snapshot", "stop some", {"data-collections": at(run, "s"), "type": "incremental"}))
    run.wait_records(topic(run, "a2"), 4)
    run.settle(1.2)
    together(db, ("execute-snapshot", "fourth", {"data-collections": at(run, "a", "s")}), ("stop-snapshot", "stop all", {"type": "incremental"}))
    run.settle(1.2)
    fence(run, db)
    record_tables(run, "a", "a2", "s", "dbz_signal")
    record_notes(run, notes)


@scenario
def mysql_blocking_snapshot(run: Run):
    """Blocking snapshots: a statement in a table's place, two tables, a name that matches nothing; streaming around them."""
    db, name, notes = begin(run, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO t VALUES (1,'a'),(2,'b'),(3,'c')",
                            "CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO u VALUES (7)")
    execute(db, "INSERT INTO t VALUES (4,'streamed')")
    fence(run, db)
    signal(db, "execute-snapshot", id="one", **{"data-collections": at(run, "t"), "type": "blocking", "additional-conditions": [
        {"data-collection": f"db_{run.tag}.t", "filter": f"SELECT * FROM db_{run.tag}.t WHERE id<3"}]})
    run.wait_records(topic(run, "t"), 3)
    run.settle(2)
    signal(db, "execute-snapshot", id="two", **{"data-collections": at(run, "t", "u"), "type": "BLOCKING"})
    run.wait_records(topic(run, "t"), 7)
    run.wait_records(topic(run, "u"), 1)
    run.settle(2)
    signal(db, "execute-snapshot", id="none", **{"data-collections": at(run, "nothing"), "type": "blocking"})
    run.settle(3)
    execute(db, "INSERT INTO t VALUES (5,'streamed')")
    fence(run, db)
    record_tables(run, "t", "u", "dbz_signal")
    without_threads(run, topic(run, "t"), topic(run, "u"))
    record_notes(run, notes)


@scenario
def mysql_signals_odd(run: Run):
    """Signals with wrong data, of other collections, twice the same; stops of what is not there; pauses of nothing."""
    db, name, notes = begin(
        run, "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO a VALUES (1,'a'),(2,'b'),(3,'c')",
        "CREATE TABLE b (id INT PRIMARY KEY)", "INSERT INTO b VALUES (1),(2)", "CREATE TABLE n (id INT, v VARCHAR(9), UNIQUE (id))",
        "INSERT INTO n VALUES (1,'x'),(NULL,'y'),(3,'z')", "CREATE TABLE hidden (id INT PRIMARY KEY)", "INSERT INTO hidden VALUES (1)",
        "CREATE TABLE `Camel Case` (`Id` INT PRIMARY KEY, `V v` VARCHAR(9))", "INSERT INTO `Camel Case` VALUES (1,'x'),(2,'y'),(3,'z')",
        **{"table.exclude.list": f"db_{run.tag}.hidden"})
    signal(db, "pause-snapshot", id="p0")
    signal(db, "resume-snapshot", id="r0")
    signal(db, "stop-snapshot", id="s0", **{"data-collections": at(run, "a"), "type": "incremental"})

    def raw(id_, kind, data):
        with db.cursor() as cursor:
            cursor.execute("INSERT INTO dbz_signal VALUES (%s,%s,%s)", (id_, kind, data))
    raw("w1", "execute-snapshot", "not json")
    raw("w2", "execute-snapshot", None)
    raw("w3", "execute-snapshot", "{}")
    raw("w4", "execute-snapshot", '{"data-collections": []}')
    raw("w5", "execute-snapshot", '{"data-collections": ["%s"], "type": "other"}' % at(run, "a")[0])
    raw("w6", "execute-snapshot", '{"data-collections": "%s"}' % at(run, "a")[0])
    raw("w7", "no-such-signal", '{"a": 1}')
    raw("w8", "log", '{"message": "Signal message at offset {}"}')
    raw("w9", None, None)
    raw("w10", " execute-snapshot ", '{"data-collections": ["%s"]}' % at(run, "a")[0])
    raw("w11", "execute-snapshot", '{"data-collections": ["%s"], "type": " incremental "}' % at(run, "a")[0])
    raw("w12", "execute-snapshot", '{"data-collections": ["%s"], "type": ""}' % at(run, "a")[0])
    raw("w13", "execute-snapshot", " ")
    raw("w14", "execute-snapshot", ' {"data-collections": [" %s "]} ' % at(run, "a")[0])
    run.settle(2)
    for id_, data in {
        "hidden": {"data-collections": at(run, "hidden")},
        "twice": {"data-collections": at(run, "a", "b", "a")},
        "quoted": {"data-collections": [f"`db_{run.tag}`.`Camel Case`"]},
        "nullable": {"data-collections": at(run, "n")},
        "case": {"data-collections": [f"DB_{run.tag}.A".upper()]},
        "cond": {"data-collections": at(run, "a"), "additional-conditions": [{"data-collection": at(run, "a")[0], "filter": "no_such_column = 1"}]},
        "cond2": {"data-collections": at(run, "a", "b"), "additional-conditions": [{"data-collection": f"db_{run.tag}.*", "filter": "id = 1"}]},
        "surrogate": {"data-collections": at(run, "a"), "surrogate-key": "nothing"},
        "after": {"data-collections": at(run, "b")},
    }.items():
        signal(db, "execute-snapshot", id=id_, **data)
        run.settle(1.5)
    fence(run, db)
    found = run.topics(f"my_{run.tag}.")
    record_tables(run, *(t for t in ("a", "b", "n", "hidden", "Camel_Case") if topic(run, t) in found))
    record_notes(run, notes)


@scenario
def mysql_signals_pauses(run: Run):
    """Pauses, resumes and stops: in the middle, twice, while paused; another signal meanwhile; a restart while paused."""
    db, name, notes = begin(run, "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO a VALUES " + ",".join(f"({i},'v')" for i in range(1, 8)),
                            "CREATE TABLE b (id INT PRIMARY KEY)", "INSERT INTO b VALUES (1),(2)")
    together(db, ("execute-snapshot", "one", {"data-collections": at(run, "a", "b")}), ("pause-snapshot", "p1", {}), ("pause-snapshot", "p2", {}))
    run.settle(2)
    together(db, ("stop-snapshot", "s1", {"data-collections": at(run, "b"), "type": "incremental"}), ("resume-snapshot", "r1", {}),
             ("resume-snapshot", "r2", {}))
    run.wait_records(topic(run, "a"), 7)
    run.settle(2)
    together(db, ("execute-snapshot", "two", {"data-collections": at(run, "a")}), ("pause-snapshot", "p3", {}))
    run.settle(3)
    # other clients' transactions move the rest of the offset; that of the snapshot before may still be stored
    def second() -> dict | None:
        offset = stored(run, name, lambda key: key not in (None, NO_KEY))
        return offset if offset and offset["incremental_snapshot_correlation_id"] == "two" else None

    found = run.until(second, 30, "the key")
    note(run, "the offset while paused", {field: found[field] for field in sorted(found) if field.startswith("incremental_")})
    run.rest("restart", "POST", f"/connectors/{name}/restart?includeTasks=true")
    run.wait_records(topic(run, "a"), 14)
    run.settle(2)
    together(db, ("execute-snapshot", "three", {"data-collections": at(run, "a")}),
             ("stop-snapshot", "s2", {"data-collections": at(run, "nothing"), "type": "incremental"}),
             ("stop-snapshot", "s3", {"data-collections": at(run, "a")}))
    run.settle(2)
    fence(run, db)
    record_tables(run, "a")
    record_notes(run, notes)


@scenario
def mysql_incremental_insert_delete(run: Run):
    """The watermarking strategy insert_delete."""
    db, name, notes = begin(run, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1),(2),(3)",
                            **{"incremental.snapshot.watermarking.strategy": "insert_delete"})
    signal(db, "execute-snapshot", id="go", **{"data-collections": at(run, "t")})
    run.wait_records(topic(run, "t"), 3)
    run.settle(2)
    fence(run, db)
    record_tables(run, "t", "dbz_signal")
    record_notes(run, notes)


#: Types of keys whose Java forms differ; the other ones are tried in unit tests.
KEYS = {
    "k_text": ("VARCHAR(9)", ["'ä'", "'b''c'"]), "k_numeric": ("DECIMAL(10,2)", ["1.50", "-3"]), "k_date": ("DATE", ["'2020-02-29'", "'1969-12-31'"]),
    "k_bin": ("BINARY(3)", ["0x010203", "0xFF"]), "k_dt": ("DATETIME(3)", ["'2020-01-01 00:00:00.5'", "'1969-12-31 23:59:59.001'"]),
    "k_time": ("TIME", ["'10:00'", "'-01:00'"]),
}


#: Java's serialised null: before the first chunk's end.
NO_KEY = "aced000570"


def stored(run: Run, name: str, wanted) -> dict | None:
    """The connector's offset, when the last key that an incremental snapshot has read is as wanted."""
    offsets = run.call("GET", f"/connectors/{name}/offsets").json().get("offsets") or [{"offset": {}}]
    offset = offsets[0]["offset"]
    return offset if offset and wanted(offset.get("incremental_snapshot_primary_key")) else None


@scenario
def mysql_incremental_key_types(run: Run):
    """Each table's first chunk is read, then the snapshot is paused; the offset holds the key in Java's form."""
    setup = []
    for table, (type_, values) in KEYS.items():
        setup += [f"CREATE TABLE {table} (id {type_} PRIMARY KEY, n INT)", *(f"INSERT INTO {table} VALUES ({v},{i})" for i, v in enumerate(values))]
    db, name, notes = begin(run, *setup, **{"incremental.snapshot.chunk.size": 1})
    for table in KEYS:
        together(db, ("execute-snapshot", f"go {table}", {"data-collections": at(run, table)}), ("pause-snapshot", f"pause {table}", {}))
        run.until(lambda table=table: run.read(topic(run, table)), 30, f"the first row of {table}")
        found = run.until(lambda: stored(run, name, lambda key: key not in (None, NO_KEY)), 30, f"the key in {table}")
        note(run, f"keys in {table}", [found["incremental_snapshot_primary_key"], found["incremental_snapshot_maximum_key"]])
        signal(db, "resume-snapshot", id=f"resume {table}")
        with contextlib.suppress(TimeoutError):
            run.until(lambda table=table: len(run.read(topic(run, table))) >= 2, 8, f"the second row of {table}")
        run.until(lambda: stored(run, name, lambda key: key is None), 30, f"the end of {table}")
    record_tables(run, *KEYS)
    record_notes(run, notes)
    for record in run.out["topics"][notes]:
        more = record["value"]["payload"].get("additional_data") or {}
        if more.get("current_collection_in_progress", "").endswith(".k_bin"):
            # the reference shows an object's address for bytes
            more.update({key: "bytes" for key in ("last_processed_key", "maximum_key") if key in more})


@scenario
def mysql_notifications(run: Run):
    """Notifications of an initial snapshot over several tables, one of them empty, one left out; then of one that finds offsets."""
    db, name, notes = begin(run, "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1),(2)", "CREATE TABLE b (id INT PRIMARY KEY)",
                            "CREATE TABLE c (id INT PRIMARY KEY)", "INSERT INTO c VALUES (1)",
                            **{"snapshot.mode": "initial", "table.exclude.list": f"db_{run.tag}.c", "notification.enabled.channels": "log,sink",
                               "snapshot.include.collection.list": ",".join(at(run, "a", "b"))})
    run.settle(2.5)
    run.rest("restart", "POST", f"/connectors/{name}/restart?includeTasks=true")
    run.settle(2)
    fence(run, db)
    record_notes(run, notes)


@scenario
def mysql_heartbeats(run: Run):
    """Heartbeats with a statement that writes to a table; one whose statement has no table; one that is wrong in syntax."""
    setup = (*FENCE, "CREATE TABLE beats (id INT PRIMARY KEY, n INT)", "INSERT INTO beats VALUES (1,0)")
    db = run.mysql(*setup)
    more = {"snapshot.mode": "no_data", "heartbeat.interval.ms": 500}
    names = {v: run.create(v, config(run, v, **more, **{"heartbeat.action.query": query}), running=False) for v, query in {
        "good": f"UPDATE db_{run.tag}.beats SET n = n + 1", "lost": f"INSERT INTO db_{run.tag}.nothing VALUES (1)", "bad": "THIS IS NOT SQL"}.items()}
    run.wait_records(topic(run, "beats", "good"), 3)
    run.wait_records(f"__debezium-heartbeat.good_{run.tag}", 3)
    run.settle(2)
    for variant, name in names.items():
        status = run.status(name)
        note(run, f"tasks of {variant}", [task["state"] for task in status["tasks"]])
    # whether the reference sends one before it fails differs from run to run
    for variant in ("good", "lost"):
        run.out["topics"][f"heartbeat {variant}"] = [run.plain(record) for record in run.read(f"__debezium-heartbeat.{variant}_{run.tag}")[:1]]


@scenario
def mysql_blocking_structures(run: Run):
    """What a blocking snapshot tells of structures: in the schema change topic, before its rows."""
    db, name, notes = begin(run, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO t VALUES (1,'a'),(2,'b')",
                            "CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO u VALUES (7)", "CREATE TABLE other (id INT PRIMARY KEY)", **{"snapshot.mode": "initial"})
    execute(db, "INSERT INTO t VALUES (4,'x')")
    fence(run, db)
    signal(db, "execute-snapshot", id="one", **{"data-collections": at(run, "t", "u"), "type": "blocking"})
    run.wait_records(topic(run, "t"), 6)
    run.wait_records(topic(run, "u"), 2)
    execute(db, "ALTER TABLE u ADD w INT")
    fence(run, db)
    run.record_topics(f"my_{run.tag}")
    told = run.out["topics"][f"my_{run.tag}"]
    # other databases of a shared server are told of as well
    told[:] = [record for record in told if record["value"]["payload"]["databaseName"] in ("", f"db_{run.tag}")]
    record_tables(run, "t", "u")
    without_threads(run, topic(run, "t"), topic(run, "u"))


@scenario
def mysql_no_data_structures(run: Run):
    """Where no rows follow, the last structure ends the snapshot."""
    begin(run, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))", "CREATE TABLE u (id INT PRIMARY KEY)",
          **{"database.include.list": f"db_{run.tag}", "schema.history.internal.store.only.captured.databases.ddl": "true"})
    run.record_topics(f"my_{run.tag}")
