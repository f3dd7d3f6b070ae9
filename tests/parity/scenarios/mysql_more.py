"""More MySQL source scenarios: handling modes, column rules, names, keys of every type, heartbeats, snapshots of a part."""

from mysql import FENCE, both_ways, config, execute, fence, note, record_history, record_tables, sort_tables, start, topic
from parity import Run, scenario


@scenario
def mysql_time_modes(run: Run):
    """Dates and times, their defaults too, as ISO texts, nanoseconds and adaptive microseconds."""
    both_ways(
        run,
        [
            "CREATE TABLE moments (id INT AUTO_INCREMENT PRIMARY KEY, d DATE, dt DATETIME, dt3 DATETIME(3), dt6 DATETIME(6), ts TIMESTAMP NULL,"
            " ts6 TIMESTAMP(6) NULL, t TIME, t3 TIME(3), t6 TIME(6), y YEAR)",
            "CREATE TABLE defaults (id INT AUTO_INCREMENT PRIMARY KEY, d DATE NOT NULL DEFAULT '1999-12-31', dt DATETIME DEFAULT '1999-12-31 23:59:59',"
            " dt6 DATETIME(6) DEFAULT '1969-12-31 23:59:59.123456', ts TIMESTAMP DEFAULT '1999-12-31 23:59:59', t TIME DEFAULT '12:34:56',"
            " t6 TIME(6) NOT NULL DEFAULT '23:59:59.000001', now TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)",
        ],
        [
            "INSERT INTO moments (d,dt,dt3,dt6,ts,ts6,t,t3,t6,y) VALUES"
            " ('2024-02-29','2024-02-29 12:34:56','2024-02-29 12:34:56.7','2024-02-29 12:34:56.000001','2024-02-29 12:34:56','2024-02-29 12:34:56.5',"
            "'12:34:56','00:00:00.001','23:59:59.999999',2024),"
            " ('1969-12-31','1969-12-31 23:59:59','1969-12-31 23:59:59.999','1969-12-31 23:59:59.999999','1970-01-01 00:00:01','1999-01-01 00:00:00.1',"
            "'00:00:00','12:00:00','00:00:00.000001',1901)",
            "INSERT INTO moments () VALUES ()",
            "INSERT INTO defaults (now) VALUES (NULL)",
        ],
        ["UPDATE moments SET dt6='2024-01-01', t6='01:00:00' WHERE id=1", "DELETE FROM moments WHERE id=2"],
        ["moments", "defaults"],
        {
            "iso": {"time.precision.mode": "isostring"},
            "nano": {"time.precision.mode": "nanoseconds"},
            "adaptive": {"time.precision.mode": "adaptive_time_microseconds"},
        },
    )


@scenario
def mysql_column_rules(run: Run):
    """Masks, hashes and truncation on columns of many types, on keys, defaults, nulls; lengths and types in schemas."""
    columns = (
        "id INT AUTO_INCREMENT PRIMARY KEY, c CHAR(6), v VARCHAR(12) DEFAULT 'topsecret', t TEXT NOT NULL, j JSON, e ENUM('sad','happy') DEFAULT 'sad',"
        " s SET('a','b'), i INT, n DECIMAL(7,2), d DATE, b VARBINARY(9), nn VARCHAR(20) NOT NULL DEFAULT 'none', l LONGTEXT, bit BIT(9)"
    )
    row = "(c,v,t,j,e,s,i,n,d,b,nn,l,bit) VALUES ('ab','žluťoučk','a 😀 longer text','{\"a\": 1}','happy','a,b',12345,1.5,'2020-01-01',0xDEADBEEF00,'given',REPEAT('é',40),b'1')"
    tables = ["masked", "hashed", "cut", "both_rules", "keyed"]
    rows = [f"INSERT INTO {table} {row}" for table in tables[:3]] + [f"INSERT INTO {table} (v,t) VALUES (NULL,'')" for table in tables[:3]]
    at = f"db_{run.tag}"
    both_ways(
        run,
        [
            *(f"CREATE TABLE {table} ({columns})" for table in tables[:3]),
            "CREATE TABLE both_rules (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20), b VARCHAR(20) COMMENT 'what it is', c VARCHAR(20))",
            "CREATE TABLE keyed (k VARCHAR(20) PRIMARY KEY, v TEXT)",
        ],
        [*rows, "INSERT INTO both_rules (a,b,c) VALUES ('first value','second value','third value')"],
        [
            "INSERT INTO keyed VALUES ('the key','v')",
            "UPDATE keyed SET k='other key'",
            "UPDATE masked SET t='changed' WHERE id=1",
            "DELETE FROM hashed",
        ],
        tables,
        {
            "my": {
                "column.mask.with.3.chars": rf"{at}\.masked\.(c|v|t|e|nn|l),{at}.both_rules.a,{at}.keyed.k",
                "column.mask.with.0.chars": f"{at}.keyed.v",
                "column.mask.hash.v2.SHA-256.with.salt.salt": rf"{at}\.hashed\.(c|v|t|e|nn|l),{at}.both_rules.b",
                "column.mask.hash.MD5.with.salt.CzQMA0cB5K": rf"{at}\.both_rules\.c",
                "column.truncate.to.4.chars": rf"{at}\.cut\.(c|v|t|e|nn|l),{at}.both_rules.a",
                "column.propagate.source.type": rf"{at}\.(both_rules|cut)\..*",
                "include.schema.comments": True,
            }
        },
    )


