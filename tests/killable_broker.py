"""A broker that can be killed and brought back with its data, and one that can stand still."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from connect_py.app.services.kafka import KafkaBroker
from connect_py.app.services.process import Service, is_listening


class KillableBroker:
    """The broker of the tests' services, and the command by which it is started again.

    Args:
        more: lines of properties, as `KafkaBroker` takes them.
    """

    def __init__(self, folder: Path, more: str = "") -> None:
        broker = KafkaBroker(folder, more=more)
        self.bootstrap, self._service = broker.bootstrap, broker.service
        self._command = Path(f"/proc/{self._service.pid}/cmdline").read_text().split("\0")[:-1]

    def kill(self) -> None:
        """End it by SIGKILL; return when it has ended."""
        self._service.kill()

    def bring_back(self) -> None:
        """Start it on its data, on the same port; return when it listens."""
        self._service = Service("the Kafka broker", self._command, self._service.log)
        self._service.wait_ready(lambda: is_listening(int(self.bootstrap.rpartition(":")[2])))

    def freeze(self) -> None:
        """Let it stand still (SIGSTOP): its connections stay open, and nothing is answered."""
        os.kill(self._service.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on (SIGCONT)."""
        os.kill(self._service.pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it for good."""
        self._service.kill()
