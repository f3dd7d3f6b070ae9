"""Three tables of a source, one for each way of writing: what their topics say, and whether the lakehouse's tables are that."""

from __future__ import annotations

import random

from tests.fix_spark import INT, Lake, event


class Source:
    """What the tables hold, and have held.

    Args:
        with_versions: whether there is the table of versions, beside those of the other two ways.

    Attributes:
        events: how many have been sent, of all tables.
    """

    def __init__(self, lake: Lake, rng: random.Random, *, with_versions: bool = True) -> None:
        self._lake, self._rng, self._with_versions = lake, rng, with_versions
        self._kept, self._logged, self._versions = lake.topic("kept"), lake.topic("logged", partitions=2), lake.topic("versions")
        self._rows: dict[int, int] = {}
        self._events = [0, 0]
        self._history: dict[int, list[int]] = {}
        self.events = 0

    def config(self, driver: str, **more: str) -> dict[str, str]:
        """A connector's over all three."""
        topics = [self._kept, self._logged, *([self._versions] if self._with_versions else [])]
        return self._lake.config(*topics, source_mode=driver, **more) | {
            "lakehouse.table.public.logged.write-mode": "append",
            "lakehouse.table.public.versions.write-mode": "scd2",
        }

    def change(self, count: int = 20) -> None:
        """So many changes of each table."""
        rng = self._rng
        for number in range(count):
            key, partition, value = rng.randrange(9), rng.randrange(2), rng.randrange(999)
            gone = key in self._rows and rng.random() < 0.3
            row = {"n": self._rows[key] if gone else value}
            self._lake.produce(self._kept, [event("d" if gone else "u", key, row, {"n": INT}, "kept")])
            if self._with_versions:
                self._lake.produce(self._versions, [event("d" if gone else "u", key, row, {"n": INT}, "versions")])
            if gone:
                del self._rows[key]
            else:
                self._rows[key] = value
                self._history.setdefault(key, []).append(value)
            self._lake.produce(self._logged, [event("c", None, {"n": number}, {"n": INT}, "logged")], partition)
            self._events[partition] += 1
        self.events += count * (3 if self._with_versions else 2)

    def check(self) -> None:
        """The lakehouse's tables are what was said: the last row of each key, every event once, every version once."""
        assert {row["id"]: row["n"] for row in self._lake.rows("kept")} == self._rows
        places = sorted((row["__partition"], row["__offset"]) for row in self._lake.whole_rows("logged"))
        assert places == [(partition, offset) for partition in (0, 1) for offset in range(self._events[partition])]
        if not self._with_versions:
            return
        versions = self._lake.whole_rows("versions")
        found: dict[int, list[int]] = {}
        for row in versions:
            found.setdefault(row["id"], []).append(row["n"])
        assert {key: sorted(values) for key, values in found.items()} == {key: sorted(values) for key, values in self._history.items()}
        assert sorted((row["id"], row["n"]) for row in versions if row["__is_current"]) == sorted(self._rows.items())
