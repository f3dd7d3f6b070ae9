"""MySQL: schema changes written in other ways, over other schemas, and what a session's modes do to them."""
import contextlib

import pymysql
from mysql import FENCE, execute, fence, note, record_history, record_tables, sort_tables, start
from parity import Run, scenario


def record_captured(run: Run, *variants: str) -> None:
    names = [name for variant in variants for name in run.topics(f"{variant}_{run.tag}.") if "fence" not in name]
    note(run, "topics", [name.replace(run.tag, "TAG") for name in names])
    run.record_topics(*names)


@scenario
def mysql_session_modes(run: Run):
    """Statements under other modes, character sets and time zones of the session, with implied defaults and implied keys."""
    db = run.mysql(*FENCE)
    start(run, my={"include.schema.comments": True})
    execute(
        db,
        "SET sql_mode=''", "CREATE TABLE lax (id INT PRIMARY KEY, d DATE NOT NULL DEFAULT '0000-00-00', n INT NOT NULL DEFAULT '7', t TIMESTAMP NOT NULL, u TIMESTAMP NOT NULL)",
        "INSERT INTO lax (id) VALUES (1)", "UPDATE lax SET t='2020-01-01', u='2020-01-01', d='2020-01-01'",
        "SET sql_mode='PIPES_AS_CONCAT,REAL_AS_FLOAT'", "CREATE TABLE reals (id INT PRIMARY KEY, r REAL, d DOUBLE)", "INSERT INTO reals VALUES (1,0.1,0.1)",
        "CREATE TABLE doubled (id INT PRIMARY KEY, v VARCHAR(9) DEFAULT \"a'b\" COMMENT \"c\\\"d\", `w\"` ENUM(\"p\",'q\"') DEFAULT \"p\") COMMENT=\"e\"\"f\" -- \"x\"", "INSERT INTO doubled (id) VALUES (1)", 'RENAME TABLE doubled TO tripled /* "x" */, tripled TO doubled', 'ALTER TABLE doubled COMMENT "g"',
        "SET sql_mode=DEFAULT", "SET time_zone='+05:00'", "CREATE TABLE zoned (id INT PRIMARY KEY, t TIMESTAMP NULL DEFAULT '2020-01-01 00:00:00', d DATETIME DEFAULT '2020-01-01 00:00:00')", "INSERT INTO zoned (id) VALUES (1)",
        "SET time_zone=DEFAULT", "SET NAMES latin1", "CREATE TABLE latin (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET latin1 DEFAULT 'x')", "INSERT INTO latin VALUES (1,'y')", "SET NAMES utf8mb4",
        "SET explicit_defaults_for_timestamp=0", "SET sql_mode=''", "CREATE TABLE implied (id INT PRIMARY KEY, a TIMESTAMP, b TIMESTAMP, c TIMESTAMP NULL)", "INSERT INTO implied VALUES (1,'2020-01-01','2020-01-01',NULL)",
        "SET sql_mode=DEFAULT", "SET foreign_key_checks=0", "CREATE TABLE orphan (id INT PRIMARY KEY, x INT, FOREIGN KEY (x) REFERENCES nowhere (id))", "INSERT INTO orphan VALUES (1,1)",
        "SET sql_generate_invisible_primary_key=ON", "CREATE TABLE keyless (v INT)", "INSERT INTO keyless VALUES (1)", "UPDATE keyless SET v=2", "ALTER TABLE keyless ALTER COLUMN my_row_id SET VISIBLE", "UPDATE keyless SET v=3",
    )  # fmt: skip
    fence(run, db)
    record_captured(run, "my")
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}")
    sort_tables(run)


