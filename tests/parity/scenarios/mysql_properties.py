"""Properties of the MySQL connector that change single events: re-selected columns, years of few digits, limits of tables."""

from mysql import FENCE, both_ways, execute, fence, record_tables, start
from parity import Run, scenario

RESELECT = {
    "post.processors": "again",
    "post.processors.again.type": "io.debezium.processors.reselect.ReselectColumnsPostProcessor",
}


@scenario
def mysql_reselect(run: Run):
    """NULLs read again from the table, by keys of every kind; columns that are left out; a row that is gone; the event's key."""
    keys = {
        "num": ("BIGINT UNSIGNED", "18446744073709551615"), "dec": ("DECIMAL(9,3)", "12.345"), "word": ("VARCHAR(20)", "'it''s \\\\ é'"),
        "bin": ("VARBINARY(9)", "0x00FF27"), "lab": ("ENUM('z','a,b')", "'a,b'"), "day": ("DATE", "'2020-02-29'"),
        "moment": ("DATETIME(6)", "'2020-02-29 12:00:00.000001'"), "stamp": ("TIMESTAMP(3)", "'2020-02-29 12:00:00.5'"),
        "bits": ("BIT(12)", "b'101'"), "real8": ("DOUBLE", "0.1"), "yr": ("YEAR", "1999"), "tm": ("TIME", "'-01:00:00'"),
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
            f"UPDATE by_{name} SET v='now', n=-5, d=1.5, j='{{\"a\": [1, 2.50]}}', b=0x00FF, ts='2020-01-01 00:00:00.5', dt='2020-01-01',"
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
