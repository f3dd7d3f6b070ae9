"""Runs the scenarios that pytest has selected ahead of their tests, several at a time; each test waits for its own outcome."""

from __future__ import annotations

import json
import os
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.parity import kit
from tests.parity.kit import Known, Outcome
from tests.parity.reader import TopicReader
from tests.parity.servers import Servers

HERE = Path(__file__).parent
#: Scenarios wait much more than they compute.
AT_A_TIME = int(os.environ.get("PARITY_JOBS", "8"))
#: What topics hold at each step of each scenario; `PARITY_LEARN=1` has a slow run write it.
STEPS = HERE / "steps.json"
LEARN = "PARITY_LEARN"


@dataclass(frozen=True)
class Case:
    """A scenario, against which servers, and what it is held to.

    Attributes:
        golden: the folder's name, `golden` or `golden_mariadb`.
        scenario: its name.
        servers: where it runs.
        theirs: text of our recording to what the golden has in its place.
        server: which database server it uses, as opposed to other cases.
    """

    golden: str
    scenario: str
    servers: Servers = field(compare=False)
    theirs: dict[str, str] = field(compare=False)
    server: str = ""

    def load_golden(self) -> dict[str, object]:
        """Read the recording that the scenario is held to."""
        found: dict[str, object] = json.loads((HERE / self.golden / f"{self.scenario}.json").read_text())
        return found


class Lane:
    """A pool of scenarios that run ahead of the tests that ask for them."""

    def __init__(self, bootstrap: str) -> None:
        kit.load()
        self._reader = TopicReader(bootstrap)
        self._pool = ThreadPoolExecutor(AT_A_TIME)
        # one thread for each server that some scenarios have for themselves
        self._apart = ThreadPoolExecutor()
        self._closed = False
        self._running: dict[tuple[str, str], Future[Outcome]] = {}
        self._steps = json.loads(STEPS.read_text()) if STEPS.exists() else {}
        self._learn = bool(os.environ.get(LEARN))

    def start(self, cases: list[Case]) -> None:
        """Begin with the scenarios of tests that will ask for them: all those of a database server at once.

        The ones that must have the server for themselves come first, one after another.
        """
        self._running |= {(case.golden, case.scenario): Future() for case in cases}
        first: dict[str, list[Case]] = {case.server: [] for case in cases}
        for case in cases:
            if case.scenario in kit.APART:
                first[case.server].append(case)
        for server, chain in first.items():
            if chain:
                self._apart.submit(self._perform_apart, chain, [case for case in cases if case.server == server and case not in chain])
        for case in cases:
            if not first[case.server]:
                self._pool.submit(self._perform, case)

    def _perform_apart(self, chain: list[Case], others: list[Case]) -> None:
        for case in chain:
            if not self._closed:
                self._perform(case)
        for case in others if not self._closed else ():
            self._pool.submit(self._perform, case)

    def outcome(self, golden: str, scenario: str) -> Outcome:
        """Wait for the outcome of a scenario that was started."""
        return self._running[golden, scenario].result()

    def close(self) -> None:
        """Begin no further scenario, wait for those that run, and let go of Kafka."""
        self._closed = True
        self._apart.shutdown(cancel_futures=True)
        self._pool.shutdown(cancel_futures=True)
        if self._learn:
            self._write_steps()
        self._reader.close()

    def _perform(self, case: Case) -> None:
        running = self._running[case.golden, case.scenario]
        try:
            steps = None if self._learn else self._steps.get(case.golden, {}).get(case.scenario, [])
            known = Known(case.load_golden(), steps, case.theirs)
            running.set_result(kit.perform(case.scenario, case.servers, self._reader, known))
        except BaseException as error:
            running.set_exception(error)
            raise

    def _write_steps(self) -> None:
        """Keep the least that slow runs have seen at each step."""
        for (golden, scenario), running in self._running.items():
            if not running.done() or running.exception() or running.result().error:
                continue
            learned = running.result().steps
            held = self._steps.setdefault(golden, {}).get(scenario)
            if held is not None and len(held) == len(learned):
                learned = [dict(Counter(old) & Counter(new)) for old, new in zip(held, learned, strict=True)]
            if learned:
                self._steps[golden][scenario] = learned
        ordered = {golden: dict(sorted(scenarios.items())) for golden, scenarios in sorted(self._steps.items())}
        STEPS.write_text(json.dumps(ordered, indent=0) + "\n")