@scenario
def mysql_other_schemas(run: Run):
    """Two captured schemas and one that is not: tables made, copied, renamed and dropped across them; schemas dropped."""
    one, two, out = f"db_{run.tag}", f"two_{run.tag}", f"out_{run.tag}"
    db = run.mysql(*FENCE, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1)")
    run.mysql("CREATE TABLE t (id INT PRIMARY KEY, w CHAR(2))", "INSERT INTO t VALUES (1,'x')", database=two)
    run.mysql("CREATE TABLE t (id INT PRIMARY KEY, z INT)", "INSERT INTO t VALUES (1,3)", database=out)
    captured = {"database.include.list": f"{one},{two}"}
    start(run, my=captured, less={**captured, "schema.history.internal.store.only.captured.databases.ddl": True, "table.include.list": f".*\\.t,{one}.fence,.*\\.moved"},
          others={**captured, "table.exclude.list": f"{one}\\.(back|came),{two}\\.t"})
    execute(
        db, f"CREATE TABLE {two}.u LIKE {out}.t", f"INSERT INTO {two}.u VALUES (1,1)", f"CREATE TABLE `{out}`.`u` (id INT PRIMARY KEY)", f"INSERT INTO {out}.u VALUES (1)",
        f"RENAME TABLE t TO {two}.moved, {two}.t TO t", "INSERT INTO t VALUES (2,'y')", f"INSERT INTO {two}.moved VALUES (2,2)",
        f"RENAME TABLE {out}.u TO {one}.came", "INSERT INTO came VALUES (2)", f"RENAME TABLE came TO {out}.u", f"INSERT INTO {out}.u VALUES (3)",
        f"ALTER TABLE {two}.moved RENAME TO {one}.back, ADD COLUMN n INT", "INSERT INTO back VALUES (3,3,3)", f"USE {two}", f"ALTER TABLE {one}.back ADD m INT", f"CREATE TABLE here AS SELECT id FROM {one}.back",
        "CREATE TABLE IF NOT EXISTS here (id INT)", "DROP TABLE IF EXISTS nowhere, here", f"DROP TABLE {out}.t, {two}.u", f"USE {one}",
        f"CREATE DATABASE IF NOT EXISTS {two}", f"ALTER DATABASE {two} DEFAULT COLLATE utf8mb4_bin", f"CREATE TABLE {two}.last (id INT PRIMARY KEY, v CHAR(3))", f"INSERT INTO {two}.last VALUES (1,'é')",
        f"/* a */ rename  tables\t`t` to  `t``1` ,\n `{two}` . last  TO {two}.`LAST`, {two}.LAST to last2 ;", "INSERT INTO last2 VALUES (3,'c')", "drop  tables `t``1` , last2",
        f"DROP DATABASE {two}", f"CREATE SCHEMA {two} CHARACTER SET = latin1 COLLATE = latin1_bin", f"CREATE TABLE {two}.t (id INT PRIMARY KEY, v CHAR(3))", f"INSERT INTO {two}.t VALUES (1,'é')", f"DROP SCHEMA IF EXISTS {out}",
    )  # fmt: skip
    fence(run, db, "my", "less", "others")
    record_captured(run, "my", "less", "others")
    record_history(run, *(f"{variant}_{run.tag}" for variant in ("my", "less", "others")), *(f"history_{variant}_{run.tag}" for variant in ("my", "less", "others")))
    sort_tables(run)


