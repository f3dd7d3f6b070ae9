"""MariaDB source scenarios: what MySQL's cannot say. Run with MYSQL_HOST and MYSQL_PORT of a MariaDB server and its class in MYSQL_CONNECTOR."""
from mysql import FENCE, both_ways, execute, fence, note, note_queries, record_history, record_tables, sort_tables, start, topic
from parity import Run, scenario


@scenario
def mariadb_types(run: Run):
    """JSON as text, numbers, dates, geometries and compressed columns, in the snapshot and the binlog."""
    both_ways(run, [
        "CREATE TABLE own (id INT AUTO_INCREMENT PRIMARY KEY, j JSON, jn JSON NOT NULL, n INT(6) UNSIGNED ZEROFILL, b BIT(17), y YEAR,"
        " de BIGINT UNSIGNED NOT NULL DEFAULT 18446744073709551615, d DECIMAL(65,30), f FLOAT, g DOUBLE, e ENUM('a','x,y') DEFAULT 'a',"
        " s SET('p','q'), db BIT(4) DEFAULT b'1010', dd DECIMAL(8,3) DEFAULT 12.345, ex INT DEFAULT (1+1), dn DATETIME DEFAULT current_timestamp(),"
        " up TIMESTAMP(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3))",
        "CREATE TABLE shapes (id INT AUTO_INCREMENT PRIMARY KEY, p POINT, l LINESTRING, g GEOMETRY)",
        "CREATE TABLE ids (id INT AUTO_INCREMENT PRIMARY KEY, u UUID)",
        "CREATE TABLE moments (id INT AUTO_INCREMENT PRIMARY KEY, d DATE, dt DATETIME, dt6 DATETIME(6), ts TIMESTAMP NULL, ts6 TIMESTAMP(6) NULL, t TIME, t6 TIME(6))",
    ], [
        """INSERT INTO own (j,jn,n,b,y,d,f,g,e,s,dn,up) VALUES ('{"b": 1,  "é": "日本 😀"}','[1, 2]',42,b'10000000000000001',1999,-0.5,1.5,0.1,'x,y','p,q','1999-12-31','1999-12-31'),
        (NULL,'null',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'1999-12-31')""",
        "INSERT INTO shapes (p,l,g) VALUES (ST_GeomFromText('POINT(1 -2.5)'),ST_GeomFromText('LINESTRING(0 0,1 1,2 3)'),ST_GeomFromText('POINT(3 4)',3857)),(NULL,NULL,NULL)",
        "INSERT INTO ids (u) VALUES ('123e4567-e89b-12d3-a456-426655440000'),('00000000-0000-0000-0000-000000000000'),(NULL)",
        "INSERT INTO moments (d,dt,dt6,ts,ts6,t,t6) VALUES ('1000-01-01','9999-12-31 23:59:59','1969-12-31 23:59:59.999999','1970-01-01 00:00:01','2038-01-19 03:14:07.5','-838:59:59','838:59:58.999999')",
    ], ["UPDATE own SET j='[]', up='1999-12-31 00:00:01.5' WHERE id=1", "UPDATE ids SET u=NULL WHERE id=1"],
        ["own", "shapes", "ids", "moments"], {"my": {}, "more": {"decimal.handling.mode": "string", "bigint.unsigned.handling.mode": "precise",
                                                                "binary.handling.mode": "hex", "time.precision.mode": "connect",
                                                                "table.include.list": f"db_{run.tag}.own,db_{run.tag}.fence"}})


@scenario
def mariadb_ddl(run: Run):
    """Forms of DDL that only MariaDB has, with rows behind each."""
    db = run.mysql(*FENCE, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10))", "INSERT INTO t VALUES (1,'a')")
    start(run, my={})
    execute(db, "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT, ADD COLUMN IF NOT EXISTS a VARCHAR(99)", "INSERT INTO t VALUES (2,'b',2)",
            "ALTER TABLE t DROP COLUMN IF EXISTS nothing, DROP COLUMN IF EXISTS b", "INSERT INTO t VALUES (3,'c')",
            "ALTER TABLE IF EXISTS t MODIFY COLUMN IF EXISTS a VARCHAR(20) NOT NULL DEFAULT 'z'", "INSERT INTO t (id) VALUES (4)",
            "ALTER TABLE t ADD p INT AS (id * 2) PERSISTENT, ADD i INT INVISIBLE DEFAULT 5", "INSERT INTO t (id) VALUES (5)",
            "SET STATEMENT max_statement_time=100 FOR ALTER TABLE t ADD k INT", "INSERT INTO t (id,k) VALUES (6,6)",
            "CREATE SEQUENCE s START WITH 10", "DROP SEQUENCE s",
            "CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(5)) ENGINE=InnoDB", "INSERT INTO u VALUES (1,'x')",
            "CREATE INDEX IF NOT EXISTS by_v ON u (v)", "DROP INDEX IF EXISTS by_v ON u", "DROP TABLE IF EXISTS u, never_there",
            "TRUNCATE TABLE t")
    fence(run, db)
    note(run, "topics", [name.replace(run.tag, "TAG") for name in run.topics(f"my_{run.tag}.")])
    run.record_topics(*[name for name in run.topics(f"my_{run.tag}.") if not name.endswith(".fence")])
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}")
    sort_tables(run)


@scenario
def mariadb_query(run: Run):
    """include.query with annotated rows, and without."""
    db = run.mysql(*FENCE, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO t VALUES (1,'old')")
    start(run, my={"include.query": True}, off={})
    execute(db, "SET binlog_annotate_row_events=OFF", "INSERT INTO t VALUES (2,'unlogged')", "SET binlog_annotate_row_events=ON",
            "INSERT INTO t VALUES (3,'a'),(4,'é')", "BEGIN", "/* note */ UPDATE t  SET v='two\nlines' WHERE id IN (3,4)", "DELETE FROM t WHERE id=1", "COMMIT",
            "DELETE FROM t WHERE id=2")
    fence(run, db, "my", "off")
    for variant in ("my", "off"):
        note_queries(run, f"queries of {variant}", variant)
    record_tables(run, "t", variants=["my", "off"])
