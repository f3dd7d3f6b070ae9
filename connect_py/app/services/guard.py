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
    """When the living process with this id began, in Linux's ticks since boot (`/proc/<pid>/stat`, field 22); empty when there is none.

    Where there is no /proc it is a constant for every living process.
    """
    if not os.path.exists("/proc/self/stat"):
        try:
            os.kill(pid, 0)
        except OSError:
            return ""
        return "unknown"
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def send(pid: int, began: str, number: int) -> bool:
    """Send a signal; False when that process has ended. A busy machine gives a number again soon: who has it now is left alone."""
    if not began or started_at(pid) != began:
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