@scenario
def mysql_altered_columns(run: Run):
    """Columns moved, swapped, retyped, hidden and computed in one statement; defaults set and dropped; character sets converted; a row after each."""
    db = run.mysql(*FENCE, "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(5), c DATE)", "INSERT INTO t VALUES (1,1,'b','2020-01-01')")
    start(run, my={}, typed={"column.propagate.source.type": ".*", "include.schema.changes": False})
    touch = "UPDATE t SET id=id+1"
    for statement in (
        "ALTER TABLE t RENAME COLUMN a TO x, RENAME COLUMN b TO a", "ALTER TABLE t RENAME COLUMN x TO b", "ALTER TABLE t MODIFY c DATE AFTER id, MODIFY b BIGINT FIRST", "ALTER TABLE t CHANGE COLUMN a a2 VARCHAR(10) NOT NULL DEFAULT 'x' FIRST, DROP COLUMN c, ADD c DATETIME(3) DEFAULT '2020-01-01 00:00:00.5' AFTER a2",
        "ALTER TABLE t ADD COLUMN (p INT DEFAULT 1, q DECIMAL(5,2) NOT NULL DEFAULT 2), ADD r INT FIRST, ADD s INT AFTER r", "ALTER TABLE t ALTER p DROP DEFAULT, ALTER COLUMN q SET DEFAULT 3.5, ALTER r SET DEFAULT 9",
        "ALTER TABLE t ADD g INT GENERATED ALWAYS AS (p + 1) VIRTUAL NOT NULL, ADD h INT AS (p * 2) STORED COMMENT 'h' AFTER id", "ALTER TABLE t MODIFY h BIGINT AS (p * 3) STORED, ADD e ENUM('a','b') DEFAULT 'b', ADD f SET('x','y') NOT NULL DEFAULT 'x,y'",
        "ALTER TABLE t MODIFY e ENUM('a','b','c') NULL, MODIFY COLUMN f SET('x','y','z') DEFAULT NULL", "ALTER TABLE t ALTER COLUMN s SET INVISIBLE, ADD i INT INVISIBLE DEFAULT 4", "ALTER TABLE t ALTER COLUMN s SET VISIBLE, DROP i",
        "ALTER TABLE t ADD lat VARCHAR(5) CHARACTER SET latin1 DEFAULT 'é', ADD bin VARCHAR(5) CHARACTER SET binary, ADD txt TEXT COLLATE utf8mb3_bin", "ALTER TABLE t CONVERT TO CHARACTER SET latin1", "ALTER TABLE t ADD n CHAR(2) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
        "ALTER TABLE t ADD INDEX ip (p), ADD UNIQUE INDEX uq (q), ADD CONSTRAINT ck CHECK (p > -1)", "ALTER TABLE t DROP CHECK ck, DROP INDEX uq, ALTER INDEX ip INVISIBLE", "ALTER TABLE t DROP COLUMN s, DROP r, ALGORITHM=INSTANT",
        "ALTER TABLE t ADD j JSON, ADD k BIT(3) DEFAULT b'11', ADD l TIME(2) DEFAULT '-10:11:12.5', ADD m YEAR DEFAULT 70, ADD o BLOB, ADD u TINYINT UNSIGNED DEFAULT 200", "ALTER TABLE t MODIFY u SMALLINT, MODIFY m SMALLINT DEFAULT 5, MODIFY k BIT(9) DEFAULT b'1', MODIFY l TIME",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (p, id)", "ALTER TABLE t DROP PRIMARY KEY, MODIFY id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY", "ALTER TABLE t COMMENT='c', ROW_FORMAT=COMPRESSED, KEY_BLOCK_SIZE=8", "ALTER TABLE t", "ALTER TABLE t ADD COLUMN z1 INT NOT NULL, ADD COLUMN z2 VARCHAR(3) NOT NULL, ADD z3 DATETIME NULL DEFAULT NULL",
    ):  # fmt: skip
        execute(db, statement, touch)
    fence(run, db, "my", "typed")
    record_tables(run, "t", variants=["my", "typed"])
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}")
    note(run, "topics of typed", sorted(name.replace(run.tag, "TAG") for name in run.topics(f"typed_{run.tag}")))


