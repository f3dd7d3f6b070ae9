"""Topics named by every strategy that the reference has."""

from mysql import FENCE, config, execute, note
from parity import Run, scenario


@scenario
def mysql_naming_strategies(run: Run):
    """Topics named by schemas alone, by an expression, with letters beyond ASCII."""
    db = run.mysql(*FENCE, "CREATE TABLE `tëst tab` (id INT PRIMARY KEY)", "INSERT INTO `tëst tab` VALUES (1)", "CREATE TABLE t_1 (id INT PRIMARY KEY)", "CREATE TABLE t_2 (id INT PRIMARY KEY)",
                   "INSERT INTO t_1 VALUES (1)", "INSERT INTO t_2 VALUES (1)")
    names = {v: run.create(v, config(run, v, **more), running=False) for v, more in {
        "schema": {"topic.naming.strategy": "io.debezium.schema.SchemaTopicNamingStrategy"},
        "unicode": {"topic.naming.strategy": "io.debezium.schema.SchemaUnicodeTopicNamingStrategy"},
        "dunicode": {"topic.naming.strategy": "io.debezium.schema.DefaultUnicodeTopicNamingStrategy"},
        "regex": {"topic.naming.strategy": "io.debezium.schema.DefaultRegexTopicNamingStrategy", "topic.regex.enable": True, "topic.regex": r"(.*)\.t_[12]", "topic.replacement": "$1.t_all",
                  "topic.key.enforce.uniqueness": True, "topic.key.field.name": "which", "topic.key.field.regex": r"(.*)\.(t_[12])", "topic.key.field.replacement": "$2"}}.items()}
    read = lambda v: sum(len(run.read(n)) for n in run.topics(v) if run.tag in n and n.partition("_")[0] == v and not n.endswith((run.tag, "fence")))
    for v in names:
        run.until(lambda v=v: read(v) >= 3, 40, f"rows of {v}")
    execute(db, "INSERT INTO `tëst tab` VALUES (2)", "INSERT INTO t_1 VALUES (2)", "UPDATE t_1 SET id=5 WHERE id=2", "DELETE FROM t_2")
    for v in names:
        run.until(lambda v=v: read(v) >= 10, 40, f"changes of {v}")
    for variant, name in names.items():
        note(run, f"state of {variant}", [t["state"] for t in run.status(name)["tasks"]])
    every = [n for n in run.topics("") if run.tag in n and "history" not in n and "connect" not in n]
    note(run, "topics", sorted(n.replace(run.tag, "TAG") for n in every))
    wanted = [n for n in every if "fence" not in n and not n.endswith(run.tag)]
    run.record_topics(*wanted)


@scenario
def pg_naming_strategies(run: Run):
    """Topics named by databases, by an expression, with letters beyond ASCII; keys that tell tables apart."""
    db = run.postgres("""CREATE TABLE "tëst tab" (id integer PRIMARY KEY); INSERT INTO "tëst tab" VALUES (1); CREATE TABLE t_1 (id integer PRIMARY KEY, v integer); INSERT INTO t_1 VALUES (1,1);
        CREATE TABLE t_2 (id integer, v integer); ALTER TABLE t_2 REPLICA IDENTITY FULL; INSERT INTO t_2 VALUES (1,1)""")
    for v, more in {
            "db": {"topic.naming.strategy": "io.debezium.schema.DefaultTopicNamingStrategy"}, "unicode": {"topic.naming.strategy": "io.debezium.schema.SchemaUnicodeTopicNamingStrategy"},
            "regex": {"topic.naming.strategy": "io.debezium.schema.SchemaRegexTopicNamingStrategy", "topic.regex": r"(.*)\.public\.t_[12]", "topic.replacement": "$1.t_all"},
            "own": {"topic.naming.strategy": "io.debezium.schema.SchemaRegexTopicNamingStrategy", "topic.regex": r"(.*)\.public\.(.*)", "topic.replacement": "$1.all",
                    "topic.key.field.name": "which", "topic.key.field.regex": r".*\.(t_.)", "topic.key.field.replacement": "is $1", "value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": False,
                    "key.converter": "org.apache.kafka.connect.json.JsonConverter", "key.converter.schemas.enable": False, "tombstones.on.delete": False},
            "free": {"topic.naming.strategy": "io.debezium.schema.SchemaRegexTopicNamingStrategy", "topic.regex": r"(.*)\.t_[12]", "topic.replacement": "$1.both", "topic.key.enforce.uniqueness": False}}.items():
        run.create(v, run.postgres_config(**{"topic_prefix": f"{v}_{run.tag}", "slot_name": f"{v}_{run.tag}", "publication_name": f"{v}_{run.tag}", **more}))
        run.until(lambda v=v: sum(len(run.read(n)) for n in run.topics(v + "_") if run.tag in n) >= 3, 40, f"rows of {v}")
    run.settle(3)
    db.execute("""UPDATE t_1 SET id=2; UPDATE t_1 SET v=2; DELETE FROM t_1; UPDATE t_2 SET v=2; DELETE FROM t_2; INSERT INTO "tëst tab" VALUES (2)""")
    for v in ("db", "unicode", "regex", "own", "free"):
        run.until(lambda v=v: sum(len(run.read(n)) for n in run.topics(v + "_") if run.tag in n) >= (10 if v == "own" else 13), 40, f"changes of {v}")
    names = [n for n in run.topics("") if run.tag in n and n.split("_")[0] in ("db", "unicode", "regex", "own", "free")]
    note(run, "topics", sorted(n.replace(run.tag, "TAG") for n in names))
    run.record_topics(*names)
