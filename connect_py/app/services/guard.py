"""The guard process (see `process.py`): run as a script, it reads `+pid` and `-pid` lines and terminates what is left at the end of input.

It imports only the standard library, so that it starts in milliseconds and holds little memory.
"""

import os
import signal
import sys
import time

#: How long a server has to end by itself before it is killed, in seconds.
GRACE_SECONDS = 10.0


def started_at(pid: int) -> str:
    """Return when a process began, in ticks since boot; empty where /proc does not say."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def send(pid: int, began: str, number: int) -> bool:
    """Send a signal; False when there is no such process. A busy machine gives a number again soon: who has it now is left alone."""
    if started_at(pid) != began:
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    """Read until the owner is gone, then end what it left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    began: dict[int, str] = {}
    for line in sys.stdin:
        pid = int(line[1:])
        if line[0] == "+":
            began[pid] = started_at(pid)
        else:
            began.pop(pid, None)
    left = [pid for pid in reversed(began) if send(pid, began[pid], signal.SIGTERM)]
    deadline = time.monotonic() + GRACE_SECONDS
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        left = [pid for pid in left if send(pid, began[pid], 0)]
    for pid in left:
        send(pid, began[pid], signal.SIGKILL)


if __name__ == "__main__":
    main()