@scenario
def mysql_partitioned(run: Run):
    """Partitions of every kind: made, added, split, merged, exchanged, emptied, dropped; rows between; truncates as events."""
    db = run.mysql(*FENCE)
    start(run, my={"skipped.operations": "none"})
    execute(
        db, "CREATE TABLE h (id INT PRIMARY KEY, v INT) PARTITION BY HASH (id) PARTITIONS 4", "INSERT INTO h VALUES (1,1),(2,2)", "ALTER TABLE h ADD PARTITION PARTITIONS 2", "ALTER TABLE h COALESCE PARTITION 3", "INSERT INTO h VALUES (3,3)",
        "CREATE TABLE l (id INT, c INT, PRIMARY KEY (id, c)) PARTITION BY LIST (c) (PARTITION p0 VALUES IN (1,2,NULL) COMMENT = 'x', PARTITION p1 VALUES IN (3))", "INSERT INTO l VALUES (1,1),(2,3)", "ALTER TABLE l ADD PARTITION (PARTITION p2 VALUES IN (7,8))",
        "ALTER TABLE l TRUNCATE PARTITION p0", "INSERT INTO l VALUES (3,7)", "ALTER TABLE l DROP PARTITION p1, p2", "TRUNCATE l",
        "CREATE TABLE k (a VARCHAR(5), b INT, PRIMARY KEY (a, b)) ENGINE=InnoDB PARTITION BY LINEAR KEY ALGORITHM=2 (a) PARTITIONS 3", "INSERT INTO k VALUES ('a',1)", "ALTER TABLE k REBUILD PARTITION ALL", "ALTER TABLE k ANALYZE PARTITION ALL",
        "CREATE TABLE rc (a INT, b DATE, PRIMARY KEY (a, b)) PARTITION BY RANGE COLUMNS (a, b) SUBPARTITION BY HASH (a) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (5, '2020-01-01'), PARTITION p1 VALUES LESS THAN (MAXVALUE, MAXVALUE))", "INSERT INTO rc VALUES (1,'2020-01-01')",
        "CREATE TABLE r (id INT NOT NULL) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))", "CREATE TABLE x LIKE r", "ALTER TABLE x REMOVE PARTITIONING", "INSERT INTO x VALUES (5)",
        "ALTER TABLE r EXCHANGE PARTITION p0 WITH TABLE x WITHOUT VALIDATION", "INSERT INTO r VALUES (15)", "ALTER TABLE r REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN (30))", "INSERT INTO r VALUES (25)",
        "ALTER TABLE h PARTITION BY KEY () PARTITIONS 2", "ALTER TABLE h ADD w INT REMOVE PARTITIONING", "INSERT INTO h VALUES (4,4,4)", "ALTER TABLE h PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN MAXVALUE)", "DROP TABLE h, k, x",
    )  # fmt: skip
    fence(run, db)
    record_captured(run, "my")
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}")
    sort_tables(run)


