"""Write a failure as text, in the form that Kafka Connect's tools know (`Throwable.printStackTrace`).

One line a cause, the outermost first, by Java's class names where an error has one; below each, indented by a tab, what this project adds
(an exception's notes: what is still true, what to do) and where it happened, innermost call first::

    org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler
        Stage VALUE_CONVERTER, class …JsonConverter, topic in, partition 0, offset 1. errors.tolerance=all skips such records.
        at connect_py.task.failed_records.Tolerance.failed(failed_records.py:135)
    Caused by: org.apache.kafka.connect.errors.DataException: Converting byte[] to Kafka Connect data failed due to serialization error:
        at connect_py.converters.json_converter.JsonConverter.to_connect_data(json.py:166)
    Caused by: json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)

So scripts around Connect, which take lines without a tab for the causes, find them. A call of generated code, whose text is in no file,
shows its line (`connect_py.rowcode`).
"""

from __future__ import annotations

import linecache
import re
import traceback

from connect_py.errors import DataError
from connect_py.rowcode import title_of

#: A recursion that ran away has a thousand calls, all alike.
_MAX_CALLS = 50
#: A generated line that writes a whole row has some thousand characters.
_MAX_LINE = 120


def trace_of(error: BaseException) -> str:
    """Return what ``GET status`` and dead letters show of a failure. Ends with a line feed."""
    lines: list[str] = []
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        lines.append(f"{'Caused by: ' if lines else ''}{_title(current)}")
        lines += (f"\t{line}" for note in getattr(current, "__notes__", ()) for line in note.splitlines())
        lines += (f"\tat {call}" for call in _calls(current))
        current = _cause(current)
    return "\n".join(lines) + "\n"


def headline(trace: str) -> str:
    """Return a trace in one line, for the log: every cause and what was added to it, without the calls."""
    return " | ".join(line.strip() for line in trace.splitlines() if line and not line.startswith("\tat "))


#: How a statement begins. In capitals: "Set another slot.name" is advice.
_VERB = r"(?:(?:ALTER|GRANT|CREATE|DROP|SELECT|SET|CALL|UPDATE|INSERT|DELETE|REVOKE)\b|db\.|rs\.)"

#: "Run as a superuser: ALTER ROLE …" in the text of an error.
_REQUEST = re.compile(rf"\b(?i:run|execute)\b[^:\n]{{0,80}}: (?={_VERB})")

#: A statement with its semicolon, which may be in quotes as well.
_WHOLE = re.compile(rf" ?(?P<statement>{_VERB}(?:[^;'\"\n]|'[^'\n]*'|\"[^\"\n]*\")*;)")

#: One without: the sentence ends it.
_OPEN = re.compile(r"(?P<statement>[^\n]*?)(?=[,.]? (?:and )?then\b|\. [A-Z]|[.]?(?:\n|$))")


def statement_of(trace: str) -> str | None:
    """Return the statements that an error asks to run at the database, on one line; None where it names none."""
    request = _REQUEST.search(trace)
    if request is None:
        return None
    found, at = [], request.end()
    while whole := _WHOLE.match(trace, at):
        found.append(whole["statement"])
        at = whole.end()
    if found:
        return " ".join(found)
    sentence = _OPEN.match(trace, at)
    return None if sentence is None else sentence["statement"].rstrip(" ;.") + ";"


def cause_of(trace: str) -> str:
    """Return the first line of a trace without the name of its class; of a chain of causes, the first that says more than its class."""
    for line in trace.splitlines():
        if line and not line.startswith("\t"):
            _, colon, text = line.removeprefix("Caused by: ").partition(": ")
            if colon and text.strip():
                return text.strip()
    return trace.partition("\n")[0].strip()


def java_name(error: BaseException) -> str:
    """Return the class of an error as Connect's users know it; its Python name when it is none of ours."""
    name = getattr(error, "java_name", None)
    if name is not None:
        return str(name)
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def own_text(error: BaseException) -> str:
    """Return an error's text; that of a DataError without its cause's at the end, which Connect's converters keep apart."""
    text, cause = _text(error), _cause(error)
    return (text.removesuffix(_text(cause)) or text) if cause is not None and isinstance(error, DataError) else text


def _text(error: BaseException) -> str:
    """Return the error's text. One of PySpark's asks the JVM for it, which has ended by the time a failed task is reported."""
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001  # of any library
        return f"(its text cannot be read: {type(failure).__name__})"


def _title(error: BaseException) -> str:
    text = own_text(error)
    return f"{java_name(error)}: {text}" if text else java_name(error)


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _calls(error: BaseException) -> list[str]:
    calls = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        title = title_of(code.co_filename)
        shown = "" if title is None else f" {linecache.getline(code.co_filename, line).strip()[:_MAX_LINE]}"
        file = title or code.co_filename.rpartition("/")[2]
        calls.append(f"{frame.f_globals.get('__name__', '?')}.{code.co_qualname}({file}:{line}){shown}")
    calls.reverse()
    left = len(calls) - _MAX_CALLS
    return [*calls[:_MAX_CALLS], f"... {left} more"] if left > 0 else calls
