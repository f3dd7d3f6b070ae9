"""How tasks fail, what they skip, and what is left of records that they cannot take."""
import json
import struct

from parity import Run, scenario

KAFKA = "org.apache.kafka.connect.transforms."
STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
INTEGER = "org.apache.kafka.connect.converters.IntegerConverter"
TEXT = {"key.converter": STRING, "value.converter": STRING}
PLAIN = {"key.converter": STRING, "value.converter": JSON, "value.converter.schemas.enable": "false"}
WHOLE = {"key.converter": STRING, "value.converter": JSON, "value.converter.schemas.enable": "true"}
SKIP = {"errors.tolerance": "all"}


def transform(kind: str, **options: str) -> dict:
    config = {"transforms": "t", "transforms.t.type": KAFKA + kind}
    return {**config, **{f"transforms.t.{name.replace('__', '.')}": value for name, value in options.items()}}


def place(run: Run, name: str) -> str:
    return f"/tmp/{name}-{run.tag}.txt"


def sink(path: str, topics: str, **more) -> dict:
    return {"connector.class": "FileStreamSink", "tasks.max": "1", "file": path, "topics": topics, **more}


def source(path: str, topic: str, **more) -> dict:
    return {"connector.class": "FileStreamSource", "tasks.max": "1", "file": path, "topic": topic, "value.converter": STRING, **more}


def note_failure(run: Run, label: str, config: dict, lines: int = 2) -> None:
    """What a task that fails tells first: the failure and its cause."""
    name = run.create(label.replace(" ", "-"), config, running=False)
    status = run.wait_state(name, "RUNNING", task_state="FAILED")
    told = [line for line in status["tasks"][0]["trace"].splitlines() if not line.startswith("\t")]
    run.out.setdefault("notes", {})[label] = told[:lines]


def filled(run: Run, label: str, *records: tuple) -> str:
    topic = f"{label}_{run.tag}"
    run.create_topic(topic)
    for key, value, *headers in records:
        run.produce(topic, value, key=key, headers=headers or None)
    return topic


def lines_of(path: str) -> list[str]:
    try:
        with open(path) as lines:
            return lines.read().splitlines()
    except FileNotFoundError:
        return []


def letters(run: Run, topic: str) -> list[dict]:
    return [{"key": run.decode(r["key"]), "value": run.decode(r["value"]), "headers": [
        [name, value.decode().splitlines()[0] if name.endswith("stacktrace") and value else run.decode(value)] for name, value in r["headers"]]}
        for r in run.read(topic)]


@scenario
def sink_task_failures(run: Run):
    """A sink task that fails in a converter, a transform, at its start, for its topics or for its dead letter queue: the first lines of its trace."""
    out = place(run, "out")
    struct_of = '{"schema": {"type": "struct", "fields": [{"field": "a", "type": "int32"}]}, "payload": {"a": 1}}'
    text, whole = filled(run, "text", ("k", "text")), filled(run, "whole", (None, struct_of))
    note_failure(run, "integer key", sink(out, text, **{**TEXT, "key.converter": INTEGER}))
    note_failure(run, "json value", sink(out, text, **PLAIN))
    note_failure(run, "no envelope", sink(out, filled(run, "bare", (None, '{"n": 1}')), **WHOLE))
    note_failure(run, "unknown type", sink(out, filled(run, "odd", (None, '{"schema": {"type": "odd"}, "payload": 1}')), **WHOLE))
    note_failure(run, "unknown field", sink(out, whole, **WHOLE, **transform("ExtractField$Value", field="b")))
    note_failure(run, "key of no field", sink(out, whole, **WHOLE, **transform("ValueToKey", fields="b")))
    note_failure(run, "schema without", sink(out, filled(run, "map", (None, '{"n": 1}')), **PLAIN, **transform("SetSchemaMetadata$Value", schema__name="x")))
    note_failure(run, "no folder", sink(f"/tmp/{run.tag}/none/out", text, **TEXT))
    note_failure(run, "no topic", sink(out, "bad$topic", **TEXT))
    note_failure(run, "replicas", sink(out, text, **TEXT, **{"errors.deadletterqueue.topic.name": f"dead_{run.tag}"}))