@scenario
def mysql_made_from_others(run: Run):
    """Tables made from queries and from others, views, functional keys, expressions as defaults, literals with introducers, accounts and roles."""
    db = run.mysql(*FENCE, "CREATE TABLE src (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9) DEFAULT 'd' COMMENT 'cc', n DECIMAL(6,2) NOT NULL DEFAULT 1.5, ts TIMESTAMP(3) NULL DEFAULT '2020-01-01 00:00:00.125', e ENUM('a','b'), UNIQUE KEY (v)) COMMENT 'source'", "INSERT INTO src (v) VALUES ('x'),('y')")
    start(run, my={"include.schema.comments": True})
    execute(
        db, "CREATE TABLE c1 SELECT id, v AS vv, n * 2 AS n2, CONCAT(v, id) cc, TIMESTAMP('2020-01-01') moment, 1 one, 'lit' lit, CAST(id AS UNSIGNED) u, e FROM src", "INSERT INTO c1 (id, n2, cc, moment, one, lit, u) VALUES (9,1,'c','2020-01-01',1,'l',1)",
        "CREATE TABLE c2 (id INT, extra INT DEFAULT 4, PRIMARY KEY (id)) COMMENT='c2' SELECT id, v FROM src WHERE id > 1", "CREATE TABLE c3 (v VARCHAR(20) NOT NULL, INDEX (v)) IGNORE AS SELECT v FROM src UNION ALL SELECT 'z'", "INSERT INTO c3 VALUES ('q')",
        "CREATE TABLE l1 LIKE src", "INSERT INTO l1 (v) VALUES ('l')", "ALTER TABLE l1 COMMENT 'like'", "CREATE TABLE v1 AS VALUES ROW(1,'a'), ROW(2,'b')", "CREATE TABLE t1 TABLE src",
        "CREATE TABLE dflt (id INT PRIMARY KEY, a INT DEFAULT (1 + 2), b VARCHAR(20) DEFAULT (CONCAT('x', 'y')), c DATE DEFAULT (CURRENT_DATE + INTERVAL 1 YEAR), d JSON DEFAULT ('{}'), e TEXT DEFAULT ('t'), f POINT DEFAULT (POINT(1,2)), g CHAR(3) DEFAULT _latin1'abc', i INT DEFAULT 0x1F, j VARCHAR(4) DEFAULT 0x6162, k BIT(4) DEFAULT 5, l DECIMAL(5,2) DEFAULT '1.005', m FLOAT DEFAULT .5, n DOUBLE DEFAULT 1e3, o BIGINT DEFAULT -0, p BOOL DEFAULT true, r VARCHAR(19) DEFAULT 'new\\nline\\t', s TINYINT(1) DEFAULT '1', t YEAR DEFAULT '2020', u TIME DEFAULT 101112, v DATETIME DEFAULT 20200102030405, w SET('a','b') DEFAULT 'b,a')",
        "INSERT INTO dflt (id, c, f) VALUES (1,'2020-01-01',POINT(0,0))",
        "CREATE TABLE keys1 (a INT NOT NULL, b VARCHAR(20), c JSON, KEY fk ((a + 1)), UNIQUE KEY ub (b(5) DESC) COMMENT 'x' INVISIBLE, KEY m ((CAST(c->'$.z' AS UNSIGNED ARRAY))), UNIQUE INDEX ua USING HASH (a) KEY_BLOCK_SIZE=8 USING BTREE)", "INSERT INTO keys1 VALUES (1,'b','{}')",
        "CREATE TABLE keys2 (a INT UNIQUE, b INT NOT NULL UNIQUE KEY, c INT KEY)", "INSERT INTO keys2 VALUES (1,2,3)", "CREATE TABLE keys3 (a INT NOT NULL UNIQUE, b INT NOT NULL, UNIQUE (b))", "INSERT INTO keys3 VALUES (1,2)", "CREATE TABLE keys4 (a INT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE (a, b), UNIQUE (b, c))", "INSERT INTO keys4 VALUES (1,2,3)",
        "CREATE INDEX i1 ON keys4 (c) USING BTREE COMMENT 'i' ALGORITHM=INPLACE LOCK=NONE", "CREATE FULLTEXT INDEX ft ON c3 (v) WITH PARSER ngram", "DROP INDEX i1 ON keys4 ALGORITHM=DEFAULT", "CREATE UNIQUE INDEX u1 ON c1 (id)", "INSERT INTO c1 (id, n2, cc, moment, one, lit, u) VALUES (10,1,'c','2020-01-01',1,'l',1)",
        "CREATE ALGORITHM=MERGE DEFINER=CURRENT_USER SQL SECURITY INVOKER VIEW v2 (x, y) AS SELECT id, v FROM src WITH CASCADED CHECK OPTION", "INSERT INTO v2 VALUES (77,'view')", "CREATE OR REPLACE VIEW v2 AS SELECT 1", "DROP VIEW IF EXISTS v2, v3",
        "CREATE TABLE `日本` (`列` INT PRIMARY KEY, `é è` VARCHAR(3) DEFAULT '語')", "INSERT INTO `日本` (`列`) VALUES (1)", "CREATE TABLE `a.b` (`c.d` INT PRIMARY KEY)", "INSERT INTO `a.b` VALUES (1)", "CREATE TABLE 1st (2nd INT PRIMARY KEY, _x INT, $y INT)", "INSERT INTO 1st VALUES (1,2,3)",
        "CREATE TABLE kw (`key` INT, `index` INT, `primary` INT, `check` INT, value INT, status INT, type INT, comment INT, date DATE, time TIME, text TEXT, year YEAR, name INT, `order` INT, data JSON, position INT, action INT, PRIMARY KEY (`key`))", "INSERT INTO kw (`key`) VALUES (1)",
        f"CREATE ROLE IF NOT EXISTS r_{run.tag}", f"DROP ROLE r_{run.tag}", "ALTER TABLE src STATS_PERSISTENT=1 AVG_ROW_LENGTH 10 MAX_ROWS=100 CHECKSUM=0, COMPRESSION='NONE', INSERT_METHOD=NO", "ALTER TABLE src ENABLE KEYS",
        "ALTER TABLE src ADD COLUMN a1 INT, ADD COLUMN a2 INT AFTER a1, ADD a3 INT AFTER id, MODIFY COLUMN v VARCHAR(12) COMMENT 'new' AFTER a2, RENAME COLUMN e TO ee, DROP KEY v", "INSERT INTO src (v) VALUES ('z')", "DROP TABLE IF EXISTS c1, `a.b`, nothing RESTRICT", "DROP TABLE c2 /* x */ , c3 -- y",
    )  # fmt: skip
    fence(run, db)
    record_captured(run, "my")
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}")
    sort_tables(run)


