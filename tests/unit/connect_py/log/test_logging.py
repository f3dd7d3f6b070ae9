"""The lines of the worker's log, as an operator's tools read them."""

import itertools
import json
import logging
import re
import sys
import threading

import pytest

from connect_py.log.levels import levels_from_environment
from connect_py.log.lines import JsonFormatter, LineFormatter, context, forwarder, set_level
from connect_py.log.repeats import GAPS, MAX_KINDS, QUIET_SECONDS, RepeatFilter


def record(level: int, text: str, *values: object, name: str = "connect_py.x") -> logging.LogRecord:
    return logging.LogRecord(name, level, __file__, 17, text, values, None)


def failed(text: str) -> logging.LogRecord:
    try:
        raise ValueError("swordfish")
    except ValueError:
        made = record(logging.ERROR, text)
        made.exc_info = sys.exc_info()
        return made


def hide(text: str) -> str:
    return text.replace("swordfish", "[hidden]")


def test_a_line_has_the_form_of_connects_default_pattern() -> None:
    line = LineFormatter(default_context="inventory|task-0").format(record(logging.WARNING, "Snapshot of %d tables", 2))
    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] WARN \[inventory\|task-0\] Snapshot of 2 tables \(connect_py\.x:17\)", line
    )


def test_the_worker_itself_has_no_context() -> None:
    assert re.fullmatch(r"\[[^]]+\] INFO started \(connect_py\.x:17\)", LineFormatter().format(record(logging.INFO, "started")))


def test_the_connector_at_work_is_named_before_the_default() -> None:
    token = context.set("orders|worker")
    try:
        assert " INFO [orders|worker] started" in LineFormatter(default_context="x").format(record(logging.INFO, "started"))
    finally:
        context.reset(token)


def test_what_concerns_a_tasks_offsets_has_a_scope_of_its_own() -> None:
    event = record(logging.WARNING, "kept", name="connect_py.task.offsets")
    assert " [inventory|task-0|offsets] kept" in LineFormatter(default_context="inventory|task-0").format(event)
    assert "offsets" not in LineFormatter().format(record(logging.WARNING, "kept"))


def test_further_lines_are_indented_and_secrets_are_taken_out_of_all_of_them() -> None:
    first, *others = LineFormatter(redact=hide).format(failed("swordfish\nsecond")).splitlines()
    assert first.endswith("ERROR [hidden]")
    assert others[0] == "    second (connect_py.x:17)"
    assert others[-1] == "    ValueError: [hidden]"
    assert all(line.startswith("    ") for line in others)


def test_json_has_one_object_a_line_with_the_parts_of_the_context() -> None:
    line = JsonFormatter(redact=hide, default_context="a|b|task-12").format(failed('say "swordfish"\n'))
    assert "\n" not in line
    event = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["timestamp"])
    assert (event["level"], event["logger"], event["message"]) == ("ERROR", "connect_py.x", 'say "[hidden]"\n')
    assert (event["connector"], event["task"], event["scope"]) == ("a|b", 12, "task")
    assert event["exception"].endswith("ValueError: [hidden]")


def test_what_a_tasks_children_print_becomes_an_event_among_json(capsys: pytest.CaptureFixture[str]) -> None:
    forward = forwarder("lake|task-0", {"CONNECT_PY_LOG_FORMAT": "json"})
    own = JsonFormatter(default_context="lake|task-0").format(record(logging.INFO, "ready"))
    forward("26/03/01 WARN Utils: hostname resolves to a loopback address")
    forward(own)
    first, second = capsys.readouterr().err.splitlines()
    assert json.loads(first)["message"].endswith("loopback address") and json.loads(first)["connector"] == "lake"
    assert second == own


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ("INFO", {})),
        ({"LOG_LEVEL": "debug"}, ("DEBUG", {})),
        ({"LOG_LEVEL": "DEBUG", "CONNECT_PY_LOG_LEVEL": "WARN"}, ("WARN", {})),
        ({"CONNECT_LOG4J_LOGGERS": "DEBUG, stdout"}, ("DEBUG", {})),
        (
            {"CONNECT_LOG4J_LOGGERS": "io.debezium=TRACE,org.reflections=ERROR"},
            ("INFO", {"io.debezium": "TRACE", "org.reflections": "ERROR"}),
        ),
        ({"CONNECT_LOG4J_ROOT_LOGLEVEL": "ERROR", "CONNECT_LOG4J_LOGGER_IO_DEBEZIUM": "DEBUG"}, ("ERROR", {"io.debezium": "DEBUG"})),
        ({"LOG_LEVEL": "loud"}, ("INFO", {})),
    ],
)
def test_levels_are_taken_from_the_variables_of_the_usual_images(variables: dict[str, str], expected: tuple[str, dict[str, str]]) -> None:
    assert levels_from_environment(variables) == expected


