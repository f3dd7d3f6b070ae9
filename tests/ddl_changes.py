"""Statements that change tables, drawn from a seeded generator, and how models of tables compare with the server's words."""

from __future__ import annotations

import random

from connectors.mysql.model import MyTable

#: Words of statements for types that the server calls otherwise.
SAME = {
    "INTEGER": "INT",
    "BOOL": "TINYINT",
    "BOOLEAN": "TINYINT",
    "DEC": "DECIMAL",
    "FIXED": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "REAL": "DOUBLE",
    "DOUBLE PRECISION": "DOUBLE",
    "CHARACTER": "CHAR",
    "NCHAR": "CHAR",
    "NATIONAL CHAR": "CHAR",
    "NVARCHAR": "VARCHAR",
    "NATIONAL VARCHAR": "VARCHAR",
    "NCHAR VARCHAR": "VARCHAR",
    "NCHAR VARYING": "VARCHAR",
    "CHARACTER VARYING": "VARCHAR",
    "CHAR VARYING": "VARCHAR",
    "LONG VARCHAR": "MEDIUMTEXT",
    "LONG": "MEDIUMTEXT",
    "LONG VARBINARY": "MEDIUMBLOB",
    "GEOMCOLLECTION": "GEOMETRYCOLLECTION",
}
TYPES = (
    "TINYINT",
    "TINYINT(1) UNSIGNED",
    "BOOL",
    "SMALLINT ZEROFILL",
    "MEDIUMINT UNSIGNED",
    "INTEGER",
    "INT(5) SIGNED",
    "BIGINT UNSIGNED",
    "DEC(8,3)",
    "NUMERIC(5)",
    "DECIMAL",
    "FIXED(9,1) UNSIGNED",
    "FLOAT",
    "FLOAT(7,3)",
    "DOUBLE PRECISION",
    "REAL",
    "BIT",
    "BIT(17)",
    "CHAR",
    "CHARACTER(7)",
    "CHAR(3) CHARACTER SET latin1",
    "NATIONAL CHAR(4)",
    "NCHAR VARCHAR(9)",
    "VARCHAR(40)",
    "VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "VARCHAR(9) COLLATE latin1_bin",
    "CHARACTER VARYING(12) BINARY",
    "TEXT",
    "TINYTEXT CHARACTER SET greek",
    "MEDIUMTEXT",
    "LONGTEXT",
    "LONG VARCHAR",
    "BINARY",
    "BINARY(4)",
    "VARBINARY(30)",
    "BLOB",
    "LONGBLOB",
    "DATE",
    "TIME",
    "TIME(3)",
    "DATETIME(6)",
    "TIMESTAMP(2) NULL",
    "YEAR",
    "ENUM('a','b,c','it''s') CHARACTER SET latin1",
    # no letter beyond ASCII: CONVERT TO makes the server itself garble labels
    "ENUM('e','x\\\\y')",
    "SET('p','q','r')",
    "POINT",
    "GEOMETRY",
)
ATTRIBUTES = ("", "", "", " NOT NULL", " NULL", " DEFAULT NULL", " COMMENT 'it''s, (a) comment'")


def key(table: MyTable) -> tuple[str, ...]:
    """The primary key; a unique key that stands for one is our own choice."""
    return () if table.unique_is_key else table.key


def actions(chance: random.Random, names: list[str], step: int) -> list[str]:
    """Up to three actions on different columns."""
    found = []
    free = [name for name in names if name != "id"]
    chance.shuffle(free)
    for index in range(chance.randint(1, 3)):
        type_ = chance.choice(TYPES) + chance.choice(ATTRIBUTES)
        place = chance.choice(["", "", " FIRST", f" AFTER {chance.choice(['id', *free[3:]])}"])
        column = free.pop() if free else "id"
        found.append(
            chance.choice(
                [
                    f"ADD COLUMN n{step}_{index} {type_}{place}",
                    f"ADD n{step}_{index} {type_}{place}",
                    f"MODIFY {column} {type_}{place}",
                    f"CHANGE COLUMN {column} r{step}_{index} {type_}{place}",
                    f"RENAME COLUMN {column} TO r{step}_{index}",
                    f"DROP COLUMN {column}",
                    f"ALTER COLUMN {column} DROP DEFAULT",
                    "CONVERT TO CHARACTER SET latin1",
                    "DEFAULT CHARSET = utf8mb4",
                    "COMMENT = 'again'",
                    "DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
                ]
            )
        )
    return found
