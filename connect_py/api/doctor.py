"""What a doctor finds before a connector runs: everything that is wrong, at once, each with the statement that mends it.

A connector class offers its doctor as it offers `Connector.validate`. A check is a function of facts that returns findings: it asks no
server, so that a connector's start can use the same check and the same words. One reader a server gathers the facts. Nothing here
changes anything on a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal


class Person(Enum):
    """Who can mend a finding."""

    DBA = "dba"
    KAFKA_ADMIN = "kafka-admin"
    YOU = "you"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. No text of it holds a secret.

    Attributes:
        check: what was looked at, a name for programs that does not change: ``postgres.wal_level``.
        what: the fault, one or two sentences.
        why: what it does to the connector.
        who: who can mend it.
        role: which rights that takes, after "as": ``a superuser``; empty where no rights are needed.
        statements: what to run, each one whole; in SQL each ends with a semicolon.
        advice: what to set or to do, in words; after the statements where there are some.
        severity: ``problem`` stops the connector or loses changes, ``risk`` will do so one day.
    """

    check: str
    what: str
    why: str
    who: Person
    role: str = ""
    statements: tuple[str, ...] = ()
    advice: str = ""
    severity: Literal["problem", "risk"] = "problem"

    @property
    def remedy(self) -> str:
        """What to do, as sentences of one line."""
        run = f"Run{f' as {self.role}' if self.role else ''}: {' '.join(self.statements)}" if self.statements else ""
        return " ".join(filter(None, (run, self.advice)))

    def refusal(self, still_true: str, then: str = "") -> str:
        """Return the text of the error with which a start ends because of this finding.

        Args:
            still_true: what the start has not done, one sentence.
            then: what to do after the remedy, one sentence.
        """
        return " ".join(filter(None, (self.what, still_true, self.remedy, then)))


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a doctor says.

    Attributes:
        findings: what is wrong, in the order in which it is to be mended.
        looked_at: what was looked at, for people: ``PostgreSQL 17.2 at db:5432, database shop, 12 captured tables``.
        unseen: what could not be looked at, and why; a finding that says how to mend that may be there, too.
        topics: the topics that the connector will write records of its source to; the worker looks at them.
    """

    findings: Sequence[Finding] = ()
    looked_at: Sequence[str] = ()
    unseen: Sequence[str] = ()
    topics: Sequence[str] = field(default=())

    @property
    def code(self) -> int:
        """The exit code of a command (`exit_code`)."""
        return exit_code(found=bool(self.findings), unseen=bool(self.unseen))


def exit_code(*, found: bool, unseen: bool) -> int:
    """Return 0 where nothing was found, 1 where something was, 3 where not everything could be looked at."""
    return 3 if unseen else 1 if found else 0


def merged(diagnoses: Iterable[Diagnosis]) -> Diagnosis:
    """Return several diagnoses as one; a finding that two have is there once."""
    found = list(diagnoses)
    return Diagnosis(
        tuple(dict.fromkeys(finding for each in found for finding in each.findings)),
        tuple(text for each in found for text in each.looked_at),
        tuple(text for each in found for text in each.unseen),
        tuple(dict.fromkeys(topic for each in found for topic in each.topics)),
    )
