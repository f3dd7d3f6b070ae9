"""PostgreSQL: values at their edges in every mode, signals through files."""
import json
import pathlib
import tempfile

from parity import Run, scenario
from postgres_more import fence, note, start, topic


@scenario
def pg_edge_values(run: Run):
    """Numbers without end, intervals, hstore, money, ranges, bits, times at their edges, in the modes that show them otherwise."""
    columns = ("n numeric, n2 numeric(6,2), n0 numeric(5), f real, d double precision, iv interval, iv2 interval day to second(3), iv3 interval, h hstore, m money, t time(0), t6 time, tz timetz, ts timestamp(3), tt timestamptz, dt date,"
               " r int8range, nr numrange, tr tstzrange, dr daterange, mr int4multirange, x xml, b bytea, bi bit varying, o oid, c \"char\", p point, ma macaddr8, ci cidr, js json, tv tsvector, na numeric[], ia interval[], ha hstore[], ba bytea[], ta timestamptz[], ja jsonb[], ua uuid[], ca char(3)[], ma2 money[]")
    rows = [
        "('NaN', 'NaN', 0, 'NaN', '-Infinity', '-1 year 2 mons -3 days 04:05:06.789', '1 day 00:00:01.2345', '00:00:01.235', 'a=>1,b=>NULL,\"c d\"=>\"e\\\"f\"', '-1234.56', '24:00:00', '23:59:59.999999', '12:00:00+05:30', '1969-12-31 23:59:59.9996', 'infinity', '-infinity',"
        " '[1,)', '(,1.5]', '[2020-01-01 00:00:00+00,infinity)', 'empty', '{[1,3),[5,7)}', '<a>1</a>', '\\x', '10101', 4294967295, 'x', '(1.5,-2)', '08:00:2b:01:02:03:04:05', '10.0.0.0/8', '{\"a\" : 1, \"a\":2}', 'a:1 b:2A', '{1.5,0,NULL}', '{1 day,NULL}', '{\"a=>1\"}', '{\"\\\\x01\",NULL}', '{infinity,NULL,2020-01-01 00:00:00+00}', '{\"{\\\"a\\\": null}\",NULL}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{a,bc}', '{1.5,NULL}')",
        "('Infinity', -9999.99, -99999, 1e-45, 1.7976931348623157e308, '178000000 years', '00:00:00', '-00:00:01.235', '', '92233720368547758.07', '00:00:00', '00:00:00.000001', '00:00:00-12', '0001-01-01 00:00:00', '2020-06-30 12:00:00.123456+02', '5000-01-01',"
        " '[-9223372036854775808,9223372036854775807)', '[1e10,1e20)', '(-infinity,2020-01-01)', '[2020-01-01,2020-02-01]', '{}', NULL, '\\xdeadbeef', '', 0, '', '(Infinity,NaN)', '08:00:2b:01:02:03', '::1/128', 'null', '', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')",
        "(123456789012345678901234567890.123456789, 0.005, NULL, 3.4028235e38, 2.2250738585072014e-308, '-00:00:00.000001', NULL, '5.1 seconds', 'x=>y', 0, NULL, NULL, NULL, '294276-12-31 23:59:59', '4713-01-01 00:00:00+00 BC', '1000-02-28',"
        " NULL, 'empty', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, '{{1,2},{3,4}}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    ]  # fmt: skip
    db = start(run, f"CREATE EXTENSION IF NOT EXISTS hstore; CREATE TABLE v (id serial PRIMARY KEY, {columns});" + "".join(f"INSERT INTO v VALUES (DEFAULT, {row[1:]};" for row in rows),
               pg={}, text={"decimal_handling_mode": "string", "interval_handling_mode": "string", "hstore_handling_mode": "map", "time_precision_mode": "connect", "money_fraction_digits": "3", "binary_handling_mode": "base64"},
               real={"decimal_handling_mode": "double", "time_precision_mode": "adaptive_time_microseconds", "include_unknown_datatypes": "true", "binary_handling_mode": "hex", "money_fraction_digits": "0"})  # fmt: skip
    for row in rows:
        db.execute(f"INSERT INTO v VALUES (DEFAULT, {row[1:]}")
    fence(run, db, "pg", "text", "real")
    run.record_topics(*(topic(run, "public.v", variant) for variant in ("pg", "text", "real")))


@scenario
def pg_signal_channels(run: Run):
    """Signals through a file and a Kafka topic; a file that is emptied; notifications to a topic and the log; ids that repeat."""
    path = pathlib.Path(tempfile.gettempdir()) / f"signals-{run.tag}.json"
    path.write_text("")
    run.create_topic(f"signals_{run.tag}")
    run.create_topic(f"notes_{run.tag}")
    db = start(run, "CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 5); CREATE TABLE dbz_signal (id varchar(64) PRIMARY KEY, type varchar(32), data varchar(2048))",
               pg={"snapshot_mode": "no_data", "signal_enabled_channels": "source,file,kafka", "signal_file": str(path), "signal_poll_interval_ms": "300", "signal_data_collection": "public.dbz_signal",
                   "signal_kafka_topic": f"signals_{run.tag}", "signal_kafka_bootstrap_servers": run.bootstrap, "notification_enabled_channels": "sink,log", "notification_sink_topic_name": f"notes_{run.tag}",
                   "incremental_snapshot_chunk_size": "2"})  # fmt: skip
    line = lambda **signal: json.dumps(signal) + "\n"
    path.write_text("no json\n" + line(id="1", type="log", data={"message": "hello {}"}) + line(id="2", type="unknown", data={}) + line(id="3", type="execute-snapshot", data={"data-collections": ["public.t"], "type": "INCREMENTAL"}) + line(type="log", data={"message": "no id"}))
    run.wait_records(topic(run, "public.t"), 5)
    fence(run, db, "pg")
    note(run, "the file afterwards", path.read_text())
    run.produce(f"signals_{run.tag}", {"id": "k1", "type": "execute-snapshot", "data": {"data-collections": ["public.t"], "type": "INCREMENTAL", "additional-conditions": [{"data-collection": "public.t", "filter": "id > 3"}]}}, key=f"pg_{run.tag}")
    run.wait_records(topic(run, "public.t"), 7)
    fence(run, db, "pg")
    run.record_topics(topic(run, "public.t"), f"notes_{run.tag}", *(name for name in run.topics(f"pg_{run.tag}.public.dbz")))