@scenario
def mysql_default_spellings(run: Run):
    """Truth values as defaults of numbers, signs, introducers, moments in other forms; unique indexes of tables without a key; quotes in names."""
    db = run.mysql(*FENCE)
    start(run, my={}, other={"decimal.handling.mode": "string", "binary.handling.mode": "hex"})
    types = (
        "BIT", "BIT(1)", "BIT(8)", "BIT(20)", "TINYINT", "TINYINT(1)", "BOOLEAN", "SMALLINT", "MEDIUMINT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED",
        "FLOAT", "DOUBLE", "REAL", "FLOAT(7,2)", "DECIMAL(5,2)", "NUMERIC(4)", "DEC(3,1) UNSIGNED", "FIXED(4,1)", "YEAR",
    )  # fmt: skip
    others = (
        "VARCHAR(9) CHARACTER SET latin1 DEFAULT _utf8mb4'abc'", "VARCHAR(9) DEFAULT _latin1'q'", "SET('x','y') DEFAULT 'x,y'", "VARCHAR(9) DEFAULT 'it''s'",
        'VARCHAR(9) DEFAULT "do""ub"', "BINARY(4) DEFAULT 0x41", "VARBINARY(4) DEFAULT X'4142'", "INT DEFAULT 0x10", "INT DEFAULT b'101'", "BIT(4) DEFAULT 5",
        "BIT(4) DEFAULT 0x0A", "INT DEFAULT -5", "INT DEFAULT +7", "DECIMAL(6,2) DEFAULT -1.5", "DOUBLE DEFAULT -.5", "INT DEFAULT '12'", "DECIMAL(6,2) DEFAULT '3.456'",
        "BIGINT DEFAULT 9223372036854775807", "TIME DEFAULT '-10:20:30'", "TIME(3) DEFAULT '10:20'", "DATETIME(3) DEFAULT '2020-01-01 10:20:30.5'", "YEAR DEFAULT 70",
        "DATE DEFAULT 20200101", "DATETIME DEFAULT 20200101102030", "TIME DEFAULT 102030", "DATE DEFAULT '2020-1-2'", "TIME DEFAULT '1 10:00:00'",
        "DATETIME DEFAULT '2020-01-01T10:20:30'", "TIMESTAMP DEFAULT '2020-01-01 10:20:30+02:00'", "FLOAT DEFAULT 1.23456789", "CHAR(3) DEFAULT ' a '",
        "TINYINT(1) DEFAULT 2", "VARCHAR(9) DEFAULT 'tab\\tx'",
    )  # fmt: skip
    execute(
        db,
        "CREATE TABLE truths (id INT PRIMARY KEY, " + ", ".join(f"t{i} {t} DEFAULT TRUE, f{i} {t} NOT NULL DEFAULT false" for i, t in enumerate(types)) + ")",
        "CREATE TABLE others (id INT PRIMARY KEY, " + ", ".join(f"c{i} {t}" for i, t in enumerate(others)) + ")",
        "INSERT INTO truths (id) VALUES (1)", "INSERT INTO others (id) VALUES (1)",
        "CREATE TABLE k1 (a INT, b INT NOT NULL, c INT NOT NULL)", "CREATE UNIQUE INDEX i1 ON k1 (a)", "CREATE UNIQUE INDEX i2 ON k1 (b, c)", "CREATE UNIQUE INDEX i3 ON k1 (c)",
        "INSERT INTO k1 VALUES (1,2,3)", "CREATE INDEX i4 ON k1 (a)", "DROP INDEX i2 ON k1", "INSERT INTO k1 VALUES (2,2,4)",
        "CREATE TABLE k2 (a INT NOT NULL, b VARCHAR(20) NOT NULL)", "CREATE UNIQUE INDEX i1 ON k2 ((a+1))", "CREATE UNIQUE INDEX i2 ON k2 (b(5), a DESC) COMMENT 'x' ALGORITHM=INPLACE",
        "INSERT INTO k2 VALUES (1,'x')", 'CREATE TABLE `quo"ted` (`a"b` INT PRIMARY KEY)', 'INSERT INTO `quo"ted` VALUES (1)', 'RENAME TABLE `quo"ted` TO `an"other`',
        'INSERT INTO `an"other` VALUES (2)', "CREATE TABLE `do``t.ted` (`a``b.c` INT PRIMARY KEY, `d'e` INT)", "INSERT INTO `do``t.ted` VALUES (1,2)", 'DROP TABLE `an"other`',
    )  # fmt: skip
    fence(run, db, "my", "other")
    record_captured(run, "my", "other")
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}")