class Repeated:
    """A filter with a clock of its own; what came out of it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ends: list[str] = []
        self.filter = RepeatFilter(lambda end: self.ends.append(end.getMessage()), lambda: self.now, look_seconds=None)

    def log(self, text: str, *values: object, level: int = logging.WARNING) -> str | None:
        event = record(level, text, *values)
        return event.getMessage() if self.filter.filter(event) else None


def test_an_outage_of_a_night_is_some_twenty_lines_and_has_an_end() -> None:
    repeated = Repeated()
    shown = []
    for attempt in range(8 * 3600 // 10):
        repeated.now = attempt * 10.0
        shown.append(repeated.log("the server is away (attempt %d, at 0/%X)", attempt, attempt + 0xABC))
        assert not repeated.ends
        repeated.filter.look_for_ends()
    lines = [line for line in shown if line]
    assert len(lines) <= 22
    assert lines[1].endswith("[2 more like this were left out]")
    times = [attempt * 10.0 for attempt, line in enumerate(shown) if line]
    assert [later - sooner for sooner, later in itertools.pairwise(times)][:7] == [*GAPS, GAPS[-1]]
    repeated.now += QUIET_SECONDS + 1
    assert repeated.filter.look_for_ends() is False
    assert repeated.ends == [f"No longer, after {len(shown)} times in 8.0 h: the server is away (attempt #, at #)"]
    assert repeated.log("the server is away (attempt %d, at 0/%X)", 1, 0xABC) is not None


def test_an_end_that_could_not_be_shown_does_not_keep_later_ones_from_it() -> None:
    now, shown, tries = [0.0], threading.Event(), []

    def emit(end: logging.LogRecord) -> None:
        tries.append(end.getMessage())
        if len(tries) == 1:
            raise OSError("no room on the device")
        shown.set()

    repeats = RepeatFilter(emit, lambda: now[0], look_seconds=0.01)
    for text in ("first is away", "second is away"):
        for _ in range(2):
            repeats.filter(record(logging.WARNING, text))
        now[0] += QUIET_SECONDS + 1
    assert shown.wait(60)
    assert len(tries) == 2


def test_different_warnings_and_quiet_levels_pass() -> None:
    repeated = Repeated()
    assert all(repeated.log("task %s died", name) for name in ("inventory-0", "inventory-a", "orders-0"))
    assert all(repeated.log("read", level=logging.INFO) for _ in range(5))


def test_a_text_that_varies_without_end_does_not_fill_the_memory() -> None:
    repeated = Repeated()
    for number in range(5000):
        repeated.log("x" + "y" * (number % 299) + chr(0x4E00 + number))
    assert 0 < len(repeated.filter) <= MAX_KINDS


def test_a_level_that_a_logger_has_is_not_set_again() -> None:
    """Each level that is set empties the memory of every logger, which forked tasks share."""

    class Counting(logging.Logger):
        count = 0

        def setLevel(self, level: int | str) -> None:
            self.count += 1
            super().setLevel(level)

    logger = Counting("a", logging.WARNING)
    set_level(logger, logging.WARNING)
    set_level(logger, logging.INFO)
    set_level(logger, logging.INFO)
    assert (logger.count, logger.level) == (1, logging.INFO)
