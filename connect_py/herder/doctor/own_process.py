"""What the process that asks has too little of. In a worker's answer that is the worker itself."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

from connect_py.api.doctor import Finding, Person

#: Each task and each broker of each Kafka client takes some; beyond this share, a few more connectors reach the limit.
_MOST_OF_LIMIT = 0.8


def open_files() -> tuple[int, int]:
    """Return how many files this process has open, and how many it may; 0 are open where the system does not say (outside of Linux)."""
    listed, limit = Path("/proc/self/fd"), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if not listed.is_dir():
        return 0, limit
    try:
        return len(os.listdir(listed)), limit
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        return limit, limit  # not even the list can be opened any more


def open_file_findings(used: int, limit: int) -> Iterator[Finding]:
    """Check that more files and connections can be opened; a negative limit is none."""
    if limit >= 0 and used > _MOST_OF_LIMIT * limit:
        yield Finding(
            "worker.open_files",
            f"The worker has {used} files and connections open, and may have {limit}.",
            "At the limit, tasks do not start and requests are refused.",
            Person.YOU,
            advice="Raise it where the worker is started, and restart the worker: LimitNOFILE in a systemd unit, ulimits in a container, "
            "ulimit -n in a shell.",
            severity="risk",
        )
