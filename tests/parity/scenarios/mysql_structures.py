"""Still more MySQL source scenarios: schema changes, keys that change, renames, row images, handling modes, names."""
from mysql import FENCE, both_ways, execute, fence, note, record_history, record_tables, sort_tables, start
from parity import Run, scenario


@scenario
def mysql_changed_keys(run: Run):
    """Primary keys that are dropped, added, widened and reordered; unique keys that come and go; message.key.columns beside them."""
    db = run.mysql(*FENCE, "CREATE TABLE t (a INT, b INT NOT NULL, c VARCHAR(5) NOT NULL, PRIMARY KEY (a))", "INSERT INTO t VALUES (1,1,'x')",
                   "CREATE TABLE u (a INT NOT NULL, b INT)", "INSERT INTO u VALUES (1,1)")
    start(run, my={}, own={"message.key.columns": rf"db_{run.tag}\.t:c"})
    execute(db, "ALTER TABLE t DROP PRIMARY KEY", "INSERT INTO t VALUES (2,2,'y')", "ALTER TABLE t ADD PRIMARY KEY (b, a)", "INSERT INTO t VALUES (3,3,'z')", "UPDATE t SET b=4 WHERE a=3",
            "ALTER TABLE t DROP PRIMARY KEY, ADD UNIQUE KEY by_c (c)", "UPDATE t SET c='w' WHERE a=3", "ALTER TABLE t DROP KEY by_c", "DELETE FROM t WHERE a=3",
            "ALTER TABLE t ADD CONSTRAINT pk PRIMARY KEY USING BTREE (c(2) DESC)", "DELETE FROM t WHERE a=2", "ALTER TABLE t CHANGE c d VARCHAR(9) NOT NULL", "UPDATE t SET d='v'",
            "CREATE UNIQUE INDEX one ON u (a)", "UPDATE u SET b=2", "CREATE UNIQUE INDEX two ON u (a, b)", "UPDATE u SET b=3", "DROP INDEX one ON u", "UPDATE u SET b=4",
            "ALTER TABLE u MODIFY b INT NOT NULL", "UPDATE u SET b=5", "ALTER TABLE u ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST", "UPDATE u SET b=6", "DELETE FROM u")
    fence(run, db, "my", "own")
    record_tables(run, "t", "u", variants=["my", "own"])
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}")


@scenario
def mysql_renamed_tables(run: Run):
    """Tables renamed into what is captured and out of it, swapped, moved; a filter that names the new name only."""
    db = run.mysql(*FENCE, "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO a VALUES (1,'a')", "CREATE TABLE b (id INT PRIMARY KEY, w INT)", "INSERT INTO b VALUES (1,2)",
                   "CREATE TABLE hidden (id INT PRIMARY KEY, z INT)", "INSERT INTO hidden VALUES (1,3)")
    at = f"db_{run.tag}"
    start(run, my={}, some={"table.include.list": f"{at}.a,{at}.seen,{at}.fence"},
          less={"table.include.list": f"{at}.a,{at}.seen,{at}.fence", "schema.history.internal.store.only.captured.tables.ddl": True})
    execute(db, "RENAME TABLE a TO tmp, b TO a, tmp TO b", "INSERT INTO a VALUES (2,5)", "INSERT INTO b VALUES (2,'b')",
            "RENAME TABLE hidden TO seen", "INSERT INTO seen VALUES (2,4)", "ALTER TABLE seen RENAME AS hidden, ADD y INT", "INSERT INTO hidden VALUES (3,4,5)",
            "ALTER TABLE hidden RENAME seen", "INSERT INTO seen VALUES (4,5,6)", "CREATE TABLE c LIKE a", "RENAME TABLE c TO d", "DROP TABLE d",
            "ALTER TABLE a ADD KEY k (w)", "ALTER TABLE a RENAME KEY k TO kk", "INSERT INTO a VALUES (3,6)")
    fence(run, db, "my")
    fence(run, db, "some")
    run.record_topics(*(name for variant in ("my", "some") for name in run.topics(f"{variant}_{run.tag}.") if "fence" not in name))
    record_history(run, f"history_my_{run.tag}", f"some_{run.tag}", f"history_less_{run.tag}")
    note(run, "state of less", run.status(run.name_of("less"))["tasks"][0]["state"])
    sort_tables(run)


