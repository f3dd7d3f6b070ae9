"""The requests that Strimzi's operator makes for a KafkaConnector resource (`KafkaConnectApiImpl.java`), with its headers, in its order:
create, reconcile, annotate for a restart, pause and stop by `spec.state`, list and alter offsets, set loggers, delete.

And those of Debezium UI's back end (`KafkaConnectClient.java`, `ConnectorResource.java`).
"""

from steps import BROKEN, CONFIG, FILE, GHOST, NAME, send, step, until, wait_for


def ask(method, path, body=None, content_type="application/json", accept="application/json"):
    """One request; gives the status and the body, as JSON where it is some."""
    headers = {"Accept": accept, **({"Content-Type": content_type} if body is not None or method in ("POST", "DELETE") else {})}
    return send(method, path, body, headers)


def strimzi():
    """A resource's life under the operator."""
    step("list", lambda: NAME in ask("GET", "/connectors")["body"])
    step("plugins", ask, "GET", "/connector-plugins")
    step("config before", ask, "GET", f"/connectors/{NAME}/config")
    step("create", ask, "PUT", f"/connectors/{NAME}/config", CONFIG)
    wait_for("RUNNING")
    step("status", ask, "GET", f"/connectors/{NAME}/status")
    step("topics of nothing", ask, "GET", f"/connectors/{GHOST}/topics")
    step("reconcile: config", ask, "GET", f"/connectors/{NAME}/config")
    step("reconcile: apply", ask, "PUT", f"/connectors/{NAME}/config", {**CONFIG, "batch.size": 60})
    wait_for("RUNNING")
    step("reconcile: apply a mistake", ask, "PUT", f"/connectors/{NAME}/config", BROKEN)
    step("restart annotation", ask, "POST", f"/connectors/{NAME}/restart?includeTasks=false&onlyFailed=false")
    wait_for("RUNNING")
    step("restart annotation with tasks", lambda: ask("POST", f"/connectors/{NAME}/restart?includeTasks=true&onlyFailed=false")["status"])
    wait_for("RUNNING")
    step("restart of failed ones", lambda: ask("POST", f"/connectors/{NAME}/restart?includeTasks=true&onlyFailed=true")["status"])
    step("restart of nothing", ask, "POST", f"/connectors/{GHOST}/restart?includeTasks=true&onlyFailed=false")
    step("restart-task annotation", ask, "POST", f"/connectors/{NAME}/tasks/0/restart")
    wait_for("RUNNING")
    step("pause", ask, "PUT", f"/connectors/{NAME}/pause")
    wait_for("PAUSED")
    step("offsets while paused", ask, "DELETE", f"/connectors/{NAME}/offsets")
    step("stop", ask, "PUT", f"/connectors/{NAME}/stop")
    wait_for("STOPPED", tasks=False)
    step(
        "alter offsets",
        ask,
        "PATCH",
        f"/connectors/{NAME}/offsets",
        {"offsets": [{"partition": {"filename": FILE}, "offset": {"position": 4}}]},
    )
    step("list offsets", ask, "GET", f"/connectors/{NAME}/offsets")
    step("reset offsets", ask, "DELETE", f"/connectors/{NAME}/offsets")
    step("resume", ask, "PUT", f"/connectors/{NAME}/resume")
    wait_for("RUNNING")
    logger = f"clients.{NAME}"
    step("set logger", ask, "PUT", f"/admin/loggers/{logger}", {"level": "DEBUG"})
    step("logger", lambda: ask("GET", f"/admin/loggers/{logger}")["body"]["level"])
    step("loggers", lambda: ask("GET", "/admin/loggers")["body"][logger]["level"])
    step("delete", ask, "DELETE", f"/connectors/{NAME}")
    until(lambda: ask("GET", f"/connectors/{NAME}/status")["status"] == 404, "deleted")
    step("delete again", ask, "DELETE", f"/connectors/{NAME}")


def debezium_ui():
    """A connector made and looked after in the UI."""
    step("ui: root", ask, "GET", "/")
    step("ui: plugins", ask, "GET", "/connector-plugins")
    step("ui: validate", ask, "PUT", "/connector-plugins/FileStreamSource/config/validate", {"name": NAME, **CONFIG})
    step("ui: create", ask, "POST", "/connectors", {"name": NAME, "config": CONFIG})
    wait_for("RUNNING")
    step("ui: create again", ask, "POST", "/connectors", {"name": NAME, "config": CONFIG})
    step("ui: expanded", lambda: ask("GET", "/connectors?expand=info&expand=status")["body"][NAME])
    step("ui: info", ask, "GET", f"/connectors/{NAME}")
    step("ui: config", ask, "GET", f"/connectors/{NAME}/config")
    step("ui: status", ask, "GET", f"/connectors/{NAME}/status")
    step("ui: edit", ask, "PUT", f"/connectors/{NAME}/config", {**CONFIG, "batch.size": "70"})
    wait_for("RUNNING")
    step("ui: pause", ask, "PUT", f"/connectors/{NAME}/pause")
    wait_for("PAUSED")
    step("ui: resume", ask, "PUT", f"/connectors/{NAME}/resume")
    wait_for("RUNNING")
    step("ui: restart", ask, "POST", f"/connectors/{NAME}/restart")
    wait_for("RUNNING")
    step("ui: restart task", ask, "POST", f"/connectors/{NAME}/tasks/0/restart")
    wait_for("RUNNING")
    step("ui: restart of nothing", ask, "POST", f"/connectors/{GHOST}/tasks/0/restart")
    step("ui: delete", ask, "DELETE", f"/connectors/{NAME}")


strimzi()
debezium_ui()
