"""Generated functions: no name can mean two things, and traces show the lines that failed."""

from __future__ import annotations

import gc
import linecache
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.log.traces import trace_of
from connect_py.rowcode import Code, NameRuleError


def made(code: Code, name: str = "get_all") -> Callable[..., Any]:
    return code.make()[name]


def generated_files() -> list[str]:
    gc.collect()
    return [file for file in linecache.cache if file.startswith("<generated ")]


def divider(title: str = "rows of shop/orders") -> Callable[..., Any]:
    code = Code(title)
    with code.function("divide_all", "d, append"), code.block("for c0, c1 in d:"):
        code.add("c2 = c0 / c1", "append(c2)")
    return made(code, "divide_all")


# -- names -----------------------------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["DAYS", "CLOCKS", "int_of", "DAYS_2", "get_all", "len", "c0", "end", "Ä", "a b", ""])


@given(st.lists(st.tuples(NAMES, st.integers(0, 3).map(lambda number: [number])), max_size=8))
def test_every_text_gets_the_value_that_its_author_gave_the_name(authors: list[tuple[str, list[int]]]) -> None:
    code = Code("t")
    wanted = []
    with code.function("get_all", "c0, end"):
        code.add("found = []")
        for name, value in authors:
            try:
                shown = code.bind_all({name: value})(f"({name})")
            except NameRuleError:
                assert name in {"len", "c0", "end", "Ä", "a b", ""}
                continue
            code.add(f"found.append({shown})")
            wanted.append(value)
        code.add("return found, c0, end")
    found, *parameters = made(code)(1, 2)
    assert len(found) == len(wanted)
    assert all(got is value for got, value in zip(found, wanted, strict=True))
    assert parameters == [1, 2]


def test_equal_texts_and_methods_share_a_name_and_equal_lists_do_not() -> None:
    code = Code("t")
    assert [code.bind("NULL", text) for text in ("null", "".join(["nu", "ll"]))] == ["NULL", "NULL"]
    assert [code.bind("int_of", int.from_bytes) for _ in range(2)] == ["int_of", "int_of"]
    assert [code.bind("DAYS", [1]), code.bind("DAYS", [1])] == ["DAYS", "DAYS_2"]
    assert [code.bind("ONE", 1), code.bind("ONE", True)] == ["ONE", "ONE_2"]


def test_only_whole_names_are_changed() -> None:
    code = Code("t")
    code.bind("DAYS", 1)
    shown = code.bind_all({"DAYS": 2})
    assert shown("DAYS + DAYSX + x.DAYS + f'{DAYS}'") == "DAYS_2 + DAYSX + x.DAYS + f'{DAYS_2}'"


@pytest.mark.parametrize("line", ["DAYS = 1", "some_thing = 1", "len = 1"])
def test_a_variable_that_is_spelled_as_a_bound_name_is_refused(line: str) -> None:
    code = Code("t")
    with code.function("get_all", ""):
        code.add(line)
    with pytest.raises(NameRuleError):
        code.make()


# -- blocks ----------------------------------------------------------------------------------------------------------------------------


def test_blocks_are_indented_and_empty_ones_pass() -> None:
    code = Code("t")
    with code.function("get_all", "p"):
        with code.block("if p:"):
            pass
        with code.block("else:"):
            code.add("p = 1", "p += 1")
        code.add("return p")
    assert code.text == "def get_all(p):\n    if p:\n        pass\n    else:\n        p = 1\n        p += 1\n    return p\n"
    assert made(code)(0) == 2


# -- traces ----------------------------------------------------------------------------------------------------------------------------


def test_a_trace_through_generated_code_shows_its_lines() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        divider()([(1, 1), (1, 0)], [].append)
    shown = "".join(traceback.format_exception(raised.value))
    assert '> rows of shop/orders", line 3, in divide_all\n    c2 = c0 / c1\n' in shown
    assert "\tat generated.divide_all(rows of shop/orders:3) c2 = c0 / c1\n" in trace_of(raised.value)


def test_lines_are_kept_as_long_as_a_function_or_its_frame() -> None:
    before = generated_files()
    divide = divider()
    assert len(generated_files()) == len(before) + 1
    with pytest.raises(ZeroDivisionError) as raised:
        divide([(1, 0)], [].append)
    del divide
    assert "c2 = c0 / c1" in "".join(traceback.format_exception(raised.value))
    del raised
    assert generated_files() == before


@pytest.mark.long
def test_ten_thousand_functions_leave_no_lines_behind() -> None:
    before = generated_files()
    for number in range(10_000):
        divider(f"t{number}")
    assert generated_files() == before


def test_functions_of_one_title_have_lines_of_their_own() -> None:
    first = Code("t")
    with first.function("get_all", ""):
        first.add("return 1 / 0")
    second = Code("t")
    with second.function("get_all", ""):
        second.add("p = 0", "return 2 / p")
    one, two = made(first), made(second)
    for function, line in ((one, "return 1 / 0"), (two, "return 2 / p"), (one, "return 1 / 0")):
        with pytest.raises(ZeroDivisionError) as raised:
            function()
        assert line in "".join(traceback.format_exception(raised.value))
