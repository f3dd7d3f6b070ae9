"""The class Connect of kafkaconnect, which answers texts, and its command `kafkaconnect`."""

import json

from kafkaconnect.connect import Connect
from steps import BROKEN, CONFIG, GHOST, NAME, URL, is_in_state, step, until

client = Connect(URL)


def read(call, *arguments):
    """A call's text, as JSON where it is some."""
    text = call(*arguments)
    try:
        return json.loads(text)
    except ValueError:
        return text


def wait_for(state):
    until(lambda: is_in_state(json.loads(client.status(NAME)), state), state)


step("validate", read, client.validate, "FileStreamSource", json.dumps({"name": NAME, **CONFIG}))
step("validate_and_create broken", read, client.validate_and_create, NAME, json.dumps({"name": NAME, **BROKEN}))
step("validate_and_create", read, client.validate_and_create, NAME, json.dumps({"name": NAME, **CONFIG}))
wait_for("RUNNING")
until(lambda: json.loads(client.topics(NAME))[NAME]["topics"], "a topic in use")
step("list", lambda: NAME in json.loads(client.list()))
for call in ("info", "status", "config", "tasks", "topics"):
    step(call, read, getattr(client, call), NAME)
    step(f"{call} of nothing", read, getattr(client, call), GHOST)
step("plugins", read, client.plugins)
step("create_or_update", read, client.create_or_update, NAME, json.dumps({**CONFIG, "batch.size": "50"}))
wait_for("RUNNING")
step("create_or_update broken", read, client.create_or_update, NAME, json.dumps(BROKEN))
step("pause", read, client.pause, NAME)
wait_for("PAUSED")
step("resume", read, client.resume, NAME)
wait_for("RUNNING")
step("restart", read, client.restart, NAME)
step("restart of nothing", read, client.restart, GHOST)
wait_for("RUNNING")
step("remove", read, client.remove, NAME)
step("remove again", read, client.remove, NAME)