@scenario
def mysql_charset_spellings(run: Run):
    """Character sets of databases, tables and columns in all their spellings, with letters that tell them apart."""
    db = run.mysql(*FENCE)
    start(run, my={})
    execute(
        db,
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9)) CHAR SET=latin2", "CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(9)) DEFAULT CHAR SET latin1 COLLATE latin1_bin",
        "CREATE TABLE c (id INT PRIMARY KEY, v VARCHAR(9) CHAR SET latin2, w CHAR(3) CHARSET latin1 NULL, x TEXT CHAR SET cp1251 COLLATE cp1251_bin)",
        "CREATE TABLE d (id INT PRIMARY KEY, x NCHAR(3), y VARCHAR(3) BINARY, z CHAR(3) CHAR SET latin1 BINARY, n NATIONAL VARCHAR(3), o NVARCHAR(3), p LONG VARCHAR)",
        "INSERT INTO a VALUES (1,'šä')", "INSERT INTO b VALUES (1,'éü')", "INSERT INTO c VALUES (1,'ř','ß','Ж')", "INSERT INTO d VALUES (1,'é','y','é','中','é','p中')",
        "ALTER TABLE a CONVERT TO CHAR SET latin1", "UPDATE a SET v='à'", "ALTER TABLE b ADD w VARCHAR(9) CHAR SET cp1250", "UPDATE b SET w='ž'",
        "UPDATE c SET v=NULL", "ALTER TABLE c MODIFY v VARCHAR(9) CHAR SET greek", "UPDATE c SET v='Ω'",
        f"ALTER DATABASE db_{run.tag} CHAR SET latin2", "CREATE TABLE e (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO e VALUES (1,'ł')",
        f"ALTER SCHEMA db_{run.tag} DEFAULT CHAR SET = latin1 COLLATE = latin1_bin", "CREATE TABLE f (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO f VALUES (1,'é')",
        f"ALTER DATABASE db_{run.tag} COLLATE cp1251_bin", "CREATE TABLE g (id INT PRIMARY KEY, v VARCHAR(9), w TEXT COLLATE greek_bin)", "INSERT INTO g VALUES (1,'Ж','Ω')",
    )  # fmt: skip
    fence(run, db)
    record_captured(run, "my")
    record_history(run, f"my_{run.tag}", f"history_my_{run.tag}")


