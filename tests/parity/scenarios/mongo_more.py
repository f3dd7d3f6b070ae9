"""Further MongoDB source scenarios: names, filters, signals, snapshots by signal, options of snapshots, errors."""
import uuid

from bson import Binary, Code, Decimal128, Int64, ObjectId, Regex, Timestamp
from parity import Run, scenario



def config(run: Run, **more) -> dict:
    uri = run.mongo_uri if "replicaSet=" in run.mongo_uri else run.mongo_uri.rstrip("/") + "/?replicaSet=rs0"
    return run.mongo_config(**{"mongodb.connection.string": uri, "cursor.max.await.time.ms": "200", **more})


def several(run: Run, variants: dict[str, dict], **common) -> dict[str, str]:
    names = {label: run.create(label, config(run, topic_prefix=f"{label}_{run.tag}", **common, **more), running=False)
             for label, more in variants.items()}
    for name in names.values():
        run.wait_state(name, "RUNNING")
    return {label: f"{label}_{run.tag}.db_{run.tag}" for label in names}


def streaming(run: Run, *names: str) -> None:
    def probe(name):
        stored = run.call("GET", f"/connectors/{name}/offsets").json()["offsets"]
        return stored and all(not o["offset"].get("initsync") and o["offset"].get("resume_token") for o in stored)
    for name in names:
        run.until(lambda: probe(name), 30, f"{name} to stream")


def signal(db, number, kind: str, **data) -> dict:
    return {"_id": f"{kind}-{number}", "type": kind, "data": data}


@scenario
def mongo_names(run: Run):
    """Topics and schemas of collections with odd names, with and without adjustment."""
    db = run.mongo()
    names = ["plain", "with space", "dash-ed", "ünï", "1digit", "a.b.c"]
    for n in names:
        db[n].insert_one({"_id": 1, "dash-ed": {"1x": [1]}, "ünï": "é\U0001f600"})
    prefixes = several(run, {"none": {}, "avro": {"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"},
                             "unicode": {"schema.name.adjustment.mode": "avro_unicode"}, "delimiter": {"topic.delimiter": "-"}})
    streaming(run, *run.connectors)
    db["with space"].insert_one({"_id": 2})
    for label, prefix in prefixes.items():
        if label != "delimiter":
            run.wait_records(f"{prefix}.with_space", 2)
    run.settle(1)
    run.record_topics(*sorted(t for label in prefixes for t in run.topics(f"{label}_{run.tag}")))


@scenario
def mongo_lists(run: Run):
    """Database and collection lists together, literal names, exclusions, the signal collection outside of the lists."""
    db = run.mongo()
    own = f"db_{run.tag}"
    for n in ("a", "b", "A", "ab", "a.c"):
        db[n].insert_one({"_id": "snapshot"})
    variants = {
        "both": {"database.include.list": "db_.*", "collection.include.list": f"{own}[.](a|b)"},
        "dbout": {"database.include.list": None, "database.exclude.list": f"(?!{own}).*", "collection.include.list": f"{own}.a.*"},
        "literal": {"filters.match.mode": "literal", "database.include.list": f" {own} ", "collection.include.list": f"{own}.a.c,{own}.A"},
        "literalout": {"filters.match.mode": "literal", "collection.exclude.list": f"{own}.a,{own}.b"},
        "upper": {"collection.include.list": f"{own.upper()}.A"},
        "signals": {"collection.include.list": f"{own}.a", "signal.data.collection": f"{own}.signals"},
    }
    names = {}
    for label, more in variants.items():
        whole = {k: v for k, v in {**config(run, topic_prefix=f"{label}_{run.tag}"), **more}.items() if v is not None}
        names[label] = run.create(label, whole, running=False)
    for name in names.values():
        run.wait_state(name, "RUNNING")
    streaming(run, *names.values())
    for n in ("a", "b", "A", "ab", "a.c", "signals"):
        db[n].insert_one({"_id": "streamed"})
    run.settle(4)
    for label in names:
        run.note_settled(label, lambda label=label: {
            t: [run.decode(r["key"])["payload"]["id"] for r in run.read(t)] for t in sorted(run.topics(f"{label}_{run.tag}"))})


