"""A statement as Debezium shows it, which reads MySQL's through a grammar that knows fewer spellings (`DdlNormalizer.java`): strings in
single quotes, and names that became reserved words between backquotes."""

from __future__ import annotations

import re

_QUOTED = re.compile(r"""(--[^\n]*|\#[^\n]*|/\*(?!!).*?\*/)|('(?:''|[^'\\]|\\.)*')|"((?:[^"\\]|\\.|"")*)"|(`(?:``|[^`])*`)""", re.DOTALL)
_WORDS = "CUME_DIST|DENSE_RANK|FIRST_VALUE|JSON_TABLE|LAG|LAST_VALUE|LEAD|NTH_VALUE|NTILE|PERCENT_RANK|RANK|ROW_NUMBER"
_TYPES = (
    "(?:VAR)?CHAR|INT|BIGINT|DECIMAL|NUMERIC|FLOAT|DOUBLE|JSON|TEXT|BLOB|DATE|DATETIME|TIMESTAMP|TIME|YEAR|ENUM|SET|(?:VAR)?BINARY|BIT"
    "|BOOL|BOOLEAN"
)
_BEFORE = r"CREATE\s+TABLE|ALTER\s+TABLE|DROP\s+TABLE|FROM|JOIN|LEFT\s+JOIN|RIGHT\s+JOIN|INNER\s+JOIN|OUTER\s+JOIN|INTO"
_NAMES = (
    (re.compile(rf"\b({_BEFORE})\s+({_WORDS})\b", re.IGNORECASE), r"\1 `\2`"),
    (re.compile(rf"\b({_WORDS})\s+({_TYPES})\b", re.IGNORECASE), r"`\1` \2"),
    (re.compile(rf"\b({_WORDS})\s*:", re.IGNORECASE), r"`\1`:"),
)


def normalised(sql: str, *, ansi_quotes: bool = False) -> str:
    """The statement as it is shown and read.

    Args:
        ansi_quotes: whether double quotes hold names, which stay as they are.
    """
    parts: list[str] = []
    at = 0
    for found in _QUOTED.finditer(sql):
        parts.append(_with_quoted_names(sql[at : found.start()]))
        text = found[3]
        parts.append(found[0] if text is None or ansi_quotes else "'" + text.replace("'", "''") + "'")
        at = found.end()
    parts.append(_with_quoted_names(sql[at:]))
    return "".join(parts)


def _with_quoted_names(sql: str) -> str:
    for pattern, quoted in _NAMES:
        sql = pattern.sub(quoted, sql)
    return sql
