"""Which of this project's errors a failure inside Spark is. The class is the decision: retry the batch, or fail the task."""

from __future__ import annotations

import re
from collections.abc import Iterator

from connect_py.errors import ConnectError, FatalTaskError, RetriableError
from spark_sink.sql.decode import BAD_RECORD

#: Failures that the same rows and the same table would bring about again: bad values, missing columns, refused types (Spark's error
#: conditions). Catalogs, storage and Kafka fail in other ways, and those pass.
_LASTING = re.compile(
    r"\[(CAST_INVALID_INPUT|CAST_OVERFLOW\w*|NUMERIC_VALUE_OUT_OF_RANGE[\w.]*|ARITHMETIC_OVERFLOW|DATETIME_OVERFLOW|CONVERSION_INVALID_INPUT|"
    r"INVALID_UTF8_STRING|UNRESOLVED_COLUMN[\w.]*|DELTA_INVALID_CHARACTERS_IN_COLUMN_NAME\w*|DATATYPE_MISMATCH[\w.]*|INCOMPATIBLE_DATA_FOR_TABLE[\w.]*|MERGE_CARDINALITY_VIOLATION|"
    r"PARSE_SYNTAX_ERROR|UNSUPPORTED_\w+[\w.]*|USER_RAISED_EXCEPTION|NOT_NULL_ASSERT_VIOLATION|DELTA_NOT_NULL_CONSTRAINT_VIOLATED)"
)

#: Of these, failures of a single value.
_OF_A_VALUE = re.compile(
    r"\[(CAST_INVALID_INPUT|CAST_OVERFLOW\w*|NUMERIC_VALUE_OUT_OF_RANGE[\w.]*|ARITHMETIC_OVERFLOW|DATETIME_OVERFLOW|CONVERSION_INVALID_INPUT|"
    r"INVALID_UTF8_STRING|NOT_NULL_ASSERT_VIOLATION|DELTA_NOT_NULL_CONSTRAINT_VIOLATED|USER_RAISED_EXCEPTION|MALFORMED_RECORD_IN_PARSING[\w.]*|VARIANT_\w+)"
)


#: Memory, and waits that ended, as Spark, the JVM, Kafka's client and storage say them.
_OF_SIZE = re.compile(
    r"OutOfMemory|UNABLE_TO_ACQUIRE_MEMORY|Java heap space|GC overhead limit|TimeoutException|[Tt]imed out|exceeds.*maxResultSize"
)


def is_of_records(error: Exception) -> bool:
    """Return whether a record, and not the table or the cluster, caused a failure: then it can be found among the batch's records."""
    return any(BAD_RECORD in text or _OF_A_VALUE.search(text) for text in _texts(error))


def is_of_size(error: BaseException) -> bool:
    """Return whether a batch was too large for the memory, or for some timeout."""
    return any(_OF_SIZE.search(text) for text in _texts(error))


def _texts(error: BaseException) -> Iterator[str]:
    """Yield the texts of an error and its causes. An error that was raised from itself is its own cause."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        yield str(cause)
        seen.append(cause)
        cause = cause.__cause__


def classify(error: Exception, what: str) -> ConnectError:
    """Return the error to raise for a failure.

    Args:
        what: what was being done, with table and ranges: ``writing table x from t-0 [5, 9)``.
    """
    if isinstance(error, ConnectError):
        return error
    text = str(error)
    if (start := text.find(BAD_RECORD)) >= 0:
        message = re.split(r"\n| SQLSTATE: ", text[start:])[0]
        return FatalTaskError(f"{message}. It stopped {what}; nothing of that was written.")
    message = f"Failed {what}: {_first_lines(text)}"
    if _LASTING.search(text):
        return FatalTaskError(f"{message} Nothing of this table's part of the batch was written.")
    return RetriableError(message)


def spark_ended(how: str, what: str) -> FatalTaskError:
    """Return the error to raise when Spark has died.

    Args:
        how: it ended, in words.
        what: as for `classify`.
    """
    return FatalTaskError(f"Spark ended while {what}: {how}. What was committed stays committed; restart the task to go on.")


def first_line(text: str) -> str:
    """Return the first line of Spark's message, without its error condition and state."""
    return re.sub(r"^\s*\[[\w.]+\] | SQLSTATE: .*$", "", _first_lines(text).split("\n")[0])[:500]


def _first_lines(text: str) -> str:
    """Return the part of Spark's message that is for people: before the plan and the stack."""
    message = re.split(r"\n\s*(?:at |JVM stacktrace|== |Driver stacktrace)|;\n", text)[0].strip()
    return message[:1500]
