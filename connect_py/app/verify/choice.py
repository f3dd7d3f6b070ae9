"""Which keys are compared: all, a share of them, or those that have changed since a moment.

A share is chosen by the key's digest, so all sides choose the same keys without asking each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from connect_py.app.verify.index import Scratch
from connect_py.data import Struct
from connect_py.errors import ConfigError

#: Whether the key of a digest is compared.
Chosen = Callable[[bytes], bool]

_BITS = 64
_BYTES = _BITS // 8


@dataclass(frozen=True, slots=True)
class Sample:
    """A part of the keys: a share from 0 to 1, or about so many."""

    share: float | None = None
    keys: int | None = None

    def chosen(self, count: int | None) -> Chosen | None:
        """Return which keys are in the sample of `count`; None: that must be known first."""
        share = self.share
        if share is None:
            if count is None or self.keys is None:
                return None
            share = self.keys / count if count else 1.0
        limit = int(min(share, 1.0) * 2**_BITS)
        return lambda key: int.from_bytes(key[:_BYTES], "big") < limit

    def __str__(self) -> str:
        return f"about {self.keys}" if self.share is None else f"{100 * self.share:g} %"


def parse_sample(text: str) -> Sample:
    """Return what --sample asks for: ``1%``, ``0.5%`` or ``10000``. Raises ConfigError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    if found is not None and float(found[1]) > 0:
        if found[2] and float(found[1]) <= 100:
            return Sample(share=float(found[1]) / 100)
        if not found[2] and found[1].isdigit():
            return Sample(keys=int(found[1]))
    raise ConfigError(f"--sample {text}: write a share such as 1%, of 100% at most, or a number of keys such as 10000")


class KeySet(Scratch):
    """Digests of keys in a file that is gone with the process."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        super().__init__("CREATE TABLE keys (k BLOB PRIMARY KEY) WITHOUT ROWID")
        self.db.execute("BEGIN")
        self.db.executemany("INSERT OR IGNORE INTO keys (k) VALUES (?)", ((key,) for key in keys))
        self.db.execute("COMMIT")

    def __len__(self) -> int:
        return int(self.db.execute("SELECT count(*) FROM keys").fetchone()[0])

    def __contains__(self, key: bytes) -> bool:
        return self.db.execute("SELECT 1 FROM keys WHERE k = ?", (key,)).fetchone() is not None


#: Keys of a topic's records since a moment, in the source's schema.
ChangedKeys = Callable[[], Iterable[Struct]]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is compared.

    Attributes:
        since: epoch milliseconds; only rows with a record after it. None: all.
        changed: with `since`, the keys that have changed, by the source's table.
    """

    sample: Sample | None = None
    since: int | None = None
    changed: Mapping[str, ChangedKeys] = field(default_factory=dict)

    def words(self) -> str | None:
        """Return which keys are compared; None: all."""
        since = None if self.since is None else "those with a record since the given time"
        return " of ".join(filter(None, (None if self.sample is None else str(self.sample), since))) or None


EVERYTHING = Choice()
