"""Offsets of database sources by REST: read, set back, set to nonsense, deleted; topics that are forgotten."""


from parity import Run, apart, scenario
from mysql import FENCE, OTHERS_DDL, config, execute, fence, record_tables


def offsets(run: Run, name: str) -> list:
    return run.call("GET", f"/connectors/{name}/offsets").json()["offsets"]


def stop(run: Run, name: str) -> None:
    run.call("PUT", f"/connectors/{name}/stop")
    run.wait_state(name, "STOPPED")


def resume(run: Run, name: str, task_state: str | None = None) -> None:
    run.call("PUT", f"/connectors/{name}/resume")
    run.wait_state(name, "RUNNING", task_state=task_state)


def refusals(run: Run, name: str, partition: dict, good: dict) -> None:
    """What is answered to offsets. Some that the reference stores, and fails on later, are refused here, and asked of unit tests."""
    path = f"/connectors/{name}/offsets"
    run.rest("while it runs", "PATCH", path, {"offsets": [{"partition": partition, "offset": good}]})
    run.rest("delete while it runs", "DELETE", path)
    stop(run, name)
    for label, body in [
        ("of another partition", {"offsets": [{"partition": {"server": "somebody"}, "offset": good}]}),
        ("with no offsets", {"offsets": []}),
        ("twice the same", {"offsets": [{"partition": partition, "offset": good}, {"partition": partition, "offset": good}]}),
        ("null", {"offsets": [{"partition": partition, "offset": None}]}),
        ("the same again", {"offsets": [{"partition": partition, "offset": good}]}),
    ]:
        run.rest(label, "PATCH", path, body)
    run.out.setdefault("notes", {})["after refusals"] = [sorted(entry["offset"] or {}) for entry in offsets(run, name)]


@scenario
def pg_offsets(run: Run):
    """Offsets of a PostgreSQL source: shown, refused, set to what they are, deleted; topics forgotten."""
    db = run.postgres("CREATE TABLE t (pk serial PRIMARY KEY, a text); INSERT INTO t (a) VALUES ('snapshot')")
    name = run.create("offsets", run.postgres_config(table_include_list="public.t"))
    topic = f"pg_{run.tag}.public.t"
    run.wait_records(topic, 1)
    run.settle(3)
    db.execute("INSERT INTO t (a) VALUES ('streamed')")
    run.wait_records(topic, 2)
    run.until(lambda: any("lsn_proc" in o["offset"] for o in offsets(run, name)), 30, "an offset of the stream")
    found = offsets(run, name)[0]
    refusals(run, name, found["partition"], found["offset"])
    db.execute("INSERT INTO t (a) VALUES ('while stopped')")
    resume(run, name)
    run.wait_records(topic, 3)
    run.settle(4)
    stop(run, name)
    run.rest("topics", "GET", f"/connectors/{name}/topics")
    run.rest("delete", "DELETE", f"/connectors/{name}/offsets")
    run.rest("offsets deleted", "GET", f"/connectors/{name}/offsets")
    run.rest("forget topics", "PUT", f"/connectors/{name}/topics/reset")
    run.settle(2)
    run.rest("topics again", "GET", f"/connectors/{name}/topics")
    run.record_topics(topic)


@scenario
@apart(OTHERS_DDL)
def mysql_offsets(run: Run):
    """Offsets of a MySQL source: set back to an earlier transaction, refused, deleted."""
    db = run.mysql(*FENCE, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10))", "INSERT INTO t VALUES (1,'old')")
    name = run.create("my", config(run))
    fence(run, db)
    run.until(lambda: any("gtids" in o["offset"] and "snapshot" not in o["offset"] for o in offsets(run, name)), 30, "an offset")
    first = offsets(run, name)
    execute(db, "INSERT INTO t VALUES (2,'one')")
    fence(run, db)
    run.until(lambda: offsets(run, name) != first, 30, "an offset that is not before the row")
    run.settle(4)
    before = offsets(run, name)[0]
    execute(db, "INSERT INTO t VALUES (3,'two')", "UPDATE t SET v='three' WHERE id=1")
    fence(run, db)
    run.settle(4)
    refusals(run, name, before["partition"], offsets(run, name)[0]["offset"])
    run.rest("set back", "PATCH", f"/connectors/{name}/offsets", {"offsets": [before]})
    resume(run, name)
    fence(run, db)
    stop(run, name)
    run.rest("delete", "DELETE", f"/connectors/{name}/offsets")
    run.rest("offsets deleted", "GET", f"/connectors/{name}/offsets")
    resume(run, name)
    run.wait_records(f"my_{run.tag}.db_{run.tag}.t", 9)
    record_tables(run, "t")
