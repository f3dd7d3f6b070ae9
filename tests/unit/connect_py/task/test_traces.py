"""Traces in the form that Connect's tools read."""

import json
import re

from connect_py.errors import DataError, FatalTaskError, RetriableError, noted
from connect_py.log.traces import headline, java_name, trace_of


def caught() -> FatalTaskError:
    try:
        try:
            try:
                int("x")
            except ValueError as cause:
                raise DataError(f"cannot read: {cause}") from cause
        except DataError as cause:
            raise noted(FatalTaskError("Tolerance exceeded"), "Nothing was read.\nTry again.") from cause
    except FatalTaskError as error:
        return error


def test_causes_come_outermost_first_and_everything_else_is_indented_by_a_tab() -> None:
    trace = trace_of(caught())
    assert [line for line in trace.splitlines() if not line.startswith("\t")] == [
        "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded",
        "Caused by: org.apache.kafka.connect.errors.DataException: cannot read: ",
        "Caused by: ValueError: invalid literal for int() with base 10: 'x'",
    ]
    assert trace.splitlines()[1:3] == ["\tNothing was read.", "\tTry again."]
    assert re.search(r"\n\tat tests\.unit\.connect_py\.task\.test_traces\.caught\(test_traces\.py:\d+\)\n", trace)


def test_the_innermost_call_comes_first() -> None:
    def inner() -> None:
        raise RetriableError("away")

    def outer() -> None:
        inner()

    try:
        outer()
    except RetriableError as error:
        calls = [line for line in trace_of(error).splitlines() if line.startswith("\tat ")]
    assert ["inner" in calls[0], "outer" in calls[1]] == [True, True]


def test_a_runaway_recursion_is_cut_short() -> None:
    def fall() -> None:
        fall()

    try:
        fall()
    except RecursionError as error:
        trace = trace_of(error)
    assert len(trace.splitlines()) < 60
    assert re.search(r"\tat \.\.\. \d+ more\n$", trace)


def test_a_circle_of_causes_ends() -> None:
    first, second = DataError("1"), DataError("2")
    first.__cause__, second.__cause__ = second, first
    assert trace_of(first).count("Caused by") == 1


def test_the_log_gets_one_line_without_calls() -> None:
    assert headline(trace_of(caught())) == (
        "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded | Nothing was read. | Try again. | "
        "Caused by: org.apache.kafka.connect.errors.DataException: cannot read: | "
        "Caused by: ValueError: invalid literal for int() with base 10: 'x'"
    )


def test_an_error_that_cannot_say_its_text_hides_no_other() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise AssertionError

    error = DataError("Nothing was written.")
    error.__cause__ = Mute()
    trace = trace_of(error)
    assert trace.startswith("org.apache.kafka.connect.errors.DataException: Nothing was written.\n")
    assert trace.endswith("Mute: (its text cannot be read: AssertionError)\n")


def test_an_error_may_have_a_java_name_of_its_own_and_foreign_ones_keep_theirs() -> None:
    error = DataError("Unknown field: b")
    error.java_name = "java.lang.IllegalArgumentException"
    assert trace_of(error) == "java.lang.IllegalArgumentException: Unknown field: b\n"
    assert java_name(ValueError()) == "ValueError"
    assert java_name(json.JSONDecodeError("x", "", 0)) == "json.decoder.JSONDecodeError"
