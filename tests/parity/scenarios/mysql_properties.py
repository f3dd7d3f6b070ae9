"""Properties of the MySQL connector that change single events: re-selected columns, years of few digits, zero dates, limits of tables."""

from mysql import FENCE, both_ways, execute, fence, record_tables, start
from parity import Run, scenario

RESELECT = {
    "post.processors": "again",
    "post.processors.again.type": "io.debezium.processors.reselect.ReselectColumnsPostProcessor",
}


@scenario
def mysql_reselect(run: Run):
    """NULLs read again from the table, by keys of some kinds; columns that are left out; a row that is gone; the event's key."""
    # the reference does not find rows by the other kinds, which tests/integration/test_mysql_reselect.py holds
    keys = {
        "dec": ("DECIMAL(9,3)", "12.345"), "word": ("VARCHAR(20)", "'it''s \\\\ é'"), "real8": ("DOUBLE", "0.1"), "yr": ("YEAR", "1999"),
        "stamp": ("TIMESTAMP(3)", "'2020-02-29 12:00:00.5'"), "num": ("BIGINT", "-9223372036854775808"),
    }  # fmt: skip
    more = ("v VARCHAR(20), n INT, d DECIMAL(9,2), j JSON, b VARBINARY(9), ts TIMESTAMP(3) NULL, dt DATETIME NULL, f FLOAT, e ENUM('x','y'), bit3 BIT(3), "
            "dflt INT DEFAULT 7, hid VARCHAR(9)")
    tables = [f"by_{name}" for name in keys]
    db = run.mysql(
        *FENCE,
        *(f"CREATE TABLE by_{name} (k {kind} PRIMARY KEY, {more})" for name, (kind, _) in keys.items()),
        "CREATE TABLE two (a INT, b VARCHAR(9), v TEXT, PRIMARY KEY (a, b))",
        "CREATE TABLE keyless (a INT, v TEXT)",
        "CREATE TABLE named (a INT PRIMARY KEY, c INT NOT NULL, v TEXT)",
    )  # fmt: skip
    at = f"db_{run.tag}"
    exclude = {"post.processors.again.reselect.columns.exclude.list": ".*:hid", "column.exclude.list": f"{at}.by_dec.n"}
    start(
        run,
        my={**RESELECT, **exclude},
        ek={**RESELECT, "post.processors.again.reselect.use.event.key": "true", "message.key.columns": f"{at}.named:c",
            "table.include.list": f"{at}.named,{at}.fence"},
        off={**RESELECT, "post.processors.again.reselect.null.values": "false", "table.include.list": f"{at}.two,{at}.fence"},
    )  # fmt: skip
    for name, (_, value) in keys.items():
        execute(
            db, "BEGIN", f"INSERT INTO by_{name} (k, dflt) VALUES ({value}, NULL)",
            f"UPDATE by_{name} SET v='now', n=-5, d=1.5, j='{{\"a\": [1, 2.50]}}', b=0x00FF, ts='2020-01-01 00:00:00.125', dt='2020-01-01',"
            f" f=0.1, e='y', bit3=b'101', dflt=1, hid='hidden' WHERE k={value}", "COMMIT",
        )  # fmt: skip
    execute(
        db,
        "BEGIN", "INSERT INTO two VALUES (1, 'x', NULL)", "INSERT INTO two VALUES (1, 'y', 'other')", "UPDATE two SET v='first' WHERE b='x'",
        "UPDATE two SET a=2 WHERE b='x'", "COMMIT",
        "BEGIN", "INSERT INTO two VALUES (9, 'gone', NULL)", "DELETE FROM two WHERE a=9", "COMMIT",
        "BEGIN", "INSERT INTO keyless VALUES (1, NULL)", "UPDATE keyless SET v='later'", "COMMIT",
        "BEGIN", "INSERT INTO named VALUES (1, 10, NULL)", "UPDATE named SET v='later'", "COMMIT",
    )  # fmt: skip
    fence(run, db, "my", "ek", "off")
    record_tables(run, *tables, "two", "keyless", "named")
    record_tables(run, "named", variants=("ek",))
    record_tables(run, "two", variants=("off",))


