"""The command `kc` of kafka-connect-py, and the class under it."""

import contextlib
import io
import json

from kafka_connect import KafkaConnect
from kafka_connect.cli import cli
from steps import BROKEN, CONFIG, FILE, GHOST, NAME, URL, is_in_state, step, until

client = KafkaConnect(URL)


def kc(*arguments):
    """Run the command in this process; gives what it printed and its exit code."""
    out = io.StringIO()
    code = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            cli(args=["--url", URL, *arguments], prog_name="kc")
    except SystemExit as end:
        code = end.code
    text = out.getvalue().strip()
    try:
        return {"exit": code, "json": json.loads(text)}
    except ValueError:
        return {"exit": code, "text": text}


def wait_for(state):
    until(lambda: is_in_state(client.get_connector_status(NAME), state), state)


step("info", kc, "info")
step("create", kc, "create", "-d", json.dumps({"name": NAME, "config": CONFIG}))
wait_for("RUNNING")
until(lambda: client.list_connector_topics(NAME)[NAME]["topics"], "a topic in use")
step("create again", kc, "create", "-d", json.dumps({"name": NAME, "config": CONFIG}))
step("create broken", kc, "create", "-d", json.dumps({"name": NAME + "-broken", "config": BROKEN}))
step("list", kc, "list", "-p", NAME)
step("list running", kc, "list", "-p", NAME, "-s", "RUNNING", "-e", "status")
step("list info", kc, "list", "-p", NAME, "-e", "info")
for command in ("get", "config", "status", "list-tasks", "list-topics"):
    step(command, kc, command, NAME)
    step(f"{command} of nothing", kc, command, GHOST)
step("task-status", kc, "task-status", NAME, "0")
step("task-status of nothing", kc, "task-status", NAME, "7")
step("update", client.update_connector, NAME, {**CONFIG, "batch.size": "100"})
wait_for("RUNNING")
step("pause", kc, "pause", NAME)
wait_for("PAUSED")
step("pause of nothing", kc, "pause", GHOST)
step("resume", kc, "resume", NAME)
wait_for("RUNNING")
step("restart", client.restart_connector, NAME, include_tasks=True)
wait_for("RUNNING")
step("restart of nothing", kc, "restart", GHOST)
step("restart-task", kc, "restart-task", NAME, "0")
wait_for("RUNNING")
step("pause all", kc, "pause", "--all", "-p", NAME)
wait_for("PAUSED")
step("reset-topics", kc, "reset-topics", NAME)
step("list-plugins", kc, "list-plugins")
step("validate-config", client.validate_connector_config, "FileStreamSource", {"name": NAME, **BROKEN, "file": FILE})
step("delete", kc, "delete", NAME)
step("delete again", kc, "delete", NAME)
