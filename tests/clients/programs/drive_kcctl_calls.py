"""The requests that kcctl makes (`KafkaConnectApi.java`): every method of its interface, with the headers of its client, in the order in
which its commands use them: info, get, describe, apply, patch, pause, stop, restart, offsets, loggers, delete.

kcctl itself is published as a native binary on GitHub alone.
"""

from steps import BROKEN, CONFIG, FILE, GHOST, NAME, TOPIC, send, step, until, wait_for


def ask(method, path, body=None):
    """One request; gives the status and the body. A body is JSON, as is every POST, PUT and PATCH of its client."""
    headers = {"Accept": "application/json", **({"Content-Type": "application/json"} if method in ("POST", "PUT", "PATCH") else {})}
    return send(method, path, body, headers)


def info_and_plugins():
    step("info", ask, "GET", "/")
    step("get plugins", ask, "GET", "/connector-plugins?connectorsOnly=true")
    step("get plugins --all", lambda: ask("GET", "/connector-plugins?connectorsOnly=false")["status"])
    step("describe plugin", lambda: ask("GET", "/connector-plugins/FileStreamSourceConnector/config"))
    step("describe plugin: none", ask, "GET", "/connector-plugins/NoSuchConnector/config")


def no_class():
    """kcctl lists the plugins at this error. The text names those that the worker has, and from the second time on Kafka Connect puts an
    exception's name before it (`CachedConnectors.java`)."""
    found = ask("PUT", f"/connectors/{GHOST}/config", {**CONFIG, "connector.class": "NoSuchConnector"})
    return found["status"], "Failed to find any class that implements Connector" in found["body"]["message"]


def apply():
    """`apply --dry-run` names the class without its package and puts a placeholder for a missing name."""
    step("apply --dry-run", ask, "PUT", "/connector-plugins/FileStreamSourceConnector/config/validate", {"name": "dummy-name", **CONFIG})
    step("apply --dry-run: errors", ask, "PUT", "/connector-plugins/FileStreamSourceConnector/config/validate", {"name": NAME, **BROKEN})
    step("apply: exists?", lambda: NAME in ask("GET", "/connectors/")["body"])
    step("apply: create", ask, "POST", "/connectors/", {"name": NAME, "config": CONFIG})
    wait_for("RUNNING")
    step("apply: create again", ask, "POST", "/connectors/", {"name": NAME, "config": CONFIG})
    step("apply: update", ask, "PUT", f"/connectors/{NAME}/config", {**CONFIG, "batch.size": "60"})
    wait_for("RUNNING")
    step("apply: no class", no_class)
    step("apply: a mistake", ask, "PUT", f"/connectors/{NAME}/config", BROKEN)


def describe():
    until(lambda: ask("GET", f"/connectors/{NAME}/topics")["body"][NAME]["topics"] == [TOPIC], "topics")
    for what in ("", "/status", "/config", "/topics", "/tasks-config", "/tasks"):
        step(f"describe: {what or '/'}", ask, "GET", f"/connectors/{NAME}{what}")
        step(f"describe: {what or '/'} of none", ask, "GET", f"/connectors/{GHOST}{what}")
    step("get connectors", lambda: ask("GET", "/connectors?expand=status&expand=info")["body"][NAME])


def states():
    step("restart", ask, "POST", f"/connectors/{NAME}/restart")
    wait_for("RUNNING")
    step("restart --tasks all", lambda: ask("POST", f"/connectors/{NAME}/restart?includeTasks=true&onlyFailed=false")["status"])
    wait_for("RUNNING")
    step("restart --tasks failed", lambda: ask("POST", f"/connectors/{NAME}/restart?includeTasks=true&onlyFailed=true")["status"])
    wait_for("RUNNING")
    step("restart task", ask, "POST", f"/connectors/{NAME}/tasks/0/restart")
    wait_for("RUNNING")
    step("restart task: none", ask, "POST", f"/connectors/{NAME}/tasks/7/restart")
    step("restart task: no number", ask, "POST", f"/connectors/{NAME}/tasks/x/restart")
    step("pause", ask, "PUT", f"/connectors/{NAME}/pause")
    wait_for("PAUSED")
    step("resume", ask, "PUT", f"/connectors/{NAME}/resume")
    wait_for("RUNNING")
    for verb in ("restart", "pause", "resume", "stop"):
        step(f"{verb}: none", ask, "POST" if verb == "restart" else "PUT", f"/connectors/{GHOST}/{verb}")


def offsets():
    place = {"partition": {"filename": FILE}, "offset": {"position": 4}}
    step("patch offsets: it runs", ask, "PATCH", f"/connectors/{NAME}/offsets", {"offsets": [place]})
    step("stop", ask, "PUT", f"/connectors/{NAME}/stop")
    wait_for("STOPPED", tasks=False)
    step("patch offsets", ask, "PATCH", f"/connectors/{NAME}/offsets", {"offsets": [place]})
    step("get offsets", ask, "GET", f"/connectors/{NAME}/offsets")
    step("delete offsets", ask, "DELETE", f"/connectors/{NAME}/offsets")
    step("get offsets: deleted", ask, "GET", f"/connectors/{NAME}/offsets")
    step("get offsets: none", ask, "GET", f"/connectors/{GHOST}/offsets")
    step("delete offsets: none", ask, "DELETE", f"/connectors/{GHOST}/offsets")


def loggers():
    logger = f"clients.{NAME}"
    step("patch logger", ask, "PUT", f"/admin/loggers/{logger}", {"level": "DEBUG"})
    step("patch logger --scope worker", ask, "PUT", f"/admin/loggers/{logger}?scope=worker", {"level": "WARN"})
    step("patch logger --scope cluster", ask, "PUT", f"/admin/loggers/{logger}?scope=cluster", {"level": "TRACE"})
    until(lambda: ask("GET", f"/admin/loggers/{logger}")["body"]["level"] == "TRACE", "level")
    step("patch logger: no level", ask, "PUT", f"/admin/loggers/{logger}", {"level": "LOUD"})
    step("get logger", lambda: ask("GET", f"/admin/loggers/{logger}")["body"]["level"])
    step("get loggers", lambda: ask("GET", "/admin/loggers/")["body"][logger]["level"])


info_and_plugins()
apply()
describe()
states()
offsets()
loggers()
step("delete", ask, "DELETE", f"/connectors/{NAME}")
until(lambda: ask("GET", f"/connectors/{NAME}/status")["status"] == 404, "deleted")
step("delete again", ask, "DELETE", f"/connectors/{NAME}")