@scenario
def mysql_propagate_types(run: Run):
    """Names, lengths and scales of the types of every column in the schemas."""
    both_ways(
        run,
        [
            "CREATE TABLE every (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a TINYINT UNSIGNED, flag TINYINT(1), b BOOLEAN, z INT(6) UNSIGNED ZEROFILL, m MEDIUMINT,"
            " bit1 BIT, bit9 BIT(9), y YEAR, dec0 DECIMAL, d DECIMAL(7,3), u DECIMAL(9,4) UNSIGNED, f FLOAT, f7 FLOAT(7,4), f30 FLOAT(30), g DOUBLE, gm DOUBLE(20,8),"
            " r REAL, c CHAR(5), v VARCHAR(40), nc NCHAR(5), nv NATIONAL VARCHAR(7), tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, tx9 TEXT(9), bb BINARY(4),"
            " vb VARBINARY(9), tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB, e ENUM('a','b'), s SET('a','b'), j JSON, da DATE, t TIME, t3 TIME(3), dt DATETIME,"
            " dt6 DATETIME(6), ts TIMESTAMP NULL, ts3 TIMESTAMP(3) NULL, p POINT, ge GEOMETRY, bin VARCHAR(5) CHARACTER SET binary, lg LONG, lvb LONG VARBINARY,"
            " i1 INT1, i8 INT8, mi MIDDLEINT, dp DOUBLE PRECISION, nu NUMERIC(5,1), cv CHARACTER VARYING(9))",
        ],
        ["INSERT INTO every () VALUES ()"],
        [],
        ["every"],
        {
            "all": {"column.propagate.source.type": ".*"},
            "some": {"datatype.propagate.source.type": r".+\.(VARCHAR|INT UNSIGNED ZEROFILL|DECIMAL.*|TINYINT)"},
        },
    )


@scenario
def mysql_names(run: Run):
    """Tables and columns with odd names, invisible, generated and reserved ones; adjustment of names for Avro; another delimiter."""
    both_ways(
        run,
        [
            "CREATE TABLE `odd-name` (`the id` INT AUTO_INCREMENT PRIMARY KEY, `a-b` INT, `9lives` INT, `ünï` INT, `select` VARCHAR(5), `dot.ted` INT, `q``uote` INT, `UPPER` INT)",
            "CREATE TABLE `Mixed$Case` (id INT AUTO_INCREMENT PRIMARY KEY, seen INT, hidden INT INVISIBLE DEFAULT 4, twice INT GENERATED ALWAYS AS (seen * 2) STORED,"
            " thrice INT AS (seen * 3) VIRTUAL)",
        ],
        [
            "INSERT INTO `odd-name` (`a-b`,`9lives`,`ünï`,`select`,`dot.ted`,`q``uote`,`UPPER`) VALUES (1,2,3,'s',5,6,7)",
            "INSERT INTO `Mixed$Case` (seen) VALUES (1)",
        ],
        ["UPDATE `odd-name` SET `a-b`=9 WHERE `the id`=1", "UPDATE `Mixed$Case` SET hidden=5, seen=6 WHERE id=1"],
        ["odd-name", "Mixed$Case"],
        {
            "my": {},
            "avro": {"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"},
            "unicode": {"schema.name.adjustment.mode": "avro_unicode", "field.name.adjustment.mode": "avro_unicode"},
        },
    )
    note(
        run, "topics", [name.replace(run.tag, "TAG") for prefix in ("my", "avro", "unicode") for name in run.topics(f"{prefix}_{run.tag}")]
    )