@scenario
def sink_dead_letters_mixed(run: Run):
    """Dead letters of other converters and of headers, without context headers, and of a task that tolerates nothing; the group's offsets."""
    good, bad = struct.pack(">i", 7), b"seven"
    value = '{"schema": {"type": "string"}, "payload": "%s"}'
    topic = filled(run, "in", (good, value % "a"), (bad, value % "b"), (good, '{"payload": 1}'), (None, None), (good, value % "c", ("h", b"{")),
                   (good, value % "d", ("h", b'"x"')), (good, None))
    queue = lambda label, **more: {"errors.deadletterqueue.topic.name": f"{label}_{run.tag}", "errors.deadletterqueue.topic.replication.factor": "1",
                                   **{f"errors.deadletterqueue.{name}": text for name, text in more.items()}}
    common = {"key.converter": INTEGER, "value.converter": JSON, "header.converter": JSON, "header.converter.schemas.enable": "false"}
    told = {"context.headers.enable": "true"}
    outs = {label: place(run, label) for label in ("told", "bare", "strict")}
    names = [run.create("told", sink(outs["told"], topic, **common, **SKIP, **queue("deadtold", **told)), running=False),
             run.create("bare", sink(outs["bare"], topic, **common, **SKIP, **queue("deadbare")), running=False)]
    for name in names:
        run.wait_state(name, "RUNNING")
    run.until(lambda: len(lines_of(outs["told"])) >= 4 and len(lines_of(outs["bare"])) >= 4, 30, "good lines")
    run.wait_records(f"deadtold_{run.tag}", 3)
    run.wait_records(f"deadbare_{run.tag}", 3)
    note_failure(run, "strict", sink(outs["strict"], topic, **common, **queue("deadstrict", **told)))
    run.wait_records(f"deadstrict_{run.tag}", 1)
    run.settle(4)
    run.out["notes"] |= {f"lines {label}": lines_of(path) for label, path in outs.items()}
    run.out["notes"] |= {f"letters {label}": letters(run, f"dead{label}_{run.tag}") for label in outs}
    for label, name in (("told", names[0]), ("strict", run.name_of("strict"))):
        run.rest(f"offsets {label}", "GET", f"/connectors/{name}/offsets")
        run.rest(f"topics {label}", "GET", f"/connectors/{name}/topics")


