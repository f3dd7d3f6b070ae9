"""MongoDbSinkConnector: change events of rows as documents, recorded from the database that it writes to."""
import json

from bson import json_util
from parity import Run, scenario

JSON = "org.apache.kafka.connect.json.JsonConverter"
WHOLE = {"key.converter": JSON, "value.converter": JSON}
BARE = {**WHOLE, "key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}
LOGICAL = "org.apache.kafka.connect.data."

ROW = [("id", "int32", {}), ("tiny", "int8", {}), ("small", "int16", {}), ("big", "int64", {}), ("f", "float", {}), ("d", "double", {}),
       ("flag", "boolean", {}), ("name", "string", {}), ("blob", "bytes", {}),
       ("price", "bytes", {"name": LOGICAL + "Decimal", "version": 1, "parameters": {"scale": "2"}}),
       ("day", "int32", {"name": LOGICAL + "Date", "version": 1}), ("clock", "int32", {"name": LOGICAL + "Time", "version": 1}),
       ("at", "int64", {"name": LOGICAL + "Timestamp", "version": 1}), ("micros", "int64", {"name": "io.debezium.time.MicroTimestamp", "version": 1}),
       ("with_default", "string", {"default": "given"}),
       ("list", "array", {"items": {"type": "int32", "optional": True}}),
       ("map", "map", {"keys": {"type": "string"}, "values": {"type": "int64", "optional": True}}),
       ("inner", "struct", {"name": "inner", "fields": [{"field": "x", "type": "int32", "optional": True}, {"field": "y.z", "type": "string", "optional": True}]})]
EVERY = {"tiny": 1, "small": 2, "big": 9007199254740993, "f": 1.5, "d": 2.0, "flag": True, "name": "žluť", "blob": "AQI=", "price": "BNI=", "day": 19860,
         "clock": 45000000, "at": 1715949015123, "micros": 1715949015123456, "with_default": None, "list": [1, None, 3], "map": {"a": 1, "b": None},
         "inner": {"x": 1, "y.z": "t"}}


def struct(name: str, fields: list, **more) -> dict:
    return {"type": "struct", "name": name, "fields": [{"field": f, "type": t, "optional": True, **m} for f, t, m in fields], **more}


SOURCE = struct("source", [("db", "string", {}), ("table", "string", {})], field="source", optional=True)
ENVELOPE = {"type": "struct", "name": "srv.db.t.Envelope", "optional": False, "fields": [
    struct("row", ROW, field="before", optional=True), struct("row", ROW, field="after", optional=True), SOURCE,
    {"field": "op", "type": "string", "optional": False}, {"field": "ts_ms", "type": "int64", "optional": True}]}
KEY = struct("srv.db.t.Key", [("id", "int32", {}), ("name", "string", {})], optional=False)
ONE = struct("srv.db.t.Key", [("id", "int32", {})], optional=False)


def row(**values) -> dict:
    return {name: values.get(name) for name, _, _ in ROW}


def event(op: str, after=None, before=None, table: str = "t") -> dict:
    return {"schema": ENVELOPE, "payload": {"before": before, "after": after, "source": {"db": "d", "table": table}, "op": op, "ts_ms": 1}}


def one(number: int) -> dict:
    return {"schema": ONE, "payload": {"id": number}}


def filled(run: Run, label: str, *records: tuple) -> str:
    topic = f"{label}_{run.tag}"
    run.create_topic(topic)
    for key, value in records:
        run.produce(topic, value, key=key)
    return topic


def sink(run: Run, short: str, topics: str, **more) -> None:
    run.create(short, {"connector.class": "io.debezium.connector.mongodb.MongoDbSinkConnector", "mongodb.connection.string": run.mongo_uri,
                       "sink.database": f"db_{run.tag}", "topics": topics, "errors.tolerance": "all", **WHOLE, **more})


def note(run: Run, db, collection: str, count: int, ordered: bool = True) -> None:
    """What a collection holds once it has so many documents, in order of their ids; ids that the sink made up are left out."""
    run.until(lambda: db[collection].count_documents({}) == count, 30, f"{count} documents in {collection}")
    def documents() -> list:
        found = [json.loads(json_util.dumps(d, json_options=json_util.CANONICAL_JSON_OPTIONS)) for d in db[collection].find()]
        plain = [{k: v for k, v in d.items() if k != "_id" or "$oid" not in v} for d in found]
        return [list(d.items()) if ordered else sorted(d.items()) for d in sorted(plain, key=str)]
    run.note_settled(collection, documents)


@scenario
def mongo_sink(run: Run):
    """Inserts, reads, updates and deletes of rows with every type, keys of one and two columns, and records without schemas.

    Rows without keys, tombstones and a delete at the beginning of a poll are left out: the reference loses all that the poll brought.
    """
    db = run.mongo()
    rows = filled(run, "rows", (json.dumps(one(1)), json.dumps(event("c", row(id=1, **EVERY)))), (json.dumps(one(2)), json.dumps(event("r", row(id=2)))),
                  (json.dumps(one(3)), json.dumps(event("c", row(id=3, name="gone")))), (json.dumps(one(1)), json.dumps(event("u", row(id=1, name="new"), row(id=1)))),
                  (json.dumps(one(3)), json.dumps(event("d", None, row(id=3)))),
                  (json.dumps(one(4)), json.dumps(event("u", row(id=4, **EVERY)))), (json.dumps(one(9)), json.dumps(event("d", None, row(id=9)))))
    sink(run, "rows", rows)
    note(run, db, rows, 3)
    pairs = filled(run, "pairs", *[(json.dumps({"schema": KEY, "payload": {"id": i, "name": n}}), json.dumps(event(op, row(id=i, name=n, big=b))))
                                   for op, i, n, b in [("c", 1, "a", 1), ("c", 1, "b", 2), ("u", 1, "a", 3), ("c", 2, None, 4)]])
    sink(run, "pairs", pairs, **{"batch.size": "2"})
    note(run, db, pairs, 3)
    bare = filled(run, "bare", (json.dumps({"id": 1}), json.dumps(event("c", {"id": 1, "n": 5, "x": [1, {"y": 1.5}], "z": None, "t": "s"})["payload"])),
                  (json.dumps({"id": 2}), json.dumps(event("c", {"id": 2, "n": 2**40})["payload"])),
                  (json.dumps({"id": 2}), json.dumps(event("d", None, {"id": 2})["payload"])), (json.dumps({"id": 3}), json.dumps(event("r", {"id": 3, "b": True})["payload"])))
    sink(run, "bare", bare, **BARE)
    note(run, db, bare, 2, ordered=False)  # Java reads JSON without schemas into a map of no order


@scenario
def mongo_sink_names(run: Run):
    """Names of collections from topic and source, old names of properties; records that are no change events are passed over."""
    db = run.mongo()
    dotted = f"a.b-c.{run.tag}"
    run.create_topic(dotted)
    for number in (1, 2):
        run.produce(dotted, event("c", row(id=number), table=f"t{number}"), key=one(number))
    sink(run, "default", dotted)
    note(run, db, dotted.replace(".", "_"), 2)
    sink(run, "format", dotted, **{"collection.name.format": "f_${topic}"})
    note(run, db, f"f_{dotted.replace('.', '_')}", 2)
    sink(run, "source", dotted, **{"collection.name.format": "${source.db}_${source.table}_x"})
    note(run, db, "d_t1_x", 1)
    note(run, db, "d_t2_x", 1)
    sink(run, "old", dotted, **{"table.name.format": "old_${topic}"})
    note(run, db, f"old_{dotted.replace('.', '_')}", 2)
    odd = filled(run, "odd", (json.dumps(one(1)), json.dumps(event("c", row(id=1)))), (json.dumps(one(2)), json.dumps(event("t"))),
                 (json.dumps(one(3)), json.dumps(event("x", row(id=3)))), (json.dumps(one(4)), json.dumps(event("c"))), (json.dumps(one(5)), '{"schema": null, "payload": {"n": 1}}'),
                 (None, json.dumps(event("d"))), (json.dumps({"schema": {"type": "int32"}, "payload": 7}), json.dumps(event("c", row(id=7)))),
                 (json.dumps(one(8)), json.dumps(event("c", row(id=8)))))
    sink(run, "odd", odd)
    run.until(lambda: db[odd].count_documents({"_id.id": 8}) == 1, 30, "the last record")
    note(run, db, odd, 2)