@scenario
def mysql_early_years(run: Run):
    """Years before 100 and 1000, with and without the adjuster of years of two digits."""
    both_ways(
        run,
        ["CREATE TABLE moments (id INT AUTO_INCREMENT PRIMARY KEY, d DATE, dt DATETIME, dt3 DATETIME(3), dt6 DATETIME(6), y YEAR)"],
        [
            "INSERT INTO moments (d,dt,dt3,dt6,y) VALUES"
            + ",".join(
                f"('{year}-03-04','{year}-03-04 05:06:07','{year}-03-04 05:06:07.008','{year}-03-04 05:06:07.008009',{y})"
                for year, y in (("0001", 1901), ("0012", 1969), ("0069", 1970), ("0070", 2001), ("0099", 69), ("0100", 70), ("0999", 99), ("1582", 2155))
            )
        ],
        ["UPDATE moments SET d='0012-12-31' WHERE id=8"],
        ["moments"],
        {"on": {}, "off": {"enable.time.adjuster": "false"}, "off_connect": {"enable.time.adjuster": "false", "time.precision.mode": "connect"},
         "iso": {"time.precision.mode": "isostring"}},
    )  # fmt: skip


@scenario
def mysql_zero_date_fallback(run: Run):
    """ZeroDateFallbackConverter: zeros, NULLs and defaults of every kind of column, as null and as values; tables of the stream; keys."""
    columns = {
        "d": "DATE", "dn": "DATE NOT NULL", "dd": "DATE DEFAULT '2030-12-31'", "ddn": "DATE NOT NULL DEFAULT '2030-12-31'",
        "dz": "DATE DEFAULT '0000-00-00'", "dzn": "DATE NOT NULL DEFAULT '0000-00-00'", "de": "DATE DEFAULT (CURRENT_DATE)",
        "m": "DATETIME", "mn": "DATETIME NOT NULL", "md": "DATETIME NOT NULL DEFAULT '2030-12-31 23:59:59'", "mc": "DATETIME DEFAULT CURRENT_TIMESTAMP",
        "mz": "DATETIME DEFAULT '0000-00-00 00:00:00'", "m3": "DATETIME(3)", "m3d": "DATETIME(3) NOT NULL DEFAULT '2030-12-31 23:59:59'", "m4": "DATETIME(4)",
        "m6": "DATETIME(6) DEFAULT '2030-12-31'", "m6n": "DATETIME(6) NOT NULL", "m6c": "DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
        "t": "TIMESTAMP NULL", "tn": "TIMESTAMP NOT NULL", "td": "TIMESTAMP NOT NULL DEFAULT '2030-12-31 23:59:59'",
        "tc": "TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP", "tcn": "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", "tz": "TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00'",
        "t3": "TIMESTAMP(3) NULL", "t3d": "TIMESTAMP(3) NOT NULL DEFAULT '2030-12-31 23:59:59.5'", "t6": "TIMESTAMP(6) NULL DEFAULT '2030-12-31 23:59:59'",
    }  # fmt: skip

    def row(date: str, moment: str, stamp: str, *, null: bool = False) -> str:
        texts = {"DATE": f"'{date}'", "DATETIME": f"'{moment}'", "TIMESTAMP": f"'{stamp}'"}
        values = ["NULL" if null and "NOT NULL" not in kind else texts[kind.split()[0].split("(")[0]] for kind in columns.values()]
        return f"INSERT INTO zeros ({','.join(columns)}) VALUES ({','.join(values)})"

    zero = ("0000-00-00", "0000-00-00 00:00:00", "0000-00-00 00:00:00")
    at = f"db_{run.tag}"
    base = {"converters": "zero", "zero.type": "io.debezium.connector.binlog.converters.ZeroDateFallbackConverter"}
    values = {"zero.fallback.date": "2001-02-03", "zero.fallback.datetime": "2001-02-03 04:05:06", "zero.fallback.timestamp": "2001-02-03T04:05:06.120+05:30"}
    both_ways(
        run,
        [
            f"CREATE TABLE zeros (id INT AUTO_INCREMENT PRIMARY KEY, {', '.join(f'{name} {kind}' for name, kind in columns.items())})",
            "CREATE TABLE days (id INT AUTO_INCREMENT, d DATE, t TIMESTAMP(3), m DATETIME(6), PRIMARY KEY (id, d, t, m))",
        ],
        [
            # the first row of a structure is zeros: the reference shows any other as the fallback, too, where the default is NULL
            row(*zero),
            row(*zero, null=True),
            row("2024-00-10", "2024-05-00 01:02:03", "0000-00-00"),
            row("2024-06-15", "2024-06-15 12:34:56.120450", "2024-06-15 12:34:56.120450"),
            row("1970-01-01", "1970-01-01", "1970-01-01 00:00:01"),
            row("9999-12-31", "1969-12-31 23:59:59.999999", "2038-01-19 03:14:07"),
            "INSERT INTO zeros (de,mc,m6c,tc,tcn) VALUES ('2024-01-01','2024-01-01','2024-01-01','2024-01-01','2024-01-01')",
            "INSERT INTO days (d,t,m) VALUES ('0000-00-00','0000-00-00','0000-00-00'), ('2024-06-15','2024-06-15 12:34:56.5','2024-06-15 12:34:56.5')",
        ],
        [
            "UPDATE zeros SET d='2024-01-01', dn='2024-01-01', mn='2024-01-01', tn='2024-01-01 00:00:00', t3='2024-01-01' WHERE id=1",
            "UPDATE zeros SET d='0000-00-00', dn='0000-00-00', m6n='2024-00-00', tn='0000-00-00', t3=NULL WHERE id=4",
            "UPDATE days SET d='2024-01-01' WHERE id=1",
            "DELETE FROM days WHERE id=3",
            "CREATE TABLE later (id INT AUTO_INCREMENT PRIMARY KEY, d DATE, dd DATE NOT NULL DEFAULT '2030-12-31', m DATETIME(6) NULL DEFAULT '0000-00-00',"
            " t TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3))",
            "INSERT INTO later VALUES (NULL,'0000-00-00','0000-00-00','0000-00-00','0000-00-00'), (NULL,'2024-06-15','2024-06-15','2024-06-15 00:00:00.5','2024-06-15')",
            "ALTER TABLE later MODIFY d DATE NOT NULL, ADD n DATETIME(3) NOT NULL DEFAULT '2030-12-31'",
            "INSERT INTO later VALUES (NULL,'0000-00-00','0000-00-00','0000-00-00','0000-00-00','0000-00-00'),"
            " (NULL,'2024-06-15','2024-06-15','2024-06-15 00:00:00.5','2024-06-15','2024-06-15 00:00:00.5')",
        ],
        ["zeros", "days", "later"],
        {
            "null": base,
            "value": {**base, **values, "time.precision.mode": "connect"},
            "own": {**base, **values, "zero.fallback.timestamp": "null", f"zero.column.{at}.zeros.md.fallback": "NULL", f"zero.column.{at}.zeros.dd.fallback": " null ",
                    f"zero.column.{at}.zeros.m6n.fallback": "1999-12-31 23:59:59", f"zero.column.{at}.zeros.td.fallback": "1999-12-31T23:59Z",
                    f"zero.column.{at}.days.d.fallback": "NULL"},
            "chosen": {**base, **values, "zero.selector": f"{at}.zeros.(d|md|t3d), .*LATER.t"},
            "days": {**base, **values, "zero.target.types": "date"},
        },
        session=("SET sql_mode=''",),
    )  # fmt: skip


