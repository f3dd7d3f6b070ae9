"""More of the REST API: states that follow each other, sinks' offsets of every shape, expansions, loggers, restarts of what failed."""
import json

from parity import Run, scenario
from rest import file_source

SINK = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "1"}


def note(run: Run, name: str, value) -> None:
    run.out.setdefault("notes", {})[name] = value


@scenario
def rest_states(run: Run):
    """Pauses, stops, resumes and restarts in every state; configurations changed while paused and stopped; what tasks are then."""
    name = run.name_of("st")
    run.connectors.append(name)
    config = file_source(run)
    here = f"/connectors/{name}"
    run.rest("create paused", "POST", "/connectors", {"name": name, "config": config, "initial_state": "PAUSED"})
    run.until(lambda: run.status(name)["connector"]["state"] == "PAUSED", 30, "the pause")
    run.settle(2)
    run.rest("status", "GET", here + "/status")
    for step in ("pause", "stop", "stop", "pause", "resume", "resume", "stop", "resume", "pause", "resume"):
        run.rest(step, "PUT", f"{here}/{step}")
        if step == "stop":
            run.wait_state(name, "STOPPED")
        else:
            state = "PAUSED" if step == "pause" else "RUNNING"
            run.until(lambda state=state: {t["state"] for t in run.status(name)["tasks"]} | {run.status(name)["connector"]["state"]} in ({state}, {"PAUSED"} if step == "pause" else {state}), 30, state)
            run.until(lambda: len(run.status(name)["tasks"]) == 1 or step == "pause", 20, "a task")
            run.settle(1)
        answer = run.status(name)
        note(run, f"{len(run.out['rest'])} after {step}", [answer["connector"]["state"], [t["state"] for t in answer["tasks"]]])
    run.call("PUT", here + "/pause")
    run.until(lambda: {t["state"] for t in run.status(name)["tasks"]} == {"PAUSED"}, 30, "paused tasks")
    run.rest("restart paused", "POST", here + "/restart")
    run.rest("restart paused with tasks", "POST", here + "/restart?includeTasks=true")
    run.settle(2)
    run.rest("restart paused task", "POST", here + "/tasks/0/restart")
    seen: dict = {}  # one answer is looked at and noted: the restart itself may show between two
    run.until(lambda: seen.update(run.status(name)) or seen["tasks"][0]["state"] == "PAUSED", 30, "a paused task")
    note(run, "paused after restarts", [seen["connector"]["state"], [t["state"] for t in seen["tasks"]]])
    run.rest("put while paused", "PUT", here + "/config", {**config, "batch.size": "7"})
    run.settle(2)
    note(run, "paused after put", [run.status(name)["connector"]["state"], [t["state"] for t in run.status(name)["tasks"]]])
    run.rest("tasks while paused", "GET", here + "/tasks")
    run.call("PUT", here + "/stop")
    run.wait_state(name, "STOPPED")
    run.rest("restart stopped", "POST", here + "/restart")
    run.settle(3)
    run.rest("restart stopped with tasks", "POST", here + "/restart?includeTasks=true&onlyFailed=true")
    run.settle(1)
    run.rest("status of a stopped task", "GET", here + "/tasks/0/status")
    run.rest("restart a stopped task", "POST", here + "/tasks/0/restart")
    run.rest("restart a task that never was", "POST", here + "/tasks/1/restart")
    run.rest("put while stopped", "PUT", here + "/config", {**config, "batch.size": "8"})
    run.settle(2)
    note(run, "stopped after put", [run.status(name)["connector"]["state"], len(run.status(name)["tasks"])])
    run.rest("patch while stopped", "PATCH", here + "/config", {"batch.size": "9", "no.such": "x", "topic": None})
    run.rest("patch many", "PATCH", here + "/config", {"batch.size": "10", "extra": "1", "file": config["file"] + "x"})
    run.rest("config", "GET", here + "/config")
    run.rest("post again", "POST", "/connectors", {"name": name, "config": config, "initial_state": "RUNNING"})
    run.rest("delete", "DELETE", here)
    run.settle(2)
    run.rest("create again", "POST", "/connectors", {"name": name, "config": config, "initial_state": "RUNNING"})
    run.wait_state(name, "RUNNING")
    run.rest("initial states", "POST", "/connectors", {"name": name + "x", "config": config, "initial_state": "running"})
    run.connectors.append(name + "x")
    for query in ("expand=status", "expand=info", "expand=info&expand=status", "expand=nothing", "expand=STATUS", "expand=", "expand=status,info"):
        answer = run.call("GET", f"/connectors?{query}").json()
        found = answer.get(name) if isinstance(answer, dict) else sorted(n for n in answer if run.tag in n)
        note(run, query, sorted(found) if isinstance(found, dict) else found)