@scenario
def mysql_key_types(run: Run):
    """Keys of many types, keys out of unique indexes, prefixes of columns in keys."""
    tables = {
        "k_dec": "k DECIMAL(6,2) PRIMARY KEY",
        "k_date": "k DATE PRIMARY KEY",
        "k_dt": "k DATETIME(6) PRIMARY KEY",
        "k_ts": "k TIMESTAMP PRIMARY KEY",
        "k_bin": "k BINARY(4) PRIMARY KEY",
        "k_enum": "k ENUM('x','y') PRIMARY KEY",
        "k_big": "k BIGINT UNSIGNED PRIMARY KEY",
        "k_char": "k CHAR(3) PRIMARY KEY",
        "k_year": "k YEAR PRIMARY KEY",
        "k_time": "k TIME(3) PRIMARY KEY",
    }
    values = {
        "k_dec": "1.50",
        "k_date": "'2020-01-01'",
        "k_dt": "'2020-01-01 00:00:00.5'",
        "k_ts": "'2020-01-01 00:00:00'",
        "k_bin": "0x0102",
        "k_enum": "'y'",
        "k_big": "18446744073709551615",
        "k_char": "'é'",
        "k_year": "2024",
        "k_time": "'-01:02:03.5'",
    }
    db = run.mysql(
        *FENCE,
        *(f"CREATE TABLE {name} ({column}, v INT DEFAULT 1)" for name, column in tables.items()),
        "CREATE TABLE uniq2 (a INT, b INT NOT NULL, c INT NOT NULL, UNIQUE KEY n (a), UNIQUE KEY bc (b, c), UNIQUE KEY cc (c))",
        "CREATE TABLE cut_key (k VARCHAR(30), v INT, PRIMARY KEY (k(3)))",
        *(f"INSERT INTO {name} (k) VALUES ({values[name]})" for name in tables),
        "INSERT INTO uniq2 VALUES (1,2,3)",
        "INSERT INTO cut_key VALUES ('abcdef',1)",
    )
    start(run, my={})
    execute(
        db,
        *(f"UPDATE {name} SET v=2" for name in tables),
        "UPDATE uniq2 SET a=4",
        "UPDATE uniq2 SET c=5",
        "UPDATE cut_key SET v=3",
        *(f"DELETE FROM {name}" for name in tables),
        "DELETE FROM uniq2",
    )
    fence(run, db)
    record_tables(run, *tables, "uniq2", "cut_key")


@scenario
def mysql_snapshot_parts(run: Run):
    """Statements that choose rows, tables that are left out, an order by size, structures only of what is captured."""
    at = f"db_{run.tag}"
    db = run.mysql(
        *FENCE,
        "CREATE TABLE a (id INT PRIMARY KEY, gone INT)",
        "CREATE TABLE b (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE c (id INT PRIMARY KEY)",
        "CREATE TABLE aside (id INT PRIMARY KEY)",
        "INSERT INTO a VALUES (1,0),(2,1),(3,0)",
        "INSERT INTO b VALUES (1,5),(2,6)",
        "INSERT INTO c VALUES (1)",
    )
    start(
        run,
        chosen={
            "snapshot.select.statement.overrides": f"{at}.a,{at}.b",
            f"snapshot.select.statement.overrides.{at}.a": f"SELECT * FROM {at}.a WHERE gone=0 ORDER BY id DESC",
            f"snapshot.select.statement.overrides.{at}.b": f"SELECT * FROM {at}.b WHERE v > 5",
        },
        few={"snapshot.include.collection.list": f"{at}.c,{at}.fence"},
        part={"table.exclude.list": f"{at}.aside", "schema.history.internal.store.only.captured.tables.ddl": True},
        based={
            "snapshot.mode": "configuration_based",
            "snapshot.mode.configuration.based.snapshot.data": True,
            "snapshot.mode.configuration.based.snapshot.schema": True,
            "snapshot.mode.configuration.based.start.stream": True,
        },
    )
    execute(
        db,
        "INSERT INTO a VALUES (4,1)",
        "UPDATE b SET v=0",
        "INSERT INTO c VALUES (2)",
        "ALTER TABLE aside ADD v INT",
        "CREATE TABLE later (id INT PRIMARY KEY)",
        "INSERT INTO later VALUES (1)",
        f"ALTER DATABASE {at} CHARACTER SET latin1",
        "CREATE TABLE after (id INT PRIMARY KEY, v CHAR(3))",
        "INSERT INTO after VALUES (1,'é')",
        "DROP TABLE aside, c",
        "CREATE VIEW seen AS SELECT id FROM a",
    )
    fence(run, db, "chosen", "few", "part", "based")
    record_tables(run, "a", "b", "c", "later", "after", variants=["chosen", "few", "part", "based"])
    record_history(run, f"history_part_{run.tag}", f"history_few_{run.tag}", f"part_{run.tag}", f"history_based_{run.tag}")
    sort_tables(run)