@scenario
def mysql_types_in_stream(run: Run):
    """Types as statements of the stream write them, with their aliases, attributes and defaults, and rows behind each."""
    db = run.mysql(*FENCE)
    start(run, my={}, text={"decimal.handling.mode": "string", "bigint.unsigned.handling.mode": "precise", "binary.handling.mode": "hex",
                            "time.precision.mode": "connect"})  # fmt: skip
    tables = {
        "ints": "id SERIAL PRIMARY KEY, b BOOL DEFAULT TRUE, bb BOOLEAN NOT NULL DEFAULT 0, i1 INT1, i2 INT2 UNSIGNED, i3 INT3, i4 INT4 UNSIGNED, i8 INT8,"
        " m MIDDLEINT, z TINYINT(3) ZEROFILL, dd BIGINT DEFAULT '7', de INT DEFAULT '1.5', ds SMALLINT DEFAULT -3, dx INT DEFAULT (1 + 1), bd BIT(3) DEFAULT 0x05",
        "reals": "id INT AUTO_INCREMENT PRIMARY KEY, r REAL, dp DOUBLE PRECISION, f8 FLOAT8, f24 FLOAT(24), f25 FLOAT(25), fu FLOAT UNSIGNED, du DOUBLE(9,3) UNSIGNED,"
        " dc DEC, dc5 DEC(5), fx FIXED(7,2) UNSIGNED, nu NUMERIC(3,3), dd DECIMAL(6,2) DEFAULT '1.239', df FLOAT DEFAULT 1e3, dn DECIMAL(4,1) NOT NULL DEFAULT 0",
        "words": "id INT AUTO_INCREMENT PRIMARY KEY, n NCHAR(3), nv NVARCHAR(5), nc NATIONAL CHAR VARYING(4), cv CHARACTER VARYING(6), l LONG, lv LONG VARCHAR, vb LONG VARBINARY,"
        " ca VARCHAR(5) ASCII, t9 TEXT(9), b9 BLOB(9), bn BINARY, b4 BINARY(4) DEFAULT 'ab', vd VARBINARY(4) NOT NULL DEFAULT 0x00FF,"
        " e ENUM('a','it''s','b,c','d\\\\e','') DEFAULT 'it''s', s SET('x','y y','''') NOT NULL DEFAULT 'x', dq VARCHAR(9) DEFAULT 'a\\'b\"c', ci VARCHAR(9) DEFAULT _utf8mb4'é',"
        " bin CHAR(3) CHARACTER SET latin1 COLLATE latin1_bin, col VARCHAR(3) COLLATE utf8mb4_0900_as_cs",
        "times": "id INT AUTO_INCREMENT PRIMARY KEY, y YEAR DEFAULT '99', y4 YEAR DEFAULT 2024, d DATE DEFAULT '2020-2-3', dt DATETIME DEFAULT '2020-02-03 4:5:6', ts TIMESTAMP(2) NULL DEFAULT '2020-02-03',"
        " t TIME(1) DEFAULT '12:34', tn TIME DEFAULT '-01:00:00', now DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), lt TIMESTAMP NULL DEFAULT LOCALTIMESTAMP,"
        " de DATE DEFAULT (CURRENT_DATE)",
        "others": "id INT AUTO_INCREMENT PRIMARY KEY, j JSON DEFAULT (JSON_ARRAY(1)), g GEOMETRY SRID 4326, p POINT NOT NULL SRID 0, gc GEOMCOLLECTION, mp MULTIPOINT, v VECTOR(3), vv VECTOR,"
        " gen INT GENERATED ALWAYS AS (hid + 1) STORED, virt VARCHAR(9) AS (CONCAT('n', p IS NULL)) VIRTUAL, hid INT INVISIBLE DEFAULT 5",
    }  # fmt: skip
    for name, columns in tables.items():
        execute(db, f"CREATE TABLE {name} ({columns})")
    execute(
        db,
        "INSERT INTO ints () VALUES ()",
        "INSERT INTO ints VALUES (18446744073709551614, 0, 1, -128, 65535, -8388608, 4294967295, -1, 5, 7, NULL, NULL, NULL, NULL, b'010')",
        "INSERT INTO reals () VALUES ()",
        "INSERT INTO reals VALUES (NULL, 0.1, 0.1, 0.1, 16777217, 16777217, 3.5, 123456.789, 12, -99999, 12345.67, 0.999, -1.5, -0.0, 9.9)",
        "INSERT INTO words () VALUES ()",
        "INSERT INTO words VALUES (NULL,'日本','日本','日本','日本','long','long',0xFF00,'abc','123456789',0x00,'a','a',0x00,'','x,y y,''','q','é','é','A')",
        "INSERT INTO words (e,s) VALUES ('b,c',''), ('d\\\\e','y y'), ('it''s','''')",
        "INSERT INTO times (now,lt,de) VALUES ('2020-01-01','2020-01-01','2020-01-01')",
        "INSERT INTO others (p,g,gc,mp,v,vv,j,hid) VALUES (POINT(1,2), ST_GeomFromText('POINT(10 20)',4326), ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1))'),"
        " ST_GeomFromText('MULTIPOINT(1 1,2 2)'), TO_VECTOR('[1,-0.5,3.25]'), TO_VECTOR('[1]'), '{\"a\": null}', NULL)",
    )
    fence(run, db, "my", "text")
    record_tables(run, *tables, variants=("my", "text"))