@scenario
def rest_failed_tasks(run: Run):
    """A sink whose task fails: its status, plans of restarts, offsets meanwhile; repaired by PATCH."""
    topic = f"in_{run.tag}"
    run.create_topic(topic, partitions=2)
    name = run.name_of("fail")
    run.connectors.append(name)
    here = f"/connectors/{name}"
    config = {**SINK, "topics": topic, "file": f"/no/such/folder/{run.tag}"}
    run.rest("create", "POST", "/connectors", {"name": name, "config": config})
    run.until(lambda: [t["state"] for t in run.status(name)["tasks"]] == ["FAILED"], 30, "failures")
    run.rest("status", "GET", here + "/status")
    run.rest("task", "GET", here + "/tasks/0/status")
    run.rest("restart only failed", "POST", here + "/restart?onlyFailed=true")
    run.rest("restart failed tasks", "POST", here + "/restart?includeTasks=true&onlyFailed=true")
    run.until(lambda: [t["state"] for t in run.status(name)["tasks"]] == ["FAILED"], 30, "failures again")
    run.rest("restart a task", "POST", here + "/tasks/0/restart")
    run.settle(2)
    run.rest("offsets", "GET", here + "/offsets")
    run.rest("patch", "PATCH", here + "/config", {"file": f"/tmp/{run.tag}.out", "tasks.max": "1"})
    run.wait_state(name, "RUNNING")
    run.settle(3)
    run.rest("restart a task that is gone", "POST", here + "/tasks/1/restart")
    run.produce(topic, {"schema": {"type": "string", "optional": False}, "payload": "line"})
    run.until(lambda: open(f"/tmp/{run.tag}.out").read() == "line\n", 30, "the line")
    run.rest("pause", "PUT", here + "/pause")
    run.wait_state(name, "PAUSED")
    run.rest("topics", "GET", here + "/topics")


