"""How the command's process ends: as Python does, but without the release of its objects."""

import subprocess
import sys

SCRIPT = """
import atexit, sys, threading
from connect_py.app.cli import main

class Held:
    def __del__(self):
        print("released")

def last():
    threading.main_thread().join()
    print("thread")

held = Held()
atexit.register(print, "at exit")
threading.Thread(target=last).start()
sys.argv[1:] = ["no-such-command"]
main()
"""


def test_threads_end_and_what_is_registered_runs_and_nothing_is_released() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "no-such-command" in ended.stderr
    assert ended.stdout.splitlines() == ["thread", "at exit"]
