"""What the Python programs share. A program calls a client's functions one by one and prints a line of JSON for each: its name, and what it
returned or raised. It runs outside this project's environment, with the client's own packages only.

    python -S drive_X.py URL NAME TOPIC FILE
"""

import json
import sys
import time
import urllib.error
import urllib.request

URL, NAME, TOPIC, FILE = sys.argv[1:5]

CONFIG = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "tasks.max": "1",
    "file": FILE,
    "topic": TOPIC,
}
BROKEN = {**CONFIG, "tasks.max": "0"}
GHOST = NAME + "-ghost"


def step(label, call, *arguments, **options):
    """Make one call and print what came of it."""
    try:
        outcome = {"returned": call(*arguments, **options)}
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a client raises is its answer
        outcome = {"raised": type(error).__name__, "text": str(error)}
        outcome["returned"] = None
    print(json.dumps({"call": label, **outcome}, default=str), flush=True)
    return outcome["returned"]


def until(probe, what, seconds=60):
    """Ask until it is true; what the probe raises is no answer yet."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if probe():
                return
        except Exception as error:  # noqa: BLE001  # as above
            what = f"{what} ({error!r})"
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {seconds} s")
        time.sleep(0.2)  # noqa: TID251  # a program of its own, with another environment


def send(method, path, body=None, headers=()):
    """One request without a client; gives the status and the body, as JSON where it is some."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, dict(headers), method=method)
    try:
        with urllib.request.urlopen(request, timeout=100) as answer:
            status, content = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, content = error.code, error.read()
    return {"status": status, "body": json.loads(content) if content else None}


def wait_for(state, tasks=True):
    """Wait until the connector is in a state, with its one task or without any."""

    def reached():
        status = send("GET", f"/connectors/{NAME}/status", headers={"Accept": "application/json"})["body"]
        return is_in_state(status, state) if tasks else status["connector"]["state"] == state and not status["tasks"]

    until(reached, state)


def is_in_state(status, state):
    """Whether a status, as GET status answers it, shows the connector and one task in a state."""
    return status["connector"]["state"] == state and [task["state"] for task in status["tasks"]] == [state]
