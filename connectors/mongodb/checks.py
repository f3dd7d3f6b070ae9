"""What a MongoDB connector needs of its deployment, as functions from facts to findings. Pure: a start and the doctor use the same ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from connect_py.api.doctor import Finding, Person
from connectors.mongodb.server.connection import AUTHENTICATION_FAILED, UNAUTHORIZED, ServerError

#: A connector that is stopped over night still finds its place.
SHORTEST_OPLOG_SECONDS = 86_400
#: Change streams of a whole deployment, and the resume tokens that all servers since then understand.
_OLDEST = (4, 0)
#: Pre- and post-images are kept since then.
_IMAGES = (6, 0)
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Rights:
    """What a user may do: actions by (database, collection); "" is every one. `cluster` are those on the whole cluster.

    Attributes:
        unlimited: whether the server checks no rights, or this user has every one.
    """

    actions: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    cluster: frozenset[str] = frozenset()
    unlimited: bool = False

    @classmethod
    def parse(cls, answer: Mapping[str, object]) -> Rights:
        """Read the answer of ``connectionStatus`` with ``showPrivileges``; a server without logins shows no user."""
        info = answer.get("authInfo")
        if not isinstance(info, dict) or not info.get("authenticatedUsers"):
            return cls(unlimited=True)
        actions: dict[tuple[str, str], set[str]] = {}
        cluster: set[str] = set()
        unlimited = False
        for privilege in info.get("authenticatedUserPrivileges", []):
            resource, names = privilege.get("resource", {}), set(privilege.get("actions", []))
            if resource.get("anyResource"):
                unlimited = unlimited or "anyAction" in names
                actions.setdefault(("", ""), set()).update(names)
            elif resource.get("cluster"):
                cluster |= names
            elif "db" in resource:
                actions.setdefault((resource["db"], resource.get("collection", "")), set()).update(names)
        return cls({place: frozenset(names) for place, names in actions.items()}, frozenset(cluster), unlimited)

    def has(self, action: str, database: str = "", collection: str = "") -> bool:
        """Return whether the user may do this: on a collection, on every one of a database, or ("", "") on every one of all."""
        places = {("", ""), (database, ""), ("", collection), (database, collection)}
        return self.unlimited or any(action in self.actions.get(place, ()) for place in places)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the doctor has read of one deployment.

    Attributes:
        has_streams: whether it is a replica set or a router, which alone have change streams.
        user: the name and database of the user, for statements; None without a login.
        collections: the captured ones, (database, collection).
        without_images: those of them that do not keep pre- and post-images.
        oplog_seconds: how far the oplog reaches back, None where it is not shown; `oplog_is_full` whether it already drops entries.
        stream_error: why the change stream cannot be opened.
    """

    version: tuple[int, ...]
    has_streams: bool
    user: tuple[str, str] | None = None
    rights: Rights = field(default_factory=Rights)
    collections: Sequence[tuple[str, str]] = ()
    without_images: Sequence[tuple[str, str]] = ()
    oplog_seconds: int | None = None
    oplog_is_full: bool = False
    stream_error: ServerError | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a configuration asks of the deployment.

    Attributes:
        database, collection: what is watched; None for all.
        signal: the signal collection.
        images: whether events need pre- or post-images that the server keeps.
    """

    database: str | None = None
    collection: str | None = None
    streams: bool = True
    reads: bool = True
    signal: tuple[str, str] | None = None
    images: bool = False


def kind_findings(*, has_streams: bool) -> Iterator[Finding]:
    """Check that the server has change streams; a start does, too."""
    if not has_streams:
        yield Finding(
            "mongodb.replica_set",
            "The server is neither a member of a replica set nor the router of a sharded cluster, and only these have change streams.",
            "Changes are read from a change stream and nowhere else.",
            Person.DBA,
            statements=("rs.initiate()",),
            advice="Start it with --replSet <name> before.",
        )


def server_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    """Check kind, version, log and change stream of the deployment."""
    if wanted.streams:
        yield from kind_findings(has_streams=facts.has_streams)
    if facts.version < _OLDEST:
        yield Finding(
            "mongodb.version",
            f"The server is of version {'.'.join(map(str, facts.version))}; change streams of databases came with 4.0.",
            "The connector cannot follow its changes.",
            Person.DBA,
            advice="Upgrade the server.",
        )
    if wanted.streams and facts.oplog_is_full and facts.oplog_seconds is not None and facts.oplog_seconds < SHORTEST_OPLOG_SECONDS:
        yield Finding(
            "mongodb.oplog",
            f"The oplog reaches back {facts.oplog_seconds / 3600:.3g} hours.",
            "A connector that is stopped for longer finds its place gone, and needs a new snapshot.",
            Person.DBA,
            "clusterAdmin, on each member",
            ("db.adminCommand({ replSetResizeOplog: 1, minRetentionHours: 72 })",),
            "Choose what your disk has room for.",
            severity="risk",
        )


def right_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    """Check the user's rights, and return one finding with one statement for all that is missing."""
    rights, roles, lacks = facts.rights, [], []
    if wanted.streams:
        database, collection = wanted.database or "", wanted.collection or ""
        what = ".".join(filter(None, (database, collection))) or "every database"
        missing = [action for action in ("changeStream", "find") if not rights.has(action, database, collection)]
        if missing:
            lacks.append(f"{' and '.join(missing)} on {what}")
            roles.append({"role": "read", "db": database} if database else {"role": "readAnyDatabase", "db": "admin"})
    if wanted.reads:
        unread = [place for place in facts.collections if not rights.has("find", *place)]
        if unread:
            lacks.append(f"find on {_listed(unread)}")
            roles += [{"role": "read", "db": database} for database in dict.fromkeys(database for database, _ in unread)]
    if wanted.signal is not None and not all(rights.has(action, *wanted.signal) for action in ("insert", "remove")):
        lacks.append(f"insert and remove on {'.'.join(wanted.signal)} (signal.data.collection)")
        roles.append({"role": "readWrite", "db": wanted.signal[0]})
    if not lacks or facts.user is None:
        return
    name, source = facts.user
    distinct = list({json.dumps(role): role for role in roles}.values())
    yield Finding(
        "mongodb.roles",
        f"The user '{name}' lacks {', '.join(lacks)}.",
        "The snapshot reads the collections, the change stream needs both, and incremental snapshots write watermarks.",
        Person.DBA,
        "userAdmin",
        (f"db.getSiblingDB({json.dumps(source)}).grantRolesToUser({json.dumps(name)}, {json.dumps(distinct)})",),
    )


