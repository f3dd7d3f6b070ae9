"""Spellings of statements that the reference cannot read, or reads into wrong columns; parity holds all others."""

from connectors.engine.relational.tables import TableId
from connectors.mysql.ddl.statement_text import normalised
from connectors.mysql.ddl.statements import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, apply, concerned_table
from connectors.mysql.model import MyTable, Tables


def table_after(*statements: str, sql_mode: int = 0) -> MyTable:
    tables = Tables()
    for sql in statements:
        apply(sql, tables, "d", sql_mode=sql_mode)
    return tables.tables[TableId("d", "t")]


def columns(table: MyTable) -> list[tuple[str, str]]:
    return [(column.name, column.type_name) for column in table.columns]


def test_columns_swap_their_names_in_one_statement():
    found = table_after("CREATE TABLE t (a INT, b CHAR(2), PRIMARY KEY (a))", "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a")
    assert columns(found) == [("b", "INT"), ("a", "CHAR")]
    assert found.key == ("b",)


def test_three_columns_pass_their_names_on():
    found = table_after(
        "CREATE TABLE t (a INT, b CHAR(2), c DATE, PRIMARY KEY (b, c))", "ALTER TABLE t CHANGE a b INT, CHANGE b c CHAR(3), CHANGE c a DATE"
    )
    assert columns(found) == [("b", "INT"), ("c", "CHAR"), ("a", "DATE")]
    assert found.key == ("c", "a")


def test_a_column_takes_the_name_of_one_that_the_statement_drops_later():
    found = table_after("CREATE TABLE t (a INT, b CHAR(2), c DATE)", "ALTER TABLE t RENAME COLUMN a TO B, DROP b, MODIFY c TIME")
    assert columns(found) == [("B", "INT"), ("c", "TIME")]


def test_backslashes_are_letters_where_the_session_says_so():
    sql = r"CREATE TABLE t (v VARCHAR(9) DEFAULT '\' COMMENT 'a\', w CHAR(3) DEFAULT 'it''s')"
    found = table_after(sql, sql_mode=NO_BACKSLASH_ESCAPES)
    assert [column.name for column in found.columns] == ["v", "w"]
    assert found.columns[0].default == "\\"


def test_double_quotes_hold_names_where_the_session_says_so():
    found = table_after('CREATE TABLE "t" ("a b" INT, "c""d" CHAR(1), PRIMARY KEY ("a b"))', sql_mode=ANSI_QUOTES)
    assert [column.name for column in found.columns] == ["a b", 'c"d']


def test_strings_are_shown_in_single_quotes():
    assert normalised('ALTER TABLE t ADD v CHAR(3) DEFAULT "a\'b" -- "c"\n, ADD `"d"` INT') == (
        "ALTER TABLE t ADD v CHAR(3) DEFAULT 'a''b' -- \"c\"\n, ADD `\"d\"` INT"
    )
    assert normalised('CREATE TABLE "t" (a INT)', ansi_quotes=True) == 'CREATE TABLE "t" (a INT)'


def test_names_that_became_reserved_are_shown_in_backquotes():
    assert normalised("CREATE TABLE rank (lag int, `lead` INT)") == "CREATE TABLE `rank` (`lag` int, `lead` INT)"


def test_a_collation_of_all_unicode_sets_names_none():
    found = table_after("CREATE TABLE t (a VARCHAR(3) COLLATE uca1400_ai_ci, b CHAR(1) COLLATE latin2_bin) CHARACTER SET utf16")
    assert [column.charset for column in found.columns] == ["utf16", "latin2"]
    found = table_after("CREATE DATABASE d CHARACTER SET ucs2", "CREATE TABLE t (a VARCHAR(3)) COLLATE uca1400_as_cs")
    assert [column.charset for column in found.columns] == ["ucs2"]


def test_a_conversion_to_the_default_takes_the_databases_character_set():
    found = table_after(
        "CREATE DATABASE d CHARACTER SET latin1",
        "CREATE TABLE t (a VARCHAR(3), b INT) CHARSET utf8mb4",
        "ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT, ADD c CHAR(1)",
    )
    assert [column.charset for column in found.columns] == ["latin1", None, "latin1"]
    assert found.charset == "latin1"


def test_many_comments_are_passed_over_at_once():
    comments = "/* a */ /* b */\n" * 500
    assert concerned_table(f"{comments}ALTER TABLE `t` GROW", "d") == TableId("d", "t")
    assert concerned_table(f"{comments}GROW TABLE t", "d") is None
