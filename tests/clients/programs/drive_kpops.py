"""KafkaConnect and KafkaConnectHandler's calls in kpops."""

import asyncio
from types import SimpleNamespace

from kpops.component_handlers.kafka_connect.kafka_connect_api import KafkaConnect
from kpops.component_handlers.kafka_connect.model import ConnectorNewState, KafkaConnectorConfig
from steps import BROKEN, CONFIG, GHOST, NAME, URL, step, until

loop = asyncio.new_event_loop()
client = KafkaConnect(SimpleNamespace(url=URL, timeout=30))


def run(call, *arguments, **options):
    """Wait for a call; models become what they hold."""
    found = loop.run_until_complete(call(*arguments, **options))
    return found.model_dump(mode="json") if hasattr(found, "model_dump") else found


def wait_for(state):
    def reached():
        status = run(client.get_connector_status, NAME)
        return status["connector"]["state"] == state and [task["state"] for task in status["tasks"]] == [state] * (state != "STOPPED")

    until(reached, state)


config = KafkaConnectorConfig(name=NAME, **CONFIG)
broken = KafkaConnectorConfig(name=NAME, **BROKEN)
ghost = KafkaConnectorConfig(name=GHOST, **CONFIG)

step("validate", run, client.validate_connector_config, config)
step("validate broken", run, client.validate_connector_config, broken)
step("get of nothing", run, client.get_connector, GHOST)
step("status of nothing", run, client.get_connector_status, GHOST)
step("create broken", run, client.create_connector, broken)
step("create paused", run, client.create_connector, config, ConnectorNewState.PAUSED)
until(lambda: run(client.get_connector_status, NAME)["connector"]["state"] == "PAUSED", "PAUSED")
step("resume", run, client.resume_connector, NAME)
wait_for("RUNNING")
step("get", run, client.get_connector, NAME)
step("status", run, client.get_connector_status, NAME)
step("update", run, client.update_connector_config, KafkaConnectorConfig(name=NAME, **{**CONFIG, "batch.size": 5}))
wait_for("RUNNING")
step("update broken", run, client.update_connector_config, broken)
step("pause", run, client.pause_connector, NAME)
wait_for("PAUSED")
step("reset offsets while paused", run, client.reset_offset, NAME)
step("stop", run, client.stop_connector, NAME)
wait_for("STOPPED")
step("reset offsets", run, client.reset_offset, NAME)
step("reset offsets of nothing", run, client.reset_offset, GHOST)
step("delete", run, client.delete_connector, NAME)
step("delete again", run, client.delete_connector, NAME)
