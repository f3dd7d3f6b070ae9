"""Database sources through other converters and through transforms."""

import re

from parity import Run, scenario
from mysql import config, execute

JSON = "org.apache.kafka.connect.json.JsonConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
CONVERTERS = {
    "bare": {"key.converter": JSON, "key.converter.schemas.enable": "false", "value.converter": JSON, "value.converter.schemas.enable": "false"},
    "numeric": {"key.converter": JSON, "key.converter.decimal.format": "NUMERIC", "value.converter": JSON, "value.converter.decimal.format": "NUMERIC"},
    "nulls": {"value.converter": JSON, "value.converter.replace.null.with.default": "false", "value.converter.schemas.enable": "false"},
    "text": {"column.exclude.list": r".*\.t\.(a|b|bi|p)", "key.converter": TEXT, "value.converter": TEXT, "header.converter": TEXT},
}
UNWRAP = {"transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}
CHAINS = {
    "flat": {"transforms": "unwrap", **UNWRAP, "transforms.unwrap.add.fields": "op,table,source.db", "transforms.unwrap.add.headers": "op", "transforms.unwrap.delete.tombstone.handling.mode": "rewrite"},
    "cast": {"transforms": "unwrap,cast,rename", **UNWRAP, "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value", "transforms.cast.spec": "n:string,i:int64",
             "transforms.rename.type": "org.apache.kafka.connect.transforms.ReplaceField$Value", "transforms.rename.renames": "n:number", "transforms.rename.exclude": "b"},
    "keyed": {"transforms": "unwrap,key,extract,route", **UNWRAP, "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey", "transforms.key.fields": "i",
              "transforms.extract.type": "org.apache.kafka.connect.transforms.ExtractField$Key", "transforms.extract.field": "i",
              "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter", "transforms.route.regex": "(.*)\\.t", "transforms.route.replacement": "$1.routed",
              "transforms.unwrap.drop.tombstones": "true", "transforms.unwrap.delete.handling.mode": "drop"},
    "times": {"transforms": "stamp,insert", "transforms.stamp.type": "org.apache.kafka.connect.transforms.InsertHeader", "transforms.stamp.header": "from", "transforms.stamp.value.literal": "here",
              "transforms.insert.type": "org.apache.kafka.connect.transforms.InsertField$Value", "transforms.insert.static.field": "site", "transforms.insert.static.value": "x"},
}


def without_clock(run: Run) -> None:
    """Take out of texts of structs what differs from run to run."""
    for records in run.out["topics"].values():
        for record in records:
            if isinstance(record["value"], dict) and isinstance(record["value"].get("text"), str):
                text = re.sub(r"\d{8,}", "N", record["value"]["text"])
                record["value"]["text"] = re.sub(r"\b(txId|thread|gtid|pos|file|lsn)=[^,}]*", r"\1=_", text)


def variants(some: dict) -> dict:
    return {name: {**config, "time.precision.mode": "connect"} if name in ("text", "cast") else config for name, config in some.items()}


PG = """CREATE TYPE mood AS ENUM ('sad','happy');
    CREATE TABLE t (id integer PRIMARY KEY, i smallint NOT NULL DEFAULT 7, n numeric(8,3), a numeric, d double precision, s varchar(20) DEFAULT 'dflt', b bytea, u uuid, bo boolean, da date,
      ti time, ts timestamp, tz timestamptz, j jsonb, e mood, ia integer[], ta text[], iv interval, bi bit(9));
    INSERT INTO t VALUES (1,2,1.5,2.25,0.1,'žluť "q"','\\x00ff','a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',true,'2020-01-01','12:34:56.5','2020-01-01 12:00:00.123456','2020-01-01 12:00:00+02',
      '{"a": [1]}','happy','{1,NULL}','{x,"y z"}','1 day',B'000000101');
    INSERT INTO t (id, s) VALUES (2, NULL)"""


def pg_run(run: Run, some: dict) -> None:
    names = variants(some)
    db = run.postgres("CREATE TABLE public.fence (id bigint PRIMARY KEY, i integer DEFAULT 1, n integer, b integer); INSERT INTO public.fence VALUES (1);" + PG)
    for variant, more in names.items():
        run.create(variant, run.postgres_config(**{"topic_prefix": f"{variant}_{run.tag}", "slot_name": f"{variant}_{run.tag}", "publication_name": f"{variant}_{run.tag}", **more}))
    for variant in names:
        run.until(lambda variant=variant: sum(len(run.read(name)) for name in run.topics(f"{variant}_{run.tag}")) >= 3, 60, f"rows of {variant}")

    run.settle(3)
    db.execute("UPDATE t SET n = 9.125, s = 'changed' WHERE id = 1; DELETE FROM t WHERE id = 2; UPDATE t SET id = 3; INSERT INTO t (id) VALUES (4)")
    for variant in names:
        run.until(lambda variant=variant: any(b"4" in (r["key"] or b"") + (r["value"] or b"") and b"dflt" in (r["value"] or b"") for name in run.topics(f"{variant}_{run.tag}") if "fence" not in name
                                              for r in run.read(name)), 60, f"the last row of {variant}")
    run.settle(1)
    run.record_topics(*(name for variant in names for name in run.topics(f"{variant}_{run.tag}") if "fence" not in name))
    without_clock(run)


@scenario
def pg_converters(run: Run):
    """Rows of many types without schemas, with decimals as numbers, with nulls kept, as texts of structs."""
    pg_run(run, CONVERTERS)


@scenario
def pg_chains(run: Run):
    """Rows of many types through chains: unwrapped, cast, renamed, keyed anew, routed, with fields and headers added."""
    pg_run(run, CHAINS)


MY = ("CREATE TABLE t (id INT PRIMARY KEY, i SMALLINT NOT NULL DEFAULT 7, n DECIMAL(8,3), d DOUBLE, s VARCHAR(20) DEFAULT 'dflt', b VARBINARY(9), bo BOOLEAN, da DATE, ti TIME(3), dt DATETIME(6),"
      " ts TIMESTAMP NULL, j JSON, e ENUM('sad','happy'), st SET('a','b'), bi BIT(9), y YEAR, u BIGINT UNSIGNED, p POINT, t6 TIME(6))",
      "INSERT INTO t VALUES (1,2,1.5,0.1,'žluť \"q\"',0x00FF,1,'2020-01-01','12:34:56.5','2020-01-01 12:00:00.123456','2020-01-01 12:00:00','{\"a\": [1]}','happy','a,b',b'101',2020,5,POINT(1,2),'01:02:03.000004')",
      "INSERT INTO t (id, s) VALUES (2, NULL)")


def my_run(run: Run, some: dict) -> None:
    names = variants(some)
    db = run.mysql(*MY)

    for variant, more in names.items():
        run.create(variant, config(run, variant, **{"include.schema.changes": "false", **more}), running=False)
    for variant in names:
        run.wait_state(run.name_of(variant), "RUNNING")
        run.until(lambda variant=variant: sum(len(run.read(name)) for name in run.topics(f"{variant}_{run.tag}.")) >= 2, 60, f"rows of {variant}")

    run.settle(3)
    execute(db, "UPDATE t SET n = 9.125, s = 'changed' WHERE id = 1", "DELETE FROM t WHERE id = 2", "UPDATE t SET id = 3", "INSERT INTO t (id) VALUES (4)")
    for variant in names:
        run.until(lambda variant=variant: any(b"4" in (r["key"] or b"") + (r["value"] or b"") and b"dflt" in (r["value"] or b"") for name in run.topics(f"{variant}_{run.tag}.")
                                              for r in run.read(name)), 60, f"the last row of {variant}")
    run.settle(1)
    run.record_topics(*(name for variant in names for name in run.topics(f"{variant}_{run.tag}.")))
    without_clock(run)


@scenario
def mysql_converters(run: Run):
    """Rows of many types without schemas, with decimals as numbers, with nulls kept, as texts of structs."""
    my_run(run, CONVERTERS)


@scenario
def mysql_chains(run: Run):
    """Rows of many types through chains: unwrapped, cast, renamed, keyed anew, routed, with fields and headers added."""
    my_run(run, CHAINS)
