"""The world `cluster`, in which clients put the configuration again that a connector has, and leaders that are Java workers write it again
behind the tasks that were made of it. Compaction then makes the tasks look like those of a deleted connector (KAFKA-17719)."""

from __future__ import annotations

from offsets.config_store import CONNECTOR
from tests.sim.cluster import NAMES, ClusterWorld


class RepeatsWorld(ClusterWorld):
    """A run."""

    def _request(self) -> None:
        living = [worker for worker in self.workers.values() if worker.owner.is_alive and worker.has_started]
        kind, name = self.chance.below(4), self.chance.pick(NAMES)
        if kind > 1 or not living:
            super()._request()
        elif kind == 1:
            self._write_again(name)
        else:
            worker = self.chance.pick(living)
            config = worker.configs.snapshot().connectors.get(name)
            if config is not None:
                self.ask(
                    worker, f"put {name} {config['v']} again", lambda herder: herder.put_connector(name, dict(config), may_replace=True)
                )

    def _write_again(self, name: str) -> None:
        key = (CONNECTOR + name).encode()
        written = [value for _, (found, value) in sorted(self.config_topic.records.items()) if found == key]
        if written and written[-1] is not None and not self.config_topic.is_silent:
            self.note("  %s is written again", name)
            self.config_topic.append([(key, written[-1])])

    def _compaction(self) -> None:
        self.config_topic.compact()
