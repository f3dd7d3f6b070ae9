"""Every property of every connector, transform, converter and predicate with wrong values, in validation answers."""
from parity import Run, scenario

VALUES = {"INT": ("x", "-1", "0", "99999999999", " 5 ", "1.0"), "LONG": ("x", "-1", "0", "99999999999999999999", " 5 "), "SHORT": ("x", "-1", "70000"),
          "DOUBLE": ("x", "-1"), "BOOLEAN": ("maybe", "TRUE", " false ", ""), "STRING": ("bogus", "", " ", "a(b", "a,b", "1"), "LIST": ("a(b", "a,,b", "", ",", "a, a"),
          "CLASS": ("no.such.Klass", ""), "PASSWORD": ("",)}

#: What is checked more strictly here, what exists in the reference only, and versions, of which its rig has two.
ASIDE = ("converters", "post.processors", "incremental.snapshot.chunk.size", "slot.retry.delay.ms", "internal.", "openlineage.", "memory.management.", "connector.plugin.version")


def errors(run: Run, plugin: str, config: dict) -> list:
    answer = run.call("PUT", f"/connector-plugins/{plugin}/config/validate", config)
    body = answer.json()
    if "configs" not in body:
        return [answer.status_code, body.get("message")]
    return [body["error_count"], {x["value"]["name"]: x["value"]["errors"] for x in body["configs"] if x["value"] and x["value"]["errors"]}]


def sweep(run: Run, plugin: str, base: dict, prefix: str = "") -> None:
    """Each property of a plugin with each wrong value, in a configuration that has one mistake of its own and so needs no server."""
    definitions = run.call("GET", f"/connector-plugins/{plugin}/config").json()
    notes = run.out.setdefault("notes", {})
    notes[f"{plugin} base"] = errors(run, base["connector.class"], base)
    for definition in sorted(definitions, key=lambda d: d["name"]):
        if definition["name"].startswith(ASIDE):
            continue
        for value in VALUES.get(definition["type"], ("x",)):
            notes[f"{plugin} {definition['name']}={value!r}"] = errors(run, base["connector.class"], {**base, prefix + definition["name"]: value})


@scenario
def rest_validate_values_mysql(run: Run):
    """Of MySQL's connector."""
    sweep(run, "io.debezium.connector.mysql.MySqlConnector", {
        "name": "v", "connector.class": "io.debezium.connector.mysql.MySqlConnector", "database.hostname": "127.0.0.1", "database.user": "u", "database.server.id": "5",
        "topic.prefix": "a b", "schema.history.internal.kafka.topic": "h", "schema.history.internal.kafka.bootstrap.servers": "127.0.0.1:9092"})


@scenario
def rest_validate_values_postgres(run: Run):
    """Of PostgreSQL's connector."""
    sweep(run, "io.debezium.connector.postgresql.PostgresConnector", {
        "name": "v", "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "database.hostname": "127.0.0.1", "database.user": "u", "database.dbname": "d",
        "topic.prefix": "a b"})


@scenario
def rest_validate_values_files(run: Run):
    """Of the file connectors."""
    sweep(run, "org.apache.kafka.connect.file.FileStreamSourceConnector", {
        "name": "v", "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": "/tmp/none", "topic": "t"})
    sweep(run, "org.apache.kafka.connect.file.FileStreamSinkConnector", {
        "name": "v", "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "file": "/tmp/none", "topics": "t"})


SOURCE = {"name": "v", "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": "/tmp/none", "topic": "t"}


def parts(run: Run, kind: str, names) -> None:
    for plugin in names:
        base = {"transformation": {"transforms": "t", "transforms.t.type": plugin}, "predicate": {"predicates": "t", "predicates.t.type": plugin},
                "converter": {"value.converter": plugin}}[kind]
        prefix = {"transformation": "transforms.t.", "predicate": "predicates.t.", "converter": "value.converter."}[kind]
        # without these the reference tells of its own internals, not always in the same words
        given = {prefix + name: "a" for end, name in (("RegexRouter", "regex"), ("TopicNameMatches", "pattern")) if plugin.endswith(end)}
        sweep(run, plugin, {**SOURCE, **base, **given}, prefix)


def installed(run: Run, kind: str) -> list[str]:
    return sorted({p["class"] for p in run.call("GET", "/connector-plugins?connectorsOnly=false").json() if p["type"] == kind})


@scenario
def rest_validate_values_transforms(run: Run):
    """Of Kafka's transforms."""
    parts(run, "transformation", [n for n in installed(run, "transformation") if n.startswith("org.apache.kafka")])


@scenario
def rest_validate_values_converters(run: Run):
    """Of converters and predicates."""
    parts(run, "converter", [n for n in installed(run, "converter") if n.startswith("org.apache.kafka")])
    parts(run, "predicate", installed(run, "predicate"))