@scenario
def mysql_more_ddl(run: Run):
    """DDL of odd spellings: comments, quotes, hints, checks, foreign keys, partitions, options, several at once."""
    db = run.mysql(*FENCE, "CREATE TABLE base (id INT PRIMARY KEY, v INT)", "INSERT INTO base VALUES (1,1)")
    start(run, my={"include.schema.comments": True, "column.propagate.source.type": ".*"})
    execute(
        db,
        "/* before */ CREATE /* in */ TABLE `q``t` (-- a comment\n `a``b` INT PRIMARY KEY # another\n , `select` VARCHAR(9) DEFAULT 'x''y\\n' COMMENT 'it''s; here', c CHAR DEFAULT 'c')",
        "INSERT INTO `q``t` (`a``b`) VALUES (1)",
        "create table if not exists lower_case (Id int unsigned not null auto_increment primary key, `Ts` timestamp(3) null default null, b bit(3) default b'101', check (b > 0), constraint chk check (b < 9) not enforced) auto_increment=7 row_format=dynamic",
        "INSERT INTO lower_case () VALUES ()",
        "CREATE TABLE child (id INT NOT NULL, base_id INT, w DOUBLE(8,2) UNSIGNED ZEROFILL DEFAULT 1.5, CONSTRAINT pk PRIMARY KEY (id), CONSTRAINT fk FOREIGN KEY (base_id) REFERENCES base (id) ON DELETE SET NULL ON UPDATE CASCADE, INDEX (base_id), FULLTEXT KEY ft (name), name TEXT)",
        "INSERT INTO child VALUES (1,1,2,'n')", "UPDATE base SET id=2", "INSERT INTO child (id, base_id) VALUES (2,2)",
        "ALTER TABLE child DROP FOREIGN KEY fk, DROP INDEX base_id, ADD COLUMN (x TINYINT(1) DEFAULT 1, y DECIMAL(10) DEFAULT 5), ALGORITHM=COPY, LOCK=SHARED",
        "INSERT INTO child (id) VALUES (3)",
        "ALTER TABLE child ADD COLUMN z VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin NULL DEFAULT 'é' AFTER id, MODIFY COLUMN y BIGINT FIRST, CHANGE x xx BOOL NOT NULL DEFAULT FALSE AFTER y",
        "INSERT INTO child (id) VALUES (4)",
        "ALTER TABLE child ALTER COLUMN z SET DEFAULT ('f'), ALTER y SET INVISIBLE, COMMENT 'changed', ENGINE=InnoDB, CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "INSERT INTO child (id,y) VALUES (5,5)",
        "CREATE TABLE ranged (id INT, d DATE, PRIMARY KEY (id, d)) PARTITION BY RANGE (YEAR(d)) (PARTITION p0 VALUES LESS THAN (2000), PARTITION p1 VALUES LESS THAN MAXVALUE)",
        "INSERT INTO ranged VALUES (1,'1999-01-01'),(2,'2020-01-01')", "ALTER TABLE ranged REORGANIZE PARTITION p1 INTO (PARTITION p1 VALUES LESS THAN (2030), PARTITION p2 VALUES LESS THAN MAXVALUE)",
        "ALTER TABLE ranged TRUNCATE PARTITION p0", "ALTER TABLE ranged DROP PARTITION p1", "INSERT INTO ranged VALUES (3,'2040-01-01')", "ALTER TABLE ranged REMOVE PARTITIONING",
        "CREATE TABLE copied AS SELECT * FROM child", "UPDATE copied SET name='c' WHERE id=1", "CREATE TABLE liked (LIKE child)", "INSERT INTO liked (id) VALUES (1)",
        "CREATE TEMPORARY TABLE tmp (id INT)", "INSERT INTO tmp VALUES (1)", "DROP TEMPORARY TABLE tmp",
        "CREATE TABLE gen (a INT, b INT AS (a+1), c INT GENERATED ALWAYS AS (a*2) STORED UNIQUE, d JSON DEFAULT (JSON_ARRAY()), e VARCHAR(36) DEFAULT (UUID()), f INT DEFAULT (1+1), PRIMARY KEY (a))",
        "INSERT INTO gen (a,e) VALUES (1,'e')",
        "ALTER TABLE gen DROP b, MODIFY c INT GENERATED ALWAYS AS (a*3) STORED", "UPDATE gen SET a=2",
        "LOCK TABLES gen WRITE", "UNLOCK TABLES", "FLUSH TABLES gen", "ALTER TABLE gen DISABLE KEYS", "ALTER TABLE gen ORDER BY a", "ALTER TABLE gen AUTO_INCREMENT 5", "ALTER TABLE gen FORCE",
        "CREATE TABLE types (a INT(11), b INTEGER(3) SIGNED, c DEC(5), d NUMERIC(6,2), e FLOAT(5), f DOUBLE PRECISION, g CHARACTER(3), h CHAR VARYING(4), i NATIONAL CHAR(5), j NVARCHAR(6), k LONG VARCHAR, l TEXT(10), m BLOB(300), n BOOL, o YEAR(4), p TIME(2), q DATETIME(1), r SERIAL, s INT2, t FLOAT8, u VARCHAR(3) BINARY, w VARCHAR(3) CHARSET ucs2, x TINYTEXT COLLATE utf8mb4_bin, y ENUM('a','b') CHARACTER SET latin1, z SET('x') NOT NULL)",
        "INSERT INTO types (a,z) VALUES (1,'x')", "DROP TABLE types, gen, liked, copied CASCADE")
    fence(run, db)
    names = [name for name in run.topics(f"my_{run.tag}.") if "fence" not in name]
    note(run, "topics", [name.replace(run.tag, "TAG") for name in names])
    run.record_topics(*names)
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}")
    sort_tables(run)


