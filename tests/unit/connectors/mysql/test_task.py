"""The MySQL task where no server is needed."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from connect_py.errors import ConfigError
from connectors.mysql.task import MySqlConnectorTask


def test_a_task_that_refused_its_configuration_can_be_closed_so_that_the_reason_is_what_its_trace_says() -> None:
    task = MySqlConnectorTask()
    config = {"database.hostname": "localhost", "database.user": "root", "database.server.id": "1", "topic.prefix": "p"}
    with pytest.raises(ConfigError, match=r"schema\.history\.internal\.kafka\.topic"):
        task.start(config, Mock())
    task.close()