@scenario
def mongo_scopes(run: Run):
    """capture.scope database and collection: snapshot, stream, offsets."""
    db = run.mongo()
    own = f"db_{run.tag}"
    db["items"].insert_one({"_id": 1})
    db.others.insert_one({"_id": 1})
    prefixes = several(run, {"database": {"capture.scope": "database", "capture.target": own},
                             "collection": {"capture.scope": "collection", "capture.target": f"{own}.items"},
                             "unknown": {"capture.scope": "nothing"}})
    streaming(run, *run.connectors)
    db["items"].insert_one({"_id": 2})
    db.others.insert_one({"_id": 2})
    db["items"].update_one({"_id": 2}, {"$set": {"a": 1}})
    for prefix in prefixes.values():
        run.wait_records(f"{prefix}.items", 3)
    run.settle(2)
    run.record_topics(*sorted(t for label in prefixes for t in run.topics(f"{label}_{run.tag}")))


@scenario
def mongo_incremental_insert_delete(run: Run):
    """Incremental snapshot with watermarks that are deleted again; keys of ObjectIds; notifications."""
    db = run.mongo()
    db["items"].insert_many([{"_id": ObjectId(f"5f1b2c3d4e5f6a7b8c9d0e{i:02x}"), "n": i} for i in range(5)])
    db.create_collection("signals")
    prefix = f"mo_{run.tag}.db_{run.tag}"
    run.create("deleting", config(run, **{
        "collection.include.list": f"db_{run.tag}.items", "signal.data.collection": f"db_{run.tag}.signals", "snapshot.mode": "no_data",
        "incremental.snapshot.chunk.size": "10", "incremental.snapshot.watermarking.strategy": "insert_delete",
        "notification.enabled.channels": "sink", "notification.sink.topic.name": f"notes_{run.tag}"}))
    run.settle_streaming(4)
    db.signals.insert_one(signal(db, 1, "execute-snapshot", **{"data-collections": [f"db_{run.tag}.items"], "type": "incremental"}))
    run.wait_records(f"{prefix}.items", 5)
    run.settle(3)
    rows = [run.decode(r["value"])["payload"] for r in run.read(f"{prefix}.items")]
    run.out["notes"] = {"rows": sorted((r["op"], r["after"], r["source"]["snapshot"]) for r in rows)}
    run.record_topics(f"notes_{run.tag}")


@scenario
def mongo_signals(run: Run):
    """Signals that are malformed, unknown or of another kind: streaming goes on; what the signal topic and notifications show."""
    db = run.mongo()
    db["items"].insert_many([{"_id": i} for i in range(4)])
    db.create_collection("signals")
    own, prefix = f"db_{run.tag}", f"mo_{run.tag}.db_{run.tag}"
    run.create("signals", config(run, **{
        "collection.include.list": f"{own}.items,{own}.empty", "signal.data.collection": f"{own}.signals", "snapshot.mode": "no_data",
        "incremental.snapshot.chunk.size": "2", "notification.enabled.channels": "sink", "notification.sink.topic.name": f"notes_{run.tag}"}))
    run.settle_streaming(4)
    db.signals.insert_many([
        {"_id": "two", "type": "log"}, {"_id": "four", "type": "log", "data": {"message": "m"}, "more": 1}, signal(db, 1, "nothing"),
        {"_id": "text", "type": "execute-snapshot", "data": "no json"}, {"_id": "number", "type": 5, "data": {}},
        {"_id": ObjectId("5f1b2c3d4e5f6a7b8c9d0e1f"), "type": "log", "data": {"message": "at {}"}},
        signal(db, 2, "execute-snapshot", type="incremental"), signal(db, 3, "execute-snapshot", **{"data-collections": [f"{own}.empty"]}),
        signal(db, 4, "execute-snapshot", **{"data-collections": [f"{own}.items"], "surrogate-key": "n"}),
        signal(db, 5, "stop-snapshot", type="incremental"), signal(db, 6, "pause-snapshot", type="incremental"),
        signal(db, 7, "resume-snapshot", type="incremental")])
    run.settle(5)
    db.signals.insert_one(signal(db, 8, "execute-snapshot", **{"data-collections": [f"{own}.items"], "type": "INCREMENTAL"}))
    run.settle(4)
    db["items"].insert_one({"_id": "after"})
    run.wait_records(f"{prefix}.items", 1, 30)
    run.settle(2)
    rows = [run.decode(r["value"])["payload"] for r in run.read(f"{prefix}.items")]
    run.out["notes"] = {"rows": sorted((r["op"], r["after"]) for r in rows)}
    run.record_topics(f"notes_{run.tag}")