@scenario
def mysql_unparseable(run: Run):
    """Statements that a parser need not know, skipped or filtered; a connector that stores only captured databases."""
    db = run.mysql(*FENCE, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    start(run, my={"schema.history.internal.skip.unparseable.ddl": True}, own={"schema.history.internal.ddl.filter": "ALTER TABLE t ADD.*secret.*"},
          captured={"schema.history.internal.store.only.captured.databases.ddl": True, "table.include.list": f"db_{run.tag}.t,db_{run.tag}.fence"})
    execute(db, "CREATE TABLE other (id INT)", "INSERT INTO t VALUES (2)", "ALTER TABLE t ADD v INT", "INSERT INTO t VALUES (3,3)", "ALTER TABLE other ADD v INT",
            "CREATE EVENT ev ON SCHEDULE EVERY 1 YEAR DO SELECT 1", "DROP EVENT ev", "CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC RETURN a", "DROP FUNCTION f",
            "CREATE PROCEDURE p(IN a INT) BEGIN DECLARE x INT; SET x = a; INSERT INTO t VALUES (x, x); END", "CALL p(9)", "DROP PROCEDURE p",
            "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW BEGIN INSERT INTO other VALUES (NEW.id, 1); END", "INSERT INTO t VALUES (10,10)", "DROP TRIGGER tr",
            "CREATE OR REPLACE VIEW vw AS SELECT * FROM t", "ALTER VIEW vw AS SELECT id FROM t", "DROP VIEW vw",
            f"CREATE USER {run.tag} IDENTIFIED BY 'x'", f"ALTER USER {run.tag} ACCOUNT LOCK", f"RENAME USER {run.tag} TO {run.tag}b", f"SET PASSWORD FOR {run.tag}b = 'yy'", f"DROP USER {run.tag}b",
            "FLUSH TABLES t", "FLUSH PRIVILEGES", "ANALYZE TABLE t", "OPTIMIZE TABLE t", "REPAIR TABLE t", "CREATE EVENT ev ON SCHEDULE EVERY 1 YEAR DO SELECT 1", "ALTER EVENT ev DISABLE", "DROP EVENT IF EXISTS ev",
            f"CREATE SERVER {run.tag} FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', HOST 'h')", f"DROP SERVER {run.tag}", "SET @x = 1", "DO 1", "DELETE FROM t WHERE id=10")
    fence(run, db, "my", "own", "captured")
    record_tables(run, "t", variants=["my", "own", "captured"])
    record_tables(run, "other", variants=["my"])
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}", f"history_own_{run.tag}", f"history_captured_{run.tag}", f"captured_{run.tag}")