@scenario
def mysql_default_moments(run: Run):
    """Moments as defaults in every form that the server takes; keys among several additions."""
    db = run.mysql(*FENCE)
    start(run, my={}, con={"time.precision.mode": "connect"}, iso={"time.precision.mode": "isostring"})
    stamps = (
        "2020-01-02", "2020-01-02 ", "2020-01-02:", "2020-01-02--", "2020-01-02 03", "2020-01-02 003", "2020-01-02 03:", "2020-01-02 03:04", "2020-01-02 03:004", "2020-01-02 03:04:05",
        "2020-01-02 03:04:05.", "2020-01-02:03:04:05", "2020-01-02-03:04:05", "2020-01-02--03:04:05", "2020-01-02--03:004:0005", "2020-0001-00002--03:004:0005", "1970-01-01:00:00:001",
        "2020.01.02 03.04.05", "2020/1/2", "0", "0000-00-00 00:00:00", "2020-01-02T03:04:05", "20200102030405", "2020-01-02 03:04:05.5",
    )  # fmt: skip
    moments = (
        "2020-01-02", "2020-01-02 03:04", "2020-01-02 03:04:05", "2020-01-02 03:04:05.5", "0", "0000-00-00 00:00:00", "2020-00-02 00:00:00", "2020-01-02T03:04:05", "2020-1-2",
        "20200102", "2020-01-02 3:4:5", "2020-01-00", "2020-01-00 10:00:00",
    )  # fmt: skip
    days = ("2020-01-02", "2020-1-2", "0", "0000-00-00", "2020-01-00", "2050-01-01 00:00:00", "20200102", "20-01-02", "2020/01/02")
    execute(db, "SET SESSION sql_mode='ALLOW_INVALID_DATES'")
    for name, kind, values in (("a", "TIMESTAMP", stamps), ("a3", "TIMESTAMP(3)", stamps), ("b", "DATETIME", moments), ("b6", "DATETIME(6)", moments), ("c", "DATE", days)):
        execute(db, f"CREATE TABLE {name} (id INT PRIMARY KEY)")
        for place, value in enumerate(values):
            for null in ("NULL", "NOT NULL"):
                with contextlib.suppress(pymysql.Error):  # not each is one for each type
                    execute(db, f"ALTER TABLE {name} ADD {null[:2].strip().lower()}{place} {kind} {null} DEFAULT '{value}'")
        execute(db, f"INSERT INTO {name} (id) VALUES (1)")
    execute(
        db, "CREATE TABLE k (id BIGINT(20) NOT NULL)", "ALTER TABLE k ADD (PRIMARY KEY `id` (`id`), `k_id` INT UNSIGNED NOT NULL, `a` SMALLINT NOT NULL, INDEX `k_id` (`k_id`))",
        "INSERT INTO k VALUES (1,2,3)", "ALTER TABLE k DROP PRIMARY KEY, ADD COLUMN (UNIQUE KEY a (a), y FLOAT8, x INT1, w INT8, v MIDDLEINT, CONSTRAINT u UNIQUE (k_id))", "INSERT INTO k VALUES (2,3,4,1.1,1,2,3)",
    )  # fmt: skip
    fence(run, db, "my", "con", "iso")
    record_captured(run, "my", "con", "iso")
    record_history(run, f"my_{run.tag}")