@scenario
def mongo_blocking_snapshot(run: Run):
    """A blocking snapshot of one collection with a condition, of all, and changes before and after."""
    db = run.mongo()
    db["items"].insert_many([{"_id": i, "n": i % 2} for i in range(4)])
    db.others.insert_one({"_id": "o"})
    db.create_collection("signals")
    own, prefix = f"db_{run.tag}", f"mo_{run.tag}.db_{run.tag}"
    name = run.create("blocking", config(run, **{
        "collection.include.list": f"{own}.items,{own}.others", "signal.data.collection": f"{own}.signals", "snapshot.mode": "no_data",
        "notification.enabled.channels": "sink", "notification.sink.topic.name": f"notes_{run.tag}"}))
    run.settle_streaming(4)
    db["items"].insert_one({"_id": 10, "n": 1})
    run.wait_records(f"{prefix}.items", 1)
    db.signals.insert_one(signal(db, 1, "execute-snapshot", **{"data-collections": [f"{own}.items"], "type": "blocking", "additional-conditions": [
        {"data-collection": f"{own}.items", "filter": '{"n": 1}'}]}))
    run.wait_records(f"{prefix}.items", 4)
    run.settle(3)
    db["items"].insert_one({"_id": 11, "n": 1})
    run.wait_records(f"{prefix}.items", 5, 40)
    db.signals.insert_one(signal(db, 2, "execute-snapshot", **{"data-collections": [f"{own}[.].*"], "type": "blocking"}))
    run.wait_records(f"{prefix}.others", 1)
    run.wait_records(f"{prefix}.items", 11)
    run.settle(3)
    run.rest("offsets", "GET", f"/connectors/{name}/offsets")
    run.record_topics(f"{prefix}.items", f"{prefix}.others", f"notes_{run.tag}")


@scenario
def mongo_snapshot_options(run: Run):
    """Modes by configuration, filters in the shell's notation, include lists that match nothing, an empty database, notifications."""
    db = run.mongo()
    own = f"db_{run.tag}"
    db["items"].insert_many([{"_id": i, "even": i % 2 == 0, "at": {"x": [i]}} for i in range(4)])
    db.others.insert_one({"_id": "o"})
    db.create_collection("empty")
    based = lambda **more: {"snapshot.mode": "configuration_based", **{f"snapshot.mode.configuration.based.{k.replace('_', '.')}": v for k, v in more.items()}}
    prefixes = several(run, {
        "data": based(snapshot_data="true", start_stream="true"), "stream": based(start_stream="true"), "neither": based(),
        "shell": {"snapshot.collection.filter.overrides": f"{own}.items", f"snapshot.collection.filter.overrides.{own}.items": "{ even: false, 'at.x': {$gt: 1} }"},
        "nothing": {"snapshot.include.collection.list": f"{own}.none", "notification.enabled.channels": "sink", "notification.sink.topic.name": f"n_nothing_{run.tag}"},
        "threads": {"snapshot.max.threads": "2", "snapshot.fetch.size": "1", "notification.enabled.channels": "sink", "notification.sink.topic.name": f"n_threads_{run.tag}"},
        "notes": {"notification.enabled.channels": "sink", "notification.sink.topic.name": f"n_notes_{run.tag}"}})
    run.wait_records(f"{prefixes['threads']}.others", 1)
    run.wait_records(f"{prefixes['data']}.items", 4)
    run.settle_streaming(5, *(run.name_of(label) for label in ("data", "stream", "shell", "nothing", "notes")))
    db["items"].insert_one({"_id": 9})
    for label in ("data", "stream", "shell", "nothing", "notes"):
        run.until(lambda: any(run.decode(r["key"])["payload"]["id"] == "9" for r in run.read(f"{prefixes[label]}.items")), 20, f"{label} to stream")
    run.settle(1)
    for label in prefixes.keys() - {"threads"}:
        run.note_settled(label, lambda label=label: {
            t: [[run.decode(r["key"])["payload"]["id"], run.decode(r["value"])["payload"]["source"]["snapshot"]] for r in run.read(t)]
            for t in sorted(run.topics(f"{label}_{run.tag}"))})
    run.record_topics(f"n_nothing_{run.tag}", f"n_notes_{run.tag}")