@scenario
def mysql_modes_of_values(run: Run):
    """Every handling mode of decimals, unsigned numbers, bytes, times and names at once; defaults in each."""
    both_ways(run, [
        "CREATE TABLE v (id INT AUTO_INCREMENT PRIMARY KEY, d DECIMAL(12,4) DEFAULT 1.25, z DECIMAL(4,0), n NUMERIC(30,10) NOT NULL DEFAULT 7, bu BIGINT UNSIGNED DEFAULT 18446744073709551615,"
        " b VARBINARY(9) DEFAULT 0x00FF, bl BLOB, bi BINARY(3) NOT NULL DEFAULT 'ab', t TIME(6) DEFAULT '-01:00:00.5', dt DATETIME DEFAULT '2020-02-02', d6 DATETIME(6), ts TIMESTAMP(3) NULL, da DATE DEFAULT '1970-01-01', y YEAR,"
        " j JSON, e ENUM('a') NOT NULL DEFAULT 'a', bit1 BIT(1) DEFAULT b'1', f FLOAT DEFAULT 0.1, `a-b` INT DEFAULT 3)"],
        ["INSERT INTO v () VALUES ()", "INSERT INTO v (d,z,n,bu,b,bl,bi,t,dt,d6,ts,da,y,j,bit1,f) VALUES (-99999999.9999,9999,0.0000000001,0,'','x','','838:59:59','1000-01-01','9999-12-31 23:59:59.999999',NULL,'9999-12-31',1901,'1',0,3.4e38)"],
        ["UPDATE v SET d=NULL, z=0, b=NULL, t='00:00:00.000001', d6='1969-12-31 23:59:59.999999', ts='1970-01-01 00:00:01.5' WHERE id=1"], ["v"],
        {"text": {"decimal.handling.mode": "string", "bigint.unsigned.handling.mode": "long", "binary.handling.mode": "base64-url-safe", "time.precision.mode": "isostring", "field.name.adjustment.mode": "avro"},
         "twin": {"decimal.handling.mode": "double", "bigint.unsigned.handling.mode": "precise", "binary.handling.mode": "hex", "time.precision.mode": "nanoseconds", "enable.time.adjuster": False},
         "exact": {"decimal.handling.mode": "precise", "binary.handling.mode": "base64", "time.precision.mode": "microseconds", "schema.name.adjustment.mode": "avro"}})


@scenario
def mysql_type_spellings(run: Run):
    """Types by their other names, with signs, widths and character sets, in CREATE and ALTER."""
    db = run.mysql(*FENCE, "CREATE TABLE shown (id INT PRIMARY KEY, a TINYINT(1), b TINYINT, c BOOL, d TINYINT(1) UNSIGNED, e INT1)", "INSERT INTO shown VALUES (1,1,2,1,3,4)")
    start(run, my={"column.propagate.source.type": ".*"})
    execute(db, "CREATE TABLE ints (a INT1, b INT2, c INT3, d INT4, e INT8, f MIDDLEINT, g INTEGER, h INTEGER UNSIGNED, i INT SIGNED, j TINYINT(1), k TINYINT(4), l TINYINT(1) UNSIGNED, m BOOLEAN, n SMALLINT(1),"
            " o BIGINT(20) SIGNED, p INT1 UNSIGNED, q INT2(3) UNSIGNED ZEROFILL, r INT8 UNSIGNED, s INTEGER(5) ZEROFILL, t MEDIUMINT UNSIGNED, u YEAR, v BIT, w INT4 SIGNED, x TINYINT SIGNED, y BIGINT UNSIGNED)",
            "INSERT INTO ints (a,j,l) VALUES (1,1,1)",
            "CREATE TABLE reals (a FLOAT, b FLOAT8, c DOUBLE PRECISION, d DOUBLE PRECISION UNSIGNED, e REAL, f REAL(5,2), g FIXED, h FIXED(5,1), i DEC UNSIGNED, j NUMERIC(5) SIGNED, k FLOAT UNSIGNED, l FLOAT(30),"
            " m DOUBLE(9,3) ZEROFILL, n DEC(4,1) ZEROFILL, o FLOAT(7,2) UNSIGNED, p FLOAT(24), q REAL UNSIGNED)",
            "INSERT INTO reals (a,b) VALUES (1.5,2.5)",
            "CREATE TABLE chars (b CHARACTER(3), c CHARACTER VARYING(4), d NATIONAL CHARACTER(2), e NCHAR VARCHAR(3), f NATIONAL VARCHAR(4), g LONG, h LONG VARCHAR, i LONG VARBINARY, j NCHAR, k VARCHAR(3) BINARY,"
            " m TEXT(300), n TEXT(70000), o BLOB(20), p VARCHAR(3) CHARACTER SET latin1 COLLATE latin1_bin, t ENUM('a','b') COLLATE utf8mb4_bin,"
            " v VARCHAR(9) COLLATE latin1_swedish_ci, w NATIONAL CHAR VARYING(3), x JSON, y POINT SRID 4326, z GEOMCOLLECTION) DEFAULT CHARSET=utf8mb4",
            "INSERT INTO chars (b,k) VALUES ('b','k')",
            "ALTER TABLE ints ADD z INTEGER SIGNED, MODIFY j TINYINT(1) NOT NULL DEFAULT 1, CHANGE k kk TINYINT(1) UNSIGNED", "INSERT INTO ints (a) VALUES (2)",
            "ALTER TABLE chars COMMENT 'a ''quoted'' \"one\" \\\\ \\n', MODIFY b CHAR(2) COMMENT 'col''s \\\\ \"c\"'", "INSERT INTO chars (b) VALUES ('c')")
    fence(run, db)
    record_tables(run, "shown", "ints", "reals", "chars")
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}")