@scenario
def mysql_comments_and_rules(run: Run):
    """Comments of columns, keys among them, beside rules that change columns."""
    db = run.mysql(
        *FENCE,
        "CREATE TABLE t (a INT COMMENT 'first of the key', b VARCHAR(9) COMMENT 'second', c VARCHAR(20) COMMENT 'masked', d DECIMAL(5,2) COMMENT '', PRIMARY KEY (a, b)) COMMENT 'all'",
        "INSERT INTO t VALUES (1,'x','secret',1.5)",
    )  # fmt: skip
    at = f"db_{run.tag}"
    start(
        run,
        my={"include.schema.comments": "true", "column.propagate.source.type": ".*"},
        hid={"include.schema.comments": "true", "column.mask.with.3.chars": f"{at}.t.c", "column.truncate.to.1.chars": f"{at}.t.b"},
        plain={"column.propagate.source.type": ".*"},
    )
    execute(db, "INSERT INTO t VALUES (2,'yy','other',NULL)", "ALTER TABLE t MODIFY a BIGINT NOT NULL COMMENT 'wider', ALTER COLUMN d SET DEFAULT 1", "INSERT INTO t VALUES (3,'z',NULL,0)")
    fence(run, db, "my", "hid", "plain")
    record_tables(run, "t", variants=("my", "hid", "plain"))
