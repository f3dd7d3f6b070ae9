"""The classes Api, Cluster, Connector and Task of kafka-connect-api."""

from kafka_connect_api.kafka_connect_api import Api, Cluster, Connector
from steps import BROKEN, CONFIG, GHOST, NAME, URL, is_in_state, step, until

cluster = Cluster(Api(url=URL))
connector = Connector(cluster, NAME)
ghost = Connector(cluster, GHOST)


def wait_for(state):
    until(lambda: is_in_state(connector.status, state), state)


def set_config(target, config):
    target.config = config


step("version", lambda: cluster.version)
step("kafka cluster", lambda: bool(cluster.kafka_cluster))
step("exists before", connector.exists)
step("set config", set_config, connector, CONFIG)
wait_for("RUNNING")
step("exists", connector.exists)
step("connectors", lambda: NAME in cluster.connectors)
step("config", lambda: connector.config)
step("state", lambda: connector.state)
step("class", lambda: connector.connector_class)
step("tasks", lambda: [(task.id, task.config, task.is_running()) for task in connector.tasks])
step("set config again", set_config, connector, {**CONFIG, "batch.size": "10"})
wait_for("RUNNING")
step("set broken config", set_config, connector, BROKEN)
step("config afterwards", lambda: connector.config)
step("pause", connector.pause)
wait_for("PAUSED")
step("resume", connector.resume)
wait_for("RUNNING")
step("restart", connector.restart)
wait_for("RUNNING")
step("restart all tasks", connector.restart_all_tasks)
wait_for("RUNNING")
step("cycle", connector.cycle_connector)
wait_for("RUNNING")
for name in ("status", "config", "tasks"):
    step(f"{name} of nothing", getattr, ghost, name)
step("restart of nothing", ghost.restart)
step("root logger", lambda: cluster.root_logger["level"])
step("loggers", lambda: "root" in cluster.loggers)
step("delete", connector.delete)
until(lambda: NAME not in cluster.connectors, "deleted")
step("delete again", connector.delete)
