"""The guard process (see `process.py`): run as a script, it reads `+pid` and `-pid` lines and terminates what is left at the end of input.

It imports only the standard library, so that it starts in milliseconds and holds little memory.
"""

import os
import signal
import sys
import time

#: How long a server has to end by itself before it is killed, in seconds.
GRACE_SECONDS = 10.0


def send(pid: int, number: int) -> bool:
    """Send a signal; False when there is no such process."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    """Read until the owner is gone, then end what it left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pids: list[int] = []
    for line in sys.stdin:
        pid = int(line[1:])
        if line[0] == "+":
            pids.append(pid)
        elif pid in pids:
            pids.remove(pid)
    left = [pid for pid in reversed(pids) if send(pid, signal.SIGTERM)]
    deadline = time.monotonic() + GRACE_SECONDS
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        left = [pid for pid in left if send(pid, 0)]
    for pid in left:
        send(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