@scenario
def source_errors(run: Run):
    """A source whose records cannot be transformed, converted, sent or given a topic: the failure's first lines; with tolerance what is left, and offsets."""
    path = place(run, "in")
    with open(path, "w") as lines:
        lines.write("x" * 3000 + "\n12\ntwo\n")
    topic = lambda label: f"{label}_{run.tag}"
    small = {"producer.override.max.request.size": "2000"}
    note_failure(run, "cast", source(path, topic("t"), **transform("Cast$Value", spec="int8")), lines=1)
    note_failure(run, "integer value", source(path, topic("t"), **{"value.converter": INTEGER}))
    note_failure(run, "too large", source(path, topic("t"), **small))
    note_failure(run, "topic's name", source(path, "bad$topic"))
    note_failure(run, "routed", source(path, topic("t"), **transform("RegexRouter", regex=".*", replacement="a b")))
    note_failure(run, "creation", source(path, topic("new"), **{"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "3"}))
    tolerant = {"cast": transform("Cast$Value", spec="int32"), "small": small, "integer": {"value.converter": INTEGER}}
    names = {label: run.create(f"skip-{label}", source(path, topic(label), **SKIP, **more)) for label, more in tolerant.items()}
    run.wait_records(topic("cast"), 1)
    run.wait_records(topic("small"), 2)
    run.settle(4)
    for label, name in names.items():
        run.rest(f"status {label}", "GET", f"/connectors/{name}/status")
        run.rest(f"offsets {label}", "GET", f"/connectors/{name}/offsets")
    run.record_topics(topic("cast"), topic("small"))


@scenario
def sink_commits(run: Run):
    """What a sink's group has committed: partitions without records, a pause between two commits, records that are dropped or skipped, a stop."""
    topic, out = f"in_{run.tag}", place(run, "out")
    run.create_topic(topic, 3)
    run.produce(topic, "1", key="a")
    name = run.create("sink", sink(out, topic, **TEXT, **SKIP, **transform("Cast$Value", spec="int32")))
    offsets = lambda label: run.rest(label, "GET", f"/connectors/{name}/offsets")

    def total() -> int:
        found = run.call("GET", f"/connectors/{name}/offsets").json()["offsets"]
        return sum(entry["offset"]["kafka_offset"] for entry in found)
    run.until(lambda: total() >= 1, 30, "the first commit")
    offsets("one record")
    run.produce(topic, "two", key="a")
    run.until(lambda: total() >= 2, 30, "the second commit")
    offsets("a skipped record")
    run.rest("pause", "PUT", f"/connectors/{name}/pause")
    run.wait_state(name, "PAUSED")
    run.produce(topic, "3", key="a")
    run.settle(4, quiet=2.5)
    offsets("paused")
    run.out["notes"] = {"paused": lines_of(out)}
    run.rest("resume", "PUT", f"/connectors/{name}/resume")
    run.until(lambda: len(lines_of(out)) >= 2, 30, "the line after the pause")
    run.rest("stop", "PUT", f"/connectors/{name}/stop")
    run.wait_state(name, "STOPPED")
    offsets("stopped")
    run.out["notes"]["stopped"] = lines_of(out)


@scenario
def sink_overrides(run: Run):
    """consumer.override.* of sinks: where a group begins, its name, small polls, topics that come to match a regex later; times and headers of records."""
    first, later, out = f"one_{run.tag}", f"two_{run.tag}", {name: place(run, name) for name in ("regex", "latest", "named", "shown")}
    run.create_topic(first)
    for n in range(3):
        run.produce(first, json.dumps({"n": n}), key="k", headers=[("h", b"1.5"), ("none", None)])
    over = lambda **more: {f"consumer.override.{name.replace('_', '.')}": value for name, value in more.items()}
    common = {**PLAIN, **over(max_poll_records="1")}
    config = sink(out["regex"], "", **common, **over(metadata_max_age_ms="1000"), **{"topics.regex": f"[a-z]+_{run.tag}"})
    del config["topics"]
    names = {"regex": run.create("regex", config, running=False),
             "latest": run.create("latest", sink(out["latest"], first, **common, **over(auto_offset_reset="latest")), running=False),
             "named": run.create("named", sink(out["named"], first, **common, **over(group_id=f"own-{run.tag}")), running=False),
             "shown": run.create("shown", sink(out["shown"], first, **common, **transform(
                 "InsertField$Value", topic__field="t", partition__field="p", offset__field="o", static__field="s", static__value="x")), running=False)}
    for name in names.values():
        run.wait_state(name, "RUNNING")
    for label, count in (("regex", 3), ("named", 3), ("shown", 3)):
        run.until(lambda: len(lines_of(out[label])) >= count, 30, f"lines of {label}")
    run.settle(3, quiet=3)
    run.create_topic(later)
    run.produce(later, '{"later": true}')
    run.produce(first, '{"n": 9}', key="k")
    run.until(lambda: len(lines_of(out["regex"])) >= 5, 30, "the topic that came later")
    run.until(lambda: len(lines_of(out["latest"])) >= 1, 30, "the last record")
    run.until(lambda: len(lines_of(out["named"])) >= 4 and len(lines_of(out["shown"])) >= 4, 30, "the last record")
    run.settle(4)
    run.out["notes"] = {label: sorted(lines_of(path)) for label, path in out.items()}
    for label, name in names.items():
        run.rest(f"offsets {label}", "GET", f"/connectors/{name}/offsets")
        run.rest(f"topics {label}", "GET", f"/connectors/{name}/topics")