@scenario
def mysql_ddl_comments(run: Run):
    """Comments around and inside of statements, in the schema history and the topic of schema changes."""
    db = run.mysql(*FENCE)
    start(run, my={"include.schema.comments": True})
    execute(db, "/* a */ CREATE TABLE t (id INT PRIMARY KEY) /* b */", "INSERT INTO t VALUES (1)", "-- c\nALTER TABLE t ADD v INT -- d", "INSERT INTO t VALUES (2,2)", "# e\n ALTER TABLE t ADD w INT, /* f */ ADD x INT ;",
            "/*!80000 ALTER TABLE t ADD y INT */", "INSERT INTO t (id) VALUES (3)", "/* g */ RENAME TABLE t TO u", "  ALTER   TABLE u  COMMENT = 'h' ", "/* i */ CREATE UNIQUE INDEX ix ON u (v)", "/* j */ DROP INDEX ix ON u",
            "/* k */ DROP TABLE u /* l */", "CREATE TABLE n (a INT NOT NULL) -- m", "/* n */ CREATE UNIQUE INDEX ix ON n (a) /* o */", "/* p */ TRUNCATE TABLE n", f"/* q */ ALTER DATABASE db_{run.tag} CHARACTER SET latin1 /* r */", "CREATE TABLE /*!32312 IF NOT EXISTS*/ o (id INT)")
    fence(run, db)
    record_tables(run, "t")
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}")


@scenario
def mysql_adjusted_years(run: Run):
    """Years 1 to 99 in tables that have other moments too, whatever column comes last; with the adjuster and without it."""
    types = {"d": "DATE", "t": "TIME", "ts": "TIMESTAMP NULL", "m": "DATETIME", "m3": "DATETIME(3)", "m6": "DATETIME(6)", "t3": "TIME(3)", "y": "YEAR"}
    tables = {"first": list(types), "last": list(types)[::-1], "alone": ["d"], "mixed": ["m6", "t", "d", "ts", "m", "y", "t3", "m3"]}
    values = {"d": ["0001-01-01", "0069-12-31", "0070-01-01", "0099-12-31", "1999-12-31"], "t": ["-838:59:58"], "ts": ["1999-12-31 23:59:58"], "y": ["1999"], "t3": ["01:02:03.5"],
              **dict.fromkeys(("m", "m3", "m6"), ["0001-01-01 01:02:03", "0069-12-31 23:59:59", "0070-01-01 00:00:00", "0099-12-31 23:59:59", "2024-02-29 12:00:00"])}
    setup = [f"CREATE TABLE {name} (n INT AUTO_INCREMENT PRIMARY KEY, " + ", ".join(f"{column} {types[column]}" for column in columns) + ")" for name, columns in tables.items()]
    rows = [f"INSERT INTO {name} ({', '.join(columns)}) VALUES (" + ", ".join(f"'{values[column][row % len(values[column])]}'" for column in columns) + ")"
            for name, columns in tables.items() for row in range(5)]
    both_ways(run, setup, rows, [f"UPDATE {name} SET d = '0042-02-03' WHERE n = 1" for name in tables], list(tables),
              {"my": {}, "plain": {"enable.time.adjuster": False}, "connect": {"time.precision.mode": "connect"}})