@scenario
def mysql_topic_names(run: Run):
    """Another delimiter, another heartbeat prefix, another transaction topic; no schema changes; no headers."""
    db = run.mysql(*FENCE, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1)")
    names = {
        v: run.create(v, config(run, v, **more), running=False)
        for v, more in {
            "dash": {
                "topic.delimiter": "-",
                "include.schema.changes": False,
                "extended.headers.enabled": False,
                "heartbeat.interval.ms": 500,
                "topic.heartbeat.prefix": f"beat_{run.tag}",
                "provide.transaction.metadata": True,
                "topic.transaction": "tx",
            },
            "plain": {"tombstones.on.delete": False, "provide.transaction.metadata": False},
        }.items()
    }
    for name in names.values():
        run.wait_state(name, "RUNNING")
    run.wait_records(f"dash_{run.tag}-db_{run.tag}-t", 1)
    run.wait_records(topic(run, "t", "plain"), 1)
    execute(db, "INSERT INTO t VALUES (2,2)", "UPDATE t SET v=3 WHERE id=1", "DELETE FROM t WHERE id=2")
    fence(run, db, "plain")
    run.wait_records(f"dash_{run.tag}-db_{run.tag}-t", 5)
    note(
        run,
        "topics",
        sorted({name.replace(run.tag, "TAG") for prefix in ("dash", "plain", "beat") for name in run.topics(f"{prefix}_{run.tag}")}),
    )
    run.record_topics(f"dash_{run.tag}-db_{run.tag}-t", topic(run, "t", "plain"))


@scenario
def mysql_current_time_defaults(run: Run):
    """Columns whose default is the current time, with and without ON UPDATE, read from a snapshot and from statements in the stream."""
    columns = (
        "id INT PRIMARY KEY, a TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP, b TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
        " c TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, d DATETIME DEFAULT CURRENT_TIMESTAMP, e DATETIME NULL DEFAULT NOW() ON UPDATE NOW(),"
        " f DATETIME(3) NOT NULL DEFAULT NOW(3) ON UPDATE NOW(3), g DATETIME ON UPDATE CURRENT_TIMESTAMP, h DATE DEFAULT (CURRENT_DATE),"
        " i TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6), j TIMESTAMP NOT NULL DEFAULT '2020-01-01 00:00:00' ON UPDATE CURRENT_TIMESTAMP, k DATETIME NULL ON UPDATE NOW() DEFAULT NOW()"
    )
    row = "(id,a,b,c,d,e,f,g,h,i,j,k) VALUES (%d,NULL,NULL,'2020-01-01','2020-01-01',NULL,'2020-01-01',NULL,NULL,'2020-01-01','2020-01-01',NULL)"
    db = run.mysql(*FENCE, f"CREATE TABLE old ({columns})", f"INSERT INTO old {row % 1}")
    start(run, my={}, iso={"time.precision.mode": "isostring"}, connect={"time.precision.mode": "connect"})
    execute(
        db,
        f"INSERT INTO old {row % 2}",
        f"CREATE TABLE young ({columns})",
        f"INSERT INTO young {row % 1}",
        "ALTER TABLE young ADD l TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, ADD m DATETIME DEFAULT CURRENT_TIMESTAMP",
        f"INSERT INTO young {row % 2}",
    )
    fence(run, db, "my", "iso", "connect")
    record_tables(run, "old", variants=["my", "iso", "connect"])
    record_history(run, f"history_my_{run.tag}")
    for variant in ("my", "iso", "connect"):
        run.note_settled(f"rows of young in {variant}", lambda variant=variant: len(run.read(topic(run, "young", variant))))


@scenario
def mysql_excluded_keys(run: Run):
    """Columns of keys that are left out of values: one of two, the only one, all columns."""
    at = f"db_{run.tag}"
    db = run.mysql(*FENCE, "CREATE TABLE one (id INT PRIMARY KEY, v INT)", "CREATE TABLE two (a INT, b VARCHAR(5), v INT, PRIMARY KEY (a, b))", "CREATE TABLE bare (id INT PRIMARY KEY)",
                   "INSERT INTO bare VALUES (1)")
    start(run, my={"column.exclude.list": f"{at}.one.id,{at}.two.a,{at}.bare.id"}, kept={"column.include.list": f"{at}.one.v,{at}.two.b,{at}.fence.id"})
    execute(db, "INSERT INTO one VALUES (5,5)", "UPDATE one SET v=6", "UPDATE one SET id=6", "DELETE FROM one", "INSERT INTO bare VALUES (2)", "DELETE FROM bare",
            "INSERT INTO two VALUES (7,'y',7)", "UPDATE two SET a=8 WHERE b='y'", "DELETE FROM two WHERE b='y'")
    fence(run, db, "my", "kept")
    record_tables(run, "one", "two", "bare", variants=["my", "kept"])
