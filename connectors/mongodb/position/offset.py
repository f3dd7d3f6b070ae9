"""The source offset of MongoDB, with Debezium's fields (`MongoDbOffsetContext`), and resume tokens as offsets hold them.

While the initial snapshot runs, `initsync` is there: a start takes it again, or, where a field of ours says which parts of it are done,
resumes it. Otherwise streaming continues after `resume_token`, which is Base64 of the token's BSON document (`ResumeTokens`). `sec` and
`ord` are the cluster time of the last event, -1 where only the token is known (nothing has happened since). A start also finds the offset
where releases up to 2.5 have stored it (`MongoDbOffsetContext.Loader`).
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import bson
from bson.errors import BSONError

from connect_py.api import SourceOffset, SourcePartition
from connect_py.errors import ConfigError
from connectors.engine.snapshot.initial.progress import FIELD
from connectors.engine.snapshot.new_tables import FIELD as TABLES
from connectors.engine.stored_offsets import whole_number
from connectors.mongodb.addresses import options_of
from connectors.mongodb.config import MongoConfig

log = logging.getLogger(__name__)


#: What a token's `_data` begins with: KeyString's type byte of a timestamp, then eight bytes, big-endian.
_TIMESTAMP = 0x82


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """A position in the change stream, whose meaning only the server knows.

    Attributes:
        raw: the token's BSON document.
    """

    raw: bytes

    @classmethod
    def parse(cls, text: str) -> ResumeToken:
        """Parse the text of an offset: Base64, or the bare `_data` of releases before 2.6.

        Raises:
            ConfigError: it is no text of a token.
        """
        try:
            raw = base64.b64decode(text, validate=True)
            bson.decode(raw)
            return cls(raw)
        except (binascii.Error, ValueError, BSONError):
            pass
        if not text or any(letter not in "0123456789abcdefABCDEF" for letter in text):
            raise ConfigError(
                "The field 'resume_token' of the stored offset is no resume token. Nothing was read. Set the offset anew (PATCH offsets "
                "while the connector is stopped), or delete it to begin with a snapshot."
            )
        return cls(bson.encode({"_data": text}))

    @classmethod
    def of(cls, document: Any) -> ResumeToken:
        """Make one of what the driver gives: a decoded or a raw document."""
        raw = getattr(document, "raw", None)
        return cls(bson.encode(document) if raw is None else bytes(raw))

    def __str__(self) -> str:
        return base64.b64encode(self.raw).decode("ascii")

    @property
    def document(self) -> dict[str, Any]:
        """The document that commands expect."""
        return bson.decode(self.raw)

    @property
    def time(self) -> tuple[int, int] | None:
        """Seconds and increment of the cluster time inside; None where the token does not have the known form."""
        data = self.document.get("_data")
        try:
            octets = bytes.fromhex(data) if isinstance(data, str) else bytes(data or b"")
        except ValueError:
            return None
        if len(octets) < 9 or octets[0] != _TIMESTAMP:
            return None
        return int.from_bytes(octets[1:5], "big"), int.from_bytes(octets[5:9], "big")


_MORE = ("incremental_snapshot_", "transaction_", TABLES)


@dataclass(frozen=True, slots=True)
class MongoOffset:
    """A source offset.

    Attributes:
        seconds: `sec`; increment: `ord`.
        token: None at the start of everything, and where the server gives none.
        in_snapshot: `initsync`.
        progress: the finished parts of the initial snapshot (`connectors.engine.snapshot.initial.progress`).
        lsid: text of the session of the last event, where that was part of a transaction; txn_number is the transaction's.
        more: fields of an incremental snapshot and of a transaction that are under way, and of tables that were read, as the engine makes
            and reads them.
    """

    seconds: int = 0
    increment: int = 0
    token: ResumeToken | None = None
    in_snapshot: bool = False
    lsid: str | None = None
    txn_number: int | None = None
    progress: str | None = None
    more: Mapping[str, bool | int | str | None] = field(default_factory=dict)

    @classmethod
    def load(cls, stored: SourceOffset) -> MongoOffset:
        """Load from the offsets topic. The token of an unfinished snapshot that starts over is ignored: everything is read again.

        Raises:
            ConfigError: a number is none, or the token is no token.
        """
        in_snapshot = stored.get("initsync") in (True, "true")
        progress = stored.get(FIELD) if in_snapshot else None
        token = stored.get("resume_token")
        lsid = stored.get("lsid")
        return cls(
            seconds=_number(stored, "sec") or 0,
            increment=_number(stored, "ord") or 0,
            token=None if token is None or (in_snapshot and progress is None) else ResumeToken.parse(str(token)),
            in_snapshot=in_snapshot,
            lsid=None if lsid is None else str(lsid),
            txn_number=_number(stored, "txnNumber"),
            progress=None if progress is None else str(progress),
            # the count of a transaction's events starts over, as in the reference
            more={n: v for n, v in stored.items() if n.startswith((_MORE[0], TABLES)) and not isinstance(v, float)},
        )

    def dump(self) -> dict[str, bool | int | str | None]:
        """Return the map for the offsets topic."""
        fields: dict[str, bool | int | str | None] = {"sec": self.seconds, "ord": self.increment}
        if self.in_snapshot:
            fields["initsync"] = True
        if self.lsid is not None:
            fields |= {"lsid": self.lsid, "txnNumber": self.txn_number}
        if self.token is not None:
            fields["resume_token"] = str(self.token)
        if self.progress is not None:
            fields[FIELD] = self.progress
        return {**fields, **self.more}

    @property
    def time(self) -> tuple[int, int] | None:
        """Seconds and increment of the cluster time up to which the stream was read; None where that is not known."""
        of_token = None if self.token is None else self.token.time
        return of_token or ((self.seconds, max(self.increment, 0)) if self.seconds > 0 else None)

    @property
    def is_empty(self) -> bool:
        """Whether it holds no position."""
        return self.token is None and self.seconds <= 0

    def __str__(self) -> str:
        return str({name: value for name, value in self.dump().items() if not name.startswith((*_MORE, FIELD))})


def _number(stored: SourceOffset, name: str) -> int | None:
    try:
        return whole_number(stored, name)
    except ConfigError:
        raise ConfigError(f"Source offset '{name}' parameter value {stored[name]} could not be converted to an integer") from None


#: What those releases called the replica set of a sharded cluster's routers.
_CLUSTER = "cluster"


def stored_offset(config: MongoConfig, read: Callable[[SourcePartition], SourceOffset | None]) -> MongoOffset | None:
    """Return the offset of this connector's partition, else of the one with the replica set's name; None without either.

    Raises:
        ConfigError: it cannot be read.
    """
    partition: Mapping[str, str] = {"server_id": config.topic_prefix}
    found = read(partition)
    if found is None:
        name = options_of(config.connection_string).get("replicaset") or _CLUSTER
        found = read({**partition, "rs": name})
        if found is not None:
            log.info("The offset of an earlier release, for the replica set '%s', is gone on from", name)
    return MongoOffset.load(found) if found else None
