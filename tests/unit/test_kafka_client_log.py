"""librdkafka's repeated lines are counted, not shown."""

import logging

import pytest

from connect_py.kafka import client_log


def test_a_repeated_line_is_shown_once_and_counted_later(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.DEBUG)
    now = 1000.0
    monkeypatch.setattr(client_log.time, "monotonic", lambda: now)
    log = client_log.ClientLog()
    for _ in range(100):
        log.log(logging.ERROR, "%s [%s] %s", "FAIL", "me", "refused")
    log.log(logging.INFO, "%s [%s] %s", "OTHER", "me", "fine")
    now += client_log.REPEAT_SECONDS
    log.log(logging.ERROR, "%s [%s] %s", "FAIL", "me", "refused")
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, "FAIL [me] refused"),
        (logging.INFO, "OTHER [me] fine"),
        (logging.WARNING, "FAIL [me] refused (99 more of the kind since)"),
    ]