def collection_findings(facts: Facts, wanted: Wanted) -> Iterator[Finding]:
    """Check the captured collections."""
    if not facts.collections:
        yield Finding(
            "mongodb.collections.none",
            "No collection that the user sees matches the filters (database.*.list, collection.*.list).",
            "Nothing is captured until one does.",
            Person.YOU,
            advice="Correct the lists, or create the collection. Names are matched whole, as database.collection.",
            severity="risk",
        )
    if wanted.images and facts.version < _IMAGES:
        yield Finding(
            "mongodb.images.version",
            f"The server is of version {'.'.join(map(str, facts.version))}, and images before and after a change are kept since 6.0.",
            "before, or the full document of an update, stays empty.",
            Person.YOU,
            advice="Set capture.mode=change_streams_update_full and capture.mode.full.update.type=lookup.",
        )
    elif wanted.images and facts.without_images:
        yield Finding(
            "mongodb.images",
            f"No images of changes are kept for {_listed(facts.without_images)}.",
            "before, or the full document of an update, stays empty.",
            Person.DBA,
            "dbAdmin",
            tuple(
                f"db.getSiblingDB({json.dumps(database)}).runCommand("
                f"{{ collMod: {json.dumps(collection)}, changeStreamPreAndPostImages: {{ enabled: true }} }})"
                for database, collection in facts.without_images
            ),
        )


def stream_findings(facts: Facts) -> Iterator[Finding]:
    """Check that the change stream was opened, where nothing else explains that it was not."""
    if facts.stream_error is not None and facts.has_streams and facts.stream_error.code != UNAUTHORIZED:
        yield Finding(
            "mongodb.stream",
            f"The change stream cannot be opened: {facts.stream_error.reason}",
            "No change is read.",
            Person.YOU,
            advice="Check cursor.pipeline, capture.scope, capture.target and capture.start.op.time.",
        )


def connection_finding(error: ServerError, at: str) -> Finding:
    """Return the finding of a deployment that could not be used.

    Args:
        at: its address, without a password.
    """
    finding = Finding(
        "mongodb.connection",
        f"Cannot use the deployment at {at}: {error.reason}",
        "Nothing else of it could be looked at.",
        Person.YOU,
        advice="Check mongodb.connection.string and mongodb.ssl.*, and that no firewall is between the two.",
    )
    if error.code == AUTHENTICATION_FAILED:
        return replace(finding, advice="Check mongodb.user, mongodb.password and mongodb.authsource.")
    return finding


def all_findings(facts: Facts, wanted: Wanted) -> list[Finding]:
    """Return all that is wrong, in the order in which it is to be mended."""
    found = [*server_findings(facts, wanted), *right_findings(facts, wanted), *collection_findings(facts, wanted)]
    return [*found, *stream_findings(facts)] if wanted.streams else found


def _listed(places: Sequence[tuple[str, str]]) -> str:
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return ", ".join(".".join(place) for place in places[:_SHOWN]) + more