@scenario
def rest_sink_offsets(run: Run):
    """Offsets of a sink of every shape, while it runs and when it is stopped; some of them reset, all of them reset."""
    topic = f"in_{run.tag}"
    run.create_topic(topic)
    run.produce(topic, {"schema": {"type": "string", "optional": False}, "payload": "line"}, key="k")
    name = run.create("sink", {**SINK, "topics": topic, "file": f"/tmp/{run.tag}.out", "key.converter": "org.apache.kafka.connect.storage.StringConverter"})
    here = f"/connectors/{name}"
    entry = lambda t=topic, p=0, o=0: {"partition": {"kafka_topic": t, "kafka_partition": p}, "offset": None if o is None else {"kafka_offset": o}}
    run.rest("while it runs", "PATCH", here + "/offsets", {"offsets": [entry()]})
    run.call("PUT", here + "/stop")
    run.wait_state(name, "STOPPED")
    run.settle(2)
    bodies = [[entry(o=5)], [entry(o=-1)], [entry(o="3")], [entry(o="x")], [entry(o=1.5)], [entry(o=True)], [entry(o={})], [entry(p="1", o=2)], [entry(p="x")], [entry(p=-1)], [entry(p=9)], [entry(p=1.0)],
              [entry(t="")], [entry(t=None)], [entry(t=5)], [entry(t="no_such_" + run.tag)], [{"partition": {}, "offset": {"kafka_offset": 1}}], [{"partition": {"kafka_topic": topic}, "offset": {"kafka_offset": 1}}],
              [{"partition": {"topic": topic, "partition": 0}, "offset": {"offset": 1}}], [{"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {}}],
              [{"partition": {"kafka_topic": topic, "kafka_partition": 0, "more": 1}, "offset": {"kafka_offset": 1}}], [{"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 1, "more": 1}}],
              [entry(o=1), entry(o=2)], [entry(o=None)], [{"partition": None, "offset": None}], [{"partition": {"kafka_topic": topic, "kafka_partition": 0}}]]
    for number, body in enumerate(bodies):
        run.rest(f"{number}", "PATCH", here + "/offsets", {"offsets": body})
        answer = run.call("GET", here + "/offsets").json()
        note(run, f"offsets {number}", sorted(answer.get("offsets", []), key=str))
    run.rest("reset", "DELETE", here + "/offsets")
    run.rest("reset again", "DELETE", here + "/offsets")
    run.rest("offsets", "GET", here + "/offsets")


@scenario
def rest_loggers(run: Run):
    """Loggers: listed, set by parts of names, in the scope of one worker and of all; wrong scopes and levels."""
    base = f"parity.{run.tag}"
    for path, body in ((f"{base}.a.b", {"level": "TRACE"}), (f"{base}.a", {"level": "WARN"}), (base, {"level": "error"}), (f"{base}?scope=worker", {"level": "INFO"}), (f"{base}?scope=cluster", {"level": "DEBUG"}),
                       (f"{base}?scope=Cluster", {"level": "DEBUG"}), (f"{base}?scope=galaxy", {"level": "DEBUG"}), (f"{base}?scope=", {"level": "DEBUG"}), (base, {"level": ""}), (base, {"lvl": "INFO"}),
                       (base, {"level": "FATAL"}), (base, {"level": "ALL"}), (base, {"level": "DEBUG"})):
        run.rest(f"put {path} {body}", "PUT", f"/admin/loggers/{path}", body)
    run.settle(1)
    for path in (base, f"{base}.a", f"{base}.a.b", f"{base}.a.b.c", f"{base}.z"):
        run.rest(f"get {path}", "GET", f"/admin/loggers/{path}")
    answer = run.call("GET", "/admin/loggers").json()
    note(run, "listed", {name: entry["level"] for name, entry in answer.items() if run.tag in name})
    note(run, "kind of root", sorted(answer["root"]))
    run.rest("delete", "DELETE", f"/admin/loggers/{base}")
    run.rest("post", "POST", f"/admin/loggers/{base}", {"level": "INFO"})


@scenario
def sink_converters(run: Run):
    """What a file sink writes of every schema and value through each converter, with keys, headers and tombstones."""
    body = lambda type_, value, **more: {"schema": {"type": type_, "optional": True, **more}, "payload": value}
    point = {"type": "struct", "fields": [{"field": "x", "type": "int32"}, {"field": "y", "type": "double", "optional": True}], "name": "p.Point"}
    values = [body("string", "é\n\"q\""), body("int8", 5), body("int64", 2**62), body("float", 1.5), body("double", 1e300), body("boolean", True), body("bytes", "AP8="), body("string", None),
              {"schema": point, "payload": {"x": 1, "y": None}}, body("array", [{"x": 1, "y": 2.5}], items=point), body("map", {"b": 1, "a": 2}, keys={"type": "string"}, values={"type": "int32"}),
              body("map", [[1, "a"]], keys={"type": "int32"}, values={"type": "string"}), body("bytes", "MDk=", name="org.apache.kafka.connect.data.Decimal", version=1, parameters={"scale": "2"}),
              body("int32", 18321, name="org.apache.kafka.connect.data.Date", version=1), body("int64", 1577836800123, name="org.apache.kafka.connect.data.Timestamp", version=1),
              body("int32", 45296789, name="org.apache.kafka.connect.data.Time", version=1), {"schema": None, "payload": {"a": [1, 2.5, None, {"b": "c"}]}}, {"schema": None, "payload": "x"}]
    bare = [1, 1.5, True, None, "text", [1, "a", None], {"a": {"b": [1.0, 0.0, 1e21]}}, {}, [], 2**63 - 1, {"schema": {"type": "string"}, "payload": "p"}]
    kinds = {"json": ("org.apache.kafka.connect.json.JsonConverter", {}, values), "bare": ("org.apache.kafka.connect.json.JsonConverter", {"value.converter.schemas.enable": "false"}, bare),
             "text": ("org.apache.kafka.connect.storage.StringConverter", {}, ["é", "", " a\tb ", "1"]), "bytes": ("org.apache.kafka.connect.converters.ByteArrayConverter", {}, ["abc", ""]),
             "long": ("org.apache.kafka.connect.converters.LongConverter", {}, [(5).to_bytes(8, "big"), (-1).to_bytes(8, "big", signed=True)]),
             "double": ("org.apache.kafka.connect.converters.DoubleConverter", {}, [b"\x3f\xf8" + bytes(6), b"\x7f\xf0" + bytes(6)]), "bool": ("org.apache.kafka.connect.converters.BooleanConverter", {}, [b"\x01", b"\x00"])}
    for kind, (converter, more, rows) in kinds.items():
        topic, path = f"{kind}_{run.tag}", f"/tmp/{run.tag}.{kind}"
        run.create_topic(topic)
        for row in rows:
            run.produce(topic, row if isinstance(row, bytes) else row.encode() if kind in ("text", "bytes") else json.dumps(row), key="k", headers=[("h", b"1"), ("n", None)])
        run.produce(topic, None, key="k")
        run.create(kind, {**SINK, "topics": topic, "file": path, "key.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter": converter, **more})
    for kind, (_, _, rows) in kinds.items():
        run.until(lambda kind=kind, rows=rows: open(f"/tmp/{run.tag}.{kind}").read().count("\n") >= len(rows) + 1, 30, f"lines of {kind}")
        text = open(f"/tmp/{run.tag}.{kind}").read()
        note(run, f"lines of {kind}", [line.split("@")[0] if line.startswith("[B@") else line for line in text.split("\n")])
