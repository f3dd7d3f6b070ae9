"""The lines of the worker's log, as an operator's tools read them."""

import logging
import re
import sys

from connect_py.runtime.logging import LineFormatter, context


def record(level: int, text: str, *values: object) -> logging.LogRecord:
    return logging.LogRecord("connect_py.x", level, __file__, 1, text, values, None)


def test_a_line_has_date_time_level_task_and_text() -> None:
    line = LineFormatter(default_context="inventory-0").format(record(logging.WARNING, "Snapshot of %d tables", 2))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} WARN  inventory-0  Snapshot of 2 tables", line)


def test_the_connector_at_work_is_named_before_the_default() -> None:
    token = context.set("orders")
    try:
        assert " INFO  orders  started" in LineFormatter(default_context="x").format(record(logging.INFO, "started"))
    finally:
        context.reset(token)


def test_further_lines_are_indented_and_secrets_are_taken_out_of_all_of_them() -> None:
    formatter = LineFormatter(redact=lambda text: text.replace("swordfish", "[hidden]"))
    try:
        raise ValueError("swordfish")
    except ValueError:
        failed = record(logging.ERROR, "swordfish\nsecond")
        failed.exc_info = sys.exc_info()
    first, *others = formatter.format(failed).splitlines()
    assert first.endswith("ERROR [hidden]")
    assert others[0] == "    second"
    assert others[-1] == "    ValueError: [hidden]"
    assert all(line.startswith("    ") for line in others)