@scenario
def mongo_changes(run: Run):
    """Updates of many shapes, whole: upserts, arrays, replaced documents, changes of type, odd field names, deep nesting."""
    db = run.mongo()
    db.create_collection("items", changeStreamPreAndPostImages={"enabled": True})
    prefix = f"mo_{run.tag}.db_{run.tag}"
    name = run.create("changes", config(run, **{"capture.mode": "change_streams_update_full_with_pre_image"}))
    run.settle_streaming(3)
    streamed = 0

    def step(count, action):
        nonlocal streamed
        action()
        streamed += count
        run.wait_records(f"{prefix}.items", streamed, 20)

    step(1, lambda: db["items"].update_one({"_id": "u"}, {"$set": {"a": 1}}, upsert=True))
    step(1, lambda: db["items"].insert_one({"_id": {"k": [1, {"x": None}], "t": "é"}, "": "empty name", "a b": 1, "quo\"te": "\x01\x7f\u2028\ufffd\U0001f600"}))
    step(1, lambda: db["items"].update_one({"_id": "u"}, {"$set": {"a": "text", "l": list(range(12)), "d": {"e": {"f": {"g": 1}}}}}))
    step(1, lambda: db["items"].update_one({"_id": "u"}, {"$set": {"l.10": {"x": 1}, "d.e.f": [[]]}, "$unset": {"l.2": ""}}))
    step(1, lambda: db["items"].update_one({"_id": "u"}, {"$push": {"l": {"$each": [1.5, Int64(7), None]}}}))
    step(1, lambda: db["items"].update_one({"_id": "u"}, {"$pull": {"l": 3}}))
    step(1, lambda: db["items"].update_one({"_id": "u"}, {"$set": {"l": []}}))
    step(1, lambda: db["items"].update_one({"_id": "u"}, {"$set": {"x": Binary(b"\x00\xff", 128), "y": Code("f()"), "z": Regex("a/b", "sxim"), "ts": Timestamp(1, 2), "dec": Decimal128("-0E-6")}}))
    step(1, lambda: db["items"].replace_one({"_id": "u"}, {}))
    step(1, lambda: db["items"].update_one({"_id": "u"}, {"$inc": {"n": Int64(2**40)}}))
    step(2, lambda: db["items"].delete_one({"_id": "u"}))
    step(2, lambda: db["items"].delete_many({}))
    db["items"].drop()
    step(1, lambda: db["items"].insert_one({"_id": uuid.UUID(int=5).bytes}))
    run.record_topics(f"{prefix}.items")


@scenario
def mongo_task_errors(run: Run):
    """Properties that only a running task finds wrong: which of them fail it."""
    db = run.mongo()
    own = f"db_{run.tag}"
    db["items"].insert_one({"_id": 1, "a": 1, "b": 2})
    db.more.insert_one({"_id": 1})
    variants = {"pipeline": {"cursor.pipeline": "[{"}, "stage": {"cursor.pipeline": '[{"$nonsense": 1}]'},
                "rename": {"field.renames": f"{own}.items.a:b"},
                "filter": {"snapshot.collection.filter.overrides": f"{own}.items", f"snapshot.collection.filter.overrides.{own}.items": "{nonsense"},
                "guardrail": {"guardrail.collections.max": "1", "guardrail.collections.limit.action": "fail"},
                "custom": {"snapshot.mode": "custom", "snapshot.mode.custom.name": "odd"}}
    names = {label: run.create(label, config(run, topic_prefix=f"{label}_{run.tag}", **{"errors.max.retries": "0", **more}), running=False) for label, more in variants.items()}
    run.comes_true(lambda: all(task["state"] == "FAILED" for name in names.values() for task in run.status(name).get("tasks") or [{"state": ""}]), 60)
    found = {}
    for label, name in names.items():
        status = run.call("GET", f"/connectors/{name}/status").json()
        task = (status["tasks"] or [{}])[0]
        found[label] = {"connector": status["connector"]["state"], "task": task.get("state")}
    run.out["notes"] = found


@scenario
def mongo_heartbeats(run: Run):
    """Heartbeats of an idle connector, their topic and record; names by options."""
    db = run.mongo()
    db["items"].insert_one({"_id": 1})
    run.create("beating", config(run, **{"heartbeat.interval.ms": "500"}))
    run.create("named", config(run, topic_prefix=f"named_{run.tag}", **{"heartbeat.interval.ms": "500", "topic.heartbeat.prefix": f"beat_{run.tag}"}))
    run.wait_records(f"__debezium-heartbeat.mo_{run.tag}", 3, 30)
    run.wait_records(f"beat_{run.tag}.named_{run.tag}", 3, 30)
    first = [run.read(t)[0] for t in (f"__debezium-heartbeat.mo_{run.tag}", f"beat_{run.tag}.named_{run.tag}")]
    run.out["notes"] = {"records": [{"key": run.decode(r["key"]), "value": {**run.decode(r["value"]), "payload": "TIME"}} for r in first]}
    run.out["notes"]["records"] = [{**r, "key": {**r["key"], "payload": r["key"]["payload"]["serverName"].split("_")[0]}} for r in run.out["notes"]["records"]]
